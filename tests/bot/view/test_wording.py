"""Errors and numbers, as people read them."""

from pathlib import Path
from typing import get_args

import pytest

from bot.view.wording.card import agreement, so_far, thread
from bot.view.wording.failures import causes, explain, failure
from bot.view.wording.figures import (
    duration,
    listing,
    moment,
    money,
    ordinal,
    position,
    rank,
    short_names,
    tokens,
)
from council.document.results import Agreement, Rank
from council.errors import Failure, NoAnswers, RunForgotten, RunStopped
from council.events import ContextRead
from council.text import clip
from council.usage import Usage, total
from storage.errors import ConversationNotFound, DatabaseError, DocumentError, damaged
from tests.pairs import rows

KEY = Failure(cause="key", status=401, detail="No auth credentials found")


@rows(
    ("error", "sentence"),
    [
        (
            NoAnswers({"a/x": Failure(cause="empty"), "b/y": Failure(cause="lost")}),
            "No member of the council answered. Ask again.",
        ),
        (
            NoAnswers({"a/x": Failure(cause="connection"), "b/y": Failure(cause="no_server")}),
            (
                "No member of the council answered. Asking again won't help yet. "
                "Whoever runs the council finds the cause in its log."
            ),
        ),
        (
            NoAnswers({"a/x": KEY, "b/y": Failure(cause="rate_limited")}),
            (
                "No member of the council answered. Wait a minute, then press Continue. "
                "Whoever runs the council finds the cause in its log."
            ),
        ),
        (
            RunStopped(),
            "The run was stopped before there were enough answers. Press Start over to ask again.",
        ),
        (
            RunStopped(enough=True),
            "The run was stopped before there was a final answer. Press Continue: finished calls aren't paid twice.",
        ),
        (
            RunForgotten(),
            "The question was deleted while it was being answered. None of it is kept.",
        ),
        (ConversationNotFound("550e", Path("data")), "There is no conversation 550e. Check the id."),
        (
            DocumentError("it isn't JSON", Path("a.json")),
            "The conversation's file can't be used: a.json: it isn't JSON. Repair it or move it away.",
        ),
        (
            DatabaseError("council.db is locked by another process; wait and try again"),
            (
                "The council's data can't be used: council.db is locked by another process. "
                "Ask again in a minute; if it happens again, tell whoever runs the council."
            ),
        ),
    ],
)
def test_known_errors_say_what_happened_and_what_to_do(error: Exception, sentence: str) -> None:
    """Each error of the two trees has its sentence."""
    assert explain(error, "7b1f") == sentence


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            NoAnswers({"a/x": Failure(cause="unavailable")}),
            "No member of the council answered. Wait a minute, then run: council retry 7b1f",
        ),
        (
            RunStopped(enough=True),
            (
                "The run was stopped before there was a final answer. "
                "To continue with the finished work, run: council retry 7b1f"
            ),
        ),
    ],
)
def test_a_terminal_has_no_button_to_press(error: Exception, sentence: str) -> None:
    """The command that does the same is named, with the run's id."""
    assert explain(error, "7b1f", at_terminal=True) == sentence


@rows("at_terminal", [True, False])
@rows(
    ("error", "sentence"),
    [
        (
            NoAnswers({"a/x": Failure(cause="unavailable")}),
            "No member of the council answered. Wait a minute, then ask again.",
        ),
        (
            NoAnswers({"a/x": Failure(cause="over_budget")}),
            "No member of the council answered. Have the budget raised, then ask again.",
        ),
        (
            RunStopped(enough=True),
            "The run was stopped before there was a final answer. Ask again to start over.",
        ),
        (
            RunStopped(enough=False),
            "The run was stopped before there were enough answers. Ask again to start over.",
        ),
    ],
)
def test_a_program_has_no_button_and_no_command(
    error: Exception, sentence: str, at_terminal: bool
) -> None:
    """It asks again: another request is another run."""
    assert explain(error, "7b1f", at_terminal=at_terminal, is_program=True) == sentence


def test_a_files_path_is_shown_only_at_the_terminal() -> None:
    """A chat channel sees file names only, not the machine's folders."""
    path = Path("/srv/council/data/council.db")
    error = damaged(path)
    assert explain(error, "7b1f").startswith("The council's data can't be used: council.db is damaged. ")
    assert "/srv" not in explain(error, "7b1f")
    assert explain(error, "7b1f", at_terminal=True).startswith(
        "The council's data can't be used: /srv/council/data/council.db is damaged;"
    )
    broken = DocumentError("it is not JSON", path.with_name("550e.json"))
    assert explain(broken, "7b1f") == (
        "The conversation's file can't be used: 550e.json: it is not JSON. Repair it or move it away."
    )


def test_an_unknown_error_shows_the_run_and_nothing_of_itself() -> None:
    """Its message isn't shown."""
    assert explain(ValueError("secret sk-1234"), "7b1f") == (
        "Something unexpected ended the run. Ask again; if it happens again, "
        "give this run's id to whoever runs the bot: 7b1f"
    )


def test_a_failure_quotes_its_provider_shortly() -> None:
    """Attempts are counted; the provider's sentence is quoted, on one line, cut at a word."""
    busy = Failure(cause="rate_limited", attempts=3, detail="Rate limit\nreached. ")
    assert failure(busy) == "the provider was too busy, after 3 attempts (“Rate limit reached”)"
    assert failure(Failure(cause="empty")) == "the reply was empty"
    silent = Failure(cause="silence", attempts=2, detail="nothing arrived for 45 s")
    assert failure(silent) == (
        "it was silent for too long, after 2 attempts (“nothing arrived for 45 s”)"
    )
    assert failure(Failure(cause="bad_request", detail="long " * 50)).endswith("long long…”)")


def test_an_accounts_refusal_is_said_once_for_all_its_members() -> None:
    """Any other cause is a member's own, even if two share it."""
    empty = Failure(cause="empty")
    assert causes({"a": KEY, "b": empty, "c": Failure(cause="key", attempts=0), "d": empty}) == [
        (("a", "c"), "the provider refused the key"),
        (("b",), "the reply was empty"),
        (("d",), "the reply was empty"),
    ]


@rows(
    ("seconds", "said"),
    [
        (0, "0.1 s"),
        (0.42, "0.4 s"),
        (0.95, "1 s"),
        (12.4, "12 s"),
        (59.6, "1 min"),
        (65, "1 min 5 s"),
        (3600, "1 h"),
        (7_380, "2 h 3 min"),
    ],
)
def test_durations_carry_their_units(seconds: float, said: str) -> None:
    """Seconds, minutes, hours; never more than two of them."""
    assert duration(seconds) == said


@rows(
    ("usage", "said"),
    [
        (Usage(cost=0.0123), "$0.012"),
        (Usage(cost=0.2143), "$0.21"),
        (Usage(cost=0.0996), "$0.10"),
        (Usage(cost=0.0994), "$0.099"),
        (Usage(cost=0.096), "$0.096"),
        (Usage(cost=0.02), "$0.02"),
        (Usage(cost=0.00999), "$0.01"),
        (Usage(cost=0.000123), "$0.0001"),
        (Usage(cost=0.5), "$0.50"),
        (Usage(cost=0.1), "$0.10"),
        (Usage(cost=1234.5), "$1,234.50"),
        (Usage(cost=0.00001), "under $0.0001"),
        (Usage(), "no cost"),
        (Usage(unpriced=3), "3 calls without a known price"),
        (Usage(cost=0.01, unpriced=2), "$0.01 plus 2 calls without a known price"),
        (Usage(cost=0.01, unpriced=1), "$0.01 plus 1 call without a known price"),
        (Usage(cost=0.15, unsure=0.1), "$0.05, and up to $0.10 for calls that were cut off"),
        (
            total([Usage(cost=0.15, unsure=0.1), Usage(cost=0.5)]),
            "$0.55, and up to $0.10 for calls that were cut off",
        ),
    ],
)
def test_money_never_passes_a_part_for_the_whole(usage: Usage, said: str) -> None:
    """Calls of unknown price are counted beside the sum."""
    assert money(usage) == said


def test_estimated_tokens_say_so() -> None:
    """Measured and estimated numbers don't read alike."""
    assert so_far(["4 s", money(Usage(cost=0.3, unsure=0.1))]).startswith("4 s, $0.20 so far, and up to")
    assert tokens(Usage(prompt_tokens=1_000, completion_tokens=234)) == "1,234 tokens"
    assert tokens(Usage(prompt_tokens=1)) == "1 token"
    assert tokens(Usage(prompt_tokens=1_234, source="estimated")) == "about 1,234 tokens (estimated)"


def test_places_are_ordinals() -> None:
    """The teens end in th."""
    said = [ordinal(place) for place in (1, 2, 3, 4, 11, 12, 13, 21, 22, 111)]
    assert said == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "111th"]


def test_mean_positions_are_short() -> None:
    """Two decimals at most; a dash where there is no position."""
    assert [position(mean) for mean in (1.0, 1.5, 4 / 3, 10.0, None)] == [
        "1",
        "1.5",
        "1.33",
        "10",
        "\u2013",
    ]


@rows("word", get_args(Agreement))
def test_every_agreement_has_words(word: Agreement) -> None:
    """They are about rankings, and empty where those are neither alike nor different."""
    said = agreement(word)
    assert said.startswith("reviewers ranked ") if word != "mixed" else not said


@pytest.mark.parametrize("word", [None, "too few shared votes"])
def test_what_can_not_be_compared_has_no_words(word: str | None) -> None:
    """Not even in a row that an earlier version wrote."""
    assert not agreement(word)


def test_a_shared_rank_shows_it() -> None:
    """As on sports pages."""
    assert [rank(Rank(2, shared, 2.0)) for shared in (False, True)] == ["2nd", "2nd ="]


def test_lists_read_as_spoken() -> None:
    """The last item follows an and."""
    assert [listing(items) for items in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]


def test_moments_are_in_universal_time() -> None:
    """A timestamp that is none is shown as it is."""
    assert moment("2026-01-20T10:30:00.000Z") == "2026-01-20 10:30 UTC"
    assert moment("2026-01-20T12:30:00+02:00") == "2026-01-20 10:30 UTC"
    assert moment("yesterday") == "yesterday"


def test_clipping_ends_at_a_word() -> None:
    """A text without a space is cut anywhere."""
    assert clip("short", 5) == "short"
    assert clip("one two three", 10) == "one two…"
    assert clip("abcdefgh", 5) == "abcd…"


def test_names_are_short_and_apart() -> None:
    """The provider is left out unless names would be equal; personas are shown; long ids are shortened in the middle."""
    long = "lab/" + "a" * 20 + "-instruct-experimental-2026-01-20"
    assert short_names(
        ["openai/gpt-5", "x/same", "y/same", "m#the-critic", "m#the-devils-advocate", "m#b", long],
        {"m#b": "Bee"},
    ) == {
        "openai/gpt-5": "gpt-5",
        "x/same": "x/same",
        "y/same": "y/same",
        "m#the-critic": "m (The Critic)",
        "m#the-devils-advocate": "m (The Devil's Advocate)",
        "m#b": "m (Bee)",
        long: "aaaaaaaaaaaaaaaaaaaa-…2026-01-20",
    }


@rows(
    ("read", "said"),
    [
        (ContextRead(14), "Read 14 messages of this thread."),
        (ContextRead(1), "Read 1 message of this thread."),
        (ContextRead(50, 10), "Read the last 50 messages of this thread; 10 older ones were left out."),
        (ContextRead(1, 1), "Read the last message of this thread; 1 older one was left out."),
        (
            ContextRead(50, 150, more=True),
            "Read the last 50 messages of this thread; 150 or more older ones were left out.",
        ),
        (
            ContextRead(50, more=True),
            "Read the last 50 messages of this thread; older ones were left out.",
        ),
        (
            ContextRead(3, files_left_out=1),
            "Read 3 messages of this thread. 1 file was left out.",
        ),
        (
            ContextRead(3, 1, files_left_out=2),
            "Read the last 3 messages of this thread; 1 older one was left out. 2 files were left out.",
        ),
        (
            ContextRead(0, unread="the scope channels:history is missing"),
            "Read only the question, not this thread: the scope channels:history is missing.",
        ),
    ],
)
def test_what_was_read_of_a_thread_is_said_in_a_line(read: ContextRead, said: str) -> None:
    """With how much was left out, or why nothing was read."""
    assert thread(read) == said
