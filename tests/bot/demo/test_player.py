"""The example of `council demo` goes through the real pipeline and shows what a council is for."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from bot.demo.player import PROFILE, SECONDS, Player
from bot.demo.scenario import CHAIRMAN, MEMBERS, MISTAKEN, TITLE, VOTES, text
from bot.terminal.demo import replay
from council.document.conversation import AssistantMessage
from council.events import AnswerStreamed, Emit, Event, RunCompleted, TitleCompleted
from council.profile import Profile
from storage.index.statistics import Typical

FAST = Player(speed=1000)


async def heard() -> list[Event]:
    """Play the example and return its events."""
    events: list[Event] = []

    @contextmanager
    def surface(question: str, profile: Profile, typical: Typical | None = None) -> Generator[Emit]:
        assert typical is None
        assert (question, profile.example) == (text("question.md"), True)
        yield events.append

    assert await replay(FAST, surface)
    return events


@pytest.fixture
async def events(capfd: pytest.CaptureFixture[str]) -> list[Event]:
    """Return the example's events; standard output has a file descriptor meanwhile."""
    del capfd
    return await heard()


@pytest.fixture
def message(events: list[Event]) -> AssistantMessage:
    """Return the stored answer."""
    return next(event.message for event in events if isinstance(event, RunCompleted))


def test_every_part_is_played_and_read(message: AssistantMessage) -> None:
    """Nobody fails, every vote counts as it was written, and the chairman writes answer and notes."""
    assert message.failures == []
    assert [answer.model for answer in message.stage1] == [*MEMBERS]
    labels = message.label_to_model or {}
    votes = {each.model: tuple(labels[name] for name in each.parsed_ranking) for each in message.stage2}
    assert votes == VOTES
    final = message.stage3
    assert (final.model, final.response) == (CHAIRMAN, text("final.md"))
    assert final.notes is not None
    assert all((final.notes.dissent, final.notes.only, final.notes.changed, final.notes.ask))


def test_reviews_catch_a_mistake_and_the_correction_drops_it(message: AssistantMessage) -> None:
    """That is the point of the example."""
    mistake = "binary-compatible"
    answers = {answer.model: answer.response for answer in message.stage1}
    corrections = {each.model: each.corrected_response for each in message.stage2_5 or []}
    assert [model for model, said in answers.items() if mistake in said] == [MISTAKEN]
    assert any(mistake in review.ranking for review in message.stage2)
    assert [model for model, said in corrections.items() if mistake in said] == []
    assert all(corrections[model] != answers[model] for model in MEMBERS)


def test_the_final_answer_streams_word_by_word(events: list[Event]) -> None:
    """Nothing of the notes is shown as answer."""
    pieces = [event.text for event in events if isinstance(event, AnswerStreamed)]
    assert len(pieces) > 300
    assert "".join(pieces).strip() == text("final.md")


def test_it_has_a_title_costs_nothing_and_is_marked(
    events: list[Event], message: AssistantMessage
) -> None:
    """Its tokens are an estimate: nobody counted them."""
    assert [event.title for event in events if isinstance(event, TitleCompleted)] == [TITLE]
    usage = message.usage
    assert usage is not None
    assert (usage.run.cost, usage.run.unpriced, usage.run.source) == (0, 0, "estimated")
    assert PROFILE.example


def test_it_takes_about_twenty_seconds() -> None:
    """Long enough to watch, short enough to wait for."""
    assert 18 <= SECONDS <= 22
