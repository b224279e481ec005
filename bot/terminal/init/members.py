"""Who sits on the council: suggested by the provider's list, chosen, and asked for one word."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import typer

from bot.checks.check import Checked, carry_out
from bot.checks.models import CALL_TOKENS, LIVE, ModelChecks
from bot.config.settings import variables
from bot.service.options import DEFAULT
from bot.terminal.ask import say
from bot.terminal.init.files import Plan
from bot.terminal.init.prompts import prompt
from bot.terminal.init.provider import Provider
from bot.view.wording import init as wording
from bot.view.wording.budgets import short_question
from bot.view.wording.figures import NO_COST, money
from bot.view.wording.terminal import seat
from council.brief import Brief
from council.estimate import Estimate, estimate
from council.models.costs import ModelListing, find_listing, most_like
from council.personas import PRESETS
from council.profile import MAX_MEMBERS, Member, Profile
from council.suggestion import MODEL_ID, leading, suggest
from council.usage import Price, Usage

MOST_SHOWN = 10
"""Models that are shown of a long list."""


def choose_members(provider: Provider, plan: Plan) -> None:
    """Ask who sits on the council, check them if allowed, and plan what that takes."""
    while True:
        profile = _profile(provider)
        say(f"\n{short_question(_estimated(profile, provider))}")
        if not typer.confirm(wording.ask_each(_cost(profile, provider)), default=True):
            break
        checked = asyncio.run(_examined(provider, profile))
        provider.show(one for one in checked if one.outcome.findings or one.name == LIVE)
        failed = any(one.outcome.state == "error" for one in checked)
        if not failed or not typer.confirm(wording.OTHERS, default=True):
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
        seats = "".join(f"    {_written(one)},\n" for one in profile.members)
        plan.council = (f"[\n{seats}]", _written(profile.chairman))


def _written(member: Member) -> str:
    return seat(member.model, member.endpoint, member.persona and member.persona.name)


def _estimated(profile: Profile, provider: Provider) -> Estimate:
    """Return what a question of a few words may cost with this council."""

    def price(member: Member) -> Price | None:
        listing = find_listing(provider.listings, member.model)
        return Price(0, 0) if provider.endpoint is not None else listing and listing.price

    return estimate(Brief(question="?", profile=profile, seed=0, boundary="0" * 16), price)


def _cost(profile: Profile, provider: Provider) -> str | None:
    """Return the most that a word from each model costs; `None` if a price is unknown."""
    if provider.endpoint is not None:
        return NO_COST
    listed = (find_listing(provider.listings, model) for model in {one.model for one in profile.seats})
    prices = [listing and listing.price for listing in listed]
    costs = [price.cost(CALL_TOKENS, CALL_TOKENS) for price in prices if price]
    return money(Usage(cost=sum(costs))) if len(costs) == len(prices) else None


async def _examined(provider: Provider, profile: Profile) -> list[Checked]:
    async with provider.client([profile]) as client:
        checks = ModelChecks(provider.configuration({DEFAULT: profile}), client)
        return await carry_out(checks.checks(live=True))


def _profile(provider: Provider) -> Profile:
    suggested = suggest(provider.listings)
    if suggested is None:
        say(wording.NO_LIST)
    else:
        _show_models(provider)
    by_default = ", ".join(suggested.members) if suggested else ""
    members = _models(wording.MEMBERS, by_default, provider.listings, MAX_MEMBERS)
    chairman = suggested.chairman if suggested else members[0]
    if chairman in members:
        chairman = next((one for one in leading(provider.listings) if one not in members), members[0])
    [chairman] = _models(wording.CHAIRMAN, chairman, provider.listings, 1)
    seats = _seats(members, provider.endpoint)
    return Profile(
        name=DEFAULT, members=seats, chairman=Member(model=chairman, endpoint=provider.endpoint)
    )


def _show_models(provider: Provider) -> None:
    models = leading(provider.listings)
    has_prices = any(listing.price for listing in provider.listings.values())
    say(wording.PER_MILLION if has_prices else wording.LISTED)
    width = max(map(len, models[:MOST_SHOWN]))
    for model in models[:MOST_SHOWN]:
        price = wording.price(provider.listings[model].price) if has_prices else ""
        say(f"  {model:<{width}}  {price}".rstrip())
    if len(models) > MOST_SHOWN:
        say(wording.more(len(models) - MOST_SHOWN))
    if len(models) == 1:
        say(wording.PERSONAS)


def _models(
    question: str, by_default: str, listings: Mapping[str, ModelListing], most: int
) -> list[str]:
    """Ask for models until each is one that can be used."""

    def read(typed: str) -> list[str]:
        models = [model.strip() for model in typed.split(",") if model.strip()]
        if problem := _problem(models, listings, most):
            raise typer.BadParameter(problem)
        return models

    return prompt(question, read, by_default)


def _problem(models: list[str], listings: Mapping[str, ModelListing], most: int) -> str | None:
    if not 0 < len(models) <= most:
        return wording.how_many(most)
    if max(Counter(models).values()) > len(PRESETS):
        return wording.too_often(len(PRESETS))
    for model in models:
        if not MODEL_ID.fullmatch(model):
            return wording.not_an_id(model)
        if listings and not find_listing(listings, model):
            return wording.no_such_model(model, most_like(model, listings))
    return None


def _seats(models: list[str], endpoint: str | None) -> tuple[Member, ...]:
    """Return the members; where a model sits more than once, each of its seats has another persona."""
    times, seated = Counter(models), Counter[str]()
    members: list[Member] = []
    for model in models:
        persona = PRESETS[seated[model]] if times[model] > 1 else None
        members.append(Member(model=model, persona=persona, endpoint=endpoint))
        seated[model] += 1
    return tuple(members)
