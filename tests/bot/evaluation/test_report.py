"""The page of an evaluation, opened in a real browser."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from bot.evaluation.report import to_page
from bot.evaluation.summary import Summary
from council.evaluation.arms import ArmAnswer, ItemAnswers
from council.evaluation.items import EvalItem
from pictures.render import CHROMIUM
from tests.bot.evaluation.sample import CREATED, sample
from tests.bot.transcript.test_html import AXE, needs_axe

TITLE = "What the council was worth on questions"
HOSTILE = '</style><script>window.struck = 1</script><img src="http://127.0.0.1:9/a.png">'


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A tab that notes what a page asks for."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, chromium_sandbox=False, args=["--disable-gpu"]
        )
        yield browser.new_page(viewport={"width": 1000, "height": 900})
        browser.close()


def struck(summary: Summary) -> Summary:
    """Return the same evaluation with a question and an answer that attack their reader."""
    item = EvalItem(id=HOSTILE, input=HOSTILE, target=(HOSTILE,))
    answer = ArmAnswer(HOSTILE, 1, 0.0, 1.0)
    evaluated = replace(
        summary.evaluated,
        answers=[*summary.evaluated.answers, ItemAnswers(HOSTILE, {"full": answer})],
    )
    plan = replace(summary.plan, items=(*summary.plan.items, item))
    return replace(summary, plan=plan, evaluated=evaluated)


pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed")


async def evaluated() -> Summary:
    """Evaluate twelve questions, and one that is hostile."""
    return struck(await sample(12))


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_self_contained_and_accessible(page: Page, tmp_path: Path, scheme: str) -> None:
    """Axe finds nothing, nothing is fetched, nothing of a question or an answer runs."""
    # Playwright holds this thread's loop.
    with ThreadPoolExecutor() as thread:
        summary = thread.submit(lambda: asyncio.run(evaluated())).result()
    file = tmp_path / "report.html"
    file.write_text(to_page(summary, TITLE, CREATED), encoding="utf-8")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(file.as_uri())
    page.locator("details").evaluate_all("all => all.forEach(each => each.open = true)")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run()).violations")
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
    assert asked == [file.as_uri()]
    assert page.evaluate("window.struck") is None
    for width in (1000, 390):  # charts and table scroll by themselves, the page doesn't
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() == TITLE
    charts = [page.locator("svg").nth(number) for number in range(3)]
    assert (charts[0].get_attribute("aria-label") or "").count("%") == 10
    assert charts[1].locator(".value").count() == 9
    assert charts[2].locator(".bar").count() == 10
    assert page.locator("details").count() == 13
