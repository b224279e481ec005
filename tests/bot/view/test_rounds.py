"""Rounds as people see them: the last one in the thread, all of them on record."""

from bot.past import pages
from bot.past.pages import Detail
from bot.render.markdown import render
from bot.terminal import venue as terminal
from bot.transcript.markdown import to_markdown
from bot.view.card import card
from bot.view.run import RunView, fold, of_document
from bot.view.thread import record, thread
from bot.view.wording.card import rounds
from council.document.conversation import AssistantMessage, Conversation, UserMessage
from council.document.results import IterationRound, IterationState, TerminationReason
from council.events import MemberFailed, RunCompleted
from council.profile import Profile
from tests.council.scripted import ScriptedCouncil, failure, profile
from tests.pairs import rows

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
    """Return what is seen after each event of a run, to the last."""
    seen = [RunView(QUESTION, seats, started=0.0)]
    for event in (*council.events, RunCompleted("run", ID, message)):
        seen.append(fold(seen[-1], event, 0.0))
    return seen


def conversation(message: AssistantMessage) -> Conversation:
    return Conversation(
        id=ID,
        created_at="2026-01-20T10:30:00.000Z",
        title="Shard or scale up",
        messages=[UserMessage(role="user", content=QUESTION), message],
    )


async def test_each_round_is_on_record_and_stays_as_it_was() -> None:
    """With the reviews of it; the same from the document."""
    seats = profile(*SEATS, max_rounds=2)
    council, message = await held(seats)
    seen = views(council, seats, message)
    last = {each.key: each for each in record(seen[-1])}
    rounds = ((1, places(seen[-1].every_round[0])), (2, places(seen[-1])))
    # Whose objections were replied to has them below it, too.
    assert [each for each in last if not each.startswith("reviews") or each.count(":") == 1] == [
        section
        for number, order in rounds
        for section in (
            f"ranking:{number}",
            *(f"member:{number}:{name}" for name in order),
            f"reviews:{number}",
        )
    ] + ["rounds"]
    stored = of_document(message, QUESTION, conversation(message))
    assert {each.key: each for each in record(stored)} == last


def places(view: RunView) -> list[str]:
    """Return the members, best first."""
    return sorted(SEATS, key=lambda name: view.rank(name) or (9, True))


async def test_the_record_says_how_each_answer_moved_and_why_it_ended() -> None:
    """A line a member, a column a round."""
    seats = profile(*SEATS, max_rounds=2)
    council, message = await held(seats)
    view = views(council, seats, message)[-1]
    told = {each.key: render(each) for each in record(view)}
    rounds = told["rounds"]
    assert rounds == (
        "## Rounds\n\n"
        "2 review rounds, the limit.\n\n"
        "| Member | Round 1 | Round 2 |\n"
        "| --- | --- | --- |\n"
        "| one | corrected | corrected |\n"
        "| two | corrected | kept its answer |\n"
        "| three | corrected | correction failed (it took too long); answer of the round before kept |\n"
    )
    assert told["ranking:2"].startswith("## Ranking, round 2\n\n")
    one, three = told["member:2:a/one"], told["member:2:c/three"]
    assert "## a/one, round 2\n\n" in one
    assert one.endswith(f"### Corrected response\n\n{SECOND['a/one']}\n")
    assert "The correction failed: it took too long (" in three
    assert "The previous round's response is kept." in three
    assert told["reviews:2"].startswith("## Reviews, round 2\n")
    assert "2 review rounds, the limit" in render(card(view, 0.0))
    assert rounds.removeprefix("## Rounds\n\n") in to_markdown(conversation(message))


async def test_the_terminal_says_what_an_answer_falls_back_to() -> None:
    """In the card's words."""
    seats = profile(*SEATS, max_rounds=2)
    council, message = await held(seats)
    seen = views(council, seats, message)
    [at] = [at for at, event in enumerate(council.events) if isinstance(event, MemberFailed)]
    [said] = terminal.plain_lines(seen[at + 1], council.events[at], 0.0)
    assert said.startswith("three kept its answer of the round before: it took too long")
    assert "correction failed (it took too long); answer of the round before kept" in render(
        card(seen[at + 1], 0.0)
    )


async def test_a_past_answers_details_are_the_last_rounds() -> None:
    """Those of the rounds before are in the transcript; other members and details are a button away."""
    seats = profile(*SEATS, max_rounds=2)
    council, message = await held(seats)
    stored = conversation(message)
    order = places(views(council, seats, message)[-1])
    sheet = pages.detail(stored, Detail(ID, 0, order.index("a/one")))
    assert render(sheet.message).startswith("# Shard or scale up\n\n## one\n\n")
    assert f"### Corrected response\n\n{SECOND['a/one']}\n\n### Original" in render(sheet.message)
    short = [name.partition("/")[2] for name in order if name != "a/one"]
    assert [each.label for each in sheet.choices] == [*short, "Transcript", "Share here"]


async def test_a_member_without_points_keeps_its_answer() -> None:
    """With critiques handed over point by point it wasn't asked again; each critic has its line."""
    seats = profile(*SEATS, critique_mode="extracted")
    _, message = await held(
        seats,
        **{"stage2.1:a/one": "\n\n".join(f"### Response {each}\nIt is wrong." for each in "ABC")},
        **{"stage2.1:b/two": "All fine.", "stage2.1:c/three": "All fine."},
    )
    view = of_document(message, QUESTION, conversation(message))
    told = {each.message.key: render(each.message) for each in thread(view)}
    assert "Nobody objected, so it wasn't revised." in told["member:a/one"]
    assert "- Gravest objection, by one (it holds): It is wrong.\n" in told["ranking"]
    assert "rounds" not in {each.key for each in record(view)}


@rows(
    ("reason", "said"),
    [
        (TerminationReason.MAX_ROUNDS_REACHED, "1 review round, the limit"),
        (TerminationReason.MODELS_CONVERGED, "1 review round; then no answer changed"),
        (TerminationReason.NO_SIGNIFICANT_CHANGES, "1 review round; then the answers had settled"),
        (TerminationReason.CONTEXT_LIMIT_REACHED, "1 review round; then the token budget was used up"),
        (TerminationReason.USER_STOPPED, "1 review round; then the run was stopped"),
        (TerminationReason.ERROR_OCCURRED, "1 review round; then no correction came back"),
    ],
)
def test_every_reason_has_words(reason: TerminationReason, said: str) -> None:
    """One sentence for people, whatever ended the rounds."""
    held = [IterationRound(round_number=1)]
    assert rounds(IterationState(max_rounds=3, termination_reason=reason, rounds=held)) == said
    none = IterationState(max_rounds=3, termination_reason=TerminationReason.USER_STOPPED)
    assert rounds(none) == "no review rounds; then the run was stopped"
