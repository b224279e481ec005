"""What `council init` asks and says."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bot.view.wording.figures import count, listing
from council.models.costs import Price

if TYPE_CHECKING:
    from council.local import LocalServer

INTRODUCTION = (
    "This sets up a council of your own in a few questions. Nothing is written until the last one is "
    "answered; Ctrl-C leaves at any time."
)
LEFT = "Stopped. Nothing was written."
HIDDEN = "\u2022" * 4

WHO_ANSWERS = "\nWho should answer?"
OPENROUTER = "OpenRouter: one key for the models of many makers (openrouter.ai/settings/keys)"
OTHER = "another OpenAI-compatible address"
DEMONSTRATION = "the built-in demonstration: no key and no network, but a tiny model that is often wrong"
CHOICE = "Number"
KEY = "OpenRouter key (it isn't shown)"
KEY_NEEDED = "A key is needed. Make one at openrouter.ai/settings/keys, or press Ctrl-C to leave."
OTHER_ADDRESS = "Address, such as https://api.example.com/v1"
OTHER_KEY = "Key (it isn't shown; press Enter if there is none)"
UNFIT = "it can't be written to .env"
CHECKING = "\nChecking \u2026"
USE_ANYWAY = "Use it anyway?"
NO_LIST = "\nThere is no list of models to choose from. Type the ids as the provider writes them."

NOTHING_LISTED = "The server lists no model. Load one and start again, or choose something else."
PER_MILLION = "\nModels, with prices in US dollars per million tokens (prompt / reply):"
LISTED = "\nModels:"
PERSONAS = "A model with more than one seat takes a different persona in each."
MEMBERS = "Members, separated by commas"
CHAIRMAN = "Chairman, who writes the final answer"
OTHERS = "Choose other models?"

MONTHLY_KEY = "workspace_month"
MONTHLY = (
    "\nThe most that all questions of a month may cost on a server or in a workspace, in dollars "
    "(press Enter for no limit)"
)
NO_AMOUNT = "Type an amount in dollars, such as 50, or press Enter for no limit."

DEMONSTRATION_READY = "The demonstration model is installed and needs no setting."
DEMONSTRATION_MISSING = "The demonstration model isn't installed yet. Install it: make setup"
PLATFORMS = "\nWhere should people ask?"
DISCORD, SLACK, BOTH, NEITHER = "Discord", "Slack", "both", "nowhere yet: in this terminal only"
DISCORD_STEPS = """
Discord (docs/discord.md has every switch):
  1. discord.com/developers/applications > New Application, type its name, Create
  2. Installation > Install Link > None; then Bot > switch Public Bot off: only you can add it then
  3. Bot > Reset Token, and copy the token"""
SLACK_STEPS = """
Slack (docs/slack.md says more):
  1. In another terminal, print the manifest: .venv/bin/council manifest slack
  2. api.slack.com/apps > Create New App > From a manifest, choose the workspace, Next, paste the
     manifest, Next, Create
  3. Install App > Install to Workspace, and copy the Bot User OAuth Token (xoxb-)
  4. Basic Information > App-Level Tokens > Generate Token and Scopes, a name such as socket, the
     scope connections:write, Generate, and copy it (xapp-)"""
DISCORD_TOKEN = "Discord bot token (it isn't shown; press Enter to do this later)"  # noqa: S105 - words about one
BOT_TOKEN = "Slack bot token (it isn't shown; press Enter to do this later)"  # noqa: S105 - words about one
APP_TOKEN = "Slack app-level token (it isn't shown; press Enter to do this later)"  # noqa: S105 - words about one
SLACK_LATER = (
    "Slack needs both tokens, so neither is written. Run `council init` again when you have them."
)
MASKED = {
    "OPENROUTER_API_KEY": "the key of the provider",
    "OPENROUTER_API_KEY_FILE": "the file with the key of the provider",
    "DISCORD_TOKEN": "Discord's token",
    "SLACK_BOT_TOKEN": "Slack's bot token",
    "SLACK_APP_TOKEN": "Slack's app-level token",
}
"""Settings whose values are never shown."""

NOTHING_TO_WRITE = "\nNothing needs to be written."
WRITE = "Write this?"
OVERWRITE = "Write this, and replace the values above?"
READABLE = "Save it as text that this user may read"
CORRECT = "Correct it, or move it away"
INSTEAD = "The members and the chairman that it has now are replaced."
NOT_EDITABLE = "it is written in a way that can't be changed here safely"
NOT_UTF8 = "it isn't UTF-8 text"
_ONE_MILLION = 1_000_000


def server(found: "LocalServer") -> str:
    return f"{found.name} on this machine, at {found.endpoint} ({listing(found.models)})"


def choose(most: int) -> str:
    return f"Type a number from 1 to {most}."


def existing(file: object, names: Sequence[str]) -> str:
    return f"{file} sets {listing(names)}. What you don't change here stays as it is."


def keep(name: str) -> str:
    return f"{name} is set already. Keep it?"


def not_usable(what: str) -> str:
    return f"That can't be used: {what}."


def advised(what: str, fix: str) -> str:
    return f"{not_usable(what)}\n  {fix}."


def unanswered(what: str) -> str:
    return f"The server doesn't answer: {what}."


def price(of: Price | None) -> str:
    """Return what a million tokens cost, of the prompt and of the reply."""
    if of is None:
        return "price unknown"
    return f"${of.prompt * _ONE_MILLION:,.2f} / ${of.completion * _ONE_MILLION:,.2f}"


def more(number: int) -> str:
    return f"  and {count(number, 'other')}. Any id on the provider's list will do."


def no_such_model(model: str, near: str | None) -> str:
    return f"There is no model {model}." + (f" Did you mean {near}?" if near else "")


def not_an_id(model: str) -> str:
    return f"{model} isn't a model's id."


def too_often(most: int) -> str:
    return f"One model can take {most} seats at most."


def ask_each(most: str | None) -> str:
    """Ask whether each model may be asked for one word; `most` is what that costs."""
    costs = f"The most it can cost: {most}." if most else "It costs a little; the prices aren't known."
    return f"\nAsk each of them for one word, to see that it answers? {costs}"


def how_many(most: int) -> str:
    return "Name one model." if most == 1 else f"Name 1 to {most} models."


def demonstration_hidden(names: Sequence[str]) -> str:
    """Return why the demonstration model won't answer."""
    says, stay = ("says", "It stays as it is") if len(names) == 1 else ("say", "They stay as they are")
    return f"{listing(names)} already {says} who answers, so the demonstration won't. {stay}."


def overridden(names: Iterable[str]) -> str:
    return f"Set in the environment, which overrides .env: {listing(names)}. Unset it there."


def to_write(file: object) -> str:
    return f"\nTo be written to {file}:"


def addition(name: str, value: str) -> str:
    return f"  {name} = {_shown(name, value)}"


def change(name: str, value: str, before: str) -> str:
    """Return which value a setting gets instead of another."""
    was = _shown(name, before)
    return (
        f"  {name} = {_shown(name, value)} (now: {was})" if value else f"  {name}: removed (now: {was})"
    )


def _shown(name: str, value: str) -> str:
    return HIDDEN if name in MASKED else value


def profile(name: str, members: str, chairman: str) -> str:
    return f"[profiles.{name}]\nmembers = {members}\nchairman = {chairman}"


def budget(monthly: str) -> str:
    return f"[budgets]\n{MONTHLY_KEY} = {monthly}"


def by_hand(lines: str) -> str:
    return f"Put this into it yourself, then run `council init` again:\n\n{lines}"


def not_written(file: object, why: str | None) -> str:
    return f"{file} can't be written ({why})."


def unreadable(why: object) -> str:
    return f"it can't be read ({why})"


def written(file: object) -> str:
    return f"{file} has been written; only you can read it."


def invitation(address: str) -> str:
    return f"\nInvite the bot to your Discord server:\n  {address}"


SLACK_INVITE = "\nIn Slack, type /invite @council in a channel."


def next_steps(steps: Mapping[str, str]) -> str:
    """List the commands that come next."""
    width = max(map(len, steps))
    return "\nNext:\n" + "\n".join(f"  {command:<{width}}  {does}" for command, does in steps.items())


DOCTOR = {".venv/bin/council doctor": "checks everything"}
ASK = {"make ask": "asks in this terminal"}
RUN = {"make run": "serves Discord and Slack"}
