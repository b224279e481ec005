"""The models: whether the provider and members' own servers answer, and have what is configured.

The key's credit: https://openrouter.ai/docs/api/api-reference/api-keys/get-current-key. Only a
management key may ask for the account's remaining credit (`/credits`).
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import inf

from bot.checks.check import Advice, Check, Outcome, found, wrong
from bot.config.configuration import Configuration
from bot.config.settings import OPENROUTER
from bot.errors import Problem
from bot.view.wording import failures as failures_wording
from bot.view.wording.failures import cause
from bot.view.wording.figures import count, listing, money
from council.calls import Call, ChatMessage, RetryBudget, object_schema
from council.errors import Cause, Failure, ModelError
from council.models.client import ModelClient, ModelEndpoint
from council.models.costs import ModelListing, find_listing, most_like, read_listings
from council.models.refusals import FORMATTED_STREAM, PICTURES, SYSTEM
from council.models.servers import OTHER_LIMIT, Format, format_part
from council.profile import Member
from council.usage import Usage, total

PROVIDER, KEY, MODELS, PRICES = "Model provider", "Model key", "Models", "Prices"
SERVERS, LIVE = "Own servers", "Live calls"
LOW_CREDIT = 1.0
"""Dollars: less is soon used up by one question."""
SOON = timedelta(days=7)
CALL_SECONDS = 60.0
CALL_TOKENS = 64
_NEVER = datetime.max.replace(tzinfo=UTC)
_KEYS, _CREDITS = "openrouter.ai/settings/keys", "openrouter.ai/settings/credits"
_KEY_REFUSED = Advice(
    "the provider refuses the key",
    f"Make a new key at {_KEYS}, or at your own provider, and set OPENROUTER_API_KEY",
)
_NO_CREDIT = Advice(
    "the key's credit limit is used up", f"Raise the limit at {_KEYS}, or add credit at {_CREDITS}"
)
_OF_THE_KEY: Mapping[Cause, Advice] = {
    "key": _KEY_REFUSED,
    "forbidden": _KEY_REFUSED,
    "credit": _NO_CREDIT,
    "key_limit": _NO_CREDIT,
}
_NO_LIST: tuple[Cause, ...] = ("not_found", "no_api", "bad_request", "malformed")
_KEY_UNKNOWN = "this provider doesn't say how much of the key's credit is left"
WORD: tuple[ChatMessage, ...] = (
    {"role": "system", "content": "You are asked whether you are there."},
    {"role": "user", "content": "Reply with one word: ready"},
)
WORD_SCHEMA = object_schema(word={"type": "string"})


class ModelChecks:
    """Checks of everything that answers questions."""

    def __init__(self, configuration: Configuration, client: ModelClient) -> None:
        self._configuration = configuration
        self._client = client
        self.listings: Mapping[str, ModelListing] = {}
        """The provider's models, once its check is over; empty where it lists none."""
        self._unknown: set[str] = set()
        settings = configuration.settings
        named = settings.openrouter_dialect
        self._is_openrouter = named == "openrouter" if named else settings.provider == OPENROUTER
        self._lists_all = self._is_openrouter or not client.is_own
        self._has_key = settings.openrouter_api_key is not None
        base, key = "OPENROUTER_BASE_URL", "OPENROUTER_API_KEY"
        self._provided = failures_wording.Target(
            "", f"the address in {base}", key, has_key=self._has_key
        )
        self._places = defaultdict[str, dict[str, None]](dict)
        """Where each of the provider's models is set."""
        self._own: dict[tuple[str, str | None], list[Member]] = {}
        for profile in configuration.profiles.values():
            for seat in profile.seats:
                if seat.endpoint is not None:
                    self._own.setdefault((seat.endpoint, seat.api_key_env), []).append(seat)
                    continue
                for model in (seat.model, *seat.fallbacks):
                    self._places[model][configuration.place(profile, seat)] = None

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
        return [Check(PROVIDER, self._provider), Check(KEY, self._key, needs=(PROVIDER,))]

    async def _demonstration(self) -> Outcome:
        settings = self._configuration.settings
        if settings.council_demo:
            return Outcome("no provider is configured: the built-in demonstration model answers")
        where, what, fix = "OPENROUTER_API_KEY", "no provider is configured, so", "Run `council init`"
        if not settings.has_platform:
            return wrong(where, f"{what} only the tiny built-in model answers", fix, "warning")
        fix = f"{fix}, or set COUNCIL_DEMO=1 to serve the tiny built-in model's answers"
        return wrong(where, f"{what} `council run` refuses to start", fix)

    async def _provider(self) -> Outcome:
        settings = self._configuration.settings
        key = settings.openrouter_api_key
        if settings.provider == OPENROUTER and key and not key.get_secret_value().startswith("sk-or-"):
            what = "it isn't an OpenRouter key: those begin with sk-or-"
            copy = f"Copy a key from {_KEYS}"
            fix = f"{copy}, or set OPENROUTER_BASE_URL to the address of the key's provider"
            return wrong("OPENROUTER_API_KEY", what, fix)
        try:
            self.listings = read_listings(await self._client.models())
        except ModelError as error:
            if error.failure.cause in _OF_THE_KEY:
                return wrong("OPENROUTER_API_KEY", *_OF_THE_KEY[error.failure.cause])
            return Outcome(findings=(_unlisted("OPENROUTER_BASE_URL", self._provided, error.failure),))
        return Outcome(f"{count(len(self.listings), 'model')} listed")

    async def _key(self) -> Outcome:
        where = "OPENROUTER_API_KEY"
        if not self._has_key:
            return Outcome("none is set; this provider may need none")
        if not self._is_openrouter:
            return Outcome(_KEY_UNKNOWN)
        try:
            said = await self._client.key()
        except ModelError as error:
            if error.failure.cause in _OF_THE_KEY:
                return wrong(where, *_OF_THE_KEY[error.failure.cause])
            if error.failure.cause in _NO_LIST:
                return Outcome(_KEY_UNKNOWN)
            return Outcome(findings=(_unlisted(where, self._provided, error.failure),))
        if said.get("is_management_key") or said.get("is_provisioning_key"):
            return wrong(
                where,
                "it is a management key, which can't be used to ask a model",
                f"Make an API key at {_KEYS} and set OPENROUTER_API_KEY",
            )
        limit, ends = said.get("limit_remaining"), _NEVER
        left = float(limit) if isinstance(limit, int | float) else inf
        held = f"${left:,.2f} of the key's credit limit is left"
        with suppress(ValueError):
            ends = datetime.fromisoformat(str(said.get("expires_at"))).astimezone(UTC)
        raise_it = f"Raise the key's limit at {_KEYS}"
        free = "the account has never bought credit, so only models whose ids end in :free answer"
        buy = f"Add credit at {_CREDITS}, or configure :free models only"
        is_paid = not all(model.endswith(":free") for model in self._places)
        soon = f"the key expires on {ends:%Y-%m-%d}"
        renew = f"Make a new key at {_KEYS} and set {where}"
        findings = found(
            (left <= 0, Problem(where, *_NO_CREDIT)),
            (0 < left < LOW_CREDIT, Problem(where, f"only {held}", raise_it, "warning")),
            (said.get("is_free_tier") is True and is_paid, Problem(where, free, buy)),
            (ends - datetime.now(UTC) < SOON, Problem(where, soon, renew, "warning")),
        )
        held = "the key has no credit limit of its own" if left == inf else held
        return Outcome(f"accepted; {held}", findings)

    async def _models(self) -> Outcome:
        if not self.listings:
            note = "skipped: without a list, only --live can tell whether they exist"
            return Outcome(note, skipped=True)
        unknown = {model for model in self._places if not find_listing(self.listings, model)}
        if self._lists_all:
            self._unknown = unknown
        findings = (
            _not_listed(model, model, self.listings, places, is_sure=self._lists_all)
            for model, places in self._places.items()
            if model in unknown
        )
        number = len(self._places)
        note = (
            f"all {number} configured models are listed" if number > 1 else "1 configured model listed"
        )
        return Outcome(note, tuple(findings))

    async def _prices(self) -> Outcome:
        if not any(listing.price for listing in self.listings.values()):
            return Outcome("this provider lists no prices, so costs are unknown")
        listed = ((model, find_listing(self.listings, model)) for model in self._places)
        findings = (
            Problem(
                model,
                "the provider names no price, so its cost can't be estimated",
                f"Configure a model with a price, or set the key's credit limit at {_KEYS}",
                "warning",
            )
            for model, listing in listed
            if listing and not listing.price  # one that isn't listed is a finding of its own
        )
        return Outcome("known", tuple(findings))

    async def _servers(self) -> Outcome:
        looks = await asyncio.gather(*map(self._server, self._own.values()))
        number = len(self._own)
        note = "1 server answering" if number == 1 else f"all {number} answer"
        return Outcome(note, tuple(finding for look in looks for finding in look))

    async def _server(self, members: list[Member]) -> list[Problem]:
        """Check one member's own server; one without a model list may be asked all the same."""
        first, target = members[0], self._target(members[0])
        try:
            listings = read_listings(await self._client.models(first))
        except ModelError as error:
            return [_unlisted(target.address, target, error.failure)]
        models = dict.fromkeys(member.model for member in members)
        return [
            _not_listed(target.address, model, listings, ["council.toml"])
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
                own = asked.temperature
                call = Call(
                    step="doctor",
                    member=asked,
                    prompt=lambda: WORD,
                    deadline=CALL_SECONDS,
                    profile=profile.name,
                    schema=WORD_SCHEMA,
                    temperature=profile.temperature if own is None else own,
                    max_tokens=CALL_TOKENS,
                    retries=RetryBudget(0),
                )
                calls.setdefault(asked.model_copy(update={"name": ""}), call)
        ended = await asyncio.gather(*map(self._asked, calls.values()))
        paid = money(total([used for _, used in ended if used]))
        failures: list[Problem] = []
        learned: dict[str, None] = {}
        for call, (why, _) in zip(calls.values(), ended, strict=True):
            member, target = call.member, self._target(call.member)
            if why:
                failures.append(gave_nothing(member.model, target, why, paid))
                continue
            asked = self._client.endpoint(member)
            where = f" at {target.address}" if member.endpoint else ""
            if said := what_was_learned(asked, member.model, structured=bool(member.structured)):
                learned[f"{member.model}{where}: {said}"] = None
        note = f"{count(len(calls) - len(failures), 'call')} answered, {paid}"
        return Outcome(note, tuple(failures), details=tuple(learned))

    def _target(self, member: Member) -> failures_wording.Target:
        return failures_wording.target(member, has_key=self._has_key)

    async def _asked(self, call: Call) -> tuple[Failure | None, Usage | None]:
        try:
            return None, (await self._client.ask(call)).usage
        except ModelError as error:
            why = error.failure
        if why.cause == "format_refused":
            return await self._asked(replace(call, schema=None))
        # A model that thinks first may use up its reply for that; it has answered.
        return (None if why.cause in ("empty", "only_thoughts") else why), why.usage


def gave_nothing(model: str, asked: failures_wording.Target, why: Failure, paid: str) -> Problem:
    return Problem(
        model,
        f"it gave no answer: {failures_wording.reason(why, asked)} (all live calls: {paid})",
        failures_wording.remedy(why, asked)
        or "If it happens again, configure another model, or a fallback for this one",
    )


def _not_listed(
    where: str,
    model: str,
    listings: Mapping[str, ModelListing],
    places: Iterable[str],
    *,
    is_sure: bool = False,
) -> Problem:
    """Return that a list lacks a model; unless it `is_sure`, the server may serve it all the same."""
    near, named = most_like(model, listings), "such model" if where == model else f"model {model}"
    fix = f"{f'Did you mean {near}? ' if near else ''}Correct {listing(places)}"
    if not is_sure:
        fix = f"{fix}. Some servers have models that they don't list: --live tells"
        return Problem(where, f"the server lists no {named}", fix, "warning")
    fix = fix if near else f"{fix}; openrouter.ai/models, or the server's own list, has all ids"
    return Problem(where, f"the provider has no {named}", fix)


def _unlisted(where: str, target: failures_wording.Target, why: Failure) -> Problem:
    said = f"{cause(why)}, {why.status}" if why.status else cause(why)
    # A server may have none: only --live can tell whether its address is right.
    if why.cause in _NO_LIST:
        return Problem(
            where,
            f"there is no model list at its /models page ({said})",
            "Correct the address: OpenRouter's ends in /api/v1, most others' in /v1. If the provider "
            "has no list, --live tells whether it answers",
            "warning",
        )
    fix = failures_wording.remedy(why, target) if why.reason.fault == "operator" else None
    if fix:
        return Problem(where, failures_wording.reason(why, target), fix)
    return Problem(
        where,
        f"the provider is having problems ({said})",
        "Wait and run `council doctor` again; the provider's status page may say more",
    )


_REFUSED: Mapping[Format | None, str] = {
    "strict": "no JSON schema of another kind",
    "schema": "no strict JSON schema",
    "object_schema": "no JSON schema",
    "object": "no JSON schema",
    None: "no JSON",
}
_PARTS = {
    SYSTEM: "instructions in the user's message",
    PICTURES: "no pictures",
    "stream": "replies not streamed",
    FORMATTED_STREAM: "JSON not streamed",
}


def what_was_learned(asked: ModelEndpoint, model: str, *, structured: bool) -> str:
    """Return what a server takes in another way than others, and what finding out cost; or nothing."""
    refused, spent, limit = asked.refused(model), asked.requests[model], asked.server.limit
    sent = next(iter(asked.server.ladder(model, refused)), None) if structured else None
    other = OTHER_LIMIT[limit]
    parts = {**_PARTS, **({} if other in refused else {limit: f"{other} instead of {limit}"})}
    parts |= {format_part(each): _REFUSED[sent] for each in _REFUSED if each}
    changes = [f"{asked.prefix} added to the address"] if asked.prefix else []
    changes += [parts.get(part, f"no {part}") for part in refused]
    said = [f"its server wants {listing(dict.fromkeys(changes))}"] if changes else []
    if sent not in ("strict", "schema"):
        said.append(f"reviewers' votes come {'as JSON without a schema' if sent else 'in prose'}")
    if model in asked.thinks_unmarked:
        said.append("its thoughts end at a tag that nothing opened")
    if spent:
        cost = f"{count(spent, 'request')} refused before that was known"
        said.append(cost if changes else f"{cost}, and no change helped")
    return "; ".join(said)
