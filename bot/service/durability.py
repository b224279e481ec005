"""How runs outlive the process that began them."""

from pydantic import BaseModel, ConfigDict, NonNegativeFloat


class Durability(BaseModel):
    """The times that runs are given, in seconds.

    A run that is interrupted goes on at the next start, unless it is older than `resume_within`; at
    its end the process gives what runs `drain_seconds`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    resume_within: NonNegativeFloat = 3600.0
    drain_seconds: NonNegativeFloat = 25.0
