"""An evaluation of models of known quality, carried out without a provider or a journal."""

from bot.evaluation.plan import EvalPlan
from bot.evaluation.runner import Evaluated
from bot.evaluation.summary import Summary, summarize
from council.brief import Brief
from council.document.conversation import Source
from council.evaluation import arms
from council.evaluation.arms import ItemAnswers
from council.evaluation.items import EvalItem
from council.evaluation.pilot import Piloted, pilot_item, piloted
from council.profile import Profile
from storage.journal.rows import RunRow
from tests.council.evaluation.known import CHAIR, KnownModels, answering, numbered
from tests.council.scripted import profile

CREATED = "2026-11-25T20:00:00.000Z"
QUALITY = {"openai/gpt-5": 0.7, "anthropic/claude": 0.5, "google/gemini": 0.3, CHAIR: 0.8}


async def sample(
    count: int = 24,
    *,
    models: KnownModels | None = None,
    seats: Profile | None = None,
    items: tuple[EvalItem, ...] | None = None,
    seed: int = 1,
    names: tuple[str, ...] | None = None,
) -> Summary:
    """Evaluate models of known quality on numbered questions."""
    council = seats or profile(*(name for name in QUALITY if name != CHAIR))
    known = models or KnownModels(QUALITY, seed=seed, mends=0.2, spoils=0.1)
    asked = items or numbered(count)
    working = answering(known, council, seed=seed)
    plan = EvalPlan(
        items=asked,
        profile=council,
        arms=names or arms.default_arms(council),
        seed=seed,
        baseline=arms.BEST,
        margin=0.05,
        pilot=6,
        drop_saturated=False,
    )
    chosen: Piloted = piloted(
        [member.name for member in council.members],
        [await pilot_item(working, item) for item in asked[:6]],
    )
    answers: list[ItemAnswers] = [await working.answer(item, plan.arms, chosen.best) for item in asked]
    judged = [
        verdict
        for item, given in zip(asked, answers, strict=True)
        for verdict in await working.judged(item, given, plan.baseline)
    ]
    run = RunRow(
        id=plan.id,
        entry_key=plan.id,
        conversation_id=plan.id,
        origin=Source(platform="evaluation"),
        brief=Brief(question="?", profile=council, seed=seed, boundary="0" * 16),
        created_at=CREATED,
    )
    return summarize(plan, Evaluated(run, chosen, answers, judged, None, sum(known.calls.values())))
