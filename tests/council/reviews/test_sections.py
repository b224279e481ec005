"""A review in prose stays prose; points about each answer are picked out of whole reviews as the refinement contract has it."""

from hypothesis import given
from hypothesis import strategies as st

from council.document.results import (
    CritiqueItem,
    ReviewPoint,
    Stage2Result,
    format_critiques_for_refinement,
)
from council.reviews.ballots import read_ballot, with_points
from council.reviews.extraction import extract_critiques_from_rankings
from tests.council.reviews.ballots import CASES, LABELS
from tests.council.reviews.points import against, praise
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


AUTHORS = {"Response A": "a/one", "Response B": "b/two", "Response C": "c/three"}


def said(review: str, by: str = "c/three") -> list[tuple[str, str, str]]:
    """Return the points of one review: the answer's letter, the severity, the text."""
    found = extract_critiques_from_rankings([{"model": by, "ranking": review}], AUTHORS)
    assert [*found] == [*AUTHORS]
    return [
        (label[-1], item.severity, item.critique_text)
        for label, items in found.items()
        for item in items
    ]


def test_a_point_goes_to_the_answer_it_is_about_and_not_to_its_critic() -> None:
    """Each with its source and severity; what a model says about its own answer is left out."""
    text = "Response A is wrong about the year. Response B has a minor typo. Response C lacks sources."
    assert said(f"> FINAL RANKING:\n> 1. Response B\n\n{text}") == said(text)  # as an answer has it
    assert said(text) == [
        ("A", "high", "Response A is wrong about the year."),
        ("B", "low", "Response B has a minor typo."),
    ]


def test_points_are_merged_ordered_and_written_as_a_list() -> None:
    """The longest text and the gravest severity are kept, with all reviewers."""
    reviews = [
        {"model": "b/two", "ranking": "Response A lacks any test of the rollback."},
        {"model": "c/three", "ranking": "Response A seriously lacks any test of the rollback path."},
    ]
    [item] = extract_critiques_from_rankings(reviews, AUTHORS)["Response A"]
    assert item == CritiqueItem(
        source_model="c/three",
        target_response="Response A",
        critique_text="Response A seriously lacks any test of the rollback path.",
        severity="high",
        also_from=["b/two"],
    )
    item = CritiqueItem(
        source_model="a/one", target_response="Response B", critique_text="Vague.", also_from=["c/three"]
    )
    assert format_critiques_for_refinement([item, item.dump()]) == (
        "1. [medium] Vague. (a/one, c/three)\n2. [medium] Vague. (a/one, c/three)"
    )
    assert format_critiques_for_refinement([]) == ""


@rows(
    ("short", "long", "same"),
    [
        ("is wrong.", "is wrong about the default port, and the backup command deletes data.", False),
        ("ignores backups.", "ignores backups, and its default port is wrong.", False),
        ("ignores backups.", "ignores the backups.", True),
        ("lacks tests.", "lacks tests", True),
        ("has the wrong default port.", "has a wrong default port, and deletes data.", True),
        ("has the wrong default user.", "has a wrong default port, and deletes data.", False),
    ],
)
def test_a_word_or_two_in_common_make_no_similar_points(short: str, long: str, same: bool) -> None:
    """No reviewer is credited with another's point."""
    reviews = [
        {"model": "b/two", "ranking": f"Response A {short}"},
        {"model": "c/three", "ranking": f"Response A {long}"},
    ]
    items = extract_critiques_from_rankings(reviews, AUTHORS)["Response A"]
    assert len(items) == (1 if same else 2)
    assert any(item.also_from for item in items) == same


def test_grave_points_come_first_then_those_that_more_reviewers_make() -> None:
    """The number is limited."""
    reviews = [
        Stage2Result(
            model="b/two",
            ranking="",
            parsed_ranking=[],
            points=[
                against(label="Response A", text="Too long by half.", severity="low"),
                against(label="Response A", text="No word about cost."),
                against(label="Response A", text="Ignores backups."),
                praise(label="Response A", text="Quick to read."),
                against(label="Response D", text="Nobody's.", severity="high"),
                against(label="Response A", text="Leaks the key.", severity="high"),
            ],
        ),
        Stage2Result(model="c/three", ranking="Response A ignores backups.", parsed_ranking=[]),
    ]
    found = extract_critiques_from_rankings(reviews, AUTHORS, 3)["Response A"]
    assert [item.critique_text for item in found] == [
        "Leaks the key.",
        "Response A ignores backups.",
        "No word about cost.",
    ]


def test_stored_points_go_before_the_text() -> None:
    """A ballot's own, as new or as older documents have them; a review in prose is read by its sentences."""
    stored: dict[str, object] = {
        "model": "b/two",
        "parsed_ranking": [],
        "ranking": "Response A lacks tests.",
    }
    critiques = [
        {"label": "Response A", "text": "Leaks the key.", "severity": "high"},
        {"label": "Response D", "text": "Nobody's.", "severity": "low"},
    ]
    section = {"label": "Response A", "kind": "objection", "text": "It lacks.", "source": "section"}
    for more, points in (
        ({"critiques": critiques}, ["Leaks the key."]),
        ({"points": [section]}, ["Response A lacks tests."]),
        ({"critiques": "none"}, ["Response A lacks tests."]),
    ):
        found = extract_critiques_from_rankings([{**stored, **more}], AUTHORS)
        assert [item.critique_text for item in found["Response A"]] == points


@rows(
    ("review", "points"),
    [
        ("Response A contains no errors. Response B is clear and complete.", []),
        ("Response A lacks examples. Response B is good.", [("A", "medium", "Response A lacks examples.")]),
        ("Response A should be more detailed.", [("A", "medium", "Response A should be more detailed.")]),
        ("Response A is clear. However, it is wrong about the year.", [("A", "high", "However, it is wrong about the year.")]),
        ("### Response A\n- **It lacks tests.**\n- [low] The year.\n\n### Response B\nClear.", [("A", "medium", "It lacks tests."), ("A", "low", "The year.")]),
        ("Response A is worse than Response B. Both lack tests.", []),
        ("Response A is fine.\nIgnores the cost.", []),
        ("FINAL RANKING:\n1. Response A is wrong", []),
    ],
)  # fmt: skip
def test_plain_text_is_read_by_sentences(review: str, points: list[tuple[str, str, str]]) -> None:
    """One that objects to a single answer; what may be about another one is left out."""
    assert said(review) == points
