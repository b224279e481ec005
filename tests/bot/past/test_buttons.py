"""What buttons below past answers say: written, read again, and no longer than a platform takes."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.past.pages import Answer, Detail, Figures, HistoryPage, Look, Search, read
from bot.service.commands import LONGEST_WORDS, MOST_AT_ONCE
from storage.index.past_answers import Cursor
from tests.pairs import rows

CURSORS = st.builds(
    Cursor,
    st.datetimes().map(lambda at: at.isoformat(timespec="milliseconds") + "Z"),
    st.uuids().map(str),
)
WORDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=LONGEST_WORDS)
IDS, SMALL = st.uuids().map(str), st.integers(0, 99)
LOOKS: st.SearchStrategy[Look] = st.one_of(
    st.builds(HistoryPage, st.integers(1, MOST_AT_ONCE)),
    st.builds(HistoryPage, st.integers(1, MOST_AT_ONCE), before=CURSORS),
    st.builds(HistoryPage, st.integers(1, MOST_AT_ONCE), after=CURSORS),
    st.builds(Search, WORDS, st.integers(0, 999)),
    st.builds(Answer, IDS, st.none() | SMALL),
    st.builds(Detail, IDS, SMALL, SMALL),
    st.builds(Figures, st.integers(1, 3650)),
)


@given(LOOKS)
def test_a_button_opens_what_it_was_made_for(look: Look) -> None:
    """And fits into Discord's 100 characters, with what the button does before it."""
    assert read(str(look)) == look
    assert len(f"past:share:{look}") <= 100


@given(
    st.text()
    | st.sampled_from(["history", "search", "answer", "reviews", "figures"]).flatmap(
        lambda kind: st.text().map(lambda rest: f"{kind}:{rest}")
    )
)
def test_whatever_a_forged_button_says_is_read_or_refused(text: str) -> None:
    """With one error, which says nothing of what exists."""
    try:
        look = read(text)
    except ValueError:
        return
    assert not isinstance(look, HistoryPage) or 1 <= look.count <= MOST_AT_ONCE
    assert not isinstance(look, Search) or len(look.words) <= LONGEST_WORDS


@rows(
    "text",
    [
        "answer",
        f"answer:{uuid.UUID(int=7)}",
        "figures:0",
        "figures:99999",
        "stop:1",
        f"votes:{uuid.UUID(int=7)}:0:0",
    ],
)
def test_what_no_button_of_ours_says_is_refused(text: str) -> None:
    """A missing field, a number out of range, another kind."""
    with pytest.raises(ValueError, match=r"no such look|no number|values to unpack"):
        read(text)
