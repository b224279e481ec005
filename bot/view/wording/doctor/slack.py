"""What `council doctor` says about Slack, in the words of api.slack.com."""

from collections.abc import Iterable

from bot.view.wording.doctor.doctor import Advice
from bot.view.wording.figures import count

APP_SCOPES = "the app's scopes"
_APP = "api.slack.com/apps > your app"
BOT_TOKEN_SHAPE = Advice(
    "it isn't a bot token: those begin with xoxb-",
    f"{_APP} > OAuth & Permissions > copy Bot User OAuth Token",
)
APP_TOKEN_SHAPE = Advice(
    "it isn't an app-level token: those begin with xapp-",
    f"{_APP} > Basic Information > App-Level Tokens > Generate Token and Scopes, with connections:write",
)
TOKENS_SWAPPED = Advice(
    "it is an app-level token (xapp-), which belongs in SLACK_APP_TOKEN",
    f"{_APP} > OAuth & Permissions > copy Bot User OAuth Token (xoxb-) into SLACK_BOT_TOKEN",
)
SIGNING_SECRET_SHAPE = Advice(
    "it isn't a signing secret: one has 32 letters and digits",
    f"{_APP} > Basic Information > App Credentials > copy Signing Secret",
)
SLACK_UNREACHABLE = Advice(
    "Slack doesn't answer",
    "Check the network, any proxy, and that SLACK_API_URL is unset or right",
)
SLACK_SOCKET_WELL = "Socket Mode: the app-level token opens a socket"
SLACK_HTTP_WELL = "HTTP mode; whether Slack reaches its public https address can't be seen from here"
SCOPES_WELL = "all that the manifest asks for"
NO_CHANNEL = Advice(
    "the bot is in no channel, so nobody can mention it",
    "Type /invite and the bot's name in a channel",
)
NOT_IN_ALLOWED_CHANNEL = Advice(
    "[access.allow] lets people ask in this channel, but the bot isn't in it",
    "Type /invite and the bot's name there, or correct the id in council.toml",
)
CHANNELS_UNSEEN = "not checked: that takes the scopes channels:read and groups:read"
_WITH_THREADS = (
    f"{_APP} > App Manifest > paste what `council manifest slack --threads` prints, then Install App > "
    "Reinstall to Workspace"
)
HALF_THREADS = {
    "channels:history": Advice(
        "threads are read only in private channels: the scope channels:history is missing",
        _WITH_THREADS,
    ),
    "groups:history": Advice(
        "threads are read only in public channels: the scope groups:history is missing",
        _WITH_THREADS,
    ),
}
THREADS_UNUSED = Advice(
    "the app may read what people write (channels:history, groups:history), but every profile has "
    'context = "message"',
    'Set context = "thread" in a profile, or paste what `council manifest slack` prints under '
    f"{_APP} > App Manifest and reinstall the app",
)

APP_WELL = "Slack knows the app; whether it reaches its redirect URL can't be seen from here"
_CREDENTIALS = f"{_APP} > Basic Information > App Credentials"
CLIENT_ID_WRONG = Advice("Slack knows no such app", f"{_CREDENTIALS} > copy Client ID")
CLIENT_SECRET_WRONG = Advice("it isn't the app's", f"{_CREDENTIALS} > copy Client Secret")
_REDIRECT = f"{_APP} > OAuth & Permissions > Redirect URLs"
REDIRECT_UNKNOWN = Advice(
    "it isn't one of the app's redirect URLs", f"{_REDIRECT} > add it, or unset it if there is only one"
)
REDIRECT_SHAPE = Advice(
    "Slack can't send people back to the council at this address",
    f"Write it as under {_REDIRECT}, like https://council.example.com/slack/oauth_redirect",
)
OPEN_TO_ALL = Advice(
    "any workspace may install the app, and ask at your expense",
    'List your workspaces\' ids, such as workspaces = ["T0123ABCD"]',
)
OPEN_TO_NONE = Advice(
    "its list of workspaces has only Discord servers, so nobody may install the app or ask on Slack",
    'Add the ids of your Slack workspaces, such as "T0123ABCD"',
)


def bot_token_refused(reason: str) -> Advice:
    """Say that Slack refuses the bot's token."""
    return Advice(
        f"Slack refuses the token: {reason}",
        f"{_APP} > OAuth & Permissions > Reinstall to Workspace, then copy Bot User OAuth Token into "
        "SLACK_BOT_TOKEN",
    )


def app_token_refused(reason: str) -> Advice:
    """Say that Slack opens no socket with the app-level token."""
    return Advice(
        f"Slack opens no socket: {reason}",
        f"{_APP} > Socket Mode > switch on Enable Socket Mode; Basic Information > App-Level Tokens > a "
        "token with connections:write, copied into SLACK_APP_TOKEN",
    )


def slack_trouble(reason: str) -> Advice:
    """Say that Slack is having problems."""
    return Advice(
        f"Slack didn't answer as expected: {reason}",
        "Wait and run `council doctor` again; slack-status.com may say more",
    )


def scopes_missing(scopes: Iterable[tuple[str, str]]) -> Advice:
    """Say which scopes are missing, each with what it is for."""
    named = "; ".join(f"{scope} (to {purpose})" for scope, purpose in scopes)
    return Advice(
        f"missing: {named}",
        f"{_APP} > OAuth & Permissions > Scopes > Bot Token Scopes > add them, then reinstall to the "
        "workspace",
    )


def scopes_left_out(scopes: Iterable[tuple[str, str]]) -> Advice:
    """Say which scopes an installation lacks, each with what it is for."""
    named = "; ".join(f"{scope} (to {purpose})" for scope, purpose in scopes)
    return Advice(
        f"missing: {named}",
        "Install the app there again from /slack/install, and leave every permission ticked",
    )


def installation_refused(reason: str) -> Advice:
    """Say that Slack no longer accepts the token of an installation."""
    return Advice(
        f"Slack refuses its token: {reason}", "Install the app there again from /slack/install"
    )


def installed_but_closed(team: str) -> Advice:
    """Say that the app is installed where nobody may ask."""
    return Advice(
        "the app is installed there, but [access] lets nobody ask",
        f'Add "{team}" to the workspaces in [access.allow], or ask the workspace to remove the app',
    )


def installs_unreadable(why: str) -> Advice:
    """Say that the file of installations can't be used."""
    return Advice(
        why,
        "Make it readable for this user; if it is damaged, delete it and install the app again in "
        "each workspace",
    )


def installs(number: int) -> str:
    """Say how many workspaces have installed the app."""
    if not number:
        return "no workspace has installed the app yet: open /slack/install at its public address"
    return f"the key fits; installed in {count(number, 'workspace')}"


def workspaces(number: int) -> str:
    """Say that Slack accepts the tokens of all workspaces."""
    return f"{count(number, 'token')} accepted, with all scopes" if number else "none yet"


def workspace_not_allowed(team: str) -> Advice:
    """Say that the lists of who may ask leave this workspace out."""
    return Advice(
        f"its list of workspaces leaves out {team}, to which SLACK_BOT_TOKEN belongs: nobody there may "
        "ask",
        f'Add "{team}", or set SLACK_BOT_TOKEN to another workspace\'s',
    )


def workspace(name: str, bot: str) -> str:
    """Say where the bot is installed."""
    return f"accepted; @{bot} in {name}"


def in_channels(number: int, *, more: bool) -> str:
    """Say in how many channels the bot is."""
    return f"in {'at least ' if more else ''}{count(number, 'channel')}"
