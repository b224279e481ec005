"""Questions with one answer each. Ctrl-C and the input's end raise `typer.Abort`."""

from collections.abc import Callable, Sequence

import typer

from bot.config.settings import header
from bot.terminal.ask import say
from bot.view.wording.terminal import init as wording


def choose(lead: str, choices: Sequence[str], default: int = 1) -> int:
    """Return the place of the choice that is taken, from 0."""
    say(lead)
    for number, choice in enumerate(choices, start=1):
        say(f"  {number}  {choice}")
    while True:
        typed = line(wording.CHOICE, str(default))
        if typed.isdecimal() and 1 <= int(typed) <= len(choices):
            return int(typed) - 1
        say(wording.choose(len(choices)))


def line(question: str, default: str = "") -> str:
    """Return what is typed, without spaces around it."""
    return str(typer.prompt(question, default=default, show_default=bool(default))).strip()


def secret(question: str, unfit: Callable[[str], str | None]) -> str:
    """Return what is typed without being shown; empty where nothing is.

    `unfit` says why something typed can't be used; then it is asked for again.
    """
    while typed := str(typer.prompt(question, default="", show_default=False, hide_input=True)).strip():
        try:
            problem = unfit(fit(typed))
        except ValueError as error:
            problem = wording.not_usable(str(error))
        if problem is None:
            return typed
        say(problem)
    return ""


def fit(typed: str) -> str:
    """Return what a header and `.env` can hold; raises `ValueError` where they can't."""
    if "${" in header(typed):
        raise ValueError(wording.UNFIT)
    return typed


def confirm(question: str, *, default: bool) -> bool:
    """Return whether the answer is yes."""
    return typer.confirm(question, default=default)


def kept(name: str, known: str) -> str:
    """Return a secret that is set already, if it is to stay; empty otherwise."""
    return known if known and confirm(wording.keep(name), default=True) else ""
