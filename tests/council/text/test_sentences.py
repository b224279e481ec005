"""Where sentences end."""

import pytest

from council.text.sentences import sentence_ends, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("No mark", ["No mark"]),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Wait\u2026 What?! Yes.", ["Wait\u2026", "What?!", "Yes."]),
        (
            'He said "never." (She agreed.) **Bold.** Then.',
            ['He said "never."', "(She agreed.)", "**Bold.**", "Then."],
        ),
        ("Use e.g. Redis, etc. Then test.", ["Use e.g. Redis, etc. Then test."]),
        ("Version 3.14 is out. use it", ["Version 3.14 is out. use it"]),
        (
            'It ends. "quoted" words follow. (so) do these.',
            ['It ends. "quoted" words follow. (so) do these.'],
        ),
        ("Am 3. Mai war es so weit. Am 4. War es?", ["Am 3. Mai war es so weit.", "Am 4.", "War es?"]),
        ("Это так. Это не так.", ["Это так.", "Это не так."]),
        ("這是真的。那不是！好？", ["這是真的。", "那不是！", "好？"]),
        ("First.\n\nSecond.  Third. ", ["First.", "Second.", "Third."]),
    ],
)
def test_a_text_is_divided_into_its_sentences(text: str, expected: list[str]) -> None:
    """A mark ends a sentence unless a small letter follows, or it abbreviates, or dates."""
    assert sentences(text) == expected


@pytest.mark.parametrize(("limit", "expected"), [(3, []), (4, [4]), (8, [4]), (9, [4, 9]), (99, [4, 9])])
def test_only_ends_within_a_limit_count(limit: int, expected: list[int]) -> None:
    """A sentence that ends exactly at the limit fits; what is beyond decides whether a mark ends one."""
    assert [*sentence_ends("One. Two.", limit)] == expected
    assert [*sentence_ends("One. two.", limit)] == ([9] if limit >= 9 else [])
