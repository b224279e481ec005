"""Past answers on Slack: the real Bolt app, and people who press what they see and what they forge."""

from pathlib import Path

import pytest

from bot.past import chart
from bot.past.chart import PICTURE, Chart
from bot.slack.past import USES
from bot.view.wording.past import CUT, NO_SUCH
from bot.view.wording.slack import IN_DIRECT
from tests.bot.shown import blocks_text
from tests.bot.slack.test_bot import Place, at_work
from tests.council.scripted import ScriptedCouncil
from tests.slack_server import Channel, Ephemeral, Message, User

QUESTION = "Shard or scale up?"
ANSWER = "The council's answer, written by chair/man."
LOOKS = ("Members", "Votes", "Corrected response", "Changes and original", "Full reviews")


async def told(place: Place, command: str, channel: Channel | None = None) -> Ephemeral:
    """Return a command, and what its user alone is shown."""
    name, _, text = command.partition(" ")
    where = channel or place.general
    before = len(place.told(place.ada, where))
    assert (await place.slack.slash(where, place.ada, f"/council-{name}", text)).acked
    await place.slack.until(lambda: len(place.told(place.ada, where)) > before)
    return place.slack.ephemerals(where, place.ada)[-1]


def labels(shown: Ephemeral | Message) -> list[str]:
    """Name the buttons."""
    return [element["text"]["text"] for element, _ in shown.elements()]


async def pressed(
    place: Place, shown: Ephemeral | Message, label: str, user: User | None = None
) -> None:
    """Press a button and wait for the bot to be done."""
    [action] = [e["action_id"] for e, _ in shown.elements() if e["text"]["text"] == label]
    assert (await place.slack.click(shown, action, user or place.ada)).acked
    await place.dispatcher.tasks.settled()


async def test_an_answer_is_found_shown_and_shared(tmp_path: Path) -> None:
    """Everything is private until it is shared; then it says by whom, and mentions nobody."""
    async with at_work(tmp_path) as place:
        card = await place.ask()
        pings = place.pings()
        listed = await told(place, "history 3")
        assert labels(listed) == ["1", "Share here"]
        text = blocks_text(listed.blocks)
        assert "1. Shard or scale up?" in text
        assert f"/archives/{place.general.id}/p{card.ts.replace('.', '')}" in str(listed.blocks)
        await pressed(place, listed, "1")
        shown = place.slack.ephemerals(place.general, place.ada)[-1]
        assert ANSWER in blocks_text(shown.blocks)
        await pressed(place, shown, "Full reviews")
        reviews = place.slack.ephemerals(place.general, place.ada)[-1]
        await pressed(place, reviews, labels(reviews)[0])
        assert len(reviews.history) == 2
        assert place.slack.ephemerals(place.general, place.ada)[-1] is reviews
        await pressed(place, shown, "Transcript")
        assert place.told(place.ada)[-1] == IN_DIRECT
        await pressed(place, shown, "Share here")
        public = place.cards(place.general)[-1]
        assert blocks_text(public.blocks).startswith("ada shared this from the council's past answers.")
        assert labels(public) == [*LOOKS, "Transcript"]
        [again] = [e["action_id"] for e, _ in shown.elements() if e["text"]["text"] == "Share here"]
        shared = await place.slack.click(shown, again, place.ada)
        await place.slack.redeliver(shared)
        await place.dispatcher.tasks.settled()
        assert len(place.cards(place.general)) == 3
        await pressed(place, public, "Members", place.bob)
        assert "Corrected response" in place.told(place.bob)[-1]
        assert len(place.cards(place.general)) == 3
        assert place.pings() == pings
        assert not any(call.error for call in place.slack.requests)


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
        assert labels(shown[-1]) == [*LOOKS, "Transcript", "Share here"]
        await pressed(place, shown[-1], "Share here")
        *_, last = public = place.cards(place.general)[1:]
        assert len(public) == USES
        assert labels(last) == [*LOOKS, "Transcript"]
        assert not any(call.error for call in place.slack.requests)


async def test_answers_are_searched_listed_and_counted(tmp_path: Path) -> None:
    """By words, by the beginning of title or id, over the days; what is typed wrongly is said."""
    async with at_work(tmp_path) as place:
        await place.ask()
        await place.ask("Shard by tenant?")
        assert "2 results" in (await told(place, "search council")).text
        assert labels(await told(place, "show shard")) == ["1", "2"]
        assert ANSWER in (await told(place, "show shard by")).text
        assert "2 answers, 0 runs failed" in (await told(place, "stats 3650")).text
        assert "Say which answer to show" in (await told(place, "show")).text
        assert "a whole number from 1 to 10" in (await told(place, "history many")).text


async def test_shared_statistics_come_with_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Slack, private messages can't have files."""

    async def draw(chart: Chart) -> bytes:
        return chart.title.encode()

    monkeypatch.setattr(chart, "draw", draw)
    async with at_work(tmp_path) as place:
        await place.ask()
        figures = await told(place, "stats 3650")
        await pressed(place, figures, "Share here")
        [file] = [file for message in place.slack.messages(place.general) for file in message.files]
    assert (file.name, file.content) == (PICTURE, b"Statistics of this channel, last 3,650 days")
    assert file.alt_txt.startswith(
        "Statistics of this channel, last 3,650 days. gpt-5, 1 run: mean rank 1 is best 1, "
    )


async def test_nothing_reaches_another_channel_or_workspace(tmp_path: Path) -> None:
    """Neither by command or prefix, nor by any button that a modified client sends."""
    async with at_work(tmp_path) as place:
        await place.ask()
        listed = await told(place, "history")
        await pressed(place, listed, "1")
        shown = place.slack.ephemerals(place.general, place.ada)[-1]
        values = {e["value"] for note in (listed, shown) for e, _ in note.elements()}
        [row] = await place.library.index.find_as_operator("")
        await place.ask("Another?")
        elsewhere = place.slack.add_channel("elsewhere", place.ada)
        own = await told(place, "stats 3650")
        share = next(e["action_id"] for e, _ in own.elements())
        assert "There is no answer here yet." in (await told(place, "history", elsewhere)).text
        for wanted in (row.id, row.id[:8], QUESTION):
            assert (await told(place, f"show {wanted}", elsewhere)).text == NO_SUCH
        note = Ephemeral(elsewhere.id, place.ada.id, own.text, own.blocks, own.at, own.ts, own.via)
        for value in sorted(values):
            before = len(place.told(place.ada, elsewhere))
            assert (await place.slack.click(note, share, place.ada, value=value)).acked
            await place.dispatcher.tasks.settled()
            heard = [*place.told(place.ada, elsewhere)[before:]]
            heard += [message.text for message in place.slack.messages(elsewhere)]
            assert heard
            assert not any("Shard" in each or ANSWER in each for each in heard)


async def test_an_answer_is_deleted_after_a_second_press(tmp_path: Path) -> None:
    """By whoever asked."""
    async with at_work(tmp_path) as place:
        await place.ask()
        asked = await told(place, "forget shard")
        await pressed(place, asked, "Delete")
        assert place.told(place.ada)[-1].startswith("Deleted \u201cShard or scale up?\u201d and")
        assert "There is no answer here yet." in (await told(place, "history")).text


async def test_an_admin_deletes_all_that_somebody_asked(tmp_path: Path) -> None:
    """Named by a mention, which Slack sends as an id and a name."""
    async with at_work(tmp_path) as place:
        place.ada.is_admin = True
        await place.ask(user=place.bob)
        await place.slack.slash(place.general, place.bob, "/council-forget", f"<@{place.ada.id}|ada>")
        assert await place.until_told(place.bob) == (
            "Only an admin can delete everything somebody else asked."
        )
        asked = await told(place, f"forget <@{place.bob.id}|bob>")
        assert "Delete everything bob asked in this workspace?" in asked.text
        await pressed(place, asked, "Delete")
        assert place.told(place.ada)[-1].startswith("Deleted everything bob asked in this workspace and")
        assert "There is no answer here yet." in (await told(place, "history")).text
