"""A review in prose stays prose: what it says below an answer's heading is one point in its words."""

from hypothesis import given
from hypothesis import strategies as st

from council.document.results import ReviewPoint, Stage2Result
from council.reviews.ballots import read_ballot, with_points
from tests.council.reviews.ballots import CASES, LABELS
from tests.fragments import made_of
from tests.pairs import data, rows

END = "\n\nFINAL RANKING:\n1. Response B\n2. Response A"
FORM = "### Response {}\n\nStrengths:\n- {}\n\nWeaknesses:\n- {}\n\n"


@rows(
    ("text", "points", "cleared"),
    data(__file__, "a_section_is_one_point"),
)  # fmt: skip
def test_a_section_is_one_point(text: str, points: dict[str, str], cleared: str) -> None:
    """Never read by its sentences; one that has only strengths objects to nothing."""
    for whole in (text, text + END, f"```markdown\n{text}{END}\n```"):
        ballot = read_ballot(whole, LABELS)
        assert ballot.text == whole
        assert {each.label[-1]: each.text for each in ballot.points or ()} == points
        assert "".join(label[-1] for label in ballot.cleared) == cleared
        for each in ballot.points or ():
            assert (each.kind, each.source) == ("objection", "section")
            assert (each.severity, each.quote, each.found) == (None, None, None)


def test_no_ballot_is_a_section() -> None:
    """Nor any remark in one."""
    for name, text, _ in CASES:
        for point in read_ballot(text, LABELS).points or ():
            assert "ranking" not in point.text.lower(), name


FRAGMENTS = [
    *LABELS,
    "### ",
    "**",
    "- ",
    ": ",
    "Strengths",
    "Weaknesses",
    "none",
    "\n",
    "\n\n",
    "> ",
    "```",
    "| ",
    "It lacks. ",
]


@given(st.text() | made_of([f"{each} " for each in FRAGMENTS], 30))
def test_any_text_has_sections_or_none(text: str) -> None:
    """Only known labels come out, each once, and no point without words."""
    ballot = read_ballot(text, LABELS)
    labels = [point.label for point in ballot.points or ()]
    assert len(labels) == len({*labels})
    assert {*labels, *ballot.cleared} <= {*LABELS}
    assert not {*labels} & {*ballot.cleared}
    assert all(point.text.strip() for point in ballot.points or ())


def test_what_a_review_holds_against_an_answer_is_known_or_not() -> None:
    """A form says it of every answer, prose of those that it has a section about."""
    prose = with_points(
        stored(FORM.format("A", "Short.", "No test.") + FORM.format("B", "Right.", "none")), LABELS
    )
    assert [prose.objects_to(label) for label in LABELS] == [True, False, None]
    form = stored(
        "",
        points=[{"label": "Response A", "kind": "objection", "text": "Wrong.", "source": "structured"}],
    )
    assert [form.objects_to(label) for label in LABELS] == [True, False, False]
    assert stored("I like them all.").objects_to("Response A") is None


def stored(ranking: str, **more: object) -> Stage2Result:
    """Return a review as a document has it."""
    return Stage2Result.model_validate({"model": "m", "ranking": ranking, "parsed_ranking": [], **more})


def test_an_older_document_has_its_sections_at_most() -> None:
    """Points and critiques that it has stay as they are; in a text alone the sections are read."""
    text = "### Response A\nNo test.\n\n### Response B\nStrengths: Right."
    [point] = [*(with_points(stored(text), LABELS).points or ())]
    assert (point.text, point.source, with_points(stored(text), LABELS).cleared) == (
        "No test.",
        "section",
        ["Response B"],
    )
    sentence = {"label": "Response A", "kind": "objection", "text": "It lacks.", "source": "sentence"}
    assert with_points(stored(text, points=[sentence]), LABELS).points == [
        ReviewPoint.model_validate(sentence)
    ]
    older = [
        {"label": "Response A", "text": "Leaks.", "severity": "high"},
        {"label": "Response Z", "text": "Who?"},
    ]
    [point] = [*(with_points(stored(text, critiques=older), LABELS).points or ())]
    assert (point.text, point.severity, point.source) == ("Leaks.", "high", "structured")
    assert with_points(stored("Fine.", critiques="none"), LABELS).points is None
