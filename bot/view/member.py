"""One member of a run: who it is, how its answer fared, and the answer itself."""

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from bot.view.card import names
from bot.view.consultants import consultation
from bot.view.message import Block, Line, Pairs, Prose
from bot.view.state import Failed, RunView, Seat
from bot.view.wording import figures
from bot.view.wording import thread as wording
from bot.view.wording.names import listing
from bot.view.wording.service import failures
from council.calls import Citation
from council.document.changes import words_changed
from council.document.conversation import Stage1Result, Stage2_5Result, Stage2Result
from council.text.characters import clip

REASON_LENGTH = 200
"""How much is said of why a member kept its answer."""


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


def _standing(view: RunView, seat: Seat, answer: Stage1Result) -> Iterator[str]:
    if (rank := view.rank(seat.name)) and view.ranking:
        of = len(view.ranking.places)
        yield wording.standing(figures.ordinal(rank.number), of, tied=rank.shared)
    if failed := view.failed_must_haves(seat.name):
        yield wording.disqualified(listing(failed))
    removed, added = moved(seat, answer)
    if isinstance(seat.correcting, Failed):
        yield wording.correction_failed(
            failures.failure(seat.correcting.failure), wording.kept_text(seat.number)
        )
    elif removed or added:
        yield wording.changed(removed, added)
    elif seat.correction and seat.correction.maintained:
        yield wording.NOT_REVISED
    elif seat.correction:
        reason = " ".join((seat.correction.kept_because or "").split())
        yield wording.kept_because(clip(reason, REASON_LENGTH)) if reason else wording.KEPT
    for what, result in (("answer", seat.answer), ("correction", seat.correction)):
        if result and result.answered_by:
            yield wording.fallback(what, result.answered_by)
    is_corrected = seat.correction and not isinstance(seat.correcting, Failed)
    if is_corrected and seat.correction and not seat.correction.maintained and not peers(view, seat):
        yield wording.OWN_REVIEW


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
    yield from _sources(result.citations)


def score_of(answer: Stage1Result | None) -> int | None:
    """Return how sure a consultant was of its first answer, 1 to 10."""
    return answer.consultation.confidence.score if answer and answer.consultation else None


def _sources(citations: Sequence[Citation]) -> Iterator[Block]:
    """Return the pages that a text cites; their titles are other people's words."""
    if citations:
        yield Line(wording.SOURCES)
        yield Pairs(
            tuple(
                (clip(cited.title, 100) or urlsplit(cited.url).netloc, cited.url) for cited in citations
            )
        )
