"""JSON objects are found in whatever a model writes around them, in time that grows with the text."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.text import json_objects
from council.text.json_objects import (
    LONGEST_MENDED,
    MOST_MENDED,
    MOST_UNFINISHED,
    object_in,
    objects,
    spans,
)
from tests.fragments import made_of
from tests.pairs import rows


def found(text: str) -> list[json_objects.JsonObject]:
    return [each.fields for each in objects(text)][::-1]


@rows(
    ("text", "fields"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('Sure: {"a": 1}. And {"b": 2}!', [{"a": 1}, {"b": 2}]),
        ('```json\n{"a": 1}\n```\n```\n{"b": 2}\n```', [{"a": 1}, {"b": 2}]),
        ('[{"a": 1}, {"b": 2}]', [{"a": 1}, {"b": 2}]),
        ('{"a": {"b": {"c": 2}}}', [{"a": {"b": {"c": 2}}}]),
        ('{"a": "} { \\" }"} {"b": 2}', [{"a": '} { " }'}, {"b": 2}]),
        ('Use {x} and {{y}}, {"a": 1}', [{"a": 1}]),
        ('In C, if (x) { return; } is {"a": 1}', [{"a": 1}]),
        ('{"a": [1, 2', [{"a": [1, 2]}]),
        ('```json\n{"a": [1, 2\n```\nI hope that helps!', [{"a": [1, 2]}]),
        ('{"never": closed, {"a": 1}', [{"never": 'closed, {"a": 1}'}, {"a": 1}]),
        ('{"a": 1,}', [{"a": 1}]),
        ("{'a': 'it is'}", [{"a": "it is"}]),
        ("{a: 1} // so", [{"a": 1}]),
        ('{"a": 1 // one\n}', [{"a": 1}]),
        ('{ // one {\n /* two\n lines */ "a": 1 // } "b"\n}', [{"a": 1}]),
        ("{'a': 'http://b'} and {\"c\": 1}", [{"a": "http://b"}, {"c": 1}]),
        ("{\u201ca\u201d: \u201cb\u201d}", [{"a": "b"}]),
        ('{{"a": 1}}', [{"a": 1}]),
        ('> {"a": 1}\n> {"b": 2}\n{"c": 3} > {"d": 4}', [{"c": 3}, {"d": 4}]),
        ('{"a": "\\ud83d"}', [{"a": "\ufffd"}]),
        ('{"a": "\\ud83d",}', [{"a": "\ufffd"}]),
        ("", []),
        ("{}", []),
        ("No object at all.", []),
        ('["a", "b"]', []),
        ("[" * 100_000, []),
        ("{" * 100_000, []),
        ('{"a":' * 100_000, []),
    ],
)
def test_finds_objects(text: str, fields: list[json_objects.JsonObject]) -> None:
    """Whole, cut off or slightly broken, in their order; not within each other or in quotations."""
    assert found(text) == fields


def test_an_object_is_found_by_its_fields() -> None:
    """The last one that has them all, as it is written."""
    text = 'Or {"a": 1, "b": 2}, no, { "b": 3,\n "a": 4 }, as {"a": 5} is half, {"a": 1, "b": 1,} broken'
    assert object_in(text, ["a", "b"]) == '{ "b": 3,\n "a": 4 }'
    assert object_in(text, ["c"]) is None


def test_few_and_short_objects_are_repaired() -> None:
    """Repair takes time; the last objects of a text are those that count."""
    broken = '{"a": 1,} ' * (MOST_MENDED + 5)
    assert len(found(broken)) == MOST_MENDED
    assert found('{"a": "' + "x" * LONGEST_MENDED + '",}') == []


FRAGMENTS = [*"{}[]\"'\\:,\nx", "> ", "```", '{"a":', '{"a":1}', "{a:"]


class Counted:
    """A pattern that counts the tokens it has found, and the characters in them."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self.tokens = self.characters = 0

    def finditer(self, text: str, start: int) -> Iterator[re.Match[str]]:
        for token in self.pattern.finditer(text, start):
            self.tokens += 1
            self.characters += len(token[0])
            yield token


REPEATED = (
    *(
        "{",
        "[",
        '{"a":',
        '{"a":["',
        '{"',
        '{"a":"\\"',
        "{a:",
        '{"a":1}',
        '{"a":x}',
        "> {a:1}",
        '{"a":1\n',
    ),
    *("{//", "{//\n", "{/*", '{"a"://', '{"a":1//\n'),
)


def test_a_text_is_read_a_few_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """However its braces are nested, and wherever its quotation marks are."""
    counted = Counted(json_objects.TOKEN)
    monkeypatch.setattr(json_objects, "TOKEN", counted)
    for repeated, end in product(REPEATED, ("", "}", '"', "}" * 2_500)):
        text = repeated * (5_000 // len(repeated)) + end
        before = counted.characters
        assert len([span for span in spans(text) if not span.closed]) <= MOST_UNFINISHED
        assert counted.characters - before <= (MOST_UNFINISHED + 1) * len(text), (repeated, end[:1])


@given(st.text() | made_of(FRAGMENTS, 40))
def test_any_text_is_read_to_its_end(text: str) -> None:
    """Spans are in order; closed ones don't overlap, and each begins with a brace."""
    places = spans(text)
    assert [span.start for span in places] == sorted({span.start for span in places})
    closed = [span for span in places if span.closed]
    assert all(one.end <= other.start for one, other in pairwise(closed))
    assert all(text[span.start] == "{" and span.end <= len(text) for span in places)
    assert all(text[each.span.start] == "{" for each in objects(text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | made_of(FRAGMENTS, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
WORDS = made_of(["So ", "it is. ", "\n", "\n```json\n", "{x} ", "(", ")", "5 > 4 ", "[1] "], 8)


@given(
    WORDS, st.dictionaries(st.text(), JSON, min_size=1, max_size=3), WORDS, st.sampled_from([None, 1])
)
def test_any_object_among_words_is_found(
    before: str, fields: json_objects.JsonObject, after: str, indent: int | None
) -> None:
    """Whatever its strings contain."""
    text = f"{before}\n{json.dumps(fields, indent=indent)}{after}"
    assert found(text) == [fields]
