"""`council chat`: the terminal as a channel, with the commands of a team's chat."""

import signal
import sys

from bot.app import Library, open_council, open_dispatcher, open_lookup
from bot.config.configuration import Configuration
from bot.past.buttons import Choice
from bot.past.lookup import Halt, Lookup
from bot.past.pages import Sheet
from bot.render.markdown import render
from bot.service.commands import ASK, FORGET, HELP, PAST, UsageError, argument, parse, usage
from bot.service.errors import Refusal
from bot.service.options import RunOptions
from bot.terminal import ask as terminal_ask
from bot.terminal.ask import say, show
from bot.upkeep import mend
from bot.view.words import listing
from storage.rows import IndexRow

HINT = (
    f"/{ASK.name} QUESTION asks, @council QUESTION continues the conversation, "
    f"{listing(f'/{each.name} {usage(each)}' for each in PAST)} show past answers, "
    f"/{FORGET.name} {usage(FORGET)} deletes them, "
    f"/{HELP.name} explains, Ctrl-D leaves."
)
NOT_UTF8 = "That isn't text in UTF-8; nothing was asked."
TRANSCRIPT = "Its transcript as a page: council export {0} --format html > council-{0}.html"


async def chat(configuration: Configuration, library: Library) -> None:
    """Read commands until the input ends."""
    await mend(library)
    async with open_council(configuration, library) as council:
        dispatcher = open_dispatcher(configuration, library, council)
        resume_within = configuration.durability.resume_within
        terminal = terminal_ask.Asking(library, council.runs, resume_within)
        shelf = _Shelf(open_lookup(library), dispatcher.halt)
        conversation: str | None = None
        say(HINT)
        while (line := _read()) is not None:
            word, _, rest = line.strip().partition(" ")
            if word == f"/{HELP.name}":
                show(render(await dispatcher.help(terminal_ask.HERE)))
            elif word in (f"/{ASK.name}", "@council"):
                try:
                    typed = parse(rest)
                    profile = RunOptions.read(typed.given).applied(council.profiles)
                except UsageError as error:
                    say(str(error))
                    continue
                after = conversation if word == "@council" else None
                answered = await terminal.ask(profile, typed.question, terminal_ask.people, after=after)
                if answered:
                    conversation = answered
                    say(TRANSCRIPT.format(answered[:8]))
            elif word and not await shelf.take(word, line.strip()):
                say(HINT)


class _Shelf:
    """Past answers in the terminal: a button is pressed by typing its label."""

    def __init__(self, lookup: Lookup, halt: Halt) -> None:
        self._lookup = lookup
        self._halt = halt
        self._choices: dict[str, Choice] = {}

    async def take(self, word: str, line: str) -> bool:
        """Do what a line says, where it is about past answers."""
        command = next((each for each in (*PAST, FORGET) if word == f"/{each.name}"), None)
        choice = self._choices.get(line.casefold())
        try:
            if command is FORGET:
                given = argument(FORGET, line.removeprefix(word))
                self._show(await self._lookup.ask_to_forget(given, terminal_ask.person(), is_admin=True))
            elif command:
                given = argument(command, line.removeprefix(word))
                self._show(await self._lookup.answer(command, given, terminal_ask.HERE, _nowhere))
            elif choice and choice.verb == "forget":
                said = await self._lookup.forget(
                    choice.about, terminal_ask.person(), self._halt, is_admin=True
                )
                await self._lookup.scrub()
                say(said)
            elif choice:
                self._show(await self._lookup.press(choice.about, terminal_ask.HERE, _nowhere))
        except (Refusal, UsageError) as refusal:
            say(str(refusal))
        return bool(command or choice)

    def _show(self, sheet: Sheet) -> None:
        choices = [choice for choice in sheet.choices if choice.verb in ("turn", "see", "forget")]
        self._choices = {choice.label.casefold(): choice for choice in choices}
        show(render(sheet.message))
        if choices:
            say(f"Type one of these: {', '.join(choice.label for choice in choices)}.")


def _nowhere(row: IndexRow) -> None:
    """Say that a conversation of the terminal has no address."""
    del row


def _read() -> str | None:
    """Wait for a line; `None` where the input ends, or at Ctrl-C. Nothing else happens meanwhile."""
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        while True:
            if sys.stdin.isatty():
                sys.stdout.write("> ")
                sys.stdout.flush()
            try:
                return sys.stdin.buffer.readline().decode(sys.stdin.encoding) or None
            except UnicodeDecodeError:
                say(NOT_UTF8)
    except KeyboardInterrupt:
        return None
    finally:
        signal.signal(signal.SIGINT, before)
