"""Where people ask: the platforms' tokens, checked by their form."""

from bot.checks.check import Advice
from bot.config.settings import variables
from bot.terminal.ask import say
from bot.terminal.init.files import Existing, Plan
from bot.terminal.init.prompts import choose, kept, secret
from bot.view.wording.terminal import init as wording


def ask_platforms(existing: Existing, plan: Plan) -> None:
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
    if token := secret(wording.DISCORD_TOKEN, lambda typed: _advised(token_advice(typed))):
        plan.discord_token = plan.variables[name] = token


def _ask_slack(existing: Existing, plan: Plan) -> None:
    from bot.slack.checks import app_token_advice, bot_token_advice

    if variables().get("slack_client_id"):
        say(wording.SLACK_SEVERAL)
        return
    known = [existing.secret(name) for name in ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN")]
    by_http = bool(existing.secret("SLACK_SIGNING_SECRET") and variables().get("slack_http_port"))
    if known[0] and (known[1] or by_http) and kept("SLACK_BOT_TOKEN", known[0]):
        plan.has_slack = True
        return
    say(wording.SLACK_STEPS)
    bot_token = secret(wording.BOT_TOKEN, lambda typed: _advised(bot_token_advice(typed)))
    if not bot_token:
        return
    app_token = secret(wording.APP_TOKEN, lambda typed: _advised(app_token_advice(typed)))
    if not app_token:
        say(wording.SLACK_LATER)
        return
    plan.variables |= {"SLACK_BOT_TOKEN": bot_token, "SLACK_APP_TOKEN": app_token}
    plan.has_slack = True


def _advised(advice: Advice | None) -> str | None:
    return wording.advised(*advice) if advice else None
