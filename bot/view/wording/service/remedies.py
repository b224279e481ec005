"""What an operator can do about a failed call: which setting to change, by its name.

Whoever asks in a chat never reads this; `council ask`, `council doctor` and the log say it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bot.view.wording.service import failures
from council.errors import Cause, Failure
from council.profile import Member

_PASSWORD = re.compile(r"//[^/?#]*@")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a call goes, in the words of the configuration.

    `key` is the variable for the key, `None` if none is named; `has_key` says whether one is sent.
    """

    model: str
    address: str
    key: str | None
    has_key: bool

    @property
    def account(self) -> str:
        """The account's name: the variable for its key, else its address."""
        return self.key or self.address


def target(member: Member, *, has_key: bool) -> Target:
    """Return where a member's call goes; `has_key` says whether the council's own key is set."""
    if member.endpoint_id is None:
        return Target(
            member.model, "the address in OPENROUTER_BASE_URL", "OPENROUTER_API_KEY", has_key=has_key
        )
    if member.endpoint:  # both a password and a query may hold a secret
        address = _PASSWORD.sub("//", member.endpoint).partition("?")[0]
    else:
        address = "its endpoint in council.toml"
    return Target(member.model, address, member.api_key_env, has_key=member.api_key_env is not None)


_REMEDIES: Mapping[Cause, str] = {
    "key": "Correct {key}",
    "no_key": "Set {key}",
    "credit": "Add credit to {account}",
    "key_limit": "Raise the spending limit of {owner}",
    "too_dear": "Add credit to {account}, or set a smaller max_tokens for {model}",
    "forbidden": "Give {owner} access to {model}, or configure another model",
    "data_policy": "Change the privacy settings of {account}, or configure a model other than {model}",
    "not_found": "Correct the model id {model}",
    "no_api": "Correct {address} (most addresses end in /v1)",
    "bad_request": "Run council doctor --live, or configure a model other than {model}",
    "no_server": "Start the server at {address}, or correct that address",
    "connection": "Check the network, {address} and any proxy (HTTPS_PROXY)",
    "silence": "If {model} is only slow, raise idle_timeout",
    "deadline": "If {model} is only slow, raise call_deadline",
    "only_thoughts": "Raise max_tokens for {model}, or lower its reasoning",
    "over_budget": "Raise the limit of a run under [budgets] in council.toml",
    "not_configured": "Put {model} back into council.toml or COUNCIL_MEMBERS",
    "endpoint_changed": "Put the endpoint of {model} back into council.toml",
}


def remedy(why: Failure, where: Target) -> str | None:
    """Return what to do about a failure, without a full stop; `None` if no setting helps."""
    if why.cause == "key" and not where.has_key:
        return (
            f"Set {where.key}"
            if where.key
            else f"Set api_key_env to the variable that holds the key for {where.address}"
        )
    if (said := _REMEDIES.get(why.cause)) is None:
        return None
    account = f"the account of {where.key}" if where.has_key else f"the account at {where.address}"
    return said.format(
        key=where.key,
        account=account,
        owner=where.key if where.has_key else account,
        address=where.address,
        model=where.model,
    )


def reason(why: Failure, where: Target) -> str:
    """Say why a call gave nothing, with the provider's own sentence."""
    said = "the server wants a key" if why.cause == "key" and not where.has_key else failures.cause(why)
    return said + failures.quoted(why)


def told(why: Failure, where: Target) -> str | None:
    """Say of a model why it gave nothing and what to do; `None` if no setting helps."""
    fix = remedy(why, where)
    return f"{where.model}: {reason(why, where)}. {fix}." if fix else None
