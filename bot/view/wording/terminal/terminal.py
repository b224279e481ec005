"""What only the terminal says: a run's progress in plain lines, and how to resume it."""

from collections.abc import Iterable

from bot.view.wording.figures import duration
from bot.view.wording.names import listing

RESUMING = (
    "Resuming this question's interrupted run with the settings it was asked with. Answers it already "
    "has aren't paid for again. To start over, use --new."
)
NOTHING_TO_RETRY = "This run has its answer or is still running, so there is nothing to retry."
DATA_MOVES = (
    "What the database holds is being copied or replaced, so nothing was asked. Try again when council "
    "migrate or council restore has ended."
)
TINY_MODEL = (
    "A tiny model that comes with the program answers: it shows how a council works, and no more. Don't "
    "believe what it says. To ask real models: make init"
)
NOT_UTF8 = "That isn't UTF-8 text; nothing was asked."

NO_ANSWER = "gave no answer"
NO_REVIEW = "gave no review"
NO_CORRECTION = "could not be corrected"
NO_FINAL_ANSWER = "could not write the final answer"


def too_old(question: str, run_id: str) -> str:
    """Say that an interrupted run is too old, and how to resume it."""
    return (
        f"A run was interrupted too long ago to resume by itself: {question}\n"
        f"To resume it:\n  council retry {run_id}"
    )


def had_its_answer(question: str, conversation_id: str) -> str:
    """Say that an interrupted run had been answered, and how to read the answer."""
    return (
        f"An interrupted run already had its answer: {question}\n"
        f"To read it:\n  council export {conversation_id}"
    )


def no_run(run_id: str) -> str:
    """Say that there is no such run."""
    return f"No run from this terminal has the id {run_id}."


def left(run_id: str) -> str:
    """Say how to resume a run that was left."""
    return (
        f"Stopped before the end. To resume, ask the same question again, or:\n  council retry {run_id}"
    )


def output_lost(why: str | None, conversation_id: str) -> str:
    """Say where the answer will be once no more output can be written."""
    return (
        f"The output can no longer be written ({why}). "
        "The run continues, and its answer will be kept:\n"
        f"  council export {conversation_id[:8]}"
    )


def hint(ask: str, past: Iterable[str], forget: str, config: str, help_: str) -> str:
    """Say what can be typed."""
    return (
        f"{ask} QUESTION asks; @council QUESTION continues the conversation; "
        f"{listing(past)} show past answers; {forget} deletes them; {config} shows and changes the "
        f"settings; {help_} explains; Ctrl-D leaves."
    )


def unknown_command(word: str, near: str | None) -> str:
    """Answer what is no command, with the one that may be meant."""
    meant = f" Did you mean {near}?" if near else " /council-help lists what there is."
    return f"{word} isn't a command here.{meant}"


def as_page(conversation_id: str) -> str:
    """Say how to get a transcript."""
    start = conversation_id[:8]
    return f"Its transcript as a page: council export {start} --format html > council-{start}.html"


def buttons(labels: Iterable[str]) -> str:
    """Say which buttons can be typed."""
    return f"Type one of these: {', '.join(labels)}."


def saved(conversation_id: str) -> str:
    """Say under which id a conversation was saved."""
    return f"Saved as conversation {conversation_id}."


def writing(name: str) -> str:
    """Say that somebody started the final answer."""
    return f"{name} is writing the final answer."


def did(name: str, what: str) -> str:
    """Say what somebody did."""
    return f"{name} {what}."


def failed(name: str, what: str, why: str) -> str:
    """Say what somebody couldn't do, and why."""
    return f"{name} {what}: {why}."


def again(name: str, seconds: float, why: str) -> str:
    """Say that a call is repeated."""
    return f"{name} is asked again in {duration(seconds)}: {why}."


def stage(name: str, said: str) -> str:
    """Say how far a stage is."""
    return f"{name}: {said}."


def answered(seconds: float) -> str:
    """Say how long an answer took."""
    return f"answered in {duration(seconds)}"


def reviewed(seconds: float) -> str:
    """Say how long a review took."""
    return f"reviewed the others in {duration(seconds)}"


def wrote(seconds: float) -> str:
    """Say how long the final answer took."""
    return f"wrote the final answer in {duration(seconds)}"


def kept(answer: str) -> str:
    """Say which answer is kept after a failed correction."""
    return f"kept its {answer}"
