"""No secret of the settings is in any output, or in any file but the one it was given in.

Every setting that may hold a secret holds a marked one, everything logs at DEBUG, the libraries too, and the
servers repeat what they were sent. All that was written is searched for the marks: whole, cut off,
and encoded.
"""

import asyncio
import base64
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
import pytest_asyncio

from tests.bot.terminal import test_init
from tests.bot.terminal.test_init import ASK, CHAIR, HIDDEN_KEY, NUMBER, WHICH, Desk
from tests.discord_server import DiscordServer
from tests.launcher import Process, start
from tests.model_server import ModelServer, Turn
from tests.ports import free_port
from tests.slack_server import SlackServer
from tests.storage.examples import unpack
from tests.test_program import COVERAGE, PLAIN
from tests.test_team_chat import general_of, servers, until

desk = test_init.desk

VERBOSE = """
import faulthandler, logging, resource
from bot import cli
from bot.config import logs
from tests.crashes.inside import hurry
configure = logs.configure
def verbosely(**given):
    configure(**{{**given, "level": logging.DEBUG}})
    logging.getLogger().setLevel(logging.DEBUG)
    logging.getLogger("markdown_it").setLevel(logging.INFO)  # many lines, and it knows no settings
logs.configure = verbosely
hurry()
faulthandler.enable()
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
{more}
cli.main()
"""
"""`council`, logging all there is, where a crash would leave the memory in a file."""

CRASH = """
import asyncio, structlog, threading
from council.models.client import ModelClient

class Dropped:
    def __del__(self):
        raise ValueError({words!r})

async def crash(*_):
    def fail(*_):
        raise ValueError({words!r})
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    Dropped()
    asyncio.get_running_loop().call_soon(fail)
    await asyncio.sleep(0)
    structlog.get_logger().debug("told", words={words!r}, x="-" * 1985 + {words!r})
    fail()

ModelClient.ask = ModelClient.__aexit__ = crash
"""
"""Whatever can go wrong in a process goes wrong, with every secret in its words."""


def mark(number: int, shape: str = "{}") -> str:
    """Return a secret of a provider's shape, unlike any other text."""
    return shape.format(f"{number}Qz7Kx{number}Wv9Jy{number}Hb3Fd{number}Rm5Tn")


@dataclass(frozen=True, slots=True)
class Marks:
    """A secret for every setting that may have one; those with signs that URLs escape among them."""

    openrouter: str = mark(1, "sk-or-v1-{}")
    provider: str = mark(2, "{}+/=%26")
    own: str = mark(3, "{}+/'\"\\x")
    own_password: str = mark(4)
    discord: str = mark(5, "MTIzNDU2Nzg5MDEyMzQ1Njc4OQ==.GhIjKl.{}")
    slack_bot: str = mark(6, "xoxb-{}")
    slack_app: str = mark(7, "xapp-1-A0COUNCIL1-{}")
    signing: str = mark(8)
    proxy: str = mark(9)

    def __iter__(self) -> Iterator[str]:
        for name in self.__dataclass_fields__:
            yield getattr(self, name)


MARKS = Marks()


def forms(secret: str) -> Iterator[str]:
    """Return what a text that has anything of a secret contains: its own part begins with its number."""
    core = secret[secret.index("Qz7Kx") - 1 :]
    yield core[:12]
    yield core[12:24]
    for shift in range(3):  # where base64's groups of three begin depends on what is before
        encoded = base64.b64encode(b"." * shift + core[:15].encode()).decode()
        yield encoded[4:-4]


def leaks(text: str) -> list[str]:
    """Return the marks of which anything is in a text, each with what is around it."""
    found = [(form, text.find(form)) for secret in MARKS for form in forms(secret)]
    return [f"{form}: {text[max(0, at - 200) : at + 60]!r}" for form, at in found if at >= 0]


def leaking_files(folder: Path, *given: str) -> list[str]:
    """Return the files below a folder that have anything of a secret, but those it was given in."""
    for backup in folder.rglob("*.tar.gz"):
        unpack(backup, folder / "unpacked")
    files = [file for file in folder.rglob("*") if file.is_file() and file.name not in given]
    return [
        f"{file}: {found}" for file in files if (found := leaks(file.read_bytes().decode("latin-1")))
    ]


def repeating(status: int, key: str = MARKS.openrouter, password: str = MARKS.provider) -> Turn:
    """Refuse, and repeat everything that came along, in every way providers do."""
    basic = base64.b64encode(f"user:{password}".encode()).decode()
    words = " and ".join(
        f"{secret} {quote(secret, safe='')} {secret[:-6]}... {base64.b64encode(secret.encode()).decode()}"
        for secret in (key, password)
    )
    said = f"Bad key: Basic {basic}, {words}"
    return Turn(
        status=status,
        body={"error": {"code": status, "message": said}},
        headers={"X-Request": said, "Retry-After": "0"},
    )


@dataclass
class Installation:
    """A folder with everything set, and the servers it names."""

    folder: Path
    discord: DiscordServer
    slack: SlackServer
    models: ModelServer
    output: Path

    @property
    def written(self) -> str:
        """Everything that processes wrote so far."""
        return self.output.read_text()

    def write(self, **more: str) -> None:
        """Write `.env`, a secret file and `council.toml`."""
        (self.folder / "app_token").write_text(MARKS.slack_app)
        settings = {
            "OPENROUTER_BASE_URL": self.at(self.models.base_url, "user", quote(MARKS.provider, safe="")),
            "OPENROUTER_API_KEY": MARKS.openrouter,
            "OWN_KEY": MARKS.own.replace("\\", "\\\\").replace("'", "\\'"),
            "DISCORD_TOKEN": MARKS.discord,
            "DISCORD_API_BASE_URL": self.discord.url,
            "SLACK_BOT_TOKEN": MARKS.slack_bot,
            "SLACK_SIGNING_SECRET": MARKS.signing,
            "SLACK_APP_TOKEN_FILE": "app_token",
            "SLACK_API_URL": self.slack.api_url,
            **more,
        }
        lines = (f"{name}='{value}'\n" for name, value in settings.items() if value)
        (self.folder / ".env").write_text("".join(lines))
        endpoint = self.at(f"{self.models.url}/v1", "user", MARKS.own_password)
        (self.folder / "council.toml").write_text(
            "[profiles.default]\n"
            "members = ['a/fine', 'b/limited', 'c/forbidden', "
            f"{{ model = 'own', endpoint = '{endpoint}', api_key_env = 'OWN_KEY' }}]\n"
            "[durability]\ndrain_seconds = 0\n"
        )

    @staticmethod
    def at(url: str, name: str, password: str) -> str:
        return url.replace("//", f"//{name}:{password}@")

    async def begin(self, *words: str, more: str = "", **environment: str) -> Process:
        """Start a command, logging all there is."""
        for name in ("tmp", "home"):
            (self.folder / name).mkdir(exist_ok=True)
        places = {"TMPDIR": str(self.folder / "tmp"), "HOME": str(self.folder / "home")}
        # It is Slack itself: a server takes what is sent to a proxy, too.
        proxy = {"HTTPS_PROXY": self.at(self.slack.world.origin, "user", MARKS.proxy)}
        with self.output.open("ab") as output:
            return await start(
                *words,
                cwd=self.folder,
                env=PLAIN | COVERAGE | places | proxy | environment,
                stdout=output,
                stderr=output,
                code=VERBOSE.format(more=more),
            )

    async def __call__(self, *words: str, more: str = "", **environment: str) -> int:
        """Run a command to its end."""
        return await (await self.begin(*words, more=more, **environment)).wait()

    def assert_clean(self) -> None:
        assert leaks(self.written) == []
        assert leaking_files(self.folder, ".env", "council.toml", "app_token") == []
        assert [*self.folder.rglob("core*")] == []
        # What people in the chats read, and what other models do.
        posted = [*self.slack.world.ephemerals]
        posted += [post for room in self.slack.world.channels.values() for post in room.messages]
        assert leaks(str([*posted, *self.discord.world.messages.values()])) == []
        assert leaks(str([each.request for each in self.models.history])) == []


@pytest_asyncio.fixture
async def installation(tmp_path: Path) -> AsyncIterator[Installation]:
    async with servers() as (discord, slack, models):
        discord.world.token = MARKS.discord
        slack.team.token, slack.world.app_token = MARKS.slack_bot, MARKS.slack_app
        slack.signing_secret = MARKS.signing
        (tmp_path / "place").mkdir()
        yield Installation(tmp_path / "place", discord, slack, models, tmp_path / "output")


async def test_a_bot_that_serves_shows_no_secret(installation: Installation) -> None:
    """Not while it answers, models and platforms refuse it with its own tokens, nor as it crashes."""
    place, models = installation, installation.models
    discord, slack = place.discord, place.slack
    place.write()
    models.script("b/limited", repeating(429))
    models.always("c/forbidden", repeating(403))
    models.script("own", repeating(400, MARKS.own, MARKS.own_password))
    general, ada = general_of(discord)
    bob = slack.add_user("bob")
    room = slack.add_channel("room", bob)
    process = await place.begin("run")
    await slack.connected()
    said = f"Invalid: {MARKS.discord} {MARKS.discord[:-5]}"
    discord.fail("POST /channels/{channel_id}/messages", 400, code=50035, message=said)
    slack.fail("chat.postMessage", f"invalid_{MARKS.slack_bot}", in_thread=True)
    discord.slash(general, ada, "council", question="Shard?")
    await slack.slash(room, bob, "/council", "Scale up?")
    await until(lambda: len([*(place.folder / "data/conversations").glob("*.json")]) == 2)
    models.always("own", repeating(401, MARKS.own, MARKS.own_password))
    models.always("*", repeating(401))
    await slack.slash(room, bob, "/council", "Once more?")
    await until(lambda: "key" in str([card.blocks for card in slack.messages(room)][1:]))
    process.send_signal(signal.SIGABRT)
    # What writes the threads' stacks doesn't stop them, and may crash on one of them itself.
    assert await process.wait() in (-signal.SIGABRT, -signal.SIGSEGV)
    for library in ("discord.", "slack_", "aiosqlite", "call_failed", "Fatal Python error"):
        assert library in place.written, library
    place.assert_clean()


async def test_a_bot_that_listens_to_slack_shows_no_secret(installation: Installation) -> None:
    """Requests signed with another secret, and tokens that are refused."""
    place, slack = installation, installation.slack
    port = free_port()
    http = {
        "SLACK_APP_TOKEN_FILE": "",
        "SLACK_SIGNING_SECRET": MARKS.signing,
        "SLACK_HTTP_PORT": str(port),
    }
    place.write(**http, DISCORD_TOKEN="")
    bob = slack.add_user("bob")
    room = slack.add_channel("room", bob)
    slack.use_http(f"http://127.0.0.1:{port}/slack/events")
    process = await place.begin("run")
    async with aiohttp.ClientSession() as session:

        async def is_listening() -> bool:
            headers = {"X-Slack-Signature": f"v0={MARKS.signing}", "X-Slack-Request-Timestamp": "1"}
            try:
                url = f"http://127.0.0.1:{port}/slack/events"
                async with session.post(url, headers=headers, data="{}") as answer:
                    return answer.status == 401
            except aiohttp.ClientConnectionError:
                return False

        async with asyncio.timeout(40):
            while not await is_listening():
                await asyncio.sleep(0.01)
    await slack.slash(room, bob, "/council", "Shard?")
    await until(lambda: bool([*(place.folder / "data/conversations").glob("*.json")]))
    slack.revoke_token()
    await slack.slash(room, bob, "/council-history", "")
    process.terminate()
    await process.wait()
    assert "aiosqlite" in place.written
    place.write(DISCORD_TOKEN=MARKS.discord.replace("GhIjKl", "GhIjKm"))
    assert await place("run") == 2
    place.assert_clean()


async def test_no_command_shows_a_secret(installation: Installation) -> None:
    """Not the settings, the findings, a failed question, an export or a backup, nor any crash."""
    place, models = installation, installation.models
    place.write()
    assert await place("config") == 0
    assert "[hidden]@127.0.0.1" in place.written
    assert await place("ask", "Shard?") == 0
    models.always("own", repeating(500, MARKS.own, MARKS.own_password))
    models.always("*", repeating(500))
    assert await place("ask", "And now?", "--events") == 1
    models.always("*", repeating(401))
    assert await place("ask", "And now?", "--json") == 1
    assert await place("doctor", "--live") == 1
    installation.slack.revoke_token()
    installation.discord.fail("*", 401, message=MARKS.discord, times=9)
    assert await place("doctor", "--json") == 1
    [document] = (place.folder / "data/conversations").glob("*.json")
    for form in ("md", "html", "json"):
        assert await place("export", document.stem, "--format", form) == 0
    assert await place("backup", "all.tar.gz") == 0
    words = " ".join(MARKS)
    crash = CRASH.format(words=words)
    assert await place("ask", "Crash?", more=crash, PYTHONASYNCIODEBUG="1") == 1
    for event in ("thread_crashed", "not_raised", "crashed", "told"):
        assert event in place.written, event
    place.assert_clean()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"DISCORD_TOKEN": "", "DISCORD_TOKEN_FILE": MARKS.discord}, "No such file"),
        ({"OPENROUTER_BASE_URL": f"htp://user:{MARKS.provider}@x"}, "an address starts with http"),
        ({"SLACK_API_URL": f"http://user:{MARKS.proxy}@127.0.0.1/api/"}, "no name and password"),
        ({"SLACK_HTTP_PORT": MARKS.slack_bot}, "SLACK_HTTP_PORT: "),
        ({"COUNCIL_ADMINS": MARKS.slack_bot}, "nobody's id"),
        ({"COUNCIL_MEMBERS": MARKS.openrouter, "OPENROUTER_API_KEY": MARKS.discord}, "platform's token"),
        ({"OWN_KEY": ""}, "it isn't set"),
        ({"key in the file": "api_key_env"}, "the name of a variable"),
        ({"key in the file": "api_key"}, "Did you mean api_key_env?"),
    ],
    ids=lambda value: None if isinstance(value, str) else "+".join(map(str, value)),
)
async def test_no_mistake_shows_a_secret(
    installation: Installation, settings: dict[str, str], said: str
) -> None:
    """Secrets where they don't belong, and settings that can't be used."""
    place = installation
    key = settings.pop("key in the file", None)
    place.write(**settings)
    if key:
        file = place.folder / "council.toml"
        file.write_text(
            file.read_text().replace("api_key_env = 'OWN_KEY'", f"{key} = '{mark(3, 'sk-{}')}'")
        )
    assert await place("config") == 2
    assert await place("doctor") == 1
    assert said in place.written
    place.assert_clean()


async def test_the_first_setup_shows_no_secret(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A key that is refused with its own words, and one that is set already."""
    verbose = VERBOSE.format(more="").replace("cli.main()", "").replace("{", "{{").replace("}", "}}")
    monkeypatch.setattr(test_init, "PROGRAM", f"{verbose}\n{test_init.PROGRAM}")
    monkeypatch.setattr(test_init, "SECRETS", (*test_init.SECRETS, *MARKS))
    address = desk.openrouter.base_url.replace("//", f"//user:{quote(MARKS.provider, safe='')}@")
    desk.write(".env", f"OPENROUTER_BASE_URL={address}\nDISCORD_TOKEN={MARKS.discord}\n")
    desk.openrouter.always("*", repeating(401, MARKS.openrouter, "p4ssword"))
    path = [
        (NUMBER, "1"),
        (HIDDEN_KEY, MARKS.openrouter),
        (WHICH, ""),
        (CHAIR, ""),
        (ASK, ""),
        ("Choose other models?", ""),
    ]
    await desk.answer(*path, end="\x03")
    assert "DISCORD_TOKEN" in desk.said
    assert leaks(desk.said) == []
    assert leaking_files(tmp_path, ".env") == []
