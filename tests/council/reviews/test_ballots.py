"""Ballots are read as a careful human reads them, and never guessed."""

import json
from collections.abc import Sequence
from dataclasses import replace
from string import ascii_uppercase
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from council.reviews.ballot_text import parse_ranking
from council.reviews.ballots import Ballot, ballot_schema, read_ballot, read_labels
from tests.council.reviews.ballots import CASES, LABELS, LIST
from tests.council.reviews.points import against, praise
from tests.fragments import made_of
from tests.pairs import rows


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
    "remark",
    ["It says:", "Response A:", "It contains **this:**", "```", "x " * 499 + ":", "says\uff1a"],
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
