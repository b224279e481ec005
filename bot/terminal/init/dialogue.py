"""The questions in their order. Nothing is written before the last one is answered."""

import typer

from bot.config.configuration import load
from bot.discord.invite import discord_invite
from bot.terminal.ask import say
from bot.terminal.init.files import Existing, Plan, write
from bot.terminal.init.members import choose_members
from bot.terminal.init.platforms import ask_platforms
from bot.terminal.init.prompts import confirm
from bot.terminal.init.provider import choose_provider, demonstrate
from bot.view.wording.terminal import init as wording


def init() -> bool:
    """Ask, then write; return whether it went to its end.

    Raises `ConfigurationError` where a file can't be read or changed, and for what is then still wrong
    with the configuration.
    """
    existing = Existing.read()
    try:
        plan = _plan(existing)
        contents = plan.contents(existing)
        if contents and not _may_write(plan, existing):
            return _leave()
    except (typer.Abort, KeyboardInterrupt):
        return _leave()
    if not contents:
        say(wording.NOTHING_TO_WRITE)
    if not write(contents):
        return False
    load()
    _tell_what_is_next(plan)
    return True


def _leave() -> bool:
    say(f"\n{wording.LEFT}")
    return False


def _plan(existing: Existing) -> Plan:
    say(wording.INTRODUCTION)
    if existing.in_dotenv:
        say(wording.existing(existing.dotenv, [*map(str.upper, existing.in_dotenv)]))
    plan = Plan()
    if (provider := choose_provider(existing)) is None:
        demonstrate(existing)
    else:
        choose_members(provider, plan)
    ask_platforms(existing, plan)
    return plan


def _may_write(plan: Plan, existing: Existing) -> bool:
    """Show what is to be written, and ask the last question; what is replaced takes a clear yes."""
    if plan.show(existing):
        return confirm(wording.OVERWRITE, default=False)
    return confirm(wording.WRITE, default=True)


def _tell_what_is_next(plan: Plan) -> None:
    if plan.discord_token:
        say(wording.invitation(discord_invite(plan.discord_token)))
    if plan.has_slack:
        say(wording.SLACK_INVITE)
    served = wording.RUN if plan.discord_token or plan.has_slack else {}
    say(wording.next_steps(wording.DOCTOR | wording.ASK | served))
