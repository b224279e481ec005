"""The questions in their order. Nothing is written before the last one is answered."""

import re
from collections.abc import Callable

import typer

from bot.checks.check import Advice
from bot.config.configuration import load
from bot.config.settings import variables
from bot.discord.invite import discord_invite
from bot.terminal.ask import say
from bot.terminal.init.files import Existing, Plan, write
from bot.terminal.init.members import choose_members
from bot.terminal.init.prompts import choose, fit, kept, prompt
from bot.terminal.init.provider import choose_provider, demonstrate
from bot.view.wording import init as wording

_AMOUNT = re.compile(r"\d{1,6}(?:\.\d{1,2})?", re.ASCII)


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
    _ask_platforms(existing, plan)
    is_paid = provider is not None and provider.endpoint is None
    if is_paid and plan.serves and not existing.has_budgets:
        plan.monthly = prompt(wording.MONTHLY, _dollars)
    return plan


def _dollars(typed: str) -> str:
    amount = typed.strip("$ ")
    if typed and not (_AMOUNT.fullmatch(amount) and float(amount) > 0):
        raise typer.BadParameter(wording.NO_AMOUNT)
    return amount


def _ask_platforms(existing: Existing, plan: Plan) -> None:
    """Ask for the tokens of the platforms that are wanted."""
    platforms = (wording.DISCORD, wording.SLACK, wording.BOTH, wording.NEITHER)
    chosen = platforms[choose(wording.PLATFORMS, platforms, len(platforms))]
    if chosen in (wording.DISCORD, wording.BOTH):
        _ask_discord(existing, plan)
    if chosen in (wording.SLACK, wording.BOTH):
        _ask_slack(existing, plan)


def _ask_discord(existing: Existing, plan: Plan) -> None:
    from bot.discord.checks import token_advice

    name = "DISCORD_TOKEN"
    if token := kept(name, existing.secret(name)):
        plan.discord_token = token
        return
    say(wording.DISCORD_STEPS)
    if token := _token(wording.DISCORD_TOKEN, token_advice):
        plan.discord_token = plan.variables[name] = token


def _ask_slack(existing: Existing, plan: Plan) -> None:
    from bot.slack.checks import app_token_advice, bot_token_advice

    known = [existing.secret(name) for name in ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN")]
    by_http = bool(existing.secret("SLACK_SIGNING_SECRET") and variables().get("slack_http_port"))
    if known[0] and (known[1] or by_http) and kept("SLACK_BOT_TOKEN", known[0]):
        plan.has_slack = True
        return
    say(wording.SLACK_STEPS)
    bot_token = _token(wording.BOT_TOKEN, bot_token_advice)
    if not bot_token:
        return
    app_token = _token(wording.APP_TOKEN, app_token_advice)
    if not app_token:
        say(wording.SLACK_LATER)
        return
    plan.variables |= {"SLACK_BOT_TOKEN": bot_token, "SLACK_APP_TOKEN": app_token}
    plan.has_slack = True


def _token(question: str, advise: Callable[[str], Advice | None]) -> str:
    """Ask for a token, checked by its form; return nothing for one that is left for later."""

    def read(typed: str) -> str:
        if typed and (advice := advise(fit(typed))):
            raise typer.BadParameter(wording.advised(*advice))
        return typed

    return prompt(question, read, hidden=True)


def _may_write(plan: Plan, existing: Existing) -> bool:
    """Show what is to be written, and ask the last question; what is replaced takes a clear yes."""
    if plan.show(existing):
        return typer.confirm(wording.OVERWRITE, default=False)
    return typer.confirm(wording.WRITE, default=True)


def _tell_what_is_next(plan: Plan) -> None:
    if plan.discord_token:
        say(wording.invitation(discord_invite(plan.discord_token)))
    if plan.has_slack:
        say(wording.SLACK_INVITE)
    served = wording.RUN if plan.serves else {}
    say(wording.next_steps(wording.DOCTOR | wording.ASK | served))
