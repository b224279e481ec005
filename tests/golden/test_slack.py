"""Golden runs on Slack; what isn't recorded for it is as on Discord."""

from tests.golden.edges import golden

test_what_leaves_is_as_recorded = golden(
    r"chat\*?", "slack", "slack", "discord", quick=slice(0, None, 2)
)
