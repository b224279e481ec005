"""The JSON form of a ballot as data, as far as it can be read; `ballots` writes it as text.

A server that doesn't enforce the schema may send anything under a name. A field that can't be read is
dropped without the rest, and a ballot that was cut off counts as far as it goes.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from string import ascii_uppercase
from typing import Annotated, cast

from pydantic import BaseModel, BeforeValidator

from council.document.results import Severity
from council.reviews.ballot_text import listed_ranking
from council.text.json_objects import DEEPEST, JsonObject, Span, as_list, as_object, objects


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _texts(value: object) -> list[str]:
    return [each for each in _listed(value) if isinstance(each, str)]


def _lines(value: object) -> str:
    return "\n".join(_texts(value))


def _grade(value: object) -> Severity | None:
    match value.strip().lower() if isinstance(value, str) else value:
        case "high" | "critical" | "severe" | "major":
            return "high"
        case "medium" | "moderate":
            return "medium"
        case "low" | "minor":
            return "low"
        case _:
            return None


def _critiques(value: object) -> list[object]:
    return [
        {"text": each} if isinstance(each, str) else each
        for each in _listed(value)
        if isinstance(each, str | dict)
    ]


def _labelled(value: object) -> list[JsonObject]:
    if isinstance(value, dict):  # {"Response A": {"strengths": …}}
        named = cast("JsonObject", value).items()
        value = [
            {**cast("JsonObject", each), "label": name} for name, each in named if isinstance(each, dict)
        ]
    objects = [_by_key(cast("JsonObject", each)) for each in as_list(value) if isinstance(each, dict)]
    for each in objects:  # weaknesses may come instead of critiques, or beside them
        weaknesses = [line for text in _texts(each.get("weaknesses")) for line in text.splitlines()]
        each["critiques"] = [*_critiques(each.get("critiques")), *_critiques(weaknesses)]
    return [each for each in objects if isinstance(each.get("label"), str)]


def _ranked(value: object) -> list[str]:
    """Return the names in a ranking: listed, each with its place, or in one text: `C > A > B`."""
    if isinstance(value, dict):
        pairs = [*cast("JsonObject", value).items()]
        if all(name.isdecimal() for name, _ in pairs):
            return _in_order([(int(name), said) for name, said in pairs])
        places = [place for _, place in pairs]
        if places == [*range(len(places), 0, -1)]:  # as well points as places
            return []
        return _in_order([(place, name) for name, place in pairs])
    items = as_list(value)
    if items and all(isinstance(each, dict) for each in items):
        entries = [_by_key(cast("JsonObject", each)) for each in items]
        return _in_order([(_first(entry, _PLACES), _first(entry, _NAMES)) for entry in entries])
    texts = _texts(items or value)
    ranked = listed_ranking(texts[0], _LABELS) if len(texts) == 1 else []
    return ranked or _texts(items)


def _in_order(entries: list[tuple[object, object]]) -> list[str]:
    """Return names in the order of their places; none unless those are 1, 2, 3."""
    placed = [(place, name) for place, name in entries if type(place) is int and isinstance(name, str)]
    placed.sort(key=lambda entry: entry[0])
    complete = [place for place, _ in placed] == [*range(1, len(entries) + 1)]
    return [name for _, name in placed] if complete else []


def _first(fields: JsonObject, names: Iterable[str]) -> object:
    return next((fields[name] for name in names if name in fields), None)


def _by_key(fields: JsonObject) -> JsonObject:
    """Return fields by the letters of their names in lower case: `FINAL RANKING` is `finalranking`."""
    return {_SIGNS.sub("", name).casefold(): value for name, value in reversed(fields.items())}


_SIGNS = re.compile(r"[\W_]+")
_LABELS = [f"Response {letter}" for letter in ascii_uppercase]
_RANKINGS = ("ranking", "finalranking", "rankings", "finalrankings")
_PLACES = ("rank", "place", "position")
_NAMES = ("label", "response", "answer", "name")
_Remark = Annotated[str, BeforeValidator(_lines)]


class Critique(BaseModel):
    """One point against an answer."""

    text: _Remark = ""
    severity: Annotated[Severity | None, BeforeValidator(_grade)] = None
    quote: _Remark = ""


class Review(BaseModel):
    """A review of one answer."""

    label: str
    strengths: _Remark = ""
    critiques: Annotated[list[Critique], BeforeValidator(_critiques)] = []
    scores: object = None


class JsonBallot(BaseModel):
    """A whole ballot: the reviews of the answers, and their names from best to worst.

    `scores`: a name -> scores by criterion, as they came, beside the reviews.
    """

    reviews: Annotated[list[Review], BeforeValidator(_labelled)] = []
    ranking: list[str] = []
    scores: JsonObject = {}

    @classmethod
    def of(cls, fields: JsonObject) -> "JsonBallot":
        """Read a ballot's fields; what they lack, or say in two ways, is empty."""
        named = _by_key(fields)
        rankings = [ranking for name in _RANKINGS if (ranking := _ranked(named.get(name)))]
        scores = named.get("scores")
        return cls.model_validate(
            {
                "reviews": named.get("reviews"),
                "ranking": rankings[0] if rankings and rankings == rankings[:1] * len(rankings) else [],
                "scores": scores if isinstance(scores, dict) else {},
            }
        )

    def in_labels(self, label_of: Callable[[str], str | None]) -> "JsonBallot":
        """Return the ballot with the labels that its names mean; without a ranking of unknown ones."""
        ranked = [label_of(name) for name in dict.fromkeys(self.ranking)]
        ranking = [*dict.fromkeys(filter(None, ranked))]
        return JsonBallot.model_construct(
            reviews=[
                review.model_copy(update={"label": label})
                for review in self.reviews
                if (label := label_of(review.label))
            ],
            ranking=ranking if len(ranking) >= ranked.count(None) else [],
            scores={label: given for name, given in self.scores.items() if (label := label_of(name))},
        )

    @property
    def has_remarks(self) -> bool:
        remarks = ((each.strengths, *(point.text for point in each.critiques)) for each in self.reviews)
        return any(remark.strip() for said in remarks for remark in said)

    def without_copies(self, texts: Iterable[str]) -> "JsonBallot":
        """Return the ballot without remarks that say nothing but words of these texts."""
        known = {word for text in texts for word in _WORDS.findall(text.casefold())}

        def kept(remark: str) -> str:
            said = _WORDS.findall(remark.casefold())
            certain = said[:-1] if len(said) > _CERTAIN else said
            return "" if known and known.issuperset(certain) else remark

        reviews = list[Review]()
        for each in self.reviews:
            critiques = [critique for critique in each.critiques if kept(critique.text)]
            reviews.append(
                each.model_copy(update={"strengths": kept(each.strengths), "critiques": critiques})
            )
        return self.model_copy(update={"reviews": reviews})


_WORDS = re.compile(r"\w+")
_CERTAIN = 4
"""In a remark of more words the last one doesn't count: a grammar may have cut it off."""


def read_json_ballots(text: str) -> Iterator[tuple[JsonBallot, Span]]:
    for found in objects(text):
        yield JsonBallot.of(_unwrapped(found.fields)), found.span


def all_json_ballots(text: str) -> Iterator[JsonBallot]:
    """Yield whatever in a text could be taken for a ballot, quoted or within something else, too."""
    level: list[object] = [found.fields for found in objects(_QUOTATION.sub("", text))]
    for _ in range(DEEPEST):
        for each in level:
            if isinstance(each, dict):
                yield JsonBallot.of(cast("JsonObject", each))
        level = [inner for each in level for inner in (*as_object(each).values(), *as_list(each))]


def _unwrapped(fields: JsonObject) -> JsonObject:
    """Take a ballot out of a wrapper of one key: `{"ballot": {…}}`."""
    inner = [*fields.values()]
    is_wrapper = len(inner) == 1 and isinstance(inner[0], dict) and not _by_key(fields).keys() & _FIELDS
    return cast("JsonObject", inner[0]) if is_wrapper else fields


_FIELDS = {"reviews", *_RANKINGS}
_QUOTATION = re.compile(r"^(?:[ \t]*+>)++", re.MULTILINE)
