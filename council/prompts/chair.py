"""What the chairman is asked: how it weighs the answers, and what notes it adds."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pydantic import TypeAdapter

from council.brief import Brief
from council.calls import ChatMessage
from council.document.results import AggregateRanking, DepthReason, ScoringMatrix
from council.profile import Member, Strategy
from council.prompts import opening

CHAIR = "You are the chairman of the council and write the one answer that the team will read."
REVIEWED = (
    "The members answered the question, reviewed each other without names, and corrected themselves. "
    "These are their answers, after the corrections."
)
UNREVIEWED = (
    "The members answered the question, each alone. These are their answers. The reviews were skipped: "
    "nobody has checked or corrected them."
)
NOTES = (
    "Your answer comes first. When it is complete, add a few notes for the team, in plain text. First a "
    "line that holds this mark alone:\n\n{mark}\n\n"
    "Below it at most four lines, each beginning with its keyword, and only those that have something "
    "to say:\n\n"
    "- DISSENT: who of the members still holds something else, and why.\n"
    "- ONLY: what is important and only one member saw, and who.\n"
    "{changed}"
    "- ASK: a question to the team, for the one fact that would change your answer.\n\n"
    "Call the members by the names given above, never by labels. Keep the keywords as they are, and "
    "write the rest in {language}. Write the mark nowhere else."
)
CHANGED = "- CHANGED: which claim was dropped, added or corrected after the reviews, and by whom.\n"
OPEN = (
    "Authors reject the objections above. Decide for each which of the two is right, by its merits, and "
    "say so in your answer, or in your notes where it stays open."
)
REPEATED = 600
"""A question of at most so many characters is asked again below long answers: small models forget it."""


@dataclass(frozen=True, slots=True)
class _Synthesis:
    """How the chairman makes one answer of many; with `reads_reviews`, it reads the reviews, too."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    instruction: str
    begins_with: str = "the answer"
    reads_reviews: bool = False


STRATEGIES = TypeAdapter(dict[Strategy, _Synthesis]).validate_python(
    tomllib.loads(Path(__file__).with_name("strategies.toml").read_text("utf-8"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What the chairman writes its answer from.

    `responses` are triples of label, member and text; `withdrawn` are pairs of member and what it took
    back after the reviews, which only the notes need; `rejected` are pairs of member and an objection
    to its answer that it rejects, with its reason; `votes` are the ballots that count,
    reviewer -> labels, best first; `reviews` are pairs of critic and text. `skipped` says why there were
    none.
    """

    responses: Sequence[tuple[str, str, str]]
    withdrawn: Sequence[tuple[str, str]] = ()
    rejected: Sequence[tuple[str, str]] = ()
    ranking: AggregateRanking | None = None
    votes: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    scores: ScoringMatrix | None = None
    disagreements: Sequence[str] = ()
    reviews: Sequence[tuple[str, str]] = ()
    skipped: DepthReason | None = None


def synthesis(
    brief: Brief, member: Member, given: Material, mark: str | None
) -> tuple[ChatMessage, ...]:
    """Ask for the final answer; with a mark, for notes below it."""
    strategy = STRATEGIES[brief.profile.strategy]
    changed = "" if given.skipped else CHANGED
    read = given.reviews if strategy.reads_reviews else ()
    return opening.chat(
        brief,
        member,
        *opening.question(brief, member),
        *opening.criteria(brief),
        CHAIR,
        UNREVIEWED if given.skipped else REVIEWED,
        *(
            opening.fence(brief, f"{label} by {member_name}", text)
            for label, member_name, text in given.responses
        ),
        *(
            opening.fence(brief, f"What {member_name} said before the reviews and no longer says", text)
            for member_name, text in (given.withdrawn if mark else ())
        ),
        *(
            opening.fence(brief, f"An objection that {author} rejects, and its reason", text)
            for author, text in given.rejected
        ),
        *(opening.fence(brief, f"Review by {critic}", text) for critic, text in read),
        *opening.without_boundary(brief, _weighed(given, strategy.instruction)),
        *([OPEN] if given.rejected else []),
        *([NOTES.format(mark=mark, language=brief.language, changed=changed)] if mark else []),
        f"Now answer the question itself, in {brief.language}, beginning with {strategy.begins_with}.",
        *([opening.asked(brief)] if len(brief.question) <= REPEATED else []),
        "Write the answer first, then the notes." if mark else "Write the answer.",
    )


def _weighed(given: Material, instruction: str) -> Iterator[str]:
    """Say how the chairman is to weigh the answers: by what their reviewers said, or by itself."""
    if given.skipped:
        if given.skipped == "agreed":
            yield (
                "The answers recommend the same. That proves nothing: models make the same mistakes, "
                "and sound as sure of them."
            )
        yield (
            f"{instruction} Read the answers critically, for nobody else has: check each claim, number "
            "and step yourself, and look for what all of them overlooked."
        )
        return
    yield from _standing(given)
    yield from _scored(given.scores)
    yield f"{instruction} The ranking shows agreement, not truth."


def _standing(given: Material) -> list[str]:
    ranking = given.ranking
    if ranking is None or not ranking.ballots:
        return ["There is no ranking: no ballot could be counted."]
    places = "\n".join(
        f"{rank.number}{' =' if rank.shared else '.'} {place.label}: "
        f"mean position {place.mean_position:.2f} in {place.votes} ballots"
        for place in ranking.places
        if place.mean_position is not None and (rank := ranking.rank(place.model))
    )
    parts = [f"The peers' ranking, best first (= is a tie):\n{places}"]
    if ballots := "\n".join(
        f"- {reviewer}: {' > '.join(vote)}" for reviewer, vote in given.votes.items()
    ):
        parts.append(f"It comes from these ballots, without votes for oneself:\n{ballots}")
    if lines := "\n".join(f"- {line}" for line in given.disagreements):
        parts.append(f"Where the reviewers differ:\n{lines}")
    return parts


def _scored(matrix: ScoringMatrix | None) -> list[str]:
    if matrix is None or not matrix.ballots:
        return []
    lines: list[str] = []
    for answer in matrix.answers:
        means = ", ".join(f"{name} {mean:.1f}" for name, mean in answer.means.items())
        scores = "not scored" if answer.total is None else f"{means}; weighted {answer.total:.1f}"
        fails = f"; DISQUALIFIED, it fails {', '.join(answer.failed)}" if answer.failed else ""
        lines.append(f"- {answer.label}: {scores}{fails}")
    said = [
        "The reviewers' mean scores by criterion, from 1 to 10, and their weighted mean:\n"
        + "\n".join(lines)
    ]
    if any(answer.is_disqualified for answer in matrix.answers):
        said.append(
            "What a disqualified answer proposes can't be recommended as it is; use what is right "
            "in it, and say which must-have it fails."
        )
    return said
