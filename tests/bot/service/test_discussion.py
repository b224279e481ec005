"""A human thread is read as far as it fits; slow or surplus parts are left out."""

import asyncio
from dataclasses import dataclass, field

from bot.inputs.limits import DOCUMENT_BYTES
from bot.service.inputs import MOST_FILES, Written, read_thread
from council.brief import Attachment, Discussion, SentFile
from tests.council.scripted import ScriptedCouncil

CONTEXT = Discussion(until="99")
ROOM = 10_000


@dataclass
class Scripted:
    """A scripted thread: names and files listed as `slow` never arrive."""

    written: list[Written[str]]
    more: bool = False
    refusal: Exception | None = None
    slow: set[str] = field(default_factory=set[str])
    size: int = 10
    platform: str = "Slack"

    async def messages(self) -> tuple[list[Written[str]], bool]:
        if self.refusal:
            raise self.refusal
        return self.written, self.more

    async def name(self, author: str) -> str:
        return (await self._in_time(author)).upper()

    def sent(self, file: str) -> SentFile:
        return SentFile(name=file, size=self.size)

    async def _in_time(self, name: str) -> str:
        if name in self.slow:
            await asyncio.Event().wait()
        return name


async def reading(thread: Scripted, *attachments: Attachment, room: int = ROOM) -> Discussion:
    brief = ScriptedCouncil.brief(attachments=attachments, context=CONTEXT)
    return await read_thread(thread, brief, CONTEXT, room)


async def test_what_does_not_fit_is_counted() -> None:
    """At most fifty messages are read_thread, and no more than fit."""
    written: list[Written[str]] = [Written("u1", f"{number}") for number in range(60)]
    found = await reading(Scripted(written, more=True))
    assert (len(found.messages), found.left_out, found.more) == (50, 10, True)
    assert found.messages[-1].text == "59"
    found = await reading(Scripted([Written("u1", "x" * 4000)] * 3), room=2000)
    assert (len(found.messages), found.left_out) == (2, 1)


async def test_an_empty_thread_has_nothing_to_read() -> None:
    """The card doesn't mention it."""
    assert await reading(Scripted([])) == CONTEXT


async def test_files_are_taken_from_the_newest_messages_first() -> None:
    """At most as many as attachments, including the question's."""
    written = [Written("u1", "", [f"{number}.md"]) for number in range(MOST_FILES)]
    mine = Attachment(name="mine.md", text="Mine.")
    thread = Scripted(written)
    found = await reading(thread, mine)
    assert [file.name for each in found.messages for file in each.sent] == [
        f"{number}.md" for number in range(1, MOST_FILES)
    ]
    assert found.files_left_out == 1


async def test_large_files_are_left_out() -> None:
    """They are counted, and not fetched: their size is known."""
    large = Scripted([Written("u1", "See.", ["a.md"])], size=DOCUMENT_BYTES + 1)
    found = await reading(large)
    assert (found.messages[0].sent, found.files_left_out) == ((), 1)
