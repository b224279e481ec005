"""Replies to objections: the form in which authors answer, and what becomes of their answers."""

import json
import re
from collections.abc import Callable

from council.calls import Call, MemorySteps
from council.document.conversation import AssistantMessage
from council.document.results import ObjectionReply, ReviewPoint, Severity, Stage2_5Result, Stage2Result
from council.errors import Failure
from council.profile import Member, Profile
from council.replies import PeerObjection, listed, objections_about, read_replies
from tests.council.scripted import (
    FOUR,
    Script,
    ScriptedCouncil,
    in_form,
    labels_in,
    mark_in,
    objections_in,
    profile,
)
from tests.pairs import data, rows

MARK = "0123456789abcdef"
THREE = FOUR[:3]
GPT = THREE[0]
STEP = f"stage2_5.1:{GPT}"


@rows(("line", "number", "holds", "reason"), data(__file__, "a_line_in_the_form_is_read"))
def test_a_line_in_the_form_is_read(line: str, number: int, holds: bool, reason: str) -> None:
    """Whatever marks the number and parts the reason."""
    read = read_replies(f"Let me check.\n\n{line}\n\n{MARK}\n\nKEEP", MARK, 3)
    assert read is not None
    assert read.verdicts == {number: (holds, reason)}


@rows(
    "line",
    [
        "1. partly holds: some of it.",
        "1. I agree.",
        "It holds: yes.",
        "4. holds: there is no such objection.",
        "holds 1: yes",
        "1. gilt: the sum is 12.",
        "",
    ],
)
def test_what_is_no_line_of_the_form_is_no_reply(line: str) -> None:
    """It is asked for once more, not guessed."""
    assert read_replies(f"{line}\n\n{MARK}\n\nKEEP", MARK, 3) is None


@rows(
    ("below", "answer"),
    [
        ("KEEP", None),
        ("**KEEP**", None),
        ("keep.", None),
        ("KEEP: it is right.", None),
        ("KEEP\n\nMy answer is right.", None),
        ("", None),
        ("Keep: the index.\nDrop: the cache.", "Keep: the index.\nDrop: the cache."),
        ("Keep\n- the index", "Keep\n- the index"),
        ("KEEP the data in one place.", "KEEP the data in one place."),
        ("KEEPING it is right.", "KEEPING it is right."),
        ("Twelve.\n\nAs the page says.", "Twelve.\n\nAs the page says."),
        (f"Twelve.\n\n{MARK}", "Twelve."),
        (f"Twelve, by {MARK} itself.", "Twelve, by itself."),
    ],
)
def test_what_follows_the_mark_is_the_answer_or_keeps_it(below: str, answer: str | None) -> None:
    """The word counts alone, or in capitals before a reason."""
    read = read_replies(f"1. holds: yes.\n\n{MARK}\n\n{below}", MARK, 1)
    assert read is not None
    assert read.answer == answer


@rows(
    ("marked", "is_read"),
    [
        (MARK, True),
        (f"**{MARK}**", True),
        (f"`{MARK}`", True),
        (f"[{MARK}]", True),
        (MARK.upper(), False),
        (MARK[:-1], False),
        (f"{MARK}0", False),
        (f"The mark: {MARK}", False),
        ("---", False),
    ],
)
def test_the_mark_counts_exactly_and_alone_on_its_line(marked: str, is_read: bool) -> None:
    """Nothing that is like it does."""
    read = read_replies(f"1. holds: yes.\n\n{marked}\n\nTwelve.", MARK, 1)
    assert (read is not None) == is_read


def test_a_reply_in_a_code_block_is_read_and_an_example_of_the_prompt_is_none() -> None:
    """Small models write the whole form so; one that repeats the form has checked nothing."""
    read = read_replies(f"```text\n1. holds: yes.\n{MARK}\nTwelve.\n```", MARK, 1)
    assert read is not None
    assert (read.verdicts, read.answer) == ({1: (True, "yes.")}, "Twelve.")
    ours = "in this form:\n\n1. holds: <how you checked it>"
    assert read_replies(f"1. holds: <how you checked it>\n\n{MARK}\n\nTwelve.", MARK, 1, ours) is None


@rows(
    ("fields", "verdicts", "answer"),
    [
        (
            {"replies": [{"objection": 1, "holds": True, "reason": "so"}], "answer": "12"},
            {1: (True, "so")},
            "12",
        ),
        (
            {"replies": [{"objection": "2", "holds": "false", "reason": "no"}], "answer": None},
            {2: (False, "no")},
            None,
        ),
        (
            {"replies": [{"holds": False}, {"holds": True}], "answer": "KEEP"},
            {1: (False, ""), 2: (True, "")},
            None,
        ),
        (
            {"replies": [{"objection": 1, "holds": True}], "answer": {"response": {}}},
            {1: (True, "")},
            '{"response":{}}',
        ),
    ],
)
def test_the_same_is_read_from_json(
    fields: dict[str, object], verdicts: dict[int, tuple[bool, str]], answer: str | None
) -> None:
    """Whole, in a block, or among words."""
    for text in (json.dumps(fields), f"Here:\n```json\n{json.dumps(fields)}\n```"):
        read = read_replies(text, MARK, 3)
        assert read is not None
        assert (read.verdicts, read.answer) == (verdicts, answer)


@rows(
    "text",
    [
        '{"replies": [{"objection": 1, "holds": true, "reason": "so"}], "ans',
        '{"replies": [], "answer": "12"}',
        '{"answer": "12"}',
        '{"replies": "none", "answer": "12"}',
    ],
)
def test_json_without_replies_or_cut_off_before_its_answer_is_not_read(text: str) -> None:
    """It is asked for once more."""
    assert read_replies(text, MARK, 1) is None


def test_objections_come_by_gravity_and_those_without_ground_last() -> None:
    """Numbered as the author reads them, without the critics' names."""
    said: list[tuple[Severity | None, bool | None]]
    said = [("low", None), ("high", False), (None, True), ("high", None)]
    points = [
        ReviewPoint(
            label="Response A",
            kind="objection",
            text=f"Point\n{at}.",
            severity=severity,
            source="structured",
            quote="two words" if found is not None else None,
            found=found,
        )
        for at, (severity, found) in enumerate(said)
    ]
    praise = ReviewPoint(label="Response A", kind="strength", text="Good.", source="structured")
    other = points[0].model_copy(update={"label": "Response B"})
    review = Stage2Result(model="a/one", ranking="", parsed_ranking=[], points=[*points, praise, other])
    assert [*listed(objections_about("Response A", [review]))] == [
        "1. [high] Point 3.",
        "2. Point 2. (About your words \u201ctwo words\u201d)",
        "3. [low] Point 0.",
        "4. [high] Point 1. (It quotes words that aren't in your answer: \u201ctwo words\u201d)",
    ]
    assert [*listed([PeerObjection("b", "So.")])] == ["1. So."]


# Runs ---------------------------------------------------------------------------------------------


def objecting(text: str, **fields: object) -> Callable[[Call], str]:
    """Return a reviewer that says this, as JSON, against every answer that it reads."""

    def review(call: Call) -> str:
        critique = {"text": text, "severity": "high", **fields}
        labels = labels_in(call)
        reviews = [{"label": each, "strengths": "Short.", "critiques": [critique]} for each in labels]
        return json.dumps({"reviews": reviews, "ranking": labels})

    return review


def replying(verdict: str, answer: str = "KEEP") -> Callable[[Call], str]:
    """Return an author that says this of every objection, and then its answer, as text."""
    return lambda call: in_form(call, answer, verdict)


def of(message: AssistantMessage, name: str = GPT) -> Stage2_5Result:
    return next(each for each in message.stage2_5 or () if each.model == name)


def council(script: dict[str, Script], *, steps: MemorySteps | None = None) -> ScriptedCouncil:
    """Return members whose corrections are scripted as they are sent."""
    whole: dict[str, Script] = {
        "stage2": objecting("It is wrong."),
        "stage2_5": replying("doesn't hold"),
    }
    return ScriptedCouncil(script={**whole, **script}, as_written=True, steps=steps or MemorySteps())


async def test_an_objection_that_holds_changes_the_answer_unless_its_author_keeps_it() -> None:
    """The replies are on record, each with its critic and the objection, and so is the answer."""
    scripted = council({STEP: replying("holds", "It is right now.")})
    message = (await scripted.run(profile(*THREE))).message
    message.check()
    result = of(message)
    assert result.corrected_response == "It is right now."
    assert result.replies == [
        ObjectionReply(critic=critic, objection="It is wrong.", holds=True, reason="it says so itself.")
        for critic in THREE[1:]
    ]
    assert AssistantMessage.model_validate(message.dump()) == message
    message = (await council({STEP: replying("holds")}).run(profile(*THREE))).message
    assert of(message).corrected_response == of(message).original_response
    assert [each.holds for each in of(message).replies or ()] == [True, True]


async def test_an_answer_below_nothing_that_holds_is_stored_nowhere() -> None:
    """It counts as KEEP."""
    scripted = council({STEP: replying("doesn't hold", "Another answer altogether.")})
    message = (await scripted.run(profile(*THREE))).message
    result = of(message)
    assert result.corrected_response == result.original_response
    assert (result.changed, result.fallback, result.maintained) == (False, None, False)
    assert [each.holds for each in result.replies or ()] == [False, False]
    assert "Another answer altogether" not in json.dumps(message.dump())
    assert "Another answer altogether" not in scripted.prompt("stage3.1:chair/man:chairman")


@rows("said", ["Just another answer.", "1. holds: yes.\n\nTwelve.", "KEEP: it is right."])
async def test_a_reply_without_the_mark_is_asked_for_once_more(said: str) -> None:
    """Then the answer is kept, with its cause; the mark is given again."""
    scripted = council({STEP: said, f"{STEP}:again": replying("holds", "Twelve.")})
    message = (await scripted.run(profile(*THREE))).message
    assert of(message).corrected_response == "Twelve."
    [again] = [call for call in scripted.calls if call.step == f"{STEP}:again"]
    assert "corrected answer" in again.messages[-1]["content"][-600:]
    assert mark_in(again) == mark_in(next(call for call in scripted.calls if call.step == STEP))

    kept = (await council({STEP: said, f"{STEP}:again": said}).run(profile(*THREE))).message
    assert of(kept).fallback == Failure(cause="unanswered")
    assert of(kept).corrected_response == of(kept).original_response
    assert of(kept).replies is None


async def test_the_mark_is_in_no_prompt_before_and_in_nothing_that_is_stored() -> None:
    """Whoever copies it into a text can't have it read there: fences and records are without it."""
    marks = set[str]()

    def copying(call: Call) -> str:
        marks.add(mark_in(call))
        return (
            f"{in_form(call, f'Twelve.{chr(10)}```{chr(10)}{mark_in(call)}{chr(10)}KEEP{chr(10)}```')}"
        )

    scripted = council({"stage2_5": copying})
    message = (await scripted.run(profile(*THREE, max_rounds=2))).message
    [mark] = marks
    assert mark not in json.dumps(message.dump())
    for call in scripted.calls:
        is_correction = call.step.startswith("stage2_5")
        said = "\n".join(each["content"] for each in call.messages)
        assert said.count(mark) == is_correction


@rows("mode", ["full", "extracted"])
async def test_without_an_objection_everybody_is_asked_in_full_mode(mode: str) -> None:
    """An author may find an error itself; its reply is its own objection."""

    def content(call: Call) -> str:
        reviews = [
            {"label": each, "strengths": "Short.", "critiques": list[str]()} for each in labels_in(call)
        ]
        return json.dumps({"reviews": reviews, "ranking": labels_in(call)})

    scripted = council(
        {
            "stage2": content,
            "stage2_5": lambda call: f"{mark_in(call)}\nKEEP",
            STEP: replying("holds", "Twelve."),
        }
    )
    message = (await scripted.run(profile(*THREE, critique_mode=mode))).message
    if mode == "extracted":
        assert scripted.asked("stage2_5") == []
        return
    assert sorted(scripted.asked("stage2_5")) == sorted(THREE)
    assert "None of your peers objects" in scripted.prompt(STEP)
    assert of(message).corrected_response == "Twelve."
    assert of(message).replies == [
        ObjectionReply(critic=GPT, objection="it says so itself.", holds=True)
    ]
    assert of(message, THREE[1]).replies == []


async def test_points_are_answered_like_reviews() -> None:
    """In `extracted` mode, the points that are handed over are the objections."""
    scripted = council({STEP: replying("holds", "Twelve.")})
    message = (await scripted.run(profile(*THREE, critique_mode="extracted"))).message
    message.check()
    [call] = [call for call in scripted.calls if call.step == STEP]
    assert objections_in(call) == "1. [high] It is wrong."
    assert "Peer evaluation" not in call.messages[-1]["content"]
    assert of(message).corrected_response == "Twelve."
    assert [(each.critic, each.holds) for each in of(message).replies or ()] == [(THREE[1], True)]
    assert message.iteration is not None
    [refined] = [each for each in message.iteration.rounds[0].refinements if each.model == GPT]
    assert refined.replies == of(message).replies


async def test_rounds_keep_their_own_replies() -> None:
    """Those beside round 1's reviews are round 1's."""
    scripted = council(
        {STEP: replying("holds", "Twelve it is."), f"stage2_5.2:{GPT}": replying("doesn't hold")}
    )
    message = (await scripted.run(profile(*THREE, max_rounds=2))).message
    message.check()
    assert message.iteration is not None
    told = [
        [reply.holds for reply in each.replies or ()]
        for held in message.iteration.rounds
        for each in held.refinements
        if each.model == GPT
    ]
    assert told == [[True, True], [False, False]]
    assert [each.holds for each in of(message).replies or ()] == [True, True]
    assert of(message).corrected_response == "Twelve it is."


def structured(*, web: bool = False) -> Profile:
    members = tuple(Member(model=name, structured=True) for name in THREE)
    return Profile(members=members, chairman=Member(model="chair/man"), web=web)


async def test_structured_members_reply_as_json() -> None:
    """By a schema of the same form, which is asked for in words, too."""
    scripted = council({"stage2_5": replying("holds", "Twelve.")})
    message = (await scripted.run(structured())).message
    [call] = [call for call in scripted.calls if call.step == STEP]
    assert call.schema is not None
    assert [*json.loads(json.dumps(call.schema))["properties"]] == ["replies", "answer"]
    assert "corrected answer" in call.messages[-1]["content"][-600:]
    assert not re.search("this mark alone", call.messages[-1]["content"])
    assert of(message).corrected_response == "Twelve."
    assert [each.holds for each in of(message).replies or ()] == [True, True]
