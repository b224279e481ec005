"""Which platforms the settings name, and whether each of them is whole."""

from bot.config.settings import Settings
from bot.errors import ConfigurationError, Problem
from bot.view.wording import cli as wording

NO_PLATFORM = Problem(
    "DISCORD_TOKEN",
    wording.NO_PLATFORM,
    wording.SET_A_PLATFORM,
)
HALF_SLACK = Problem(
    "SLACK_BOT_TOKEN",
    wording.HALF_SLACK,
    wording.COMPLETE_SLACK,
)


def check(settings: Settings) -> None:
    """Refuse settings without a whole platform. Raises `ConfigurationError`."""
    slack = (
        settings.slack_bot_token,
        settings.slack_app_token,
        settings.slack_signing_secret,
        settings.slack_http_port,
    )
    problems: list[Problem] = []
    if any(slack) and not slack_is_whole(settings):
        problems.append(HALF_SLACK)
    elif not any(slack) and settings.discord_token is None:
        problems.append(NO_PLATFORM)
    if problems:
        raise ConfigurationError(problems)


def slack_is_whole(settings: Settings) -> bool:
    """Return whether Slack is fully configured, for Socket Mode or for HTTP."""
    by_http = settings.slack_signing_secret and settings.slack_http_port
    return bool(settings.slack_bot_token and (settings.slack_app_token or by_http))
