"""What left the program, as text in which times, ids, ports and random marks have stable names."""

import difflib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import psycopg
import pytest

from pictures.scenario import part
from tests.golden.office import Office, played

RECORDED = Path(__file__).parent / "recorded"
IS_RECORDING = os.environ.get("GOLDEN") == "record"
WIDE = 160
"""Characters of a value that fits on a line."""
VARIES = re.compile(
    r"(?=\d)(?<!\d)(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(?:Z|\+00:00)?|(?:(?<=<t:)|(?<=!date\^)"
    r"|(?<=127\.0\.0\.1:)|(?<=port.: )|(?<=port )|(?<=created.:))\d+)"
)
IDS = re.compile(
    r"\b(?=[\w-]*\d)(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<![.\d])\d{17,20}\b"
    r"|[A-Z][0-9A-F]{10}\b|17[67]\d{7}\.\d{6}\b|p\d{16,20}\b"
    r"|(?:council_)?(?=\d*[a-f])(?:[0-9a-f]{8}|[0-9a-f]{16,48})\b)"
    r"|(?<![\w-])(?=[\w-]*\d)[\w-]{100,}"
)
ALL, NONE = slice(None), slice(0)
Block = tuple[str, list[str]]
"""What was asked, and the lines of what was sent."""


def named(text: str, known: Mapping[str, str]) -> str:
    """Return a text without times and ports, and with numbers for the ids that aren't known."""
    names = dict(known)

    def name(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"<id {len(names) - len(known) + 1}>")

    return IDS.sub(name, VARIES.sub("<varies>", text))


def drawn(value: Any, indent: str = "  ") -> Iterator[str]:
    """Draw what was sent: a line for each value, and for each line of a text."""
    entries: Any = value.items() if hasattr(value, "items") else (("-", each) for each in value)
    for key, each in entries:
        said = each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
        if isinstance(each, dict | list) and len(said) > WIDE:
            yield f"{indent}{key}:"
            yield from drawn(each, f"{indent}  ")
        elif "\n" in said:
            yield f"{indent}{key}:"
            yield from (f"{indent}  | {line}" for line in said.split("\n"))
        else:
            yield f"{indent}{key}: {said}"


def posts(office: Office) -> Iterator[Block]:
    """Draw the requests to a platform, in order within each place; of an edit, what it changed."""
    asked = sorted(office.people.asked(), key=lambda each: each[0])
    first = {each[1]: -number for number, each in enumerate(reversed(asked))}
    for _, lane in groupby(sorted(asked, key=lambda each: first[each[1]]), lambda each: each[1]):
        before = list[str]()
        for _, _, title, body in lane:
            lines = [*drawn(body if isinstance(body, dict | list) else {"": body})] if body else []
            changed = [*difflib.unified_diff(before, lines, n=0, lineterm="")][2:]
            is_edit = before and title.startswith(("PATCH", "chat.update"))
            yield title, [line for line in changed if line[:2] != "@@"] if is_edit else lines
            before = lines


def prompts(office: Office) -> Iterator[Block]:
    """Draw the requests to models, by model."""
    for exchange in sorted(office.models.history, key=lambda each: (each.model, each.arrived)):
        request = dict(exchange.request)
        said: Any = request.pop("messages")
        request = {key: json.dumps(value) for key, value in request.items()}
        texts = [{each["role"]: each["content"]} for each in said]
        yield f"{exchange.model}: {part(exchange.request)}", [*drawn(request), *drawn(texts)]


def documents(office: Office) -> Iterator[Block]:
    """Draw the conversations, oldest first: the fields of each message, then those beside them."""
    if office.address:
        with psycopg.connect(office.address) as connection:
            contents = [bytes(each) for (each,) in connection.execute("SELECT content FROM documents")]
    else:
        contents = [file.read_bytes() for file in office.folder.glob("data/conversations/*.json")]
    for document in sorted(map(json.loads, contents), key=lambda each: each["created_at"]):
        document["source"].pop("thread", None)  # opened while the document is written, or after it
        for message in [*document.pop("messages"), document]:
            for key, value in message.items():
                text = json.dumps(value, indent=1, ensure_ascii=False)
                text = text.replace(f'"{office.platform}"', "<platform>")
                yield f"{message.get('role', 'conversation')}: {key}", text.split("\n")


def alike(block: Block, known: Mapping[str, str]) -> str:
    return named("\n".join([block[0], *block[1]]), known)


@cache
def plain(platform: str) -> dict[str, int]:
    """Play what the others are compared with: its blocks, each with its place among those of its title."""
    name = "ask" if platform == "terminal" else "plain"
    office = played(scenarios(r"\S+")[name], platform, Path(mkdtemp()))
    places, there = Counter[str](), dict[str, int]()
    for block in (*posts(office), *prompts(office), *documents(office)):
        places[title := named(block[0], office.people.known)] += 1
        there[alike(block, office.people.known)] = places[title]
    return there


def found(office: Office, plain: Mapping[str, int]) -> dict[str, str]:
    """Return what left the program, by the names of files; what `plain` has, too, is only named."""

    def text(blocks: Iterable[Block]) -> str:
        at = ((block, plain.get(alike(block, office.people.known))) for block in blocks)
        return "\n".join(f"{b[0]} [{n} of plain]" if n else "\n".join([b[0], *b[1]]) for b, n in at)

    kinds = (".md",) if plain else (".md", ".html")
    uploads = dict.fromkeys(
        each.decode() for name, each in office.people.uploads() if name.endswith(kinds)
    )
    texts = {
        "posts.txt": text(posts(office)),
        "prompts.txt": text(prompts(office)),
        "documents.txt": text(documents(office)),
        "transcript.md": "\n\n".join(uploads),
        "terminal.txt": "\n".join(office.said).replace(str(office.folder), "<folder>"),
    }
    return {
        name: f"{named(said, office.people.known).strip()}\n" for name, said in texts.items() if said
    }


@cache
def scenarios(kind: str) -> dict[str, list[str]]:
    """Return the steps of each scenario of a kind, as `scenarios.txt` has it."""
    text = re.sub(r"\n +", " ", (RECORDED.parent / "scenarios.txt").read_text())
    rows = re.findall(rf"^{kind} ([\w-]+): (.+)$", text, re.MULTILINE)
    return {name: steps.split(" ; ") for name, steps in rows}


def recorded(name: str, places: Iterable[str]) -> dict[str, str]:
    """Return what is recorded of a scenario in places; the first one that has a file counts."""
    files = [file for place in places for file in (RECORDED / name / place).glob("*")]
    return {file.name: file.read_text() for file in reversed(files)}


def check(name: str, folder: Path, platform: str, *places: str, address: str | None = None) -> None:
    """Play a scenario and compare it with its recording; or, while recording, write what differs."""
    office = played(scenarios(r"\S+")[name], platform, folder, address)
    now = found(office, {} if name in ("plain", "ask") else plain(platform))
    if IS_RECORDING:
        own, others = RECORDED / name / places[0], recorded(name, places[1:])
        shutil.rmtree(own, ignore_errors=True)
        for file in {*now, *others}:
            if (said := now.get(file, "")) != others.get(file, ""):
                own.mkdir(parents=True, exist_ok=True)
                (own / file).write_text(said)
    assert str(RECORDED.parents[2]) not in "".join(now.values()), "a place on this machine"
    before, changes = recorded(name, places), list[str]()
    for file in sorted({*now, *before}):
        sides = before.get(file, "").splitlines(), now.get(file, "").splitlines()
        changes += difflib.unified_diff(*sides, f"{name}/{platform}/{file}", "now", n=2, lineterm="")
    if changes:
        pytest.fail("\n".join(changes), pytrace=False)


def golden(kind: str, platform: str, *places: str, quick: slice = ALL) -> Callable[..., None]:
    """Return the test of all scenarios of a kind on a platform; all but the first and these are for `make soak`."""
    names = [*scenarios(kind)]
    slow = dict.fromkeys({*names[1:]} - {*names[quick]}, pytest.mark.soak)

    @pytest.mark.parametrize("name", [pytest.param(each, marks=slow.get(each, ())) for each in names])
    def test(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        """Requests, documents, transcripts, what is written and how it ends are as they were recorded."""
        address = request.getfixturevalue("postgres") if "postgres" in places else None
        check(name, tmp_path, platform, *places, address=address)

    return test
