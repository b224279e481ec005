"""The criteria for answers, and the short form people type: `Cost:3, Security:2!, Speed`."""

import re
import unicodedata
from typing import Annotated, Self, cast

from pydantic import AfterValidator, BaseModel, Field, model_validator

LONGEST_NAME = 60
MOST = 20
HEAVIEST = 100
HOW_TO = (
    "write each as a name, with :weight and ! for a must-have where wanted: Cost:3, Security:2!, Speed"
)

_TYPED = re.compile(
    r"(?P<name>[^:!]+?)\s*(?P<early>!)?\s*(?::\s*(?P<weight>\d{1,3}(?:\.\d{1,3})?))?\s*(?P<late>!)?"
)


def _one_line(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME:
        raise ValueError(f"a criterion's name has 1 to {LONGEST_NAME} characters")
    if strange := re.search(r"[^\w\s()/&+.'\u2019-]", name):
        raise ValueError(f"a criterion's name can't contain {strange[0]}")
    if name.isdigit():
        raise ValueError("a criterion's name isn't only a number")
    return name


class Criterion(BaseModel, frozen=True, extra="forbid"):
    """One criterion for answers; an answer that fails a must-have is disqualified."""

    name: Annotated[str, AfterValidator(_one_line)]
    description: str = Field(default="", max_length=300)
    weight: float = Field(default=1.0, gt=0, le=HEAVIEST, allow_inf_nan=False)
    must_have: bool = False

    def __str__(self) -> str:
        weight = "" if self.weight == 1 else f":{self.weight:g}"
        return f"{self.name}{weight}{'!' if self.must_have else ''}"


class EvaluationCriteria(BaseModel, frozen=True, extra="forbid"):
    """1 to 20 criteria with names of their own; also reads their typed form, and a bare list."""

    criteria: tuple[Criterion, ...] = Field(min_length=1, max_length=MOST)

    @model_validator(mode="before")
    @classmethod
    def _read_shorter_forms(cls, data: object) -> object:
        if isinstance(data, str):
            pieces = _pieces(data)
            if not 1 <= len(pieces) <= MOST:
                raise ValueError(f"write 1 to {MOST} criteria, separated by commas")
            return {"criteria": [_read(piece) for piece in pieces]}
        return {"criteria": cast("object", data)} if isinstance(data, list | tuple) else data

    @model_validator(mode="after")
    def _tell_names_apart(self) -> Self:
        names = [criterion.name.casefold() for criterion in self.criteria]
        for criterion, name in zip(self.criteria, names, strict=True):
            if names.count(name) > 1:
                raise ValueError(f"there is more than one criterion {criterion.name}")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(criterion.name for criterion in self.criteria)

    def __str__(self) -> str:
        return ", ".join(map(str, self.criteria))


def _pieces(text: str) -> list[str]:
    # Keyboards of other languages type the signs in full width.
    pieces = [piece.strip() for piece in re.split(r"[,;\u3001]", unicodedata.normalize("NFKC", text))]
    if pieces and not pieces[-1]:
        pieces.pop()
    return pieces


def _read(piece: str) -> Criterion:
    found = _TYPED.fullmatch(piece)
    if found is None:
        raise ValueError(f"\u201c{piece}\u201d isn't a criterion; {HOW_TO}")
    weight = float(found["weight"] or 1)
    if not 0 < weight <= HEAVIEST:
        raise ValueError(f"a criterion's weight is more than 0 and at most {HEAVIEST}")
    must_have = bool(found["early"] or found["late"])
    return Criterion(name=found["name"], weight=weight, must_have=must_have)
