"""Turn messages recorded from a platform's API into a picture of what people see.

    python -m pictures.render discord messages.json out.png --title "# architecture"

A page of the platform's look shows them in headless Chromium (pictures/screenshot.js).
"""

import argparse
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from PIL import Image

Platform = Literal["discord", "slack"]
HERE = Path(__file__).parent
CHROMIUM = Path("/usr/bin/chromium")
DEADLINE_SECONDS = 120


class NoPicture(Exception):
    """The picture could not be made; the message says why."""


def missing() -> str:
    """Return what this machine lacks to make pictures; nothing if it can."""
    if not shutil.which("node"):
        return "Node.js is not installed"
    if not (HERE / "node_modules").is_dir():
        return "the page's parts are not installed: npm ci --prefix pictures"
    if not CHROMIUM.exists():
        return "Chromium is not installed: apt-get install chromium"
    return ""


def render(
    platform: Platform,
    messages: Sequence[Mapping[str, Any]],
    out: Path,
    *,
    width: int = 900,
    height: int | None = None,
    title: str = "",
    names: Mapping[str, str] | None = None,
) -> str:
    """Write a PNG of messages as the platform's API gives them, oldest first, and return its text.

    Width and height are in CSS pixels, the picture has twice as many; what is higher fades out there.
    `names` says what ids are shown as where the messages don't: Slack's never do.

    Raises:
        NoPicture: A part is missing on this machine, or a message holds what can't be drawn.
    """
    if lack := missing():
        raise NoPicture(f"No picture: {lack}.")
    if not messages:
        raise NoPicture("No picture: there is no message.")
    given = {
        "chromium": str(CHROMIUM),
        "messages": list(messages),
        "width": width,
        "height": height,
        "title": title,
        "names": dict(names or {}),
    }
    made = subprocess.run(  # noqa: S603 - our own program; the messages go in as data
        [shutil.which("node") or "node", HERE / "screenshot.js", platform, out.resolve()],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    if made.returncode:
        raise NoPicture(f"No picture: {made.stderr.strip()}")
    shrink(out)
    return made.stdout


def shrink(picture: Path) -> None:
    """Reduce a PNG to 256 colours: pages of text lose nothing that is seen, and half of the bytes."""
    with Image.open(picture) as image:
        reduced = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    reduced.save(picture, optimize=True)


def main() -> None:
    """Draw what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m pictures.render", description=__doc__)
    parser.add_argument("platform", choices=get_args(Platform))
    parser.add_argument("messages", type=Path, help="a JSON list of messages")
    parser.add_argument("out", type=Path, help="the PNG to write")
    parser.add_argument("--width", type=int, default=900)
    parser.add_argument("--title", default="", help="the channel's or the thread's name, as a bar above")
    parser.add_argument("--name", action="append", default=[], metavar="ID=NAME", help="who an id is")
    chosen = parser.parse_args()
    names = dict(each.split("=", 1) for each in chosen.name)
    messages = json.loads(chosen.messages.read_text(encoding="utf-8"))
    try:
        render(
            chosen.platform, messages, chosen.out, width=chosen.width, title=chosen.title, names=names
        )
    except NoPicture as problem:
        parser.exit(1, f"{problem}\n")


if __name__ == "__main__":
    main()
