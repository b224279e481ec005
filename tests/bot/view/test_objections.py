"""Each critic's gravest stored objection is in the thread, praise never is."""

import random

from bot.render.markdown import render
from bot.view.passages import weight
from bot.view.run import of_document
from bot.view.thread import SUMMARY, said, thread
from council.document.results import ReviewPoint, Stage2Result
from council.reviews.ballots import read_ballot
from tests.bot.sample_run import ASSISTANT, CLAUDE, CONVERSATION, GEMINI, GPT, LABELS, QUESTION

PROSE = [
    "### Response A\nStrengths: Clear.\nWeaknesses: No tests.\n\n### Response B\nStrengths: Right.",
    "**Response A:** Good, but Response C is better.\n\n**Response B:** " + "long " * 200,
    "Response A lacks sources. Response B is fine.",
    "",
]
CRITIC = "x/critic"
NAMES = {
    CLAUDE: "claude-sonnet-4.5",
    GEMINI: "gemini-2.5-pro (The Pragmatist)",
    GPT: "gpt-5",
}
SHORT = {label: NAMES[model] for label, model in LABELS.items()}


def reviewed(text: str) -> Stage2Result:
    """Return a reply as it is stored."""
    ballot = read_ballot(text, [*LABELS])
    return Stage2Result(
        model=CRITIC,
        ranking=ballot.text,
        parsed_ranking=[],
        points=None if ballot.points is None else [*ballot.points],
        cleared=[*ballot.cleared],
    )


def messages(review: Stage2Result) -> dict[str, str]:
    """Return what the digest says of each label's answer where there is this review alone."""
    view = of_document(
        ASSISTANT.model_copy(update={"stage2": [review], "stage2_5": None}), QUESTION, CONVERSATION
    )
    digest = render(thread(view)[0].message)
    return {
        label: next(part for part in digest.split("\n\n") if f"{name}: average" in part.split("\n")[0])
        for label, name in SHORT.items()
    }


def ballot(seed: int) -> Stage2Result:
    """Return a structured ballot with long objections and praise, the gravest anywhere among them."""
    draw = random.Random(seed)  # noqa: S311 - the same ballots in every run
    points: list[ReviewPoint] = []
    for label in LABELS:
        for number in range(draw.randint(0, 4)):
            kind = draw.choice(("objection", "strength"))
            points.append(
                ReviewPoint(
                    label=label,
                    kind=kind,
                    text=f"Point{seed}x{number} {kind} {'of many words ' * draw.randint(1, 40)}".strip(),
                    severity=draw.choice(("high", "medium", "low")) if kind == "objection" else None,
                    source="structured",
                )
            )
    return Stage2Result(model=CRITIC, ranking="", parsed_ranking=[], points=points)


def test_the_gravest_objection_begins_in_the_thread_and_praise_never_does() -> None:
    """Behind its own grade; whoever objects is never named among those who don't."""
    for review in [*map(reviewed, PROSE), *map(ballot, range(40))]:
        begins_with_the_gravest(review)


def begins_with_the_gravest(review: Stage2Result) -> None:
    """Check what the thread shows of a review, answer by answer."""
    for label, shown in messages(review).items():
        about = [point for point in review.points or () if point.label == label]
        objections = sorted((each for each in about if each.kind == "objection"), key=weight)
        told = shown.strip().partition("\n")[2]
        if objections:
            begins = said(objections[0])[:40]
            for each, name in SHORT.items():
                begins = begins.replace(each, name)
            first = words(begins)[:4]
            assert words(told.removeprefix("- Gravest objection, by critic: "))[: len(first)] == first
            assert len(told) < SUMMARY + 60
        else:
            assert told in (
                "",
                "- Gravest objection: none",
                "- Gravest objection: not divided; see Open",
            )
        for each in about:
            if each.kind == "strength" and not any(each.text in other.text for other in objections):
                assert each.text not in told


def words(text: str) -> list[str]:
    """Return a text's words without markup."""
    return "".join(sign if sign.isalnum() else " " for sign in text).split()
