"""What the command line writes of texts and names that would steer a terminal or forge its lines."""

import io
import json
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import orjson
import pytest

from bot.terminal.ask import say_bytes
from tests.model_server import Exchange, Turn, begun, council_member
from tests.test_program import Ended, Program, asked

ESCAPES = "\x1b[2J\x1b]0;owned\x07\x1b]8;;http://evil.example\x1b\\"
C0 = "\x01\x08\x0b\x0c\x0d\x0e\x1f"
C1 = "\x7f\x80\x85\x9b31m\x9d0;owned\x9c"
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
LINES = "\u2028\u2029"
HOSTILE = f"Hostile {ESCAPES}{C0}{C1}{BIDI}{LINES} text"
FORBIDDEN = sorted({*C0, *C1, *ESCAPES, *BIDI, *LINES} - set(map(chr, range(32, 127))))
NAME = f"bad{ESCAPES.replace('/', '')}{C1}{BIDI}{LINES}\r\nname.json"


def assert_clean(*written: str) -> None:
    """Find nothing that a terminal would take for a command, or another line."""
    for text in written:
        found = [character for character in FORBIDDEN if character in text]
        assert found == [], f"{found} in {text[:2000]!r}"


class Watched(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def hostile(exchange: Exchange) -> Turn:
    """Answer in hostile words, in the form that was asked for."""
    return Turn(begun(council_member(exchange.request), f"{HOSTILE}\n\n"))


async def answered(folder: Path) -> str:
    """Ask a hostile question; return its conversation's id."""
    async with asked(folder) as (council, server):
        server.always("*", hostile)
        ended = await council("ask", HOSTILE, "--json")
    assert ended.code == 0, ended.err
    assert_clean(ended.out, ended.err)
    message = json.loads(ended.out)
    assert HOSTILE in message["stage3"]["response"]  # all of it is there, written as JSON can
    return str(message["conversation_id"])


@pytest.mark.parametrize("way", [(), ("--events",)])
async def test_asking(tmp_path: Path, way: tuple[str, ...]) -> None:
    """As a person sees it and as events; `answered` reads it as JSON."""
    async with asked(tmp_path) as (council, server):
        server.always("*", hostile)
        ended = await council("ask", HOSTILE, *way)
    assert (ended.code, ended.err) == (0, "")
    assert_clean(ended.out)
    if way == ("--events",):
        events = [json.loads(line) for line in ended.out.split("\n")[:-1]]
        [final] = [event for event in events if event["type"] == "stage3_complete"]
        assert HOSTILE in final["data"]["response"]


async def test_a_failed_run_and_its_retry(tmp_path: Path) -> None:
    """A provider's own sentence is a stranger's as well."""
    refused = Turn(status=403, body={"error": {"code": 403, "message": HOSTILE}})
    async with asked(tmp_path) as (council, server):
        server.always("*", refused)
        failed = await council("ask", HOSTILE)
        told = await council("ask", HOSTILE, "--json")
        unknown = await council("retry", HOSTILE)
    assert (failed.code, told.code, unknown.code) == (1, 1, 2)
    assert_clean(failed.out, failed.err, told.err, unknown.err)


async def test_exporting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is read with; JSON is the file's own bytes, and escaped where somebody watches."""
    conversation = await answered(tmp_path)
    for form in ("md", "html", "json"):
        ended = await Program(tmp_path)("export", conversation, "--format", form)
        assert (ended.code, ended.err) == (0, "")
        if form != "json":
            assert_clean(ended.out)
    [document] = (tmp_path / "data" / "conversations").glob("*.json")
    content = document.read_bytes()
    assert ended.out.encode() == content
    watched = Watched()
    monkeypatch.setattr(sys, "stdout", watched)
    say_bytes(content)
    assert_clean(watched.getvalue())
    assert json.loads(watched.getvalue()) == orjson.loads(content)


async def test_titles_of_an_ambiguous_beginning(tmp_path: Path) -> None:
    """They are listed; so are the words of whoever asked."""
    conversation = await answered(tmp_path)
    folder = tmp_path / "data" / "conversations"
    document = orjson.loads((folder / f"{conversation}.json").read_bytes())
    document["title"] = f"{HOSTILE}\nforged"
    twins = [conversation[:8] + str(uuid.uuid4())[8:] for _ in range(2)]
    for twin in twins:
        (folder / f"{twin}.json").write_bytes(orjson.dumps({**document, "id": twin}))
    rebuilt = await Program(tmp_path)("index", "rebuild")
    ended = await Program(tmp_path)("export", conversation[:8])
    unknown = await Program(tmp_path)("export", HOSTILE)
    assert (rebuilt.code, ended.code, unknown.code) == (0, 2, 2)
    assert ended.err.count("Hostile") == 3
    assert len(ended.err.splitlines()) == 4
    assert_clean(rebuilt.out, ended.err, unknown.err)


async def test_file_names(tmp_path: Path) -> None:
    """In what is imported, checked, backed up, restored and attached."""
    other = tmp_path / f"other{C1}"
    other.mkdir()
    (other / NAME).write_text("{", encoding="utf-8")
    (other / f"b{NAME}").write_text(json.dumps({HOSTILE: HOSTILE}), encoding="utf-8")
    council = Program(tmp_path)
    imported = await council("import", str(other))
    shutil.copy(other / NAME, tmp_path / "data" / "conversations" / NAME)
    checked = await council("index", "check")
    rebuilt = await council("index", "rebuild")
    written = await council("backup", f"safe{C1}.tar.gz")
    restored = await council("restore", f"safe{C1}.tar.gz", "--replace")
    missing = await council("restore", f"none{C1}.tar.gz")
    ended = [imported, checked, rebuilt, written, restored, missing]
    assert imported.out.count("bad\\u001b[2J") == 2
    assert "bad\\u001b[2J" in checked.out
    assert not [line for each in ended for line in each.out.split("\n") if line.startswith("name")]
    assert written.code == 0
    assert_clean(*(each.out + each.err for each in ended))
    (tmp_path / f"a{C1}\n.bin").write_bytes(b"\0")
    async with asked(tmp_path) as (council, _):
        attached = await council("ask", "Why?", "--attachment", f"a{C1}\n.bin")
        absent = await council("ask", "Why?", "--attachment", f"b{C1}.bin")
    assert (attached.code, absent.code) == (2, 2)
    assert "neither text, PDF nor a picture" in attached.err
    assert_clean(attached.err, absent.err)


async def test_configuration(tmp_path: Path) -> None:
    """In force or in error."""
    profile = json.dumps(f"pro{C1}file").replace("\\x", "\\u00")
    toml = f'[profiles.{profile}]\nmembers = ["a/b", {{ model = "c/d", persona = {profile} }}]\n'
    async with asked(tmp_path) as (council, _):
        (tmp_path / "council.toml").write_text(toml)
        wrong = await council("config")
        (tmp_path / "council.toml").write_text(f'{toml}[personas]\n{profile} = "x"\n')
        right = await council("config")
        plain = [await council(*words) for words in (("schema",), ("manifest", "slack"))]
        invited = await council("invite", "discord")
    assert (wrong.code, right.code, invited.code) == (2, 0, 2)
    assert [each.code for each in plain] == [0, 0]
    assert_clean(*(each.out + each.err for each in (wrong, right, invited, *plain)))


async def test_chatting(tmp_path: Path) -> None:
    """What was asked before, and what was typed wrong, comes back."""
    await answered(tmp_path)
    typed = f"/council --x{ESCAPES}{C1} y\n/council-history\n1\n/council-search Hostile\n"
    typed += f"/council-show {C1}{BIDI}\n/council-forget {ESCAPES}\n/council-stats\n"
    async with asked(tmp_path) as (council, _):
        process = await council.start("chat", stdin=subprocess.PIPE)
        out, err = await process.communicate(typed.encode())
    ended = Ended(process.returncode or 0, out.decode(), err.decode())
    assert (ended.code, ended.err) == (0, "")
    assert "Hostile" in ended.out
    assert_clean(ended.out)


async def test_serving(tmp_path: Path) -> None:
    """What is logged of documents that can't be read."""
    await answered(tmp_path)
    (tmp_path / "data" / "conversations" / NAME).write_text("{", encoding="utf-8")
    async with asked(tmp_path) as (council, _):
        process = await council.start("chat", stdin=subprocess.PIPE)
        _, err = await process.communicate(b"")
    assert b"documents_unreadable" in err
    assert_clean(err.decode())
