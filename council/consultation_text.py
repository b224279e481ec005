"""Reading a consultation from a reply: as it is, repaired, or not at all.

Only form is repaired: broken JSON, a list that came as one text, a summary that is too long. A score
is accepted only if the reply has exactly one, a whole number within its range.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from pydantic import ValidationError

from council.consultation import SUMMARY_LENGTH, Opinion
from council.text import clip, whole
from council.text.json_objects import DEEPEST, JsonObject, as_object, mend, out_of_string, spans

AnOpinion = TypeVar("AnOpinion", bound=Opinion)

PROBLEMS = 3  # as many are named at once
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL)
_SCORE_OF_TEN = re.compile(r"\s*(\d{1,2})(?:\.0+)?\s*(?:(?:/|(?:out )?of)\s*10)?\s*")
_SCORE_KEY = re.compile(r"""\bscore["'\u201c\u201d]?\s*[:=]\s*""")
_SCORE = re.compile(
    rf"""["'\u201c\u201d]?{_SCORE_OF_TEN.pattern}["'\u201c\u201d]?\s*(?:,(?!\s*\d)|[}}\n#]|//|/\*)"""
)
_LISTS = ("pros", "cons", "caveats", "references")


@dataclass(frozen=True, slots=True)
class Reading(Generic[AnOpinion]):
    """What a reply contains: an opinion, or the reason why it has none (`problem`).

    `words` is the reply as plain text: its detailed answer if that could be read.
    """

    opinion: AnOpinion | None
    problem: str
    words: str


def read_opinion(text: str, kind: type[AnOpinion]) -> Reading[AnOpinion]:
    """Read a reply that was asked for as `kind`. Slow on broken JSON: call it in a thread."""
    found, mended = _parsed(out_of_string(_THOUGHT.sub("", text)))
    if found is None:
        return Reading(None, "it is not a JSON object", text)
    fields = _tidied(_unwrapped(found))
    detailed = as_object(fields.get("response")).get("detailed")
    words = detailed if isinstance(detailed, str) and detailed.strip() else text
    try:
        opinion = kind.model_validate(fields)
    except ValidationError as error:
        return Reading(None, _problem(error), words)
    keys = [*_SCORE_KEY.finditer(text)]
    if mended and not (len(keys) == 1 and _SCORE.match(text, keys[0].end())):
        return Reading(None, "confidence.score: it must appear once, as a whole number", words)
    return Reading(opinion, "", words)


def _parsed(text: str) -> tuple[JsonObject | None, bool]:
    """Return the last consultation among a text's objects, and whether it had to be repaired.

    Once an object is broken, nobody can tell what it contains from what follows it: the whole text is
    repaired, and must then be one object.
    """
    found = spans(text)
    for span in reversed(found if all(each.closed for each in found) else ()):
        try:
            value = json.loads(text[span.start : span.end], object_pairs_hook=_unambiguous)
        except (ValueError, RecursionError):
            break
        if _is_deep(value):
            return None, False
        if {"response", "confidence"} & _unwrapped(value).keys() or len(found) == 1:
            return _encodable(value), False
    value = mend(text)
    if _is_deep(value):
        return None, True
    objects = [found for each in _list(value) if (found := as_object(each))]
    return (_encodable(objects[0]) if len(objects) == 1 else None), True


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in (*as_object(each).values(), *_items(each))]
    return bool(level)


def _encodable(fields: JsonObject) -> JsonObject:
    """Replace halves of surrogate pairs, which are legal JSON but have no place in a text."""
    return json.loads(whole(json.dumps(fields, ensure_ascii=False)))


def _unambiguous(pairs: list[tuple[str, object]]) -> JsonObject:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key appears twice")
    return fields


def _unwrapped(fields: JsonObject) -> JsonObject:
    """Take an object out of a wrapper of one key: `{"consultation": {…}}`."""
    if len(fields) == 1 and "response" in (inner := as_object(next(iter(fields.values())))):
        return inner
    return fields


def _tidied(fields: JsonObject) -> JsonObject:
    tidy = _present(fields)
    if isinstance(tidy.get("response"), dict):
        tidy["response"] = _advice(_present(as_object(tidy["response"])))
    if isinstance(tidy.get("confidence"), dict):
        confidence = _present(as_object(tidy["confidence"]))
        confidence["score"] = _score(confidence.get("score"))
        confidence["uncertainty_factors"] = _strings(confidence.get("uncertainty_factors", []))
        tidy["confidence"] = _present(confidence)
    if isinstance(tidy.get("debate"), dict):
        debate = _present(as_object(tidy["debate"]))
        debate["critiques"] = [_graded(each) for each in _list(debate.get("critiques", []))]
        tidy["debate"] = debate
    return tidy


def _advice(advice: JsonObject) -> JsonObject:
    for name in ("summary", "detailed", "approach"):
        if isinstance(said := advice.get(name), list):
            advice[name] = "\n\n".join(_strings(cast("list[object]", said)))
    if isinstance(summary := advice.get("summary"), str):
        advice["summary"] = clip(summary.strip(), SUMMARY_LENGTH)
    for name in _LISTS:
        advice[name] = _strings(advice.get(name, []))
    for name, key in (("alternatives", "name"), ("code_snippets", "code")):
        entries = _list(advice.get(name, []))
        advice[name] = [
            {key: each} if isinstance(each, str) else _present(as_object(each))
            for each in entries
            if each
        ]
    return advice


def _present(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def _strings(value: object) -> list[str]:
    said = (_string(each) for each in _list(value))
    return [text for text in said if text.strip()]


def _string(value: object) -> str:
    match value:
        case str():
            return value
        case dict():
            return ": ".join(map(_string, cast("Iterable[object]", value.values())))
        case None:
            return ""
        case _:
            return str(value)


def _score(value: object) -> object:
    """Return the whole number of a score that was written another way; never a rounded one."""
    if isinstance(value, str) and (written := _SCORE_OF_TEN.fullmatch(value)):
        return int(written[1])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _graded(objection: object) -> object:
    fields = as_object(objection)
    if isinstance(severity := fields.get("severity"), str):
        return {**fields, "severity": severity.strip().lower()}
    return objection


def _list(value: object) -> list[object]:
    items = _items(value)
    return items if isinstance(value, list) else [value]


def _items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _problem(error: ValidationError) -> str:
    known = {"missing": "it is missing", "string_pattern_mismatch": "it is empty"}
    problems: list[str] = []
    for each in error.errors(include_input=False, include_url=False):
        message = known.get(each["type"]) or f"{each['msg'][0].lower()}{each['msg'][1:]}"
        problems.append(f"{'.'.join(map(str, each['loc']))}: {message}")
    more = f"; and {len(problems) - PROBLEMS} more" if len(problems) > PROBLEMS else ""
    return "; ".join(problems[:PROBLEMS]) + more
