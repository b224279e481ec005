"""What whoever runs the bot reads when it can't start or can't serve."""

from collections.abc import Sequence

from bot.view.wording.names import listing

OTHER_FOLDER = "Stop it first, or use another folder for this one"
OTHER_DATABASE = "Stop it first, or use another database for this one"
MOVING = "what this database holds is being copied or replaced"
WAIT = "Start again when council migrate or council restore has ended"
NO_PLATFORM = "neither Discord nor Slack is configured"
SET_A_PLATFORM = (
    "Set DISCORD_TOKEN, or SLACK_BOT_TOKEN with SLACK_APP_TOKEN (Socket Mode) or with "
    "SLACK_SIGNING_SECRET and SLACK_HTTP_PORT (HTTP); docs/discord.md and docs/slack.md are the guides"
)
HALF_SLACK = "Slack is only half configured"
COMPLETE_SLACK = (
    "Slack needs SLACK_BOT_TOKEN and either SLACK_APP_TOKEN (Socket Mode), or SLACK_SIGNING_SECRET and "
    "SLACK_HTTP_PORT (HTTP)"
)
NO_OTEL = "a collector for traces is set, but the extra otel isn't installed, so no traces are sent"
BOTH_SLACKS = "Slack is configured for one workspace and for several"
CHOOSE_SLACK = (
    "For several, remove SLACK_BOT_TOKEN and SLACK_APP_TOKEN; for one, remove SLACK_CLIENT_ID, "
    "SLACK_CLIENT_SECRET and SLACK_TOKEN_KEY"
)
COMPLETE_OAUTH = (
    "Several workspaces need SLACK_CLIENT_ID, SLACK_CLIENT_SECRET, SLACK_SIGNING_SECRET, "
    "SLACK_HTTP_PORT and SLACK_TOKEN_KEY; docs/slack.md is the guide"
)
NO_EXTRA = "several Slack workspaces need the extra slack-oauth, which isn't installed"
INSTALL_EXTRA = (
    "Run uv sync --frozen --inexact --extra slack-oauth, or build the image with "
    "--build-arg EXTRA=slack-oauth"
)
NO_PROVIDER = (
    "No model provider is configured, so the tiny built-in model would answer a team's questions. "
    "Set one up with council init, or set COUNCIL_DEMO=1 to show how a council works."
)
NEEDS_DATABASE = (
    "council worker carries out what other processes accept, so it needs their database: set "
    "DATABASE_URL. Without one, council run does it all."
)
NO_WORKERS = (
    "Several Slack workspaces need a single council run that does it all: the list of those that have "
    "installed the app is in a file in its data folder. Start that alone, or configure a single "
    "workspace."
)
CHECK_SLACK = "Check the tokens, and that SLACK_API_URL is right or unset"


def half_oauth(missing: Sequence[str]) -> str:
    """Say that Slack is half configured for several workspaces."""
    verb = "is" if len(missing) == 1 else "are"
    return f"Slack is only half configured for several workspaces: {listing(missing)} {verb} missing"


def held(platform: str, place: str = "folder") -> str:
    """Say that another process serves a platform."""
    return f"another council run serves {platform} from this {place}"


def phase(name: str) -> str:
    """Say that the program is starting or ending."""
    return f"The council is {name}."


def not_connected(platform: str) -> str:
    """Say that a platform is out of reach."""
    return f"{platform} isn't connected."


def journal_busy(seconds: float) -> str:
    """Say that writes wait."""
    return f"The journal has been busy for {seconds:.0f} s."


def journal_trouble(why: str) -> str:
    """Say that the journal can't be written."""
    return f"The journal has a problem: {why}."
