"""Follow-ups on Slack, through the real Bolt app: *Follow up*, *Answer it*, and the form they open."""

from dataclasses import replace
from pathlib import Path

import pytest

from bot.service.admission.access import Access
from bot.service.admission.channels import Operator
from council.document.conversation import Conversation, UserMessage
from tests.bot.slack.test_bot import Place, at_work, cards_in, labels, restarted
from tests.council.scripted import FOUR, ScriptedCouncil, asking, failure, profile
from tests.slack_server import Channel, Message, User
from tests.slack_server.modals import View

ASK = "How many jobs run at night?"
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


@pytest.mark.parametrize("by_http", [False, True])
async def test_a_follow_up_is_answered_in_the_same_thread_and_conversation(
    tmp_path: Path, by_http: bool
) -> None:
    """Anybody who may ask may follow up; the members know what was answered before."""
    async with at_work(tmp_path, by_http=by_http) as place:
        card = await place.ask()
        place.council.calls.clear()
        form = await opened(place, card, place.bob)
        await send(place, form, text="And in a year?")
        assert not form.is_open
        [below] = cards_in(place, card)
        assert below.text.startswith("bob asked: And in a year?")
        assert place.slack.messages(place.general) == [card]
        assert questions(await conversation(place)) == ["Shard or scale up?", "And in a year?"]
        prompt = place.council.prompt(f"stage1.1:{FOUR[0]}")
        assert "Shard or scale up?" in prompt
        assert "The council's answer, written by chair/man." in prompt
        assert place.told(place.bob) == ["Your follow-up was asked. The answer appears in the thread."]
        # The card below has buttons of its own, which lead to the same conversation.
        await send(place, await opened(place, below, place.ada), text="And in ten?")
        assert len(cards_in(place, card)) == 2
        assert place.told(place.ada) == []
        assert questions(await conversation(place))[2:] == ["And in ten?"]
        assert not any(call.error for call in place.slack.requests)


async def test_answer_it_opens_the_form_with_the_chairmans_question(tmp_path: Path) -> None:
    """Only where the chairman asks for something."""
    async with at_work(tmp_path) as place:
        assert "Answer it" not in labels(await place.ask())
        place.council.script["stage3"] = asking(ASK)
        card = await place.ask("Cron or Temporal?")
        assert labels(card)[:2] == ["Answer it", "Follow up"]
        form = await opened(place, card, place.ada, ANSWER)
        assert form.form["blocks"][0]["element"]["initial_value"] == f"{ASK}\n\n"
        await send(place, form, text=f"{ASK}\n\nAbout forty.")
        [below] = cards_in(place, card)
        assert "About forty." in below.text


async def test_a_form_asks_once_however_often_it_is_sent(tmp_path: Path) -> None:
    """Also after a restart, and however often the same submission is delivered."""
    async with at_work(tmp_path) as place:
        card = await place.ask()
        form = await opened(place, card, place.ada)
        sent = place.slack.submit(form, text="And in a year?")
        again = place.slack.submit(form, text="And in a year?")
        await sent
        await again
        await place.slack.redeliver(sent)
        await place.dispatcher.tasks.settled()
        form.is_open = True  # its closing never reached this client
        async with restarted(place) as dispatcher:
            await place.slack.submit(form, text="And in a year?")
            await dispatcher.tasks.settled()
        assert questions(await conversation(place)) == ["Shard or scale up?", "And in a year?"]
        assert "This question was already asked." in place.told(place.ada)


async def test_old_buttons_and_forms_are_heard_after_a_restart(tmp_path: Path) -> None:
    """The form was opened by an earlier process."""
    async with at_work(tmp_path) as place:
        card = await place.ask()
        form = await opened(place, card, place.ada)
        async with restarted(place) as dispatcher:
            await place.slack.submit(form, text="And in a year?")
            await place.slack.submit(await opened(place, card, place.bob), text="And in ten?")
            await dispatcher.tasks.settled()
        assert questions(await conversation(place))[1:] == ["And in a year?", "And in ten?"]


async def test_two_people_at_once_get_two_runs_one_after_the_other(tmp_path: Path) -> None:
    """The second knows the first one's answer."""
    async with at_work(tmp_path) as place:
        card = await place.ask()
        forms = [await opened(place, card, reader) for reader in (place.ada, place.bob)]
        place.council.calls.clear()
        for form, text in zip(forms, ("One?", "Two?"), strict=True):
            place.slack.submit(form, text=text)
        await place.slack.until(lambda: not any(form.is_open for form in forms))
        await place.dispatcher.tasks.settled()
        _, first, second = questions(await conversation(place))
        assert {first, second} == {"One?", "Two?"}
        step = f"stage1.1:{FOUR[0]}"
        prompts = [c.messages[-1]["content"] for c in place.council.calls if c.step == step]
        assert [first in prompt for prompt in prompts if second in prompt] == [True]


async def test_one_of_several_profiles_is_chosen_in_the_form(tmp_path: Path) -> None:
    """The conversation's own profile is preselected."""
    async with at_work(tmp_path) as place:
        fast = profile("openai/gpt-5", "x-ai/grok", name="fast")
        place.dispatcher.reconfigure(Operator(profiles={"fast": fast, "default": profile()}))
        card = await place.ask()
        form = await opened(place, card, place.ada)
        select = form.form["blocks"][1]["element"]
        assert select["initial_option"]["value"] == "default"
        assert [option["value"] for option in select["options"]] == ["default", "fast"]
        await send(place, form, text="And in a year?", profile="fast")
        [below] = cards_in(place, card)
        assert "2 members" in below.text


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


async def test_where_the_thread_is_gone_the_follow_up_is_answered_in_the_channel(
    tmp_path: Path,
) -> None:
    """In the same conversation, with a thread of its own."""
    async with at_work(tmp_path) as place:
        card = await place.ask()
        form = await opened(place, card, place.ada)
        place.slack.fail("chat.postMessage", "thread_not_found", in_thread=True)
        await send(place, form, text="And in a year?")
        first, second = place.slack.messages(place.general)
        assert first is card
        assert "And in a year?" in second.text
        assert "Follow up" in labels(second)
        assert len(place.slack.thread(place.general, second.ts)) == 1 + len(FOUR) + 2
        assert questions(await conversation(place)) == ["Shard or scale up?", "And in a year?"]


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


async def test_who_may_not_ask_may_not_follow_up(tmp_path: Path) -> None:
    """The form says so below its text, which isn't lost."""
    async with at_work(tmp_path) as place:
        form = await opened(place, await place.ask(), place.ada)
        place.dispatcher.channels.operator = replace(
            place.dispatcher.channels.operator,
            access=Access.model_validate({"deny": {"users": [place.ada.id]}}),
        )
        await send(place, form, text="And in a year?")
        assert form.is_open
        assert "[access] in council.toml" in form.errors["text"]
        assert questions(await conversation(place)) == ["Shard or scale up?"]
