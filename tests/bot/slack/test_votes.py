"""Votes on Slack, through the real Bolt app: *Helpful*, *Not helpful*, and the line for why."""

from pathlib import Path

from council.document.conversation import AssistantMessage
from tests.bot.slack.test_bot import Place, at_work
from tests.slack_server import Delivery, Message, User

REFUSED = "This run isn't on record here; it may have been deleted."
HELPFUL, UNHELPFUL = "council_helpful", "council_unhelpful"


async def votes(place: Place) -> list[tuple[str, bool, str | None]]:
    """Return the votes on the one answer there is, as its document has them."""
    [row] = await place.library.index.find_as_operator("")
    answer = (await place.library.store.load(row.id)).messages[1]
    assert isinstance(answer, AssistantMessage)
    assert {vote.platform for vote in answer.votes} <= {"slack"}
    return [(vote.voter, vote.helpful, vote.reason) for vote in answer.votes]


async def press(place: Place, card: Message, action: str, user: User) -> Delivery:
    """Press a button and wait until what it does is done."""
    delivery = await place.slack.click(card, action, user)
    assert delivery.acked
    await place.dispatcher.tasks.settled()
    return delivery


async def test_a_forged_button_reaches_no_other_channel(tmp_path: Path) -> None:
    """Nor does a form whose answer was deleted meanwhile: it says so and stays open."""
    async with at_work(tmp_path) as place:
        card = await place.ask()
        run = await place.run(card)
        other = place.slack.add_channel("other", place.ada, place.bob)
        await place.slack.slash(other, place.bob, "/council", "Theirs?")
        await place.dispatcher.tasks.settled()
        [theirs] = place.cards(other)
        for action in (HELPFUL, UNHELPFUL):
            await place.slack.click(theirs, action, place.bob, value=run.id)
        await place.dispatcher.tasks.settled()
        assert place.told(place.bob, other) == [REFUSED, REFUSED]
        await press(place, card, UNHELPFUL, place.ada)
        form = place.slack.form(place.ada)
        await place.library.forgetting.forget(
            await place.library.forgetting.select.user("slack", place.ada.id), by="slack:BOSS"
        )
        await place.slack.submit(form, reason="Too late")
        assert form.errors == {"reason": REFUSED}
        assert form.is_open


async def test_a_form_that_slack_refuses_leaves_the_vote_counted(tmp_path: Path) -> None:
    """The trigger may be too old; the voter is told."""
    async with at_work(tmp_path) as place:
        card = await place.ask()
        place.slack.fail("views.open", "expired_trigger_id")
        await press(place, card, UNHELPFUL, place.ada)
        assert await votes(place) == [(place.ada.id, False, None)]
        assert place.told(place.ada) == ["Your vote: not helpful. Press the other button to change it."]


async def test_a_form_that_is_delivered_again_changes_nothing(tmp_path: Path) -> None:
    """Slack repeats what it believes unheard."""
    async with at_work(tmp_path) as place:
        card = await place.ask()
        await press(place, card, UNHELPFUL, place.ada)
        sent = await place.slack.submit(place.slack.form(place.ada), reason="Too vague")
        await place.slack.redeliver(sent)
        assert await votes(place) == [(place.ada.id, False, "Too vague")]
