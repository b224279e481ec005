"""A changed `council.toml` under the running program."""

import asyncio
import signal
from pathlib import Path

from council.document.conversation import AssistantMessage, Conversation
from tests.launcher import start
from tests.model_server import ModelServer
from tests.slack_server import SlackServer
from tests.test_program import COVERAGE, PLAIN
from tests.test_team_chat import QUICK, until

COUNCIL = "[profiles.default]\nmembers = ['{0}/one', '{0}/two']\n"


def councils(folder: Path) -> list[set[str]]:
    """Return the models that answered in each conversation, the oldest first."""
    files = sorted(
        (folder / "data/conversations").glob("*.json"), key=lambda file: file.stat().st_mtime_ns
    )
    answers = [Conversation.model_validate_json(file.read_bytes()).messages[1] for file in files]
    return [{each.model for each in one.stage1} for one in answers if isinstance(one, AssistantMessage)]


async def test_a_run_keeps_its_council_and_the_next_has_the_new_one(tmp_path: Path) -> None:
    """And a broken file changes nothing: the log says so once, and so does the doctor."""
    file, log = tmp_path / "council.toml", tmp_path / "log"
    file.write_text(COUNCIL.format("old"))
    async with SlackServer() as slack, ModelServer() as models:
        models.gate = asyncio.Event()
        environment = (
            PLAIN
            | COVERAGE
            | {
                "OPENROUTER_BASE_URL": models.base_url,
                "SLACK_BOT_TOKEN": slack.token,
                "SLACK_APP_TOKEN": slack.app_token,
                "SLACK_API_URL": slack.api_url,
            }
        )
        bob = slack.add_user("bob")
        room = slack.add_channel("room", bob)
        with log.open("wb") as written:
            process = await start("run", cwd=tmp_path, env=environment, stderr=written, code=QUICK)
        await slack.connected()
        await slack.slash(room, bob, "/council", "Before?")
        await until(lambda: models.in_flight == 2)
        (tmp_path / "new").write_text(COUNCIL.format("new"))
        (tmp_path / "new").replace(file)
        process.send_signal(signal.SIGHUP)
        await until(lambda: "configuration_changed" in log.read_text())
        models.gate.set()
        await until(lambda: len(councils(tmp_path)) == 1)
        await slack.slash(room, bob, "/council", "After?")
        await until(lambda: len(councils(tmp_path)) == 2)
        # Whole at once: it is noticed without a signal, and read at any moment.
        (tmp_path / "broken").write_text(COUNCIL.format("broken") + "quorum = 0\n")
        (tmp_path / "broken").replace(file)
        await until(lambda: "configuration_unchanged" in log.read_text())
        await slack.slash(room, bob, "/council", "Still?")
        await until(lambda: len(councils(tmp_path)) == 3)
        process.terminate()
        assert await process.wait() == 0
        doctor = await start("doctor", cwd=tmp_path, env=environment)
        found, _ = await doctor.communicate()
    old, new = ({f"{name}/one", f"{name}/two"} for name in ("old", "new"))
    assert councils(tmp_path) == [old, new, new]
    problem = "profiles.default.quorum: it isn't above 0."
    assert log.read_text().count(problem) == 1
    assert problem in found.decode()
