"""Telling a correction from an echo: what a model that is asked to correct its answer may send instead.

Small models repeat the prompt, the reviews or another answer, send a ranking, decline, or change
language. What was in the author's own answer already is its own, and a few words prove nothing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from council.errors import Cause
from council.reviews.ballot_text import names_ranking, parse_ranking
from council.text.language import language, script

ENOUGH = 30
"""Words from which a reply can be told from what it shares with other texts."""
NEW = 0.4
"""The share of a reply's words that aren't its author's from which it matters where they come from."""
TAKEN = 0.7
"""The share of those new words from which they are somebody else's."""
ALL = 0.9
"""The share of a reply's words from which it is nothing else."""
RUN = 5
"""Words in a row that are taken, not found twice by chance."""
SHORT = 80
"""Words up to which a reply that begins by declining does nothing else."""

_ASKS = ("?", "\uff1f", "\u061f", "\u037e", "\u055e")
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|[^\W_]+")
_ABOUT_A_LABEL = re.compile(r"^\W*(?:\d{1,2}[.)]\W*)?(?:Response|RESPONSE|Answer) [A-Z]\b", re.MULTILINE)
_LABEL = re.compile(r"\b(?:Response|RESPONSE|Answer) [A-Z]\b")
_DECLINES = re.compile(
    r"\W*(?:"
    r"(?:(?:I'm|I am|sorry|I apologi[sz]e|unfortunately|as an AI)\b[^.!?]{0,60}?[ ,])?"
    r"I (?:can't|cannot|can not|won't|will not|am unable to|am not able to|'m unable to)"
    r" (?:assist|help|comply|fulfil|provide|answer|discuss|continue)\b"
    r"|(?:es tut mir leid|leider)?[ ,]*(?:aber )?(?:ich kann|kann ich) (?:\w+ ){0,4}nicht (?:\w+ ){0,2}"
    r"(?:helfen|weiterhelfen|antworten|beantworten)"
    r"|(?:je suis )?(?:désolée?)?[ ,]*(?:mais )?je ne (?:peux|puis) pas (?:\w+ ){0,2}"
    r"(?:aider|répondre|fournir)"
    r"|(?:lo siento)?[ ,]*(?:pero )?no puedo (?:\w+ ){0,2}(?:ayudar|responder|proporcionar)"
    r"|(?:mi dispiace)?[ ,]*(?:ma )?non posso (?:\w+ ){0,2}(?:aiutar|risponder|fornir)"
    r"|(?:desculpe)?[ ,]*(?:mas )?não posso (?:\w+ ){0,2}(?:ajudar|responder|fornecer)"
    r"|.{0,12}我?(?:无法|不能)(?:回答|提供|协助|帮助)|申し訳.{0,12}お(?:答え|手伝い)|죄송.{0,20}(?:답변|도와)"
    r")",
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


def fault(reply: str, given: CorrectionInputs, *, keeps: bool = False) -> Cause | None:
    """Return why a reply is no correction; `None` if it is one, or `keeps` the answer with a reason."""
    if reply == given.original:
        return None
    words = _words(reply)
    prompt = _words(given.prompt)
    if _repeats(words, prompt) or _is_question(reply, words, given):
        return "echoed_prompt"
    if keeps:
        return None
    if _ranks(reply, given):
        return "sent_ranking"
    if _declines(reply) and not _declines(given.original):
        return "declined"
    if cause := _taken_from(words, prompt, given):
        return cause
    return "changed_language" if _changes_language(reply, given) else None


def _repeats(words: Sequence[str], prompt: Sequence[str]) -> bool:
    """Return whether a reply is nothing but our own words, however few."""
    return len(words) >= RUN and sum(_covered(words, [prompt])) >= ALL * len(words)


def _is_question(reply: str, said: Sequence[str], given: CorrectionInputs) -> bool:
    """Return whether a reply only asks the question again, or a part of it, which the answer didn't."""
    asked = _words(given.question)
    if said == _words(given.original):
        return False
    asks_a_part = reply.rstrip().endswith(_ASKS) and len(said) >= RUN
    return said == asked or (asks_a_part and f" {' '.join(said)} " in f" {' '.join(asked)} ")


def _ranks(reply: str, given: CorrectionInputs) -> bool:
    """Return whether a reply is a ranking or a review: whoever answers doesn't know the labels."""
    if parse_ranking(given.original, given.labels) or _LABEL.search(
        f"{given.original}\n{given.question}"
    ):
        return False
    if parse_ranking(reply, given.labels) or names_ranking(reply):
        return True
    return len(_LABEL.findall(reply)) > 1 or bool(_ABOUT_A_LABEL.search(reply))


def _declines(text: str) -> bool:
    return bool(_DECLINES.match(text)) and len(_words(text)) <= SHORT


def _taken_from(words: Sequence[str], prompt: Sequence[str], given: CorrectionInputs) -> Cause | None:
    """Return whose words most of a reply's new ones are."""
    if len(words) < ENOUGH:
        return None
    own = _covered(words, [_words(given.original)])
    new = [at for at in range(len(words)) if not own[at]]
    if len(new) < NEW * len(words):
        return None
    sources: tuple[tuple[Cause, Iterable[Sequence[str]]], ...] = (
        ("echoed_prompt", [prompt, _words(given.question)]),
        ("echoed_reviews", map(_words, given.reviews)),
        ("echoed_answer", map(_words, given.others)),
    )
    shares: list[tuple[int, Cause]] = [
        (sum(map(_covered(words, texts).__getitem__, new)), cause) for cause, texts in sources
    ]
    most, cause = max(shares, key=lambda share: share[0])
    return cause if most >= TAKEN * len(new) else None


def _changes_language(reply: str, given: CorrectionInputs) -> bool:
    """Return whether a reply is in neither its question's language nor its author's."""
    if script(reply) not in (script(given.question), script(given.original)):
        return True
    said, asked = language(reply), language(given.question)
    return bool(said and asked) and said not in (asked, language(given.original))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _covered(words: Sequence[str], texts: Iterable[Sequence[str]]) -> list[bool]:
    """Return for each word whether it is in a run of words that one of the texts has, too."""
    runs = [*_runs(words)]
    own = {*runs}
    shared = {run for text in texts for run in own.intersection(_runs(text))}
    covered = [False] * len(words)
    for at, run in enumerate(runs):
        if run in shared:
            covered[at : at + RUN] = [True] * RUN
    return covered


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[at:] for at in range(RUN)), strict=False)
