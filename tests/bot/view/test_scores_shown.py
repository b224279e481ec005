"""Criteria and scores as people see them: in the thread, on the card, in the transcript."""

from syrupy.assertion import SnapshotAssertion

from bot.render.markdown import render
from bot.view.run import RunView, fold, of_document
from bot.view.thread import record, thread
from council.criteria import EvaluationCriteria
from council.document.results import ScoredAnswer, ScoringMatrix
from council.events import StageCompleted
from tests.bot.sample_run import (
    ASSISTANT,
    CLAUDE,
    CONVERSATION,
    GEMINI,
    GPT,
    LABELS,
    PROFILE,
    QUESTION,
    RANKING,
    REVIEWS,
)

CRITERIA = EvaluationCriteria.model_validate("Cost:3, Security!")
MATRIX = ScoringMatrix(
    answers=[
        ScoredAnswer(
            label="Response B", model=GEMINI, means={"Cost": 9.0, "Security": 6.5}, total=8.375, votes=2
        ),
        ScoredAnswer(label="Response C", model=GPT, means={}, total=None, votes=0),
        ScoredAnswer(
            label="Response A",
            model=CLAUDE,
            means={"Cost": 8.0, "Security": 2.0},
            total=6.5,
            votes=2,
            failed=["Security"],
        ),
    ],
    ballots=2,
)


def stored(matrix: ScoringMatrix = MATRIX) -> RunView:
    """Return the view of the sample's document with scores."""
    message = ASSISTANT.model_copy(update={"criteria": CRITERIA, "scores": matrix})
    return of_document(message, QUESTION, CONVERSATION)


def test_the_matrix_is_below_the_ranking(snapshot: SnapshotAssertion) -> None:
    """Best first, the disqualified last and named; the same while the run continues."""
    table = render(thread(stored())[0].message).partition("### Scores by criterion")[2]
    assert table == snapshot
    view = RunView(QUESTION, PROFILE.model_copy(update={"criteria": CRITERIA}), started=0.0)
    reviews = tuple(REVIEWS.values())
    done = StageCompleted(
        "stage2", reviews, label_to_model=LABELS, aggregate_ranking=RANKING, scores=MATRIX
    )
    assert any(table in render(each) for each in record(fold(view, done, 1.0)))


def test_a_disqualified_answer_is_marked_and_scores_nobody_gave_are_said_so() -> None:
    """Its member's message says so before the answer; there is never an empty table."""
    messages = [each.message for each in thread(stored())]
    [message] = [message for message in messages if message.key == f"member:{CLAUDE}"]
    assert "Ranked 1st of 3. Disqualified: it fails Security. It kept its answer." in render(message)
    assert "Not all of them." in render(message)
    view = stored(ScoringMatrix(answers=MATRIX.answers, ballots=0))
    ranking = render(thread(view)[0].message)
    assert ranking.endswith("### Scores by criterion\n\nNo reviewer gave scores that could be read.\n")
