"""The examples of `council demo` go through the real pipeline and show what a council is for."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib.resources import files

import pytest

from bot.demo.player import SECONDS, Player
from bot.demo.scenario import NAMES, example
from bot.terminal.demo import demo
from council.document.conversation import AssistantMessage
from council.events import AnswerStreamed, Emit, Event, RunCompleted, TitleCompleted
from council.profile import Profile
from council.replies import objections_about
from storage.index.statistics import Typical

MIGRATION = example("migration")


PLAYED: dict[str, list[Event]] = {}


async def heard(name: str) -> list[Event]:
    """Return the events of an example, which is played once for all tests."""
    events: list[Event] = []

    @contextmanager
    def surface(question: str, profile: Profile, typical: Typical | None = None) -> Generator[Emit]:
        assert typical is None
        assert (question, profile.example) == (example(name).question, True)
        yield events.append

    if name not in PLAYED:
        assert await demo(Player(example(name), speed=1000), surface)
        PLAYED[name] = events
    return PLAYED[name]


def message(events: list[Event]) -> AssistantMessage:
    return next(event.message for event in events if isinstance(event, RunCompleted))


@pytest.mark.usefixtures("capfd")
@pytest.mark.parametrize("name", NAMES)
async def test_every_part_is_played_and_read(name: str) -> None:
    """Nobody fails, every vote counts as it was written, and what the chairman writes is the answer."""
    played = example(name)
    stored = message(await heard(name))
    assert stored.failures == []
    points = [point for review in stored.stage2 for point in review.points or ()]
    assert {point.source for point in points} == {"structured"}
    assert all(point.found is (True if point.quote else None) for point in points)
    assert [answer.model for answer in stored.stage1] == [*played.members]
    labels = stored.label_to_model or {}
    votes = {each.model: tuple(labels[name] for name in each.parsed_ranking) for each in stored.stage2}
    assert votes == played.cast.votes
    final = stored.stage3
    assert (final.model, final.response) == (played.cast.chairman, played.text("final.md"))
    assert (final.notes is not None) == bool(played.text("notes.md"))
    corrections = {each.model: each.corrected_response for each in stored.stage2_5 or []}
    answers = {answer.model: answer.response for answer in stored.stage1}
    assert all((corrections[model] == answers[model]) == (name == "backup") for model in played.members)


@pytest.mark.usefixtures("capfd")
@pytest.mark.parametrize("name", ["migration", "tenants", "webhook"])
async def test_every_objection_is_answered(name: str) -> None:
    """With a reason; some don't hold."""
    stored = message(await heard(name))
    labels = {model: label for label, model in (stored.label_to_model or {}).items()}
    for each in stored.stage2_5 or ():
        raised = objections_about(labels[each.model], stored.stage2)
        replies = each.replies or []
        assert [reply.objection for reply in replies] == [objection.text for objection in raised]
        assert all(reply.reason for reply in replies)
        assert any(reply.holds for reply in replies)


@pytest.mark.usefixtures("capfd")
async def test_reviews_catch_a_mistake_and_the_correction_drops_it() -> None:
    """That is the point of the first example."""
    stored = message(await heard("migration"))
    mistake = "binary-compatible"
    answers = {answer.model: answer.response for answer in stored.stage1}
    corrections = {each.model: each.corrected_response for each in stored.stage2_5 or []}
    assert [model for model, said in answers.items() if mistake in said] == [MIGRATION.cast.mistaken]
    assert any(mistake in review.ranking for review in stored.stage2)
    assert [model for model, said in corrections.items() if mistake in said] == []


@pytest.mark.usefixtures("capfd")
async def test_the_final_answer_streams_word_by_word() -> None:
    """Nothing of the notes is shown as answer; it has a title, costs nothing and is marked."""
    events = await heard("migration")
    pieces = [event.text for event in events if isinstance(event, AnswerStreamed)]
    assert len(pieces) > 300
    assert "".join(pieces).strip() == MIGRATION.text("final.md")
    titles = [event.title for event in events if isinstance(event, TitleCompleted)]
    assert titles == [MIGRATION.cast.title]
    usage = message(events).usage
    assert usage is not None
    assert (usage.run.cost, usage.run.unpriced, usage.run.source) == (0, 0, "estimated")


def test_every_example_is_offered_and_takes_about_twenty_seconds() -> None:
    """Long enough to watch, short enough to wait for."""
    texts = {path.name for path in files("bot.demo").joinpath("texts").iterdir()}
    assert texts == {*NAMES}
    assert 18 <= SECONDS <= 22
