"""`council chat`: the terminal as a channel, with the commands of a team's chat."""

import re

from bot.app import Library, open_council, open_dispatcher, open_lookup
from bot.config.configuration import Configuration
from bot.errors import Refusal
from bot.past.buttons import Choice
from bot.past.lookup import Halt, Lookup
from bot.past.pages import Sheet
from bot.service.admission.access import AT_TERMINAL as ANYTHING
from bot.service.commands import ASK, CONFIG, FORGET, HELP, PAST, argument, parse, parse_options, usage
from bot.service.dispatcher import Click, Dispatcher
from bot.service.options import RunOptions
from bot.terminal import ask as terminal_ask
from bot.terminal.ask import display, say
from bot.terminal.typed import read_line
from bot.upkeep import repair_index
from bot.view.wording.buttons import HELPFUL, UNHELPFUL
from bot.view.wording.service.votes import AT_TERMINAL, NOTHING_TO_VOTE_ON
from bot.view.wording.terminal import terminal as wording
from council.document.conversation import AssistantMessage
from storage.errors import ConversationNotFound
from storage.index.rows import IndexRow

HINT = wording.hint(
    f"/{ASK.name}",
    (f"/{each.name} {usage(each)}" for each in PAST),
    f"/{FORGET.name} {usage(FORGET)}",
    f"/{CONFIG.name}",
    f"/{HELP.name}",
)
_VOTE = re.compile(rf"{HELPFUL}|{UNHELPFUL}(?:[:,.]?\s+(?P<reason>.+))?", re.IGNORECASE | re.DOTALL)


async def chat(configuration: Configuration, library: Library) -> None:
    """Read commands until the input ends."""
    await repair_index(library)
    async with open_council(configuration, library) as council:
        dispatcher = open_dispatcher(configuration, library, council)
        resume_within = configuration.durability.resume_within
        terminal = terminal_ask.Asking(library, council.runs, resume_within)
        shelf = _Shelf(open_lookup(library), dispatcher.tasks.halt)
        conversation: str | None = None
        say(HINT)
        while (line := read_line()) is not None:
            word, _, rest = line.strip().partition(" ")
            if word == f"/{HELP.name}":
                display(await dispatcher.help(terminal_ask.HERE))
            elif word == f"/{CONFIG.name}":
                await _configure(dispatcher, rest)
            elif word in (f"/{ASK.name}", "@council"):
                try:
                    typed = parse(rest)
                    options = RunOptions.read(typed.given)
                    profile = (await dispatcher.in_force(terminal_ask.HERE)).profile(options)
                except Refusal as error:
                    say(str(error))
                    continue
                after = conversation if word == "@council" else None
                answered = await terminal.ask(profile, typed.question, terminal_ask.people, after=after)
                if answered:
                    conversation = answered
                    say(wording.as_page(answered))
                    say(AT_TERMINAL)
            elif conversation and (vote := _VOTE.fullmatch(line.strip())):
                say(await _cast(dispatcher, library, conversation, vote))
            elif word and not await shelf.take(word, line.strip()):
                say(HINT)


async def _configure(dispatcher: Dispatcher, text: str) -> None:
    """Show or change what is in force at the terminal, which is its user's own."""
    who = terminal_ask.person()
    try:
        given = parse_options(CONFIG, text)
        display(await dispatcher.configure(given, who, ANYTHING, is_admin=True))
    except Refusal as refusal:
        say(str(refusal))


async def _cast(
    dispatcher: Dispatcher, library: Library, conversation: str, typed: re.Match[str]
) -> str:
    """Count a vote on the newest answer; returns what to say."""
    who, is_helpful = terminal_ask.person(), typed["reason"] is None and len(typed[0]) == len(HELPFUL)
    try:
        messages = (await library.store.load(conversation)).messages
        run_id = next(each.run_id for each in messages[::-1] if isinstance(each, AssistantMessage))
        run = await dispatcher.run_of(Click(str(run_id), who), "vote")
        return await dispatcher.votes.cast(run, who, helpful=is_helpful, reason=typed["reason"])
    except ConversationNotFound:
        return NOTHING_TO_VOTE_ON
    except Refusal as refusal:
        return str(refusal)


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
        except Refusal as refusal:
            say(str(refusal))
        return bool(command or choice)

    def _show(self, sheet: Sheet) -> None:
        choices = [choice for choice in sheet.choices if choice.verb in ("turn", "see", "forget")]
        self._choices = {choice.label.casefold(): choice for choice in choices}
        display(sheet.message)
        if choices:
            say(wording.buttons(choice.label for choice in choices))


def _nowhere(row: IndexRow) -> None:
    """Return no address: a conversation of the terminal has none."""
    del row
