"""A consultation in the thread: its case, how sure its author is, and what the debate changed."""

from collections.abc import Iterator, Mapping

from bot.view.message import Block, Columns, Pairs, Prose
from council.consultation import HIGHEST, CodeSnippet, Consultation, Debate, fenced, weighed

FULL, EMPTY = "\u25b0", "\u25b1"


def consultation(
    said: Consultation, short: Mapping[str, str], before: int | None = None
) -> Iterator[Block]:
    """Return a whole consultation; `short` names peers, `before` is the score of the one it corrects."""
    advice = said.response
    case = (("In short", advice.summary), ("Approach", advice.approach))
    yield Pairs((*case, *_standing(said, before)))
    yield Prose(advice.detailed)
    yield from _columns(("Pros", advice.pros), ("Cons", advice.cons))
    yield from _columns(("Alternatives", [*map(weighed, advice.alternatives)]))
    yield from _columns(("Caveats", advice.caveats))
    yield from map(_code, advice.code_snippets)
    yield from _columns(("References", advice.references))
    yield from _debate(said.debate, short)


def moved(said: Consultation, short: Mapping[str, str], before: int | None = None) -> Iterator[Block]:
    """Return what is new in a correction whose answer is the same."""
    yield Pairs((*_standing(said, before),))
    yield from _debate(said.debate, short)


def bar(score: int) -> str:
    """Draw a score as a bar of ten, with its number: all of it can be read without the bar."""
    return f"{FULL * score}{EMPTY * (HIGHEST - score)} {score} of {HIGHEST}"


def _standing(said: Consultation, before: int | None) -> Iterator[tuple[str, str]]:
    sure = said.confidence
    earlier = "" if before in (None, sure.score) else f" (before: {before})"
    yield "Confidence", ". ".join(filter(None, (f"{bar(sure.score)}{earlier}", sure.reasoning)))
    if sure.uncertainty_factors:
        yield "Uncertain because", "; ".join(sure.uncertainty_factors)
    if said.debate:
        changed = said.debate.position_changed
        yield "Debate", "says that it changed its position" if changed else "keeps its position"


def _columns(*columns: tuple[str, list[str]]) -> Iterator[Block]:
    if filled := tuple((title, tuple(items)) for title, items in columns if items):
        yield Columns(filled)


def _code(snippet: CodeSnippet) -> Block:
    return Prose("\n\n".join(filter(None, (snippet.description, fenced(snippet)))))


def _debate(debate: Debate | None, short: Mapping[str, str]) -> Iterator[Block]:
    if debate is None:
        return
    objections = (
        f"{short.get(each.target, each.target)} ({each.severity}): {each.critique}"
        for each in debate.critiques
    )
    ideas = (f"{short.get(each.source, each.source)}: {each.idea}" for each in debate.incorporated_from)
    yield from _columns(("Objects to", [*objections]), ("Took over", [*ideas]))
