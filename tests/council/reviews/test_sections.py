"""Reviews are divided by answer: most of their words are found, none under another answer."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.reviews.ballots import read_ballot
from council.reviews.sections import SUMMARY, Section, divide
from tests.council.reviews import ballots, divided, reviews
from tests.council.reviews.ballots import LABELS
from tests.council.reviews.test_critique_text import FRAGMENTS
from tests.fragments import made_of

ALL_CASES = [
    *((name, text) for name, text, _ in divided.CASES),
    *((name, text) for name, text, _ in reviews.CASES),
    *((name, text) for name, text, _ in ballots.CASES),
]


def words(text: str) -> str:
    """Return a text's letters and digits, which markup and layout don't change."""
    return "".join(re.findall(r"[^\W_]+", text)).lower()


@pytest.mark.parametrize(
    ("text", "said"), [pytest.param(*case, id=name) for name, *case in divided.CASES]
)
def test_no_sentence_is_under_the_wrong_answer(text: str, said: dict[str, str]) -> None:
    """A careful reader takes every sentence of a section to be about that answer alone."""
    for label, section in divide(text, LABELS).items():
        for remark in section.remarks:
            assert words(remark.text) in words(said.get(label[-1], "")), (label, remark.text)


def test_most_of_what_is_said_is_found() -> None:
    """Precision and recall by characters, over the marked reviews; shown with `pytest -s`."""
    right = shown = marked = 0
    for _, text, said in divided.CASES:
        sections = divide(text, LABELS)
        for label in LABELS:
            whole = words(said.get(label[-1], ""))
            marked += len(whole)
            for remark in sections[label].remarks if label in sections else ():
                shown += len(words(remark.text))
                right += len(words(remark.text)) if words(remark.text) in whole else 0
    print(  # noqa: T201 - the figures are for people
        f"\n{len(divided.CASES)} reviews, {marked} characters about one answer: "
        f"precision {right / shown:.2f}, recall {right / marked:.2f}"
    )
    assert len(divided.CASES) >= 30
    assert right == shown
    assert right / marked >= 0.9


@pytest.mark.parametrize(
    ("text", "labelled"), [pytest.param(*case, id=name) for name, *case in reviews.CASES]
)
def test_no_point_is_under_another_answer(text: str, labelled: dict[str, list[str]]) -> None:
    """The labelled points of the other table are under their own answer, or nowhere."""
    sections = divide(text, LABELS)
    for letter, points in labelled.items():
        for other in LABELS:
            if not other.endswith(letter) and other in sections:
                own = {each[2:] for each in labelled.get(other[-1], ())}
                assert not any(
                    point[2:] in sections[other].text and point[2:] not in own for point in points
                )


def test_no_section_names_another_answer() -> None:
    """Nor does any contain the ballot."""
    for name, text in ALL_CASES:
        for label, section in divide(text, LABELS).items():
            for other in (*LABELS, "final ranking"):
                assert other == label or other.lower() not in section.text.lower(), (name, label)


JSON_BALLOT = """{"reviews": [
 {"label": "Response A", "strengths": "Clear.\\nNames the lock.", "critiques": [
   {"text": "The year is wrong.", "severity": "high"},
   {"text": "Repeats Response B in its last part.", "severity": "medium"},
   {"text": "Two typos.\\nIn the title.", "severity": "low"}]},
 {"label": "Response B", "strengths": "Complete.", "critiques": []},
 {"label": "Response C", "strengths": "", "critiques": [{"text": "\\u6ca1\\u6709\\u8bf4\\u660e\\u6210\\u672c\\u3002", "severity": "medium"}]}],
 "ranking": ["Response B", "Response A", "Response C"]}"""


def test_a_json_ballot_is_divided_by_its_entries() -> None:
    """With the severity that the reviewer gave, in any language."""
    sections = divide(read_ballot(JSON_BALLOT, LABELS).text, LABELS)
    assert {label: (section.severity, section.text) for label, section in sections.items()} == {
        "Response A": (
            "high",
            "Strengths: Clear. Names the lock. Weaknesses: The year is wrong. Two typos. In the title.",
        ),
        "Response B": (None, "Strengths: Complete."),
        "Response C": ("medium", "Weaknesses: \u6ca1\u6709\u8bf4\u660e\u6210\u672c\u3002"),
    }


def section(text: str) -> Section:
    """Return what a review says about Response A."""
    return divide(text, LABELS)["Response A"]


def test_a_review_that_only_compares_has_no_sections() -> None:
    """Nothing is guessed."""
    assert divide("Response A is better than Response B. Response C beats both.", LABELS) == {}
    assert divide("The first is fine, the second has a bug.", LABELS) == {}
    assert divide("", LABELS) == {}


def test_severity_is_what_the_words_say() -> None:
    """What adds nothing isn't a matter of form; praise has none, nor has a language whose words aren't known."""
    assert section("Response A is wrong about the year. It has a typo.").severity == "high"
    assert section("Response A is simply a repetition of the question.").severity == "medium"
    assert section("Response A just repeats itself and is wordy.").severity == "low"
    assert section("Response A is clear.").severity is None
    german = "## Response A\nDas Problem ist die Frist, und das Beispiel ist nicht gut."
    assert section(german).severity is None


def test_words_are_shown_without_markup() -> None:
    """Code keeps its signs; parts keep their names."""
    text = "### Response A\n**Pros:**\n- *fast*\n- uses `COUNT(*)` on my_table\n**Cons:** no tests"
    assert section(text).text == "Pros: fast; uses COUNT(*) on my_table. Cons: no tests"


def test_a_heading_that_only_says_review_is_no_part() -> None:
    """A part names a kind of remarks; *Review* doesn't."""
    said = divide("**Review of Response A**\nIt is wrong.\n\n**Accuracy of Response B**\nVague.", LABELS)
    assert [said[label].text for label in ("Response A", "Response B")] == [
        "It is wrong.",
        "Accuracy: Vague.",
    ]


def test_a_short_section_is_its_own_summary() -> None:
    """Nothing is left out, so there is no ellipsis."""
    text = "Response A is clear. However, the year is wrong."
    assert section(text).summary() == text


def test_a_summary_keeps_the_gravest_sentences_in_order() -> None:
    """Whole ones, as many as fit; an ellipsis says that there is more."""
    praise = " ".join(f"Step {number} is explained well and at length." for number in range(9))
    text = f"### Response A\n{praise} It is wrong about the year. It has a minor typo in step 2."
    assert section(text).summary(120) == (
        "Step 0 is explained well and at length. It is wrong about the year. It has a minor typo in step 2. \u2026"
    )


def test_a_sentence_without_end_is_cut_at_a_word() -> None:
    """Where there is no better place."""
    summary = section("### Response A\n" + "word " * 200).summary()
    assert summary.endswith("word\u2026")
    assert len(summary) <= SUMMARY


@given(st.text() | made_of([f"{each} " for each in FRAGMENTS], 30), st.integers(20, 300))
def test_any_text_is_divided(text: str, limit: int) -> None:
    """Only known labels come out, each with words, and a summary within its limit."""
    for label, divided_section in divide(text, LABELS).items():
        assert label in LABELS
        assert divided_section.text.strip()
        assert 0 < len(divided_section.summary(limit)) <= limit
