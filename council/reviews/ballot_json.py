"""The JSON form of a ballot, as far as it can be read.

A server that doesn't enforce the schema may send anything under a name. A field that can't be read is
dropped without the rest, and a ballot that was cut off counts as far as it goes.
"""

import re
from collections.abc import Iterable
from typing import Annotated, cast

from pydantic import BaseModel, BeforeValidator
from pydantic_core import from_json

from council.calls import JsonObject
from council.document.results import Severity


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _texts(value: object) -> list[str]:
    return [each for each in _listed(value) if isinstance(each, str)]


def _lines(value: object) -> str:
    return "\n".join(_texts(value))


def _grade(value: object) -> Severity:
    match value.strip().lower() if isinstance(value, str) else value:
        case "high" | "critical" | "severe" | "major":
            return "high"
        case "low" | "minor":
            return "low"
        case _:
            return "medium"


def _critiques(value: object) -> list[object]:
    return [
        {"text": each} if isinstance(each, str) else each
        for each in _listed(value)
        if isinstance(each, str | dict)
    ]


def _labelled(value: object) -> list[JsonObject] | None:
    if not isinstance(value, list):
        return None  # no ballot at all
    items = cast("list[object]", value)
    objects = [cast("JsonObject", each) for each in items if isinstance(each, dict)]
    return [each for each in objects if isinstance(each.get("label"), str)]


def _ranked(value: object) -> list[str]:
    return _texts(cast("object", value)) if isinstance(value, list) else []


_Remark = Annotated[str, BeforeValidator(_lines)]


class Critique(BaseModel):
    """One point against an answer."""

    text: _Remark = ""
    severity: Annotated[Severity, BeforeValidator(_grade)] = "medium"


class Review(BaseModel):
    """A review of one answer; weaknesses may come instead of critiques."""

    label: str
    strengths: _Remark = ""
    critiques: Annotated[list[Critique], BeforeValidator(_critiques)] = []
    weaknesses: _Remark = ""
    scores: object = None


class JsonBallot(BaseModel):
    """A whole ballot: the reviews of the answers, and their names from best to worst."""

    reviews: Annotated[list[Review], BeforeValidator(_labelled)]
    ranking: Annotated[list[str], BeforeValidator(_ranked)] = []

    def without_copies(self, texts: Iterable[str]) -> "JsonBallot":
        """Return the ballot without remarks that say nothing but words of these texts."""
        known = {word for text in texts for word in _words(text)}

        def kept(remark: str) -> str:
            said = _words(remark)
            certain = said[:-1] if len(said) > _CERTAIN else said
            return "" if known and known.issuperset(certain) else remark

        reviews = [
            review.model_copy(
                update={
                    "strengths": kept(review.strengths),
                    "critiques": [each for each in review.critiques if kept(each.text)],
                    "weaknesses": kept(review.weaknesses),
                }
            )
            for review in self.reviews
        ]
        return self.model_copy(update={"reviews": reviews})


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.casefold())


_WORDS = re.compile(r"\w+")
_CERTAIN = 4
"""In a remark of more words the last one doesn't count: a grammar may have cut it off."""


_ESCAPES = re.compile(
    r"\\u(?:d[89ab]\w\w\\ud[c-f]|(?P<half>d[89a-f]))\w\w|\\.", re.IGNORECASE | re.DOTALL
)


def read_json_ballot(text: str) -> JsonBallot:
    """Return the ballot in a text; one without reviews if the text is no ballot."""
    try:
        return JsonBallot.model_validate(_parsed(text))
    except ValueError:
        return JsonBallot(reviews=[])


def read_names(text: str) -> list[str]:
    """Return the names in a ranking that came without reviews, best first."""
    try:
        found = _parsed(text)
    except ValueError:
        return []
    return (
        _ranked(cast("JsonObject", found).get("ranking")) if isinstance(found, dict) else _ranked(found)
    )


def _parsed(text: str) -> object:
    # Half of a surrogate pair is legal JSON, but the reader refuses it, and no encoding has it.
    whole = _ESCAPES.sub(lambda escape: "\\ufffd" if escape["half"] else escape[0], text)
    return from_json(whole, allow_partial=True)
