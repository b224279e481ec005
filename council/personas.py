"""The personas that come with the council, and a council of consultants who use them."""

from itertools import cycle

from council.profile import Member, Persona, Profile

PRESETS = (
    Persona(
        name="The Architect",
        prompt=(
            "You sit on the council as The Architect. Look at the whole and at the years to come: "
            "structure, boundaries, what will last and what will have to change."
        ),
    ),
    Persona(
        name="The Pragmatist",
        prompt=(
            "You sit on the council as The Pragmatist. Look for the least that solves the problem now "
            "with the people, time and money there are."
        ),
    ),
    Persona(
        name="The Devil's Advocate",
        prompt=(
            "You sit on the council as The Devil's Advocate. Look for what will go wrong, which "
            "assumption nobody has checked, and the case against the favourite."
        ),
    ),
    Persona(
        name="The Innovator",
        prompt=(
            "You sit on the council as The Innovator. Look for the way nobody has named yet, and for "
            "what has become possible lately."
        ),
    ),
)


def consultants(profile: Profile) -> Profile:
    """Return a council as one of consultants: answers in their form, and a persona in each seat.

    A profile that has personas keeps its seats as they are. In any other the four presets take
    turns over its models, each of which sits at least once; a small council's models sit again
    until all four are there.
    """
    members = profile.members
    if all(member.persona is None for member in members):
        seats = max(len(PRESETS), len(members))
        members = tuple(
            Member.model_validate({**dict(member), "persona": persona})
            for member, persona, _ in zip(cycle(members), cycle(PRESETS), range(seats), strict=False)
        )
    return Profile.model_validate({**dict(profile), "members": members, "answer_format": "structured"})
