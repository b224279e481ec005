"""Web search: who may search, and what happens to cited pages."""

from council.calls import Call, Citation, Reply
from tests.council.scripted import FOUR, ScriptedCouncil, profile
from tests.pairs import rows

PAGE = Citation(url="https://a.example/x", title="A page")


class Searching(ScriptedCouncil):
    """A council whose replies cite a page wherever they may search."""

    async def ask(self, call: Call) -> Reply:
        """Answer as the script says."""
        reply = await super().ask(call)
        return reply.model_copy(update={"citations": (PAGE,)}) if call.web else reply


async def test_members_search_where_they_answer_and_correct_if_the_profile_says_so() -> None:
    """Reviewers and the chairman don't; it costs money, and sends text to another party."""
    council = Searching()
    message = (await council.run(profile(web=True))).message
    searching = {call.step.partition(".")[0] for call in council.calls if call.web}
    assert searching == {"stage1", "stage2_5"}
    assert {call.web for call in council.calls if call.step.startswith("stage2_5.")} == {True}
    assert all(answer.citations == (PAGE,) for answer in message.stage1)
    assert message.stage2_5 is not None
    assert all(correction.citations == (PAGE,) for correction in message.stage2_5)
    assert message.dump()["stage1"][0]["citations"] == [PAGE.model_dump()]  # pyright: ignore[reportIndexIssue, reportUnknownVariableType] - JSON
    council = Searching()
    message = (await council.run()).message
    assert not any(call.web for call in council.calls)
    assert not any(answer.citations for answer in message.stage1)


class Footnoting(ScriptedCouncil):
    """A council whose every reply cites a page of its own, named by its step."""

    async def ask(self, call: Call) -> Reply:
        """Answer as the script says."""
        page = Citation(url=f"https://a.example/{call.step.partition(':')[0]}")
        return (await super().ask(call)).model_copy(update={"citations": (page,)})


@rows(("ending", "cited"), [("", "stage2_5.1"), (" Indeed.", "stage2_5.2")])
async def test_over_several_rounds_the_pages_are_those_of_the_text(ending: str, cited: str) -> None:
    """Citations come from the last round that changed a word; an unchanged answer keeps its pages."""
    text = "Buy the bigger machine now, and shard by tenant once the writes outgrow it, as they will."
    texts = {1: text, 2: text + ending}
    council = Footnoting(
        script={f"stage2_5.{number}:{name}": texts[number] for number in texts for name in FOUR}
    )
    message = (await council.run(profile(web=True, max_rounds=2))).message
    assert message.stage2_5 is not None
    for correction in message.stage2_5:
        assert correction.corrected_response == text + ending
        assert [each.url for each in correction.citations] == [f"https://a.example/{cited}"]
