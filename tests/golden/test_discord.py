"""Golden runs on Discord, one of them with a data folder of an earlier version; every other one is quick."""

from tests.golden.edges import golden

test_what_leaves_is_as_recorded = golden(
    r"(?:chat\*?|kept)", "discord", "discord", quick=slice(1, None, 2)
)
