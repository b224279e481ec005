"""Past answers on Slack: the real Bolt app, and people who press what they see and what they forge."""

from pathlib import Path

from bot.slack.replies import USES
from bot.view.wording.past import CUT
from tests.bot.shown import blocks_text
from tests.bot.slack.test_bot import Place, at_work
from tests.council.scripted import ScriptedCouncil
from tests.slack_server import Channel, Ephemeral, Message, User


async def told(place: Place, command: str, channel: Channel | None = None) -> Ephemeral:
    """Return a command, and what its user alone is shown."""
    name, _, text = command.partition(" ")
    where = channel or place.general
    before = len(place.told(place.ada, where))
    assert (await place.slack.slash(where, place.ada, f"/council-{name}", text)).acked
    await place.slack.until(lambda: len(place.told(place.ada, where)) > before)
    return place.slack.ephemerals(where, place.ada)[-1]


def labels(shown: Ephemeral | Message) -> list[str]:
    return [element["text"]["text"] for element, _ in shown.elements()]


async def pressed(
    place: Place, shown: Ephemeral | Message, label: str, user: User | None = None
) -> None:
    """Press a button and wait for the bot to be done."""
    [action] = [e["action_id"] for e, _ in shown.elements() if e["text"]["text"] == label]
    assert (await place.slack.click(shown, action, user or place.ada)).acked
    await place.dispatcher.tasks.settled()


async def test_what_is_too_long_to_be_shown_ends_with_where_the_rest_is(tmp_path: Path) -> None:
    """A response URL takes five messages; the buttons are below the last, and so for what is shared."""
    whole = "\n\n".join(f"Reason {number}: {'word ' * 60}" for number in range(300))
    async with at_work(tmp_path, ScriptedCouncil(script={"stage3": whole})) as place:
        await place.ask()
        await told(place, "show shard")
        await place.dispatcher.tasks.settled()
        shown = place.slack.ephemerals(place.general, place.ada)
        assert len(shown) == USES
        assert [labels(each) for each in shown[:-1]] == [[]] * (USES - 1)
        assert blocks_text(shown[-1].blocks[:-1]).endswith(f"\n{CUT}")
        assert labels(shown[-1]) == ["Open", "Transcript", "Share here"]
        await pressed(place, shown[-1], "Share here")
        *_, last = public = place.cards(place.general)[1:]
        assert len(public) == USES
        assert labels(last) == ["Open", "Transcript"]
        assert not any(call.error for call in place.slack.requests)


async def test_what_is_typed_wrongly_is_said(tmp_path: Path) -> None:
    """Discord lets nobody type it."""
    async with at_work(tmp_path) as place:
        assert "Say which answer to show" in (await told(place, "show")).text
        assert "a whole number from 1 to 10" in (await told(place, "history many")).text
