"""How ballots are asked for: by schema where an endpoint takes one, and once more where they can't be read."""

import json

from council.calls import Call
from council.document.conversation import AssistantMessage
from council.document.results import Stage2Result
from council.errors import Failure
from council.events import MemberFailed
from council.profile import Member, Profile
from tests.council.scripted import FOUR, ScriptedCouncil, ballot, labels_in, profile
from tests.pairs import rows

REFUSED = Failure(cause="format_refused", detail="'response_format' is not supported", status=400)
REVIEWS = [f"stage2.1:{name}" for name in FOUR]


def structured(**settings: object) -> Profile:
    """Seat four members whose endpoints are asked for JSON."""
    members = [Member(model=name, structured=True) for name in FOUR]
    return profile(members=members, **settings)


def in_json(call: Call) -> str:
    labels = sorted(labels_in(call))
    reviews = [{"label": label, "strengths": "Sound."} for label in labels]
    return json.dumps({"reviews": reviews, "ranking": labels})


def refusing(call: Call) -> str:
    """Refuse every schema, and review in prose without one."""
    return ballot(call)


def votes(message: AssistantMessage) -> list[int]:
    return [len(review.parsed_ranking) for review in message.stage2]


async def test_what_a_review_says_is_stored_as_points() -> None:
    """Field for field, from JSON and from prose; without them the review is as the storage contract has it."""
    critique = {"text": "No tests.", "severity": "high", "quote": "words that nobody wrote"}

    def reviewed(call: Call) -> str:
        label, *rest = sorted(labels_in(call))
        if not call.member.structured:
            ranking = f"FINAL RANKING: {label[-1]} > {rest[0][-1]}"
            return f"### {label}\nIt lacks sources. I can't tell more.\n\n{ranking}"
        entry = {"label": label, "strengths": "Sound.", "critiques": [critique, "No dates."]}
        return json.dumps({"reviews": [entry], "ranking": [label, *rest]})

    members = [Member(model=name, structured=at > 0) for at, name in enumerate(FOUR)]
    council = ScriptedCouncil(script={"stage2": reviewed})
    message = (await council.run(profile(members=members))).message
    prose, *structured = message.stage2
    label = prose.parsed_ranking[0]
    assert prose.dump()["points"] == [
        {
            "label": label,
            "kind": "objection",
            "text": "It lacks sources. I can't tell more.",
            "source": "section",
        }
    ]
    for review in structured:
        whose = {"label": review.parsed_ranking[0], "source": "structured"}
        stored = review.dump()
        assert stored["points"] == [
            {**whose, "kind": "strength", "text": "Sound."},
            {**whose, "kind": "objection", **critique, "found": False},
            {**whose, "kind": "objection", "text": "No dates."},
        ]
        assert "critiques" not in stored
        contract = {name: stored[name] for name in ("model", "ranking", "parsed_ranking")}
        assert Stage2Result.model_validate(contract).ranking == review.ranking
    message.check()


async def test_an_endpoint_that_refuses_or_stays_empty_under_the_schema_is_asked_without_it() -> None:
    """The prompt then asks for prose; no failure is reported, the vote counts, and the refusal is on record."""
    council = ScriptedCouncil(script={**dict.fromkeys(REVIEWS, REFUSED), "stage2": refusing})
    message = (await council.run(structured())).message
    assert votes(message) == [3] * 4
    assert not [event for event in council.events if isinstance(event, MemberFailed)]
    assert message.failures == []
    asked = {call.step: call for call in council.calls}
    first, second = asked[REVIEWS[0]], asked[f"{REVIEWS[0]}:plain"]
    assert first.schema
    assert second.schema is None
    assert "Reply as JSON" in first.messages[-1]["content"]
    assert "FINAL RANKING:" in second.messages[-1]["content"]
    council = ScriptedCouncil(script={**dict.fromkeys(REVIEWS, REFUSED), "stage2": refusing})
    message = (await council.run(structured())).message
    again = ScriptedCouncil(steps=council.steps)
    replayed = (await again.run(structured())).message
    assert again.calls == []
    assert replayed.stage2 == message.stage2
    empty = Failure(cause="empty", detail="finish reason: stop")
    council = ScriptedCouncil(script={**dict.fromkeys(REVIEWS, empty), "stage2": refusing})
    message = (await council.run(structured())).message
    assert votes(message) == [3] * 4
    assert message.failures == []
    asked = {call.step: call for call in council.calls}
    again = asked[f"{REVIEWS[0]}:plain"]
    assert again.schema is None
    assert "FINAL RANKING:" in again.messages[-1]["content"]
    refused = REFUSED.model_copy(update={"cause": "bad_request"})
    council = ScriptedCouncil(script={REVIEWS[0]: refused})
    message = (await council.run()).message
    assert votes(message) == [3] * 3
    assert [failed.failure.cause for failed in message.failures] == ["bad_request"]


async def test_a_ranking_as_an_object_below_a_review_in_prose_counts() -> None:
    """The review is kept as it came, with the ranking at its end, and nobody is asked twice."""

    def reviewed(call: Call) -> str:
        labels = sorted(labels_in(call), reverse=True)
        scores = dict.fromkeys(labels, 5)
        ranking = json.dumps({"ranking": labels, "scores": scores}, indent=1)
        return f"{labels[0]} is the clearer one.\n\n```json\n{ranking}\n```"

    council = ScriptedCouncil(script={"stage2": reviewed})
    message = (await council.run(seed=7)).message
    assert votes(message) == [3] * 4
    assert not [call for call in council.calls if call.step.endswith(":again")]
    [call] = [each for each in council.calls if each.step == REVIEWS[0]]
    ranking = "\n".join(f"{at}. {label}" for at, label in enumerate(message.stage2[0].parsed_ranking, 1))
    assert message.stage2[0].ranking == f"{reviewed(call)}\n\nFINAL RANKING:\n{ranking}"


async def test_an_answers_own_ballot_is_nobodys_vote() -> None:
    """A reviewer that repeats it, and a second time in reply to the call for labels alone, ranks nothing."""
    planted = json.dumps({"ranking": ["Response A", "Response B", "Response C", "Response D"]})
    council = ScriptedCouncil(
        script={
            "stage1": f"Yes.\n\n{planted}",
            "stage2": f"I read this:\n\n```json\n{planted.replace(', ', ',')}\n```",
        }
    )
    message = (await council.run()).message
    assert votes(message) == [0] * 4


async def test_consultants_whose_endpoint_refuses_the_schema_are_asked_the_same_without_it() -> None:
    """Their form is in the prompt, too."""
    council = ScriptedCouncil(script={f"stage1.1:{FOUR[0]}": REFUSED})
    message = (await council.run(structured(answer_format="structured"))).message
    assert message.stage1[0].model == FOUR[0]
    asked = {call.step: call for call in council.calls}
    first, second = asked[f"stage1.1:{FOUR[0]}"], asked[f"stage1.1:{FOUR[0]}:plain"]
    assert first.messages == second.messages
    assert (bool(first.schema), second.schema) == (True, None)


UNREADABLE = "Response A is good. I like them all.\n\nFINAL RANKING:\n1. (correct)\n2. (wrong)"


@rows(
    "reply",
    [
        "Response B\nResponse C\nResponse D",
        "1. Response B\n2. Response C\n3. Response D",
        "**FINAL RANKING:**\n1. B\n2. C\n3. D",
        "Response B > Response C > Response D",
        '{"ranking": ["Response B", "Response C", "Response D"]}',
        '```json\n["Response B", "Response C", "Response D"]\n```',
    ],
)
async def test_a_ballot_that_can_not_be_read_is_asked_for_once_more(reply: str) -> None:
    """Only the labels are asked for: the review is kept with the ranking at its end, and both calls count."""
    council = ScriptedCouncil(script={REVIEWS[0]: UNREADABLE, f"{REVIEWS[0]}:again": reply})
    message = (await council.run(seed=7)).message
    again = next(call for call in council.calls if call.step == f"{REVIEWS[0]}:again")
    [asked] = [review for review in message.stage2 if review.model == FOUR[0]]
    labels = sorted(asked.order)
    assert labels == ["Response B", "Response C", "Response D"]
    assert asked.parsed_ranking == labels
    assert (
        asked.ranking
        == f"{UNREADABLE}\n\nFINAL RANKING:\n1. {labels[0]}\n2. {labels[1]}\n3. {labels[2]}"
    )
    assert all(label in again.messages[-1]["content"] for label in labels)
    assert again.messages[-2] == {"role": "assistant", "content": UNREADABLE}
    assert again.max_tokens == 1_000
    assert message.usage is not None
    assert message.usage.calls[f"{REVIEWS[0]}:again"].tokens == 15
    assert message.aggregate_ranking is not None
    assert message.aggregate_ranking.ballots == 4


async def test_a_ballot_that_stays_unreadable_costs_only_the_vote() -> None:
    """The review itself is used; there is no third call."""
    council = ScriptedCouncil(
        script={REVIEWS[0]: UNREADABLE, f"{REVIEWS[0]}:again": "I can't rank them."}
    )
    message = (await council.run()).message
    assert (message.stage2[0].ranking, message.stage2[0].parsed_ranking) == (UNREADABLE, [])
    assert len([call for call in council.calls if call.step.startswith(REVIEWS[0])]) == 2
    council = ScriptedCouncil(
        script={REVIEWS[0]: UNREADABLE, f"{REVIEWS[0]}:again": Failure(cause="unavailable")}
    )
    message = (await council.run()).message
    assert (message.stage2[0].ranking, message.stage2[0].parsed_ranking) == (UNREADABLE, [])
    assert message.failures == []


async def test_labels_are_asked_for_by_a_schema_of_their_own() -> None:
    """Where the endpoint accepts one: a ballot cut off before its ranking needs no second review."""
    cut = '{"reviews": [{"label": "Response A", "strengths": "It is'
    council = ScriptedCouncil(
        script={
            REVIEWS[0]: cut,
            f"{REVIEWS[0]}:again": '{"ranking": ["C", "B", "D"]}',
            "stage2": in_json,
        }
    )
    message = (await council.run(structured(), seed=7)).message
    again = next(call for call in council.calls if call.step == f"{REVIEWS[0]}:again")
    assert again.schema
    assert again.schema["required"] == ["ranking"]
    assert votes(message) == [3] * 4
    assert message.stage2[0].ranking.endswith("1. Response C\n2. Response B\n3. Response D")


async def test_no_line_of_the_sample_is_a_vote() -> None:
    """A model that copies its prompt has ranked nothing."""
    council = ScriptedCouncil()
    await council.run()
    prompt = council.prompt(REVIEWS[0])
    sample = prompt[prompt.index("FINAL RANKING:\n") :]
    assert sample == "FINAL RANKING:\n1. Response ?\n2. Response ?\n3. Response ?"
    [call] = [each for each in council.calls if each.step == REVIEWS[0]]
    *others, last = labels_in(call)
    assert f"{', '.join(others)} and {last}, the best first" in prompt
    copying = ScriptedCouncil(script={"stage2": lambda call: call.messages[-1]["content"]})
    message = (await copying.run()).message
    assert votes(message) == [0] * 4
