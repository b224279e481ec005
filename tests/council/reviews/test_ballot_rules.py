"""Single rules of reading ballots: whose words a line holds, what belongs to a list, what is rendered."""

import orjson

from council.reviews.ballot_text import (
    begins_ranking,
    is_attributed,
    is_quoted,
    parse_ranking,
    plain,
    read_lines,
    unwrapped,
    without_ranking,
)
from council.reviews.ballots import ballot_schema, labels_schema, read_ballot, read_labels
from council.text.json_objects import JsonObject
from tests.pairs import data, rows

THREE = ("Response A", "Response B", "Response C")
TWO = THREE[:2]


def strict(**properties: object) -> dict[str, object]:
    """Return an object's schema in OpenAI's strict subset."""
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def review(
    remark: JsonObject, bounds: JsonObject, label: JsonObject, **more: object
) -> dict[str, object]:
    """Return the schema of one answer's review."""
    severity = {"type": "string", "enum": ["high", "medium", "low"]}
    critiques = {"type": "array", "items": strict(text=remark, severity=severity, **more), **bounds}
    scores = strict(Cost={"type": "integer", "enum": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]})
    return strict(label=label, strengths=remark, critiques=critiques, scores=scores)


def test_the_schema_of_a_ballot() -> None:
    """It has each label's review, with scores where there are criteria, and the ranking."""
    label: JsonObject = {"type": "string", "enum": [*TWO]}
    quote: JsonObject = {"type": ["string", "null"]}
    assert ballot_schema(TWO, ["Cost"]) == strict(
        reviews={"type": "array", "items": review({"type": "string"}, {}, label, quote=quote)},
        ranking={"type": "array", "items": label},
    )
    assert labels_schema(TWO) == strict(ranking={"type": "array", "items": label})


def test_the_schema_of_a_demonstrations_ballot() -> None:
    """A grammar holds the model to it.

    Answers in their order, one short critique each without a quotation, a whole ranking.
    """
    short: JsonObject = {"type": "string", "maxLength": 60}
    one: JsonObject = {"minItems": 1, "maxItems": 1}
    each = [review(short, one, {"const": name}) for name in TWO]
    assert ballot_schema(TWO, ["Cost"], is_demonstration=True) == strict(
        reviews={"type": "array", "prefixItems": each, "minItems": 2, "maxItems": 2},
        ranking={"enum": [["Response A", "Response B"], ["Response B", "Response A"]]},
    )


@rows(
    ("line", "expected"),
    data(__file__, "whose_words_a_line_announces"),
)
def test_whose_words_a_line_announces(line: str, *, expected: bool) -> None:
    """One answer's, or two's, unless the reviewer speaks of an order of its own; three are compared."""
    assert is_attributed(line) is expected


@rows(
    ("before", "expected"),
    [
        *((mark, True) for mark in ('"', "'", "\u201c", "\u201e", "\u00ab", "\u2018")),
        ("", False),
        ("I rank them thus", False),
        ("Response A is vague. My ballot: ", False),
        ("Response X: ", True),
        ("My ballot is below. Response C ends with ", True),
        ("The JSON object that contains my reviews: ", False),
        ("Response C contains:\n", True),
    ],
)
def test_an_object_is_quoted_by_what_precedes_it(before: str, *, expected: bool) -> None:
    """By a quotation mark, or by words that announce somebody else's."""
    text = f"{before}{{}}"
    assert is_quoted(text, len(before), read_lines(text)) is expected


@rows("text", ["```markdown\na", "markdown\na\n```", "markdown\na", "```py\na\n```"])
def test_only_a_whole_code_block_is_unwrapped(text: str) -> None:
    """It is opened and closed, in a language that says what it holds."""
    assert unwrapped(text, ("markdown",)) == text
    assert unwrapped("```markdown\na\n```", ("markdown",)) == "a\n"


def test_signs_are_made_plain() -> None:
    """Without markup, quotes and dashes are those of a typewriter; a medal is its place."""
    assert plain("  **It\u2019s** \u201cB\u201d \u2013 \u2192 C\u3002") == 'It\'s "B" - > C.'
    assert plain("\U0001f948 Response B") == "2.  Response B"
    assert plain(" --- ") == ""


@rows(
    ("line", "begins"),
    [
        ("FINAL RANKING:", True),
        ("4. Final ranking: B > A", True),
        ("**Ranking**", True),
        ("Rankings:", True),
        ("My ranking of cars", False),
        ("Response A", False),
    ],
)
def test_what_begins_a_ranking(line: str, *, begins: bool) -> None:
    """The header, or a line that says only that a ranking follows."""
    assert begins_ranking(line) is begins


@rows(
    ("text", "left"),
    [
        ("No ballot here.", "No ballot here."),
        ("Good.\n\nFINAL RANKING:\n1. Response A\n2. Response B", "Good."),
        ("Good.\nRanking:\n1. Response B\n2. Response A", "Good."),
        ("Good.\nFINAL RANKING:", "Good."),
        ("One.\nTwo.\nRanking", "One.\nTwo."),
        ("Good.\nFINAL RANKING:\nI can't say.", "Good.\nFINAL RANKING:\nI can't say."),
        ("Good.\nFINAL RANKING: A > B\nRanking:\n1. Response B\n2. Response A", "Good."),
    ],
)
def test_a_review_without_the_ballots_that_close_it(text: str, left: str) -> None:
    """Only what can be read as a ballot is left out."""
    assert without_ranking(text) == left


@rows(
    ("text", "letters"),
    data(__file__, "what_belongs_to_a_list"),
)
def test_what_belongs_to_a_list(text: str, letters: str) -> None:
    """What isn't certain ends it."""
    assert parse_ranking(text, THREE) == [f"Response {letter}" for letter in letters]


def said(**fields: object) -> str:
    """Return a ballot in JSON."""
    return orjson.dumps(fields).decode()


def test_a_ballot_in_json_is_rendered_as_a_review() -> None:
    """Labels are spelled out, remarks are stripped, and a critique without a severity has none."""
    critiques = [{"text": " Slow. ", "severity": " High "}, {"text": "Long"}]
    reviews = [{"label": "b", "strengths": "  Fast. \n", "critiques": critiques}]
    ballot = read_ballot(said(reviews=reviews, ranking=["b", "a"]), THREE)
    assert ballot.text == (
        "Response B\nStrengths: Fast.\nWeaknesses:\n> [high] Slow.\n> Long\n\n"
        "FINAL RANKING:\n1. Response B\n2. Response A"
    )
    assert ballot.ranking == ("Response B", "Response A")


def test_a_list_counts_above_reviews_and_across_anothers_object() -> None:
    """Reviews may be named instead of listed; another's object is blank to whoever reads the list."""
    ballot = read_ballot(said(reviews={"A": {"strengths": "Fast."}}, ranking=["B", "A"]), THREE)
    assert ballot.text.startswith("Response A\nStrengths: Fast.\n")
    object_ = said(reviews=[{"label": "A", "strengths": "Fast."}])
    ballot = read_ballot(f"FINAL RANKING:\n1. Response B\n2. Response A\n\n{object_}", THREE)
    assert ballot.ranking == ("Response B", "Response A")
    theirs = said(ranking=["Response C", "Response A"])
    text = f"FINAL RANKING:\n{theirs}\n1. Response B\n2. Response A"
    assert read_ballot(text, THREE, question=theirs).ranking == ("Response B", "Response A")
    assert read_labels('["b", "a"]', THREE) == ["Response B", "Response A"]
    assert read_labels('```json\n[\n  "b",\n  "a"\n]\n```', THREE) == ["Response B", "Response A"]


def test_one_label_is_no_ranking_wherever_it_is_written() -> None:
    """Scores of one answer, with words around them, are kept without a vote."""
    reply = 'I read one.\n{"reviews":[{"label":"A","scores":{"Cost":3}}],"ranking":["A"]}\nThat is all.'
    ballot = read_ballot(reply, THREE, ["Cost"])
    assert (ballot.text, ballot.ranking) == (reply, ())
    assert ballot.scores == {"Response A": {"Cost": 3}}


ANSWER = """\
**Water** boils at 100 \u00b0C at _sea level_, says the map.

- It\u2019s `lock_timeout` that limits
  the wait; see [the manual](https://x.example).
- A full-width \uff11\uff15.

| a | 2.5 km |

\u6c34\u306f\u767e\u5ea6\u3067\u6cb8\u9a30\u3059\u308b\u3002 Take "these quoted words" away.
"""


@rows(
    ("quote", "found"),
    [
        ("boils at 100 \u00b0C", True),
        ("\u201cWater boils\n at\u201d", True),
        ("*Water* boils at 100 \u00b0C at sea level, says the map!", True),
        ("It's lock_timeout that limits the wait", True),
        ("see the manual.", True),
        ("Take these quoted words", True),
        ("Water boils \u2026 says the map", True),
        ("says the map [...] Water boils", False),
        ("a 2.5", True),
        ("15", True),
        ("100", True),
        ("5", False),
        ("2", False),
        ("\u6c34\u306f\u767e", True),
        ("boils at 90 \u00b0C", False),
        ("ater boils at", False),
        ("the sea is level", False),
        ("sea shells", False),
        ("sea level", None),
        ("\u767e\u5ea6", None),
        ("\u2026", None),
        ("  ", None),
        (None, None),
        (7, None),
        (["limits", "the wait; see"], True),
    ],
)
def test_a_quotation_is_looked_up(quote: object, *, found: bool | None) -> None:
    """Spaces, quotation marks, Markdown and forms of signs apart; a word or two prove nothing."""
    critique = {"text": "Wrong.", "severity": "high", "quote": quote}
    reply = said(reviews=[{"label": "A", "critiques": [critique]}], ranking=["a", "b"])
    point = next(iter(read_ballot(reply, THREE, answers={"Response A": ANSWER}).points or ()))
    assert point.found is found
    assert ("\u201c" in read_ballot(reply, THREE).text) is (point.quote is not None)


def test_a_quotation_is_looked_up_in_the_answer_that_it_is_about() -> None:
    """Another's words aren't its words; without the answers nothing is claimed."""
    critique = {"text": "Wrong.", "severity": "high", "quote": "boils at 100 \u00b0C"}
    reviews = [{"label": label, "critiques": [critique]} for label in "AB"]
    reply = said(reviews=reviews, ranking=["a", "b"])
    answers = {"Response A": ANSWER, "Response B": "I don't know."}
    assert [point.found for point in read_ballot(reply, THREE, answers=answers).points or ()] == [
        True,
        False,
    ]
    assert [point.found for point in read_ballot(reply, THREE).points or ()] == [None, None]
