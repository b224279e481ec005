"""Golden runs on PostgreSQL; what isn't recorded for it is as with SQLite."""

from tests.golden.edges import NONE, golden

test_what_leaves_a_chat_is_as_recorded = golden(r"chat\*", "discord", "postgres", "discord", quick=NONE)
test_what_leaves_a_terminal_is_as_recorded = golden(
    r"terminal\*", "terminal", "postgres", "terminal", quick=NONE
)
