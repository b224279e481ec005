"""What the terminal says: `council chat` and `ask`, the demonstration, servers on this machine."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bot.view.wording.figures import listing
from council.profile import PRESETS

TINY_MODEL = (
    "A tiny model that comes with the program answers: it shows how a council works, and no more. Don't "
    "believe what it says. To ask real models: make init"
)

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


def saved(conversation_id: str) -> str:
    return f"Saved as conversation {conversation_id}."


ON_CARD = "Example, written by hand: no model was asked, and the models named here said none of this."
LEAD = "Try its thread and its buttons: type a number, or press Enter to leave."
TRANSCRIPT_OPENED = "Open it in a browser; it is deleted when you leave:"
GOODBYE = (
    "This example was written by hand, and none of it was saved. To set up models of your own: make "
    "init. To ask them: make ask."
)


def choice(examples: int) -> str:
    return f"Type a number from 1 to {examples}, or press Enter for the first."


def unknown(typed: str) -> str:
    return f"There is no {typed} here; ? lists what there is."


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
