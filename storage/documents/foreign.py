"""Documents of other llm-council programs, read by one tolerant model as the council's own.

A document keeps its bytes; this is only how they are read. What is empty counts as left out, so that
each field is the first of its names that says anything. What is read was looked up in the programs that
write it: `tests/storage/forks.py` has an example of each, with its source. A call that gave nothing
becomes a failure, whatever a program keeps in its place: `null`, an empty text, or the error as if it
were an answer. Ballots get the names of the answers that they rank.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from string import ascii_uppercase
from typing import Annotated, Any, cast
from uuid import NAMESPACE_URL, UUID, uuid5

import orjson
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)  # fmt: skip

from council.document.conversation import FailedCall, timestamp
from council.errors import Cause, Failure
from council.reviews.ballot_text import by_letter, label_named, parse_ranking
from council.reviews.ranking import aggregate
from council.text import clip
from council.text.json_objects import JsonObject, as_object

TITLE_LENGTH = 80
GIVEN_ID = "imported_id"
"""The field with the id that another program gave, where it is no uuid."""
_ID = ("id", "conversation_id", "conversationId", "_id")
_CREATED = ("created_at", "createdAt", "created", "timestamp", "updated_at", "updatedAt", "last_updated")
_LISTS = ("conversations", "chats", "items", "data")
_USER, _ASSISTANT = ("user", "human"), ("assistant", "ai", "council", "chairman", "model", "bot")
_STAGES = {"stage1", "stage2", "stage3"}
_TEXT = "response content answer text output"
_LABELS = ("label_to_model", "labelToModel", "participant_mapping")
_LISTED = ("responses", "results", "rankings", "reviews", "evaluations")
_GIVEN = {
    "stage1": "response",
    "stage2": "ranking",
    "stage2_5": "corrected_response",
    "stage3": "response",
}
"""What the storage contract calls the text of each stage's calls."""
_SENTENCES_FOR_ERRORS = (
    "All models failed to respond. Please try again.",
    "Error: Unable to generate final synthesis.",
    "Ошибка: не удалось сгенерировать итоговый синтез.",
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
_ALL = [f"Response {letter}" for letter in ascii_uppercase]
_LETTERS = by_letter(_ALL)
_MOMENT: TypeAdapter[datetime] = TypeAdapter(datetime)


def conversations(raw: object) -> list[object]:
    """Return the conversations in another program's file, each with a uuid.

    A file may have a list of them, alone or in a field. One whose id is no uuid gets a new one, the same
    each time it is imported, and keeps its own as `imported_id`.
    """
    places = () if "messages" in as_object(raw) else map(as_object(raw).get, _LISTS)
    lists = (cast("list[object]", each) for each in (raw, *places) if isinstance(each, list))
    return [_with_uuid(each) for each in next(lists, [raw])]


def _with_uuid(raw: object) -> object:
    fields, given = as_object(raw), _id(as_object(raw))
    if isinstance(given, UUID) or not fields:
        return raw
    # Without an id, only the whole says which conversation it is.
    known = fields if given is None else [given, *map(fields.get, _CREATED)]
    new = uuid5(NAMESPACE_URL, orjson.dumps(known, option=orjson.OPT_SORT_KEYS).decode())
    return {**fields, "id": str(new), GIVEN_ID: given}


def understood(raw: JsonObject) -> JsonObject:
    """Return a document's JSON in the form of the storage contract, with as many messages.

    What can't be understood stays as it is, for validation to name it.
    """
    given, listed = _id(raw), raw.get("messages")
    messages = [*map(_message, cast("list[object]", listed))] if isinstance(listed, list) else []
    title = raw.get("title")
    asked = (as_object(each) for each in messages if as_object(each).get("role") == "user")
    said = (" ".join(str(each["content"]).split()) for each in asked)
    return {
        **raw,
        "id": str(given) if isinstance(given, UUID) else given,
        "created_at": next(_times(raw, *messages[:1]), ""),
        "title": title
        if isinstance(title, str) and title.strip()
        else clip(next(filter(None, said), ""), TITLE_LENGTH),
        "messages": messages if isinstance(listed, list) or listed is None else listed,
    }


def _id(raw: JsonObject) -> object:
    given = next((raw[name] for name in _ID if raw.get(name) is not None), None)
    try:
        return UUID(given.strip()) if isinstance(given, str) else given
    except ValueError:
        return given


def _times(*holders: object) -> Iterator[str]:
    """Yield when the conversation began, in ISO 8601, by every field that says it, the best first.

    Other forms are seconds or milliseconds since 1970, e-mail's, and what MongoDB and Firestore export.
    """
    for given in (as_object(holder).get(name) for holder in holders for name in _CREATED):
        exported = (as_object(given).get(name) for name in ("$date", "_seconds", "seconds"))
        time = next(filter(None, exported), given)
        with suppress(ValidationError):
            moment = _MOMENT.validate_python(time)
            is_written = isinstance(time, str) and not time.strip().isdecimal()
            yield str(time).strip() if is_written else timestamp(moment)
        with suppress(ValueError):
            yield timestamp(parsedate_to_datetime(str(time)))


def _message(raw: object) -> object:
    if not isinstance(raw, dict):
        return {"role": "other"} if raw is None else raw
    fields = cast("JsonObject", raw)
    if isinstance(fields.get("run_id"), str) and fields.get("role") == "assistant":
        return fields  # the council's own
    read = _Message.model_validate(fields)
    role = str(read.role).lower()
    if role in _USER:
        return {**fields, "role": "user", "content": read.asked or ""}
    if role in _ASSISTANT or _STAGES & fields.keys():
        return read.answer()
    return {**fields, "role": "other"}


def _text(given: object) -> str | None:
    """Return a text, also of one in parts; `None` where there is none."""
    if isinstance(given, list):
        parts = (
            each if isinstance(each, str) else _text(as_object(each).get("text"))
            for each in cast("list[object]", given)
            if as_object(each).get("type", "text") in ("text", "input_text")
        )
        return "\n\n".join(filter(None, parts)) or None
    if fields := as_object(given):
        said = (_text(fields.get(name)) for name in (*_TEXT.split(), "summary"))
        return next(filter(None, said), None)
    return given if isinstance(given, str) else None


def _name(given: object) -> str | None:
    name = as_object(given).get("id") or as_object(given).get("name") or given
    return name if isinstance(name, str) else None


def _under(names: str) -> Any:  # noqa: ANN401 - as pydantic's own Field
    return Field(default=None, validation_alias=AliasChoices(*names.split()))


Text = Annotated[str | None, BeforeValidator(_text)]
Name = Annotated[str | None, BeforeValidator(_name)]


class _Tolerant(BaseModel):
    """An object of another program; `raw` is all of it."""

    raw: JsonObject

    @model_validator(mode="before")
    @classmethod
    def _without_nothing(cls, data: JsonObject) -> JsonObject:
        said = {k: v for k, v in data.items() if (v.strip() if isinstance(v, str) else v)}
        return {**said, "raw": data}


class _Call(_Tolerant):
    """What one member gave; its text is under the stage in which it was asked."""

    model: Name = _under("model model_id model_name agent_title display_name name participant persona")
    stage1: Text = _under(_TEXT)
    stage2: Text = _under(f"ranking review evaluation critique {_TEXT}")
    stage2_5: Text = _under(f"corrected_response revised_response revision revised {_TEXT}")
    stage3: Text = _under(f"{_TEXT} synthesis final_response final_answer final verdict summary")
    ballot: object = _under("parsed_ranking parsedRanking final_ranking")
    label_to_model: object = None
    error: object = None
    status: object = None

    def given(self, stage: str) -> JsonObject | FailedCall:
        """Return it in the form of the contract, or why it gave nothing, as far as that was kept."""
        text: str | None = getattr(self, stage)
        failed = self.error is True or self.status in ("error", "failed") or self.error == text
        if text is not None and not failed:
            return {**self.raw, "model": self.model, _GIVEN[stage]: text}
        kept = (self.raw.get(name) for name in ("error_type", "error_message", "message", "detail"))
        words = [*filter(None, map(_phrase, (text if self.error is True else self.error, *kept)))]
        said = " ".join(words)
        known: list[Cause] = [cause for sign, cause in _CAUSES if re.search(sign, said, re.IGNORECASE)]
        cause: Cause = known[0] if known else "unavailable" if words else "empty"
        whole = (each for each in reversed(words) if cause == "unavailable" or " " in each)
        failure = Failure(cause=cause, detail=next(whole, ""))
        return FailedCall(stage=stage, member=self.model or "", failure=failure)

    def ranked(self, labels: Mapping[str, str]) -> list[str]:
        """Return a review's ballot in the labels of its answer."""
        ballot = _ballot(self.ballot, by_letter(labels or _ALL))
        if ballot is None:
            ballot = parse_ranking(self.stage2 or "", [*labels])
        own = _label_map(self.label_to_model)  # each reviewer read the answers under labels of its own
        label_of = dict(zip(labels.values(), labels, strict=True))
        named = (label_of.get(own.get(label, "")) if own else label for label in ballot)
        return [*dict.fromkeys(filter(None, named))]


class _Message(_Tolerant):
    """A message of another program: a question, an answer by its stages, or neither."""

    role: Any = _under("role type sender")
    asked: Text = _under("content text question message query")
    stage1: object = _under("stage1 responses")
    stage2: object = None
    stage2_5: object = _under("stage2_5 stage2b")
    final: object = _under("stage5 stage3 synthesis verdict")
    chairman: Name = _under("chairman_model chairman")
    text: Text = _under(_TEXT)
    error: object = None

    @model_validator(mode="before")
    @classmethod
    def _by_stages(cls, data: JsonObject) -> JsonObject:
        """Put what other programs number otherwise, or keep by rounds, in its stage."""
        inner, later = data.get("content"), data.get("stage3")
        fields: JsonObject = {**inner, **data} if isinstance(inner, dict) else {**data}
        if isinstance(later, list):
            is_review = any("ranking" in each for each in _entries(cast("object", later)))
            fields |= {"stage2" if is_review else "stage2_5": later, "stage3": fields.get("stage4")}
        rounds = [*_entries(fields.get("rounds"))]
        if rounds and not (fields.get("stage1") or fields.get("responses")):
            ranks = [each for each in rounds if each.get("round_type") == "rankings"]
            said = [each for each in rounds if each not in ranks]
            texts = [each.get("stage1") or each.get("responses") for each in said]
            reviewed = [each.get("stage2") for each in said[:1]] + [
                each.get("responses") for each in ranks
            ]
            revised = texts[-1] if len(texts) > 1 else None
            fields["stage1"] = texts[0] if texts else None
            fields["stage2"] = fields.get("stage2") or next(filter(None, reviewed), None)
            fields["stage2_5"] = fields.get("stage2_5") or fields.get("stage2b") or revised
        return fields

    def answer(self) -> JsonObject:
        """Return an assistant's message in the form of the storage contract."""
        seated, reviewers = [*_calls(self.stage1)], [*_calls(self.stage2)]
        answers, failed = _given("stage1", seated)
        before = {str(each["model"]): each["response"] for each in answers}
        reviews, silent = _given("stage2", reviewers)
        revised, unrevised = _given("stage2_5", (c for c in _calls(self.stage2_5) if c.model in before))
        for each in revised:
            each |= {"original_response": before[str(each["model"])], "peer_critiques": "", **each}
        final, unanswered = _given("stage3", self._chairman())
        reviewers = [call for call in reviewers if call.model in {each["model"] for each in reviews}]
        labels = self._labels([*before], [str(call.model) for call in seated], reviewers)
        ballots = {str(call.model): call.ranked(labels) for call in reviewers}
        result: JsonObject = {
            **self.raw,
            "role": "assistant",
            "stage1": answers,
            "stage2": [{**each, "parsed_ranking": ballots[str(each["model"])]} for each in reviews],
            "stage2_5": revised or None,
            "stage3": final[0] if final else {"model": "", "response": "", "source": "missing"},
        }
        if labels:
            result = {"aggregate_ranking": aggregate(ballots, labels).dump(), **result}
            result["label_to_model"] = labels
        if failures := [*failed, *silent, *unrevised, *unanswered]:
            result["failures"] = [each.dump() for each in failures]
        return result

    def _chairman(self) -> Iterator[_Call]:
        """Yield the call for the final answer, if there was one."""
        given = self.final if not isinstance(self.final, list) else None
        given = given or self.text or ({"error": self.error} if self.error else None)
        if given is not None:
            call = _Call.model_validate(given if isinstance(given, dict) else {"response": given})
            if call.model == "error" or call.stage3 in _SENTENCES_FOR_ERRORS:
                call.error = True
            call.model = (call.model if call.model != "error" else None) or self.chairman or "chairman"
            yield call

    def _labels(
        self, answered: Sequence[str], seated: Sequence[str], reviews: Sequence[_Call]
    ) -> dict[str, str]:
        """Return whose answer each label is; nothing where that isn't known for every label used.

        A program that doesn't say so has labelled the answers in their order, possibly with the failed.
        """
        holders = (self.raw, as_object(self.raw.get("metadata")))
        given = [_label_map(holder.get(name)) for holder in holders for name in _LABELS]
        in_order = [dict(zip(_ALL, names, strict=False)) for names in (answered, seated)]
        used = {label for review in reviews for label in _ballot(review.ballot, _LETTERS) or ()}
        for labels in (*given, *in_order) if reviews else ():
            if labels and used <= {*labels}:
                # Two members of one model have names of their own, which a map may not tell apart.
                is_shared = len({*labels.values()}) < len(labels) == len(answered)
                return dict(zip(labels, answered, strict=True)) if is_shared else labels
        return {}


def _given(stage: str, calls: Iterable[_Call]) -> tuple[list[JsonObject], list[FailedCall]]:
    said = [call.given(stage) for call in calls]
    failed = [each for each in said if isinstance(each, FailedCall)]
    return [each for each in said if not isinstance(each, FailedCall)], failed


def _label_map(given: object) -> dict[str, str]:
    """Return the labels with the names that a program keeps for them; nothing if it isn't such a map."""
    labels: dict[str, str] = {}
    for key, value in as_object(given).items():
        label, name = (
            _label(key, _LETTERS),
            _Call.model_validate(as_object(value) or {"model": value}).model,
        )
        if label is None or not name:
            return {}
        labels[label] = name
    return labels


def _label(name: str, known: Mapping[str, str]) -> str | None:
    # Nearly all are written in full; reading them otherwise takes most of a document's time.
    written = known.get(name.removeprefix("Response "))
    return written if written == name else label_named(name, known)


def _ballot(given: object, known: Mapping[str, str]) -> list[str] | None:
    """Return the labels that a program has read in a review; `None` if it hasn't read any list."""
    if not isinstance(given, list):
        return None if given is None else []
    ranked = (as_object(each).get("label") or _text(each) or "" for each in cast("list[object]", given))
    return [*dict.fromkeys(label for each in ranked if (label := _label(str(each), known)))]


def _calls(given: object) -> Iterator[_Call]:
    """Yield the entries of a stage by their members' names, each of which occurs once."""
    seen: Counter[str] = Counter()
    for number, entry in enumerate(_entries(given), 1):
        call = _Call.model_validate(entry)
        ranked = entry.get("ranking")
        if isinstance(ranked, list):  # only the order, without a text
            order = [*map(str, cast("list[object]", ranked))]
            listed = (f"{place}. {label}" for place, label in enumerate(order, 1))
            call.stage2, call.ballot = "\n".join(("FINAL RANKING:", *listed)), call.ballot or order
        name = call.model or f"member {number}"
        seen[name] += 1
        call.model = name if seen[name] == 1 else f"{name}#{seen[name]}"
        yield call


def _entries(given: object) -> Iterator[JsonObject]:
    """Yield the entries of a list, or of an object by member."""
    fields = as_object(given)
    listed = next((fields[name] for name in _LISTED if isinstance(fields.get(name), list)), given)
    if isinstance(listed, list):
        for each in cast("list[object]", listed):
            if isinstance(each, dict | str):
                yield {"response": each} if isinstance(each, str) else cast("JsonObject", each)
    else:
        for name, each in fields.items():
            yield {"model": name, **(as_object(each) or {"response": each})}


def _phrase(given: object) -> str | None:
    if isinstance(given, str):
        return " ".join(given.split())
    fields = as_object(given)
    said = (_phrase(fields[name]) for name in ("message", "code", "type") if name in fields)
    return next(filter(None, said), None)
