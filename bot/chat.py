"""`council chat`: the terminal as a channel, with the commands of a team's chat."""

import asyncio
import sys

from bot import asking
from bot.app import Library, open_council, open_desk
from bot.commands import ASK, HELP, UsageError, parse
from bot.configuration import Configuration
from bot.markdown import render
from bot.options import RunOptions

HINT = (
    f"/{ASK.name} QUESTION asks, @council QUESTION goes on in the same conversation, "
    f"/{HELP.name} explains, Ctrl-D leaves."
)
TRANSCRIPT = "Its transcript as a page: council export {0} --format html > council-{0}.html"


async def chat(configuration: Configuration, library: Library) -> None:
    """Read commands until the input ends."""
    async with open_council(configuration, library) as council:
        desk = open_desk(configuration, library, council)
        resume_within = configuration.durability.resume_within
        terminal = asking.Asking(library, council.runs, resume_within)
        conversation: str | None = None
        _say(HINT)
        while (line := await asyncio.to_thread(_read)) is not None:
            word, _, rest = line.strip().partition(" ")
            if word == f"/{HELP.name}":
                _say(render(await desk.help(asking.HERE)))
            elif word in (f"/{ASK.name}", "@council"):
                try:
                    typed = parse(rest)
                    profile = RunOptions.read(typed.given).applied(council.profiles)
                except UsageError as error:
                    _say(str(error))
                    continue
                after = conversation if word == "@council" else None
                answered = await terminal.ask(profile, typed.question, asking.people, after=after)
                if answered:
                    conversation = answered
                    _say(TRANSCRIPT.format(answered[:8]))
            elif word:
                _say(HINT)


def _read() -> str | None:
    if sys.stdin.isatty():
        sys.stdout.write("> ")
        sys.stdout.flush()
    return sys.stdin.readline() or None


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
