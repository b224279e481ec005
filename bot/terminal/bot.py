"""`council chat`: the terminal as a channel, with the commands of a team's chat."""

import re
from collections.abc import Awaitable, Callable
from difflib import get_close_matches

from bot.actions import Action, Actions, Actor, Incoming, Payload, Responder, past
from bot.app import Library, open_council, open_dispatcher, open_lookup
from bot.config.configuration import Configuration
from bot.errors import Refusal
from bot.past.buttons import Choice
from bot.past.pages import Sheet
from bot.service.admission.access import AT_TERMINAL as ANYTHING
from bot.service.admission.access import Requester
from bot.service.commands import ASK, COMMANDS, CONFIG, FORGET, HELP, PAST, given, parse, usage
from bot.service.delivery.venue import Venue
from bot.service.options import RunOptions
from bot.service.run_tasks import RunTasks
from bot.terminal import ask as terminal_ask
from bot.terminal.ask import display, paragraph, say
from bot.terminal.typed import read_line
from bot.upkeep import repair_index
from bot.view.wording import terminal as wording
from bot.view.wording.commands import AT_TERMINAL, NOT_OFFERED, NOTHING_TO_VOTE_ON
from bot.view.wording.figures import HELPFUL, UNHELPFUL
from council.document.conversation import Source
from storage.errors import ConversationNotFound
from storage.index.rows import IndexRow
from storage.journal.rows import RunRow

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
        terminal = terminal_ask.Asking(library, council.runs, configuration.durability.resume_within)
        typed = _Typed(Actions(dispatcher, open_lookup(library), _nowhere), library, dispatcher.tasks)
        paragraph(HINT)
        while (line := read_line()) is not None:
            word, _, rest = line.strip().partition(" ")
            try:
                if word in (f"/{ASK.name}", "@council"):
                    asked = parse(rest)
                    options = RunOptions.read(asked.given)
                    profile = (await dispatcher.in_force(terminal_ask.HERE)).profile(options)
                    after = typed.conversation if word == "@council" else None
                    people = terminal_ask.people
                    answered = await terminal.ask(profile, asked.question, people, after=after)
                    if answered:
                        typed.conversation = answered
                        say(wording.as_page(answered))
                        say(AT_TERMINAL)
                elif word and not await typed.handle(word, line.strip()):
                    paragraph(wording.unknown_command(word, _near(word)))
            except Refusal as refusal:
                say(str(refusal))


def _near(word: str) -> str | None:
    names = (ASK, *COMMANDS)
    guess = get_close_matches(word, [f"/{each.name}" for each in names], 1)
    return guess[0] if guess else None


class _Typed(Responder):
    """Commands, and buttons that are pressed by typing their labels.

    `conversation` is the newest one, whose answer is voted on.
    """

    def __init__(self, actions: Actions, library: Library, tasks: RunTasks) -> None:
        self._actions = actions
        self._library = library
        self._tasks = tasks
        self._choices: dict[str, Choice] = {}
        self.conversation: str | None = None

    async def handle(self, word: str, line: str) -> bool:
        """Do what a line says, if it is a command, a label or a vote. Raises `Refusal`."""
        command = next((each for each in COMMANDS if word == f"/{each.name}"), None)
        choice = self._choices.get(line.casefold())
        vote = _VOTE.fullmatch(line) if self.conversation else None
        if command:
            await self._act(command.name, Payload(given=given(command, line.removeprefix(word), str)))
        elif choice:
            await self._act(past(choice.verb), Payload(about=choice.about))
        elif vote:
            is_helpful = vote["reason"] is None and len(vote[0]) == len(HELPFUL)
            about = Payload(run_id=await self._newest_run(), given={"reason": vote["reason"]})
            await self._act("helpful" if is_helpful else "reason", about)
        return bool(command or choice or vote)

    async def _act(self, action: Action, about: Payload) -> None:
        place = terminal_ask.person()
        incoming = Incoming(actor=_ACTOR, place=place, action=action, payload=about)
        await self._actions.handle(incoming, self)

    async def _newest_run(self) -> str:
        try:
            answers = (await self._library.store.load(str(self.conversation))).answers
        except ConversationNotFound as error:
            raise Refusal(NOTHING_TO_VOTE_ON) from error
        return str(answers[-1].run_id)

    async def say(self, text: str) -> None:
        """Write a sentence."""
        say(text)

    async def show(self, sheet: Sheet, *, turned: bool = False) -> None:
        """Write a sheet, and the labels of its buttons."""
        del turned
        choices = [choice for choice in sheet.choices if choice.verb not in ("share", "transcript")]
        self._choices = {choice.label.casefold(): choice for choice in choices}
        display(sheet.message)
        if choices:
            say(wording.buttons(choice.label for choice in choices))

    def venue(self, run: RunRow) -> Venue:
        """Refuse: a question of the terminal is shown by `bot.terminal.ask`."""
        del run
        raise Refusal(NOT_OFFERED)

    async def later(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something at once, and all that it leaves to the background."""
        await work()
        await self._tasks.settled()


async def _anything(here: Source) -> Requester:
    del here
    return ANYTHING


async def _is_admin() -> bool:
    """Return that whoever runs the program is an admin."""
    return True


_ACTOR = Actor(name="", here=ANYTHING, standing=_anything, is_admin=_is_admin)


def _nowhere(row: IndexRow) -> None:
    """Return no address: a conversation of the terminal has none."""
    del row
