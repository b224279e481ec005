"""What `/council-help` says: what the council is, which models see what is asked, what it costs."""

from collections.abc import Iterable, Iterator
from itertools import chain

from bot.service.commands import ASK, ATTACHING, FORGET, PAST, described, usage
from bot.service.limits import Limits
from bot.view import words
from bot.view.message import Block, Heading, Line, Message, Pairs
from council.context import MOST_MESSAGES
from council.profile import Member, Profile
from storage.statistics import Spent

FLAGS = (
    "On Slack, at the terminal and in a message to the bot type them before the question: "
    "--rounds 2 --criteria \u201cCost:3, Security!\u201d Should we shard?"
)


def guide(profiles: Iterable[Profile], limits: Limits, spent: Spent) -> Message:
    """Return the help for one place; `spent` is what was spent there."""
    return Message(
        "help",
        (
            Heading("The council"),
            Line(
                "Several language models answer your question, review each other without names, and "
                "correct themselves; a chairman writes the answer. The thread shows every step."
            ),
            Line(
                "Ask with /council and your question, or write it to the bot in a direct message. "
                "In a thread, mention the bot to ask a follow-up."
            ),
            Line(
                "Your question goes to these models with its files and with what was asked and answered "
                "before in the same conversation, by others too. Those after \u201cor\u201d get it "
                "where the one before can't answer."
            ),
            Line(
                "Asked in a thread that people began, it goes with what they wrote there before: the "
                f"last {MOST_MESSAGES} messages at most, with their text files, if an admin has allowed "
                "that. The card says how much was read."
            ),
            *chain.from_iterable(map(_council, profiles)),
            Heading("Limits and cost", 3),
            Line(
                f"At once: {words.count(limits.runs_per_user, 'question')} per person, "
                f"{words.count(limits.runs_per_channel, 'question')} per channel; the rest wait, up to "
                f"{limits.waiting_per_user:,} per person and {limits.waiting_per_channel:,} per channel."
            ),
            Line(f"Here so far: {words.runs(spent)}, {words.paid(spent)}."),
            Heading("Options of /council", 3),
            Pairs(
                tuple(
                    (option.name, described(option.name))
                    for option in ASK.options
                    if not option.required
                )
            ),
            Line(FLAGS),
            Line(ATTACHING),
            Heading("Past answers of this channel", 3),
            Pairs(
                tuple(
                    (f"/{command.name} {usage(command)}", f"{command.description}.")
                    for command in (*PAST, FORGET)
                )
            ),
        ),
    )


def _council(profile: Profile) -> Iterator[Block]:
    yield Heading(f"Council \u201c{profile.name}\u201d", 3)
    chair = (profile.chairman, *profile.chairman_fallbacks)
    title = f"; title {_seat(profile.title_model)}" if profile.title_model else ""
    members = ", ".join(map(_seat, profile.members))
    yield Line(f"{members}; chairman {' or '.join(map(_seat, chair))}{title}.")
    yield Line(" ".join(_settings(profile)))


def _seat(member: Member) -> str:
    models = " or ".join((member.model, *member.fallbacks))
    return f"{models} as {member.persona.name}" if member.persona else models


def _settings(profile: Profile) -> Iterator[str]:
    yield f"{words.count(profile.max_rounds, 'round')} of correction, strategy {profile.strategy}."
    if profile.criteria:
        yield f"Criteria: {profile.criteria}."
    if profile.context == "message":
        yield "Of a thread it reads only the question."
    if profile.web:
        yield "Members search the web, so what they look for leaves to the provider's search engine."
