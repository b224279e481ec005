"""Each objection is shown with its author's reply, and what people need not believe comes last."""

import pytest

from bot.render.markdown import render
from bot.transcript.markdown import to_markdown
from bot.view.run import of_document
from bot.view.thread import record, thread
from council.document.conversation import AssistantMessage, Conversation
from council.document.results import ObjectionReply, ReviewPoint, Severity, Stage2_5Result, Stage2Result
from tests.bot.sample_run import (
    ANSWERS,
    ASSISTANT,
    CLAUDE,
    CONVERSATION,
    CORRECTIONS,
    GEMINI,
    GPT,
    LABELS,
    QUESTION,
)

GROUND = "Locks outlive their owners"
LABEL = next(label for label, model in LABELS.items() if model == GPT)


def objection(
    text: str, *, severity: Severity | None = "high", found: bool | None = None
) -> ReviewPoint:
    return ReviewPoint(
        label=LABEL,
        kind="objection",
        text=text,
        severity=severity,
        source="structured",
        quote=None if found is None else "some words of it",
        found=found,
    )


def reviewed(*points: ReviewPoint, by: str = CLAUDE) -> Stage2Result:
    return Stage2Result(model=by, ranking="A review.", parsed_ranking=[], points=[*points])


def replied(text: str, *, holds: bool, reason: str = "I tried it.", to: str = CLAUDE) -> ObjectionReply:
    return ObjectionReply(critic=to, objection=text, holds=holds, reason=reason)


def stored(
    reviews: list[Stage2Result], replies: list[ObjectionReply] | None, *, kept: bool = False
) -> AssistantMessage:
    """Return an answer with these reviews, to which gpt-5 replies so."""
    update: dict[str, object] = {"replies": replies, "peer_critiques": ""}
    if kept:
        update |= {"corrected_response": ANSWERS[GPT].response, "changed": False}
    corrections = [
        each.model_copy(update=update) if each.model == GPT else each for each in CORRECTIONS.values()
    ]
    return ASSISTANT.model_copy(update={"stage2": reviews, "stage2_5": corrections})


def shown(message: AssistantMessage) -> tuple[str, str]:
    """Return the digest, and the thread's message of gpt-5."""
    parts = {
        each.message.key: render(each.message)
        for each in thread(of_document(message, QUESTION, CONVERSATION))
    }
    return parts["ranking"], parts[f"member:{GPT}"]


def rows(message: AssistantMessage) -> list[str]:
    """Return the lines below the heading of objections."""
    told = shown(message)[1].partition("### Objections\n\n")[2].partition("\n\n")[0]
    return told.splitlines()


def test_a_reply_follows_its_objection() -> None:
    """With how the author checked it; the digest counts, and says it of the gravest."""
    message = stored(
        [
            reviewed(objection(f"{LABEL} is slow"), objection("Too dear", severity="low")),
            reviewed(objection(GROUND, severity="medium"), by=GEMINI),
        ],
        [
            replied(f"{LABEL} is slow", holds=False, reason=f"{LABEL} took a second."),
            replied("Too dear", holds=True, reason=""),
            replied(GROUND, holds=True, to=GEMINI),
        ],
    )
    assert rows(message) == [
        "- Reply to the gravest objection, by claude-sonnet-4.5: doesn't hold: gpt-5 took a second.",
        "- claude-sonnet-4.5: Minor: Too dear. \u2192 it holds.",
        f"- gemini-2.5-pro (The Pragmatist): {GROUND}. \u2192 it holds. \u201cI tried it.\u201d",
    ]
    digest, _ = shown(message)
    assert "; 3 objections, 2 hold" in digest
    assert "Gravest objection, by claude-sonnet-4.5 (doesn't hold): Serious: gpt-5 is slow." in digest


def test_what_quotes_nothing_of_the_answer_comes_last_and_says_so() -> None:
    """However grave its critic finds it: it reaches nobody as a fact."""
    message = stored(
        [
            reviewed(objection("It is all wrong", found=False), objection("Too dear", severity="low")),
            reviewed(objection(GROUND, severity="low", found=True), by=GEMINI),
        ],
        None,
    )
    assert rows(message) == [
        f"- gemini-2.5-pro (The Pragmatist): Minor: {GROUND}.",
        "- claude-sonnet-4.5: (quotes words that aren't in the answer) Serious: It is all wrong.",
    ]
    assert "It is all wrong" not in shown(message)[0]


def test_an_answer_that_was_kept_although_something_holds() -> None:
    """People read it in the reply; an error that its author found itself, where nobody objected."""
    for kept, said in ((True, "it holds, but nothing was changed."), (False, "it holds.")):
        replies = [replied(GROUND, holds=True, reason="")]
        message = stored([reviewed(objection(GROUND))], replies, kept=kept)
        assert rows(message) == [f"- Reply to the gravest objection, by claude-sonnet-4.5: {said}"]
        assert "; 1 objection, 1 holds" in shown(message)[0]
    found = ObjectionReply(critic=GPT, objection="Eleven, not twelve.", holds=True)
    message = stored([reviewed()], [found])
    assert rows(message)[0] == "- gpt-5: found an error itself: Eleven, not twelve."
    assert "objections," not in shown(message)[0]


@pytest.mark.parametrize("replies", [None, [], [replied(GROUND, holds=False)]])
def test_documents_with_and_without_replies_are_shown_everywhere(
    replies: list[ObjectionReply] | None,
) -> None:
    """The record has each reply whole, beside its objection."""
    message = stored([reviewed(objection(GROUND))], replies)
    stored_again = AssistantMessage.model_validate(message.dump())
    assert stored_again == message
    view = of_document(stored_again, QUESTION, CONVERSATION)
    whole = "\n".join(map(render, record(view)))
    assert ("\u2192 gpt-5: doesn't hold: I tried it." in whole) == bool(replies)
    conversation: Conversation = CONVERSATION.model_copy(
        update={"messages": [CONVERSATION.messages[0], message]}
    )
    assert ("doesn't hold: I tried it." in to_markdown(conversation)) == bool(replies)


def test_what_an_older_document_says_of_a_kept_answer_survives() -> None:
    """A reason of its own field isn't shown any more, but stays in the document."""
    older = {**CORRECTIONS[GPT].dump(), "kept_because": "The critics overlook the cost."}
    assert Stage2_5Result.model_validate(older).dump() == older
