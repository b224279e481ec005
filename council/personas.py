"""The personas that come with the council."""

from council.profile import Persona

PRESETS = tuple(
    Persona(name=name, prompt=f"You sit on the council as {name}. Look {focus}.")
    for name, focus in {
        "The Architect": "at the whole and at the years to come: structure, boundaries, what will last "
        "and what will have to change",
        "The Pragmatist": "for the least that solves the problem now with the people, time and money "
        "there are",
        "The Devil's Advocate": "for what will go wrong, which assumption nobody has checked, and the "
        "case against the favourite",
        "The Innovator": "for the way nobody has named yet, and for what has become possible lately",
    }.items()
)
