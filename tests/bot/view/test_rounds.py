"""Rounds as people see them: each in the thread as it ends, then how the answers moved and why it ended."""

from dataclasses import replace

import pytest

from bot.past import pages
from bot.past.buttons import Detail
from bot.render.markdown import render
from bot.terminal import venue as terminal
from bot.transcript.markdown import to_markdown
from bot.view import words
from bot.view.card import card
from bot.view.fold import fold, of_document
from bot.view.state import RunView, opening
from bot.view.thread import thread, unposted
from council.document.conversation import AssistantMessage, Conversation, UserMessage
from council.document.iteration import IterationRound, IterationState, TerminationReason
from council.events import MemberFailed, RunCompleted, StageStarted
from council.profile import Profile
from tests.council.scripted import ScriptedCouncil, failure, profile

QUESTION = "Should we shard now or buy a bigger machine?"
ID = "550e8400-e29b-41d4-a716-446655440000"
SEATS = ("a/one", "b/two", "c/three")
SECOND = {
    "a/one": "Buy the machine now; shard by tenant once writes pass ten thousand a second.",
    "b/two": "A better and much longer answer, by b/two, with reasons and dates.",
}


async def held(seats: Profile, **script: object) -> tuple[ScriptedCouncil, AssistantMessage]:
    """Run two rounds: one corrects itself again, one keeps its answer, one falls back."""
    council = ScriptedCouncil(
        script={
            "stage2_5.2:a/one": SECOND["a/one"],
            "stage2_5.2:b/two": SECOND["b/two"],
            "stage2_5.2:c/three": failure("deadline"),
            **script,  # pyright: ignore[reportArgumentType] - a test's script is what it says
        }
    )
    return council, (await council.run(seats)).message


def views(council: ScriptedCouncil, seats: Profile, message: AssistantMessage) -> list[RunView]:
    """Give what is seen after each event of a run, to the last."""
    seen = [opening(QUESTION, seats, now=0.0)]
    for event in (*council.events, RunCompleted("run", ID, message)):
        seen.append(fold(seen[-1], event, 0.0))
    return seen


def conversation(message: AssistantMessage) -> Conversation:
    """Store an answer."""
    return Conversation(
        id=ID,
        created_at="2026-01-20T10:30:00.000Z",
        title="Shard or scale up",
        messages=[UserMessage(role="user", content=QUESTION), message],
    )


async def test_each_round_is_told_and_stays_as_it_was_told() -> None:
    """What was posted of round 1 is built the same when round 2 is over, and from the document."""
    seats = profile(*SEATS, max_rounds=2)
    council, message = await held(seats)
    seen = views(council, seats, message)
    last = {each.key: each for each in thread(seen[-1])}
    for view in seen:
        for each in thread(view):
            assert each == last[each.key]
    assert [*last] == [
        "ranking",
        *(f"{kind}:{name}" for name in places(seen[-1].earlier[0]) for kind in ("member", "critiques")),
        "2:ranking",
        *(f"2:{kind}:{name}" for name in places(seen[-1]) for kind in ("member", "critiques")),
        "rounds",
    ]
    stored = of_document(message, QUESTION, conversation(message))
    assert {each.key: each for each in thread(stored)} == last


async def test_critiques_of_a_further_round_follow_their_members_answers() -> None:
    """Also where a better-ranked member finishes between the two."""
    seats = profile(*SEATS, max_rounds=2)
    council, message = await held(seats)
    view = views(council, seats, message)[-1]
    last = places(view)[-1]
    posted = {each.key for each in thread(view.earlier[0])} | {"2:ranking", f"2:member:{last}"}
    assert next(unposted(view, posted)).key == f"2:critiques:{last}"


def places(view: RunView) -> list[str]:
    """Give the members, best first."""
    return sorted(SEATS, key=lambda name: view.place(name) or 9)


async def test_the_thread_says_how_each_answer_moved_and_why_it_ended() -> None:
    """A line a member, a column a round."""
    seats = profile(*SEATS, max_rounds=2)
    council, message = await held(seats)
    view = views(council, seats, message)[-1]
    told = {each.key: render(each) for each in thread(view)}
    assert told["rounds"] == (
        "## Rounds\n\n"
        "2 rounds of critique and no further one, because no more were allowed.\n\n"
        "| Member | Round 1 | Round 2 |\n"
        "| --- | --- | --- |\n"
        "| one | corrected: restructured content (1 change) | corrected: restructured content (1 change) |\n"
        "| two | corrected: restructured content (1 change) | kept its answer |\n"
        "| three | corrected: restructured content (1 change) | fell back (it took too long) |\n"
    )
    assert told["2:ranking"].startswith("## Ranking, round 2\n\n")
    assert "## a/one, round 2\n\n" in told["2:member:a/one"]
    assert told["2:member:a/one"].endswith(f"### Corrected response\n\n{SECOND['a/one']}\n")
    assert "Fell back to its answer of the round before: it took too long" in told["2:member:c/three"]
    assert "the previous round's response is kept." in told["2:member:c/three"]
    assert "Critiques of a/one, round 2" in told["2:critiques:a/one"]
    shown = render(card(view, 0.0))
    assert "2 rounds of critique and no further one, because no more were allowed" in shown
    assert told["rounds"].removeprefix("## Rounds\n\n") in to_markdown(conversation(message))


async def test_the_terminal_says_what_an_answer_falls_back_to() -> None:
    """In the card's words."""
    seats = profile(*SEATS, max_rounds=2)
    council, message = await held(seats)
    seen = views(council, seats, message)
    [at] = [at for at, event in enumerate(council.events) if isinstance(event, MemberFailed)]
    [said] = terminal.told(seen[at + 1], council.events[at], 0.0)
    assert said.startswith("three fell back to its answer of the round before: it took too long")
    assert "fell back to its answer of the round before (it took too long)" in render(
        card(seen[at + 1], 0.0)
    )


async def test_a_past_answers_details_are_the_last_rounds() -> None:
    """With those of the rounds before a button away, the same member's."""
    seats = profile(*SEATS, max_rounds=2)
    council, message = await held(seats)
    stored = conversation(message)
    order = places(views(council, seats, message)[-1])
    one = Detail("corrections", ID, 0, order.index("a/one"))
    sheet = pages.detail(stored, one)
    assert render(sheet.message).startswith(
        "# Shard or scale up\n\nRound 2 of 2.\n\n## a/one, round 2\n\n"
    )
    assert render(sheet.message).endswith(f"### Corrected response\n\n{SECOND['a/one']}\n")
    short = [name.partition("/")[2] for name in order if name != "a/one"]
    assert [each.label for each in sheet.choices] == [*short, "Round 1", "Transcript", "Share here"]
    first = pages.detail(stored, replace(one, round=1))
    assert "Round 1 of 2.\n\n## a/one\n\n" in render(first.message)
    assert "### Original response" in render(first.message)
    assert [each.label for each in first.choices] == [*short, "Round 2", "Transcript", "Share here"]
    told = render(pages.detail(stored, Detail("critiques", ID, 0)).message)
    assert f"## Critiques of {order[0]}, round 2" in told


async def test_the_card_names_the_round_under_way() -> None:
    """From round 2 on; votes and places of the round before are gone."""
    seats = profile(*SEATS, max_rounds=2)
    council, message = await held(seats)
    began = council.events.index(StageStarted("stage2", SEATS, 2))
    view = views(council, seats, message)[began + 1]
    shown = render(card(view, 0.0))
    assert "Reviews, round 2" in shown
    assert view.ranking is None
    assert [each.ranking is not None for each in view.earlier] == [True]


async def test_a_member_without_points_is_said_to_stand() -> None:
    """With critiques handed over point by point it wasn't asked again; points are shown as handed."""
    seats = profile(*SEATS, critique_mode="extracted")
    _, message = await held(
        seats,
        **{"stage2.1:a/one": "Response A is wrong. Response B is wrong. Response C is wrong."},
        **{"stage2.1:b/two": "All fine.", "stage2.1:c/three": "All fine."},
    )
    view = of_document(message, QUESTION, conversation(message))
    told = {each.key: render(each) for each in thread(view)}
    assert "Nobody objected, so it wasn't revised." in told["member:a/one"]
    assert (
        "1. \\[high] Response" in told["critiques:b/two"]
        or "1. [high] Response" in told["critiques:b/two"]
    )
    assert "rounds" not in told


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (TerminationReason.MAX_ROUNDS_REACHED, "no more were allowed"),
        (TerminationReason.MODELS_CONVERGED, "no member changed its answer any more"),
        (TerminationReason.NO_SIGNIFICANT_CHANGES, "the answers hardly changed any more"),
        (TerminationReason.CONTEXT_LIMIT_REACHED, "their token budget was used up"),
        (TerminationReason.USER_STOPPED, "the run was stopped"),
        (TerminationReason.ERROR_OCCURRED, "no correction came back"),
    ],
)
def test_every_reason_has_words(reason: TerminationReason, said: str) -> None:
    """One sentence for people, whatever ended the rounds."""
    state = IterationState(
        max_rounds=3, termination_reason=reason, rounds=[IterationRound(round_number=1)]
    )
    assert words.rounds(state) == f"1 round of critique and no further one, because {said}"


def test_no_round_at_all_is_said_so() -> None:
    """Stop may be pressed before the first."""
    state = IterationState(max_rounds=3, termination_reason=TerminationReason.USER_STOPPED)
    assert words.rounds(state) == "no round of critique, because the run was stopped"
