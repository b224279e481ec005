"""A team with the bot on each platform, seen alike: what holds on both is written once.

A `Team` is what people do and what they are shown; how its platform has it is in `discord_team` and
`slack_team`. Both are the real clients against the fakes of `tests/discord_server` and `tests/slack_server`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from bot.app import Library
from bot.service.access import Access
from bot.service.dispatcher import Dispatcher
from council.document.conversation import AssistantMessage, Conversation, UserMessage, Vote
from storage.scope import Scope
from tests.council.scripted import ScriptedCouncil

QUESTION = "Shard or scale up?"

Files = Mapping[str, bytes]
Card = TypeVar("Card")
Note = TypeVar("Note")
Form = TypeVar("Form")
Sent = TypeVar("Sent")


class Lost(Protocol):
    """A request that gets no response."""

    hits: int

    def release(self) -> None: ...  # End it


class Team(Protocol[Card, Note, Form, Sent]):
    """Ada and Bob, by their ids, in a channel with the bot; `card` is always a finished one."""

    platform: ClassVar[str]
    groups: ClassVar[str]
    """The list of roles or user groups under `[access]`."""
    followed_in_the_thread: ClassVar[str]
    """What is said to whoever follows up from below an earlier follow-up."""
    repeats_lost: ClassVar[bool]
    """Whether a message whose response was lost is posted again: Slack knows no idempotency key."""
    hint: ClassVar[str]
    """What is said to an empty mention."""
    workspace: str
    here: str
    """How the guild or workspace is named to an admin."""
    inside: ClassVar[str]
    """How what is in the guild or workspace is named to its people."""
    admins: ClassVar[str]
    """How those are named who may change a channel's settings."""
    everyone: ClassVar[str]
    """What mentions everybody."""
    channel: str
    """How the channel is named in a sentence."""
    dated: ClassVar[str]
    """What comes before the asker of a past answer, as its date ends."""
    verbs: ClassVar[tuple[str, ...]]
    """What a button of past answers carries before its page."""
    transcript_shown: ClassVar[list[str]]
    """What is shown to whoever presses *Transcript*: the ends of files' names, or a sentence."""
    also_listed: ClassVar[int]
    """How much is to be cleaned up beside the messages: Discord's thread gets another name."""

    council: ScriptedCouncil
    library: Library
    ada: str
    bob: str

    @property
    def dispatcher(self) -> Dispatcher: ...  # The dispatcher of the bot that is running
    # Have Ada ask by command with options, and wait until everything is shown
    async def ask(self, question: str = QUESTION, **options: str) -> Card: ...
    # Have Ada ask by command, and return the card while the question is being answered
    async def begin(self, question: str = QUESTION) -> Card: ...
    # Have Ada or somebody else ask in vain; return what they alone are told
    async def refused(self, question: str = QUESTION, who: str = "") -> str: ...
    # Have Ada ask so often at once; return how many questions are accepted
    async def ask_together(self, times: int) -> int: ...
    # Use `/council-…` here or elsewhere; return what Ada or somebody else is shown, alone
    async def use(
        self, command: str, user: str = "", where: object = None, **options: str | int
    ) -> Note: ...
    # Have Ada or somebody else press a button; return the message that it shows or changes
    async def look(self, shown: Card | Note, label: str, who: str = "") -> Card | Note: ...
    # Press *Delete*; return what is said when all is deleted that can be
    async def delete(self, asked: Note, who: str = "") -> str: ...
    # Press *Transcript*; return what is shown for it, as in `transcript_shown`
    async def transcript(self, shown: Card | Note) -> list[str]: ...
    def elsewhere(self) -> list[object]: ...  # Open other channels that Ada is in, and return them
    # Return what the buttons of a message carry
    def values(self, shown: Card | Note) -> list[str]: ...
    # Have Ada press a button in another channel that carries this; return all that is shown there
    async def forge(self, where: Any, value: str) -> str: ...
    # Mention the bot in the channel or a card's thread; return the first that it shows for that, at
    # the end
    async def mention(
        self, text: str, who: str = "", below: Card | None = None, files: Files | None = None
    ) -> Card | Note: ...
    # Have Ada write to the bot directly; return the first that it shows for that, at the end
    async def message(self, text: str, files: Files | None = None) -> Card | Note: ...
    # Use the action on a message of Ada's in the channel; return the finished card
    async def act(self, text: str, who: str = "", files: Files | None = None) -> Card: ...
    # Have Ada ask privately; return what she is told in the channel
    async def private(self, question: str = QUESTION) -> str: ...
    # Return what the bot has written to somebody directly
    def directly(self, who: str = "") -> list[Card]: ...
    # Return what only this person is shown in the channel and its threads
    def privately(self, who: str = "") -> list[Note]: ...
    # Return the bot's messages that notified somebody and are still there
    def notified(self, who: str = "") -> list[Card]: ...
    # Return whether a message leads to a card, or is one
    def tells_of(self, shown: Card, card: Card) -> bool: ...
    # Let requests fail: `edit`, `post`, `read`, or the platform's own name of them; see the fakes'
    # `fail`
    def fail(self, what: str, **fault: Any) -> "Lost": ...
    # Let the bot lose the channel, or the conversation with Ada, for good
    def hide(self, *, direct: bool = False) -> None: ...
    def remove(self, card: Card) -> None: ...  # Let an admin delete a card, and what is below it
    def freeze(self, card: Card) -> None: ...  # Let a card be one that can't be edited any more
    def leave(self, who: str) -> None: ...  # Let somebody leave the channel
    def cards(self) -> list[Card]: ...  # Return the finished cards in the channel
    # Return what the bot has posted in the channel for everybody, outside of threads
    def public(self) -> list[Card]: ...
    # Return what the bot's messages to everybody say, those in threads as well
    def left(self) -> list[str]: ...
    # Return how many files of the bot's there are, but for those shown to one person in a channel
    def files(self) -> int: ...
    # Return whom the bot has notified, in order; everybody's names are `here` and the like
    def pings(self) -> list[str]: ...
    # Write a message in a card's thread
    def say_below(self, card: Card, who: str, text: str) -> object: ...
    # Return what is in a card's thread, by whomever
    def said_below(self, card: Card) -> list[object]: ...
    def below(self, card: Card) -> list[Card]: ...  # Return the finished cards in a card's thread
    def in_thread(self, card: Card) -> int: ...  # Return how many messages a card's thread has
    def text(self, card: Card | Note) -> str: ...  # Return what a message says
    def first_text(self, card: Card) -> str: ...  # Return what a card said when it was posted
    # Return everything that a message says, also where only one person is shown it
    def read(self, shown: Card | Note) -> str: ...
    # Return everything that a message says, without markup
    def plain(self, shown: Card | Note) -> str: ...
    # Return whether only this person sees a message
    def is_private(self, shown: Card | Note, who: str) -> bool: ...
    # Return whether a message has a link to a card
    def leads_to(self, shown: Note, card: Card) -> bool: ...
    def labels(self, shown: Card | Note) -> list[str]: ...  # Return the labels of a message's buttons
    def name(self, name: str) -> str: ...  # Return how somebody is called
    def tag(self, who: str) -> str: ...  # Return a mention of somebody as a command has it
    def hidden(self) -> str: ...  # Return a mention of a channel that not everybody sees
    def strong(self, words: str) -> str: ...  # Return words as they are emphasized
    def quoted(self, question: str) -> str: ...  # Return how a new card begins with a question
    # Return how a card names a question and who asked it
    def asked_by(self, name: str, question: str) -> str: ...
    # Return what is said to whoever follows up in the channel
    def followed(self, card: Card) -> str: ...
    def join(self, name: str) -> str: ...  # Let somebody join the channel; return their id
    # Put somebody into a new role or user group; return its mention, and how it is named
    def group(self, member: str) -> tuple[str, str]: ...
    def newcomers(self, number: int) -> list[str]: ...  # Let so many people join the channel
    # Press a button; return what only its presser is told once all is done
    async def press(self, card: Card | Note, label: str, who: str) -> str: ...
    # Press a button while a run is under way; return what only its presser is told
    async def press_amid(self, card: Card, label: str, who: str) -> str: ...
    # Have several people press a button at once, each press being delivered again and again
    async def press_together(self, card: Card | Note, label: str, everybody: list[str]) -> None: ...
    # Have Ada press a button below a message copied to another channel; return what she is told
    async def press_copied(self, card: Card, where: Any, label: str) -> str: ...
    # Let a message's buttons for one action send another
    def disguise(self, card: Card, action: str, other: str) -> None: ...
    # Press a button that opens a form
    async def open(self, card: Card, label: str, who: str) -> Form: ...
    def filled_in(self, form: Form) -> str: ...  # Return the text that a form begins with
    # Return the profiles of a form, and which is chosen
    def offered(self, form: Form) -> list[tuple[str, bool]]: ...
    def send(self, form: Form, **values: str) -> Sent: ...  # Fill in a form and send it
    # Wait until a form has done its work; return what whoever sent it is told, alone
    async def said(self, sent: Sent) -> str: ...
    async def redeliver(self, sent: Sent) -> None: ...  # Deliver the same form again

    def told_directly(self, who: str) -> list[str]:
        return [self.text(each) for each in self.directly(who)]

    # Let the next direct message to somebody, posted or not, get no response
    def lose_direct(self, who: str, breaks: Literal["reset", "hang"], *, applied: bool) -> "Lost": ...
    def close_direct(self, who: str) -> None: ...  # Let somebody take no direct messages
    def promote(self, who: str) -> None: ...  # Let somebody manage the guild or workspace
    async def until(self, what: Callable[[], object]) -> None: ...  # Wait until something is true
    def advance(self, seconds: float) -> None: ...  # Let the platform's clock advance
    # Let the bot delete no message any more; return why not, as people are told
    def forbid_deleting(self) -> str: ...
    def lose_thread(self, card: Card) -> None: ...  # Let a card's thread be gone
    async def kill(self) -> None: ...  # End the bot's process
    # Start another process, with these admins and the same operator's configuration and storage
    async def start(self, admins: Collection[str] = ()) -> None: ...

    async def restart(self, admins: Collection[str] = ()) -> None:
        """End the bot's process, and start another."""
        await self.kill()
        await self.start(admins)

    def refusals(self) -> list[str]: ...  # Return why the platform refused what the bot asked of it

    def listed(self, *who: str) -> frozenset[str]:
        """Return people as `COUNCIL_ADMINS` names them."""
        return frozenset(f"{self.platform}:{each}" for each in who)

    def configure(self, **operator: object) -> None:
        """Put parts of an operator's configuration in force."""
        self.dispatcher.reconfigure(replace(self.dispatcher.channels.operator, **operator))  # pyright: ignore[reportArgumentType] - a test

    def seat(self, **settings: object) -> None:
        """Change settings of the council's profile."""
        default = self.dispatcher.channels.operator.profiles["default"]
        self.configure(profiles={"default": default.model_copy(update=settings)})

    async def set_here(self, **settings: object) -> None:
        here = Scope(self.platform, self.workspace, self.channel.strip("<#>"))
        await self.library.overrides.change(here, settings, f"{self.platform}:1")

    def admit(self, **access: object) -> None:
        """Put lists of who may ask in force."""
        self.configure(access=Access.model_validate(access))

    async def held(self, step: str) -> Card:
        """Have Ada ask, and return the card once the run waits for a call."""
        self.council.held.add(step)
        card = await self.begin()
        await self.council.until_called(step)
        return card

    async def finish(self, step: str) -> None:
        """Let a call be answered, and wait until everything is shown."""
        self.council.release(step)
        await self.dispatcher.tasks.settled()

    async def deliveries(self) -> list[str | None]:
        rows = await self.library.database.read("SELECT delivery FROM runs")
        return [row["delivery"] for row in rows]

    async def conversations(self) -> list[Conversation]:
        rows = await self.library.index.find_as_operator("")
        return [await self.library.store.load(row.id) for row in rows]

    async def questions(self) -> list[str]:
        [one] = await self.conversations()
        return [each.content for each in one.messages if isinstance(each, UserMessage)]

    async def votes(self) -> list[tuple[str, bool, str | None]]:
        """Return the votes on the one answer there is, as its document has them."""
        [one] = await self.conversations()
        [answer] = [each for each in one.messages if isinstance(each, AssistantMessage)]
        votes: list[Vote] = [*answer.votes]
        assert {vote.platform for vote in votes} <= {self.platform}
        return [(vote.voter, vote.helpful, vote.reason) for vote in votes]


AnyTeam = Team[Any, Any, Any, Any]
