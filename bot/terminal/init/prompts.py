"""Questions with one answer each. Ctrl-C and the input's end raise `typer.Abort`."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import typer

from bot.config.settings import header
from bot.terminal.ask import say
from bot.view.wording import init as wording

T = TypeVar("T")


def prompt(question: str, read: Callable[[str], T], default: str = "", *, hidden: bool = False) -> T:
    """Ask until `read` takes what is typed, without spaces around it.

    A `ValueError` says what is wrong with it, a `typer.BadParameter` in a whole sentence.
    """
    while True:
        typed = typer.prompt(question, default, hide_input=hidden, show_default=bool(default))
        try:
            return read(str(typed).strip())
        except typer.BadParameter as error:  # typer wouldn't show it where what is typed is hidden
            say(error.message)
        except ValueError as error:
            say(wording.not_usable(str(error)))


def choose(lead: str, choices: Sequence[str], default: int = 1) -> int:
    """Return the place of the choice that is taken, from 0."""

    def place(typed: str) -> int:
        if typed.isdecimal() and 1 <= int(typed) <= len(choices):
            return int(typed) - 1
        raise typer.BadParameter(wording.choose(len(choices)))

    say(lead)
    for number, choice in enumerate(choices, start=1):
        say(f"  {number}  {choice}")
    return prompt(wording.CHOICE, place, str(default))


def fit(typed: str) -> str:
    """Return what a header and `.env` can hold; raises `ValueError` where they can't."""
    if "${" in header(typed):
        raise ValueError(wording.UNFIT)
    return typed


def kept(name: str, known: str) -> str:
    """Return a secret that is set already, if it is to stay; empty otherwise."""
    return known if known and typer.confirm(wording.keep(name), default=True) else ""
