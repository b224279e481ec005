"""Past answers as messages: pages of them, one answer, its details, a channel's figures.

Pure: everything shown was looked up in the reader's scope before. A sheet has its message's buttons.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Literal

from bot.render.dialect import plain_text
from bot.service.commands import LONGEST_WORDS, MOST_AT_ONCE
from bot.view import card
from bot.view.message import (
    Block,
    Entry,
    Footer,
    Heading,
    Line,
    Message,
    Pairs,
    Quote,
    Table,
    Title,
    printable,
)
from bot.view.run import run_views
from bot.view.thread import opened
from bot.view.wording import commands, past, worth
from bot.view.wording import figures as figures_wording
from bot.view.wording.figures import short_names
from council.document.conversation import Conversation, exchanges
from council.text import clip, sentence_ends, sentences
from council.usage import Usage
from council.worth.intervals import exact_share
from storage.forgetting import Selection
from storage.index.past_answers import Cursor, Hits, Page, contexts
from storage.index.rows import IndexRow
from storage.index.statistics import ENOUGH, Figure, MemberStatistics, Statistics

Verb = Literal["turn", "see", "share", "transcript", "ask", "forget", "cancel", "help"]
"""What a button does: turn a page, show another, show all, give the file, ask, delete or not, help."""


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of the channel's conversations: the newest, or those next to a cursor."""

    count: int
    before: Cursor | None = None
    after: Cursor | None = None

    def __str__(self) -> str:
        where = f"<{self.before}" if self.before else f">{self.after}" if self.after else ""
        return f"history:{self.count}:{where}"


@dataclass(frozen=True, slots=True)
class Search:
    """A page of a search's hits, from `offset` on."""

    words: str
    offset: int = 0

    def __str__(self) -> str:
        return f"search:{self.offset}:{self.words}"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a conversation: the last one, or that of exchange `turn`, counted from 0."""

    conversation_id: str
    turn: int | None = None

    def __str__(self) -> str:
        return f"answer:{self.conversation_id}:{'' if self.turn is None else self.turn}"


@dataclass(frozen=True, slots=True)
class Detail:
    """All of one member of an answer; `rank` counts from 0."""

    conversation_id: str
    turn: int
    rank: int = 0

    def __str__(self) -> str:
        return f"member:{self.conversation_id}:{self.turn}:{self.rank}"


@dataclass(frozen=True, slots=True)
class Figures:
    """The channel's statistics for the last days."""

    days: int

    def __str__(self) -> str:
        return f"figures:{self.days}"


Look = HistoryPage | Search | Answer | Detail | Figures


def read(text: str) -> Look:
    """Read what a button says. Raises `ValueError` if it isn't one of our buttons."""
    kind, _, rest = printable(text).partition(":")
    match kind:
        case "history":
            count, _, where = rest.partition(":")
            cursor = Cursor.parse(where[1:]) if where else None
            before, after = (cursor, None) if where.startswith("<") else (None, cursor)
            return HistoryPage(min(_number(count, 1), MOST_AT_ONCE), before, after)
        case "search":
            offset, _, words = rest.partition(":")
            return Search(words[:LONGEST_WORDS], _number(offset))
        case "answer":
            conversation_id, turn = rest.split(":")
            return Answer(conversation_id, _number(turn) if turn else None)
        case "member" | "corrected" | "changes" | "reviews":
            conversation_id, *place = rest.split(":")
            turn, rank = map(_number, place)
            return Detail(conversation_id, turn, rank)
        case "figures":
            return Figures(_number(rest, 1))
        case _:
            raise ValueError(f"no such look: {kind}")


def _number(text: str, least: int = 0) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4) or int(text) < least:
        raise ValueError(f"no number from {least} to 9999: {text}")
    return int(text)


@dataclass(frozen=True, slots=True)
class Choice:
    """A button below past answers: its label, what it does, and with what."""

    label: str
    verb: Verb
    about: str


Link = Callable[[IndexRow], str | None]
"""Returns the address of a conversation on its platform, if it has one."""

HITS, LISTED = 5, 10
"""How many hits a page of a search has, and a list to choose from."""
RANKED = 1_000
LOOKED_AT, SENTENCE = 3_000, 200
"""Characters of an answer in which its first sentence is looked for, and the most of that."""
MOST_MEMBERS = 20
LABEL = 40
TOLERATED = 0.05
"""The share of changed recommendations above which, for certain, skipping loses too much."""
_MARKDOWN = re.compile(
    r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)|~~|`+"  # emphasis, code
    r"|^ {0,3}(?:#{1,6}|>|[-+*]) "  # headings, quotes, items
    r"|!?\[(?=[^\]\n]*\]\()|(?<=\S)\]\([^)\s]*\)?",  # links
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Of conversations by id, beyond their rows: where they are, who began them, what they hold."""

    link: Link
    askers: Mapping[str, str]
    conversations: Mapping[str, Conversation]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A message that answers one person, and the buttons below it.

    `about` are the ids of the conversations that it shows; one that `compares` has members' figures.
    """

    message: Message
    choices: tuple[Choice, ...] = ()
    compares: bool = False
    about: tuple[str, ...] = ()


def shared(sheet: Sheet, by: str) -> Sheet:
    """Return a sheet as the whole channel sees it: with who shared it and without page buttons."""
    blocks = (Line(f"{by} shared this from the council's past answers."), *sheet.message.blocks)
    choices = tuple(choice for choice in sheet.choices if choice.verb in ("see", "transcript"))
    return replace(sheet, message=Message("shared", blocks), choices=choices)


def history(page: Page, look: HistoryPage, found: Whereabouts) -> Sheet:
    if not page.rows:
        is_first = look.before is None and look.after is None
        said = "There is no answer here yet. Ask with /council."
        said = said if is_first else "There is nothing here."
        return Sheet(Message("past", (Heading(past.HISTORY), Line(said))))
    newer = HistoryPage(look.count, after=page.newer) if page.newer else None
    older = HistoryPage(look.count, before=page.older) if page.older else None
    steps = ((figures_wording.NEWER, newer), (figures_wording.OLDER, older))
    turning = (Choice(label, "turn", str(step)) for label, step in steps if step)
    entries = tuple(_entry(number, row, found) for number, row in enumerate(page.rows, 1))
    return Sheet(
        Message("past", (Heading(past.HISTORY), *entries)),
        (*_opening(page.rows), *turning, Choice(figures_wording.SHARE, "share", str(look))),
        about=tuple(row.id for row in page.rows),
    )


def search(hits: Hits, look: Search, found: Whereabouts) -> Sheet:
    heading = Heading(f"Results for \u201c{look.words}\u201d")
    if not hits.rows:
        said = "No more results." if look.offset else "No answer in this channel has all these words."
        return Sheet(Message("past", (heading, Line(said))))
    first, last = look.offset + 1, look.offset + len(hits.rows)
    said = past.page(first, last, hits.found, RANKED)
    context = contexts(look.words, found.conversations.values())
    entries = (_entry(n, row, found, context.get(row.id)) for n, row in enumerate(hits.rows, first))
    steps = ((figures_wording.PREVIOUS, look.offset - HITS), (figures_wording.NEXT, look.offset + HITS))
    turning = (
        Choice(label, "turn", str(Search(look.words, max(offset, 0))))
        for label, offset in steps
        if -HITS < offset < hits.found
    )
    return Sheet(
        Message("past", (heading, *entries, Footer(said))),
        (*_opening(hits.rows, first), *turning, Choice(figures_wording.SHARE, "share", str(look))),
        about=tuple(row.id for row in hits.rows),
    )


def without_marks(excerpt: tuple[tuple[str, bool], ...]) -> tuple[tuple[str, bool], ...]:
    """Return an excerpt of Markdown as plain text; its marks may have lost their other half."""
    whole = "".join(text for text, _ in excerpt)
    dropped = {at for found in _MARKDOWN.finditer(whole) for at in range(*found.span())}
    numbers = count()
    parts = (
        ("".join(char for char in text if next(numbers) not in dropped), marked)
        for text, marked in excerpt
    )
    return tuple((text, marked) for text, marked in parts if text)


def matches(rows: Sequence[IndexRow], found: Whereabouts, *, deletes: bool) -> Sheet:
    listed = rows[:LISTED]
    some = f"More than {LISTED}" if len(rows) > LISTED else len(rows)
    said = f"{some} answers fit. Pick one, or type more words."
    entries = (_entry(number, row, found) for number, row in enumerate(listed, 1))
    buttons = (
        [Choice(f"{figures_wording.DELETE} {n}", "ask", row.id) for n, row in enumerate(listed, 1)]
        if deletes
        else _opening(listed)
    )
    return Sheet(Message("past", (Heading(said), *entries)), (*buttons,))


def answer(conversation: Conversation, row: IndexRow, look: Answer, found: Whereabouts) -> Sheet:
    runs = run_views(conversation)
    if not runs:
        asked = (Quote(each.question) for each in exchanges(conversation))
        unanswered = (Title(conversation.title), *asked, Line("It has no answer."))
        return Sheet(Message("past", unanswered))
    turn = len(runs) - 1 if look.turn is None else min(look.turn, len(runs) - 1)
    view = runs[turn]
    asker = found.askers.get(row.id)
    facts = [f"Question {turn + 1} of {len(runs)}."] if len(runs) > 1 else []
    if asker:
        facts.append(f"Started by {asker}." if len(runs) > 1 else f"{past.ASKED} by {asker}.")
    at = _moment(view.message.finished_at) or _moment(row.updated_at)
    blocks = (
        Title(conversation.title),
        Entry(" ".join(facts) or past.ASKED, at=at, url=found.link(row)),
        Quote(view.question),
        *card.stored(view),
    )
    steps = ((figures_wording.EARLIER, turn - 1), (figures_wording.LATER, turn + 1))
    turning = (
        Choice(label, "turn", str(Answer(row.id, step)))
        for label, step in steps
        if 0 <= step < len(runs)
    )
    has_members = any(seat.answer for seat in view.ranked)
    looks = [Choice(figures_wording.OPEN, "see", str(Detail(row.id, turn)))] if has_members else []
    return Sheet(
        Message("past", blocks),
        (
            *turning,
            *looks,
            Choice(figures_wording.TRANSCRIPT, "transcript", row.id),
            Choice(figures_wording.SHARE, "share", str(Answer(row.id, turn))),
        ),
        about=(row.id,),
    )


def detail(conversation: Conversation, look: Detail) -> Sheet:
    runs = run_views(conversation)
    view = runs[look.turn] if look.turn < len(runs) else None
    seats = [seat for seat in view.ranked if seat.answer] if view else []
    if not view or look.rank >= len(seats):
        missing = Line("This is not on record for this answer.")
        return Sheet(Message("past", (Title(conversation.title), missing)))
    others = [
        Choice(clip(seat.short, LABEL), "turn", str(replace(look, rank=rank)))
        for rank, seat in enumerate(seats)
        if rank != look.rank
    ]
    left_out = f"Buttons show {MOST_MEMBERS} of {len(seats)} members; the transcript has them all."
    blocks = (
        Title(conversation.title),
        *opened(view, view.seats.index(seats[look.rank])).blocks,
        *([Line(left_out)] if len(seats) > MOST_MEMBERS else []),
    )
    return Sheet(
        Message("past", blocks),
        (
            *others[: MOST_MEMBERS - 1],
            Choice(figures_wording.TRANSCRIPT, "transcript", look.conversation_id),
            Choice(figures_wording.SHARE, "share", str(look)),
        ),
        about=(look.conversation_id,),
    )


def ask_to_forget(
    what: str, about: str, selection: Selection, row: IndexRow | None, *, at_terminal: bool
) -> Sheet:
    """Ask somebody whether to delete all of this; a terminal has no cards.

    `row` is the conversation it is about, distinguished from others with its title by date and id.
    """
    which: list[Entry] = []
    if row:
        title, at = clip(row.question, card.TITLE_LENGTH), _moment(row.updated_at)
        which.append(Entry(title, f"id {row.id[:8]}", at))
    lines = map(Line, _consequences(selection, at_terminal=at_terminal))
    blocks = (Heading(f"Delete {what}?"), *which, *lines)
    choices = (Choice(figures_wording.DELETE, "forget", about), Choice("Cancel", "cancel", about))
    return Sheet(Message("past", blocks), choices)


def _consequences(selection: Selection, *, at_terminal: bool) -> Iterator[str]:
    number, own, shared = figures_wording.count, selection.conversations, selection.shared
    if own or shared or selection.runs:
        runs, held = number(len(selection.runs), "run"), number(len(own) + len(shared), "conversation")
        yield f"That is {held} and {runs}: questions, answers, and everything the models wrote."
    if shared:
        yield "Where others have asked in the same conversation, their questions and answers stay."
    if others := max(len(selection.heard), len(selection.read)):
        asked = f"{number(others, 'question')} asked by others"
        too = ", too" if selection.runs or own else ""
        yield f"Thread messages that were read for {asked} will be deleted{too}."
    if selection.votes:
        yield f"{number(selection.votes, 'vote')} on other people's answers will be deleted."
    if tokens := selection.tokens:
        named = figures_wording.listing(tokens)
        yield f"{number(len(tokens), 'token')} of programs will be revoked: {named}."
    if selection.running:
        yield "Runs in progress will be stopped first."
    if not at_terminal:
        yield (
            "The council's own messages about it are deleted, too: cards, threads, and what was shared. "
            "What people have written stays, and so do transcripts that somebody has saved, and backups."
        )
    if selection.what == "channel":
        yield "The channel's settings stay; /council-config resets them."
    yield "This can't be undone."


def statistics(found: Statistics, look: Figures) -> Sheet:
    days = "day" if look.days == 1 else f"{look.days:,} days"
    heading = Heading(f"Statistics of this channel, last {days}")
    if not (found.answered or found.failed or found.stopped):
        return Sheet(Message("past", (heading, Line("Nothing was asked here in this period."))))

    def place(member: MemberStatistics) -> tuple[bool, float]:
        vote = member.mean_rank.value
        return vote is None or member.mean_rank.runs < ENOUGH, vote or 0.0

    totals = [f"{figures_wording.runs(found)}."]
    if found.tokens:
        totals.append(f"{figures_wording.count(found.tokens, 'token')}.")
    if found.seconds.value is not None:
        half = f"{figures_wording.duration(found.seconds.value)} ({found.seconds.runs:,})"
        totals.append(f"Half of the answers took less than {half}.")
    members = sorted(found.members, key=place)
    table = _members(members) if members else ()
    return Sheet(
        Message("past", (heading, Line(" ".join(totals)), *table, *_votes(found), *_worth(found))),
        (Choice(figures_wording.SHARE, "share", str(look)),),
        compares=bool(members),
    )


def _votes(statistics: Statistics) -> tuple[Block, ...]:
    rows = tuple(
        (each.name or "profile not on record", commands.counted(each.helpful, each.unhelpful))
        for each in statistics.by_profile
    )
    return (Heading("Readers' votes by profile", 3), Pairs(rows)) if rows else ()


def _members(counted: Sequence[MemberStatistics]) -> tuple[Block, ...]:
    short = short_names(each.member for each in counted)
    rows = (
        (
            short[each.member],
            f"{each.runs:,}",
            _vote(each.mean_rank),
            past.UNKNOWN
            if each.cost.value is None
            else figures_wording.money(Usage(cost=each.cost.value)),
        )
        for each in counted
    )
    rest = (
        (
            short[each.member],
            *map(_rate, (each.win_rate, each.change_rate, each.failure_rate)),
            past.UNKNOWN if each.seconds.value is None else figures_wording.duration(each.seconds.value),
        )
        for each in counted
    )
    return (
        Table(past.HEADER, tuple(rows)),
        Line(
            "Average vote: the mean place that the reviewers gave its answers, 1 is best. Cost: per run."
        ),
        Table(past.REST, tuple(rest)),
        Line(
            "First: ranked first. Changed: its answer, after reviews. Failed: in a call. Time: per call."
        ),
    )


def _rate(rate: Figure) -> str:
    if rate.value is None:
        return past.UNKNOWN
    if rate.runs >= worth.MEASURED:
        return worth.percent(rate.value)
    return worth.share(round(rate.value * rate.runs), rate.runs)


def _vote(vote: Figure) -> str:
    if vote.value is None:
        return past.UNKNOWN
    return figures_wording.position(vote.value) if vote.runs >= ENOUGH else "too few to compare"


def _opening(rows: Iterable[IndexRow], first: int = 1) -> Iterator[Choice]:
    for number, row in enumerate(rows, first):
        yield Choice(f"{past.OPEN} {number}", "see", str(Answer(row.id)))


def _entry(
    number: int, row: IndexRow, found: Whereabouts, context: tuple[tuple[str, bool], ...] | None = None
) -> Entry:
    held = found.conversations.get(row.id)
    answered = held.answers[-1:] if held else []
    answers = figures_wording.count(row.exchanges, "answer") if row.exchanges else "no answer"
    facts = (found.askers.get(row.id), answers if row.exchanges != 1 else None)
    said = tuple((first_sentence(each.stage3.response), False) for each in answered)
    return Entry(
        f"{number}. {clip(row.title, card.TITLE_LENGTH)}",
        " \u00b7 ".join(filter(None, facts)),
        _moment(row.updated_at),
        found.link(row),
        without_marks(context) if context else said,
    )


def first_sentence(markdown: str) -> str:
    """Return how an answer begins, without its markup, headings, tables and code."""
    lines = plain_text(markdown[:LOOKED_AT], "heading", "table", "fence").splitlines()
    # A line without a full stop is a heading by another name, if others have one.
    whole = (line for line in lines if any(sentence_ends(line)))
    return clip(next((each for line in (*whole, *lines) for each in sentences(line)), ""), SENTENCE)


def _moment(timestamp: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(timestamp or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _worth(found: Statistics) -> tuple[Block, ...]:
    """Return what corrections and skipped reviews were worth, from 3 runs on; from 10 in percent."""
    heading = Heading("What the council was worth", 3)
    if found.answered < worth.COMPARED:
        few = "Fewer than 3 answers: too few to say what reviews and corrections were worth."
        return (heading, Line(few))
    made = sum(each.objections for each in found.members)
    objections = [worth.objections(made, sum(each.held for each in found.members))] if made else []
    said = [*map(Line, (*objections, *_depth(found)))]
    return (heading, *said) if said else ()


def _depth(found: Statistics) -> Iterator[str]:
    """Return what `auto` skipped, saved and lost, where it is used."""
    depth = found.depth
    if not depth.auto:
        return
    full = max(0, found.answered - depth.quick - depth.auto)
    yield worth.depths(depth.quick, depth.auto, depth.skipped, full)
    low, high = exact_share(depth.changed, depth.audited) if depth.audited else (0.0, 1.0)
    if depth.agreed:
        yield worth.audit(depth.changed, depth.audited, depth.undecided, low, high)
    if depth.skipped:
        yield worth.saved_in_all(depth.saved, depth.priced, depth.skipped)
    if depth.judged_by_member:
        judged = f"In {figures_wording.count(depth.judged_by_member, 'run')} {worth.JUDGED_BY_MEMBER}"
        yield f"{judged}: read these figures with that in mind."
    if depth.audited >= worth.MEASURED and low > TOLERATED:
        yield (
            f"Set depth to full: where auto would skip the reviews, they change {low * 100:.0f} to "
            f"{high * 100:.0f} % of the recommendations."
        )
