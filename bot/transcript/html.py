"""A conversation as one HTML file that needs nothing else: no network, and no script to be read.

Its words are those of the card and the thread, from the same view and messages as everywhere.
It adds what only a page can show: a tab per member, what each correction changed word by
word, and small charts.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from bot.transcript import diff, prose
from bot.transcript.charts import drawings
from bot.transcript.markdown import answered, begun, questions
from bot.view import message as m
from bot.view.run import RunView, Seat
from bot.view.thread import record
from bot.view.wording import figures
from bot.view.wording import transcript as wording
from bot.view.wording.card import agreement
from bot.view.wording.doors import program
from council.document.changes import words_changed
from council.document.conversation import Conversation
from council.text import language_tag
from council.usage import total

if TYPE_CHECKING:
    from jinja2 import Template

NAMED_BY_ID = ("discord", "slack")
"""Where a document's `user` is a number to people."""
UNDER = 1
"""The level of heading above a message's own headings: the title's."""
PART = 3
"""The level of heading that begins a part of a message."""
PAGE_LANGUAGE = "en"


def to_html(conversation: Conversation) -> str:
    """Return the whole conversation as a page.

    Long answers take a tenth of a second or more: don't call it on an event loop.
    """
    turns = questions(conversation)
    exchanges = [
        _exchange(asked, view, number, of_several=len(turns) > 1)
        for number, (asked, view) in enumerate(turns, 1)
    ]
    style, script = map(_asset, ("style.css", "script.js"))
    return _template().render(
        title=m.printable(conversation.title),
        spoken=_spoken(conversation.title),
        facts=[*_facts(conversation, [view for _, view in turns if view])],
        exchanges=exchanges,
        style=style,
        script=script,
        # A policy that lets only this style and this script through.
        policy=f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'",
    )


@cache
def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("bot.transcript", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template("page.html")


@cache
def _asset(name: str) -> Markup:
    """Return a style or script of ours, to be written into a page."""
    return Markup((files("bot.transcript") / "page" / name).read_text("utf-8"))  # noqa: S704 - ours


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _facts(conversation: Conversation, views: list[RunView]) -> Iterator[tuple[str, str]]:
    """Return the facts that a reader wants first."""
    if source := conversation.source:
        by = None if source.platform in NAMED_BY_ID else source.user
        by = program(source.program) if source.program is not None else by
        yield wording.ASKED, wording.place(source.platform, by)
    yield wording.BEGUN, begun(conversation)
    seated = dict.fromkeys(seat.short for view in views for seat in view.seats)
    if seated:
        yield wording.MEMBERS, ", ".join(seated)
    alike = dict.fromkeys(
        agreement(view.round.ranking.agreement_word) for view in views if view.round.ranking
    )
    if said := ", then ".join(filter(None, alike)):
        yield wording.RANKING, said
    if spent := [view.usage for view in views if view.usage]:
        free = all(view.profile.demonstration or view.profile.example for view in views)
        yield wording.COST, figures.NO_COST if free else figures.money(total(spent))
        yield wording.TOKENS, figures.tokens(total(spent))
    yield wording.CONVERSATION, conversation.id


def _exchange(
    asked: tuple[m.Block, ...], view: RunView | None, number: int, *, of_several: bool
) -> dict[str, object]:
    """Return what the page shows of one question and its answer; its `panels` are a tab per member."""
    this = f"question-{number}"
    sections = {each.key: each.blocks for each in record(view)} if view else {}
    common = [(key, html(said, under=UNDER)) for key, said in sections.items() if key.count(":") < 2]
    said = (
        html(answered(view), under=UNDER + 1) if view else html([m.Line(wording.NO_ANSWER)], under=UNDER)
    )
    return {
        "id": this,
        "heading": wording.question(number, of_several=of_several),
        "question": html(asked, under=UNDER + 1),
        "answer": said,
        "sections": [shown for key, shown in common if not key.startswith("reviews")],
        "reviews": [shown for key, shown in common if key.startswith("reviews")],
        "charts": [*drawings(view)] if view else [],
        "panels": [
            {
                "id": f"{this}-member-{place}",
                "name": seat.short,
                "standing": figures.rank(seat.rank) if seat.rank else "",
                "passages": rounds,
            }
            for place, seat in enumerate(view.ranked if view else (), 1)
            if (rounds := [*_rounds(seat, sections)])
        ],
    }


def _rounds(seat: Seat, sections: Mapping[str, tuple[m.Block, ...]]) -> Iterator[dict[str, object]]:
    """Yield a member's text in each round, with its correction's changes, and what its peers said."""
    previous: Seat | None = None
    for each in seat.view.every_round:
        held, which = each.seat(seat.name), f"{each.number}:{seat.name}"
        if held and (said := sections.get(f"member:{which}")):
            reviews = html(sections.get(f"reviews:{which}", ()), under=UNDER + 1)
            shown = _answers(said, each.number, held, previous)
            yield {"round": each.number, "answers": shown, "reviews": reviews}
        previous = held


def _answers(said: tuple[m.Block, ...], number: int, seat: Seat, previous: Seat | None) -> Markup:
    """Return a member's texts, with its correction's changes marked in both.

    The text before is above the one after, in every round.
    """
    before, after = _texts(seat, previous)
    at = next((at for at, block in enumerate(said) if block == after), None)
    if before is None or after is None or before == after or at is None:
        return html(said, under=UNDER)
    marked_before, marked_after = diff.correction(before.markdown, after.markdown, UNDER + PART)
    if before not in said:
        heading = max(place for place in range(at) if isinstance(said[place], m.Heading))
        said = (*said[:heading], m.Heading(wording.before(number), PART), before, *said[heading:])
    counted = _counted(*words_changed(before.markdown, after.markdown))
    facts = Markup('<p class="facts">{0}</p>\n').format(counted)
    written = {before.markdown: marked_before, after.markdown: facts + marked_after}
    return html(said, under=UNDER, written=written)


def _counted(removed: int, added: int) -> Markup:
    if not removed and not added:
        return Markup("{0}").format(wording.ONLY_FORM)
    return Markup("{0} <del>{1}</del> {2}, {3} <ins>{4}</ins> {5}.").format(
        *(wording.words(removed), wording.REMOVED, wording.ABOVE),
        *(wording.words(added), wording.ADDED, wording.HERE),
    )


def _texts(seat: Seat, previous: Seat | None) -> tuple[m.Prose | None, m.Prose | None]:
    """Return a member's text before its correction and after; of a consultation, its long part."""
    if seat.correction is None:
        return None, None
    earlier = (previous and previous.correction) or seat.answer
    if seat.correction.consultation and earlier and earlier.consultation:
        forms = earlier.consultation, seat.correction.consultation
        before, after = (each.response.detailed for each in forms)
    else:
        before, after = seat.correction.original_response, seat.correction.corrected_response
    return m.Prose(before), m.Prose(after)


# ── blocks ───────────────────────────────────────────────────────────────────────────────────────


def html(
    blocks: Iterable[m.Block], *, under: int, written: Mapping[str, Markup] = MappingProxyType({})
) -> Markup:
    """Return blocks as HTML, below a heading of level `under`.

    `written` has the HTML of texts that are shown in their own way.
    """
    return Markup("\n").join(_written(blocks, under, written))


def _written(blocks: Iterable[m.Block], under: int, written: Mapping[str, Markup]) -> Iterator[Markup]:
    level, caption, in_part = under + 1, "", False
    for block in blocks:
        match block:
            case m.Title(text) | m.Heading(text):
                depth = block.level if isinstance(block, m.Heading) else 1
                level, caption = under + depth, text
                if in_part:
                    yield Markup("</section>")
                in_part = depth >= PART
                if in_part:
                    slug = "-".join(text.lower().split())
                    yield Markup('<section class="part {0}">').format(slug)
                yield Markup("<h{0}>{1}</h{0}>").format(level, _name(text))
            case (
                m.Line(text) | m.Entry(text) | m.Footer(text)
            ):  # a transcript has no list of what was found
                facts = Markup(' class="facts"') if isinstance(block, m.Footer) else ""
                yield Markup("<p{0}>{1}</p>").format(facts, _name(text))
            case m.Pairs(rows):
                yield _pairs(rows)
            case m.Table(header, rows):
                yield _table(header, rows, caption)
            case m.Columns(columns):
                yield _columns(columns)
            case m.Prose(markdown) | m.Quote(markdown):
                tag = "blockquote" if isinstance(block, m.Quote) else "div"
                yield Markup('<{0} class="prose" dir="auto"{1}>{2}</{0}>').format(
                    tag, _spoken(markdown), written.get(markdown) or prose.html(markdown, level)
                )
            case m.Diff():
                pass  # the page marks what changed in a way of its own
    if in_part:
        yield Markup("</section>")


def _spoken(text: str) -> Markup:
    """Return the attribute that tells a screen reader a text's language, if it isn't the page's."""
    tag = language_tag(text)
    return Markup(' lang="{0}"').format(tag) if tag not in (None, PAGE_LANGUAGE) else Markup("")


def _name(text: str) -> Markup:
    # Names and titles are other people's: a change of writing direction ends with them.
    return Markup("<bdi>{0}</bdi>").format(text)


def _pairs(rows: Iterable[tuple[str, str]]) -> Markup:
    items = (
        Markup("<div><dt>{0}</dt><dd>{1}</dd></div>").format(_name(name), _name(said))
        for name, said in rows
    )
    return Markup('<dl class="pairs">{0}</dl>').format(Markup("").join(items))


def _columns(columns: Iterable[tuple[str, Iterable[str]]]) -> Markup:
    lists = (
        Markup('<div><p class="list">{0}</p><ul>{1}</ul></div>').format(
            _name(title), Markup("").join(Markup("<li>{0}</li>").format(_name(item)) for item in items)
        )
        for title, items in columns
    )
    return Markup('<div class="columns">{0}</div>').format(Markup("").join(lists))


def _table(header: Iterable[str], rows: Iterable[Iterable[str]], caption: str) -> Markup:
    head = Markup("").join(Markup('<th scope="col">{0}</th>').format(_name(each)) for each in header)
    body = Markup("\n").join(
        Markup("<tr>{0}</tr>").format(
            Markup("").join(Markup("<td>{0}</td>").format(_name(cell)) for cell in row)
        )
        for row in rows
    )
    return Markup(
        '<div class="wide" role="group" aria-label="{2}" tabindex="0"><table>'
        "<caption>{2}</caption><thead><tr>{0}</tr></thead>\n<tbody>{1}</tbody></table></div>"
    ).format(head, body, escape(caption))
