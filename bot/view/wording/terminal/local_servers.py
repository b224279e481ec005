"""What is said about model servers found on this machine."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bot.view.wording.names import listing
from council.personas import PRESETS

if TYPE_CHECKING:
    from council.models.local import LocalServer

SEATS = 3
"""How many seats one model has on a council that has no other."""


def offer(server: "LocalServer", file: str) -> str:
    """Offer a server's models, with the lines that set them."""
    is_one = len(server.models) == 1
    return (
        f"There is a model server on this machine, probably {server.name}, with "
        f"{listing(server.models)}. To ask {'it' if is_one else 'them'}, run `council init`, "
        f"or add this to {file}:\n\n"
        "[profiles.default]\nmembers = [\n" + "\n".join(_seats(server)) + "\n]\n"
    )


def ask_once(server: "LocalServer") -> str:
    """Ask whether a question goes to a server's models."""
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
    """Write a seat as `council.toml` has it."""
    keys = {"model": model, "persona": persona, "endpoint": endpoint}
    return "{ " + ", ".join(f'{key} = "{value}"' for key, value in keys.items() if value) + " }"
