"""An example written by hand: a question, and what four members and a chairman say about it.

`council demo` and the pictures in docs/pictures play it through the real pipeline. One member is wrong,
its peers notice, its correction drops the mistake, and two members still disagree with the answer. The
labels under which a reviewer sees the answers are read from its prompt.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

Part = Literal["answer", "review", "correction", "title", "final"]

GPT = "openai/gpt-5"
CLAUDE = "anthropic/claude-sonnet-4.5"
GEMINI = "google/gemini-2.5-pro"
GROK = "x-ai/grok-4"
CHAIRMAN = "anthropic/claude-opus-4.1"
TITLE_MODEL = "openai/gpt-5-mini"
MEMBERS = (GPT, CLAUDE, GEMINI, GROK)
MISTAKEN = GROK
"""Whose first answer is wrong."""

TITLE = "Widen payments.id before it runs out"
VOTES: Mapping[str, tuple[str, ...]] = {
    GPT: (GEMINI, CLAUDE, GROK),
    CLAUDE: (GPT, GEMINI, GROK),
    GEMINI: (CLAUDE, GPT, GROK),
    GROK: (CLAUDE, GPT, GEMINI),
}
_SECTION = re.compile(r"^(?=\W*(?:Review of )?\{)", re.MULTILINE)
_MEMBER = re.compile(r"\{([^{}\s]+)\}")
_LABEL = re.compile(r"Response [A-Z]\b")
_MARK = re.compile(r"\bthis mark\b[^\n]*:\n\n(\S+)\n")


@cache
def text(*path: str) -> str:
    """Return a text of the example."""
    return files("bot.demo").joinpath("texts", *path).read_text(encoding="utf-8").strip()


def question() -> str:
    """Return what the council is asked."""
    return text("question.md")


def says(part: Part, model: str, prompt: str) -> str:
    """Return what a model says when it is asked for a part with this prompt."""
    match part:
        case "answer":
            return _of("answers", model)
        case "review":
            return _review(model, prompt)
        case "correction":
            return _of("corrections", model)
        case "title":
            return TITLE
        case "final":
            return _final(prompt)


def _of(folder: str, member: str) -> str:
    return text(folder, f"{_short(member)}.md")


def _short(member: str) -> str:
    return member.rpartition("/")[2]


def _review(reviewer: str, prompt: str) -> str:
    """Return a review of the answers in this prompt, under the labels they have there."""
    labels = {_short(member): label for member in MEMBERS if (label := _label(member, prompt))}
    sections = {
        labels[member]: _MEMBER.sub(lambda named: labels[named[1]], section).strip()
        for section in _SECTION.split(_of("reviews", reviewer))
        for member in _MEMBER.findall(section)[:1]
        if member in labels
    }
    ranked = [labels[_short(member)] for member in VOTES[reviewer] if _short(member) in labels]
    places = [f"{place}. {label}" for place, label in enumerate(ranked, 1)]
    return "\n\n".join(
        [*(sections[label] for label in sorted(sections)), "FINAL RANKING:\n" + "\n".join(places)]
    )


def _label(member: str, prompt: str) -> str | None:
    """Return the label above a member's answer; `None` if the prompt doesn't contain that answer."""
    before, found, _ = prompt.partition(_of("answers", member))
    return _LABEL.findall(before)[-1] if found else None


def _final(prompt: str) -> str:
    """Return the chairman's answer, with its notes below the mark from this prompt."""
    mark = _MARK.search(prompt)
    if mark is None:
        raise LookupError("the chairman was given no mark for its notes")
    notes = text("notes.md" if GROK in prompt else "notes-without-grok.md")
    return f"{text('final.md')}\n\n{mark[1]}\n{notes}"
