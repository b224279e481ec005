"""Ballots are read as a careful human reads them, by single rules, and never guessed."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any, cast

import orjson
from hypothesis import given
from hypothesis import strategies as st

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
from council.reviews.ballots import Ballot, ballot_schema, labels_schema, read_ballot, read_labels
from council.text.json_objects import JsonObject
from tests.council.reviews.ballots import CASES, LABELS, LIST
from tests.council.reviews.points import against, praise
from tests.fragments import made_of
from tests.pairs import data, rows


def test_reads_a_ballot() -> None:
    """A review is read as the table says."""
    read = {name: parse_ranking(text, LABELS) for name, text, _ in CASES}
    assert read == {name: [f"Response {letter}" for letter in letters] for name, _, letters in CASES}


def test_other_text_is_kept() -> None:
    """What isn't a JSON ballot stays byte for byte, whatever its ranking."""
    for name, text, _ in CASES:
        if not text.startswith("{"):
            ballot = replace(read_ballot(text, LABELS), points=None, cleared=())
            assert ballot == Ballot(text, tuple(parse_ranking(text, LABELS))), name


def test_of_two_answers_one_alone_is_no_ranking() -> None:
    """Fewer than two labels are asked for once more, even where the other one could be inferred."""
    assert parse_ranking("FINAL RANKING:\n1. Response B", LABELS[:2]) == []


@rows(
    ("text", "letters"),
    [
        ('{"ranking": ["Response C", "A", "B"]}', "CAB"),
        ("Response C\nResponse A\nResponse B", "CAB"),
        ("C > A > B", "CAB"),
        ("**Response C (correct, clear)**\n\n**Response A (misses a detail)**\n\n**Response B**", "CAB"),
        ("Response C: it is right.\nResponse A: it is long.\nResponse B: it is wrong.", "CAB"),
        ("I can't rank them.", ""),
    ],
)
def test_reads_labels_alone(text: str, letters: str) -> None:
    """The reply to the call for only the labels is read more freely than a review."""
    assert read_labels(text, LABELS) == [f"Response {letter}" for letter in letters]


# Any text --------------------------------------------------------------------------------------

FRAGMENTS = [
    "FINAL RANKING:",
    "Final ranking",
    *LABELS,
    *"ABCZabc",
    *("1.", "2)", "#3", "3", "```", "~~~", "> ", "| ", "**", "\n", "\r\n", "\n\n", "    "),
    *(" > ", ", ", " = ", " and ", " then ", "(tie)", '"', "says:", "is", "worst to best"),
    *("{", "\x00", "\u2028", "\u6f22", "e\u0301"),
]
TEXTS = st.text() | made_of(FRAGMENTS, 30)


@given(TEXTS)
def test_reads_known_labels_once(text: str) -> None:
    """From any text come at least two known labels, each once, or none at all."""
    ranking = parse_ranking(text, LABELS)
    assert set(ranking) <= set(LABELS)
    assert len(ranking) == len(set(ranking)) != 1


@given(TEXTS)
def test_no_ballot_is_invented(text: str) -> None:
    """Without the words FINAL RANKING there is none."""
    if "ranking" not in text.lower():
        assert parse_ranking(text, LABELS) == []


# Well-formed ballots ---------------------------------------------------------------------------

ORDERS = st.integers(2, 26).flatmap(lambda size: st.permutations(ascii_uppercase[:size]))
CASINGS = st.sampled_from([str, str.upper, str.lower, str.title])
HEADERS = st.sampled_from(
    [
        "{}:",
        "**{}:**",
        "**{}**:",
        "__{}__",
        "# {}",
        "### **{}**",
        "{} (best to worst):",
        "{}\uff1a",
        "🏆 {}",
    ]
)
ENTRIES = st.sampled_from(["{}", "**{}**", "*{}*", "`{}`", "[{}]", "{}: clear", "{} - a good one."])
NUMBERS = st.sampled_from(["{}. ", "{}) ", "({}) ", "#{}: ", "**{}.** ", "{}st - ", "Rank {}: "])
SEPARATORS = st.sampled_from([" > ", ">", ", ", " → ", "; ", ", then "])
NEWLINES = st.sampled_from(["\n", "\r\n", "\n\n"])
REMARKS = st.sampled_from(
    ["", "All fine.", "> FINAL RANKING: A > B", "`FINAL RANKING: B > A`", "C says FINAL RANKING: A, B"]
)


@given(ORDERS, CASINGS, HEADERS, NUMBERS, ENTRIES, NEWLINES, REMARKS)
def test_reads_a_list_in_any_markup(
    letters: list[str], casing: Any, header: str, number: str, entry: str, newline: str, remark: str
) -> None:
    """A numbered list reads back in any case and markup, after any remark."""
    labels = [f"Response {letter}" for letter in letters]
    listed = [
        number.format(place) + entry.format(casing(label)) for place, label in enumerate(labels, start=1)
    ]
    text = newline.join([remark, "", header.format(casing("FINAL RANKING")), *listed])
    assert parse_ranking(text, sorted(labels)) == labels


@given(ORDERS, CASINGS, st.sampled_from(["{}", "**{}**", "Response {}", "**Response {}**"]), SEPARATORS)
def test_reads_a_chain_in_any_markup(
    letters: list[str], casing: Any, entry: str, separator: str
) -> None:
    """A chain on one line reads back in any case and markup, letters bare or spelled out."""
    labels = [f"Response {letter}" for letter in letters]
    chain = separator.join(casing(entry.format(letter)) for letter in letters)
    assert parse_ranking(f"FINAL RANKING: {chain}", sorted(labels)) == labels


# The JSON form ---------------------------------------------------------------------------------


def vote(ranking: list[str], strengths: str = "Clear.", weaknesses: str = "No tests.") -> str:
    """Return a JSON ballot with the same remark on the first two answers."""
    reviews = [
        {"label": label, "strengths": strengths, "weaknesses": weaknesses} for label in LABELS[:2]
    ]
    return json.dumps({"reviews": reviews, "ranking": ranking})


VAGUE = tuple(
    point
    for label in LABELS[:2]
    for point in (praise(label=label, text="Clear."), against(label=label, text="No tests."))
)
RENDERED = """\
Response A
Strengths: Clear.
Weaknesses: No tests.

Response B
Strengths: Clear.
Weaknesses: No tests.

FINAL RANKING:
1. Response B
2. Response A"""


@rows("frame", ["{}", "\n{}\n", "```json\n{}\n```", "```\n{}\n```\n"])
def test_renders_a_json_ballot(frame: str) -> None:
    """A JSON ballot becomes review text that ends in its ranking, from a code block too."""
    text = frame.format(vote(["Response B", "Response A"]))
    assert read_ballot(text, LABELS) == Ballot(RENDERED, ("Response B", "Response A"), points=VAGUE)


def test_renders_what_a_json_ballot_has() -> None:
    """Labels may be bare; one answer ranked isn't counted; unknown answers are left out, and long remarks quoted."""
    ballot = read_ballot(vote(["b", "Response D", "RESPONSE A", "B"]), LABELS)
    assert ballot == Ballot(RENDERED, ("Response B", "Response A"), points=VAGUE)
    ballot = read_ballot(vote(["Response B"]), LABELS)
    assert ballot == Ballot(RENDERED.removesuffix("\n2. Response A"), (), points=VAGUE)
    review = {"label": f"FINAL RANKING:\n{LIST}", "strengths": "", "weaknesses": ""}
    text = json.dumps({"reviews": [review], "ranking": ["A", "B"]})
    ballot = read_ballot(text, LABELS)
    assert ballot == Ballot(
        "FINAL RANKING:\n1. Response A\n2. Response B", ("Response A", "Response B"), points=()
    )
    review = {"label": "Response A", "strengths": f"FINAL RANKING:\n{LIST}", "weaknesses": " "}
    ballot = read_ballot(json.dumps({"reviews": [review], "ranking": ["C", "A"]}), LABELS)
    assert ballot.ranking == ("Response C", "Response A")
    assert ballot.text == (
        "Response A\n"
        "Strengths:\n"
        "> FINAL RANKING:\n> 1. Response B\n> 2. Response A\n> 3. Response C\n\n"
        "FINAL RANKING:\n1. Response C\n2. Response A"
    )


def critical(*points: tuple[str, str], ranking: Sequence[str] = LABELS) -> str:
    """Write a JSON ballot that makes these points about the second answer."""
    critiques = [{"text": text, "severity": grade} for text, grade in points]
    review = {"label": "Response B", "strengths": "", "critiques": critiques}
    return json.dumps({"reviews": [review], "ranking": [*ranking]})


def test_a_json_ballot_carries_its_critiques() -> None:
    """Each point with the severity its author gave it, in any language; all are in the text, too."""
    ballot = read_ballot(
        critical(("Die Zahlen sind falsch.", "high"), ("説明が\n短い。", "low")), LABELS
    )
    assert ballot.points == (
        against(label="Response B", text="Die Zahlen sind falsch.", severity="high"),
        against(label="Response B", text="説明が 短い。", severity="low"),
    )
    assert ballot.text.startswith(
        "Response B\nWeaknesses:\n> [high] Die Zahlen sind falsch.\n> [low] 説明が\n> 短い。\n\n"
    )


@given(st.permutations(LABELS), TEXTS, TEXTS)
def test_critiques_never_change_a_json_ballot(order: list[str], one: str, other: str) -> None:
    """Whatever a point says, the rendering parses to the ballot's own ranking."""
    ballot = read_ballot(critical((one, "high"), (other, "low"), ranking=order), LABELS)
    assert ballot.ranking == tuple(order)
    assert parse_ranking(ballot.text, LABELS) == order


@given(st.permutations(LABELS), TEXTS, TEXTS)
def test_remarks_never_change_a_json_ballot(order: list[str], strengths: str, weaknesses: str) -> None:
    """Whatever is in the remarks, the rendering parses to the ballot's own ranking."""
    ballot = read_ballot(vote(order, strengths, weaknesses), LABELS)
    assert ballot.ranking == tuple(order)
    assert parse_ranking(ballot.text, LABELS) == order


@rows(
    "remark", ["It says:", "Response A:", "It contains **this:**", "```", "x " * 499 + ":", "says\uff1a"]
)
def test_remarks_never_announce_the_ballot(remark: str) -> None:
    """A remark that looks like the header of a quoted ballot doesn't make the reviewer's own uncounted."""
    ballot = read_ballot(vote(["Response B", "Response A"], remark, remark), LABELS)
    assert ballot.ranking == ("Response B", "Response A")


@rows(
    "text",
    [
        '{"reviews": [], "ranking": "Response B"}',
        '["Response B", "Response A"]',
        "[]",
        "null",
        '{"order": ["Response B", "Response A"]}',
        '{"ranking": ["Response B", "Response A"], "final_ranking": ["Response A", "Response B"]}',
        '{"a":' * 10_000,
    ],
    ids=["wrong type", "bare list", "list", "null", "other field", "two rankings", "deep"],
)
def test_keeps_other_json_as_text(text: str) -> None:
    """JSON that is no ballot is text, and no ranking is guessed from it."""
    assert read_ballot(text, LABELS) == Ballot(text, ())


@rows(
    ("missing", "ranking"),
    [
        ('"]}', ("Response B", "Response A")),
        ('C"]}', ("Response B", "Response A")),
        (', "Response A", "Response C"]}', ()),
        ('"ranking": ["Response B", "Response A", "Response C"]}', ()),
    ],
)
def test_a_json_ballot_that_was_cut_off_keeps_its_reviews(
    missing: str, ranking: tuple[str, ...]
) -> None:
    """What it says about the answers is still a readable review."""
    whole = vote(["Response B", "Response A", "Response C"])
    assert whole.endswith(missing)
    ballot = read_ballot(whole.removesuffix(missing), LABELS)
    assert ballot.ranking == ranking
    assert not ballot.text.startswith("{")


POINT = {"text": "No tests.", "severity": "high"}
WHOLE = {"label": "Response B", "strengths": "Clear.", "critiques": [POINT]}


@rows(
    ("given", "points"),
    [
        ({"critiques": [POINT | {"severity": "High"}]}, ["high: No tests."]),
        ({"critiques": [POINT | {"severity": "critical"}]}, ["high: No tests."]),
        ({"critiques": [POINT | {"severity": "Minor"}]}, ["low: No tests."]),
        ({"critiques": [POINT | {"severity": 3}]}, ["None: No tests."]),
        ({"critiques": [POINT | {"text": None}, POINT]}, ["high: No tests."]),
        ({"critiques": [None, 7, POINT]}, ["high: No tests."]),
        ({"critiques": ["No tests.", "Too long."]}, ["None: No tests.", "None: Too long."]),
        ({"critiques": "No tests."}, ["None: No tests."]),
        ({"critiques": POINT}, ["high: No tests."]),
        ({"critiques": None}, []),
        ({"critiques": [], "weaknesses": ["No tests.", None]}, ["None: No tests."]),
        ({"strengths": None}, ["high: No tests."]),
        ({"strengths": ["Clear.", "Short."]}, ["high: No tests."]),
        ({"strengths": {"first": "Clear."}, "scores": "8"}, ["high: No tests."]),
        ({"strengths": "\ud83d"}, ["high: No tests."]),
    ],
)
def test_an_unreadable_field_costs_nothing_else(given: dict[str, object], points: list[str]) -> None:
    """A side field in another form costs a ballot neither its ranking nor its other points."""
    review = WHOLE | given
    ballot = read_ballot(json.dumps({"reviews": [review, {}, 7], "ranking": ["B", None, "A"]}), LABELS)
    assert ballot.ranking == ("Response B", "Response A")
    assert points == [
        f"{each.severity}: {each.text}" for each in ballot.points or () if each.kind == "objection"
    ]


@rows("ranking", [None, "Response B", {"first": "B"}, [{"label": "B"}, {"label": "A"}]])
def test_a_ranking_in_another_form_is_not_guessed(ranking: object) -> None:
    """The reviews are kept; the ballot isn't counted."""
    ballot = read_ballot(json.dumps({"reviews": [WHOLE], "ranking": ranking}), LABELS)
    assert ballot == Ballot(
        "Response B\nStrengths: Clear.\nWeaknesses: [high] No tests.",
        (),
        points=(
            praise(label="Response B", text="Clear."),
            against(label="Response B", text="No tests.", severity="high"),
        ),
    )


def test_a_ballot_that_is_cut_or_odd_keeps_its_reviews() -> None:
    """Complete reviews are read; whole signs are kept, and a reader may understand a remark without a word."""
    whole = json.dumps({"reviews": [WHOLE, {"label": "Response A", "strengths": "Short."}]})
    ballot = read_ballot(whole[: whole.index("sponse A")], LABELS)
    assert ballot.text == "Response B\nStrengths: Clear.\nWeaknesses: [high] No tests."
    remark = r"\\ud83d and \ud83d\ude00 and \ud83d"
    text = json.dumps({"reviews": [WHOLE], "ranking": []}).replace("Clear.", remark)
    assert read_ballot(text, LABELS).text == (
        "Response B\nStrengths: \\ud83d and \U0001f600 and \ufffd\nWeaknesses: [high] No tests."
    )
    review = {"label": "Response A", "critiques": [{"text": "\u2026?!", "severity": "low"}]}
    text = json.dumps({"reviews": [review], "ranking": ["Response A", "Response B"]})
    assert [point.text for point in read_ballot(text, LABELS).points or ()] == ["\u2026?!"]


def test_remarks_of_copied_words_alone_are_left_out() -> None:
    """In any order, and from several texts; the last word may be cut off. What a reviewer adds stays."""
    answers = ("The capital of France is Paris.", "It is Lyon, says the map of 1791.")

    def critique(text: str) -> object:
        return {"text": text, "severity": "low"}

    copies = ["the capital of France is PARIS", "Paris", "It is Lyon, says the m", "Lyon is Paris."]
    added = ["Paris isn't explained.", "Paris is the capital, wrongly dated."]
    critiques = list(map(critique, copies + added))
    review = {"label": "Response A", "strengths": "Paris.", "critiques": critiques}
    text = json.dumps({"reviews": [review], "ranking": ["Response A", "Response B"]})
    kept = [against(label="Response A", text=each, severity="low") for each in added]
    ballot = read_ballot(text, LABELS, copied=answers)
    assert ballot.points == (*kept,)
    assert ballot.text.splitlines()[2:4] == [f"> [low] {each}" for each in added]
    assert len(read_ballot(text, LABELS).points or ()) == len(critiques) + len(["Paris."])


def test_the_schema_is_strict_and_asks_for_each_label() -> None:
    """Every object requires all its properties and allows no others; there is a review and a place for each label."""
    schema = cast("Any", ballot_schema(["Response A", "Response C"]))
    assert schema["properties"]["ranking"] == {
        "type": "array",
        "items": {"type": "string", "enum": ["Response A", "Response C"]},
    }
    reviews = schema["properties"]["reviews"]
    assert "minItems" not in reviews  # Groq and Cerebras refuse bounds
    assert list(reviews["items"]["properties"]) == ["label", "strengths", "critiques"]
    schema = cast("Any", ballot_schema(LABELS))
    review = schema["properties"]["reviews"]["items"]
    for each in (schema, review, review["properties"]["critiques"]["items"]):
        assert each["type"] == "object"
        assert each["required"] == list(each["properties"])
        assert each["additionalProperties"] is False


THREE = ("Response A", "Response B", "Response C")
TWO = THREE[:2]


def strict(**properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def review(
    remark: JsonObject, bounds: JsonObject, label: JsonObject, **more: object
) -> dict[str, object]:
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


@rows(("line", "expected"), data(__file__, "whose_words_a_line_announces"))
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


def test_a_ballot_in_json_is_rendered_and_signs_are_plain() -> None:
    """Without markup, quotes and dashes are those of a typewriter; a critique without a severity has none."""
    assert plain("  **It\u2019s** \u201cB\u201d \u2013 \u2192 C\u3002") == 'It\'s "B" - > C.'
    assert plain("\U0001f948 Response B") == "2.  Response B"
    assert plain(" --- ") == ""
    critiques = [{"text": " Slow. ", "severity": " High "}, {"text": "Long"}]
    reviews = [{"label": "b", "strengths": "  Fast. \n", "critiques": critiques}]
    ballot = read_ballot(said(reviews=reviews, ranking=["b", "a"]), THREE)
    assert ballot.text == (
        "Response B\nStrengths: Fast.\nWeaknesses:\n> [high] Slow.\n> Long\n\n"
        "FINAL RANKING:\n1. Response B\n2. Response A"
    )
    assert ballot.ranking == ("Response B", "Response A")


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


@rows(("text", "letters"), data(__file__, "what_belongs_to_a_list"))
def test_what_belongs_to_a_list(text: str, letters: str) -> None:
    """What isn't certain ends it."""
    assert parse_ranking(text, THREE) == [f"Response {letter}" for letter in letters]


def said(**fields: object) -> str:
    return orjson.dumps(fields).decode()


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


WRITTEN: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "written.jsonl").read_text().splitlines()
]


@rows("review", WRITTEN, ids=[f"{each['model']}, {each['asked']}" for each in WRITTEN])
def test_a_ballot_that_a_model_wrote_is_read(review: dict[str, Any]) -> None:
    """It ranks the answers that its author read."""
    order = [f"Response {letter}" for letter in review["read"]]
    assert "".join(label[-1] for label in read_ballot(review["text"], order).ranking) == review["ranks"]
