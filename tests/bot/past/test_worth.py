"""`/council-stats` says what the council was worth, with the runs behind each figure: exact texts."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from bot.app import Library, open_library
from bot.past import pages
from bot.past.pages import Figures
from bot.render.markdown import render
from council.document.conversation import AssistantMessage, Source
from council.document.results import (
    AggregateRanking,
    DepthReason,
    JudgeReport,
    ObjectionReply,
    RankedAnswer,
    RunDepth,
    Savings,
    Stage1Result,
    Stage2_5Result,
    Stage3Result,
)
from council.profile import Depth
from storage.scope import Scope
from tests.council.scripted import FOUR

HERE = Source(platform="slack", workspace="T1", channel="C1", user="U1")
NOW = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)
LABELS = [f"Response {letter}" for letter in "ABCD"]


def depth(
    reason: DepthReason,
    asked: Depth = "auto",
    *,
    changed: bool | None = None,
    saved: Savings | None = None,
    judge: str = "judge/model",
) -> RunDepth:
    """Return how deep a run went, for this reason."""
    audited = reason == "audited"
    skipped = reason in ("agreed", "one_answer") or asked == "quick"
    return RunDepth(
        asked=asked,
        ran="quick" if skipped else "full",
        reason=reason,
        audited=audited,
        judge=JudgeReport(model=judge, agree=reason in ("agreed", "audited"), points=[]),
        saved=saved,
        changed=changed,
    )


def message(number: int, how: RunDepth | None) -> AssistantMessage:
    """Return an answer: of four members, the last is never ranked first and seldom changes its answer."""
    answers = [Stage1Result(model=name, response="Shard.") for name in FOUR]
    final = Stage3Result(model="chair/man", response="Shard.")
    if how and how.ran == "quick":
        return AssistantMessage(role="assistant", stage1=answers, stage2=[], stage3=final, depth=how)
    first = number % 3
    order = [FOUR[first], *(name for name in FOUR[:3] if name != FOUR[first]), FOUR[3]]
    ranking = AggregateRanking(
        places=[
            RankedAnswer(
                label=LABELS[place], model=name, mean_position=place + 1.0, votes=3, wins=3 - place
            )
            for place, name in enumerate(order)
        ],
        agreement=0.5,
        ballots=4,
    )
    corrections = [
        Stage2_5Result(
            model=name,
            original_response="Shard.",
            peer_critiques="",
            corrected_response="Shard in two steps." if changes else "Shard.",
            changed=changes,
            replies=[ObjectionReply(critic="another", objection="Too short.", holds=changes)],
        )
        for place, name in enumerate(FOUR)
        for changes in [(number + place) % 2 == 0 if place < 3 else number % 20 == 0]
    ]
    return AssistantMessage(
        role="assistant",
        stage1=answers,
        stage2=[],
        stage2_5=corrections,
        stage3=final,
        label_to_model=dict(zip(LABELS, order, strict=True)),
        aggregate_ranking=ranking,
        depth=how,
    )


async def stats(library: Library, runs: Sequence[RunDepth | None]) -> str:
    """Store these runs' documents and return what `/council-stats` says of them below the members."""
    for number, how in enumerate(runs):
        stored = await library.store.add_exchange(
            str(uuid.UUID(int=number)),
            "Should we shard?",
            message(number, how),
            title="Sharding",
            source=HERE,
            now=NOW,
        )
        await library.index.upsert(stored)
    found = await library.past_answers.statistics(Scope.of(HERE), days=None)
    text = render(pages.statistics(found, Figures(30)).message)
    return text.partition("### What the council was worth\n\n")[2] or text


CENT = Savings(tokens=9_000, cost=0.03)


AUDITS = [depth("audited", changed=False), depth("audited", changed=None)]


async def test_what_is_said_depends_on_how_many_runs_there_were(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    """Below three nothing is compared; what has fewer than ten runs behind it is a count."""
    agreed, unpriced = depth("agreed", saved=CENT), Savings(tokens=9_000, cost=None)
    many = [*AUDITS, *[agreed] * 4, *[depth("different")] * 4, None, depth("agreed", saved=unpriced)]
    for number, runs in enumerate(([], [None, agreed], [None] * 3, many)):
        async with open_library(tmp_path / str(number)) as library:
            assert await stats(library, runs) == snapshot


async def test_an_audit_that_finds_a_loss_ends_auto(tmp_path: Path) -> None:
    """For certain: even the interval's lower bound is too much."""
    runs = [depth("audited", changed=number % 2 == 0) for number in range(12)]
    async with open_library(tmp_path) as library:
        said = await stats(library, [*runs, depth("agreed")])
    assert "Of 12 audited, reviews changed the recommendation in 6: 21 to 79 %" in said
    assert "What skipping saved isn't known: no price is, in 1 run." in said
    assert (
        "Set depth to full: where auto would skip the reviews, they change 21 to 79 % of the "
        "recommendations."
    ) in said
