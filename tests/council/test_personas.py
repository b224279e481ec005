"""The personas that come with the council, and who takes them."""

import pytest

from council.personas import PRESETS, consultants
from council.profile import Member, Profile
from tests.council.scripted import SKEPTIC, profile

SLUGS = ["the-architect", "the-pragmatist", "the-devils-advocate", "the-innovator"]


def test_four_personas_come_with_the_council() -> None:
    """Named as the consultants' schema names them."""
    assert [persona.slug for persona in PRESETS] == SLUGS


@pytest.mark.parametrize(
    ("models", "names"),
    [
        (("a",), [f"a#{slug}" for slug in SLUGS]),
        (
            ("a", "b"),
            ["a#the-architect", "b#the-pragmatist", "a#the-devils-advocate", "b#the-innovator"],
        ),
        (("a", "b", "c"), ["a#the-architect", "b", "c", "a#the-innovator"]),
        (("a", "b", "c", "d", "e"), ["a", "b", "c", "d", "e"]),
    ],
)
def test_a_council_without_personas_seats_all_four(models: tuple[str, ...], names: list[str]) -> None:
    """Models are repeated until there are four seats, each with a persona."""
    seated = consultants(profile(*models, quorum=3))
    assert [member.name for member in seated.members] == names
    taken = [member.persona for member in seated.members]
    assert taken == [*PRESETS, PRESETS[0]][: len(taken)]
    assert (seated.answer_format, seated.quorum) == ("structured", 3)


def test_a_council_with_personas_keeps_its_seats() -> None:
    """Only the form of its answers changes."""
    own = Profile(
        members=(Member(model="a", persona=SKEPTIC), Member(model="b", endpoint="http://x/v1")),
        chairman=Member(model="a"),
    )
    assert consultants(own) == own.model_copy(update={"answer_format": "structured"})
