"""Everything that `bot` raises, as a tree under `council.errors.CouncilError`.

    CouncilError
    ├── ConfigurationError  the settings can't be used; it has every problem
    ├── NothingRead         a question holds nothing that can be read; the run ends before its first call
    ├── Refusal             a question, a click or a command is refused; one person reads why
    │   ├── OverBudget      it may cost more than is left
    │   ├── Unavailable     it can be asked again in a moment
    │   └── UsageError      it was asked for wrongly; the message says how to do it
    │       ├── NoProfile   there is no council of that name
    │       └── OverLimit   too many questions are waiting already
    └── VenueError          a platform didn't do what it was asked
        ├── Gone            the message, thread or channel isn't there any more
        ├── NotAllowed      a permission or a setting keeps the bot from it
        │   └── NoThread    the channel takes no replies in threads
        ├── Malformed       the platform never accepts what was sent
        ├── Unreachable     it may work later
        ├── Revoked         it works once the platform accepts the bot's token again
        └── RateLimited     it works after a stated time

The message of a `Refusal` is a sentence for a person, that of a `VenueError` a short phrase without a
full stop. Both come from `bot.view.wording`, where `failures.explain` has the words for everything else.
"""

from dataclasses import dataclass
from typing import Literal

from council.errors import CouncilError

Weight = Literal["error", "warning"]
"""An `error` keeps something from working at all; a `warning` is a risk, or a part that is missing."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: the setting or place, what is wrong there, and what to do."""

    where: str
    what: str
    fix: str
    weight: Weight = "error"

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.fix}"


class ConfigurationError(CouncilError):
    """The configuration can't be used; `problems` lists every reason."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class Refusal(CouncilError):
    """Something is refused; the message tells only the person who asked for it why."""


class OverBudget(Refusal):
    """A question may cost more than a budget or its asker's own limit has left."""


class Unavailable(Refusal):
    """The council restarts or can't save anything now; the same may be asked again in a moment."""


class NothingRead(CouncilError):
    """Nothing that came with a question can be read; the message says why, for its asker."""


class UsageError(Refusal):
    """Something was asked for wrongly; the message says how to do it."""


class NoProfile(UsageError):
    """There is no council of the name that a question names."""


class OverLimit(UsageError):
    """A question is over a limit; the message says the number and what to do."""


class VenueError(CouncilError):
    """A platform didn't do what it was asked."""


class Gone(VenueError):
    """The message, thread or channel isn't there any more, or not for the bot."""


class NotAllowed(VenueError):
    """The bot may not do this here; the message names what is missing."""


class NoThread(NotAllowed):
    """This channel takes no replies in threads."""


class Malformed(VenueError):
    """The platform doesn't accept what was sent: sending it again changes nothing."""


class Unreachable(VenueError):
    """The platform gave no answer, or one that may change later.

    `is_lost` says that the request was sent and its response never seen. `may_be_done` says that the
    request may have been carried out: its response was lost, or the platform failed halfway.
    `is_known` is false for an error that the platform doesn't document.
    """

    def __init__(
        self,
        message: str,
        *,
        is_lost: bool = False,
        may_be_done: bool = False,
        is_known: bool = True,
    ) -> None:
        super().__init__(message)
        self.is_lost = is_lost
        self.may_be_done = may_be_done or is_lost
        self.is_known = is_known


class Revoked(VenueError):
    """The platform doesn't accept the bot's token; whatever was posted before is still there."""


class RateLimited(VenueError):
    """The platform was asked too often and takes the same request again in `after` seconds."""

    def __init__(self, message: str, after: float) -> None:
        super().__init__(message)
        self.after = after
