"""What people read about the files, pictures and links of a question.

Reasons are a few words without a full stop: they follow a file's name in brackets.
"""

from collections.abc import Iterator, Sequence

from bot.view.wording import to_install
from bot.view.wording.figures import count, listing
from council.document.conversation import FileRecord, LinkRecord

INSTALL_INPUTS = f"needs the extra inputs: {to_install('inputs')}"

NAMED = 3
"""How many files that aren't read for one reason are named; the rest is counted."""
NEEDS_LOGIN = "needs a login"
CHECKS_FOR_ROBOTS = "the site checks for robots"
ASKS_FOR_COOKIES = "asks for consent to cookies first"
UNKNOWN_ENCODING = "packed in an unknown way"
LINKS_FORBIDDEN = "links: whoever runs the bot has turned them off for this council."
LINKS_OFF = "links aren't read here; an admin can allow them"
NOT_GIVEN = "it can't be fetched"
NOBODY_SEES = "no member of this council sees pictures"


def too_large(most: int) -> str:
    size = f"{most // 1_000_000} MB" if most >= 1_000_000 else f"{most // 1000} kB"
    return f"larger than {size}"


def other_picture(kind: str) -> str:
    return f"a picture in {kind}; send it as JPEG or PNG"


def too_many(most: int, what: str) -> str:
    return f"only {most} {what} are read"


def pages_read(read: int, pages: int) -> str:
    left = f"pages {read + 1:,}\u2013{pages:,}" if pages > read + 1 else f"page {pages:,}"
    return f"{left} left out"


def characters_read(characters: int) -> str:
    return f"only the first {characters:,} characters"


def named_pages(pages: Sequence[int]) -> str:
    return f"{'page' if len(pages) == 1 else 'pages'} {listing([*_spans(pages)])}"


def _spans(pages: Sequence[int]) -> Iterator[str]:
    """Write page numbers, those that follow each other as a span."""
    start = 0
    for place in range(1, len(pages) + 1):
        if place == len(pages) or pages[place] != pages[place - 1] + 1:
            first, last = pages[start], pages[place - 1]
            yield f"{first:,}" if first == last else f"{first:,}\u2013{last:,}"
            start = place


def left_out(files: Sequence[tuple[str, str]]) -> str:
    reasons: dict[str, list[str]] = {}
    for name, why in files:
        reasons.setdefault(why, []).append(name)
    said: list[str] = []
    for why, names in reasons.items():
        more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
        said.append(f"{listing([*names[:NAMED], *more])} ({why})")
    return f"Not read: {', '.join(said)}."


def is_unread(file: FileRecord) -> bool:
    return file.omitted is not None and not file.characters and not file.seen_by


def files_read(
    files: Sequence[FileRecord], links: Sequence[LinkRecord] = (), earlier: Sequence[str] = ()
) -> Iterator[str]:
    """Return what was read of the files and links, who sees the pictures, and what was left out.

    `earlier` names the files of earlier questions that are read again.
    """
    read = [_read(file) for file in files if not is_unread(file)]
    pages = [_page(link) for link in links if link.words is not None]
    if read or pages:
        yield f"Read {'; '.join([*read, *pages])}."
    left = [(file.name, file.omitted or "") for file in files if is_unread(file)]
    left += [(_short(link.url), link.omitted or "") for link in links if link.words is None]
    if left:
        yield left_out(left)
    if earlier:
        yield f"Read again from earlier: {listing(earlier)}."


def _read(file: FileRecord) -> str:
    said = [file.name]
    if file.pages is not None:
        said.append(count(file.pages, "page"))
    if file.kind == "picture" and file.width and file.height:
        said.append(f"a picture, {file.width} \u00d7 {file.height}")
    more = [file.omitted] if file.omitted else []
    if file.seen_by:
        more.append(f"seen by {listing(file.seen_by)}")
    whole = ", ".join(said)
    return f"{whole} ({', '.join(more)})" if more else whole


def _page(link: LinkRecord) -> str:
    more = f" ({link.omitted})" if link.omitted else ""
    return f"{_short(link.url)}, {count(link.words or 0, 'word')}{more}"


def _short(url: str) -> str:
    """Return an address as people name it: without its scheme, and shortened."""
    bare = url.partition("://")[2] or url
    return bare.rstrip("/") if len(bare) <= 80 else f"{bare[:79]}\u2026"
