"""`council init` in a terminal: each path, its mistakes, and Ctrl-C at each question."""

import asyncio
import os
import pty
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from bot.config.configuration import load
from tests.bot.doctor.scene import BOT_TOKEN, NOWHERE, refusals
from tests.bot.terminal.test_demo import Watched
from tests.launcher import start
from tests.model_server import Json, ModelServer, Turn
from tests.test_program import COVERAGE, PLAIN, Program

KEY = "sk-or-v1-5ecret0123456789abcdef"
OTHER_KEY = "other-5ecret-key"
BOT, APP = "xoxb-5ecret-bot", "xapp-5ecret-app"
SECRETS = (KEY, OTHER_KEY, BOT_TOKEN, BOT, APP, "5ecret")
PRICES: Json = {"prompt": "0.000001", "completion": "0.00001"}
MODELS: list[Json] = [
    {"id": name, "pricing": PRICES}
    for name in ("anthropic/claude-5", "openai/gpt-6", "google/gemini-3", "x-ai/grok-5", "x-ai/grok-4")
]
MEMBERS, CHAIRMAN = "openai/gpt-6,google/gemini-3,x-ai/grok-5", "anthropic/claude-5"
DOTENV = f"OPENROUTER_API_KEY={KEY}\nCOUNCIL_MEMBERS={MEMBERS}\nCOUNCIL_CHAIRMAN={CHAIRMAN}\n"
ETX, EOT = "\x03", "\x04"

PROGRAM = """
import atexit, fcntl, os, signal, termios
signal.signal(signal.SIGINT, signal.default_int_handler)
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
# At Ctrl-C, Linux signals first and then drops what nobody has read yet: it may be what we answered.
settings = termios.tcgetattr(0)
settings[3] |= termios.NOFLSH
termios.tcsetattr(0, termios.TCSANOW, settings)
def let_go():
    # A leader's end hangs up its terminal, which may drop what nobody has read yet.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    fcntl.ioctl(0, termios.TIOCNOTTY)
atexit.register(let_go)
from bot.checks import models
from bot.terminal import init
from council import demonstration, suggestion
models.OPENROUTER = init.OPENROUTER = "{openrouter}"
demonstration.available = lambda: True
# A machine that is busy may take long to answer: the menu is the same every time.
suggestion.find_servers.__defaults__ = ({{"Ollama": {ollama}}}, 60.0)
from bot.cli import main
main()
"""
"""The program as the leader of its terminal, with OpenRouter and Ollama where a test serves them."""

NUMBER, HIDDEN_KEY = "Number [1]: ", "OpenRouter key (it isn't shown): "
WHICH, CHAIR, ASK = "Members, separated by commas", "Chairman, who", "see that it answers?"
WHERE, WRITE = "Number [4]: ", "Write this? [Y/n]: "
DISCORD, SLACK_BOT, SLACK_APP = "Discord bot token", "Slack bot token", "Slack app-level token"
MONTH = "Dollars (press Enter for no limit)"
OPENROUTER_PATH = [
    (NUMBER, "1"),
    (HIDDEN_KEY, KEY),
    (WHICH, ""),
    (CHAIR, ""),
    (ASK, ""),
    (WHERE, "3"),
    (DISCORD, BOT_TOKEN),
    (SLACK_BOT, BOT),
    (SLACK_APP, APP),
    (MONTH, ""),
    (WRITE, ""),
]
LAST = len(OPENROUTER_PATH) - 1
LEFT = "Stopped. Nothing was written."


async def asleep(pid: int) -> None:
    """Wait until a program that has shown its question sleeps: Python misses a Ctrl-C just before."""
    while state(pid) != "S":
        await asyncio.sleep(0.001)


def state(pid: int) -> str:
    """Return what a process does, as a letter."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]


@dataclass
class Desk:
    """A folder without settings, and the servers."""

    folder: Path
    openrouter: ModelServer
    ollama: ModelServer
    refused: dict[str, int]
    environment: dict[str, str] = field(default_factory=dict[str, str])
    address: str = ""
    said: str = ""
    columns: int = 200

    @property
    def dotenv(self) -> str:
        """What an OpenRouter key and the suggested council come to in `.env`."""
        return f"OPENROUTER_BASE_URL={self.address or self.openrouter.base_url}\n{DOTENV}"

    async def sit_down(self) -> Watched:
        ours, theirs = pty.openpty()
        code = PROGRAM.format(
            openrouter=self.address or self.openrouter.base_url,
            ollama=self.ollama.url.rpartition(":")[2] or 9,
        )
        process = await start(
            "init",
            cwd=self.folder,
            env=PLAIN | COVERAGE | self.environment | {"TERM": "xterm", "COLUMNS": str(self.columns)},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            code=code,
        )
        os.close(theirs)
        return Watched(process, ours)

    async def answer(self, *answers: tuple[str, str], end: str = "\n") -> int | None:
        """Answer the questions that contain these words, and return how it ends.

        The last answer is typed with this `end`. All that was said is kept.
        """
        terminal = await self.sit_down()
        for number, (question, typed) in enumerate(answers, start=1):
            self.said += await terminal.until(question) + question
            if not question.endswith(": "):
                self.said += await terminal.until(": ") + ": "
            await asleep(terminal.process.pid)
            terminal.press(typed + (end if number == len(answers) else "\n"))
        self.said += await terminal.rest()
        code, _ = await terminal.ended()
        assert [secret for secret in SECRETS if secret in self.said] == []
        return code

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in self.folder.iterdir()}

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """A desk with a fake OpenRouter, and a fake Ollama that has one model."""
    refused: dict[str, int] = {}
    async with (
        ModelServer(models=MODELS, key={}, middlewares=[refusals(refused)]) as openrouter,
        ModelServer(models=[{"id": "llama3.2:latest"}]) as ollama,
    ):
        (tmp_path / "desk").mkdir()
        yield Desk(tmp_path / "desk", openrouter, ollama, refused)


async def test_an_openrouter_key_and_both_platforms(desk: Desk) -> None:
    """A council of four makers, each asked for one word; the files are this user's alone."""
    assert await desk.answer(*OPENROUTER_PATH) == 0
    assert desk.files() == {
        ".env": f"{desk.dotenv}DISCORD_TOKEN={BOT_TOKEN}\nSLACK_BOT_TOKEN={BOT}\nSLACK_APP_TOKEN={APP}\n"
    }
    assert (desk.folder / ".env").stat().st_mode & 0o777 == 0o600
    assert sorted(exchange.model for exchange in desk.openrouter.history) == sorted(
        [*MEMBERS.split(","), CHAIRMAN]
    )
    assert desk.ollama.history == []
    for part in (
        "  openai/gpt-6        $1.00 / $10.00",
        "A short question costs at most $0.25, by the models' prices.",
        "It costs $0.0028 at most.",
        "4 calls answered, $0.",
        "client_id=1234567890123456789&",
        ".venv/bin/council manifest slack",
        "  OPENROUTER_API_KEY = \u2022\u2022\u2022\u2022",
        "make run",
    ):
        assert part in desk.said


@pytest.mark.parametrize("columns", [60, pytest.param(80, marks=pytest.mark.soak)])
async def test_no_line_is_broken_inside_a_word(desk: Desk, columns: int) -> None:
    """The terminal would break a longer one; an address alone stays whole."""
    desk.columns = columns
    wrong = {HIDDEN_KEY: "", WHICH: "a", DISCORD: "x", SLACK_BOT: APP, MONTH: "a"}
    mistakes = [[(asked, wrong[asked])] if asked in wrong else [] for asked, _ in OPENROUTER_PATH]
    path = [(NUMBER, "3"), (WHICH, ""), (CHAIR, ""), (ASK, ""), (WHERE, ""), (WRITE, "n")]
    assert await desk.answer(*path) == 1
    steps = zip(mistakes, OPENROUTER_PATH, strict=True)
    assert await desk.answer(*(each for first, step in steps for each in (*first, step))) == 0
    for line in desk.said.splitlines():
        assert len(line) <= columns or len(line.split()) == 1, line


async def test_a_monthly_budget_is_written_beside_what_is_there(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In dollars; the file's other lines stay, and where there is a budget nobody is asked for one."""
    desk.write("council.toml", "# ours\n[limits]\nruns_per_user = 1\n")
    path = [step for step in OPENROUTER_PATH if step[0] != MONTH]
    month = [(MONTH, "lots"), (MONTH, "0"), (MONTH, "$50")]
    assert await desk.answer(*path[:-1], *month, (WRITE, "")) == 0
    assert desk.files()["council.toml"] == (
        "# ours\n[limits]\nruns_per_user = 1\n\n[budgets]\nworkspace_month = 50\n"
    )
    assert desk.said.count("Type an amount in dollars, such as 50, or press Enter for no limit.") == 2
    monkeypatch.chdir(desk.folder)
    assert load().operations.budgets.workspace_month == 50
    kept = [
        (NUMBER, ""),
        ("OPENROUTER_API_KEY is set already. Keep it?", ""),
        *((WHICH, ""), (CHAIR, ""), (ASK, "n"), (WHERE, "3")),
        ("DISCORD_TOKEN is set already. Keep it?", ""),
        ("SLACK_BOT_TOKEN is set already. Keep it?", ""),
    ]
    assert await desk.answer(*kept) == 0
    assert "Nothing needs to be written." in desk.said


async def test_what_is_written_can_be_used(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the commands that are named next."""
    path = [(NUMBER, "3"), (WHICH, ""), (CHAIR, ""), (ASK, "n"), (WHERE, ""), (WRITE, "")]
    assert await desk.answer(*path) == 0
    assert desk.ollama.history == []
    assert [*desk.files()] == ["council.toml"]
    assert "make run" not in desk.said
    monkeypatch.chdir(desk.folder)
    profile = load().profiles["default"]
    assert [one.persona and one.persona.name for one in profile.members] == [
        "The Architect",
        "The Pragmatist",
        "The Devil's Advocate",
    ]
    assert {(one.model, one.endpoint) for one in profile.seats} == {
        ("llama3.2:latest", f"{desk.ollama.url}/v1")
    }


async def test_another_provider_with_a_key_of_its_own(desk: Desk) -> None:
    """Its key replaces OpenRouter's after a clear yes; every other line is kept."""
    before = f"# mine\nCOUNCIL_DATA_DIR=elsewhere\nOPENROUTER_API_KEY={KEY}\nCOUNCIL_ADMINS=discord:1\n"
    desk.write(".env", before).chmod(0o644)
    path = [
        (NUMBER, "2"),
        ("Address, such as", "api.example.com"),
        ("Address, such as", f"{desk.openrouter.url}/v1/"),
        ("Key (it isn't shown", OTHER_KEY),
        (WHICH, "x-ai/grok-6, openai/gpt-6"),
        (WHICH, "x-ai/grok-5, openai/gpt-6"),
        (CHAIR, "google/gemini-3"),
        (ASK, "y"),
        (WHERE, "4"),
        ("replace the values above?", "y"),
    ]
    assert await desk.answer(*path) == 0
    assert desk.files()[".env"] == (
        f"# mine\nCOUNCIL_DATA_DIR=elsewhere\nOPENROUTER_API_KEY={OTHER_KEY}\nCOUNCIL_ADMINS=discord:1\n"
        f"OPENROUTER_BASE_URL={desk.openrouter.url}/v1\nCOUNCIL_MEMBERS=x-ai/grok-5,openai/gpt-6\n"
        "COUNCIL_CHAIRMAN=google/gemini-3\n"
    )
    assert [*desk.folder.iterdir()] == [desk.folder / ".env"]
    assert (desk.folder / ".env").stat().st_mode & 0o777 == 0o600
    assert {one.headers["Authorization"] for one in desk.openrouter.history} == {f"Bearer {OTHER_KEY}"}
    for part in (
        "an address starts with http:// or https://",
        "There is no model x-ai/grok-6. Did you mean x-ai/grok-",
        ".env sets COUNCIL_DATA_DIR, OPENROUTER_API_KEY and COUNCIL_ADMINS.",
        "  OPENROUTER_API_KEY = \u2022\u2022\u2022\u2022 (now: \u2022\u2022\u2022\u2022)",
    ):
        assert part in desk.said


async def test_a_provider_without_a_key_never_gets_another_ones(desk: Desk) -> None:
    """The existing key is removed."""
    desk.write(".env", DOTENV)
    path = [
        (NUMBER, "2"),
        ("Address, such as", f"{desk.openrouter.url}/v1"),
        ("Key (it isn't shown", ""),
        *((WHICH, ""), (CHAIR, ""), (ASK, ""), (WHERE, "")),
        ("replace the values above?", "y"),
    ]
    assert await desk.answer(*path) == 0
    assert desk.files()[".env"].startswith("OPENROUTER_API_KEY=\n")
    assert not any("Authorization" in one.headers for one in desk.openrouter.history)


async def test_a_no_or_a_demonstration_writes_nothing(desk: Desk) -> None:
    """Enter isn't enough to replace something; a Discord token alone is written where it is wanted."""
    assert await desk.answer((NUMBER, "4"), (WHERE, "4")) == 0
    assert desk.files() == {}
    assert "The demonstration model is installed and needs no setting." in desk.said
    assert "Nothing needs to be written." in desk.said
    desk.write(".env", DOTENV)
    path = [(NUMBER, "3"), (WHICH, ""), (CHAIR, ""), (ASK, "n"), (WHERE, "4")]
    assert await desk.answer(*path, ("replace the values above?", "")) == 1
    assert desk.files() == {".env": DOTENV}
    assert LEFT in desk.said
    assert f"COUNCIL_MEMBERS: removed (now: {MEMBERS})" in desk.said


async def test_a_second_time_keeps_what_is_there(desk: Desk) -> None:
    """Enter at each question changes nothing; the file isn't even rewritten."""
    text = f"{desk.dotenv}DISCORD_TOKEN={BOT_TOKEN}\nSLACK_BOT_TOKEN={BOT}\nSLACK_APP_TOKEN={APP}\n"
    before = desk.write(".env", text).stat()
    path = [
        (NUMBER, ""),
        ("OPENROUTER_API_KEY is set already. Keep it?", ""),
        *((WHICH, ""), (CHAIR, ""), (ASK, "n"), (WHERE, "3")),
        ("DISCORD_TOKEN is set already. Keep it?", ""),
        ("SLACK_BOT_TOKEN is set already. Keep it?", ""),
        (MONTH, ""),
    ]
    assert await desk.answer(*path) == 0
    assert "Nothing needs to be written." in desk.said
    assert desk.files() == {".env": text}
    assert (desk.folder / ".env").stat().st_mtime_ns == before.st_mtime_ns


async def test_a_wrong_key_is_reported_and_asked_for_again(desk: Desk) -> None:
    """By its form, and by the provider's reply."""
    desk.refused["/api/v1/key"] = 401
    path = [
        *((NUMBER, "1"), (HIDDEN_KEY, "sk-or-5ecret\u2026"), (HIDDEN_KEY, ""), (HIDDEN_KEY, KEY)),
        ("Use it anyway?", ""),
        (NUMBER, "4"),
        (WHERE, ""),
    ]
    assert await desk.answer(*path) == 0
    assert "it contains a character that no key has: '\\u2026'" in desk.said
    assert "A key is needed." in desk.said
    assert "OPENROUTER_API_KEY: the provider refuses the key." in desk.said
    assert desk.files() == {}


async def test_without_network_the_ids_can_be_typed(desk: Desk) -> None:
    """The address is refused, so only the form of an id can be checked."""
    desk.address = f"{NOWHERE}/api/v1"
    path = [
        *((NUMBER, "1"), (HIDDEN_KEY, KEY), ("Use it anyway?", "y")),
        *((WHICH, ""), (WHICH, "a b"), (WHICH, MEMBERS), (CHAIR, CHAIRMAN), (ASK, "n"), (WHERE, "")),
        (WRITE, ""),
    ]
    assert await desk.answer(*path) == 0
    assert "OPENROUTER_BASE_URL: no server is running at its address." in desk.said
    assert "Name 1 to 26 models." in desk.said
    assert "a b isn't a model's id." in desk.said
    assert desk.files() == {".env": desk.dotenv}


async def test_a_model_without_a_reply_is_named(desk: Desk) -> None:
    """Others can be chosen then."""
    desk.openrouter.script("x-ai/grok-5", Turn(status=404))
    others = MEMBERS.replace("grok-5", "grok-4")
    path = [
        *((NUMBER, "1"), (HIDDEN_KEY, KEY), (WHICH, ""), (CHAIR, ""), (ASK, "")),
        *(("Choose other models?", ""), (WHICH, others), (CHAIR, ""), (ASK, "")),
        *((WHERE, ""), (WRITE, "")),
    ]
    assert await desk.answer(*path) == 0
    assert "x-ai/grok-5: it gave no answer: the provider doesn't know this model" in desk.said
    assert f"COUNCIL_MEMBERS={others}\n" in desk.files()[".env"]


async def test_tokens_are_checked_by_their_form(desk: Desk) -> None:
    """Slack's two tokens need each other; otherwise nobody would know why nothing changes."""
    path = [
        *((NUMBER, "4"), (WHERE, "3"), (DISCORD, "5ecret"), (DISCORD, "")),
        *((SLACK_BOT, APP), (SLACK_BOT, BOT), (SLACK_APP, BOT), (SLACK_APP, "")),
    ]
    assert await desk.answer(*path) == 0
    assert "which has three parts separated by dots" in desk.said
    assert "it is an app-level token (xapp-)" in desk.said
    assert "those begin with xapp-" in desk.said
    assert "Slack needs both tokens, so neither is written." in desk.said
    assert desk.files() == {}
    desk.environment = {"COUNCIL_CHAIRMAN": "x-ai/grok-4", "OPENROUTER_API_KEY_FILE": "/nowhere"}
    path = [*OPENROUTER_PATH[:5], (WHERE, ""), (WRITE, "n")]
    assert await desk.answer(*path) == 1
    assert "overrides .env: COUNCIL_CHAIRMAN and OPENROUTER_API_KEY_FILE." in desk.said


@pytest.mark.parametrize(
    ("number", "typed"),
    [
        # Ctrl-D reads as Ctrl-C does: it is tried at the first and the last question.
        pytest.param(
            number,
            typed,
            marks=pytest.mark.soak if 0 < number < LAST and (typed == EOT or number % 2) else (),
        )
        for number in range(LAST + 1)
        for typed in (ETX, EOT)
    ],
)
async def test_leaving_at_any_question_leaves_no_file(desk: Desk, number: int, typed: str) -> None:
    """Ctrl-C and Ctrl-D: one line, no trace."""
    path = [*OPENROUTER_PATH[:number], (OPENROUTER_PATH[number][0], typed)]
    path = [(question, "n" if question == ASK and said != typed else said) for question, said in path]
    assert await desk.answer(*path, end="") == 1
    assert desk.said.rstrip().endswith(LEFT)
    assert "Traceback" not in desk.said
    assert desk.files() == {}


async def test_leaving_while_models_are_asked_leaves_no_file(desk: Desk) -> None:
    """Their calls are cancelled."""
    desk.openrouter.gate = asyncio.Event()
    terminal = await desk.sit_down()
    for question, typed in OPENROUTER_PATH[:5]:
        await terminal.until(question)
        if not question.endswith(": "):
            await terminal.until("]: ")
        await asleep(terminal.process.pid)
        terminal.press(f"{typed}\n")
    while desk.openrouter.in_flight < 4:
        await asyncio.sleep(0.001)
    terminal.press(ETX)
    assert (await terminal.rest()).rstrip().endswith(LEFT)
    assert (await terminal.ended())[0] == 1
    assert desk.files() == {}


async def test_a_file_that_cannot_be_read_is_named_first(desk: Desk) -> None:
    """Before any question."""
    for name, text, reason in (
        (".env", b"KEY=\xff", ".env: it can't be read: it isn't UTF-8 text."),
        ("council.toml", b"[profiles", "council.toml: it can't be read: "),
    ):
        (desk.folder / name).write_bytes(text)
        assert await desk.answer() == 2
        assert reason in desk.said
        assert (desk.folder / name).read_bytes() == text
        (desk.folder / name).unlink()


async def test_a_file_that_cannot_be_changed_or_written_is_shown(desk: Desk) -> None:
    """Nothing else is written then; there are the lines to insert by hand."""
    text = 'profiles.default.members = ["a/b"]\n'
    desk.write("council.toml", text)
    assert await desk.answer((NUMBER, "3"), (WHICH, ""), (CHAIR, ""), (ASK, "n"), (WHERE, "")) == 2
    assert "[profiles.default]" in desk.said
    assert desk.files() == {"council.toml": text}
    (desk.folder / "council.toml").unlink()
    desk.environment = {"COUNCIL_CONFIG": "nowhere/council.toml"}
    desk.write(".env", DOTENV)
    path = [(NUMBER, "3"), (WHICH, ""), (CHAIR, ""), (ASK, "n"), (WHERE, "")]
    assert await desk.answer(*path, ("replace the values above?", "y")) == 1
    assert "nowhere/council.toml can't be written (No such file or directory)." in desk.said
    assert desk.files() == {".env": DOTENV}


async def test_another_providers_key_is_not_offered_to_openrouter(desk: Desk) -> None:
    """It belongs to the address it was set with."""
    desk.write(".env", f"OPENROUTER_API_KEY={OTHER_KEY}\nOPENROUTER_BASE_URL=http://127.0.0.1:9/v1\n")
    path = [(NUMBER, "1"), (HIDDEN_KEY, KEY), (WHICH, ""), (CHAIR, ""), (ASK, ""), (WHERE, "")]
    assert await desk.answer(*path, ("replace the values above?", "y")) == 0
    address = desk.openrouter.base_url
    assert f"OPENROUTER_BASE_URL = {address} (now: http://127.0.0.1:9/v1)" in desk.said
    written = f"OPENROUTER_API_KEY={KEY}\nOPENROUTER_BASE_URL={address}\n"
    assert desk.files()[".env"].startswith(written)


OTHER_PATH = [(NUMBER, "2"), ("Address, such as", "{}"), ("Key (it isn't shown", KEY)]


@pytest.mark.parametrize(
    ("provider", "exported"),
    [(OPENROUTER_PATH[:2], exported) for exported in ("", "{}", "http://127.0.0.1:9/v1")]
    + [(OTHER_PATH, "{}")],
)
async def test_a_key_is_written_with_the_address_it_is_for(
    desk: Desk, provider: list[tuple[str, str]], exported: str
) -> None:
    """Whatever the shell exports: the next one may export nothing, and the key would go elsewhere."""
    address = desk.openrouter.base_url
    desk.environment = {"OPENROUTER_BASE_URL": exported.format(address)}
    path = [(question, typed.format(address)) for question, typed in provider]
    assert await desk.answer(*path, (WHICH, ""), (CHAIR, ""), (ASK, "n"), (WHERE, ""), (WRITE, "")) == 0
    assert desk.files() == {".env": desk.dotenv}


async def test_a_key_that_stays_gets_the_address_that_was_only_exported(desk: Desk) -> None:
    """As an earlier version left it."""
    desk.write(".env", DOTENV)
    desk.environment = {"OPENROUTER_BASE_URL": desk.openrouter.base_url}
    path = [(NUMBER, ""), ("OPENROUTER_API_KEY is set already. Keep it?", "")]
    assert await desk.answer(*path, (WHICH, ""), (CHAIR, ""), (ASK, "n"), (WHERE, ""), (WRITE, "")) == 0
    assert desk.files() == {".env": f"{DOTENV}OPENROUTER_BASE_URL={desk.openrouter.base_url}\n"}


async def test_without_a_terminal_it_says_what_to_do_instead(tmp_path: Path) -> None:
    """A pipe can't answer."""
    ended = await Program(tmp_path)("init")
    assert (ended.code, ended.out, ended.err) == (
        2,
        "",
        "`council init` asks questions, so it needs a terminal. Without one, copy .env.example to .env, fill it in, and run `council doctor`.\n",
    )
