"""What `/council-help` says: what the council is, which models see a question, what it costs."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from bot.service.admission.limits import Limits
from bot.service.commands import ASK, FORGET, PAST, described, usage
from bot.view.message import Block, Heading, Line, Message, Pairs
from bot.view.wording import budgets, commands
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
        (commands.command(command.name, usage(command)), commands.described(command.description))
        for command in (*PAST, FORGET)
    )
    return Message(
        "help",
        (
            Heading(commands.COUNCIL),
            Line(commands.WHAT_IT_DOES),
            Line(commands.HOW_TO_ASK),
            Line(commands.WHO_SEES),
            Line(commands.thread(MOST_MESSAGES)),
            *chain.from_iterable(
                _council(profile, None if spent.typical else estimate(profile)) for profile in profiles
            ),
            Heading(commands.LIMITS, 3),
            Line(commands.limits(at_once, waiting)),
            Line(commands.so_far(spent)),
            *([Line(commands.typical(spent.typical))] if spent.typical else []),
            *map(Line, map(budgets.state, used)),
            Heading(commands.OPTIONS, 3),
            Pairs(tuple((name, described(name)) for name in options)),
            Line(commands.FLAGS),
            Line(commands.ATTACHING),
            Heading(commands.PAST, 3),
            Pairs(tuple(past)),
            Line(commands.CHANNEL_SETTINGS),
        ),
    )


def _council(profile: Profile, cost: Estimate | None) -> Iterator[Block]:
    yield Heading(commands.council(profile.name), 3)
    chair = (profile.chairman, *profile.chairman_fallbacks)
    title = _seat(profile.title_model) if profile.title_model else None
    yield Line(commands.seats(map(_seat, profile.members), map(_seat, chair), title))
    yield Line(" ".join(_settings(profile)))
    if cost:
        yield Line(budgets.short_question(cost))


def _seat(member: Member) -> str:
    persona = member.persona.name if member.persona else None
    return commands.seat((member.model, *member.fallbacks), persona)


def _settings(profile: Profile) -> Iterator[str]:
    yield commands.rounds(profile.max_rounds, profile.strategy)
    if profile.criteria:
        yield commands.criteria(profile.criteria)
    if profile.context == "message":
        yield commands.ONLY_QUESTION
    if profile.web:
        yield commands.WEB
