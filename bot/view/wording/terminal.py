"""What the terminal says: `council chat` and `ask`, the demonstration, servers on this machine."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from bot.view.wording.figures import duration, listing
from council.profile import PRESETS
from council.text import clip

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

GAVE = {
    "stage1": "answered in {took}",
    "stage2": "reviewed the others in {took}",
    "stage2_5": "corrected",
    "stage3": "wrote the final answer in {took}",
}
LACKED = {
    "stage1": "gave no answer",
    "stage2": "gave no review",
    "stage2_5": "could not be corrected",
    "stage3": "could not write the final answer",
}
NO_RUN = "No run from this terminal has the id {}."
TOO_OLD = (
    "A run was interrupted too long ago to resume by itself: {question}\nTo resume it:\n  council "
    "retry {run_id}"
)
HAD_ITS_ANSWER = (
    "An interrupted run already had its answer: {question}\nTo read it:\n  council export "
    "{conversation_id}"
)
INTRODUCTION = (
    "Watch a council work, in about {takes}: {members} members answer a question, review each "
    "other without knowing who wrote what, and correct themselves. Then a chairman writes the "
    "answer. Ctrl-C leaves."
)


def unlisted(model: str, near: str | None) -> str:
    return f"The provider doesn't list {model}." + (f" Did you mean {near}?" if near else "")


def left(run_id: str) -> str:
    return (
        f"Stopped before the end. To resume, ask the same question again, or:\n  council retry {run_id}"
    )


def output_lost(why: str | None, conversation_id: str) -> str:
    return (
        f"The output can no longer be written ({why}). "
        "The run continues, and its answer will be kept:\n"
        f"  council export {conversation_id[:8]}"
    )


def hint(ask: str, past: Iterable[str], forget: str, config: str, help_: str) -> str:
    return (
        f"{ask} QUESTION asks; @council QUESTION continues the conversation; "
        f"{listing(past)} show past answers; {forget} deletes them; {config} shows and changes the "
        f"settings; {help_} explains; Ctrl-D leaves."
    )


def unknown_command(line: str, near: str | None) -> str:
    if near is None and not line.startswith(("/", "@")):
        return f"To ask, begin with /council: /council {clip(line, 60)}"
    meant = f"Did you mean {near}?" if near else "/council-help lists what there is."
    return f"{line.split(maxsplit=1)[0]} isn't a command here. {meant}"


def as_page(conversation_id: str) -> str:
    start = conversation_id[:8]
    return f"Its transcript as a page: council export {start} --format html > council-{start}.html"


def buttons(numbers: Sequence[int], named: Sequence[tuple[int, str]]) -> str:
    """Return how buttons are pressed: those of the numbered entries above, and those with names."""
    choices = list[str]()
    if numbers:
        first, last = min(numbers), max(numbers)
        is_one = first == last
        choices.append(f"{first} for the answer" if is_one else f"{first} to {last} for an answer")
    choices += (f"{number} {label}" for number, label in named)
    return f"Type a number: {', '.join(choices)}."


ANOTHER = "Type another number; ? lists them."
NOTHING_TO_CHOOSE = "There is nothing to choose now. /council-history lists past answers."


OF_EXAMPLES = "The examples, written by hand, are counted here."


IN_MEMORY = (
    "No model is set up. This channel holds four examples, written by hand, to try the commands on: "
    "/council-history lists them. Nothing that you do here is kept. To set up models of your own: make "
    "init"
)


def saved(conversation_id: str) -> str:
    return f"Saved as conversation {conversation_id}."


def writing(name: str) -> str:
    return f"{name} is writing the final answer."


def again(name: str, seconds: float, why: str) -> str:
    return f"{name} is asked again in {duration(seconds)}: {why}."


ON_CARD = "Example, written by hand: no model was asked, and the models named here said none of this."

CHOOSE = "Four examples, written by hand. Which one do you want to watch?"
LEAD = "Try its thread and its buttons: type a number, or press Enter to leave."
RANKING = "Ranking"
TRANSCRIPT = "Transcript, a page for your browser"
TRANSCRIPT_OPENED = "Open it in a browser; it is deleted when you leave:"
AGAIN = "Type another number, ? to list them, or press Enter to leave."
GOODBYE = (
    "This example was written by hand, and none of it was saved. To set up models of your own: make "
    "init. To ask them: make ask."
)


def choice(examples: int) -> str:
    return f"Type a number from 1 to {examples}, or press Enter for the first."


def unknown(typed: str) -> str:
    return f"There is no {typed} here; ? lists what there is."


def mistake(name: str, number: int) -> str:
    return f"{name}'s first answer was wrong, and its peers noticed: {number} shows what it changed."


if TYPE_CHECKING:
    from council.suggestion import LocalServer

SEATS = 3
"""How many seats one model has on a council that has no other."""


def offer(server: "LocalServer", file: str) -> str:
    is_one = len(server.models) == 1
    return (
        f"There is a model server on this machine, probably {server.name}, with "
        f"{listing(server.models)}. To ask {'it' if is_one else 'them'}, run `council init`, "
        f"or add this to {file}:\n\n"
        "[profiles.default]\nmembers = [\n" + "\n".join(_seats(server)) + "\n]\n"
    )


def ask_once(server: "LocalServer") -> str:
    return f"Ask {listing(each.removesuffix(':latest') for each in server.models)} on {server.name}?"


SET_UP = "To ask them every time: make init"


def _seats(server: "LocalServer") -> Iterator[str]:
    if len(server.models) == 1:  # several seats of one model need a point of view each
        for persona in PRESETS[:SEATS]:
            yield f"    {seat(server.models[0], server.endpoint, persona.name)},"
    else:
        for model in server.models:
            yield f"    {seat(model, server.endpoint)},"


def seat(model: str, endpoint: str | None, persona: str | None = None) -> str:
    keys = {"model": model, "persona": persona, "endpoint": endpoint}
    return "{ " + ", ".join(f'{key} = "{value}"' for key, value in keys.items() if value) + " }"
