"""Follow-ups on Slack, through the real Bolt app: *Follow up*, *Answer the question*, and the form they open."""

from pathlib import Path

from council.document.conversation import Conversation, UserMessage
from tests.bot.slack.test_bot import Place, at_work
from tests.council.scripted import ScriptedCouncil, failure
from tests.slack_server import Channel, Message, User
from tests.slack_server.modals import View

FOLLOW, ANSWER = "council_follow", "council_answer"
REFUSED = "This run isn't on record here; it may have been deleted."


async def opened(place: Place, card: Message, reader: User, action: str = FOLLOW) -> View:
    """Open the form."""
    assert (await place.slack.click(card, action, reader)).acked
    return place.slack.form(reader)


async def send(place: Place, form: View, **values: str) -> None:
    """Send a form, and wait until what it asks is answered."""
    assert (await place.slack.submit(form, **values)).acked
    await place.dispatcher.tasks.settled()


async def conversation(place: Place) -> Conversation:
    """Return the only conversation there is."""
    [row] = await place.library.index.find_as_operator("")
    return await place.library.store.load(row.id)


def questions(told: Conversation) -> list[str]:
    """Return what was asked, in order."""
    return [each.content for each in told.messages if isinstance(each, UserMessage)]


async def test_what_cannot_be_followed_up_says_why(tmp_path: Path) -> None:
    """From another channel, a run that failed, and one that was forgotten since its form was opened."""
    async with at_work(tmp_path) as place:
        card = await place.ask()
        run = await place.run(card)
        other: Channel = place.slack.add_channel("other", place.ada, place.bob)
        await place.slack.slash(other, place.bob, "/council", "Theirs?")
        await place.dispatcher.tasks.settled()
        [theirs] = place.cards(other)
        await place.slack.click(theirs, FOLLOW, place.bob, value=run.id)
        await place.dispatcher.tasks.settled()
        assert place.told(place.bob, other) == [REFUSED]
        form = await opened(place, card, place.ada)
        selection = await place.library.forgetting.select.user("slack", place.ada.id)
        await place.library.forgetting.forget(selection, by="slack:BOSS")
        await place.slack.submit(form, text="And in a year?")
        assert form.errors == {"text": REFUSED}
        place.council.script["stage1"] = failure("not_found")
        failed = await place.ask()
        for element, _ in failed.elements():
            element["action_id"] = element["action_id"].replace("council_over", FOLLOW)
        await place.slack.click(failed, FOLLOW, place.ada)
        await place.dispatcher.tasks.settled()
        assert place.told(place.ada)[-1].startswith("This run gave no answer")


async def test_in_direct_messages_a_follow_up_is_the_same_conversation(tmp_path: Path) -> None:
    """Below the first card, as in a channel."""
    council = ScriptedCouncil()
    async with at_work(tmp_path, council, scopes=frozenset({"im:history"})) as place:
        await place.slack.direct_message(place.ada, "Shard or scale up?")
        await place.dispatcher.tasks.settled()
        direct = place.slack.world.open_im(place.slack.team, place.ada.id)
        assert direct is not None
        [card] = [m for m in place.slack.messages(direct) if m.bot_id]
        await send(place, await opened(place, card, place.ada), text="And then?")
        assert questions(await conversation(place)) == ["Shard or scale up?", "And then?"]
