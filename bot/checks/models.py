"""The models: whether the provider and members' own servers answer, and have what is configured.

The key's credit: https://openrouter.ai/docs/api/api-reference/api-keys/get-current-key. Only a
management key may ask for the account's remaining credit (`/credits`).
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.checks.check import Check, Finding, Outcome, found, wrong
from bot.config.configuration import Configuration
from bot.config.settings import OPENROUTER
from bot.view.wording.doctor import models as wording
from bot.view.wording.doctor.doctor import Advice
from bot.view.wording.figures import money
from bot.view.wording.service import remedies
from bot.view.wording.service.failures import cause
from council.calls import Call, ChatMessage, JsonObject, RetryBudget
from council.errors import Cause, Failure, ModelError
from council.models.catalog import Listing, find_listing, most_like, read_listings
from council.models.client import ModelClient
from council.models.learning import steps_left
from council.profile import Member, Profile
from council.usage import Usage, total

PROVIDER, KEY, MODELS, PRICES = "Model provider", "Model key", "Models", "Prices"
SERVERS, LIVE = "Own servers", "Live calls"
LOW_CREDIT = 1.0
"""Dollars: less is soon used up by one question."""
SOON = timedelta(days=7)
CALL_SECONDS = 60.0
CALL_TOKENS = 64
_OF_THE_KEY: Mapping[Cause, Advice] = {
    "key": wording.KEY_REFUSED,
    "credit": wording.NO_CREDIT,
    "key_limit": wording.NO_CREDIT,
}
_NO_LIST = ("not_found", "no_api", "bad_request", "malformed")
WORD: tuple[ChatMessage, ...] = (
    {"role": "system", "content": "You are asked whether you are there."},
    {"role": "user", "content": "Reply with one word: ready"},
)
WORD_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}


class ModelChecks:
    """Checks of everything that answers questions."""

    def __init__(self, configuration: Configuration, client: ModelClient) -> None:
        self._configuration = configuration
        self._client = client
        self._listings: Mapping[str, Listing] = {}
        self._unknown: set[str] = set()
        base = configuration.settings.openrouter_base_url or OPENROUTER
        named = configuration.settings.openrouter_dialect
        self._is_openrouter = named == "openrouter" if named else base == OPENROUTER
        self._lists_all = self._is_openrouter or not client.is_own
        places: defaultdict[str, list[str]] = defaultdict(list)
        self._own: dict[tuple[str, str | None], list[Member]] = {}
        for name, profile in configuration.profiles.items():
            for seat in profile.seats:
                if seat.endpoint is not None:
                    self._own.setdefault((seat.endpoint, seat.api_key_env), []).append(seat)
                    continue
                for model in (seat.model, *seat.fallbacks):
                    if f"profile {name}" not in places[model]:
                        places[model].append(f"profile {name}")
        self._places: Mapping[str, list[str]] = places

    def checks(self, *, live: bool) -> list[Check]:
        """Return the checks; with `live`, each member is also asked for one word."""
        if self._configuration.is_demonstration:
            return [Check(PROVIDER, self._demonstration)]
        checks = [
            *self.of_provider(),
            Check(MODELS, self._models, needs=(PROVIDER,)),
            Check(PRICES, self._prices, needs=(MODELS,)),
        ]
        if not self._places:
            checks.clear()
        if self._own:
            checks.append(Check(SERVERS, self._servers))
        if live:
            needs = tuple(check.name for check in checks if check.name in (PROVIDER, KEY, SERVERS))
            live_check = Check(LIVE, self._live, needs, after=(MODELS,), seconds=2 * CALL_SECONDS + 5)
            checks.append(live_check)
        return checks

    def of_provider(self) -> list[Check]:
        """Return the checks of the provider and the key alone, which need no council."""
        return [Check(PROVIDER, self._provider), Check(KEY, self._key, needs=(PROVIDER,))]

    @property
    def listings(self) -> Mapping[str, Listing]:
        """The provider's models, once its check is over; empty where it lists none."""
        return self._listings

    async def _demonstration(self) -> Outcome:
        return Outcome(wording.DEMONSTRATION)

    async def _provider(self) -> Outcome:
        settings = self._configuration.settings
        key = settings.openrouter_api_key
        at_openrouter = (settings.openrouter_base_url or OPENROUTER) == OPENROUTER
        if at_openrouter and key and not key.get_secret_value().startswith("sk-or-"):
            return wrong("OPENROUTER_API_KEY", wording.KEY_SHAPE)
        try:
            self._listings = read_listings(await self._client.models())
        except ModelError as error:
            if advice := _OF_THE_KEY.get(error.failure.cause):
                return wrong("OPENROUTER_API_KEY", advice)
            # A provider may have no list: then only --live can tell whether the address is right.
            weight = "warning" if error.failure.cause in _NO_LIST else "error"
            return wrong("OPENROUTER_BASE_URL", _no_list(wording.PROVIDER, error.failure), weight)
        return Outcome(wording.models_listed(len(self._listings)))

    async def _key(self) -> Outcome:
        where = "OPENROUTER_API_KEY"
        if self._configuration.settings.openrouter_api_key is None:
            return Outcome(wording.NO_KEY)
        if not self._is_openrouter:
            return Outcome(wording.KEY_UNKNOWN)
        try:
            said = await self._client.key()
        except ModelError as error:
            if advice := _OF_THE_KEY.get(error.failure.cause):
                return wrong(where, advice)
            if error.failure.cause == "forbidden":
                return wrong(where, wording.KEY_REFUSED)
            if error.failure.cause in _NO_LIST:
                return Outcome(wording.KEY_UNKNOWN)
            return wrong(where, wording.provider_trouble(cause(error.failure)))
        if said.get("is_management_key") or said.get("is_provisioning_key"):
            return wrong(where, wording.MANAGEMENT_KEY)
        left = said.get("limit_remaining")
        remaining = float(left) if isinstance(left, int | float) else None
        return Outcome(
            wording.credit(remaining),
            tuple(_key_findings(where, said, remaining, self._places, datetime.now(UTC))),
        )

    async def _models(self) -> Outcome:
        if not self._listings:
            return Outcome(wording.WITHOUT_LIST, skipped=True)
        unknown = {model for model in self._places if not find_listing(self._listings, model)}
        if self._lists_all:
            self._unknown = unknown
        findings = (
            self._not_listed(model, most_like(model, self._listings), places)
            for model, places in self._places.items()
            if model in unknown
        )
        return Outcome(wording.all_known(len(self._places)), tuple(findings))

    def _not_listed(self, model: str, near: str | None, places: list[str]) -> Finding:
        if self._lists_all:
            return found(model, wording.no_such_model(model, near, places))
        return found(model, wording.not_listed(model, near, places), "warning")

    async def _prices(self) -> Outcome:
        if not any(listing.price for listing in self._listings.values()):
            return Outcome(wording.PRICES_UNLISTED)
        listed = ((model, find_listing(self._listings, model)) for model in self._places)
        findings = (
            found(model, wording.no_price(model), "warning")
            for model, listing in listed
            if not (listing and listing.price)
        )
        return Outcome("known", tuple(findings))

    async def _servers(self) -> Outcome:
        looks = await asyncio.gather(*map(self._server, self._own.values()))
        return Outcome(
            wording.servers(len(self._own)), tuple(finding for look in looks for finding in look)
        )

    async def _server(self, members: list[Member]) -> list[Finding]:
        """Check one member's own server; one without a model list may be asked all the same."""
        first = members[0]
        target = self._target(first)
        where = target.address
        try:
            listings = read_listings(await self._client.models(first))
        except ModelError as error:
            if error.failure.cause in ("key", "no_key"):
                fix = remedies.remedy(error.failure, target) or ""
                return [found(where, Advice(remedies.reason(error.failure, target), fix))]
            weight = "warning" if error.failure.cause in _NO_LIST else "error"
            return [found(where, _no_list(wording.SERVER, error.failure), weight)]
        models = dict.fromkeys(member.model for member in members)
        return [
            found(
                where,
                wording.not_listed(model, most_like(model, listings), ["council.toml"]),
                "warning",
            )
            for model in models
            if listings and not find_listing(listings, model)
        ]

    async def _live(self) -> Outcome:
        """Ask each model for one word, unless it is known not to exist; ask none twice alike.

        It is asked as it is for a review, with instructions and for JSON, so that what its server
        refuses of that is known; what was learned is said.
        """
        calls: dict[Member, Call] = {}
        for profile in self._configuration.profiles.values():
            seats = (await self._client.catalog.resolve(profile)).seats
            for seat in seats:
                if seat.endpoint is None and seat.model in self._unknown:
                    continue
                asked = seat.model_copy(update={"fallbacks": (), "persona": None})
                nameless = asked.model_copy(update={"name": ""})
                calls.setdefault(nameless, _for_one_word(asked, profile))
        ended = await asyncio.gather(*map(self._asked, calls.values()))
        paid = money(total([used for _, used in ended if used]))
        failures = [
            found(call.member.model, self._silent(call.member, why, paid))
            for call, (why, _) in zip(calls.values(), ended, strict=True)
            if why
        ]
        learned = (
            self._learned(call.member)
            for call, (why, _) in zip(calls.values(), ended, strict=True)
            if not why
        )
        return Outcome(
            wording.answered(len(calls) - len(failures), paid),
            tuple(failures),
            details=tuple(dict.fromkeys(learned)),
        )

    def _learned(self, member: Member) -> str:
        dialect, traits = self._client.dialect(member), self._client.learned(member)
        left = steps_left(dialect, traits, member.model) if member.structured else ()
        said = wording.learned(dialect.name, left[0] if left else None, traits)
        where = f" at {self._target(member).address}" if member.endpoint else ""
        return f"{member.model}{where}: {said}"

    def _target(self, member: Member) -> remedies.Target:
        key = self._configuration.settings.openrouter_api_key
        return remedies.target(member, has_key=key is not None)

    def _silent(self, member: Member, why: Failure, paid: str) -> Advice:
        where = self._target(member)
        return wording.gave_nothing(remedies.reason(why, where), remedies.remedy(why, where), paid)

    async def _asked(self, call: Call) -> tuple[Failure | None, Usage | None]:
        """Return why a call failed, if it did, and what it used."""
        try:
            return None, (await self._client.ask(call)).usage
        except ModelError as error:
            why = error.failure
        if why.cause == "format_refused":
            return await self._asked(replace(call, schema=None))
        # A model that thinks first may use up its reply for that; it has answered.
        return (None if why.cause in ("empty", "only_thoughts") else why), why.usage


def _for_one_word(member: Member, profile: Profile) -> Call:
    return Call(
        step="doctor",
        member=member,
        prompt=lambda: WORD,
        deadline=CALL_SECONDS,
        profile=profile.name,
        schema=WORD_SCHEMA,
        temperature=profile.temperature if member.temperature is None else member.temperature,
        max_tokens=CALL_TOKENS,
        retries=RetryBudget(0),
    )


def _key_findings(
    where: str,
    said: Mapping[str, object],
    remaining: float | None,
    models: Iterable[str],
    now: datetime,
) -> Iterator[Finding]:
    if remaining is not None and remaining <= 0:
        yield found(where, wording.NO_CREDIT)
    elif remaining is not None and remaining < LOW_CREDIT:
        yield found(where, wording.low_credit(remaining), "warning")
    if said.get("is_free_tier") is True and not all(model.endswith(":free") for model in models):
        yield found(where, wording.FREE_TIER)
    with suppress(ValueError):
        ends = datetime.fromisoformat(str(said.get("expires_at")))
        if ends.astimezone(UTC) - now < SOON:
            yield found(where, wording.expires(f"{ends.astimezone(UTC):%Y-%m-%d}"), "warning")


def _no_list(what: str, why: Failure) -> Advice:
    reason = f"{cause(why)}, {why.status}" if why.status else cause(why)
    if why.cause in _NO_LIST:
        return wording.not_a_provider(reason)
    if why.cause == "no_server":
        return wording.not_running(what, reason)
    if why.cause in ("connection", "lost", "silence", "deadline"):
        return wording.unreachable(what, reason)
    return wording.provider_trouble(reason)
