"""On Slack, people, channels and groups have their names, and a message is asked once."""

from pathlib import Path

import pytest

from bot.slack.client import THREADS
from bot.slack.incoming import MOST_NAMES
from bot.view.wording.slack import lacks_scope
from tests.bot.slack.test_bot import Place, at_work
from tests.bot.slack.test_discussion import read_by
from tests.breaking import ALWAYS

NO_NAMES = frozenset({"users:read", "channels:read", "groups:read", "usergroups:read"})


async def asked(place: Place, text: str) -> str:
    """Ask by mention and see the run through; return the question as the run has it."""
    await place.slack.mention(place.general, place.ada, text)
    await place.dispatcher.tasks.settled()
    return (await place.run(place.cards(place.general)[-1])).brief.question


def about(place: Place) -> str:
    """Return a question that mentions a person, two channels and a group."""
    launch = place.slack.add_channel("launch", place.bob)
    secret = place.slack.add_channel("layoffs", place.bob, kind="private")
    place.slack.team.handles["S0000000001"] = "oncall"
    return (
        f"Should <@{place.bob.id}> or <!subteam^S0000000001> post in <#{launch.id}> or <#{secret.id}|>?"
    )


async def test_without_the_scopes_nobody_is_an_id(tmp_path: Path) -> None:
    """Nor anything else."""
    async with at_work(tmp_path, without=NO_NAMES) as place:
        said = "Should a colleague or a group post in a channel or a channel?"
        assert await asked(place, about(place)) == said
        assert "users.info" not in {call.method for call in place.slack.api.calls}


@pytest.mark.parametrize("what", ["fatal_error", "hangs"])
async def test_a_failed_look_up_stops_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Nor one that takes too long: Slack waits three seconds."""
    monkeypatch.setattr("bot.slack.incoming.LOOKUP_SECONDS", 0.05)
    async with at_work(tmp_path) as place:
        for method in ("users.info", "conversations.info", "usergroups.list"):
            if what == "hangs":
                place.slack.fail(method, delay=0.5, times=ALWAYS)
            else:
                place.slack.fail(method, what, times=ALWAYS)
        said = "Should a colleague or a group post in a channel or a channel?"
        assert await asked(place, about(place)) == said


async def test_they_are_asked_for_once(tmp_path: Path) -> None:
    """And a bounded number of them."""
    async with at_work(tmp_path) as place:
        people = [place.slack.add_user(f"p{number}") for number in range(MOST_NAMES + 2)]
        text = " ".join(f"<@{each.id}>" for each in people)
        said = await asked(place, text)
        assert said.split(" a colleague")[0] == " ".join(f"@p{n}" for n in range(MOST_NAMES))
        assert said.count("a colleague") == 2
        before = len(place.slack.calls("users.info"))
        assert await asked(place, f"And <@{people[0].id}>?") == "And @p0?"
        assert len(place.slack.calls("users.info")) == before


async def test_a_writer_without_a_name_is_a_colleague(tmp_path: Path) -> None:
    """Not an id."""
    async with at_work(tmp_path, without=NO_NAMES, scopes=frozenset(THREADS)) as place:
        first = place.slack.post(place.general, place.bob, f"Ask <@{place.ada.id}> first.")
        await place.slack.mention(place.general, place.ada, "Why?", thread_ts=first.ts)
        await place.dispatcher.tasks.settled()
        assert read_by(place.council) == [("Message by a colleague", "Ask a colleague first.")]


@pytest.mark.parametrize("way", ["another event", "another kind", "edited"])
async def test_it_is_asked_once(tmp_path: Path, way: str) -> None:
    """However often Slack sends it: one card, one set of calls, one mention."""
    async with at_work(tmp_path) as place:
        direct = place.slack.world.open_im(place.slack.team, place.ada.id)
        where = direct if way == "another kind" else place.general
        message = place.slack.post(where, place.ada, f"<@{place.slack.team.bot.id}> Shard?")
        await place.deliver("app_mention", message, {})
        await place.dispatcher.tasks.settled()
        for _ in range(3):
            if way == "edited":
                again = {"text": f"{message.text} Or not?", "edited": {"user": place.ada.id}}
                await place.deliver("app_mention", message, again)
            else:
                kind = "message" if way == "another kind" else "app_mention"
                await place.deliver(kind, message, {})
        await place.dispatcher.tasks.settled()
        assert len(place.cards(where)) == 1
        assert len(place.council.asked("stage1")) == 4
        assert len(place.pings(where)) == 1


async def test_it_is_asked_for_and_read(tmp_path: Path) -> None:
    """With its name and size; one that Slack doesn't tell is named."""
    async with at_work(tmp_path) as place:
        plan = place.slack.add_file("plan.md", b"3 TB", place.ada)
        gone = place.slack.add_file("gone.md", b"", place.ada)
        plan.connected = gone.connected = True
        gone.content = None
        await place.slack.mention(place.general, place.ada, "Does it hold?", files=[plan, gone])
        await place.dispatcher.tasks.settled()
        [card] = place.cards(place.general)
        assert "Read plan.md." in card.text
        assert "Not read: a file (it can't be fetched)." in card.text
        assert (await place.run(card)).brief.attachments[0].text == "3 TB"


async def test_without_the_scope_people_read_why(tmp_path: Path) -> None:
    """On the card."""
    async with at_work(tmp_path, without=frozenset({"files:read"})) as place:
        plan = place.slack.add_file("plan.md", b"3 TB", place.ada)
        plan.connected = True
        await place.slack.mention(place.general, place.ada, "Does it hold?", files=[plan])
        await place.dispatcher.tasks.settled()
        [card] = place.cards(place.general)
        assert (
            f"Not read: a file ({lacks_scope('files:read')})." in card.text
        )  # Slack tells no name either
