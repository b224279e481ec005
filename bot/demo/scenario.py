"""Examples written by hand: a question, and what its members and a chairman say about it.

`council demo` and the pictures in docs/pictures play them through the real pipeline. Each is a folder
of texts with an `example.toml`. The labels under which a reviewer sees the answers are read from its
prompt.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import islice
from typing import Literal

from pydantic import BaseModel

TextKind = Literal["answer", "review", "correction", "title", "final"]

TITLE_MODEL = "openai/gpt-5-mini"
_LABEL = re.compile(r"Response [A-Z]\b")
_OBJECTIONS = re.compile(r"^Objections to your answer:\n\n.*?\n\[end ", re.MULTILINE | re.DOTALL)
_NUMBERED = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)
_MARK = re.compile(r"\bthis mark\b[^\n]*:\n\n(\S+)\n")


class Cast(BaseModel, frozen=True, extra="forbid"):
    """Who plays an example: models by their ids.

    `offer` says in a list what the example is about. `votes` has whom each member ranks, best first;
    `mistaken` is the member whose first answer is wrong.
    """

    title: str
    offer: str
    chairman: str
    votes: Mapping[str, tuple[str, ...]]
    mistaken: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """One example, with the name of its folder."""

    name: str
    cast: Cast

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(self.cast.votes)

    @property
    def question(self) -> str:
        return self.text("question.md")

    def text(self, *path: str) -> str:
        return _text(self.name, *path)

    def says(self, part: TextKind, model: str, prompt: str) -> str:
        match part:
            case "answer":
                return self._of("answers", model)
            case "review":
                return self._review(model, prompt)
            case "correction":
                return self._correction(model, prompt)
            case "title":
                return self.cast.title
            case "final":
                return self._final(prompt)

    def _of(self, folder: str, member: str) -> str:
        return self.text(folder, f"{_short(member)}.md")

    def _review(self, reviewer: str, prompt: str) -> str:
        """Return a ballot in JSON over the answers in this prompt, under the labels they have there."""
        labels = {
            _short(member): label for member in self.members if (label := self._label(member, prompt))
        }
        said = json.loads(self.text("reviews", f"{_short(reviewer)}.json"))
        reviews = [{"label": labels[about], **said[about]} for about in labels if about in said]
        ranking = [
            labels[_short(member)] for member in self.cast.votes[reviewer] if _short(member) in labels
        ]
        return json.dumps({"reviews": reviews, "ranking": ranking}, ensure_ascii=False)

    def _correction(self, model: str, prompt: str) -> str:
        """Return a member's replies to the objections in this prompt, and its answer."""
        known = _replies(self.name).get(model, {})
        asked = _OBJECTIONS.search(prompt)
        said = [
            (number, reply)
            for number, objection in (_NUMBERED.findall(asked[0]) if asked else ())
            for reply in islice((reply for words, reply in known.items() if words in objection), 1)
        ]
        answer = self._of("corrections", model)
        if _MARK.search(prompt):
            lines = [f"{number}. {reply}" for number, reply in said]
            return "\n".join([*lines, "", _marked(prompt), "", answer])
        split = [(number, *reply.split(": ", 1)) for number, reply in said]
        replies = [
            {"objection": int(number), "holds": verdict == "holds", "reason": reason}
            for number, verdict, reason in split
        ]
        return json.dumps({"replies": replies, "answer": answer}, ensure_ascii=False)

    def _label(self, member: str, prompt: str) -> str | None:
        """Return the label above a member's answer; `None` if the prompt doesn't contain that answer."""
        before, found, _ = prompt.partition(self._of("answers", member))
        return _LABEL.findall(before)[-1] if found else None

    def _final(self, prompt: str) -> str:
        """Return the chairman's answer, with its notes below the mark from this prompt."""
        mark = _marked(prompt)
        is_whole = all(member in prompt for member in self.members)
        notes = self.text("notes.md" if is_whole else "notes-without-mistaken.md")
        final = self.text("final.md")
        return f"{final}\n\n{mark}\n{notes}" if notes else final


def _marked(prompt: str) -> str:
    """Return the mark that a prompt gives, above which and below which something else is written."""
    mark = _MARK.search(prompt)
    if mark is None:
        raise LookupError("the prompt gives no mark")
    return mark[1]


def _short(member: str) -> str:
    return member.rpartition("/")[2]


def _folder() -> Traversable:
    return files("bot.demo").joinpath("texts")


@cache
def _text(*path: str) -> str:
    return _folder().joinpath(*path).read_text(encoding="utf-8").strip()


@cache
def _replies(name: str) -> Mapping[str, Mapping[str, str]]:
    """Return what each author replies to an objection, by some of its words; nobody need object."""
    path = _folder().joinpath(name, "replies.toml")
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


@cache
def example(name: str) -> Example:
    return Example(name, Cast.model_validate(tomllib.loads(_text(name, "example.toml"))))


NAMES = ("migration", "tenants", "webhook", "backup")
"""The examples in the order in which they are offered."""
