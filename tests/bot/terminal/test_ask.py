"""What `council ask` shows of a run: everything, or what its model is good for."""

import io
from contextlib import redirect_stdout

from bot.terminal.ask import people
from council.profile import Profile
from tests.bot.sample_run import COMPLETED, FINAL, PROFILE, QUESTION, events
from tests.pairs import rows

BUILT_IN = PROFILE.model_copy(update={"demonstration": True})
TINY = (
    "A tiny model that comes with the program answers: it shows how a council works, and no more. Don't "
    "believe what it says. To ask real models: make init\n\n"
)


def shown(profile: Profile, below: str | None) -> str:
    """Return what is written of a run where nobody watches."""
    out = io.StringIO()
    with redirect_stdout(out), people(QUESTION, profile, below=below) as hear:
        for _, event in events():
            hear(event)
    return out.getvalue()


@rows(
    ("profile", "below", "digest", "record"),
    [
        *(
            (BUILT_IN, None, False, False),
            (BUILT_IN, "digest", True, False),
            (BUILT_IN, "full", True, True),
        ),
        *((PROFILE, None, True, False), (PROFILE, "none", False, False), (PROFILE, "full", True, True)),
    ],
)
def test_what_is_wanted_below_the_card_is_shown(
    profile: Profile, below: str | None, digest: bool, record: bool
) -> None:
    """The digest unless something else is asked for; of the built-in model, which writes no reviews, what it is."""
    said = shown(profile, below)
    assert said.startswith(f"{TINY}4 members.\n") is profile.demonstration
    assert ("## Ranking" in said, "### Original response" in said) == (digest, record)
    assert FINAL.response in said
    assert said.endswith(f"Saved as conversation {COMPLETED.conversation_id}.\n")
