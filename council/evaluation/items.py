"""The questions of an evaluation, as a file has them: JSON lines, or the data sets of other programs.

Inspect's samples: https://inspect.aisi.org.uk/datasets.html; deepeval's goldens:
https://deepeval.com/docs/evaluation-datasets.
"""

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping
from string import ascii_uppercase
from typing import Annotated, Literal, Self, cast

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from council.calls import JsonObject

DataSet = Literal["jsonl", "inspect", "deepeval"]
CheckerName = Literal["number", "choice", "date", "code", "exact", "judge"]
"""How a reply is scored; `judge` by the judge, everything else without a model."""
MOST_CHOICES = len(ascii_uppercase)


class UnreadableItems(ValueError):
    """A file of questions can't be used; `problems` has a sentence for each reason."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def _texts(value: object) -> object:
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return tuple(map(_text, cast("Iterable[object]", value)))
    return (_text(value),)


def _text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class EvalItem(BaseModel):
    """One question with what a right answer is.

    `target` lists the accepted answers; where there are `choices`, each is one of them or its letter.
    `rubric` lists the points of a good answer, for the judge. Of `metadata`, two entries are read:
    `checker` names the checker, and `tolerance` is how far a number may be off. Other fields of a file
    are left out.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: Annotated[str, BeforeValidator(_text), Field(min_length=1)]
    input: str = Field(min_length=1)
    target: Annotated[tuple[str, ...], BeforeValidator(_texts)] = ()
    choices: Annotated[tuple[str, ...], BeforeValidator(_texts), Field(max_length=MOST_CHOICES)] = ()
    rubric: Annotated[tuple[str, ...], BeforeValidator(_texts)] = ()
    metadata: Annotated[Mapping[str, object], BeforeValidator(lambda value: value or {})] = {}

    @model_validator(mode="after")
    def _can_be_scored(self) -> Self:
        if not (self.target or self.rubric):
            raise ValueError("it has neither a target nor a rubric")
        if self.choices and not all(self.chosen(each) is not None for each in self.target):
            raise ValueError("its target is none of its choices")
        if (named := self.metadata.get("checker")) is not None and named not in _CHECKERS:
            raise ValueError(f"there is no checker {named}; there are {', '.join(_CHECKERS)}")
        return self

    @property
    def prompt(self) -> str:
        """The question as the council gets it: with its choices, if the text doesn't list them."""
        if not self.choices or all(choice in self.input for choice in self.choices):
            return self.input
        listed = (
            f"{letter}) {choice}" for letter, choice in zip(ascii_uppercase, self.choices, strict=False)
        )
        return "\n".join([self.input, "", *listed])

    def chosen(self, answer: str) -> int | None:
        """Return which choice an accepted answer is, by its text or its letter."""
        if answer in self.choices:
            return self.choices.index(answer)
        letters = ascii_uppercase[: len(self.choices)]
        return letters.index(answer) if len(answer) == 1 and answer in letters else None


_CHECKERS: tuple[CheckerName, ...] = ("number", "choice", "date", "code", "exact", "judge")


def digest(items: tuple[EvalItem, ...]) -> str:
    """Return what identifies a list of questions: 32 hexadecimal digits."""
    rows = [item.model_dump(mode="json", exclude_defaults=True) for item in items]
    content = orjson.dumps(rows, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def read_items(content: str, source: DataSet = "jsonl") -> tuple[EvalItem, ...]:
    """Read a file of questions. Raises `UnreadableItems` with every problem."""
    problems: list[str] = []
    items: list[EvalItem] = []
    for where, row in _rows(content, problems):
        try:
            items.append(EvalItem.model_validate(_READERS[source](row, len(items) + 1)))
        except ValidationError as error:
            problems += [f"{where}: {_said(detail)}" for detail in error.errors()]
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            problems.append(f"the id {item.id} is there twice")
        seen.add(item.id)
    if not items and not problems:
        problems.append("there is no question in it")
    if problems:
        raise UnreadableItems(problems)
    return tuple(items)


def _said(detail: Mapping[str, object]) -> str:
    field = ".".join(map(str, cast("tuple[object, ...]", detail["loc"])))
    words = str(detail["msg"]).removeprefix("Value error, ")
    return f"{field}: {words}" if field else words


def _rows(content: str, problems: list[str]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the objects of a JSON list, of JSON lines or of a table with a header."""
    text = content.removeprefix("\ufeff").strip()
    if text.startswith("["):
        try:
            rows = cast("list[object]", orjson.loads(text))
        except orjson.JSONDecodeError as error:
            problems.append(f"it isn't JSON: {error}")
            return
        numbered = ((f"entry {number}", row) for number, row in enumerate(rows, 1))
    elif text.startswith("{"):
        numbered = _lines(text, problems)
    else:
        table = csv.DictReader(io.StringIO(text))
        numbered = ((f"row {number}", cast("object", row)) for number, row in enumerate(table, 1))
    for where, row in numbered:
        if isinstance(row, dict):
            yield where, cast("JsonObject", row)
        else:
            problems.append(f"{where}: it isn't an object")


def _lines(text: str, problems: list[str]) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield f"line {number}", orjson.loads(line)
            except orjson.JSONDecodeError as error:
                problems.append(f"line {number}: it isn't JSON: {error}")


def _own(row: JsonObject, number: int) -> JsonObject:
    del number
    return row


def _inspect(row: JsonObject, number: int) -> JsonObject:
    """Read a sample of Inspect; an `input` of several messages is joined."""
    asked = row.get("input")
    if isinstance(asked, list):
        messages = cast("list[JsonObject]", asked)
        asked = "\n\n".join(str(message.get("content", "")) for message in messages)
    metadata = row.get("metadata")
    return {
        "id": row.get("id") or str(number),
        "input": asked,
        "target": row.get("target"),
        "choices": row.get("choices") or None,
        "metadata": metadata if isinstance(metadata, dict) else {},
    }


def _deepeval(row: JsonObject, number: int) -> JsonObject:
    """Read a golden of deepeval; what it was retrieved from comes before the question."""
    context = row.get("context")
    before = "\n\n".join(map(str, cast("list[object]", context))) if isinstance(context, list) else ""
    asked = str(row.get("input") or "")
    return {
        "id": str(row.get("name") or number),
        "input": f"{before}\n\n{asked}" if before else asked,
        "target": row.get("expected_output"),
    }


_READERS = {"jsonl": _own, "inspect": _inspect, "deepeval": _deepeval}
