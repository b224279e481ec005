"""`council chat`: the terminal as a channel, with the commands of a team's chat."""

import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from bot.actions import Action, Actions, Actor, Incoming, Payload, Responder, past
from bot.app import Council, Library, open_council, open_dispatcher, open_lookup
from bot.config.configuration import NOBODY_TO_ASK, Configuration
from bot.errors import Refusal
from bot.past.lookup import Lookup
from bot.past.pages import Answer, Choice, Sheet
from bot.service.access import AT_TERMINAL as ANYTHING
from bot.service.commands import (
    ASK,
    COMMANDS,
    CONFIG,
    FORGET,
    HELP,
    PAST,
    RunOptions,
    given,
    is_help,
    parse,
    usage,
)
from bot.service.delivery.chat import File
from bot.service.delivery.posts import Sent
from bot.service.delivery.venue import Venue
from bot.service.dispatcher import Dispatcher
from bot.service.run_tasks import RunTasks
from bot.terminal import ask as terminal_ask
from bot.terminal.ask import display, paragraph, read_line, say
from bot.terminal.demo import folder, nobody, open_examples
from bot.upkeep import repair_index
from bot.view.message import Line, Message, Pairs
from bot.view.wording import terminal as wording
from bot.view.wording.commands import NOT_OFFERED, NOTHING_TO_VOTE_ON
from bot.view.wording.figures import DELETE, HELPFUL, UNHELPFUL, listing
from bot.view.wording.past import OPEN
from council import demonstration
from council.profile import Profile
from council.text import clip
from storage.errors import ConversationNotFound
from storage.index.rows import IndexRow
from storage.journal.rows import RunRow

_ASK = f"/{ASK.name}"
_PAST = listing(f"/{each.name} {usage(each)}" for each in PAST)
HINT = (
    f"{_ASK} QUESTION asks; @council QUESTION continues the conversation; {_PAST} show past answers; "
    f"/{FORGET.name} {usage(FORGET)} deletes them; /{CONFIG.name} shows and changes the settings; "
    f"/{HELP.name} explains; Ctrl-D leaves."
)
_LISTED = re.compile(rf"(?:{OPEN}|{DELETE}) (\d+)")
_VOTE = re.compile(rf"{HELPFUL}|{UNHELPFUL}(?:[:,.]?\s+(?P<reason>.+))?", re.IGNORECASE | re.DOTALL)


async def chat(configuration: Configuration, library: Library) -> None:
    await repair_index(library)
    await _hold(configuration, library)


async def chat_in_memory(configuration: Configuration) -> None:
    """Read commands in a channel that holds examples, and of which nothing is kept."""
    async with open_examples() as library:
        paragraph(
            "No model is set up. This channel holds four examples, written by hand, to try the commands "
            "on: /council-history lists them. Nothing that you do here is kept. To set up models of "
            "your own: make init"
        )
        await _hold(configuration, library, is_kept=False)


async def _hold(configuration: Configuration, library: Library, *, is_kept: bool = True) -> None:
    async with AsyncExitStack() as stack:
        if configuration.is_demonstration and not demonstration.available():
            council = nobody(configuration, library)
        else:
            opening = open_council(configuration, library, unlisted=terminal_ask.tell_unlisted)
            council = await stack.enter_async_context(opening)
        dispatcher = open_dispatcher(configuration, library, council)
        lookup = open_lookup(library)
        resume_within = configuration.operations.durability.resume_within
        terminal = terminal_ask.Asker(library, council.runs, resume_within)
        keyboard = _Keyboard(
            Actions(dispatcher, lookup, _nowhere),
            lookup,
            library,
            dispatcher.tasks,
            stack.enter_context(folder()),
            with_examples=not is_kept,
        )
        paragraph(HINT)
        while (line := read_line()) is not None:
            word, _, rest = line.strip().partition(" ")
            try:
                if word in (_ASK, "@council") and is_help(rest):
                    await keyboard.handle(f"/{HELP.name}", f"/{HELP.name}")
                elif word in (_ASK, "@council"):
                    after = keyboard.conversation if word == "@council" else None
                    profile, question = await _asked(rest, council, dispatcher)
                    people = partial(terminal_ask.people, is_kept=is_kept)
                    if answered := await terminal.ask(profile, question, people, after=after):
                        await keyboard.show_buttons(answered)
                        if is_kept:
                            page = f"{answered[:8]} --format html > council-{answered[:8]}.html"
                            say(f"Its transcript as a page: council export {page}")
                        say(
                            "To vote on the answer, type Helpful, or Not helpful with a reason after it "
                            "if you like."
                        )
                elif word and not await keyboard.handle(word, line.strip()):
                    near = get_close_matches(word, [f"/{each.name}" for each in (ASK, *COMMANDS)], 1)
                    if near or word.startswith(("/", "@")):
                        meant = (
                            f"Did you mean {near[0]}?" if near else "/council-help lists what there is."
                        )
                        paragraph(f"{line.split(maxsplit=1)[0]} isn't a command here. {meant}")
                    else:
                        paragraph(f"To ask, begin with /council: /council {clip(line.strip(), 60)}")
            except Refusal as refusal:
                say(str(refusal))


async def _asked(typed: str, council: Council, dispatcher: Dispatcher) -> tuple[Profile, str]:
    """Return which council is asked what. Raises `Refusal`."""
    if not council.profiles:
        raise Refusal(str(NOBODY_TO_ASK))
    asked = parse(typed)
    now = await dispatcher.in_force(terminal_ask.HERE)
    return now.asked(RunOptions.read(asked.given)), asked.question


@dataclass
class Choices:
    """The buttons to press, by number or label: those of the newest sheet that had any of its own."""

    _by_number: dict[int, Choice] = field(default_factory=dict[int, Choice])

    def offer(self, choices: Iterable[Choice]) -> str | None:
        """Take a sheet's buttons, and return how they are pressed; `None` if there are none at all.

        A button whose label ends in its number has that one, which is in the text above it. The
        buttons before them stay where a sheet has only that of the transcript.
        """
        offered = [*choices]
        if self._by_number and all(each.verb == "transcript" for each in offered):
            return wording.ANOTHER
        listed = [(_LISTED.fullmatch(each.label), each) for each in offered]
        self._by_number = {int(found[1]): each for found, each in listed if found}
        numbers = [*self._by_number]
        named = [*enumerate((each for found, each in listed if not found), max(numbers, default=0) + 1)]
        self._by_number |= dict(named)
        labels = [(number, each.label) for number, each in named]
        return wording.buttons(numbers, labels) if offered else None

    def clear(self) -> None:
        self._by_number = {}

    def pressed(self, typed: str) -> Choice | None:
        if typed.isascii() and typed.isdecimal():
            return self._by_number.get(int(typed))
        wanted = typed.casefold()
        return next((each for each in self._by_number.values() if each.label.casefold() == wanted), None)

    def listed(self) -> Message:
        rows = tuple((str(number), each.label) for number, each in self._by_number.items())
        nothing = Line("There is nothing to choose now. /council-history lists past answers.")
        return Message("choices", (Pairs(rows) if rows else nothing,))


@dataclass(slots=True)
class _Keyboard(Responder):
    """Commands, and buttons that are pressed by typing their numbers or labels.

    `conversation` is the newest one, whose answer is voted on; transcripts are written to `folder`. If
    `with_examples`, the channel's figures count examples, too.
    """

    actions: Actions
    lookup: Lookup
    library: Library
    tasks: RunTasks
    folder: str
    with_examples: bool
    conversation: str | None = None
    _choices: Choices = field(default_factory=Choices)

    async def handle(self, word: str, line: str) -> bool:
        """Do what a line says, if it is a command, a button or a vote. Raises `Refusal`."""
        command = next((each for each in COMMANDS if word == f"/{each.name}"), None)
        choice = self._choices.pressed(line)
        vote = _VOTE.fullmatch(line) if self.conversation else None
        if command:
            self._choices.clear()
            await self._act(command.name, Payload(given=given(command, line.removeprefix(word), str)))
        elif choice:
            await self._act(past(choice.verb), Payload(about=choice.about))
        elif vote:
            is_helpful = vote["reason"] is None and len(vote[0]) == len(HELPFUL)
            try:
                newest = (await self.library.store.load(str(self.conversation))).answers[-1]
            except ConversationNotFound as error:
                raise Refusal(NOTHING_TO_VOTE_ON) from error
            about = Payload(run_id=str(newest.run_id), given={"reason": vote["reason"]})
            await self._act("helpful" if is_helpful else "reason", about)
        elif line == "?":
            display(self._choices.listed())
        elif line.isdecimal():
            paragraph(wording.unknown(line))
        else:
            return False
        return True

    async def show_buttons(self, conversation: str) -> None:
        self.conversation = conversation
        self._choices.clear()
        sheet = await self.lookup.open(Answer(conversation), terminal_ask.person(), _nowhere)
        self._offer(sheet)

    async def _act(self, action: Action, about: Payload) -> None:
        actor, place = Actor.known("", ANYTHING, is_admin=True), terminal_ask.person()
        incoming = Incoming(actor=actor, place=place, action=action, payload=about)
        await self.actions.handle(incoming, self)

    def _offer(self, sheet: Sheet) -> None:
        if said := self._choices.offer(choice for choice in sheet.choices if choice.verb != "share"):
            paragraph(said)

    async def say(self, text: str) -> None:
        say(text)

    async def show(self, sheet: Sheet, *, turned: bool = False) -> None:
        del turned
        message = sheet.message
        if sheet.compares and self.with_examples:
            counted = Line("The examples, written by hand, are counted here.")
            message = Message(message.key, (*message.blocks, counted))
        display(message)
        self._offer(sheet)

    async def files(self, files: tuple[File, ...], sent: Sent) -> None:
        del sent  # nobody else sees it
        page, *_ = files
        path = Path(self.folder) / page.name
        path.write_bytes(page.data)
        paragraph(wording.TRANSCRIPT_OPENED)
        say(path.as_uri())  # in one piece, however narrow the window

    def venue(self, run: RunRow) -> Venue:
        """Refuse: a question of the terminal is shown by `bot.terminal.ask`."""
        del run
        raise Refusal(NOT_OFFERED)

    async def later(self, work: Callable[[], Awaitable[None]]) -> None:
        await work()
        await self.tasks.settled()


def _nowhere(row: IndexRow) -> None:
    """Return no address: a conversation of the terminal has none."""
    del row
