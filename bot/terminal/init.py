"""`council init`: a council of one's own, by questions at the terminal.

Nothing is written before the last question is answered, and then each file whole. Ctrl-C and the input's
end raise `typer.Abort`.
"""

import asyncio
import os
import re
import signal
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import get_terminal_size
from typing import TypeVar

import typer
from pydantic import SecretStr

from bot.checks.check import Advice, CheckResult, carry_out, wrapped
from bot.checks.models import CALL_TOKENS, LIVE, ModelChecks
from bot.config import settings
from bot.config.configuration import Configuration, Operations, load, unreadable
from bot.config.editing import with_table, with_variables
from bot.config.settings import OPENROUTER, Settings, address, given_settings, header, variables
from bot.errors import ConfigurationError, Problem
from bot.service.commands import DEFAULT
from bot.terminal.ask import say, warn
from bot.view.wording.budgets import short_question
from bot.view.wording.failures import cause
from bot.view.wording.figures import count, listing, money
from bot.view.wording.terminal import seat
from council import demonstration
from council.accounts import Directory
from council.brief import Brief
from council.errors import ModelError
from council.estimate import estimate
from council.models.client import ModelClient
from council.models.costs import ModelListing, find_listing, most_like, read_listings
from council.profile import MAX_MEMBERS, PRESETS, Member, Profile
from council.suggestion import MODEL_ID, LocalServer, find_servers, leading, suggest
from council.text.redaction import Redaction
from council.usage import Price, Usage
from storage.atomic import read_regular, replace_file

LARGEST_FILE = 2**20
_PASSWORD = re.compile(r"//[^/?#]*@")


@dataclass(frozen=True, slots=True)
class CurrentSetup:
    """What is set already, and the two files as they are."""

    dotenv: Path
    dotenv_text: str
    council: Path
    council_text: str
    in_dotenv: Mapping[str, str]
    """The variables of `.env` that have a value, in lower case."""

    @classmethod
    def read(cls) -> "CurrentSetup":
        """Read the files. Raises `ConfigurationError` where that can't be done."""
        dotenv = Path(".env")
        dotenv_text = _text(dotenv)
        in_dotenv = {name: value for name, value in settings.dotenv_variables().items() if value}
        council = Path(settings.variables().get("council_config", "council.toml"))
        council_text = _text(council)
        try:
            tomllib.loads(council_text)
        except tomllib.TOMLDecodeError as error:
            problem = Problem(str(council), f"it can't be read: {error}", "Correct it, or move it away")
            raise ConfigurationError([problem]) from error
        return cls(dotenv, dotenv_text, council, council_text, in_dotenv)

    @property
    def has_budgets(self) -> bool:
        return bool(tomllib.loads(self.council_text).get("budgets"))

    def secret(self, name: str) -> str:
        """Return a secret that is in force; empty where there is none that could be read."""
        value = settings.given_settings()[0].get(name.lower(), "")
        try:
            return (
                value.read() if isinstance(value, settings.SecretFile) else settings.header(str(value))
            )
        except ValueError:
            return ""


@dataclass(slots=True)
class Plan:
    """What is to be written: variables, and the members and chairman that `council.toml` gets.

    An empty variable is removed.
    """

    variables: dict[str, str] = field(default_factory=dict[str, str])
    council: tuple[str, str] | None = None
    monthly: str = ""
    """The most that a month may cost, in US dollars."""
    discord_token: str = field(default="", repr=False)
    has_slack: bool = False

    @property
    def serves(self) -> bool:
        return bool(self.discord_token) or self.has_slack

    def tables(self) -> dict[tuple[str, ...], dict[str, str]]:
        tables: dict[tuple[str, ...], dict[str, str]] = {}
        if self.council:
            members, chairman = self.council
            tables["profiles", DEFAULT] = {"members": members, "chairman": chairman}
        if self.monthly:
            tables["budgets",] = {"workspace_month": self.monthly}
        return tables

    def written(self) -> list[str]:
        return [
            "\n".join([f"[{'.'.join(name)}]", *(f"{key} = {value}" for key, value in keys.items())])
            for name, keys in self.tables().items()
        ]

    def changes(self, existing: CurrentSetup) -> dict[str, str]:
        """Return the variables that neither `.env` nor the environment has.

        The provider's address is in `.env` whatever the environment says: a later shell may not
        export it, and the key would go to another server.
        """
        given = {name: value for name, value in os.environ.items() if name != "OPENROUTER_BASE_URL"}
        return {
            name: value
            for name, value in self.variables.items()
            if value not in (existing.in_dotenv.get(name.lower(), ""), given.get(name) or None)
        }

    def shown(self, existing: CurrentSetup) -> tuple[list[str], bool]:
        changes = self.changes(existing)
        before = {name: existing.in_dotenv.get(name.lower(), "") for name in changes}
        lines = [f"\nTo be written to {existing.dotenv}:"] if changes else []
        for name, value in changes.items():
            now = f" (now: {_masked(name, before[name])})" if before[name] else ""
            said = f" = {_masked(name, value)}" if value else ": removed"
            lines.append(f"  {name}{said}{now}")
        for table in self.written():
            lines += [f"\nTo be written to {existing.council}:", table]
        profiles = tomllib.loads(existing.council_text).get("profiles", {})
        replaces_council = bool(self.council) and DEFAULT in profiles
        if replaces_council:
            lines.append("The members and the chairman that it has now are replaced.")
        given, ours = os.environ, self.variables
        overriding = [name for name, value in ours.items() if given.get(name, value) not in ("", value)]
        files = [f"{name}_FILE" for name in ours if _is_secret(name)]
        if overriding := [*overriding, *filter(given.get, files)]:
            names = listing(overriding)
            lines.append(f"Set in the environment, which overrides .env: {names}. Unset it there.")
        return lines, replaces_council or any(before.values())

    def contents(self, existing: CurrentSetup) -> dict[Path, str]:
        """Return the files' new text. Raises `ConfigurationError` where one can't be changed."""
        contents: dict[Path, str] = {}
        text = existing.council_text
        try:
            for name, keys in self.tables().items():
                text = with_table(text, name, keys)
        except ValueError as error:
            what = "it is written in a way that can't be changed here safely"
            tables = "\n\n".join(self.written())
            fix = f"Put this into it yourself, then run `council init` again:\n\n{tables}"
            raise ConfigurationError([Problem(str(existing.council), what, fix)]) from error
        if text != existing.council_text:
            contents[existing.council] = text
        if changes := self.changes(existing):
            contents[existing.dotenv] = with_variables(existing.dotenv_text, changes)
        return contents


def _is_secret(name: str) -> bool:
    return name.lower().removesuffix("_file") in settings.secret_names()


def _masked(name: str, value: str) -> str:
    return "\u2022" * 4 if _is_secret(name) else _PASSWORD.sub("//", value)


def write(contents: Mapping[Path, str], tell: Callable[[str], None]) -> bool:
    """Replace the files, each whole and for its owner alone; return whether that was possible."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the last question is answered
    try:
        for path, text in contents.items():
            try:
                replace_file(path.resolve(), text.encode())
            except OSError as error:
                warn(f"{path} can't be written ({error.strerror}).")
                return False
            tell(f"{path} has been written; only you can read it.")
    finally:
        signal.signal(signal.SIGINT, before)
    return True


def _text(path: Path) -> str:
    try:
        return read_regular(path, LARGEST_FILE)[0].decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error


MOST_SHOWN = 10
"""Models that are shown of a long list."""
ONE_MILLION = 1_000_000
T = TypeVar("T")
_AMOUNT = re.compile(r"\d{1,6}(?:\.\d{1,2})?", re.ASCII)
_DISCORD_STEPS = """
Discord (docs/discord.md has every switch):
  1. discord.com/developers/applications > New Application, type its name, Create
  2. Installation > Install Link > None; then Bot > switch Public Bot off: only you can add it then
  3. Bot > Reset Token, and copy the token"""
_SLACK_STEPS = """
Slack (docs/slack.md says more):
  1. In another terminal, print the manifest: .venv/bin/council manifest slack
  2. api.slack.com/apps > Create New App > From a manifest, choose the workspace, Next, paste the \
manifest, Next, Create
  3. Install App > Install to Workspace, and copy the Bot User OAuth Token (xoxb-)
  4. Basic Information > App-Level Tokens > Generate Token and Scopes, a name such as socket, the \
scope connections:write, Generate, and copy it (xapp-)"""


def init() -> bool:
    """Ask, then write; return whether it went to its end.

    Raises `ConfigurationError` where a file can't be read or changed, and for what is then still wrong
    with the configuration.
    """
    existing, plan = CurrentSetup.read(), Plan()
    try:
        _ask(existing, plan)
        contents = plan.contents(existing)
        lines, replaces = plan.shown(existing)
        may_write = True
        if contents:
            tell("\n".join(lines))
            asked = "Write this, and replace the values above?" if replaces else "Write this?"
            may_write = confirm(asked, default=not replaces)
    except (typer.Abort, KeyboardInterrupt):
        may_write, contents = False, {}
    if not may_write:
        tell("\nStopped. Nothing was written.")
        return False
    if not contents:
        tell("\nNothing needs to be written.")
    if not write(contents, tell):
        return False
    load()
    if plan.discord_token:
        from bot.discord.checks import discord_invite

        tell(f"\nInvite the bot to your Discord server:\n  {discord_invite(plan.discord_token)}")
    if plan.has_slack:
        tell("\nIn Slack, type /invite @council in a channel.")
    tell("\nNext:\n  .venv/bin/council doctor  checks everything")
    tell("  make ask                  asks in this terminal")
    if plan.serves:
        tell("  make run                  serves Discord and Slack")
    return True


def _ask(existing: CurrentSetup, plan: Plan) -> None:
    tell(
        "This sets up a council of your own in a few questions. Nothing is written until the last one "
        "is answered; Ctrl-C leaves at any time."
    )
    if existing.in_dotenv:
        names = listing(map(str.upper, existing.in_dotenv))
        tell(f"{existing.dotenv} sets {names}. What you don't change here stays as it is.")
    if (provider := _provider(existing)) is None:
        _demonstrate(existing)
    else:
        _choose_members(provider, plan)
    platforms = ("Discord", "Slack", "both", "nowhere yet: in this terminal only")
    place = choose("\nWhere should people ask?", platforms, default=4)
    if place in (0, 2):
        _ask_discord(existing, plan)
    if place in (1, 2):
        _ask_slack(existing, plan)
    is_paid = provider is not None and provider.endpoint is None
    if is_paid and plan.serves and not existing.has_budgets:
        tell("\nWhat may all questions of a month cost at most, on a server or in a workspace?")
        plan.monthly = prompt("Dollars (press Enter for no limit)", _dollars)


def _dollars(typed: str) -> str:
    amount = typed.strip("$ ")
    if typed and not (_AMOUNT.fullmatch(amount) and float(amount) > 0):
        raise typer.BadParameter("Type an amount in dollars, such as 50, or press Enter for no limit.")
    return amount


def tell(text: str) -> None:
    say(_fitted(text))


def _fitted(text: str, beside: str = "") -> str:
    """Break long lines; what follows is indented as its line's text is, behind a step's number."""
    columns = get_terminal_size().columns - len(beside)
    lines = ((line, re.match(r"\s*(?:\d\.? +)?", line)) for line in text.split("\n"))
    broken = (wrapped(line, lead.end() if lead else 0, columns) or [""] for line, lead in lines)
    return "\n".join(part for parts in broken for part in parts)


def prompt(question: str, read: Callable[[str], T], default: str = "", *, hidden: bool = False) -> T:
    """Ask until `read` takes what is typed, without spaces around it.

    A `ValueError` says what is wrong with it, a `typer.BadParameter` in a whole sentence.
    """
    asked = _fitted(f"{question} [{default}]" if default else question, beside=": ")
    while True:
        typed = typer.prompt(asked, default, hide_input=hidden, show_default=False)
        try:
            return read(str(typed).strip())
        except typer.BadParameter as error:  # typer wouldn't show it where what is typed is hidden
            tell(error.message)
        except ValueError as error:
            tell(f"That can't be used: {error}.")


def confirm(question: str, *, default: bool) -> bool:
    asked = _fitted(f"{question} [{'Y/n' if default else 'y/N'}]", beside=": ")
    return typer.confirm(asked, default=default, show_default=False)


def choose(lead: str, choices: Sequence[str], default: int = 1) -> int:
    """Return the place of the choice that is taken, from 0."""

    def place(typed: str) -> int:
        if typed.isdecimal() and 1 <= int(typed) <= len(choices):
            return int(typed) - 1
        raise typer.BadParameter(f"Type a number from 1 to {len(choices)}.")

    tell("\n".join([lead, *(f"  {number}  {choice}" for number, choice in enumerate(choices, 1))]))
    return prompt("Number", place, str(default))


def fit(typed: str) -> str:
    """Return what a header and `.env` can hold; raises `ValueError` where they can't."""
    if "${" in header(typed):
        raise ValueError("it can't be written to .env")
    return typed


def _kept(name: str, known: str) -> str:
    """Return a secret that is set already, if it is to stay; empty otherwise."""
    return known if known and confirm(f"{name} is set already. Keep it?", default=True) else ""


@dataclass(frozen=True, slots=True)
class Provider:
    """Where models are asked: at the council's provider, or at the `endpoint` of a server of one's own.

    `is_kept` says that the key is set already, wherever that is.
    """

    base_url: str
    key: str = field(default="", repr=False)
    is_kept: bool = False
    endpoint: str | None = None
    listings: Mapping[str, ModelListing] = field(default_factory=dict[str, ModelListing])

    def client(self, profiles: Iterable[Profile] = ()) -> ModelClient:
        return ModelClient(Directory(profiles).find, base_url=self.base_url, api_key=self.key)

    def checks(self, client: ModelClient, profiles: Mapping[str, Profile]) -> ModelChecks:
        key = SecretStr(self.key) if self.key else None
        settings = Settings.model_construct(openrouter_api_key=key, openrouter_base_url=self.base_url)
        return ModelChecks(Configuration(settings, {}, dict(profiles), Operations(), {}), client)

    def show(self, checked: Iterable[CheckResult]) -> None:
        hide, columns = Redaction([self.key]).hide, get_terminal_size().columns
        for one in checked:
            say(hide("\n".join(one.lines(columns))))

    def price(self, member: Member) -> Price | None:
        if self.endpoint is not None:
            return Price(0, 0)
        listing = find_listing(self.listings, member.model)
        return listing and listing.price


def _provider(existing: CurrentSetup) -> Provider | None:
    """Ask who should answer until it can be used; `None` is the demonstration."""
    servers = asyncio.run(find_servers())
    choices = (
        "OpenRouter: one key for the models of many makers (openrouter.ai/settings/keys)",
        "another OpenAI-compatible address",
        *(f"{one.name} on this machine, at {one.endpoint} ({listing(one.models)})" for one in servers),
        "the built-in demonstration: no key and no network, but a tiny model that is often wrong",
    )
    while True:
        chosen = choose("\nWho should answer?", choices)
        if chosen == len(choices) - 1:
            return None
        found = _local(servers[chosen - 2]) if chosen > 1 else _hosted(existing, is_other=chosen == 1)
        if found is not None:
            return found


def _hosted(existing: CurrentSetup, *, is_other: bool) -> Provider | None:
    def read(typed: str) -> str:
        if typed or is_other:
            return typed and fit(typed)
        raise typer.BadParameter(
            "A key is needed. Make one at openrouter.ai/settings/keys, or press Ctrl-C to leave."
        )

    base_url, question, name = OPENROUTER, "OpenRouter key (it isn't shown)", "OPENROUTER_API_KEY"
    if is_other:
        example = "Address, such as https://api.example.com/v1"
        base_url = prompt(example, lambda typed: address(fit(typed)))
        question = "Key (it isn't shown; press Enter if there is none)"
    # The key that is set was given for the address that is set.
    is_for_it = variables().get("openrouter_base_url", OPENROUTER).rstrip("/") == base_url
    kept = _kept(name, existing.secret(name)) if is_for_it else ""
    key = kept or prompt(question, read, hidden=True)
    provider = Provider(base_url, key, is_kept=bool(kept))

    async def look() -> tuple[list[CheckResult], Mapping[str, ModelListing]]:
        async with provider.client() as client:
            checks = provider.checks(client, {})
            return await carry_out(checks.of_provider()), checks.listings

    tell("\nChecking \u2026")
    checked, listings = asyncio.run(look())
    provider.show(checked)
    is_well = all(one.outcome.state != "error" for one in checked)
    is_used = is_well or confirm("Use it anyway?", default=False)
    return replace(provider, listings=listings) if is_used else None


def _local(server: LocalServer) -> Provider | None:
    provider = Provider(server.endpoint, endpoint=server.endpoint)

    async def models() -> Mapping[str, ModelListing]:
        async with provider.client() as client:
            return read_listings(await client.models())

    try:
        listings = asyncio.run(models())
    except ModelError as error:
        tell(f"The server doesn't answer: {cause(error.failure)}.")
        return None
    if not leading(listings):
        tell("The server lists no model. Load one and start again, or choose something else.")
        return None
    return replace(provider, listings=listings)


def _demonstrate(existing: CurrentSetup) -> None:
    _, origins = given_settings()
    names = ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "COUNCIL_MEMBERS")
    used = [name for name in names if origins[name.lower()] != "default"]
    if existing.council_text.strip():
        used.append(str(existing.council))
    if used:
        one = len(used) == 1
        stay = "It stays as it is" if one else "They stay as they are"
        says = "says" if one else "say"
        tell(f"{listing(used)} already {says} who answers, so the demonstration won't. {stay}.")
    elif demonstration.available():
        tell("The demonstration model is installed and needs no setting.")
    else:
        tell("The demonstration model isn't installed yet. Install it: make setup")


def _choose_members(provider: Provider, plan: Plan) -> None:
    while True:
        profile = _profile(provider)
        brief = Brief(question="?", profile=profile, seed=0, boundary="0" * 16)
        tell(f"\n{short_question(estimate(brief, provider.price))}")
        prices = [provider.price(one) for one in {one.model: one for one in profile.seats}.values()]
        cost = sum(price.cost(CALL_TOKENS, CALL_TOKENS) for price in prices if price)
        said = f"It costs {money(Usage(cost=cost))} at most." if cost else "It costs nothing."
        if not all(prices):
            said = "It costs a little; the prices aren't known."
        if not confirm(f"\nAsk each of them for one word, to see that it answers? {said}", default=True):
            break

        async def look(profile: Profile = profile) -> list[CheckResult]:
            async with provider.client([profile]) as client:
                return await carry_out(provider.checks(client, {DEFAULT: profile}).checks(live=True))

        checked = asyncio.run(look())
        provider.show(one for one in checked if one.outcome.findings or one.name == LIVE)
        failed = any(one.outcome.state == "error" for one in checked)
        if not failed or not confirm("Choose other models?", default=True):
            break
    if provider.endpoint is None:
        plan.variables["OPENROUTER_BASE_URL"] = provider.base_url
        if not provider.is_kept:
            plan.variables["OPENROUTER_API_KEY"] = provider.key
            if not provider.key:
                plan.variables["OPENROUTER_API_KEY_FILE"] = ""
    in_file = provider.endpoint is not None or any(one.persona for one in profile.members)
    # What is in .env would overrule the file.
    members = "" if in_file else ",".join(one.model for one in profile.members)
    plan.variables |= {
        "COUNCIL_MEMBERS": members,
        "COUNCIL_CHAIRMAN": "" if in_file else profile.chairman.model,
    }
    if not find_listing(provider.listings, variables().get("council_title_model", "")):
        plan.variables["COUNCIL_TITLE_MODEL"] = ""
    if in_file:
        *members, chair = (
            seat(one.model, one.endpoint, one.persona and one.persona.name)
            for one in (*profile.members, profile.chairman)
        )
        plan.council = ("".join(["[\n", *(f"    {one},\n" for one in members), "]"]), chair)


def _profile(provider: Provider) -> Profile:
    """Ask for members and chairman; where a model sits more than once, each seat has its own persona."""
    listings, endpoint = provider.listings, provider.endpoint
    suggested = suggest(listings)
    if suggested is None:
        tell("\nThere is no list of models to choose from. Type the ids as the provider writes them.")
    else:
        tell("\n".join(_models(listings)))
    by_default = ", ".join(suggested.members) if suggested else ""
    models = _ask_models("Members, separated by commas", by_default, listings, MAX_MEMBERS)
    chairman = suggested.chairman if suggested else models[0]
    if chairman in models:
        chairman = next((one for one in leading(listings) if one not in models), models[0])
    [chairman] = _ask_models("Chairman, who writes the final answer", chairman, listings, 1)
    times, seated = Counter(models), Counter[str]()
    members: list[Member] = []
    for model in models:
        persona = PRESETS[seated[model]] if times[model] > 1 else None
        members.append(Member(model=model, persona=persona, endpoint=endpoint))
        seated[model] += 1
    chair = Member(model=chairman, endpoint=endpoint)
    return Profile(name=DEFAULT, members=tuple(members), chairman=chair)


def _models(listings: Mapping[str, ModelListing]) -> Iterator[str]:
    models = leading(listings)
    has_prices = any(listing.price for listing in listings.values())
    prices = ", with prices in US dollars per million tokens (prompt / reply)" if has_prices else ""
    yield f"\nModels{prices}:"
    width = max(map(len, models[:MOST_SHOWN]))
    for model in models[:MOST_SHOWN]:
        price, costs = listings[model].price, "price unknown"
        if price:
            costs = f"${price.prompt * ONE_MILLION:,.2f} / ${price.completion * ONE_MILLION:,.2f}"
        yield f"  {model:<{width}}  {costs if has_prices else ''}".rstrip()
    if len(models) > MOST_SHOWN:
        more = count(len(models) - MOST_SHOWN, "other")
        yield f"  and {more}. Any id on the provider's list will do."
    if len(models) == 1:
        yield "It can take several seats; each then gets another persona."


def _ask_models(
    question: str, by_default: str, listings: Mapping[str, ModelListing], most: int
) -> list[str]:
    def read(typed: str) -> list[str]:
        models = [model.strip() for model in typed.split(",") if model.strip()]
        if not 0 < len(models) <= most:
            raise typer.BadParameter("Name one model." if most == 1 else f"Name 1 to {most} models.")
        if max(Counter(models).values()) > len(PRESETS):
            raise typer.BadParameter(f"One model can take {len(PRESETS)} seats at most.")
        for model in models:
            if not MODEL_ID.fullmatch(model):
                raise typer.BadParameter(f"{model} isn't a model's id.")
            if listings and not find_listing(listings, model):
                near = most_like(model, listings)
                hint = f" Did you mean {near}?" if near else ""
                raise typer.BadParameter(f"There is no model {model}.{hint}")
        return models

    return prompt(question, read, by_default)


def _ask_discord(existing: CurrentSetup, plan: Plan) -> None:
    from bot.discord.checks import token_advice

    name = "DISCORD_TOKEN"
    if token := _kept(name, existing.secret(name)):
        plan.discord_token = token
        return
    tell(_DISCORD_STEPS)
    if token := _token("Discord bot token", token_advice):
        plan.discord_token = plan.variables[name] = token


def _ask_slack(existing: CurrentSetup, plan: Plan) -> None:
    from bot.slack.checks import app_token_advice, bot_token_advice

    known = [existing.secret(name) for name in ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN")]
    by_http = bool(existing.secret("SLACK_SIGNING_SECRET") and variables().get("slack_http_port"))
    if known[0] and (known[1] or by_http) and _kept("SLACK_BOT_TOKEN", known[0]):
        plan.has_slack = True
        return
    tell(_SLACK_STEPS)
    bot_token = _token("Slack bot token", bot_token_advice)
    app_token = bot_token and _token("Slack app-level token", app_token_advice)
    if app_token:
        plan.variables |= {"SLACK_BOT_TOKEN": bot_token, "SLACK_APP_TOKEN": app_token}
        plan.has_slack = True
    elif bot_token:
        tell("Slack needs both tokens, so neither is written. When you have them, run `council init`.")


def _token(name: str, advise: Callable[[str], Advice | None]) -> str:
    """Ask for a token, checked by its form; return nothing for one that is left for later."""

    def read(typed: str) -> str:
        if typed and (advice := advise(fit(typed))):
            raise typer.BadParameter(f"That can't be used: {advice.what}.\n  {advice.fix}.")
        return typed

    return prompt(f"{name} (it isn't shown; press Enter to do this later)", read, hidden=True)
