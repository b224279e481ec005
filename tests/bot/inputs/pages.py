"""Web pages as sites send them: articles, and what stands in their place, from what the sites' own makers send."""

import asyncio
import base64
import sys
import tomllib
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from bot.inputs import files
from bot.inputs.child import Extract, extract
from bot.inputs.files import FileContent, FileReader, FilesAsRead
from bot.inputs.kinds import Extractable

ALL_BY_ONE = """
import base64, dataclasses, json, sys
from bot.inputs.child import bound, extract
bound(sys.argv[1])
for line in sys.stdin:
    said = dataclasses.asdict(extract(sys.argv[1], base64.b64decode(line)))
    print(json.dumps(said, default=lambda content: base64.b64encode(content).decode()))
"""

WORDS = "Paragraph {} of the article, with enough words in it to be taken for an article by all that read pages."


def reader() -> FileReader:
    """Return a reader that starts no process for each page."""

    async def here(kind: Extractable, content: bytes) -> Extract:
        return extract(kind, content)

    return FileReader(extract=here)


async def all_by_one(kind: Extractable, contents: Mapping[str, bytes]) -> dict[str, FilesAsRead]:
    """Return what is read of each file by its name, all by one process that is bounded as each file's own."""
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", ALL_BY_ONE, kind),
        cwd="/",
        env=files._ENVIRONMENT,  # pyright: ignore[reportPrivateUsage]
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await run.communicate(b"\n".join(map(base64.b64encode, contents.values())))
    read = map(TypeAdapter(Extract).validate_json, said.splitlines())
    extracts = dict(zip(contents.values(), read, strict=True))

    async def known(kind: Extractable, content: bytes) -> Extract:
        del kind
        return extracts[content]

    reader = FileReader(extract=known)
    return {name: await reader.read([FileContent(name, content)]) for name, content in contents.items()}


def page(body: str, title: str = "Pumps", head: str = "") -> str:
    return f"<!doctype html><html><head><title>{escape(title)}</title>{head}</head><body>{body}</body></html>"


def article(
    text: str = "Water boils at a hundred degrees.",
    around: str = "",
    title: str = "Pumps",
    paragraphs: int = 4,
) -> str:
    """Return an article of some ninety words, with markup around it."""
    more = "".join(f"<p>{WORDS.format(number)}</p>" for number in range(paragraphs))
    navigation = "<nav><a href='/'>Home</a> <a href='/about'>About</a></nav>"
    return page(
        f"{navigation}{around}<article><h1>{title}</h1><p>{text}</p>{more}</article><footer>Imprint</footer>",
        title,
    )


_ROWS = tomllib.loads(Path(__file__).with_name("pages.toml").read_text("utf-8"))


def _with_parts(html: str) -> str:
    for name, part in _ROWS["parts"].items():
        html = html.replace(f"{{{name}}}", part)
    return html


WALLS = {
    f"{why}: {name}": (page(_with_parts(body), title), why)
    for why, row in _ROWS["walls"].items()
    for name, (title, body) in row.items()
}
_DIFFERENT: dict[str, dict[str, Any]] = {
    name: {key: _with_parts(said) for key, said in row.items()}
    for name, row in _ROWS["articles"].items()
}
ARTICLES = {
    **{name: article(**row) for name, row in _DIFFERENT.items()},
    **{name: page(_with_parts(body), title) for name, (title, body) in _ROWS["whole"].items()},
}
