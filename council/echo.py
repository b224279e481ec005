"""Telling a correction from an echo: what a model that is asked to correct its answer may send instead.

Small models repeat the prompt, the reviews or another answer, send a ranking, decline, or change
language. What was in the author's own answer already is its own, and a few words prove nothing.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from council.errors import Cause
from council.text import FEWEST, language, script

TAKEN = 0.6
"""The share of a reply's runs of words from which it is somebody else's text."""
RUN = 5
"""Words in a row that are taken, not found twice by chance."""
ENOUGH = 30
"""Words from which a reply can be told from what it shares with other answers."""
SHORT = 80
"""Words up to which a reply that begins by declining does nothing else."""

_ASKS = ("?", "\uff1f", "\u061f", "\u037e", "\u055e")
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|[^\W_]+")
_LABEL = re.compile(r"(?a:\b(?:Response|RESPONSE|Answer) [A-Z]\b)")
_LINE = r"^[^\w\n]*(?:\d{1,2}[.)][^\w\n]*)?"
_RANKS = re.compile(rf"{_LINE}(?:(?i:final ranking)\b|{_LABEL.pattern})", re.MULTILINE)
_DECLINES = re.compile(
    r"\W*(?:(?:(?:I['\u2019]m |I am |je suis )?(?:sorry|unfortunately|as an AI|I apologi[sz]e"
    r"|es tut mir leid|leider|désolée?)\b[^.!?]{0,60}?)?\b"
    r"(?:I(?: can['\u2019]t| can ?not| won['\u2019]t| will not|(?: a|['\u2019])m (?:unable|not able) to)"
    r" (?:assist|help|comply|fulfil|provide|answer|discuss|continue)"
    r"|(?:ich kann|kann ich)\b[^.!?]{0,60}?\bnicht\b[^.!?]{0,20}?(?:helfen|antworten)"
    r"|je ne (?:peux|puis) pas\b[^.!?]{0,20}?\b(?:aider|répondre|fournir)))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CorrectionInputs:
    """What a member read when it corrected its answer; `original` is that answer."""

    question: str
    original: str
    prompt: str
    reviews: Sequence[str]
    others: Sequence[str]
    labels: Sequence[str]


def fault(reply: str, given: CorrectionInputs) -> Cause | None:
    words, own, asked = _words(reply), _words(given.original), _words(given.question)
    if words == own:
        return None
    prompt = _words(given.prompt)
    only_asks = words == asked or (reply.rstrip().endswith(_ASKS) and _share(words, [asked]) == 1)
    if only_asks or _share(words, [prompt]) >= TAKEN:
        return "echoed_prompt"
    # An author doesn't know the labels, unless the question has some.
    earlier = f"{given.question}\n{given.original}"
    if not (_LABEL.search(earlier) or _RANKS.search(earlier)) and (
        _RANKS.search(reply) or len(_LABEL.findall(reply)) > 1
    ):
        return "sent_ranking"
    if _DECLINES.match(reply) and len(words) <= SHORT and not _DECLINES.match(given.original):
        return "declined"
    if len(words) >= ENOUGH:
        sources: dict[Cause, Iterable[Sequence[str]]] = {
            "echoed_prompt": [prompt, asked],
            "echoed_reviews": map(_words, given.reviews),
            "echoed_answer": map(_words, given.others),
        }
        shares: dict[Cause, float] = {each: _share(words, texts, own) for each, texts in sources.items()}
        cause = max(shares, key=shares.__getitem__)
        if shares[cause] >= TAKEN:
            return cause
    known = (given.question, given.original)
    spoken, *ours = map(language, (reply, *known))
    is_other = bool(spoken and ours[0]) and spoken not in ours
    is_other |= script(reply) not in map(script, known)
    return "changed_language" if is_other and len(words) >= FEWEST else None


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _share(words: Sequence[str], texts: Iterable[Sequence[str]], own: Sequence[str] = ()) -> float:
    """Return the share of runs of words that one of the texts has, but `own` hasn't."""
    runs = _runs(words)
    shared = {run for text in texts for run in {*runs}.intersection(_runs(text))}.difference(_runs(own))
    return sum(run in shared for run in runs) / max(1, len(runs))


def _runs(words: Sequence[str]) -> list[tuple[str, ...]]:
    return [*zip(*(words[at:] for at in range(RUN)), strict=False)]
