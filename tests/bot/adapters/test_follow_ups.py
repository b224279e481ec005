"""Follow-ups on both platforms: *Follow up*, *Answer the question*, and the form they open."""

import asyncio

import pytest

from bot.service.channels import Operator
from council.document.conversation import UserMessage
from tests.bot.adapters.teams import QUESTION, AnyTeam
from tests.bot.shown import FINISHED
from tests.council.scripted import FOUR, asking, profile

ASK = "How many jobs run at night?"
FIRST_CALL = f"stage1.1:{FOUR[0]}"
ALREADY = "This question was already asked."


@pytest.mark.parametrize("team", ["Discord", "Slack", "Slack by HTTP"], indirect=True)
async def test_a_follow_up_is_answered_in_the_same_thread_and_conversation(team: AnyTeam) -> None:
    """Anybody who may ask may follow up; the members know what was answered before."""
    card = await team.ask()
    team.council.calls.clear()
    sent = team.send(await team.open(card, "Follow up", team.bob), text="And in a year?")
    assert await team.said(sent) == team.followed(card)
    [below] = team.below(card)
    assert team.asked_by("bob", "And in a year?") in team.text(below)
    assert team.cards() == [card]
    assert await team.questions() == [QUESTION, "And in a year?"]
    prompt = team.council.prompt(FIRST_CALL)
    assert QUESTION in prompt
    assert "The council's answer, written by chair/man." in prompt
    # The card below has buttons of its own, which lead to the same conversation.
    sent = team.send(await team.open(below, "Follow up", team.ada), text="And in ten?")
    assert await team.said(sent) == team.followed_in_the_thread
    assert len(team.below(card)) == 2
    assert (await team.questions())[2:] == ["And in ten?"]
    assert team.refusals() == []


async def test_answer_it_opens_the_form_with_the_chairmans_question(team: AnyTeam) -> None:
    """Only where the chairman asks for something."""
    assert "Answer the question" not in team.labels(await team.ask())
    team.council.script["stage3"] = asking(ASK)
    card = await team.ask("Cron or Temporal?")
    assert team.labels(card) == ["Answer the question", *FINISHED[1:]]
    form = await team.open(card, "Answer the question", team.ada)
    assert team.filled_in(form) == f"{ASK}\n\n"
    await team.said(team.send(form, text=f"{ASK}\n\nAbout forty."))
    [continued] = [one for one in await team.conversations() if len(one.messages) == 4]
    asked = [each.content for each in continued.messages if isinstance(each, UserMessage)]
    assert asked == ["Cron or Temporal?", f"{ASK}\n\nAbout forty."]
    assert "About forty." in team.text(team.below(card)[0])


async def test_a_form_asks_once_however_often_it_is_sent(team: AnyTeam) -> None:
    """Also after a restart, and however often the same submission is delivered."""
    card = await team.ask()
    form = await team.open(card, "Follow up", team.ada)
    first = team.send(form, text="And in a year?")
    await team.redeliver(first)
    second = team.send(form, text="And in a year?")
    said = [await team.said(first), await team.said(second)]
    assert ALREADY in "\n".join(said)
    await team.restart()
    assert await team.said(team.send(form, text="x")) == ALREADY
    assert await team.questions() == [QUESTION, "And in a year?"]


async def test_old_buttons_and_forms_are_heard_after_a_restart(team: AnyTeam) -> None:
    """The form was opened by an earlier process."""
    card = await team.ask()
    form = await team.open(card, "Follow up", team.ada)
    await team.restart()
    await team.said(team.send(form, text="And in a year?"))
    await team.said(team.send(await team.open(card, "Follow up", team.bob), text="And in ten?"))
    assert (await team.questions())[1:] == ["And in a year?", "And in ten?"]


async def test_two_people_at_once_get_two_runs_one_after_the_other(team: AnyTeam) -> None:
    """The second knows the first one's answer."""
    card = await team.ask()
    forms = [await team.open(card, "Follow up", who) for who in (team.ada, team.bob)]
    team.council.calls.clear()
    sent = [team.send(form, text=text) for form, text in zip(forms, ("One?", "Two?"), strict=True)]
    await asyncio.gather(*map(team.said, sent))
    _, first, second = await team.questions()
    assert {first, second} == {"One?", "Two?"}
    calls = [call for call in team.council.calls if call.step == FIRST_CALL]
    prompts = [call.messages[-1]["content"] for call in calls]
    assert [first in prompt for prompt in prompts if second in prompt] == [True]


async def test_one_of_several_profiles_is_chosen_in_the_form(team: AnyTeam) -> None:
    """The conversation's own profile is preselected."""
    fast = profile("openai/gpt-5", "x-ai/grok", name="fast")
    team.dispatcher.reconfigure(Operator(profiles={"fast": fast, "default": profile()}))
    card = await team.ask()
    form = await team.open(card, "Follow up", team.ada)
    assert team.offered(form) == [("default", True), ("fast", False)]
    await team.said(team.send(form, text="And in a year?", profile="fast"))
    assert "2 members" in team.text(team.below(card)[0])


async def test_where_the_thread_is_gone_the_follow_up_is_answered_in_the_channel(team: AnyTeam) -> None:
    """In the same conversation, with a thread of its own."""
    card = await team.ask()
    form = await team.open(card, "Follow up", team.ada)
    team.lose_thread(card)
    assert (await team.said(team.send(form, text="And in a year?"))).startswith(
        "Your follow-up was asked."
    )
    first, second = team.cards()
    assert first is card
    assert "And in a year?" in team.text(second)
    assert team.labels(second) == FINISHED
    assert team.in_thread(second) == 1  # the digest
    assert await team.questions() == [QUESTION, "And in a year?"]


async def test_who_may_not_ask_may_not_follow_up(team: AnyTeam) -> None:
    """The form opens, since votes and transcripts are open too; nothing is asked with it."""
    card = await team.ask()
    form = await team.open(card, "Follow up", team.ada)
    team.admit(deny={"users": [team.ada]})
    assert "[access] in council.toml" in await team.said(team.send(form, text="And in a year?"))
    assert await team.questions() == [QUESTION]
