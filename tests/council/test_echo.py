"""A correction is an answer: what repeats, ranks, declines or changes language isn't one."""

import tomllib
from dataclasses import replace
from pathlib import Path

from council.calls import Call, MemorySteps
from council.document.conversation import AssistantMessage
from council.document.results import Stage2_5Result
from council.errors import Failure
from council.events import MemberFailed
from council.reviews.ballot_text import without_ranking
from council.rounds import CorrectionInputs, fault
from tests.council.scripted import FOUR, ScriptedCouncil
from tests.pairs import data, rows

QUESTION = "A train leaves at 14:40 and arrives at 17:05. How long does the journey take?"
OWN = (
    "To find the duration, subtract the start from the end. From 14:40 to 16:40 are two hours, and from 16:40 to "
    "17:05 are twenty-five minutes more, so the journey takes 2 hours and 25 minutes in all."
)
PEER = (
    "The answer subtracts the two times in the right order and explains every step well. It could also say what "
    "happens if the train is late, and give the sum in minutes alone, because timetables often do that."
)
OTHER = (
    "Count the minutes: 17 times 60 and 5 make 1025, and 14 times 60 and 40 make 880, so the difference is 145 "
    "minutes, which is a little less than two and a half hours for the whole of the journey."
)
OURS = (
    "Correct your answer: accept what is right in the critiques, keep what was right before, and where a critique "
    "is mistaken stand by your answer and give the reason. If it needs no correction, write KEEP: and then why, in a sentence. "
    "Give the whole corrected answer in English. "
    "Answer the question in the language it is asked in. Say plainly what you aren't sure of."
)
GIVEN = CorrectionInputs(
    QUESTION, OWN, OURS, [PEER, "It is fine.\n\nFINAL RANKING:\n1. Response B\n2. Response A"], [OTHER]
)

FAULTS: dict[str, tuple[str, str]] = tomllib.loads(
    Path(__file__).with_name("echo.toml").read_text(encoding="utf-8")
)


@rows(("cause", "reply"), FAULTS.values(), ids=FAULTS)
def test_a_reply_that_is_no_correction_has_a_cause(cause: str, reply: str) -> None:
    """A reply that a careful reader accepts has none."""
    assert (fault(reply, GIVEN) or "") == cause


def test_a_question_is_no_correction_and_the_authors_own_words_are() -> None:
    """Although its words were in the author's own answer; as a statement, the same words may be the answer."""
    repeating = replace(GIVEN, original=f"{QUESTION}\n\n{OWN}")
    assert fault(QUESTION, repeating) == "echoed_prompt"
    asked = replace(
        GIVEN, question="SQLite or PostgreSQL for five users? Recommend one.", original="SQLite."
    )
    assert fault("SQLite or PostgreSQL for five users?", asked) == "echoed_prompt"
    assert fault("PostgreSQL for five users.", asked) is None
    about_labels = replace(GIVEN, question="Which is right, Response A or Response B?")
    assert fault("Response A is, and Response B isn't.", about_labels) is None
    refused = replace(GIVEN, original="I'm sorry, but I can't assist with that.")
    assert fault("I'm sorry, but I can't help with that.", refused) is None


def test_the_language_is_the_questions() -> None:
    """A correction may change into the question's language, or keep the author's."""
    asked = replace(
        GIVEN, question="Wie lange dauert die Fahrt, wenn der Zug um 14:40 abfährt und um 17:05 ankommt?"
    )
    german = "Die Fahrt dauert zwei Stunden und 25 Minuten, und das ist die ganze Antwort auf die Frage."
    assert fault(german, asked) is None
    assert fault("It takes two hours and 25 minutes, and that is the whole of it.", asked) is None
    assert (
        fault("El viaje es de dos horas y 25 minutos, y esta es la respuesta.", asked)
        == "changed_language"
    )


def test_a_text_of_a_megabyte_is_judged() -> None:
    """Every word, without delay."""
    assert fault(f"{PEER} " * 5_000, GIVEN) == "echoed_reviews"


STEP = f"stage2_5.1:{FOUR[0]}"


def of(message: AssistantMessage, name: str) -> Stage2_5Result:
    return next(each for each in message.stage2_5 or () if each.model == name)


async def test_an_echo_is_asked_for_once_more_and_a_second_leaves_the_answer() -> None:
    """With the reason, and both calls count; with its cause, for people and on record."""
    council = ScriptedCouncil(script={STEP: "Response C", f"{STEP}:again": "Shard by tenant, in May."})
    message = (await council.run()).message
    assert of(message, FOUR[0]).corrected_response == "Shard by tenant, in May."
    again = next(call for call in council.calls if call.step == f"{STEP}:again")
    assert again.messages[-2]["content"].endswith("\n\nResponse C")
    assert "reviews answers instead of giving one" in again.messages[-1]["content"]
    assert "in English" in again.messages[-1]["content"]
    assert message.usage is not None
    assert message.usage.calls[f"{STEP}:again"].tokens == 15
    council = ScriptedCouncil(script={STEP: "Response C", f"{STEP}:again": "FINAL RANKING: A > B"})
    message = (await council.run()).message
    kept = of(message, FOUR[0])
    assert kept.corrected_response == kept.original_response == f"The first answer of {FOUR[0]}."
    assert kept.fallback == Failure(cause="sent_ranking")
    assert [(each.member, each.failure.cause) for each in message.failures] == [
        (FOUR[0], "sent_ranking")
    ]
    [failed] = [event for event in council.events if isinstance(event, MemberFailed)]
    assert (failed.stage, failed.failure.cause) == ("stage2_5", "sent_ranking")
    assert "FINAL RANKING: A > B" not in council.prompt("stage3.1:chair/man:chairman")
    message.check()


async def test_a_run_of_an_earlier_version_continues_from_its_echo() -> None:
    """Recorded replies aren't asked for again; a new echo is."""
    council = ScriptedCouncil(steps=MemorySteps(), script={f"{STEP}:again": "Shard by tenant."})
    before = ScriptedCouncil(script={STEP: "Response C", f"{STEP}:again": "Response B"})
    await before.run()
    kept = {
        key: said
        for key, said in before.steps.outcomes.items()
        if key[:6] != "stage3" and "again" not in key
    }
    council.steps.outcomes.update(kept)
    message = (await council.run()).message
    assert [call.step for call in council.calls] == [f"{STEP}:again", "stage3.1:chair/man:chairman"]
    assert of(message, FOUR[0]).corrected_response == "Shard by tenant."


@rows(("text", "left"), data(__file__, "a_review_can_be_read_without_its_ballot"))
def test_a_review_can_be_read_without_its_ballot(text: str, left: str) -> None:
    """Wherever it is, and counted or not."""
    assert without_ranking(text) == left


@rows(
    "reply",
    [
        (
            "Your peers reviewed your answer without knowing whose it was. Your answer is {label}; what they "
            "say of other labels is about other answers."
        ),
        "That can't be used: it repeats the instructions. Send the whole reply again.",
        "An objection holds only if your own check shows an error in your answer.",
    ],
)
async def test_our_own_words_never_count_as_a_correction(reply: str) -> None:
    """Nor as a reason: Qwen2.5-Coder 0.5B repeats prompts, even the one that asks once more."""

    def copied(call: Call) -> str:
        prompt = "\n".join(each["content"] for each in call.messages)
        label = prompt.partition("Your answer is ")[2][: len("Response A")]
        return reply.format(label=label)

    council = ScriptedCouncil(script={STEP: copied, f"{STEP}:again": copied})
    message = (await council.run()).message
    assert of(message, FOUR[0]).fallback == Failure(cause="echoed_prompt")
