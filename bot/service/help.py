"""What `/council-help` says: how to use the council, which models see a question, what it costs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

from bot.service.commands import ASK, described
from bot.service.limits import Limits
from bot.view.message import Block, Heading, Line, Message, Pairs
from bot.view.wording import budgets, worth
from bot.view.wording.commands import ASK_ABOUT
from bot.view.wording.figures import NO_COST, count, expected, runs, short_names
from council.estimate import Estimate
from council.profile import Member, Profile
from council.prompts.opening import MOST_MESSAGES
from storage.errors import Used
from storage.index.statistics import Spent
from storage.scope import TERMINAL

Page = Literal["help", "options", "models"]

LABELS: dict[Page, str] = {"help": "Help", "options": "Options", "models": "Models and limits"}

_EXAMPLE = "--depth quick Should we shard?"
_BEFORE = f"Type them before the question: {_EXAMPLE}"
_ATTACHED = (
    "Attach files to a message that mentions me, to a direct message, or to a message on which you use "
    f"\u201c{ASK_ABOUT}\u201d."
)


class _Words(NamedTuple):
    """How one asks on a platform and gives options, and the options of `/council` that it lacks."""

    ask: str
    given: tuple[str, ...]
    absent: tuple[str, ...] = ()


_AT_TERMINAL = _Words(
    "/council and your question.",
    (_BEFORE, 'With a file: council ask --attachment FILE "your question".'),
    ("attachment", "private"),
)
_ON: Mapping[str, _Words] = {
    "discord": _Words(
        "/council and your question; or mention or message me.",
        (
            "Choose them beside the question.",
            f"In a message to me, type them before the question: {_EXAMPLE}",
            _ATTACHED,
        ),
    ),
    "slack": _Words(
        "/council and your question; in a thread, mention me; or message me.",
        (_BEFORE, _ATTACHED),
        ("attachment",),
    ),
}


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

    @property
    def _words(self) -> _Words:
        return _ON.get(self.platform, _AT_TERMINAL)

    def _help(self) -> Iterator[Block]:
        yield Heading("The council")
        yield Line(
            "Several models answer, review each other without names, and correct themselves; a chairman "
            "writes the answer."
        )
        follow = "press Follow up, or mention me in the thread."
        if self.platform == TERMINAL:
            follow = "@council and your question."
        rows = (
            ("Ask", self._words.ask),
            ("Follow up", follow),
            ("Find", "/council-history, /council-search, /council-show."),
            ("Delete", "/council-forget, with a title, or me for all you asked."),
            *self._who_sees(),
            *(("Cost", said) for said in [" ".join(self._cost())] if said),
        )
        yield Pairs(rows, together=True)

    def _who_sees(self) -> Iterator[tuple[str, str]]:
        for profile in self.profiles[:1]:
            models = (model for each in profile.seats for model in (each.model, *each.fallbacks))
            yield "Who sees it", seats(profile, short_names(models))
            seen = "your question, its files, the conversation before it"
            if profile.context == "thread" and self.platform != TERMINAL:
                seen += f"; in people's threads, up to {MOST_MESSAGES} messages"
            yield "They see", f"{seen}."

    def _cost(self) -> Iterator[str]:
        for profile in self.profiles[:1]:
            said = expected(self.spent.typical, self.estimate(profile).cost)
            yield f"{said[:1].upper()}{said[1:]} for a short question." if said else f"{NO_COST}."
        yield from map(budgets.state, self.used)

    def _options(self) -> Iterator[Block]:
        absent = self._words.absent
        names = (each.name for each in ASK.options if not each.required and each.name not in absent)
        yield Heading("Options of /council")
        yield Pairs(tuple((name, described(name)) for name in names))
        yield from map(Line, self._words.given)

    def _models(self) -> Iterator[Block]:
        limits = self.limits
        yield Heading(LABELS["models"])
        yield Line(
            "These models see your question, its files, and the earlier questions and answers of the "
            "same conversation, including other people's. A model after \u201cor\u201d sees them only "
            "if the one before it can't answer."
        )
        if self.platform != TERMINAL:
            yield Line(
                f"In a thread that people started, they also see up to its last {MOST_MESSAGES} "
                "messages with their files, if an admin has allowed it. The card says how much was read."
            )
        yield from chain.from_iterable(map(self._council, self.profiles))
        yield Heading("Limits", 3)
        yield Line(
            f"At once: {count(limits.runs_per_user, 'question')} per person, "
            f"{count(limits.runs_per_channel, 'question')} per channel; the rest wait, up to "
            f"{limits.waiting_per_user:,} per person and {limits.waiting_per_channel:,} per channel."
        )
        if said := runs(self.spent):
            yield Line(f"Here so far: {said}.")
        yield Line("/council-config shows this channel's settings; its admins change them there.")

    def _council(self, profile: Profile) -> Iterator[Block]:
        is_default = profile.name == "default"
        yield Heading("The council" if is_default else f"Council \u201c{profile.name}\u201d", 3)
        yield Line(seats(profile, {}))
        yield Line(" ".join(_settings(profile)))
        if profile.judge:
            yield Line(worth.judge(is_member=profile.judged_by_a_member))
        if not self.spent.typical:
            yield Line(budgets.short_question(self.estimate(profile)))


def seats(profile: Profile, short: Mapping[str, str]) -> str:
    """Name all models that a question goes to, by `short` names where there are."""

    def seat(member: Member) -> str:
        models = (short.get(model, model) for model in (member.model, *member.fallbacks))
        return " or ".join(models) + (f" as {member.persona.name}" if member.persona else "")

    # The chairman's are asked one after the other.
    chair = " or ".join(map(seat, (profile.chairman, *profile.chairman_fallbacks)))
    title = seat(profile.title_model) if profile.title_model else None
    judge = seat(profile.judge) if profile.judge else None
    titled = f"; title {'and judge ' if title == judge else ''}{title}" if title else ""
    judged = f"; judge {judge}" if judge and judge != title else ""
    return f"{', '.join(map(seat, profile.members))}; chairman {chair}{titled}{judged}."


def _settings(profile: Profile) -> Iterator[str]:
    up_to = "Up to " if profile.max_rounds > 1 else ""
    yield f"{up_to}{count(profile.max_rounds, 'review round')}, strategy {profile.strategy}."
    if profile.criteria:
        yield f"Criteria: {profile.criteria}."
    if profile.context == "message":
        yield "It doesn't read the thread it is asked in."
    if profile.web:
        yield "Members search the web, so their search terms go to the provider's search engine."
