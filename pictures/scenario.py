"""The question in the pictures, and what its council says: written texts, so that pictures stay alike.

The texts are in pictures/scenario; everything around them is a real run. Which part a model plays, and
under which labels it sees the answers, is read from the prompt it was sent.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from tests.model_server import Json

TEXTS = Path(__file__).parent / "scenario"
GPT = "openai/gpt-5"
CLAUDE = "anthropic/claude-sonnet-4.5"
GEMINI = "google/gemini-2.5-pro"
GROK = "x-ai/grok-4"
CHAIRMAN = "anthropic/claude-opus-4.1"
TITLE_MODEL = "openai/gpt-5-mini"
MEMBERS = (GPT, CLAUDE, GEMINI, GROK)

TITLE = "Widen payments.id before it runs out"
VOTES: Mapping[str, tuple[str, ...]] = {
    GPT: (GEMINI, CLAUDE, GROK),
    CLAUDE: (GPT, GEMINI, GROK),
    GEMINI: (CLAUDE, GPT, GROK),
    GROK: (CLAUDE, GPT, GEMINI),
}
_SECTION = re.compile(r"^(?=\W*(?:Review of )?\{)", re.MULTILINE)
_MEMBER = re.compile(r"\{([^{}\s]+)\}")
_MARK = re.compile(r"\bthis mark\b[^\n]*:\n\n(\S+)\n")


def text(*path: str) -> str:
    """Return a text of the scenario."""
    return TEXTS.joinpath(*path).read_text(encoding="utf-8").strip()


def part(request: Json) -> str:
    """Say which part of a council a request asks for."""
    last = _messages(request)[-1]
    for mark, name in (
        ("Then rank them.", "review"),
        ("whole corrected answer", "correction"),
        ("Give this conversation a title", "title"),
        ("Now answer the question itself", "final"),
    ):
        if mark in last:
            return name
    return "answer"


def play(request: Json) -> str:
    """Say what the asked model says in the part it is asked for."""
    model = str(request["model"])
    match part(request):
        case "review":
            return _review(model, _messages(request)[-1])
        case "correction":
            return _of("corrections", model)
        case "title":
            return TITLE
        case "final":
            return _final(_messages(request)[-1])
        case _:
            return _of("answers", model)


def _of(folder: str, member: str) -> str:
    return text(folder, f"{_short(member)}.md")


def _short(member: str) -> str:
    return member.rpartition("/")[2]


def _messages(request: Json) -> list[str]:
    return [str(message["content"]) for message in cast("list[Json]", request["messages"])]


def _review(reviewer: str, prompt: str) -> str:
    """Return a review of the answers in this prompt, under the labels that they have there."""
    labels = {
        _short(member): found[1]
        for member in MEMBERS
        if (
            found := re.search(
                rf"^(Response [A-Z]):\n\n{re.escape(_of('answers', member))}", prompt, re.MULTILINE
            )
        )
    }
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


def _final(prompt: str) -> str:
    """Return the chairman's answer, with its notes below the mark that this prompt gives."""
    mark = _MARK.search(prompt)
    if mark is None:
        raise LookupError("the chairman was given no mark for its notes")
    notes = text("notes.md" if GROK in prompt else "notes-without-grok.md")
    return f"{text('final.md')}\n\n{mark[1]}\n{notes}"


QUESTION = text("question.md")
