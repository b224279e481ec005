"""Who answers: the provider, the server or the demonstration that a person chooses, checked at once."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import typer
from pydantic import SecretStr

from bot.checks.check import Checked, carry_out
from bot.checks.models import ModelChecks
from bot.config.configuration import Configuration
from bot.config.council_file import Operations
from bot.config.settings import OPENROUTER, Settings, address, sources, variables
from bot.terminal.ask import say
from bot.terminal.init.files import Existing
from bot.terminal.init.prompts import choose, fit, kept, prompt
from bot.view.wording import init as wording
from bot.view.wording.failures import cause
from council import demonstration
from council.accounts import Directory
from council.errors import ModelError
from council.local import LocalServer, find_servers
from council.models.client import ModelClient
from council.models.costs import ModelListing, read_listings
from council.profile import Profile
from council.suggestion import leading
from council.text.redaction import Redaction


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
        """Return a client that asks there."""
        return ModelClient(Directory(profiles).find, base_url=self.base_url, api_key=self.key)

    def configuration(self, profiles: Mapping[str, Profile]) -> Configuration:
        """Return the configuration that the checks look at."""
        key = SecretStr(self.key) if self.key else None
        settings = Settings.model_construct(openrouter_api_key=key, openrouter_base_url=self.base_url)
        return Configuration(
            settings=settings,
            variables={},
            profiles=dict(profiles),
            operations=Operations(),
            origins={},
        )

    def show(self, checked: Iterable[Checked]) -> None:
        """Describe what checks found there, without the key."""
        hide = Redaction([self.key]).hide
        for one in checked:
            say(hide("\n".join(one.lines())))


def choose_provider(existing: Existing) -> Provider | None:
    """Ask who should answer until it can be used; `None` is the demonstration."""
    servers = asyncio.run(find_servers())
    choices = (
        wording.OPENROUTER,
        wording.OTHER,
        *map(wording.server, servers),
        wording.DEMONSTRATION,
    )
    while True:
        chosen = choose(wording.WHO_ANSWERS, choices)
        if chosen == len(choices) - 1:
            return None
        if chosen > 1:
            found = _local(servers[chosen - 2])
        else:
            found = _hosted(_other(existing) if chosen else _openrouter(existing))
        if found is not None:
            return found


def _openrouter(existing: Existing) -> Provider:
    if key := _kept_key(OPENROUTER, existing):
        return Provider(OPENROUTER, key, is_kept=True)

    def needed(typed: str) -> str:
        if not typed:
            raise typer.BadParameter(wording.KEY_NEEDED)
        return fit(typed)

    return Provider(OPENROUTER, prompt(wording.KEY, needed, hidden=True))


def _other(existing: Existing) -> Provider:
    base_url = prompt(wording.OTHER_ADDRESS, lambda typed: address(fit(typed)))
    if key := _kept_key(base_url, existing):
        return Provider(base_url, key, is_kept=True)
    return Provider(base_url, prompt(wording.OTHER_KEY, lambda typed: typed and fit(typed), hidden=True))


def _kept_key(base_url: str, existing: Existing) -> str:
    """Return the key that is set, if it was given for this provider and is to stay."""
    name = "OPENROUTER_API_KEY"
    is_for_it = variables().get("openrouter_base_url", OPENROUTER).rstrip("/") == base_url
    return kept(name, existing.secret(name)) if is_for_it else ""


def _hosted(provider: Provider) -> Provider | None:
    """Check a provider and its key; return it with its models, or `None` if it isn't to be used."""

    async def look() -> tuple[list[Checked], Mapping[str, ModelListing]]:
        async with provider.client() as client:
            checks = ModelChecks(provider.configuration({}), client)
            return await carry_out(checks.of_provider()), checks.listings

    say(wording.CHECKING)
    checked, listings = asyncio.run(look())
    provider.show(checked)
    if any(one.outcome.state == "error" for one in checked) and not typer.confirm(
        wording.USE_ANYWAY, default=False
    ):
        return None
    return replace(provider, listings=listings)


def _local(server: LocalServer) -> Provider | None:
    provider = Provider(server.endpoint, endpoint=server.endpoint)

    async def models() -> Mapping[str, ModelListing]:
        async with provider.client() as client:
            return read_listings(await client.models())

    try:
        listings = asyncio.run(models())
    except ModelError as error:
        say(wording.unanswered(cause(error.failure)))
        return None
    if not leading(listings):
        say(wording.NOTHING_LISTED)
        return None
    return replace(provider, listings=listings)


def demonstrate(existing: Existing) -> None:
    """Report whether the demonstration can answer, or what is used before it."""
    used = [
        name
        for name in ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "COUNCIL_MEMBERS")
        if sources()[name.lower()] != "default"
    ]
    if existing.council_text.strip():
        used.append(str(existing.council))
    if used:
        say(wording.demonstration_hidden(used))
    else:
        installed = demonstration.available()
        say(wording.DEMONSTRATION_READY if installed else wording.DEMONSTRATION_MISSING)
