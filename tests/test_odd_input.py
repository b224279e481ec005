"""What isn't text where text is read, and what a system hands over that people never would."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.test_bad_disks import BY_PERMISSION
from tests.test_program import QUESTION, Ended, Program, asked

NOT_TEXT = os.fsdecode(b"Shard \xff now?")


async def fed(council: Program, typed: bytes, *words: str) -> Ended:
    """Run a command with this on its standard input."""
    process = await council.start(*words, stdin=subprocess.PIPE)
    out, err = await process.communicate(typed)
    return Ended(process.returncode or 0, out.decode(), err.decode())


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (("ask", NOT_TEXT), b""),
        (("ask",), b"Shard \xff now?"),
        (("ask", "-"), b"Shard \xff now?"),
        (("export", NOT_TEXT), b""),
        (("retry", NOT_TEXT), b""),
    ],
)
async def test_what_is_not_text_is_refused(tmp_path: Path, words: tuple[str, ...], typed: bytes) -> None:
    """As other misuse, before anything is asked."""
    async with asked(tmp_path) as (council, server):
        ended = await fed(council, typed, *words)
    assert (ended.code, ended.out) == (2, "")
    assert "it isn't UTF-8 text" in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
    assert server.history == []


async def test_a_line_that_is_not_text_is_refused_and_chat_goes_on(tmp_path: Path) -> None:
    """Nothing is asked for it."""
    async with asked(tmp_path) as (council, server):
        typed = b"/council Shard \xff now?\n/council-help\n"
        ended = await fed(council, typed, "chat")
    assert (ended.code, ended.err) == (0, "")
    assert "That isn't UTF-8 text; nothing was asked." in ended.out
    assert "chairman man." in ended.out
    assert server.history == []


async def test_help_in_chat_asks_no_model(tmp_path: Path) -> None:
    """By the command, as an option, as a question mark, and to a follow-up."""
    async with asked(tmp_path) as (council, server):
        typed = b"/council help\n/council --help\n/council ?\n@council help\n"
        ended = await fed(council, typed, "chat")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("/council-history, /council-search, /council-show.") == 4
    assert server.history == []


async def test_an_attachment_may_have_any_name(tmp_path: Path) -> None:
    """Members see it with what can be read of it."""
    name = os.fsdecode(b"plan-\xff.txt")
    (tmp_path / name).write_text("Two shards.", encoding="utf-8")
    async with asked(tmp_path) as (council, server):
        ended = await council("ask", QUESTION, "--attachment", name, "--json")
    assert (ended.code, ended.err) == (0, "")
    assert "plan-\ufffd.txt" in server.history[0].prompt


async def test_a_name_that_is_not_text_is_still_reported(tmp_path: Path) -> None:
    """Where standard output would refuse it."""
    other = tmp_path / "other"
    other.mkdir()
    (other / os.fsdecode(b"odd-\xff.json")).write_text("{", encoding="utf-8")
    strict = "import sys; sys.stdout.reconfigure(errors='strict')"
    ended = await Program(tmp_path, first=strict)("import", str(other))
    assert (ended.code, ended.err) == (1, "")
    assert "0 imported, 1 skipped\n  odd-\\udcff.json: it is not JSON" in ended.out


async def test_a_dotenv_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    """In one line."""
    dotenv = tmp_path / ".env"
    dotenv.write_text("OPENROUTER_API_KEY=sk-or-1\n", encoding="utf-8")
    dotenv.chmod(0)
    ended = await Program(tmp_path, first=BY_PERMISSION)("config")
    dotenv.chmod(0o600)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "The configuration can't be used:\n"
        ".env: it can't be read: Permission denied. Save it as text that this user may read\n"
    )
