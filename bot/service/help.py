"""What `/council-help` says: how to use the council, which models see a question, what it costs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from bot.service.commands import ASK, described
from bot.service.limits import Limits
from bot.view.message import Block, Heading, Line, Message, Pairs
from bot.view.wording import budgets, worth
from bot.view.wording import help as wording
from bot.view.wording.figures import short_names
from council.estimate import Estimate
from council.profile import Member, Profile
from council.prompts.opening import MOST_MESSAGES
from storage.errors import Used
from storage.index.statistics import Spent
from storage.scope import TERMINAL

Page = Literal["help", "options", "models"]

LABELS: dict[Page, str] = {
    "help": wording.HELP,
    "options": wording.OPTIONS,
    "models": wording.MODELS,
}

_ELSEWHERE = {"discord": (), "slack": ("attachment",), TERMINAL: ("attachment", "private")}
"""The options of `/council` that a platform doesn't have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Help:
    """What the help says in one place: `profiles` are open there, the default one first.

    `spent` is what was spent there, `used` what counts toward its budgets. The cost of a short question
    is estimated until there are answers.
    """

    platform: str
    profiles: Sequence[Profile]
    limits: Limits
    spent: Spent
    estimate: Callable[[Profile], Estimate]
    used: Iterable[Used] = ()

    def page(self, page: Page) -> Message:
        match page:
            case "help":
                blocks = self._help()
            case "options":
                blocks = self._options()
            case "models":
                blocks = self._models()
        return Message("help", tuple(blocks))

    def _help(self) -> Iterator[Block]:
        yield Heading(wording.COUNCIL)
        yield Line(wording.WHAT_IT_DOES)
        yield Pairs(
            (
                (wording.ASK, wording.how_to_ask(self.platform)),
                (wording.FOLLOW_UP, wording.how_to_follow_up(self.platform)),
                (wording.FIND, wording.FOUND),
                (wording.DELETE, wording.DELETED),
                *self._who_sees(),
                *((wording.COST, said) for said in [" ".join(self._cost())] if said),
            ),
            together=True,
        )

    def _who_sees(self) -> Iterator[tuple[str, str]]:
        for profile in self.profiles[:1]:
            models = (model for each in profile.seats for model in (each.model, *each.fallbacks))
            yield wording.WHO_SEES, _seats(profile, short_names(models))
            reads = profile.context == "thread" and self.platform != TERMINAL
            yield wording.WHAT_THEY_SEE, wording.seen(MOST_MESSAGES if reads else None)

    def _cost(self) -> Iterator[str]:
        for profile in self.profiles[:1]:
            yield wording.cost(self.spent.typical, self.estimate(profile))
        yield from map(budgets.state, self.used)

    def _options(self) -> Iterator[Block]:
        absent = _ELSEWHERE.get(self.platform, _ELSEWHERE[TERMINAL])
        names = (each.name for each in ASK.options if not each.required and each.name not in absent)
        yield Heading(wording.ABOUT_OPTIONS)
        yield Pairs(tuple((name, described(name)) for name in names))
        yield from map(Line, wording.how_options_are_given(self.platform))

    def _models(self) -> Iterator[Block]:
        at_once = self.limits.runs_per_user, self.limits.runs_per_channel
        waiting = self.limits.waiting_per_user, self.limits.waiting_per_channel
        yield Heading(wording.MODELS)
        yield Line(wording.ABOUT_MODELS)
        if self.platform != TERMINAL:
            yield Line(wording.thread(MOST_MESSAGES))
        yield from chain.from_iterable(map(self._council, self.profiles))
        yield Heading(wording.LIMITS, 3)
        yield Line(wording.limits(at_once, waiting))
        if said := wording.so_far(self.spent):
            yield Line(said)
        yield Line(wording.SETTINGS)

    def _council(self, profile: Profile) -> Iterator[Block]:
        yield Heading(wording.council(profile.name), 3)
        yield Line(_seats(profile, {}))
        yield Line(" ".join(_settings(profile)))
        if profile.judge:
            yield Line(worth.judge(is_member=profile.judged_by_a_member))
        if not self.spent.typical:
            yield Line(budgets.short_question(self.estimate(profile)))


def _seats(profile: Profile, short: Mapping[str, str]) -> str:
    """Name all models that a question goes to, by `short` names where there are."""

    def seat(member: Member) -> str:
        models = (short.get(model, model) for model in (member.model, *member.fallbacks))
        return wording.seat(models, member.persona.name if member.persona else None)

    chair = (profile.chairman, *profile.chairman_fallbacks)
    title = seat(profile.title_model) if profile.title_model else None
    judge = seat(profile.judge) if profile.judge else None
    return wording.seats(map(seat, profile.members), map(seat, chair), title, judge)


def _settings(profile: Profile) -> Iterator[str]:
    yield wording.rounds(profile.max_rounds, profile.strategy)
    if profile.criteria:
        yield wording.criteria(profile.criteria)
    if profile.context == "message":
        yield wording.ONLY_QUESTION
    if profile.web:
        yield wording.WEB
