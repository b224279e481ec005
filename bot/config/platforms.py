"""Which platforms the settings name, and whether each of them is whole."""

from importlib.util import find_spec

from bot.config.configuration import Configuration
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
BOTH_SLACKS = Problem(
    "SLACK_BOT_TOKEN",
    wording.BOTH_SLACKS,
    wording.CHOOSE_SLACK,
)


def check(settings: Settings) -> None:
    """Refuse settings without a whole platform. Raises `ConfigurationError`."""
    slack = (
        settings.slack_bot_token,
        settings.slack_app_token,
        settings.slack_signing_secret,
        settings.slack_http_port,
        *_oauth(settings).values(),
    )
    problems: list[Problem] = []
    if any(_oauth(settings).values()) and (settings.slack_bot_token or settings.slack_app_token):
        problems.append(BOTH_SLACKS)
    elif any(_oauth(settings).values()):
        missing = _missing_for_oauth(settings)
        if missing:
            what = wording.half_oauth(missing)
            problems.append(Problem("SLACK_CLIENT_ID", what, wording.COMPLETE_OAUTH))
        elif not _has_extra():
            problems.append(Problem("SLACK_CLIENT_ID", wording.NO_EXTRA, wording.INSTALL_EXTRA))
    elif any(slack) and not slack_is_whole(settings):
        problems.append(HALF_SLACK)
    elif not any(slack) and settings.discord_token is None:
        problems.append(NO_PLATFORM)
    if problems:
        raise ConfigurationError(problems)


def slack_is_whole(settings: Settings) -> bool:
    """Return whether one workspace of Slack is fully configured, for Socket Mode or for HTTP."""
    by_http = settings.slack_signing_secret and settings.slack_http_port
    return bool(settings.slack_bot_token and (settings.slack_app_token or by_http))


def serves_workspaces(settings: Settings) -> bool:
    """Return whether every workspace of Slack is served that installs the app."""
    return any(_oauth(settings).values()) and not _missing_for_oauth(settings) and _has_extra()


def _has_extra() -> bool:
    return all(map(find_spec, ("sqlalchemy", "cryptography")))


def _oauth(settings: Settings) -> dict[str, object]:
    """Return the settings that only several workspaces need."""
    return {
        "SLACK_CLIENT_ID": settings.slack_client_id,
        "SLACK_CLIENT_SECRET": settings.slack_client_secret,
        "SLACK_TOKEN_KEY": settings.slack_token_key,
    }


def _missing_for_oauth(settings: Settings) -> list[str]:
    needed = _oauth(settings) | {
        "SLACK_SIGNING_SECRET": settings.slack_signing_secret,
        "SLACK_HTTP_PORT": settings.slack_http_port,
    }
    return [name for name, value in needed.items() if not value]


def shares(configuration: Configuration) -> bool:
    """Return whether several processes may serve from one database.

    What several workspaces have installed is in a file of one process.
    """
    return bool(configuration.database) and not serves_workspaces(configuration.settings)
