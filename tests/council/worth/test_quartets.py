"""`auto` on answers that agree, differ, warn, say nothing or are hostile: it never skips a difference."""

import json
from collections.abc import Callable

from council.worth.depth import read_comparison
from tests.council.scripted import FOUR, ScriptedCouncil
from tests.council.worth.quartets import Quartet, quartets
from tests.council.worth.test_depth import auto
from tests.pairs import rows

ALL = quartets()
LABELS = [f"Response {letter}" for letter in "ABCD"]
BLIND = '{"differences": [], "recommendation": "same", "steering": [], "better": "tie"}'
Judge = Callable[[Quartet], str]


def honest(quartet: Quartet, **change: object) -> str:
    """Return what an honest judge writes of a quartet, with some fields changed."""
    points = [] if quartet.agree else [{"point": "They differ.", "checkable": True}]
    fields = {
        "differences": points,
        "recommendation": "same" if quartet.agree else "different",
        "steering": [],
        "better": "tie",
    }
    return json.dumps(fields | change)


def always(text: str) -> Judge:
    def said(quartet: Quartet) -> str:
        del quartet
        return text

    return said


SURE: dict[str, Judge] = {
    "honest": honest,
    "with prose around": lambda each: f"Let me see.\n```json\n{honest(each)}\n```\nThat is all.",
    "after an answer": lambda each: f"{each.answers[2]}\n\n{honest(each)}",
    "before an answer": lambda each: f"{honest(each)}\n\n{each.answers[2]}",
}
UNSURE: dict[str, Judge] = {
    "says same, but lists the point": lambda each: honest(each, recommendation="same"),
    "sees no point, but says different": lambda each: honest(each, differences=[]),
    "lists what can't be read": lambda each: honest(
        each, differences=[[7], None], recommendation="same"
    ),
    "is unsure": lambda each: honest(each, recommendation="unsure"),
    "writes prose alone": always("They all say the same."),
    "is cut off": lambda each: honest(each, differences=[])[:40],
    "is silent": always(" "),
}


def agreeing(judge: Judge) -> set[str]:
    """Return the quartets of which a judge's reply is read as agreement."""
    found = {each.id: read_comparison(judge(each), LABELS, each.answers) for each in ALL}
    return {name for name, comparison in found.items() if comparison and comparison.agree}


async def skipped(judge: Judge) -> set[str]:
    """Return the quartets whose reviews `auto` skips, run through the pipeline."""
    found: set[str] = set()
    for each in ALL:
        answers = dict(zip((f"stage1.1:{name}" for name in FOUR), each.answers, strict=True))
        scripted = ScriptedCouncil(script={**answers, "judge": judge(each)})
        depth = (await scripted.run(auto())).message.depth
        if depth and depth.ran == "quick":
            found.add(each.id)
    return found


async def test_exactly_what_agrees_is_skipped_and_nobody_talks_a_judge_into_more() -> None:
    """Answers in other words are; what a bad judge misses, the audit has to find."""
    assert await skipped(honest) == {each.id for each in ALL if each.agree}
    assert await skipped(always(BLIND)) == {each.id for each in ALL if each.kind != "hostile"}


@rows("judge", SURE)
def test_a_verdict_is_read_wherever_it_is(judge: str) -> None:
    """An answer's own verdict beside it is never taken for the judge's."""
    assert agreeing(SURE[judge]) == {each.id for each in ALL if each.agree}


@rows("judge", UNSURE)
def test_doubt_is_never_agreement(judge: str) -> None:
    """Where a point differs that matters, no odd verdict is read as agreement."""
    assert agreeing(UNSURE[judge]) <= {each.id for each in ALL if each.agree}
