"""The built-in model's prompts: hardly more than the question, since it understands no more."""

import json
import re
from collections.abc import Callable

import pytest

from council.brief import Attachment, Brief, History, Turn
from council.calls import Call, ChatMessage
from council.criteria import EvaluationCriteria
from council.document.conversation import peer_critiques, rounds_of
from council.document.results import AggregateRanking, RankedAnswer
from council.profile import Member, Persona
from council.prompts.builtin import prompts_of
from council.prompts.chair import Material
from tests.council.scripted import FOUR, ScriptedCouncil, failure, profile
from tests.pairs import rows

PERSONA = Persona(name="The Pragmatist", prompt="You give correct, short answers.")
MEMBER = Member(model="a/one", persona=PERSONA)
SYSTEM: ChatMessage = {"role": "system", "content": PERSONA.prompt}
ASKED: ChatMessage = {"role": "user", "content": "Why?"}
MARK = "b0undary"


def brief(**changes: object) -> Brief:
    asked = Brief(question="Why?", profile=profile(demonstration=True), seed=1, boundary=MARK)
    return asked.model_copy(update=changes)


def test_an_answer_and_a_review_are_asked_for_with_little_more_than_the_question() -> None:
    """And the persona, which is one sentence; a grammar enforces the review's form."""
    assert prompts_of(brief()).answer(MEMBER) == (SYSTEM, ASKED)
    assert prompts_of(brief()).answer(Member(model="a/one")) == (ASKED,)
    (said,) = prompts_of(brief()).review(MEMBER, [("Response A", "So."), ("Response B", "No.")])
    assert said["content"] == (
        "Why?\n\nResponse A: So.\n\nResponse B: No.\n\n"
        "Review each answer, then rank them, best first. Reply as JSON."
    )


def turns(ballots: int, *answers: str) -> list[str]:
    """Return the chairman's prompt for answers of A, B and C, of which C is ranked above A above B."""
    labels = ("Response C", "Response A", "Response B")
    places = [
        RankedAnswer(model=label, label=label, mean_position=float(place), votes=2, wins=0)
        for place, label in enumerate(labels, 1)
    ]
    given = Material(
        responses=[
            (f"Response {letter}", letter, text) for letter, text in zip("ABC", answers, strict=False)
        ],
        ranking=AggregateRanking(places=places, agreement=1.0, agreement_word="strong", ballots=ballots),
    )
    said = prompts_of(brief()).synthesis(MEMBER, given)
    roles = ["system", *["user", "assistant"] * len(answers), "user"]
    assert [each["role"] for each in said] == roles
    assert said[0]["content"] == PERSONA.prompt
    *asked, last = [each["content"] for each in said if each["role"] == "user"]
    assert asked == ["Why?"] * len(answers)
    assert last == "Why? Give the correct answer once more, in one short and simple sentence."
    return [each["content"] for each in said if each["role"] == "assistant"]


def test_the_chairman_reads_last_what_others_say_too() -> None:
    """Each answer is a turn of its own; the words of the question don't count, nor does their case."""
    assert turns(2, "Why? In Rome.", "Why? Paris.", "It is in ROME.") == [
        "Why? Paris.",
        "Why? In Rome.",
        "It is in ROME.",
    ]
    assert turns(2, "Rome.", "Rome!", "?")[0] == "?"


@pytest.mark.parametrize(("ballots", "order"), [(2, ["No.", "So.", "Ah."]), (0, ["Ah.", "No.", "So."])])
def test_of_answers_with_nothing_in_common_the_one_ranked_first_is_read_last(
    ballots: int, order: list[str]
) -> None:
    """Without a ranking, the seating order serves."""
    assert turns(ballots, "So.", "No.", "Ah.") == order


@rows(
    "asked",
    [
        brief(profile=profile()),
        brief(profile=profile(demonstration=True, strategy="coverage")),
        brief(profile=profile(demonstration=True, answer_format="structured")),
        brief(profile=profile(demonstration=True, criteria=EvaluationCriteria.model_validate("Cost"))),
        brief(history=History(turns=(Turn(question="Who?", answer="We."),))),
        brief(attachments=(Attachment(name="a.txt", text="Because."),)),
    ],
)
def test_everything_else_is_asked_in_full(asked: Brief) -> None:
    """With fences around what comes from outside."""
    assert MARK in prompts_of(asked).answer(MEMBER)[-1]["content"]


async def test_a_whole_demonstration_sends_nothing_else() -> None:
    """No prompt contains a fence or a mark that the model could copy."""
    council = ScriptedCouncil()
    await council.run(profile(demonstration=True))
    said = [message["content"] for call in council.calls for message in call.messages]
    assert len(council.calls) > 4
    assert not any("[begin " in text for text in said)


def saying(remark: str) -> Callable[[Call], str]:
    """Return a reviewer that says this against the answer it reads first, and copies the others."""

    def review(call: Call) -> str:
        read = re.findall(r"^(Response [A-Z]): (.+)$", call.messages[-1]["content"], re.MULTILINE)
        said = [remark or read[0][1], *(text for _, text in read[1:])]
        reviews = [
            {"label": label, "strengths": "Short.", "critiques": [{"text": text, "severity": "high"}]}
            for (label, _), text in zip(read, said, strict=True)
        ]
        return json.dumps({"reviews": reviews, "ranking": [label for label, _ in read]})

    return review


async def test_an_answer_that_nobody_criticized_is_not_asked_for_again() -> None:
    """Copies of the answers are no critique. It is kept, beside its reviews, and the document is valid."""
    council = ScriptedCouncil(script={"stage2": saying("")})
    message = (await council.run(profile(*FOUR[:3], demonstration=True))).message
    message.check()
    assert council.asked("stage2_5") == []
    assert message.stage2_5 is not None
    for kept in message.stage2_5:
        assert kept.maintained
        assert kept.corrected_response == kept.original_response
        assert kept.peer_critiques == peer_critiques(kept.model, message.stage2)
    assert rounds_of(message)[0].corrections == message.stage2_5


@pytest.mark.parametrize("settings", [{}, {"strategy": "coverage"}])
async def test_it_is_not_asked_about_objections(settings: dict[str, object]) -> None:
    """It can't check any: its answer is kept, with the cause, and nothing pretends to be a correction."""
    council = ScriptedCouncil(script={"stage2": saying("It is wrong.") if not settings else failure()})
    message = (await council.run(profile(*FOUR[:3], demonstration=True, **settings))).message
    message.check()
    assert council.asked("stage2_5") == []
    corrections = message.stage2_5 or []
    causes = {each.model: each.fallback and each.fallback.cause for each in corrections}
    assert {*causes.values()} - {None} == {"too_small"}
    assert all(each.corrected_response == each.original_response for each in corrections)
    assert not any(each.replies or each.changed for each in corrections)
    assert bool(message.failures) == bool(settings)


async def test_what_is_to_be_repeated_has_no_penalty_for_it() -> None:
    """The final answer of the built-in model; its other calls, and those of a follow-up, keep the server's."""
    followed = History(turns=(Turn(question="Who?", answer="We."),))
    for is_demonstration, history, penalty in (
        *((True, History(), 1.0), (False, History(), None), (True, followed, None)),
    ):
        council = ScriptedCouncil()
        await council.run(profile(demonstration=is_demonstration), history=history)
        given = {call.step.partition(".")[0]: call.repeat_penalty for call in council.calls}
        assert given.pop("stage3") == penalty
        assert {*given.values()} == {None}
