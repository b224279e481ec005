"""What an evaluation is to do, and what makes it the same one after a restart."""

import hashlib
import uuid
from dataclasses import dataclass

import orjson

from council.calls import JsonObject
from council.evaluation.items import EvalItem, digest
from council.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalPlan:
    """The questions, the council, the arms, and the rule by which they are compared.

    `baseline` is what the other arms are compared with, `margin` the difference that doesn't matter.
    `pilot` is how many questions choose the best single member. Questions, council, seed and rule are
    the evaluation's identity: with the same it is continued, also by other arms; with another rule it
    begins again.
    """

    items: tuple[EvalItem, ...]
    profile: Profile
    arms: tuple[str, ...]
    seed: int
    baseline: str
    margin: float
    pilot: int
    drop_saturated: bool

    @property
    def rule(self) -> JsonObject:
        """What is recorded before the first call."""
        return {
            "baseline": self.baseline,
            "margin": self.margin,
            "pilot": self.pilot,
            "drop_saturated": self.drop_saturated,
            "seed": self.seed,
            "questions": digest(self.items),
        }

    @property
    def id(self) -> str:
        """The evaluation's id: a UUID made of the plan."""
        # Only what is set: a setting that a later version adds makes no other evaluation.
        profile = self.profile.in_a_run().model_dump(
            mode="json", exclude_defaults=True, exclude={"title_model", "judge_model"}
        )
        whole = {**self.rule, "profile": profile}
        key = hashlib.blake2b(orjson.dumps(whole, option=orjson.OPT_SORT_KEYS), digest_size=16)
        return str(uuid.UUID(bytes=key.digest()))
