"""Web search: who may, and what becomes of the pages that are cited."""

from council.calls import Call, Citation, Reply
from tests.council.scripted import ScriptedCouncil, profile

PAGE = Citation(url="https://a.example/x", title="A page")


class Searching(ScriptedCouncil):
    """A council whose replies cite a page wherever they may search."""

    async def ask(self, call: Call) -> Reply:
        """Answer as the script says."""
        reply = await super().ask(call)
        return reply.model_copy(update={"citations": (PAGE,)}) if call.web else reply


async def test_members_search_where_they_answer_and_correct() -> None:
    """Neither reviewers nor the chairman do; the pages stand beside answer and correction."""
    council = Searching()
    message = (await council.run(profile(web=True))).message
    searching = {call.step.partition(".")[0] for call in council.calls if call.web}
    assert searching == {"stage1", "stage2_5"}
    assert {call.web for call in council.calls if call.step.startswith("stage2_5.")} == {True}
    assert all(answer.citations == (PAGE,) for answer in message.stage1)
    assert message.stage2_5 is not None
    assert all(correction.citations == (PAGE,) for correction in message.stage2_5)
    assert message.dump()["stage1"][0]["citations"] == [PAGE.model_dump()]  # pyright: ignore[reportIndexIssue, reportUnknownVariableType] - JSON


async def test_it_is_off_unless_a_profile_says_so() -> None:
    """It costs, and text leaves further."""
    council = Searching()
    message = (await council.run()).message
    assert not any(call.web for call in council.calls)
    assert not any(answer.citations for answer in message.stage1)
