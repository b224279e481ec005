"""What can go wrong between a person and a run, as a tree under `council.errors.CouncilError`.

    CouncilError
    ├── Refusal         a question or a click isn't carried out; the message tells the person why
    └── VenueError      a platform didn't do what it was asked
        ├── Gone        the message, thread, channel or token isn't there any more
        ├── NotAllowed  a permission or a setting keeps the bot from it
        ├── Malformed   the platform can't take what was sent, now or later
        ├── Unreachable it may work later
        └── RateLimited it works after a stated time

The message of a `VenueError` is a short phrase for people, without a full stop.
"""

from council.errors import CouncilError


class Refusal(CouncilError):
    """A question or a click that isn't carried out; the message tells the person, alone, why."""


class VenueError(CouncilError):
    """A platform didn't do what it was asked."""


class Gone(VenueError):
    """The message, thread, channel or token isn't there any more, or not for the bot."""


class NotAllowed(VenueError):
    """The bot may not do this here; the message names what is missing."""


class Malformed(VenueError):
    """The platform can't take what was sent: sending it again changes nothing."""


class Unreachable(VenueError):
    """The platform gave no answer, or one that may be another later.

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


class RateLimited(VenueError):
    """The platform was asked too often and takes the same request again in `after` seconds."""

    def __init__(self, message: str, after: float) -> None:
        super().__init__(message)
        self.after = after
