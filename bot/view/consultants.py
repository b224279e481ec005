"""A consultation in the thread: its case, how sure its author is, and what the debate changed."""

from collections.abc import Iterator, Mapping

from bot.view.message import Block, Columns, Pairs, Prose
from bot.view.wording import card as wording
from council.consultation import HIGHEST, CodeSnippet, Consultation, Debate, fenced, scored_alternative

FULL, EMPTY = "\u25b0", "\u25b1"


def consultation(
    said: Consultation, short: Mapping[str, str], before: int | None = None
) -> Iterator[Block]:
    """Return a whole consultation; `short` names peers, `before` is the score of the one it corrects."""
    advice = said.response
    case = ((wording.IN_SHORT, advice.summary), (wording.APPROACH, advice.approach))
    yield Pairs((*case, *_standing(said, before)))
    yield Prose(advice.detailed)
    yield from _columns((wording.PROS, advice.pros), (wording.CONS, advice.cons))
    yield from _columns((wording.ALTERNATIVES, [*map(scored_alternative, advice.alternatives)]))
    yield from _columns((wording.CAVEATS, advice.caveats))
    yield from map(_code, advice.code_snippets)
    yield from _columns((wording.REFERENCES, advice.references))
    yield from _debate(said.debate, short)


def moved(said: Consultation, short: Mapping[str, str], before: int | None = None) -> Iterator[Block]:
    """Return what is new in a correction that keeps its answer."""
    yield Pairs((*_standing(said, before),))
    yield from _debate(said.debate, short)


def bar(score: int) -> str:
    """Draw a score as a bar of ten, with its number, so that it reads well without the bar."""
    return f"{FULL * score}{EMPTY * (HIGHEST - score)} {wording.score(score, HIGHEST)}"


def _standing(said: Consultation, before: int | None) -> Iterator[tuple[str, str]]:
    sure = said.confidence
    earlier = "" if before is None or before == sure.score else wording.before(before)
    yield wording.CONFIDENCE, ". ".join(filter(None, (f"{bar(sure.score)}{earlier}", sure.reasoning)))
    if sure.uncertainty_factors:
        yield wording.UNCERTAIN, "; ".join(sure.uncertainty_factors)
    if said.debate:
        changed = said.debate.position_changed
        yield wording.DEBATE, wording.POSITION_CHANGED if changed else wording.POSITION_KEPT


def _columns(*columns: tuple[str, list[str]]) -> Iterator[Block]:
    if filled := tuple((title, tuple(items)) for title, items in columns if items):
        yield Columns(filled)


def _code(snippet: CodeSnippet) -> Block:
    return Prose("\n\n".join(filter(None, (snippet.description, fenced(snippet)))))


def _debate(debate: Debate | None, short: Mapping[str, str]) -> Iterator[Block]:
    if debate is None:
        return
    objections = (
        wording.objection(short.get(each.target, each.target), each.severity, each.critique)
        for each in debate.critiques
    )
    ideas = (
        wording.idea(short.get(each.source, each.source), each.idea) for each in debate.incorporated_from
    )
    yield from _columns((wording.OBJECTS, [*objections]), (wording.TOOK_OVER, [*ideas]))
