"""What `council ask` shows of a run: everything, or what its model is good for."""

import io
from contextlib import redirect_stdout

import pytest

from bot.terminal.ask import people
from council.profile import Profile
from tests.bot.sample_run import COMPLETED, FINAL, PROFILE, QUESTION, events

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


def test_the_built_in_models_output_is_a_line_the_card_and_the_answer() -> None:
    """First what it is and how to get real models; no reviews, which it can't write."""
    said = shown(BUILT_IN, None)
    assert said.startswith(f"{TINY}4 members.\n")
    assert FINAL.response in said
    assert "Ranking" not in said
    assert "Objections" not in said
    assert said.endswith(f"Saved as conversation {COMPLETED.conversation_id}.\n")


@pytest.mark.parametrize(
    ("profile", "below", "digest", "record"),
    [
        (BUILT_IN, "digest", True, False),
        (BUILT_IN, "full", True, True),
        (PROFILE, None, True, False),
        (PROFILE, "none", False, False),
        (PROFILE, "full", True, True),
    ],
)
def test_what_is_wanted_below_the_card_is_shown(
    profile: Profile, below: str | None, digest: bool, record: bool
) -> None:
    """Of any model; the digest unless something else is asked for."""
    said = shown(profile, below)
    assert said.startswith(TINY) is profile.demonstration
    assert ("## Ranking" in said, "### Original response" in said) == (
        digest,
        record,
    )
