"""Past answers as messages: pages of them, one answer, its details, a channel's figures.

Pure: what is shown was looked up in the reader's scope before. A sheet has the buttons that go with
its message.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from bot.past.buttons import Answer, Choice, Detail, Figures, History, Part, Search
from bot.past.chart import Chart
from bot.view import card, details, words
from bot.view.fold import of_document
from bot.view.message import Block, Entry, Footer, Heading, Line, Message, Quote, Table, Title
from bot.view.ranking import ranked
from bot.view.state import RunView
from bot.view.thread import thread
from council.document.conversation import AssistantMessage, Conversation, UserMessage
from council.usage import Usage
from storage.archive import Hits, Page
from storage.forgetting import Selection
from storage.rows import IndexRow
from storage.statistics import Figure, MemberStatistics, Statistics

Link = Callable[[IndexRow], str | None]
"""Returns the address of a conversation on its platform, if it has one."""

HITS = 5
"""How many hits a page of a search has."""
RANKED = 1_000
MOST_MEMBERS = 20
LABEL = 40
SHARE = "Share here"
REMAINS = (
    "Cards and threads remain in the channel; "
    "whoever may delete the bot's messages there can remove them."
)
_SHARED = "Where others have asked in the same conversation, their questions and answers stay."
_NONE = "\u2013"
_DETAILS: Mapping[Part, str] = {
    "member": "Members",
    "votes": "Votes",
    "changes": "Original and changes",
    "reviews": "Whole reviews",
}
_NOTHING = "This is not on record for this answer."


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of conversations beyond their rows: where they are, and who began them."""

    link: Link
    askers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A message that answers one person, the buttons below it, and what is also drawn of it."""

    message: Message
    choices: tuple[Choice, ...] = ()
    chart: Chart | None = None


def shared(sheet: Sheet, by: str) -> Sheet:
    """Return a sheet as the whole channel sees it: who shared it, and no page to turn."""
    blocks = (Line(f"{by} shares this from the council's past answers."), *sheet.message.blocks)
    choices = tuple(choice for choice in sheet.choices if choice.verb in ("see", "transcript"))
    return Sheet(Message("shared", blocks), choices, sheet.chart)


def history(page: Page, look: History, found: Found) -> Sheet:
    """Return a page of the channel's conversations."""
    if not page.rows:
        is_first = look.before is None and look.after is None
        said = (
            "There is no answer here yet. Ask with /council." if is_first else "There is nothing here."
        )
        return Sheet(Message("past", (Heading("Past answers"), Line(said))))
    turning = (
        *([Choice("Newer", "turn", str(History(look.count, after=page.newer)))] if page.newer else []),
        *([Choice("Older", "turn", str(History(look.count, before=page.older)))] if page.older else []),
    )
    entries = tuple(_entry(number, row, found) for number, row in enumerate(page.rows, 1))
    return Sheet(
        Message("past", (Heading("Past answers"), *entries)),
        (*_numbered(page.rows), *turning, Choice(SHARE, "share", str(look))),
    )


def search(hits: Hits, look: Search, found: Found) -> Sheet:
    """Return a page of the conversations that hold these words, best first."""
    heading = Heading(f"Results for \u201c{look.words}\u201d")
    if not hits.hits:
        said = (
            "No answer in this channel has all these words." if look.offset == 0 else "No more results."
        )
        return Sheet(Message("past", (heading, Line(said))))
    first, last = look.offset + 1, look.offset + len(hits.hits)
    some = f"more than {RANKED:,}, of which the newest are ranked" if hits.found >= RANKED else None
    entries = tuple(
        replace(_entry(number, hit.row, found), excerpt=hit.context)
        for number, hit in enumerate(hits.hits, first)
    )
    steps = (("Previous", look.offset - HITS), ("Next", look.offset + HITS))
    turning = (
        Choice(label, "turn", str(Search(look.words, max(offset, 0))))
        for label, offset in steps
        if -HITS < offset < hits.found
    )
    rows = (hit.row for hit in hits.hits)
    return Sheet(
        Message("past", (heading, *entries, Footer(f"{first} to {last} of {some or hits.found}"))),
        (*_numbered(rows, first), *turning, Choice(SHARE, "share", str(look))),
    )


def matches(rows: Iterable[IndexRow], wanted: str, found: Found, *, more: bool) -> Sheet:
    """Return the conversations that begin as somebody typed, to choose one of them."""
    listed = [*rows]
    number = f"More than {len(listed)}" if more else "Several"
    said = f"{number} match. Pick one, or type more."
    entries = (_entry(number, row, found) for number, row in enumerate(listed, 1))
    return Sheet(
        Message("past", (Heading(f"Answers like \u201c{wanted}\u201d"), Line(said), *entries)),
        tuple(_numbered(listed)),
    )


def answer(conversation: Conversation, row: IndexRow, look: Answer, found: Found) -> Sheet:
    """Return one answer of a conversation, the last one where the look names none."""
    runs = exchanges(conversation)
    if not runs:
        asked = (Quote(one.content) for one in conversation.messages if isinstance(one, UserMessage))
        unanswered = (Title(conversation.title), *asked, Line("It has no answer."))
        return Sheet(Message("past", unanswered))
    turn = len(runs) - 1 if look.turn is None else min(look.turn, len(runs) - 1)
    message, view = runs[turn]
    asker = found.askers.get(row.id)
    facts = [f"Question {turn + 1} of {len(runs)}."] if len(runs) > 1 else []
    if asker:
        facts.append(f"Started by {asker}." if len(runs) > 1 else f"Asked by {asker}.")
    at = _moment(message.finished_at) or _moment(row.updated_at)
    blocks = (
        Title(conversation.title),
        Entry(" ".join(facts) or "Asked", at=at, url=found.link(row)),
        Quote(view.question),
        *card.answer(view, message.stage3, now=0.0),
    )
    steps = (("Earlier question", turn - 1), ("Later question", turn + 1))
    turning = (
        Choice(label, "turn", str(Answer(row.id, step)))
        for label, step in steps
        if 0 <= step < len(runs)
    )
    looks = (
        Choice(label, "see", str(Detail(part, row.id, turn)))
        for part, label in _DETAILS.items()
        if _messages(view, part)
    )
    return Sheet(
        Message("past", blocks),
        (
            *turning,
            *looks,
            Choice("Transcript", "transcript", row.id),
            Choice(SHARE, "share", str(Answer(row.id, turn))),
        ),
    )


def detail(conversation: Conversation, look: Detail) -> Sheet:
    """Return the votes, or what is shown of one member; the other members are a button away."""
    runs = exchanges(conversation)
    view = runs[look.turn][1] if look.turn < len(runs) else None
    messages = _messages(view, look.part) if view else []
    if not view or look.rank >= len(messages):
        return Sheet(Message("past", (Title(conversation.title), Line(_NOTHING))))
    short = card.names(view)
    others = [
        Choice(words.clip(short[name], LABEL), "turn", str(replace(look, rank=rank)))
        for rank, (name, _) in enumerate(messages)
        if rank != look.rank
    ]
    looks = (
        Choice(label, "turn", str(replace(look, part=part)))
        for part, label in _DETAILS.items()
        if part not in (look.part, "votes")
    )
    left_out = f"Buttons show {MOST_MEMBERS} of {len(messages)} members; the transcript has all."
    _, message = messages[look.rank]
    blocks = (
        Title(conversation.title),
        *message.blocks,
        *([Line(left_out)] if len(messages) > MOST_MEMBERS else []),
    )
    return Sheet(
        Message("past", blocks),
        (
            *others[: MOST_MEMBERS - 1],
            *(looks if look.part != "votes" else ()),
            Choice("Transcript", "transcript", look.conversation_id),
            Choice(SHARE, "share", str(look)),
        ),
    )


def _messages(view: RunView, part: Part) -> list[tuple[str, Message]]:
    """Return each member's message with its name, best first; the votes are one for all."""
    if part == "votes":
        return [("", details.detail(view, "votes"))] if view.ranking and view.ranking.ballots else []
    if part == "member":
        return [
            (view.seats[each.seat].name, each.message) for each in thread(view) if each.seat is not None
        ]
    answered = (seat for seat in ranked(view) if seat.answer)
    return [(seat.name, details.detail(view, part, view.seats.index(seat))) for seat in answered]


def exchanges(conversation: Conversation) -> list[tuple[AssistantMessage, RunView]]:
    """Return a conversation's answers with the runs that led to them."""
    question = ""
    found: list[tuple[AssistantMessage, RunView]] = []
    for message in conversation.messages:
        if isinstance(message, UserMessage):
            question = message.content
        else:
            found.append((message, of_document(message, question, conversation)))
            question = ""
    return found


def farewell(
    what: str, about: str, selection: Selection, row: IndexRow | None, *, at_terminal: bool
) -> Sheet:
    """Ask somebody whether all of this is to be deleted; a terminal has no cards that remain.

    `row` is the one conversation that it is about, told from others of its title by date and id.
    """
    counted = words.listing(
        (
            words.count(len(selection.conversations) + len(selection.shared), "conversation"),
            words.count(len(selection.runs), "run"),
        )
    )
    has_asked = selection.conversations or selection.shared or selection.runs
    said = f"That is {counted}: questions, answers, and everything the models wrote."
    blocks = (
        Heading(f"Delete {what}?"),
        *([_told_apart(row)] if row else []),
        *([Line(said)] if has_asked else []),
        *([Line(_SHARED)] if selection.shared else []),
        *_heard(selection),
        *([Line("Runs in progress are stopped first.")] if _is_running(selection) else []),
        *([] if at_terminal else [Line(REMAINS)]),
        Line("This can't be undone."),
    )
    return Sheet(Message("past", blocks), (Choice("Delete", "forget", about),))


def _heard(selection: Selection) -> list[Line]:
    others = max(len(selection.heard), len(selection.read))
    if not others:
        return []
    said = (
        f"Messages in threads that were read for {words.count(others, 'question')} of others are deleted"
    )
    return [Line(f"{said}, too." if selection.runs or selection.conversations else f"{said}.")]


def _told_apart(row: IndexRow) -> Entry:
    question = words.clip(" ".join(row.question.split()), card.TITLE_LENGTH)
    return Entry(question, f"id {row.id[:8]}", _moment(row.updated_at))


def _is_running(selection: Selection) -> bool:
    return any(run.is_running for run in selection.runs)


def figures(statistics: Statistics, look: Figures) -> Sheet:
    """Return what a channel's councils came to, and how each member did."""
    title = f"Statistics of this channel, {_days(look.days)}"
    heading = Heading(title)
    if not (statistics.answered or statistics.failed or statistics.stopped):
        return Sheet(Message("past", (heading, Line("Nothing was asked here in this period."))))
    table = _members(statistics.members) if statistics.members else ()
    return Sheet(
        Message("past", (heading, Line(" ".join(_totals(statistics))), *table)),
        (Choice(SHARE, "share", str(look)),),
        Chart(title, statistics.members) if statistics.members else None,
    )


def _days(days: int) -> str:
    return "last day" if days == 1 else f"last {days:,} days"


def _totals(statistics: Statistics) -> Iterator[str]:
    yield f"{words.runs(statistics)}."
    yield f"{words.count(statistics.tokens, 'token')}, {words.paid(statistics)}."
    if statistics.seconds.value is not None:
        yield f"Half of the answers took less than {_behind(statistics.seconds, words.duration)}."


def _members(members: Iterable[MemberStatistics]) -> tuple[Block, ...]:
    counted = [*members]
    short = words.short_names(each.member for each in counted)
    header = ("Member", "Mean rank", "Came first", "Changed", "Failed", "Cost a run", "Time a call")
    rows = (
        (
            short[each.member],
            _behind(each.mean_rank, words.position),
            _behind(each.win_rate, _percent),
            _behind(each.change_rate, _percent),
            _behind(each.failure_rate, _percent),
            _behind(each.cost, lambda cost: words.money(Usage(cost=cost))),
            _behind(each.seconds, words.duration),
        )
        for each in counted
    )
    return (
        Table(header, tuple(rows)),
        Line(
            "In brackets: the number of runs behind a figure. Rank 1 is best. Changed: how often a "
            "member changed its answer when it could. Failed: how often one of its calls failed."
        ),
    )


def _behind(figure: Figure, said: Callable[[float], str]) -> str:
    return _NONE if figure.value is None else f"{said(figure.value)} ({figure.runs:,})"


def _percent(rate: float) -> str:
    return f"{rate:.0%}".replace("%", " %")


def _numbered(rows: Iterable[IndexRow], first: int = 1) -> Iterator[Choice]:
    for number, row in enumerate(rows, first):
        yield Choice(str(number), "see", str(Answer(row.id)))


def _entry(number: int, row: IndexRow, found: Found) -> Entry:
    """Say of a conversation who asked, who answered, how far they agreed, and its id's beginning."""
    facts = [found.askers.get(row.id)]
    if row.exchanges:
        facts.append(words.count(len(row.members), "member"))
    if row.agreement:
        facts.append(words.agreement(row.agreement))
    if row.exchanges != 1:
        facts.append(words.count(row.exchanges, "answer") if row.exchanges else "no answer")
    facts.append(f"id {row.id[:8]}")
    return Entry(
        f"{number}. {words.clip(row.title, card.TITLE_LENGTH)}",
        " \u00b7 ".join(filter(None, facts)),
        _moment(row.updated_at),
        found.link(row),
    )


def _moment(timestamp: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(timestamp or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else None
