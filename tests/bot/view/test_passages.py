"""Which sentences a correction changed, and which of them is worth showing."""

from functools import partial

from bot.view.passages import LONGEST, Passage, clearest, gravest, passages
from council.document.results import ReviewPoint, Severity
from tests.pairs import rows

against = partial(ReviewPoint, label="Response A", kind="objection", source="structured")
BEFORE = """Widen the column **in place** on a Sunday. The lock lasts about a minute.

- Tell the team.

```sql
ALTER TABLE payments ALTER COLUMN id TYPE bigint;
```

| a | b |
"""
AFTER = """Widen the column **in place** on a Sunday. The lock lasts about four hours at 400 GB.

- Tell the team.
- Take a backup first.
"""
LOCK = Passage("The lock lasts about a minute.", "The lock lasts about four hours at 400 GB.")
BACKUP = Passage("", "Take a backup first.")


def test_sentences_are_paired_with_what_they_became() -> None:
    """Without Markdown, code and tables; what stayed or only moved is left out, and a rewritten passage is one change."""
    assert passages(BEFORE, AFTER) == [LOCK, BACKUP]
    assert LOCK.is_pair
    assert not BACKUP.is_pair
    assert passages("One thing. Another thing.", "- Another thing.\n- **One thing.**") == []
    assert passages("Yes. Do it.", "Wait a week.\nThen ask.") == [
        Passage("Yes. Do it.", "Wait a week. Then ask.")
    ]
    assert passages("word. " * LONGEST, "other. " * LONGEST) == []


def test_two_sentences_that_an_objection_names_alike_are_unclear() -> None:
    """Without one that names a passage, the largest change counts; it is never guessed which of two is meant."""
    changed = [BACKUP, LOCK]
    assert gravest(changed, [against(text="No backup is taken first.", severity="high")]) == BACKUP
    assert gravest(changed, [against(text="Too short.")]) == LOCK
    assert gravest([], []) is None
    twice = [
        Passage("Lock the table on Monday.", "Lock the table on Tuesday."),
        Passage("Lock the table on Friday.", "Lock the table on Saturday."),
    ]
    assert clearest(twice, [against(text="Don't lock the table.", severity="high")]) is None


@rows(
    ("text", "severity", "found"),
    [
        ("The lock lasts hours at 400 GB, not a minute.", "high", LOCK),
        ("The lock lasts hours at 400 GB, not a minute.", "medium", None),
        ("The tone is arrogant.", "high", None),
        ("It never takes a backup first.", "high", None),
    ],
)
def test_only_a_pair_that_a_serious_objection_names_is_clear(
    text: str, severity: Severity, found: Passage | None
) -> None:
    """Everything else is left out of the card."""
    assert clearest([LOCK, BACKUP], [against(text=text, severity=severity)]) == found
