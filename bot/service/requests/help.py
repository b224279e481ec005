"""What `/council-help` says: what the council is, which models see a question, what it costs."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from bot.service.admission.limits import Limits
from bot.service.commands import ASK, FORGET, PAST, described, usage
from bot.view.message import Block, Heading, Line, Message, Pairs
from bot.view.wording.service import budgets, commands, estimates
from bot.view.wording.service import help as wording
from council.estimate import Estimate
from council.profile import Member, Profile
from council.prompts.context import MOST_MESSAGES
from storage.errors import Used
from storage.index.statistics import Spent


def guide(
    profiles: Iterable[Profile],
    limits: Limits,
    spent: Spent,
    estimate: Callable[[Profile], Estimate],
    used: Iterable[Used] = (),
) -> Message:
    """Return the help for one place; `spent` is what was spent there.

    The cost of a short question is estimated for each council until there are answers here.
    """
    at_once = limits.runs_per_user, limits.runs_per_channel
    waiting = limits.waiting_per_user, limits.waiting_per_channel
    options = (option.name for option in ASK.options if not option.required)
    past = (
        (wording.command(command.name, usage(command)), commands.described(command.description))
        for command in (*PAST, FORGET)
    )
    return Message(
        "help",
        (
            Heading(wording.COUNCIL),
            Line(wording.WHAT_IT_DOES),
            Line(wording.HOW_TO_ASK),
            Line(wording.WHO_SEES),
            Line(wording.thread(MOST_MESSAGES)),
            *chain.from_iterable(
                _council(profile, None if spent.typical else estimate(profile)) for profile in profiles
            ),
            Heading(wording.LIMITS, 3),
            Line(wording.limits(at_once, waiting)),
            Line(wording.so_far(spent)),
            *([Line(wording.typical(spent.typical))] if spent.typical else []),
            *map(Line, map(budgets.state, used)),
            Heading(wording.OPTIONS, 3),
            Pairs(tuple((name, described(name)) for name in options)),
            Line(wording.FLAGS),
            Line(commands.ATTACHING),
            Heading(wording.PAST, 3),
            Pairs(tuple(past)),
            Line(wording.CHANNEL_SETTINGS),
        ),
    )


def _council(profile: Profile, cost: Estimate | None) -> Iterator[Block]:
    yield Heading(wording.council(profile.name), 3)
    chair = (profile.chairman, *profile.chairman_fallbacks)
    title = _seat(profile.title_model) if profile.title_model else None
    yield Line(wording.seats(map(_seat, profile.members), map(_seat, chair), title))
    yield Line(" ".join(_settings(profile)))
    if cost:
        yield Line(estimates.short_question(cost))


def _seat(member: Member) -> str:
    persona = member.persona.name if member.persona else None
    return wording.seat((member.model, *member.fallbacks), persona)


def _settings(profile: Profile) -> Iterator[str]:
    yield wording.rounds(profile.max_rounds, profile.strategy)
    if profile.criteria:
        yield wording.criteria(profile.criteria)
    if profile.context == "message":
        yield wording.ONLY_QUESTION
    if profile.web:
        yield wording.WEB
