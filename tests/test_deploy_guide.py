"""The deployment guide, followed word by word as far as a machine without systemd and Docker goes.

Its commands come from the page, its environments, commands and health check from the files it names. Paths
such as /etc are folders of the test's own. Stand-ins on the path say what they were told: `useradd`,
`chown`, `systemctl`, `journalctl` and `sudo`, which change a system; `make`, which would download everything
(`.ci/run` begins with it); and `install` without its owners. What isn't run: a container engine
(neither `docker compose build` nor the image's isolation) and systemd's sandbox, which `systemd-analyze`
judges in `tests/test_deployment.py`; and Caddy.
"""

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.bot.doctor.scene import GOOD_KEY, KEY
from tests.launcher import Process, start
from tests.model_server import ModelServer
from tests.ports import free_port
from tests.slack_server import SlackServer
from tests.test_deployment import needs_systemd, ran, text
from tests.test_documents import ROOT
from tests.test_documents import text as page
from tests.test_guides import MODELS
from tests.test_program import COVERAGE, PLAIN
from tests.test_team_chat import QUICK, until

PLACES = (
    "/run/secrets",
    "/srv/",
    "/etc/council",
    "/etc/systemd",
    "/var/lib/council",
    "/data",
    "/backup",
)
STAND_IN = """#!/bin/sh
echo "{name} $*" >> "{log}"
{more}
"""
COUNCIL = """#!/bin/sh
PYTHONPATH="{code}" exec "{python}" -c "from bot.cli import main; main()" "$@"
"""
SECONDS = 30.0


def section(heading: str) -> str:
    return page("docs/run.md").partition(f"\n### {heading}\n")[2].partition("\n##")[0]


def commands(heading: str) -> list[str]:
    found = re.findall(r"^ *```sh\n(.*?)^ *```", section(heading), re.MULTILINE | re.DOTALL)
    return [line.strip() for block in found for line in block.splitlines() if line.strip()]


@dataclass
class Machine:
    """A machine of the test's own, whose folders are below `root`."""

    root: Path
    settings: dict[str, str]
    told: list[str] = field(default_factory=list[str])
    serving: Process | None = None
    lines: list[str] = field(default_factory=list[str])

    def here(self, words: str) -> str:
        for place in PLACES:
            words = re.sub(rf"(?<![\w.-]){place}(?=[\w./ ]|$)", f"{self.root}{place}", words)
        return words

    def path(self, name: str) -> Path:
        return Path(self.here(name))

    def stand_in(self, name: str, more: str = "") -> None:
        """Put a command on the path that says what it was told."""
        file = self.root / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(STAND_IN.format(name=name, log=self.root / "told", more=more))
        file.chmod(0o755)

    async def type(self, line: str) -> str:
        """Type a command at a root shell; it has to end well."""
        environment = PLAIN | COVERAGE | {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-euc", self.here(line)),
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        out, _ = await shell.communicate()
        assert shell.returncode == 0, f"{line}: {out.decode()}"
        told = self.root / "told"
        self.told = told.read_text().splitlines() if told.exists() else []
        return out.decode()

    async def serve(self, words: list[str], folder: str, environment: dict[str, str]) -> None:
        """Start the program as a process manager does, and wait until it serves."""
        given = {name: self.here(value) for name, value in environment.items()}
        self.serving = await start(*words, cwd=Path(folder), env=PLAIN | COVERAGE | given, code=QUICK)
        await self.until_logged("ready")

    async def until_logged(self, event: str) -> None:
        """Wait for a line of the log."""
        assert self.serving
        assert self.serving.stderr
        async with asyncio.timeout(SECONDS):
            while f'"{event}"' not in "".join(self.lines[-1:]):
                self.lines.append((await self.serving.stderr.readline()).decode())
                assert self.lines[-1], "".join(self.lines)

    async def stop(self) -> int:
        """End it as a process manager does; return its exit code."""
        assert self.serving
        self.serving.send_signal(signal.SIGTERM)
        async with asyncio.timeout(SECONDS):
            await self.serving.communicate()
            return await self.serving.wait()

    def conversations(self, folder: str) -> list[Path]:
        return [*self.path(folder).glob("conversations/*.json")]


@asynccontextmanager
async def at_work(folder: Path) -> AsyncGenerator[tuple[Machine, SlackServer]]:
    async with SlackServer() as slack, ModelServer(models=MODELS, key=GOOD_KEY) as models:
        bob = slack.add_user("bob")
        slack.add_channel("room", bob)
        settings = {
            "OPENROUTER_API_KEY": KEY,
            "OPENROUTER_BASE_URL": models.base_url,
            "COUNCIL_MEMBERS": "openai/gpt-5,anthropic/claude-sonnet-4.5,google/gemini-2.5-pro",
            "SLACK_BOT_TOKEN": slack.token,
            "SLACK_APP_TOKEN": slack.app_token,
            "SLACK_API_URL": slack.api_url,
        }
        machine = Machine(folder, settings)
        try:
            yield machine, slack
        finally:
            if machine.serving and machine.serving.returncode is None:
                machine.serving.kill()
                await machine.serving.communicate()


async def answered(machine: Machine, slack: SlackServer, data: str) -> None:
    await slack.connected()
    [bob] = [user for user in slack.world.users.values() if user.name == "bob"]
    [room] = [one for one in slack.world.channels.values() if one.name == "room"]
    before = len(machine.conversations(data))
    await slack.slash(room, bob, "/council", "Shard or scale up?")
    await until(lambda: len(machine.conversations(data)) == before + 1)


def filled(example: str, settings: dict[str, str]) -> str:
    for name, value in settings.items():
        example, number = re.subn(rf"^{name}=.*$", f"{name}={value}", example, flags=re.MULTILINE)
        assert number == 1, name
    return example


def unit_of(file: Path) -> dict[str, list[str]]:
    """Return a unit's directives, each with its values."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", file.read_text(), re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def environment_of(values: list[str]) -> dict[str, str]:
    """Return the variables of a unit's or a Dockerfile's lines."""
    return dict(word.split("=", 1) for value in values for word in shlex.split(value))


@pytest.mark.soak
@needs_systemd
async def test_the_steps_for_systemd_end_with_an_answer(tmp_path: Path) -> None:
    """As root types them; then the unit's own command, environment, reload and stop."""
    async with at_work(tmp_path) as (machine, slack):
        for place in ("etc/systemd/system", "srv", "var/lib", "backup"):
            (tmp_path / place).mkdir(parents=True)
        for name in ("useradd", "chown", "systemctl", "journalctl"):
            machine.stand_in(name)
        machine.stand_in("sudo", 'shift 2; exec env "$@"')
        without_owners = 'echo "$*" | sed -E "s/(^| )-[og] [a-z]+//g"'
        machine.stand_in("install", f"exec /usr/bin/install $({without_owners})")
        code = machine.here("/srv/council")
        venv = f'mkdir -p "{code}/.venv/bin"; cp "{tmp_path}/program" "{code}/.venv/bin/council"'
        machine.stand_in("make", venv)
        (tmp_path / "program").write_text(COUNCIL.format(code=code, python=sys.executable))
        (tmp_path / "program").chmod(0o755)
        settings = tmp_path / "etc/council/.env"
        typed = commands("A systemd service")
        assert len(typed) >= 10
        for line in typed:
            said = await machine.type(line.replace("YOUR-COPY", f"'{ROOT}'"))
            if settings.exists() and "SLACK_BOT_TOKEN=x" not in settings.read_text():
                assert settings.stat().st_mode & 0o777 == 0o640
                settings.write_text(filled(settings.read_text(), machine.settings))  # step 3
            if line.endswith("doctor"):
                assert said.rstrip().endswith("--live asks each member for one word."), said
        asked = [line.replace(str(tmp_path), "") for line in machine.told]
        assert asked[0].startswith("useradd --system ")
        assert asked[0].endswith(" council")
        assert asked[1:5] == [
            "chown -R council /srv/council",
            "sudo -u council make -C /srv/council install",
            "make -C /srv/council install",
            "chown -R root /srv/council",
        ]
        assert "install -d -o council -g council -m 0700 /var/lib/council" in asked
        assert any(
            line.startswith("sudo -u council COUNCIL_DATA_DIR=/var/lib/council ") for line in asked
        )
        assert asked[-3:] == [
            "systemctl daemon-reload",
            "systemctl enable --now council",
            "journalctl -u council -f",
        ]
        # What systemd does then, by the unit that was installed.
        copied = tmp_path / "etc/systemd/system/council.service"
        assert copied.read_bytes() == (ROOT / "deploy/council.service").read_bytes()
        unit = unit_of(copied)
        copied.write_text(machine.here(copied.read_text()))
        assert ran("systemd-analyze", "verify", str(copied)) == (0, "")
        binary, *words = shlex.split(unit["ExecStart"][0])
        assert machine.path(binary).is_file()
        folder = machine.here(unit["WorkingDirectory"][0])
        await machine.serve(words, folder, environment_of(unit["Environment"]))
        await answered(machine, slack, "/var/lib/council")
        assert machine.serving
        reload = shlex.split(unit["ExecReload"][0].replace("$MAINPID", str(machine.serving.pid)))
        (tmp_path / "etc/council/council.toml").write_text("[limits]\nruns = 3\n")
        assert ran(*reload) == (0, "")
        await machine.until_logged("configuration_changed")
        # Backed up while it runs, as the last section says, and restored on another machine.
        last = section("Update, back up, move")
        [backup] = re.findall(r"`council (backup \S+)`", last)
        [restore] = re.findall(r"`council (restore) FILE`", last)
        file = shlex.split(machine.here(backup))[1]
        environment = "COUNCIL_DATA_DIR=/var/lib/council"
        program = "cd /etc/council && {} /srv/council/.venv/bin/council"
        await machine.type(f"{program.format(environment)} {backup}")
        assert await machine.stop() == 0
        moved = program.format(f"COUNCIL_DATA_DIR='{tmp_path}/new'")
        assert "1 conversation" in await machine.type(f"{moved} {restore} {file}")
        assert KEY.encode() not in machine.path("/backup/council.tar.gz").read_bytes()


async def test_the_steps_for_a_container_end_with_an_answer(tmp_path: Path) -> None:
    """The image's entry point, environment and health check, as `compose.yaml` starts it."""
    port = str(free_port())
    dockerfile = text("Dockerfile").replace("9464", port)
    final = dockerfile.rpartition("\nFROM ")[2]
    compose = text("compose.yaml").replace("9464", port)
    entry: list[str] = json.loads(re.findall(r"^ENTRYPOINT (.*)$", final, re.MULTILINE)[0])
    default: list[str] = json.loads(re.findall(r"^CMD (.*)$", final, re.MULTILINE)[0])
    [folder] = re.findall(r"^WORKDIR (\S+)$", final, re.MULTILINE)
    [health] = re.findall(r"^HEALTHCHECK .*? CMD (\[.*\])$", final, re.MULTILINE)
    async with at_work(tmp_path) as (machine, slack):
        dotenv = tmp_path / ".env"
        secrets = tmp_path / "run/secrets"
        secrets.mkdir(parents=True, mode=0o700)
        for name in re.findall(r"^    file: \.\./secrets/(\w+)$", compose, re.MULTILINE):
            file = secrets / name
            file.write_text(machine.settings.pop(name.upper()))
            file.chmod(0o400)
        dotenv.write_text(filled(page(".env.example"), machine.settings))
        dotenv.chmod(0o600)
        for place in ("/data", folder):
            machine.path(place).mkdir(parents=True, mode=0o700)
        # In docker's order: the image's variables, the file's, and those of `environment`.
        [file] = re.findall(r"^ +env_file: \.\./(\S+)$", compose, re.MULTILINE)
        given = environment_of(re.findall(r"^ENV (.*)$", final, re.MULTILINE))
        lines = (tmp_path / file).read_text().splitlines()
        given |= dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        given |= {
            name: value.strip('"')
            for name, value in re.findall(r"^      ([A-Z_]+): (\S+)$", compose, re.MULTILINE)
        }
        del given["PATH"]
        given["COUNCIL_STATUS_HOST"] = "127.0.0.1"  # inside, it is every address

        async def inside(words: list[str]) -> str:
            assert words[: len(entry)] == entry
            environment = PLAIN | COVERAGE | {name: machine.here(each) for name, each in given.items()}
            process = await start(*words[len(entry) :], cwd=Path(machine.here(folder)), env=environment)
            out, err = await process.communicate()
            assert process.returncode == 0, f"{words}: {out.decode()}{err.decode()}"
            return out.decode()

        ended: list[str] = []
        typed = commands("A container")
        typed += re.findall(r"`(docker compose [^`]* exec [^`]*)`", section("A container"))
        for line in typed:
            docker, compose_, option, where, verb, *words = line.split()
            assert (docker, compose_, option, where) == (
                "docker",
                "compose",
                "-f",
                "deploy/compose.yaml",
            )
            ended.append(verb)
            match verb, words:
                case "run", ["--rm", "council", *rest]:
                    said = await inside([*entry, *rest])
                    assert said.rstrip().endswith("--live asks each member for one word."), said
                case "up", ["-d"]:
                    await machine.serve(default, machine.here(folder), given)
                    check: list[str] = json.loads(health)
                    assert ran(sys.executable, *check[1:]) == (0, "")
                    await answered(machine, slack, "/data")
                case "exec", ["council", *rest]:
                    assert "1 conversation" in await inside(rest)
                case _:
                    assert verb in ("build", "logs"), line
        assert ended == ["build", "run", "up", "logs", "exec"]
        assert await machine.stop() == 0
        check = json.loads(health)
        code, _ = ran(sys.executable, *check[1:])
        assert code != 0
