"""Scores replies without a model: numbers, choices, dates, code output and exact strings.

A checker reads what a reply gives as its final answer. It never guesses: what it can't read for certain
counts as wrong, so a reply that it calls right is right.
"""

import re
import unicodedata
from collections.abc import Callable, Hashable, Mapping
from datetime import date
from decimal import Decimal
from string import ascii_uppercase

from council.evaluation.dates import dates
from council.evaluation.final_answers import FinalAnswer, code_blocks, final_answer
from council.evaluation.items import CheckerName, EvalItem
from council.evaluation.quantities import Quantity, quantities
from council.text import language

LONGEST_EXACT = 80
"""Characters of a target that is still a string to match, and no text to judge."""
MOST_WORDS = 8
_ORDINALS: Mapping[str, int] = {
    "first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4,
    "erste": 0, "zweite": 1, "dritte": 2, "vierte": 3, "fünfte": 4,
    "première": 0, "premier": 0, "deuxième": 1, "troisième": 2, "quatrième": 3, "cinquième": 4,
    "primera": 0, "segunda": 1, "tercera": 2, "cuarta": 3, "quinta": 4,
}  # fmt: skip
_ORDINAL = re.compile(
    rf"\b({'|'.join(_ORDINALS)})n?\s+(?:one|option|choice|answer|antwort|möglichkeit|opción|respuesta|réponse)\b",
    re.IGNORECASE,
)
_LETTER = re.compile(
    r"^\W*([A-Z])\W*$"
    r"|^[(\[]?([A-Z])[)\].:](?:\s|$)"
    r"|\(([A-Z])\)"
    r"|\b(?:option|choice|answer|antwort|möglichkeit|opción|respuesta|réponse)\s+[(\"'*]*([A-Z])\b"
    r"|^([A-Z])\s[-\u2013\u2014]\s"
)
_OUTPUT = re.compile(
    r"^(?:the\s+)?(?:program|programm|code|it|output|ausgabe|das programm|le programme|el programa|la sortie"
    r"|la salida|die ausgabe)\s+(?:prints?|outputs?|is|gibt|ist|lautet|affiche|imprime|muestra|es|est)\s+",
    re.IGNORECASE,
)


def checker_of(item: EvalItem) -> CheckerName:
    """Return which checker scores replies to a question; `judge` for what only a reader can."""
    if isinstance(named := item.metadata.get("checker"), str):
        return _named(named)
    if item.choices:
        return "choice"
    if not item.target:
        return "judge"
    if all(_one_date(target) for target in item.target):
        return "date"
    if all(_one_quantity(target) for target in item.target):
        return "number"
    is_short = all(
        len(target) <= LONGEST_EXACT and len(target.split()) <= MOST_WORDS and "\n" not in target
        for target in item.target
    )
    return "exact" if is_short and not item.rubric else "judge"


def _named(name: str) -> CheckerName:
    found: Mapping[str, CheckerName] = {
        each: each for each in ("number", "choice", "date", "code", "exact", "judge")
    }
    return found[name]


def read_answer(item: EvalItem, reply: str) -> Hashable | None:
    """Return what a reply answers, alike for like answers; `None` where that can't be read."""
    reader = _READERS.get(checker_of(item))
    answer = reader(item, reply) if reader else None
    if isinstance(answer, Quantity):
        return (answer.value * answer.factor).normalize(), answer.dimension
    return answer


def is_right(item: EvalItem, reply: str) -> bool | None:
    """Return whether a reply is right; `None` where only a judge can say."""
    name = checker_of(item)
    reader = _READERS.get(name)
    if reader is None:
        return None
    answer = reader(item, reply)
    return answer is not None and any(_accepts(item, name, target, answer) for target in item.target)


def _accepts(item: EvalItem, name: CheckerName, target: str, answer: Hashable) -> bool:
    match name:
        case "number":
            wanted = _one_quantity(target)
            off = Decimal(str(item.metadata.get("tolerance", 0)))
            return wanted is not None and isinstance(answer, Quantity) and answer.equals(wanted, off)
        case "choice":
            return answer == item.chosen(target)
        case "date":
            return answer == _one_date(target)
        case "code":
            return answer == _lines(target)
        case _:
            return answer == _folded(target)


def _language(item: EvalItem, reply: str) -> str | None:
    return language(reply) or language(item.input)


def _one_quantity(target: str) -> Quantity | None:
    """Return a target that is a number, with or without a unit, and nothing else."""
    if not re.fullmatch(
        r"\s*[€$£]?\s*[-\u2212+]?[\d][\d.,' \u00a0\u202f/]*(?:e[-+]?\d+)?\s*(?:[^\W\d]|[%‰€$£°²³^/.\s]|[23])*",
        target,
    ):
        return None
    if len(target.split()) > 3:
        return None
    found = quantities(target, "English")
    return found[0] if found and len(found) == 1 else None


def _one_date(target: str) -> date | None:
    found = dates(target, None)
    if not found or len(found) > 1 or len(target) > 30:
        return None
    [day] = found
    return day


def _number(item: EvalItem, reply: str) -> Quantity | None:
    said = final_answer(reply)
    if said is None or said.is_negated:
        return None
    spoken = _language(item, reply)
    text = said.without_parentheses
    if not said.is_hedged and "=" in text:
        text = text.rpartition("=")[2]
    found = quantities(text, spoken)
    if not found:
        return None
    given = {each.value for each in quantities(item.input, language(item.input)) or ()}
    distinct = {(each.value, each.dimension, each.factor): each for each in found}
    if len(distinct) == 1:
        [only] = distinct.values()
        return only if not said.is_hedged else None
    new = [each for each in distinct.values() if each.value not in given]
    if said.is_hedged or len(new) != 1 or not said.marked:
        return None
    return new[0]


def _choice(item: EvalItem, reply: str) -> int | None:
    said = final_answer(reply)
    if said is None:
        return None
    named = _texts_named(item, said.text)
    letters = {
        ascii_uppercase.index(letter)
        for match in _LETTER.finditer(said.text)
        for letter in match.groups()
        if letter
    }
    places = {_ORDINALS[match[1].lower()] for match in _ORDINAL.finditer(said.text)}
    chosen = {each for each in named | letters | places if each < len(item.choices)}
    if len(chosen) != 1 or _hedges(said, item, chosen):
        return None
    return chosen.pop()


def _hedges(said: FinalAnswer, item: EvalItem, chosen: set[int]) -> bool:
    """Return whether a sentence hedges or negates, apart from the words of the choice itself."""
    [index] = chosen
    rest = re.sub(re.escape(item.choices[index]), " ", said.text, flags=re.IGNORECASE)
    left = FinalAnswer(rest, said.marked)
    return left.is_hedged or left.is_negated


def _texts_named(item: EvalItem, text: str) -> set[int]:
    """Return which choices a text names, a longer one before another that is part of it."""
    left, found = text, set[int]()
    by_length = sorted(range(len(item.choices)), key=lambda index: -len(item.choices[index]))
    for index in by_length:
        choice = item.choices[index]
        flags = re.NOFLAG if len(choice) == 1 else re.IGNORECASE
        if len(choice) == 1 and choice in ascii_uppercase:
            continue  # a letter is read as one, below
        pattern = rf"(?<!\w){re.escape(choice)}(?!\w)"
        if re.search(pattern, left, flags):
            found.add(index)
            left = re.sub(pattern, " ", left, flags=flags)
    return found


def _date(item: EvalItem, reply: str) -> date | None:
    said = final_answer(reply)
    if said is None or said.is_negated or said.is_hedged:
        return None
    found = dates(said.text, _language(item, reply))
    return next(iter(found)) if found and len(found) == 1 else None


def _code(item: EvalItem, reply: str) -> str | None:
    del item
    said = final_answer(reply)
    if said is not None and said.marked:
        return _lines(_unquoted(_OUTPUT.sub("", said.text)))
    blocks = [*code_blocks(reply)]
    if blocks:
        return _lines(blocks[-1]) if len(blocks) == 1 else None
    if said is None:
        return None
    bare = reply.strip()
    if "\n" in bare:
        return _lines(bare)
    return _lines(_unquoted(_OUTPUT.sub("", bare)))


def _exact(item: EvalItem, reply: str) -> str | None:
    del item
    said = final_answer(reply)
    return _folded(said.text) if said else None


def _unquoted(text: str) -> str:
    text = text.strip()
    for mark in ("`", '"', "'", "\u201c"):
        closing = "\u201d" if mark == "\u201c" else mark
        inside = text.rstrip(".")
        if len(inside) > 2 and inside.startswith(mark) and inside.endswith(closing):
            return inside[1:-1]
    return text


def _lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()).strip()


def _folded(text: str) -> str:
    """Return a string without what doesn't count: case, accents' encoding, quotes, a final full stop."""
    normal = unicodedata.normalize("NFKC", text).casefold()
    normal = normal.strip().strip("`\"'\u201c\u201d\u201e\u00ab\u00bb*_").rstrip(".!").strip()
    return " ".join(normal.strip("`\"'\u201c\u201d\u201e\u00ab\u00bb").split())


_READERS: Mapping[CheckerName, Callable[[EvalItem, str], Hashable | None]] = {
    "number": _number,
    "choice": _choice,
    "date": _date,
    "code": _code,
    "exact": _exact,
}
