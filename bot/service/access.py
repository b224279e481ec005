"""Who may ask, where, and which council: `[access]` of `council.toml`.

Denials win. Of the lists that allow, those of places (channels, categories) and those of people
(users, roles, user groups) must both let a question in; within each kind one entry is enough. Direct
messages are in no channel, and Discord has no roles there: such lists refuse them, except to users
who are listed by id.

Below: who may do what with a run, its answer and its records. An adapter says who acts, where, and what
the platform knows about them; this decides the rest.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict

from bot.errors import Refusal
from bot.view.wording import commands as wording
from council.document.conversation import Source
from storage.scope import TERMINAL

_DISCORD = r"\d{15,20}"


def _like(*forms: str) -> AfterValidator:
    """Return a validator: each id of a list has one of these forms."""
    form = re.compile("|".join(forms))

    def check(ids: frozenset[str]) -> frozenset[str]:
        if wrong := sorted(one for one in ids if not form.fullmatch(one)):
            raise ValueError(f"{wrong[0]!r} isn't an id of that kind")
        return ids

    return AfterValidator(check)


NOBODY: frozenset[str] = frozenset()


class Rules(BaseModel):
    """Lists of the platforms' ids; an empty one has no effect."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, extra="forbid", coerce_numbers_to_str=True
    )

    workspaces: Annotated[frozenset[str], _like(_DISCORD, "[TE][A-Z0-9]{6,}")] = NOBODY
    """Discord servers, Slack workspaces"""
    channels: Annotated[frozenset[str], _like(_DISCORD, "[CG][A-Z0-9]{6,}")] = NOBODY
    """channels, with their threads"""
    categories: Annotated[frozenset[str], _like(_DISCORD)] = NOBODY
    """Discord's categories, with their channels"""
    roles: Annotated[frozenset[str], _like(_DISCORD)] = NOBODY
    """Discord's roles"""
    groups: Annotated[frozenset[str], _like("S[A-Z0-9]{6,}")] = NOBODY
    """Slack's user groups; needs the scope `usergroups:read`"""
    users: Annotated[frozenset[str], _like(_DISCORD, "[UW][A-Z0-9]{6,}")] = NOBODY
    """people"""

    @property
    def places(self) -> frozenset[str]:
        return self.channels | self.categories

    @property
    def memberships(self) -> frozenset[str]:
        return self.roles | self.groups

    def open_to_place(self, standing: "Requester") -> bool:
        in_workspace = not self.workspaces or standing.workspace in self.workspaces
        return in_workspace and (not self.places or bool(self.places & standing.places))


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """What a platform says about somebody who acts: where they are, and what they belong to.

    `is_program` says that a token of the operator's admits it: lists of people don't concern it.
    `workspace` is also Discord's server. `places` are the channel, a thread's parent channel, and
    their category; `memberships` are roles and user groups, at least those that the lists name.
    """

    workspace: str | None = None
    places: frozenset[str] = NOBODY
    memberships: frozenset[str] = NOBODY
    is_direct: bool = False
    is_program: bool = False


AT_TERMINAL = Requester()
"""Of the operator: everything is theirs to ask."""


class Access(BaseModel):
    """Who may ask; `profiles` restricts single councils further.

    With `opt_in`, a channel is closed until an admin opens it (`bot.service.channels`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    opt_in: bool = False

    allow: Rules = Rules()
    deny: Rules = Rules()
    profiles: dict[str, Rules] = {}

    @property
    def groups(self) -> frozenset[str]:
        return NOBODY.union(
            *(rules.groups for rules in (self.allow, self.deny, *self.profiles.values()))
        )

    @property
    def named(self) -> frozenset[str]:
        """All workspaces, channels, categories and roles that appear in a rule."""
        every = (self.allow, self.deny, *self.profiles.values())
        return NOBODY.union(*(rules.workspaces | rules.places | rules.roles for rules in every))

    @property
    def lists(self) -> bool:
        return self.allow != Rules() or self.deny != Rules()

    def check(self, source: Source, standing: Requester, profile: str) -> None:
        """Raise `Refusal` if a question may not be asked, saying who can change that."""
        if source.platform == TERMINAL:
            return
        refused = _denied(self.deny, self.allow, source, standing) or not_allowed(
            self.allow, source, standing
        )
        if refused is None and not_allowed(self.profiles.get(profile, Rules()), source, standing):
            refused = wording.NOT_THIS_PROFILE.format(profile)
        if refused:
            raise Refusal(f"{refused} {wording.WHO_CHANGES_IT}")


OPEN = Access()


def _denied(deny: Rules, allow: Rules, source: Source, standing: Requester) -> str | None:
    if standing.workspace in deny.workspaces:
        return wording.NOT_IN_WORKSPACE
    if deny.places & standing.places:
        return wording.NOT_IN_CHANNEL
    if standing.is_program:
        # Which category a channel is in, only Discord knows, and no program is connected to it.
        is_known = not deny.categories or bool(allow.channels & standing.places)
        return None if is_known or source.platform != "discord" else wording.NOT_BY_CATEGORY
    if source.user in deny.users or deny.memberships & standing.memberships:
        return wording.NOT_THIS_PERSON
    if deny.roles and _hides_roles(source, standing) and source.user not in allow.users:
        return wording.NOT_DIRECTLY
    return None


def not_allowed(allow: Rules, source: Source, standing: Requester) -> str | None:
    """Return why the allow lists refuse a question; `None` if they don't."""
    is_listed = source.user in allow.users
    is_known_directly = standing.is_direct and is_listed
    if allow.workspaces and standing.workspace not in allow.workspaces:
        if standing.is_direct and not is_listed:
            return wording.NOT_DIRECTLY
        if not standing.is_direct:
            return wording.NOT_IN_WORKSPACE
    if allow.places and not (is_known_directly or allow.places & standing.places):
        return wording.NOT_DIRECTLY if standing.is_direct else wording.NOT_IN_CHANNEL
    if standing.is_program:
        return None
    if (allow.users or allow.memberships) and not (
        is_listed or allow.memberships & standing.memberships
    ):
        hidden = allow.roles and _hides_roles(source, standing)
        return wording.NOT_DIRECTLY if hidden else wording.NOT_THIS_PERSON
    return None


def _hides_roles(source: Source, standing: Requester) -> bool:
    """Whether roles can't be known: on Discord they belong to a server."""
    return standing.is_direct and source.platform == "discord"


Permission = Literal[
    "look",
    "share",
    "ask again",
    "follow up",
    "vote",
    "retry",
    "stop",
    "forget answer",
    "forget own",
    "forget person",
    "forget channel",
    "configure",
]
"""What somebody may want to do; looking includes details and transcripts."""

Rule = Literal["anyone", "asker or admin", "admin"]
"""Who may, of the people who can use the place where it is done."""

RULES: Mapping[Permission, Rule] = {
    **dict.fromkeys(get_args(Permission), "anyone"),
    "stop": "asker or admin",
    "forget answer": "asker or admin",
    "forget person": "admin",
    "forget channel": "admin",
    "configure": "admin",
}

_REFUSED: Mapping[Permission, str] = {
    "stop": wording.NOT_STOPPED,
    "forget answer": wording.ANSWER_NOT_FORGOTTEN,
    "forget person": wording.PERSON_NOT_FORGOTTEN,
    "forget channel": wording.CHANNEL_NOT_FORGOTTEN,
    "configure": wording.CHANNEL_NOT_CONFIGURED,
}


@dataclass(frozen=True, slots=True)
class Admins:
    """The people who are admins whatever their platform says, each as `platform:id`."""

    listed: frozenset[str] = frozenset()

    def include(self, who: Source, *, by_platform: bool) -> bool:
        return by_platform or f"{who.platform}:{who.user}" in self.listed

    def on(self, platform: str) -> list[str]:
        named = (one.partition(":") for one in sorted(self.listed))
        return [user for name, _, user in named if name == platform]


def depends_on_admin(action: Permission, who: Source, asker: str | None) -> bool:
    """Whether this action depends on being an admin; asking a platform takes time."""
    return not _is_allowed(action, who, asker, is_admin=False)


def check(action: Permission, who: Source, *, is_admin: bool = False, asker: str | None = None) -> None:
    """Raise `Refusal` if somebody may not do this; `asker` asked the question it is about."""
    if not _is_allowed(action, who, asker, is_admin=is_admin):
        raise Refusal(_REFUSED[action])


def check_place(origin: Source, here: Source) -> None:
    """Raise `Refusal` if a run's button is pressed where it doesn't belong, forged or copied."""
    if _place(origin) != _place(here):
        raise Refusal(wording.NOT_HERE)


def _is_allowed(action: Permission, who: Source, asker: str | None, *, is_admin: bool) -> bool:
    match RULES[action]:
        case "anyone":
            return True
        case "asker or admin":
            return is_admin or (asker is not None and asker == who.user)
        case "admin":
            return is_admin


def _place(source: Source) -> tuple[str, str | None, str | None]:
    return source.platform, source.workspace, source.channel
