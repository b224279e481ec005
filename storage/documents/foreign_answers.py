"""Answers in other llm-council programs' documents, understood as the council's own.

A call that gave nothing becomes a failure, whatever a program keeps in its place: `null`, an empty text,
or the error as if it were an answer. Ballots get the names of the answers that they rank.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import cast

from council.document.conversation import FailedCall
from council.errors import Cause, Failure
from council.reviews.ballot_text import by_letter, label_named, parse_ranking
from council.reviews.ranking import aggregate
from council.text.json_objects import JsonObject

_NAME = (
    "model",
    "model_id",
    "model_name",
    "agent_title",
    "display_name",
    "name",
    "participant",
    "persona",
)
_TEXT = ("response", "content", "answer", "text", "output")
_REVIEW = ("ranking", "review", "evaluation", "critique", *_TEXT)
_REVISION = ("corrected_response", "revised_response", "revision", "revised", *_TEXT)
_FINAL = (*_TEXT, "synthesis", "final_response", "final_answer", "final", "verdict", "summary")
_BALLOT = ("parsed_ranking", "parsedRanking", "final_ranking")
_LABELS = ("label_to_model", "labelToModel", "participant_mapping")
_LISTED = ("responses", "results", "rankings", "reviews", "evaluations")
_CHAIRMAN = "chairman"
_RANKINGS = "rankings"
_PARTS = ("text", "input_text")
_SENTENCES_FOR_ERRORS = frozenset(
    {
        "All models failed to respond. Please try again.",
        "Error: Unable to generate final synthesis.",
        "Ошибка: не удалось сгенерировать итоговый синтез.",
    }
)
"""What programs store as the final answer where there is none.

Sources: karpathy/llm-council backend/council.py, Aleks-Che/llm-council backend/storage.py.
"""

_CAUSES: Sequence[tuple[str, Cause]] = (
    (r"cancel|interrupt|client.?(closed|disconnect)|\bstopped\b", "stopped"),
    (r"rate.?limit|too.?many|\b429\b", "rate_limited"),
    (r"time.?d?.?out|deadline", "deadline"),
    (r"credit|payment|billing|quota|\b402\b", "credit"),
    (r"auth|api.?key|\b401\b", "key"),
    (r"forbidden|\b403\b", "forbidden"),
    (r"not.?found|\b404\b", "not_found"),
    (r"context.?(length|window)|too.?long", "too_long"),
    (r"filter|safety|moderat", "filtered"),
    (r"connect|network", "connection"),
    (r"\bempty\b|no.?response|no.?content", "empty"),
    (r"bad.?request|invalid|\b400\b", "bad_request"),
)


def answer(message: JsonObject) -> JsonObject:
    """Return an assistant's message in the form of the storage contract.

    The council's own is returned as it is.
    """
    if isinstance(message.get("run_id"), str):
        return message
    inner = message.get("content")
    fields = {**cast("JsonObject", inner), **message} if isinstance(inner, dict) else message
    read = _Answer(fields)
    labels = read.labels()
    ballots = {str(each["model"]): read.ballot(each, labels) for each in read.reviews}
    result: JsonObject = {
        **message,
        "role": "assistant",
        "stage1": read.answers,
        "stage2": [{**each, "parsed_ranking": ballots[str(each["model"])]} for each in read.reviews],
        "stage2_5": read.corrections or None,
        "stage3": read.final or {"model": "", "response": "", "source": "missing"},
    }
    if labels and "aggregate_ranking" not in message:
        result["aggregate_ranking"] = aggregate(ballots, labels).dump()
    if labels:
        result["label_to_model"] = labels
    if read.failures:
        result["failures"] = [each.dump() for each in read.failures]
    return result


def text_of(given: object) -> str | None:
    """Return a message's text, also of one in parts; `None` where there is none."""
    match given:
        case str():
            return given
        case list():
            parts = (_part(each) for each in cast("list[object]", given))
            return "\n\n".join(filter(None, parts))
        case dict():
            return next(
                filter(None, (text_of(cast("JsonObject", given).get(name)) for name in _TEXT)), None
            )
        case _:
            return None


def _part(given: object) -> str | None:
    if isinstance(given, dict):
        part = cast("JsonObject", given)
        return text_of(part.get("text")) if part.get("type", "text") in _PARTS else None
    return given if isinstance(given, str) else None


@dataclass(slots=True)
class _Answer:
    """One answer as it is read, stage after stage."""

    fields: JsonObject
    answers: list[JsonObject] = field(default_factory=list[JsonObject])
    reviews: list[JsonObject] = field(default_factory=list[JsonObject])
    corrections: list[JsonObject] = field(default_factory=list[JsonObject])
    final: JsonObject | None = None
    failures: list[FailedCall] = field(default_factory=list[FailedCall])
    seated: list[str] = field(default_factory=list[str])
    """Everybody who was asked, with or without an answer."""

    def __post_init__(self) -> None:
        rounds = [*_entries(self.fields.get("rounds"))]
        said = [each for each in rounds if each.get("round_type") != _RANKINGS]
        ranked = [each for each in rounds if each.get("round_type") == _RANKINGS]
        answered = self._given("stage1", "responses")
        reviewed, revised = self._given("stage2"), self._given("stage2_5", "stage2b")
        later = self._given("stage3") if isinstance(self.fields.get("stage3"), list) else None
        if any("ranking" in each for each in _entries(later)):
            reviewed = later
        elif later is not None:
            revised = later
        if not answered and said:
            answered = _first(said[0], "stage1", "responses")
            reviewed = (
                reviewed or said[0].get("stage2") or (ranked[0].get("responses") if ranked else None)
            )
            revised = revised or (_first(said[-1], "stage1", "responses") if len(said) > 1 else None)
        self._read_answers(answered)
        self._read_reviews(reviewed)
        self._read_corrections(revised)
        self._read_final(
            self._given("stage5", "stage3" if later is None else "stage4", "synthesis", "verdict")
        )

    def labels(self) -> dict[str, str]:
        """Return whose answer each label is; nothing where that isn't known for every label used.

        A program that doesn't say so has labelled the answers in their order, possibly with the failed.
        """
        if not self.reviews:
            return {}
        metadata = self.fields.get("metadata")
        holders = [self.fields, *([cast("JsonObject", metadata)] if isinstance(metadata, dict) else [])]
        given = [_label_map(holder.get(name)) for holder in holders for name in _LABELS]
        answered = [str(each["model"]) for each in self.answers]
        used = {label for review in self.reviews for label in _ballot(review, _LETTERS) or ()}
        candidates = [self._seat(each, answered) for each in given if each]
        for labels in (*candidates, _in_order(answered), _in_order(self.seated)):
            if labels and used <= {*labels}:
                return labels
        return {}

    def ballot(self, review: JsonObject, labels: Mapping[str, str]) -> list[str]:
        """Return a review's ballot in the labels of this answer."""
        ballot = _ballot(review, by_letter(labels or _ALL))
        if ballot is None:
            ballot = parse_ranking(str(review["ranking"]), [*labels])
        own = _label_map(review.get("label_to_model"))
        if own:  # each reviewer read the answers under labels of its own
            label_of = {name: label for label, name in labels.items()}
            ballot = [label_of.get(own.get(label, ""), "") for label in ballot]
        return [*dict.fromkeys(filter(None, ballot))]

    def _given(self, *names: str) -> object:
        return _first(self.fields, *names)

    def _seat(self, given: Mapping[str, str], answered: Sequence[str]) -> dict[str, str]:
        """Return a given map with the members' names: two of one model have names of their own."""
        if len({*given.values()}) < len(given) == len(answered):
            return dict(zip(given, answered, strict=True))
        return dict(given)

    def _read_answers(self, given: object) -> None:
        for name, entry in _members(given):
            self.seated.append(name)
            if (text := self._text("stage1", name, entry, _TEXT)) is not None:
                self.answers.append({**entry, "model": name, "response": text})

    def _read_reviews(self, given: object) -> None:
        for name, entry in _members(given):
            review = entry
            ranked = entry.get("ranking")
            if isinstance(ranked, list):  # only the order, without a text
                order = [str(each) for each in cast("list[object]", ranked)]
                listed = "\n".join(f"{place}. {label}" for place, label in enumerate(order, 1))
                review = {"parsed_ranking": order, **entry, "ranking": f"FINAL RANKING:\n{listed}"}
            if (text := self._text("stage2", name, review, _REVIEW)) is not None:
                self.reviews.append({**review, "model": name, "ranking": text})

    def _read_corrections(self, given: object) -> None:
        before = {str(each["model"]): each["response"] for each in self.answers}
        for name, entry in _members(given):
            if name not in before:
                continue
            if (text := self._text("stage2_5", name, entry, _REVISION)) is not None:
                defaults = {"original_response": before[name], "peer_critiques": ""}
                self.corrections.append({**defaults, **entry, "model": name, "corrected_response": text})

    def _read_final(self, given: object) -> None:
        entry = {**cast("JsonObject", given)} if isinstance(given, dict) else {"response": given}
        name = _name(entry) or _text_in(self.fields, ("chairman_model", "chairman")) or _CHAIRMAN
        is_there = given not in (None, "", {}) and not isinstance(given, list)
        if not is_there and (written := _text_in(self.fields, _TEXT)):
            entry["response"], is_there = written, True
        if is_there:
            is_error = name == "error" or _text_in(entry, _FINAL) in _SENTENCES_FOR_ERRORS
            entry = {**entry, "error": True} if is_error else entry
            name = _CHAIRMAN if name == "error" else name
            if (text := self._text("stage3", name, entry, _FINAL)) is not None:
                self.final = {**entry, "model": name, "response": text}
        elif error := self.fields.get("error"):
            self._fail("stage3", name, error, {})

    def _text(self, stage: str, name: str, entry: JsonObject, names: Sequence[str]) -> str | None:
        """Return what a call gave; note why where it gave nothing."""
        text, error = _text_in(entry, names), entry.get("error")
        failed = error is True or entry.get("status") in ("error", "failed") or (error and error == text)
        if text is not None and not failed:
            return text
        self._fail(stage, name, text if error is True and text else error, entry)
        return None

    def _fail(self, stage: str, name: str, error: object, entry: JsonObject) -> None:
        said = [
            text for each in ("error_message", "message", "detail") if (text := _phrase(entry.get(each)))
        ]
        words = [*filter(None, (_phrase(error), _phrase(entry.get("error_type")), *said))]
        self.failures.append(FailedCall(stage=stage, member=name, failure=_failure(words)))


def _failure(words: Sequence[str]) -> Failure:
    """Return why a call failed, by the words that a program has kept of it, a code or a sentence."""
    if not words:
        return Failure(cause="empty")
    all_words = " ".join(words)
    causes: list[Cause] = [known for sign, known in _CAUSES if re.search(sign, all_words, re.IGNORECASE)]
    cause = causes[0] if causes else None
    sentence = next((each for each in reversed(words) if cause is None or " " in each), "")
    return Failure(cause=cause or "unavailable", detail=sentence)


def _phrase(given: object) -> str | None:
    if isinstance(given, dict):
        fields = cast("JsonObject", given)
        return next(
            filter(None, (_phrase(fields.get(name)) for name in ("message", "code", "type"))), None
        )
    return " ".join(given.split()) or None if isinstance(given, str) else None


_ALL = [f"Response {letter}" for letter in ascii_uppercase]
_LETTERS = by_letter(_ALL)


def _in_order(names: Sequence[str]) -> dict[str, str]:
    return dict(zip(_ALL, names, strict=False)) if len(names) <= len(_ALL) else {}


def _label_map(given: object) -> dict[str, str]:
    """Return the labels with the names that a program keeps for them; nothing if it isn't such a map."""
    if not isinstance(given, dict):
        return {}
    labels: dict[str, str] = {}
    for key, value in cast("JsonObject", given).items():
        name = (
            value
            if isinstance(value, str)
            else _name(cast("JsonObject", value))
            if isinstance(value, dict)
            else None
        )
        label = _label(key, _LETTERS)
        if label is None or not name:
            return {}
        labels[label] = name
    return labels


def _label(name: str, known: Mapping[str, str]) -> str | None:
    # Nearly all are written in full; reading them otherwise takes most of a document's time.
    written = known.get(name.removeprefix("Response "))
    return written if written == name else label_named(name, known)


def _ballot(review: JsonObject, known: Mapping[str, str]) -> list[str] | None:
    """Return the labels that a program has read in a review; `None` if it hasn't read any list."""
    given = _first(review, *_BALLOT)
    if not isinstance(given, list):
        return None if given is None else []
    named = (_ranked(each) for each in cast("list[object]", given))
    return [*dict.fromkeys(label for each in named if (label := _label(each, known)))]


def _ranked(given: object) -> str:
    if isinstance(given, dict):
        return _text_in(cast("JsonObject", given), ("label", "response", "id")) or ""
    return given if isinstance(given, str) else ""


def _first(holder: JsonObject, *names: str) -> object:
    """Return the first of these fields that is there; an empty one only if none has anything."""
    held = [holder[name] for name in names if holder.get(name) is not None]
    return next(filter(None, held), held[0] if held else None)


def _members(given: object) -> Iterator[tuple[str, JsonObject]]:
    """Yield the entries of a stage by their members' names, each of which occurs once."""
    seen: Counter[str] = Counter()
    for number, entry in enumerate(_entries(given), 1):
        name = _name(entry) or f"member {number}"
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}#{seen[name]}", entry


def _entries(given: object) -> Iterable[JsonObject]:
    """Yield the entries of a list, or of an object by member."""
    if isinstance(given, list):
        for each in cast("list[object]", given):
            if isinstance(each, dict):
                yield cast("JsonObject", each)
            elif isinstance(each, str):
                yield {"response": each}
    elif isinstance(given, dict):
        fields = cast("JsonObject", given)
        listed = next((fields[name] for name in _LISTED if isinstance(fields.get(name), list)), None)
        if listed is not None:
            yield from _entries(listed)
            return
        for name, each in fields.items():
            entry = cast("JsonObject", each) if isinstance(each, dict) else {"response": each}
            yield {"model": name, **entry}


def _name(entry: JsonObject) -> str | None:
    for name in _NAME:
        held = entry.get(name)
        if isinstance(held, dict):
            held = _text_in(cast("JsonObject", held), ("id", "name"))
        if isinstance(held, str) and held.strip():
            return held
    return None


def _text_in(entry: JsonObject, names: Iterable[str]) -> str | None:
    """Return the first of these fields that says anything."""
    said = (text_of(entry.get(name)) for name in names)
    return next((text for text in said if text and text.strip()), None)
