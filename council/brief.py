"""What a council is asked, with everything its answer depends on."""

from pydantic import BaseModel, ConfigDict, Field

from council.profile import Profile


class Turn(BaseModel):
    """An earlier question of the conversation and the final answer it got."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    question: str
    answer: str


class Attachment(BaseModel):
    """A text file that belongs to the question."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    name: str
    text: str


class Brief(BaseModel):
    """One question and the settings it is answered under; stored in the run's row.

    `asker` is how the asker is called where the question was asked. `seed` decides labels and
    reading orders; `boundary` fences untrusted text in the prompts. Both are drawn once, so a replay
    writes the same prompts again.
    """

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    question: str = Field(min_length=1)
    profile: Profile
    seed: int
    boundary: str
    asker: str | None = None
    attachments: tuple[Attachment, ...] = ()
    history: tuple[Turn, ...] = ()
    wants_title: bool = True
    started_at: str | None = None
    """When the first call was prepared, ISO 8601: all is filled in that had to be looked up."""
