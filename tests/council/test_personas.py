"""The personas that come with the council."""

from council.profile import PRESETS

SLUGS = ["the-architect", "the-pragmatist", "the-devils-advocate", "the-innovator"]


def test_four_personas_come_with_the_council() -> None:
    """Named as the consultants' schema names them."""
    assert [persona.slug for persona in PRESETS] == SLUGS
