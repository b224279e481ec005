"""One member of a run: who it is, how its answer fared, and the answer itself."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from bot.view.consultants import consultation
from bot.view.message import Block, Heading, Line, Pairs, Prose
from bot.view.state import Failed, RunView, Seat
from bot.view.wording import failures, figures
from bot.view.wording import thread as wording
from bot.view.wording.figures import listing, short_names
from council.calls import Citation
from council.document.changes import share_changed, words_changed
from council.document.results import Stage1Result, Stage2_5Result, Stage2Result
from council.text import clip, sentence_ends

BEGINNING = 400
"""How many characters of a corrected response a digest shows, about."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_RULE = re.compile(r" {0,3}\|?[ :]*-+[ :]*\|[ :|-]*$")
_REFERENCE = re.compile(r"\[\d{1,2}\](?!\()")
"""How Perplexity's models refer to a page that they cite."""
_LEADS = re.compile(r" {0,3}#{1,6} |\s*(?:[-*+]|\d{1,3}[.)])\s*$|\s*\*\*[^*]+\*\*:?\s*$|.*:\s*$")


def names(view: RunView) -> dict[str, str]:
    """Return everybody's short name in this run."""
    personas = {seat.name: seat.persona for seat in view.seats if seat.persona}
    short = short_names((seat.name for seat in view.seats), personas)
    # Members keep their short names when somebody who reads alike takes the chair later.
    taken = {*short.values()}
    chair = [writer.name for writer in view.chair] + ([view.final.model] if view.final else [])
    for name, said in short_names(chair).items():
        short.setdefault(name, name if said in taken else said)
    return short


def full_name(seat: Seat) -> str:
    """Return a member's model, with its persona, if any, in brackets."""
    model, _, slug = seat.name.partition("#")
    persona = seat.persona or slug
    return f"{model} ({persona})" if persona else model


def label_of(view: RunView, seat: Seat) -> str | None:
    """Return the label of a member's answer in this round."""
    return next((label for label, name in view.labels.items() if name == seat.name), None)


def peers(view: RunView, seat: Seat) -> list[Stage2Result]:
    """Return this round's reviews by everybody else."""
    return [peer.review for peer in view.seats if peer.review and peer.name != seat.name]


def final_text(seat: Seat, answer: Stage1Result) -> str:
    """Return a member's answer after its last correction."""
    return seat.correction.corrected_response if seat.correction else answer.response


def moved(seat: Seat, answer: Stage1Result) -> tuple[int, int]:
    """Count the words that corrections removed from a member's first answer, and those they added."""
    return words_changed(answer.response, final_text(seat, answer))


def standing(view: RunView, seat: Seat, answer: Stage1Result) -> Line:
    """Return how a member's answer fared, in a line."""
    return Line(" ".join(_standing(view, seat, answer)))


def share(seat: Seat, answer: Stage1Result) -> float:
    """Return how much of a member's first answer corrections changed, from 0 to 1."""
    return share_changed(answer.response, final_text(seat, answer))


def _standing(view: RunView, seat: Seat, answer: Stage1Result) -> Iterator[str]:
    if (rank := view.rank(seat.name)) and view.ranking:
        of = len(view.ranking.places)
        yield wording.standing(figures.ordinal(rank.number), of, tied=rank.shared)
    if failed := view.failed_must_haves(seat.name):
        yield wording.disqualified(listing(failed))
    if isinstance(seat.correcting, Failed) and seat.correcting.failure.cause == "stopped":
        yield wording.NOT_CORRECTED
    elif isinstance(seat.correcting, Failed):
        yield wording.correction_failed(
            failures.failure(seat.correcting.failure), wording.kept_text(seat.number)
        )
    elif any(moved(seat, answer)):
        yield wording.changed_much(share(seat, answer))
    elif seat.correction and seat.correction.maintained:
        yield wording.NOT_REVISED
    elif seat.correction:
        yield wording.KEPT
    for what, result in (("answer", seat.answer), ("correction", seat.correction)):
        if result and result.answered_by:
            yield wording.fallback(what, result.answered_by)
    is_corrected = seat.correction and not isinstance(seat.correcting, Failed)
    if is_corrected and seat.correction and not seat.correction.maintained and not peers(view, seat):
        yield wording.OWN_REVIEW


def beginning(markdown: str, length: int = BEGINNING) -> str:
    """Return how a text begins, up to the end of a sentence or line at about `length` characters.

    Code or a table that would be cut is left out unless the text begins with it.
    """
    if len(markdown) <= length + length // 4:
        return markdown
    lines: list[str] = []
    room, fence, opened = length, "", 0
    for line in markdown[: 2 * length].split("\n"):
        mark = _FENCE.match(line)
        if len(line) > room:
            if not fence and (kept := _sentences_of(line, room, is_first=not any(lines))):
                lines.append(kept)
            break
        if mark and not fence:
            fence, opened = mark[1], len(lines)
        elif mark and mark[1].startswith(fence):
            fence = ""
        lines.append(line)
        room -= len(line) + 1
    if fence:
        lines = lines[:opened] if any(lines[:opened]) else [*lines, fence]
    rows = len(lines)
    while rows and "|" in lines[rows - 1]:
        rows -= 1
    if rows and any(map(_RULE.match, markdown.split("\n")[rows : len(lines) + 2])):
        lines = lines[:rows]
    while lines and (not lines[-1].strip() or _LEADS.match(lines[-1])):
        lines.pop()  # a heading alone says nothing
    return "\n".join(lines) or clip(markdown, length)


def _sentences_of(line: str, room: int, *, is_first: bool) -> str:
    """Return the sentences of a line that fit whole; of the first line, its words."""
    ends = sentence_ends(line, room)
    whole = [end for end in ends if not (line.count("**", 0, end) % 2 or line.count("`", 0, end) % 2)]
    if whole:
        return line[: whole[-1]].rstrip()
    return clip(line, max(room, 2)) if is_first else ""


def text(
    view: RunView, said: str, result: Stage1Result | Stage2_5Result, before: Stage1Result | None = None
) -> Iterator[Block]:
    """Return a member's answer, as a consultation if it is one; a correction with what came before."""
    if result.consultation:
        yield from consultation(result.consultation, names(view), score_of(before))
    else:
        yield Prose(said)
    if result.unstructured:
        yield Line(wording.unstructured(result.unstructured))
    if result.truncated:
        yield Line(wording.CUT_OFF)
    yield from _sources(result.citations, is_numbered=bool(_REFERENCE.search(said)))


def corrected(view: RunView, seat: Seat, answer: Stage1Result) -> Iterator[Block]:
    """Return a member's answer after its last correction, whole, below its heading."""
    yield Heading(wording.CORRECTED if seat.has_changed else wording.RESPONSE, 3)
    correction = seat.correction
    is_new = correction and (seat.has_changed or correction.consultation)
    result = correction if correction and is_new else answer
    yield from text(view, final_text(seat, answer), result, answer)


def score_of(answer: Stage1Result | None) -> int | None:
    """Return how sure a consultant was of its first answer, 1 to 10."""
    return answer.consultation.confidence.score if answer and answer.consultation else None


def _sources(citations: Sequence[Citation], *, is_numbered: bool) -> Iterator[Block]:
    """Return the pages that a text cites, numbered if it names numbers; titles are others' words."""
    if citations:
        titles = [clip(cited.title, 100) or urlsplit(cited.url).netloc for cited in citations]
        if is_numbered:
            titles = [f"[{number}] {title}" for number, title in enumerate(titles, 1)]
        yield Line(wording.SOURCES)
        yield Pairs(tuple(zip(titles, (cited.url for cited in citations), strict=True)))
