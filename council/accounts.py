"""Accounts at model providers: the calls of a refused one end, those of all others go on."""

from collections import defaultdict

from council.cancel import Cancellation
from council.errors import Failure
from council.profile import Member


class Accounts:
    """The accounts of a run's members: an address and a key make one.

    A provider may refuse a single request as too dear and still take a cheaper one. When it refuses two
    models of an account so, the account is taken to be empty.
    """

    def __init__(self) -> None:
        self._calls: defaultdict[str | None, Cancellation] = defaultdict(Cancellation)
        self._too_dear: defaultdict[str | None, set[str]] = defaultdict(set)

    def calls(self, member: Member) -> Cancellation:
        """Return what ends the calls of a member's account; its cause says why they have ended."""
        return self._calls[_account(member)]

    def note(self, member: Member, why: Failure) -> None:
        """Take in why a member's call failed, and end its account's calls if none can succeed."""
        if why.is_account:
            self.calls(member).cancel(why.cause)
        elif why.cause == "too_dear":
            models = self._too_dear[_account(member)]
            models.add(member.model)
            if len(models) > 1:
                self.calls(member).cancel("credit")

    def seen_whole(self, member: Member, why: Failure) -> Failure:
        """Return a failure as it looks once more of its account is known: too dear, or nothing left."""
        if why.cause == "too_dear" and self.calls(member).cause == "credit":
            return why.model_copy(update={"cause": "credit"})
        return why


def _account(member: Member) -> str | None:
    return member.account_id or member.endpoint_id  # a run of an earlier version has only the latter
