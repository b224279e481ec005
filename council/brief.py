"""What a council is asked, with everything its answer depends on."""

from collections.abc import Iterator
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, BaseModel, Field, field_validator

from council.profile import Profile
from council.text import language


class Turn(BaseModel, frozen=True, hide_input_in_errors=True):
    """An earlier question of the conversation and its final answer.

    `answer` is `None` if there was no room for it; then `question` is shortened to a title.
    """

    question: str
    answer: str | None


class History(BaseModel, frozen=True, hide_input_in_errors=True):
    """The part of a conversation that fits beside a question (`council.prompts.opening`).

    `turns` are the last exchanges, before them questions without their answers, oldest first;
    `left_out` counts the questions before those. `cut` says that the last answer is shortened.
    """

    turns: tuple[Turn, ...] = ()
    left_out: int = 0
    cut: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.turns or self.left_out)


class Picture(BaseModel, frozen=True, hide_input_in_errors=True):
    """A picture that members who see are sent: which one, and how large it was, in pixels.

    `sha256` is of what is sent, and names it among the pictures of its run: `run`, or the run that it
    was read for. `page` is the document's page that it shows, `tokens` about what it takes in a prompt.
    """

    sha256: str
    media: Literal["image/png", "image/jpeg"]
    width: int
    height: int
    page: int | None = None
    tokens: int = 0
    run: str | None = None


FileKind = Literal["text", "pdf", "picture", "office", "page"]
"""What a file is by its content; a `page` was fetched from a web address."""


class Attachment(BaseModel, frozen=True, hide_input_in_errors=True):
    """What was read of a file that belongs to the question.

    `sha256` is of the content, `pages` counts all pages. `omitted` says in a few words, for people, what
    wasn't read and why. `url` is the address that a page was fetched from.
    """

    name: str
    text: str
    kind: FileKind = "text"
    sha256: str = ""
    pages: int | None = None
    pictures: tuple[Picture, ...] = ()
    omitted: str | None = None
    url: str | None = None

    @property
    def is_unread(self) -> bool:
        return self.omitted is not None and not (self.text or self.pictures)


class SentFile(BaseModel, frozen=True, hide_input_in_errors=True):
    """A file that came with a question and isn't read yet.

    `address` is where its platform keeps it, `size` its bytes as the platform states them. `media` is
    its type as the platform names it. `why` says why the platform's own limits or ours leave it out.
    """

    name: str
    address: str = Field(default="", repr=False)
    size: int = 0
    media: str = ""
    why: str | None = None


class ThreadMessage(BaseModel, frozen=True, hide_input_in_errors=True):
    """What somebody wrote in the thread in which a question was asked.

    `author` is the platform's id of the writer, `name` the name that people see there. `sent` are files
    that aren't read yet.
    """

    author: str
    name: str
    text: str
    files: tuple[Attachment, ...] = ()
    sent: tuple[SentFile, ...] = ()


class Discussion(BaseModel, frozen=True, hide_input_in_errors=True):
    """The human thread in which a question was asked: which part of it is read, and its messages.

    Read are the messages before `until`, without `question`, the message that holds the question; both
    are ids of the platform. `messages` come oldest first. `left_out` counts older ones; where `more` is
    true there are others before those. `unread` says, for people, why nothing could be read.
    """

    until: str
    question: str | None = None
    messages: tuple[ThreadMessage, ...] = ()
    left_out: int = 0
    more: bool = False
    files_left_out: int = 0
    unread: str | None = None

    @property
    def without_messages(self) -> "Discussion":
        """The same part of the thread, to be read again."""
        return Discussion(until=self.until, question=self.question)

    @property
    def texts(self) -> Iterator[str]:
        for message in self.messages:
            yield message.text
            yield from (file.text for file in message.files)


class Ceilings(BaseModel, frozen=True, hide_input_in_errors=True):
    """What its asker lets it cost at most, in US dollars: the run, and all of theirs in a day of UTC.

    They hold beside the budgets.
    """

    run: float | None = None
    day: float | None = None


class Brief(BaseModel, frozen=True, hide_input_in_errors=True):
    """One question and the settings it is answered under; stored in the run's row.

    A run is accepted with what was asked. What has to be looked up is filled in before its first call,
    at `started_at` (ISO 8601), which is `None` until then. `asker` is how the asker is called where the
    question was asked. `seed` decides labels and reading orders; `boundary` fences untrusted text in the
    prompts; `notes_mark`, which only the chairman is given, parts its notes from the answer. All are
    drawn once, so a replay writes the same prompts again. Where the members of
    `profile` are asked, and with which keys, is never taken from here: a row could have been written by
    anybody. `sent` are files that are read before the first call, and are `attachments` from then on;
    with `needs_files`, it is no question without them. `links` are addresses that its asker has named
    beside it, whatever the profile says of links. `earlier` are the files of earlier questions.
    `context` is the thread around the question, read before the first call. `history` is as much of the
    conversation as fits. `ceilings` are a program's, and `request` is a digest of what it sent: the same
    request may be sent again.
    """

    question: str = Field(min_length=1)
    profile: Annotated[Profile, AfterValidator(Profile.in_a_run)]
    seed: int
    boundary: str = Field(min_length=8)
    notes_mark: str | None = Field(default=None, min_length=8)
    asker: str | None = None
    attachments: tuple[Attachment, ...] = ()
    sent: tuple[SentFile, ...] = ()
    needs_files: bool = False
    links: tuple[str, ...] = ()
    earlier: tuple[Attachment, ...] = ()
    context: Discussion | None = None
    history: History = History()
    started_at: str | None = None
    ceilings: Ceilings | None = None
    request: str | None = None

    @field_validator("history", mode="before")
    @classmethod
    def _from_list(cls, stored: object) -> object:
        """Rows of earlier versions list the turns."""
        return {"turns": cast("object", stored)} if isinstance(stored, list | tuple) else stored

    @property
    def files(self) -> tuple[Attachment, ...]:
        """Every file that the prompts hold: the question's, its thread's and earlier questions'."""
        messages = self.context.messages if self.context else ()
        return (*self.earlier, *(file for each in messages for file in each.files), *self.attachments)

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The pictures of its files, each once, in the order in which prompts name them."""
        found = {one.sha256: one for file in self.files for one in file.pictures}
        return tuple(found.values())

    @cached_property
    def reply_mark(self) -> str:
        """What parts the corrected answer from the replies above it.

        It follows from what is drawn for the run, so a run of an earlier version has one, too. No
        prompt holds the seed: nobody can know the mark before an author is given it.
        """
        return sha256(f"{self.seed} {self.boundary}".encode()).hexdigest()[:16]

    @cached_property
    def language(self) -> str:
        """How prompts name the question's language, if it is certain."""
        return language(self.question) or "the question's language"
