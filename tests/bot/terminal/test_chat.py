"""`council chat` where no model is set up: a channel in memory that holds the examples."""

import io
import os
import re
import sys
from pathlib import Path

import pytest

from bot.config.configuration import Configuration, load
from bot.past.pages import Choice
from bot.terminal import bot
from bot.terminal.bot import Choices
from bot.view.wording.terminal import ANOTHER
from council import demonstration

ANSWER = [Choice(label, "see", label) for label in ("Earlier question", "Open")]
TRANSCRIPT = Choice("Transcript", "transcript", "id")
BUTTONS = "Type a number: 1 Open, 2 Transcript.\n"


class Chat:
    """A chat without any model, in an empty folder; `say` returns what it writes to what is typed."""

    def __init__(
        self, configuration: Configuration, patch: pytest.MonkeyPatch, out: pytest.CaptureFixture[str]
    ) -> None:
        self._configuration = configuration
        self._patch = patch
        self._out = out

    async def say(self, *lines: str) -> str:
        """Type lines, and the end of the input; return everything written, without what changes."""
        typed = io.TextIOWrapper(io.BytesIO("".join(f"{line}\n" for line in lines).encode()), "utf-8")
        self._patch.setattr(sys, "stdin", typed)
        await bot.chat_in_memory(self._configuration)
        return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "DATE", self._out.readouterr().out)


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Chat:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demonstration, "available", lambda: False)
    return Chat(load(), monkeypatch, capsys)


async def test_the_channel_holds_four_examples_marked_as_such(chat: Chat, tmp_path: Path) -> None:
    """In its history, and not in the data folder: nothing is written there."""
    shown = await chat.say("/council-history")
    assert shown.startswith(
        "No model is set up. This channel holds four examples, written by hand, to try the commands on: "
        "/council-history lists them. Nothing that you do here is kept. To set up models of your own: make "
        "init\n"
    )
    listed = re.findall(r"(?s)\*\*(\d\. .*?)\*\*  \n(.*?)  \n(.*?)\n\n", shown)
    assert [title for title, _, _ in listed] == [
        "1. Example: A nightly dump and one hour of loss",
        "2. Example: A webhook handler that may credit twice",
        "3. Example: Eine Datenbank je Kunde oder eine f\u00fcr alle?",
        "4. Example: Widen payments.id before it runs out",
    ]
    assert {facts for _, facts, _ in listed} == {"DATE"}
    assert all(beginning.endswith(".") for _, _, beginning in listed)
    assert shown.endswith("\n\nType a number: 1 to 4 for an answer.\n")
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - not in the event loop's way


async def test_numbers_open_what_buttons_do_and_stay_after_votes(chat: Chat) -> None:
    """A number that nothing has is answered, and ? lists what there is."""
    shown = await chat.say("/council-show widen", "1", "99", "?", "1", "4")
    _, answer, reviews, rest = shown.split("# Example: Widen payments.id before it runs out\n", 3)
    assert "Example, written by hand: no model was asked, and the models named here said none" in answer
    assert answer.endswith(BUTTONS)
    assert reviews.startswith("\n## claude-sonnet-4.5\n")
    assert reviews.endswith(
        "There is no 99 here; ? lists what there is.\n"
        "- 1: gpt-5\n- 2: gemini-2.5-pro\n- 3: grok-4\n"
        "- 4: Transcript\n\n"
    )
    assert re.search(
        r"\nOpen it in a browser; it is deleted when you leave:\nfile:///\S+\.html\n$", rest
    )


async def test_search_and_statistics_count_examples_and_forgetting_deletes_them_here(chat: Chat) -> None:
    """Of times and costs there are none: nobody was asked; the next chat has them again."""
    shown = await chat.say("/council-stats", "?")
    assert "\n\n4 answers. " in shown
    assert "Half of the answers" not in shown
    assert "\n| grok-4 | 1 | too few to compare | no cost |\n" in shown
    assert shown.endswith(
        "\n\nThe examples, written by hand, are counted here.\n\n"
        "There is nothing to choose now. /council-history lists past answers.\n\n"
    )
    shown = await chat.say(
        "/council-search pgBackRest", "/council-forget channel", "1", "/council-history"
    )
    assert "**1. Example: A nightly dump and one hour of loss**" in shown
    assert "Deleted this channel's whole history.\n" in shown
    assert shown.endswith("There is no answer here yet. Ask with /council.\n\n")
    assert "4 for an answer" in await chat.say("/council-history")


async def test_a_question_says_what_is_missing_where_no_model_can_answer(chat: Chat) -> None:
    """Neither a provider nor the built-in model."""
    shown = await chat.say("/council Why?", "/council-help", "hello there", "/council-shw x", "/x")
    assert shown.endswith(
        "To ask, begin with /council: /council hello there\n"
        "/council-shw isn't a command here. Did you mean /council-show?\n"
        "/x isn't a command here. /council-help lists what there is.\n"
    )
    assert (
        "OPENROUTER_API_KEY: there is no model provider, and the built-in demonstration model isn't "
        "installed. Run `council init`, "
    ) in shown
    assert "Cost:" not in shown


def test_buttons_stay_until_a_sheet_has_its_own() -> None:
    """By number and by label, whatever the case; the transcript's alone replaces none."""
    choices = Choices()
    assert choices.offer([TRANSCRIPT]) == "Type a number: 1 Transcript."
    offered = "Type a number: 1 Earlier question, 2 Open, 3 Transcript."
    assert choices.offer([*ANSWER, TRANSCRIPT]) == offered
    assert choices.offer([TRANSCRIPT]) == choices.offer([]) == ANOTHER
    assert choices.pressed("2") == choices.pressed("open") == ANSWER[1]
    entries = [Choice(f"Open {number}", "see", str(number)) for number in (4, 5)]
    older = Choice("Older", "turn", "older")
    assert choices.offer([*entries, older]) == "Type a number: 4 to 5 for an answer, 6 Older."
    assert choices.pressed("5") == choices.pressed("open 5") == entries[1]
    assert choices.pressed("6") == older
    assert choices.pressed("1") is choices.pressed("Open") is None
    choices.clear()
    assert choices.offer([]) is None
