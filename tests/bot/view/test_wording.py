"""Errors, numbers, files and depth, as people read them."""

from pathlib import Path
from typing import get_args

from syrupy.assertion import SnapshotAssertion

from bot.transcript.markdown import to_markdown
from bot.view.wording import worth
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
from bot.view.wording.inputs import files_read
from council.document.conversation import FileRecord, LinkRecord
from council.document.results import (
    Agreement,
    DepthReason,
    DifferingPoint,
    JudgeReport,
    Rank,
    RunDepth,
    Savings,
)
from council.errors import Cause, Failure, NoAnswers, RunForgotten, RunStopped
from council.events import ContextRead
from council.text import clip
from council.usage import Usage, total
from storage.errors import ConversationNotFound, DatabaseError, DocumentError, damaged
from tests.bot.sample_run import ASSISTANT, CONVERSATION
from tests.pairs import rows

KEY = Failure(cause="key", status=401, detail="No auth credentials found")


CAUSES: tuple[tuple[Cause, Cause], ...] = (
    *(("empty", "lost"), ("connection", "no_server"), ("key", "rate_limited")),
    *(("unavailable", "unavailable"), ("over_budget", "over_budget")),
)
ERRORS: tuple[Exception, ...] = (
    *(
        NoAnswers({"a/x": Failure(cause=one), "b/y": Failure(cause=other)})
        for one, other in CAUSES
    ),
    *(RunStopped(), RunStopped(enough=True), RunForgotten()),
    *(ConversationNotFound("550e", Path("data")), DocumentError("it isn't JSON", Path("/srv/data/a.json"))),
    DatabaseError("council.db is locked by another process; wait and try again"),
    *(damaged(Path("/srv/council/data/council.db")), ValueError("secret sk-1234")),
)  # fmt: skip


def test_each_error_says_what_happened_and_what_to_do(snapshot: SnapshotAssertion) -> None:
    """A terminal has no button, and a program neither button nor command; paths are the terminal's alone."""
    assert [explain(error, "7b1f") for error in ERRORS] == snapshot(name="chat")
    assert [explain(error, "7b1f", at_terminal=True) for error in ERRORS] == snapshot(name="terminal")
    by_program = [explain(error, "7b1f", is_program=True) for error in ERRORS]
    assert by_program == snapshot(name="program")
    assert not any("/srv" in said or "sk-1234" in said for said in by_program)


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


def test_figures_carry_their_units(snapshot: SnapshotAssertion) -> None:
    """Never more than two units of time; calls of unknown price are counted beside the sum, never passed for nothing."""
    seconds = (0, 0.42, 0.95, 12.4, 59.6, 65, 3600, 7_380)
    assert [duration(each) for each in seconds] == snapshot
    costs = (
        *(0.0123, 0.2143, 0.0996, 0.0994, 0.096, 0.02, 0.00999, 0.000123, 0.5, 0.1, 1234.5, 0.00001),
    )
    used = (
        *(Usage(cost=cost) for cost in costs),
        *(Usage(unpriced=3), Usage(cost=0.01, unpriced=2), Usage(cost=0.01, unpriced=1), Usage()),
        *(Usage(cost=0.15, unsure=0.1), total([Usage(cost=0.15, unsure=0.1), Usage(cost=0.5)])),
    )
    assert [money(each) for each in used] == snapshot
    counted = (Usage(prompt_tokens=1_000, completion_tokens=234), Usage(prompt_tokens=1))
    estimated = Usage(prompt_tokens=1_234, source="estimated")
    assert [tokens(each) for each in (*counted, estimated)] == snapshot
    assert so_far(["4 s", money(Usage(cost=0.3, unsure=0.1))]).startswith("4 s, $0.20 so far, and up to")
    assert [ordinal(place) for place in (1, 2, 3, 4, 11, 12, 13, 21, 22, 111)] == snapshot
    assert [position(mean) for mean in (1.0, 1.5, 4 / 3, 10.0, None)] == snapshot
    assert [rank(Rank(2, shared, 2.0)) for shared in (False, True)] == ["2nd", "2nd ="]
    assert [listing(items) for items in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]
    moments = ("2026-01-20T10:30:00.000Z", "2026-01-20T12:30:00+02:00", "yesterday")
    assert [moment(each) for each in moments] == [*["2026-01-20 10:30 UTC"] * 2, "yesterday"]
    assert [clip("short", 5), clip("one two three", 10), clip("abcdefgh", 5)] == snapshot


def test_every_agreement_has_words() -> None:
    """They are about rankings, and empty where those are neither alike nor different, or can't be compared."""
    for word in (*get_args(Agreement), None, "too few shared votes"):
        said = agreement(word)
        compared = word in get_args(Agreement) and word != "mixed"
        assert said.startswith("reviewers ranked ") if compared else not said


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


def test_what_was_read_of_a_thread_is_said_in_a_line(snapshot: SnapshotAssertion) -> None:
    """With how much was left out, or why nothing was read."""
    read = (
        *(ContextRead(14), ContextRead(1), ContextRead(50, 10), ContextRead(1, 1)),
        *(ContextRead(50, 150, more=True), ContextRead(50, more=True)),
        *(ContextRead(3, files_left_out=1), ContextRead(3, 1, files_left_out=2)),
        ContextRead(0, unread="the scope channels:history is missing"),
    )
    assert [thread(each) for each in read] == snapshot


def depth(reason: DepthReason, *, points: int = 0, saved: Savings | None = None) -> RunDepth:
    """Return how deep a run went that was to choose by itself."""
    listed = [DifferingPoint(text="30 or 90 days")] * points
    return RunDepth(
        asked="auto",
        ran="quick" if reason == "agreed" else "full",
        reason=reason,
        audited=reason == "audited",
        judge=JudgeReport(model="judge/model", agree=not points, points=listed),
        saved=saved,
    )


def test_what_was_skipped_and_saved(snapshot: SnapshotAssertion) -> None:
    """Dollars where they are known, tokens where they aren't, and nothing for nothing."""
    known = ((9_876, 0.0312), (9_876, 0.00004), (9_876, None), (9_876, -0.01), (-20, None))
    saved = [*(Savings(tokens=tokens, cost=cost) for tokens, cost in known), None]
    assert [worth.skipped(depth("agreed", saved=each), by_member=False) for each in saved] == snapshot
    judged = worth.skipped(depth("agreed"), by_member=True)
    assert judged == "The answers agree (the judge is one of the members); reviews skipped."


def test_why_auto_went_to_full(snapshot: SnapshotAssertion) -> None:
    """One phrase in the footer."""
    reasons: tuple[DepthReason, ...] = (
        *("audited", "different", "undecided", "cut_off", "steering", "no_verdict", "stopped"),
    )
    said = {each: worth.reviewed(depth(each), by_member=False) for each in reasons}
    assert said == snapshot
    differing = [worth.reviewed(depth("different", points=count), by_member=False) for count in (1, 3)]
    assert differing == ["the answers differ in 1 point", "the answers differ in 3 points"]


def test_the_record_has_what_the_judge_found() -> None:
    """Each point, and what is known since: the card's footer only counts them."""
    differing = depth("different", points=1)
    conversation = CONVERSATION.model_copy(
        update={
            "messages": [CONVERSATION.messages[0], ASSISTANT.model_copy(update={"depth": differing})]
        }
    )
    assert (
        "### What the judge found\n\n"
        "judge/model read the first answers, without their authors' names. They differ in 1 important "
        "point:\n\n"
        "\u2022 30 or 90 days\n\n"
    ) in to_markdown(conversation)
    assert worth.verdict(JudgeReport(model="j", agree=True, points=[])) == (
        "j read the first answers, without their authors' names. They recommend the same and differ in "
        "nothing important."
    )
    audited = depth("audited").model_copy(update={"changed": True})
    assert worth.known_since(audited) == (
        "Reviewed all the same, as a check: the reviews changed the recommendation."
    )


def file(name: str, kind: str = "text", **more: object) -> FileRecord:
    """Return what is known of a file."""
    return FileRecord.model_validate({"name": name, "kind": kind, "characters": 9, **more})


@rows(
    ("files", "said"),
    [
        ([file("notes.txt")], ["Read notes.txt."]),
        ([file("plan.pdf", "pdf", pages=12)], ["Read plan.pdf, 12 pages."]),
        (
            [
                file("plan.pdf", "pdf", pages=12, omitted="pages 3\u20135 hold only pictures", seen_by=["gpt-5"]),
                file("shot.png", "picture", width=1200, height=800, seen_by=["gpt-5", "grok-4"]),
            ],
            [
                "Read plan.pdf, 12 pages (pages 3\u20135 hold only pictures, seen by gpt-5); shot.png, a picture, 1200 \u00d7 800 (seen by gpt-5 and grok-4)."
            ],
        ),
        (
            [
                file("shot.png", "picture", characters=None, width=1200, height=800, seen_by=[],
                     omitted="no member of this council sees pictures"),
                file("old.pdf", "pdf", characters=None, omitted="encrypted"),
            ],
            [
                "Not read: shot.png (no member of this council sees pictures), old.pdf (encrypted).",
            ],
        ),
        ([file("scan.pdf", "pdf", characters=None, pages=2, seen_by=[],
               omitted="pages 1\u20132 hold only pictures")],
         ["Not read: scan.pdf (pages 1\u20132 hold only pictures)."]),
    ],
)  # fmt: skip
def test_files_are_named_with_what_was_read(files: list[FileRecord], said: list[str]) -> None:
    """Who saw pictures, and why something wasn't read."""
    assert [*files_read(files)] == said


def test_links_are_named_as_people_name_them() -> None:
    """Without their scheme; those of a follow-up's conversation are read again."""
    links = [
        LinkRecord(url="https://example.org/post", title="Post", words=2300),
        LinkRecord(url="https://example.org/", omitted="needs a login"),
    ]
    assert [*files_read([], links, ["plan.pdf"])] == [
        "Read example.org/post, 2,300 words.",
        "Not read: example.org (needs a login).",
        "Read again from earlier: plan.pdf.",
    ]
