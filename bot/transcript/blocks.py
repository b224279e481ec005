"""A message's blocks as HTML."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from markupsafe import Markup, escape

from bot.transcript import prose
from bot.view import message as m
from council.text import language_tag

PART = 3
"""The level of heading that begins a part of a message."""
PAGE_LANGUAGE = "en"


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
                    tag, spoken(markdown), written.get(markdown) or prose.html(markdown, level)
                )
            case m.Diff():
                pass  # the page marks what changed in a way of its own
    if in_part:
        yield Markup("</section>")


def spoken(text: str) -> Markup:
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
