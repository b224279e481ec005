"""Who may do what: a table of rules, the same on every platform."""

from typing import get_args

import pytest

from bot.errors import Refusal
from bot.service.access import RULES, Admins, Permission, check, check_place, depends_on_admin
from council.document.conversation import Source
from tests.pairs import rows

ADA = Source(platform="slack", workspace="T1", channel="C1", user="U1")
BOB = ADA.model_copy(update={"user": "U2"})
ACTIONS: tuple[Permission, ...] = get_args(Permission)
OPEN: set[Permission] = {"look", "share", "ask again", "follow up", "vote", "retry", "forget own"}


def may(action: Permission, who: Source, *, is_admin: bool = False, asker: str | None = "U1") -> bool:
    try:
        check(action, who, is_admin=is_admin, asker=asker)
    except Refusal:
        return False
    return True


def test_every_action_has_a_rule() -> None:
    """None is allowed because somebody forgot it."""
    assert RULES.keys() == {*ACTIONS}


@rows("action", ACTIONS)
def test_who_may_do_what(action: Permission) -> None:
    """Strangers may do what is open, askers what is theirs, admins everything."""
    assert may(action, BOB, is_admin=True)
    assert may(action, BOB) == (action in OPEN)
    assert may(action, ADA) == (action in OPEN | {"stop", "forget answer"})
    assert depends_on_admin(action, BOB, "U1") == (action not in OPEN)


def test_without_a_recorded_asker_nobody_is_the_asker() -> None:
    """An imported answer names no asker, and some events no user."""
    nobody = ADA.model_copy(update={"user": None})
    assert not may("forget answer", nobody, asker=None)


@rows("action", [action for action in ACTIONS if action not in OPEN])
def test_a_refusal_says_who_may(action: Permission) -> None:
    """In a sentence for the person who was refused."""
    with pytest.raises(Refusal, match=r"^Only (the person who asked, or )?an admin,? can \w+ .*\.$"):
        check(action, BOB, asker="U1")


def test_admins_come_from_the_platform_or_from_the_settings() -> None:
    """The settings name people together with their platform."""
    admins = Admins(frozenset({"slack:U2"}))
    assert admins.include(BOB, by_platform=False)
    assert admins.include(ADA, by_platform=True)
    assert not admins.include(ADA, by_platform=False)
    assert not admins.include(BOB.model_copy(update={"platform": "discord"}), by_platform=False)


@pytest.mark.parametrize("where", [{"channel": "C2"}, {"workspace": "T2"}, {"platform": "discord"}])
def test_a_run_is_touched_only_where_it_belongs(where: dict[str, str]) -> None:
    """A thread is part of its channel; elsewhere the run doesn't exist."""
    check_place(ADA, BOB.model_copy(update={"thread": "1.0"}))
    with pytest.raises(Refusal, match="This run isn't on record here"):
        check_place(ADA, BOB.model_copy(update=where))
