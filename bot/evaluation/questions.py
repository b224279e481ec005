"""The questions of an evaluation: read by Inspect's data sets, scored by Inspect's scorers.

https://inspect.aisi.org.uk/datasets.html and https://inspect.aisi.org.uk/scorers.html say how both work.
"""

import asyncio
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import cast

import orjson
from inspect_ai import scorer
from inspect_ai.dataset import Sample, csv_dataset, json_dataset
from inspect_ai.model import ChatMessageUser, Model, ModelName, ModelOutput
from inspect_ai.solver import TaskState, multiple_choice

from bot.errors import UsageError
from bot.view.wording import evaluation as wording
from council.evaluation import FINAL_LINE, Item, final

SCORERS = ("match", "choice", "includes", "pattern", "model_graded_qa")
SHORT, LONGEST_NUMBER = 8, 300
"""Words of an answer that needs no judge, and characters of a number that a float can hold."""
_NUMBER = re.compile(r"[-+\u2212]?[$€£]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3})?\s?%?")
_PERCENT = re.compile(r"(?<=\d)\s?%")


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """One question with what a right answer is: `asked` and `targets` as its file has them.

    Where there are `choices`, the targets are letters. `found_by` is a regular expression whose group is
    the answer.
    """

    id: str
    asked: str
    targets: tuple[str, ...]
    choices: tuple[str, ...] = ()
    scorer: str = "model_graded_qa"
    found_by: str | None = None

    @property
    def is_judged(self) -> bool:
        return self.scorer == "model_graded_qa"

    def item(self) -> Item:
        prompt = self.asked
        if self.choices:
            prompt = asyncio.run(self._chosen("")).user_prompt.text
        elif not (self.is_judged or self.found_by or "answer:" in prompt.casefold()):
            prompt += f"\n\n{FINAL_LINE}"
        return Item(self.id, prompt, self.is_judged)

    async def score(self, text: str, judge: Model | None) -> float | None:
        """Return an answer's score from 0 to 1; `None` where the judge gives none."""
        if self.choices:
            state = await self._chosen(text)
        else:
            whole = self.is_judged or self.found_by
            # A percent sign is no part of a number, with or without a space.
            state = self._state(text if whole else _PERCENT.sub(" %", final(text)))
        words = "|".join(map(re.escape, sorted(self.targets, key=len, reverse=True)))
        check = {
            "match": lambda: scorer.match(numeric=True),
            "choice": scorer.choice,
            "includes": scorer.includes,
            "pattern": lambda: scorer.pattern(self.found_by or rf"(?<!\w)({words})(?!\w)"),
            "model_graded_qa": lambda: scorer.model_graded_qa(model=judge),
        }[self.scorer]()
        scored = await check(state, scorer.Target([*self.targets]))
        value = math.nan if scored is None else scorer.value_to_float()(scored.value)
        return None if math.isnan(value) else value

    def _state(self, said: str) -> TaskState:
        return TaskState(
            model=ModelName("none/none"),
            sample_id=self.id,
            epoch=1,
            input=self.asked,
            messages=[ChatMessageUser(content=self.asked)],
            choices=[*self.choices],
            output=ModelOutput.from_content("council", said),
        )

    async def _chosen(self, said: str) -> TaskState:
        """Return the state of a question with choices once this was said to Inspect's prompt."""

        async def generate(state: TaskState, *_: object, **__: object) -> TaskState:
            state.output = ModelOutput.from_content("council", said)
            return state

        return await multiple_choice(multiple_correct=len(self.targets) > 1)(self._state(""), generate)


def digest(questions: Iterable[EvalQuestion]) -> str:
    return hashlib.blake2b(orjson.dumps([*questions]), digest_size=16).hexdigest()


def read_questions(path: Path) -> tuple[EvalQuestion, ...]:
    """Read a file of questions: CSV by its ending, else JSON, or JSON lines by `.jsonl`.

    Raises `UsageError` with every row that can't be used.
    """
    questions: dict[str, EvalQuestion] = {}
    problems: list[str] = []

    def read(row: Mapping[str, object]) -> list[Sample]:
        number = len(questions) + len(problems) + 1
        try:
            fields = {str(key).strip().casefold(): value for key, value in dict(row).items()}
            question = _question(fields, number)
            orjson.dumps(question)
        except (ValueError, TypeError, KeyError, re.error) as error:  # TypeError: no object, no UTF-8
            problems.append(wording.IN_ROW.format(number, error))
            return []
        if question.id in questions:
            problems.append(wording.IN_ROW.format(number, f"its id, {question.id}, is an earlier row's"))
        else:
            questions[question.id] = question
        return []

    try:
        with path.open(encoding="utf-8-sig") as file:
            head = file.readline()
        if path.suffix.casefold() in (".csv", ".tsv"):
            # Excel separates by semicolons where a comma is in numbers.
            csv_dataset(str(path), read, delimiter=max(",;\t", key=head.count))
        else:
            json_dataset(str(path), read, encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(
            wording.UNREADABLE.format(path, (error.strerror or str(error)).lower())
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(wording.UNREADABLE.format(path, "it isn't UTF-8")) from error
    except ValueError as error:  # of a row that is none: the reader names its place
        problems.append(str(error).removeprefix(f"{path} "))
    if problems or not questions:
        raise UsageError(wording.problems(str(path), problems or ["it has no question"]))
    return tuple(questions.values())


def _question(row: Mapping[str, object], number: int) -> EvalQuestion:
    """Read a row, its columns in lower case. Raises `ValueError` with what is wrong with it."""
    asked = row.get("input") or row.get("question")
    if isinstance(asked, list):  # messages, as Inspect has them
        asked = "\n\n".join(str(each["content"]) for each in cast("list[dict[str, object]]", asked))
    targets = _several(row.get("target", row.get("answer")))
    choices, found_by = _several(row.get("choices"), "|,"), str(row.get("pattern") or "") or None
    if not (isinstance(asked, str) and asked.strip()):
        raise ValueError("it has no question, for which there is the column question or input")
    if not targets:
        raise ValueError("it has no right answer, for which there is the column answer or target")
    if choices:
        letters = dict(zip(ascii_uppercase, choices, strict=False))
        targets = [next((key for key in letters if each in (letters[key], key)), "") for each in targets]
        if not all(targets) or len(choices) > len(ascii_uppercase):
            raise ValueError("its right answer is none of its choices, or there are more than 26")
    named = str(row.get("scorer") or "") or _scorer_for(targets, choices, found_by)
    if named not in SCORERS or (named == "choice") != bool(choices):
        raise ValueError(
            f"it can't be scored by {named}; there are {', '.join(SCORERS)}, and choice is for choices"
        )
    if named == "match":
        targets = [_PERCENT.sub("", each) for each in targets]
    if found_by and not re.compile(found_by).groups:
        raise ValueError("its pattern has no group that holds the answer")
    id_ = row.get("id")
    named_id = str(number if id_ in (None, "") else id_)
    return EvalQuestion(named_id, asked.strip(), tuple(targets), tuple(choices), named, found_by)


def _scorer_for(targets: Sequence[str], choices: Sequence[str], found_by: str | None) -> str:
    if choices or found_by:
        return "choice" if choices else "pattern"
    if all(len(each) <= LONGEST_NUMBER and _NUMBER.fullmatch(each) for each in targets):
        return "match"
    if any(len(each.split()) > SHORT for each in targets):
        return "model_graded_qa"
    # Where words have no spaces between them, none is looked for as a whole word.
    return "pattern" if all(map(str.isascii, targets)) else "includes"


def _several(value: object, separators: str = "") -> list[str]:
    """Return one or several texts: a list, or a cell that holds a JSON list or is separated."""
    if isinstance(value, str):
        with suppress(ValueError):  # a text may begin like a list
            value = json.loads(value) if value.lstrip().startswith("[") else value
    if isinstance(value, str):
        mark = next((each for each in separators if each in value), "\0")
        value = value.split(mark)
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return [text for each in values if each is not None and (text := str(each).strip())]
