"""The transcript's page, opened in a real browser."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from bot.transcript.html import to_html
from council.document.conversation import AssistantMessage, Conversation, UserMessage
from council.document.results import Stage1Result, Stage3Result
from pictures.render import CHROMIUM, HERE
from tests.bot.sample_run import (
    ANSWERS,
    ASSISTANT,
    CONVERSATION,
    CORRECTIONS,
    FINAL,
    GPT,
    QUESTION,
    TITLE,
)
from tests.bot.view.test_rounds import SEATS, held
from tests.council.consultations import DEBATE, consultation
from tests.council.scripted import profile

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed")
AXE = HERE / "node_modules" / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.exists(), reason="axe: npm ci --prefix pictures")

CLAUDE_TAB, GEMINI_TAB, GPT_TAB = (
    "claude-sonnet-4.5 1st",
    "gemini-2.5-pro (The Pragmatist) 2nd",
    "gpt-5 3rd",
)
WINDOW: ViewportSize = {"width": 1000, "height": 800}
HOSTILE = (
    '<script>window.struck = 1</script><style>body{display:none}</style><svg onload="window.struck=1"/>\n\n'
    '<img src="http://127.0.0.1:9/a.png" onerror="window.struck=1"> ![x](http://127.0.0.1:9/b.png) '
    "![y](data:image/svg+xml,<svg>) [z](javascript:window.struck=1) {{ 7*7 }} </div></section></main>\n\n"
    "</script><!-- --> \u202ereversed "
    + "W" * 3_000
    + "\n\n```html\n</pre><script>window.struck=1</script>\n```"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Chromium refuses to run as root with its sandbox; the page contains only what a test made.
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, chromium_sandbox=False, args=["--disable-gpu"]
        )
        yield browser
        browser.close()


class Reader:
    """Opens transcripts in one tab and notes whatever a page asks for or complains about."""

    def __init__(self, browser: Browser, folder: Path, *, script: bool = True) -> None:
        context = browser.new_context(java_script_enabled=script, viewport=WINDOW)
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._file = folder / "transcript.html"
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(error.message))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def begin(self) -> None:
        """Show nothing, in an ordinary window, and forget what was noted."""
        self.page.goto("about:blank")
        self.page.set_viewport_size(WINDOW)
        self.page.emulate_media(media="null", color_scheme="light")
        self.complaints.clear()
        self.requests.clear()

    def open(self, conversation: Conversation) -> Page:
        self._file.write_text(to_html(conversation), encoding="utf-8")
        self.page.goto(self._file.as_uri())
        return self.page

    def check(self) -> None:
        """Only the file itself was requested, and there was no complaint."""
        assert self.requests == [self._file.as_uri()]
        assert self.complaints == []


@pytest.fixture(scope="module")
def tab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """One tab for all tests of this module: each new one is a process of the browser's."""
    return Reader(browser, tmp_path_factory.mktemp("transcript"))


@pytest.fixture
def reader(tab: Reader) -> Iterator[Reader]:
    tab.begin()
    yield tab
    tab.check()


def conversation(*messages: object, title: str = TITLE) -> Conversation:
    """Return the sample's conversation with other messages."""
    return CONVERSATION.model_copy(update={"messages": [*messages], "title": title})


def shown_panels(page: Page) -> list[str]:
    """Return the headings of the panels that can be seen."""
    panels = page.locator(".panel").all()
    return [panel.locator("h3").inner_text() for panel in panels if panel.locator("h3").is_visible()]


def test_a_page_says_what_was_asked_and_who_answered(reader: Reader) -> None:
    """In landmarks and headings that a screen reader can jump to."""
    page = reader.open(CONVERSATION)
    assert page.title() == page.locator("h1").inner_text() == TITLE
    facts = page.locator("header dl").inner_text()
    for said in ("2026-01-20 10:30 UTC", "gpt-5", "4,950 tokens", "$0.019"):
        assert said in facts
    assert page.locator(".question blockquote").inner_text() == QUESTION
    assert FINAL.response.split("**")[1] in page.locator(".answer").inner_text()
    assert page.get_by_role("main").count() == page.get_by_role("banner").count() == 1
    assert page.get_by_role("heading", name="Ranking", level=3).is_visible()
    assert page.get_by_role("table", name="Ranking").locator("tbody tr").count() == 3
    assert "grok-4 did not answer: the provider was too busy, after 3 attempts" in page.inner_text(
        "main"
    )
    votes = page.get_by_role("img").first.get_attribute("aria-label")
    assert votes == (
        "claude-sonnet-4.5: 1 by B, 1 by C, mean 1; "
        "gemini-2.5-pro (The Pragmatist): 1 by A, 2 by C, mean 1.5; gpt-5: 2 by A, 2 by B, mean 2"
    )


def test_tabs_open_by_mouse_and_by_keyboard_and_no_closed_panel_is_reached(reader: Reader) -> None:
    """Arrows, Home and End move between them; none of the tab stops is in a closed panel."""
    page = reader.open(CONVERSATION)
    tabs = page.get_by_role("tab")
    assert tabs.all_inner_texts() == [CLAUDE_TAB, GEMINI_TAB, GPT_TAB]
    assert shown_panels(page) == ["anthropic/claude-sonnet-4.5"]
    page.get_by_role("tab", name=GPT_TAB).click()
    assert shown_panels(page) == ["openai/gpt-5"]
    for key, chosen in (
        ("ArrowRight", CLAUDE_TAB), ("ArrowRight", GEMINI_TAB), ("ArrowLeft", CLAUDE_TAB),
        ("ArrowLeft", GPT_TAB), ("Home", CLAUDE_TAB), ("End", GPT_TAB),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert page.locator(":focus").inner_text() == chosen
        assert page.get_by_role("tab", selected=True).all_inner_texts() == [chosen]
    page.keyboard.press("Tab")
    assert page.locator(":focus").get_attribute("role") == "tabpanel"
    assert page.get_by_role("tabpanel", name=GPT_TAB).is_visible()
    page.reload()
    del reader.requests[1:]
    where = """() => {
        const at = document.activeElement;
        return at === document.body ? null : [at.className || at.id || at.tagName, !!at.closest("[hidden]")];
    }"""
    stops: list[list[object]] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        stop = page.evaluate(where)
        if stop is None:
            break
        stops.append(stop)
    else:
        pytest.fail("the keyboard never left the page")
    assert ["skip", False] in stops
    assert len([name for name, _ in stops if name == "panel"]) == 1
    assert [stop for stop in stops if stop[1]] == []


GERMAN_ANSWER = (
    "## Kurz\n\nNehmt die gemeinsame Datenbank, und trennt nur den einen Kunden.\n\n#### Warum nicht alle\n\n"
    "Weil ihr vier Leute seid und 40 Kunden habt.\n\n# Zum Schluss\n\nFragt, was der Vertrag verlangt."
)
GERMAN = conversation(
    UserMessage(
        role="user",
        content="Sollen wir eine Datenbank je Kunde nehmen oder bei der gemeinsamen bleiben?",
    ),
    ASSISTANT.model_copy(
        update={"stage3": FINAL.model_copy(update={"response": GERMAN_ANSWER, "notes": None})}
    ),
)
KINDS = {"English": CONVERSATION, "German": GERMAN}


@needs_axe
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_to_complain_of(reader: Reader, kind: str) -> None:
    """With every tab opened in turn: WCAG's rules and axe's best practices."""
    page = reader.open(KINDS[kind])
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for tab in page.get_by_role("tab").all():
        tab.click()
        found = page.evaluate("async () => (await axe.run()).violations")
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_each_text_has_its_headings_and_its_language(reader: Reader) -> None:
    """Whatever levels a model wrote; the page's own words are English, and what is in another language says so."""
    page = reader.open(GERMAN)
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map((each) => +each.tagName[1])"
    )
    assert len(levels) > 12
    assert [after for before, after in pairwise(levels) if after > before + 1] == []
    names = [page.locator(f".answer h{level}").all_inner_texts() for level in (4, 5)]
    assert names == [["Kurz", "Zum Schluss"], ["Warum nicht alle"]]
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator(".question blockquote").get_attribute("lang") == "de"
    assert page.locator(".answer .prose").first.get_attribute("lang") == "de"
    assert page.locator(".panel .prose[lang]").count() == 0


def test_without_script_and_in_print_every_panel_is_open(
    browser: Browser, tmp_path: Path, reader: Reader
) -> None:
    """The tabs link to them, and are left out on paper."""
    everybody = ["anthropic/claude-sonnet-4.5", "google/gemini-2.5-pro (The Pragmatist)", "openai/gpt-5"]
    plain = Reader(browser, tmp_path, script=False)
    page = plain.open(CONVERSATION)
    assert shown_panels(page) == everybody
    page.get_by_role("link", name=GPT_TAB).click()
    assert page.url.endswith("#question-1-member-3")
    page.context.close()

    page = reader.open(CONVERSATION)
    page.emulate_media(media="print")
    assert shown_panels(page) == everybody
    assert not page.locator(".tabs").is_visible()
    assert page.pdf().startswith(b"%PDF")


def test_what_a_correction_changed_is_marked_where_it_is_read(reader: Reader) -> None:
    """Struck through in the original, above; underlined in the correction, below; both are whole."""
    page = reader.open(CONVERSATION)
    page.get_by_role("tab", name=GPT_TAB).click()
    original, corrected = (
        page.locator(f".panel:visible .{part}-response") for part in ("original", "corrected")
    )
    assert original.locator(".prose").inner_text() == ANSWERS[GPT].response
    assert corrected.locator(".prose").inner_text() == (
        "9 words removed above, 19 words added here.\n\nMove the jobs that must recover half-way.\n\n"
        "Start with one job.\nLet a managed service run the cluster."
    )
    assert "Rewritten." in page.locator(".panel:visible").inner_text()
    drawn = page.get_by_role("img", name="9 words removed, 19 added").text_content() or ""
    assert "\u22129" in drawn
    assert "+19" in drawn
    removed, added = original.locator("del"), corrected.locator(".prose > :not(.facts) ins")
    assert removed.all_inner_texts() == ["them. Temporal retries each step and shows its history"]
    assert added.all_inner_texts() == [
        "the jobs that must recover half-way.",
        "Start with one job.",
        "Let a managed service run the cluster",
    ]
    first, second = removed.first.bounding_box(), added.first.bounding_box()
    assert first is not None
    assert second is not None
    assert first["y"] < second["y"]
    page.get_by_role("tab", name=CLAUDE_TAB).click()
    assert "The same, word for word." in page.locator(".panel:visible").inner_text()
    assert page.locator(".panel:visible").locator("ins, del").count() == 0


def test_hostile_texts_stay_texts(reader: Reader) -> None:
    """Whatever a person or a model writes, wherever it is shown."""
    answer = ANSWERS[GPT].model_copy(update={"response": HOSTILE})
    correction = CORRECTIONS[GPT].model_copy(
        update={"original_response": HOSTILE, "corrected_response": f"{HOSTILE} corrected"}
    )
    hostile = ASSISTANT.model_copy(
        update={
            "stage1": [answer, *ASSISTANT.stage1[1:]],
            "stage2": [each.model_copy(update={"ranking": HOSTILE}) for each in ASSISTANT.stage2],
            "stage2_5": [correction, *(ASSISTANT.stage2_5 or [])[1:]],
            "stage3": FINAL.model_copy(update={"response": HOSTILE}),
        }
    )
    page = reader.open(conversation(UserMessage(role="user", content=HOSTILE), hostile, title=HOSTILE))
    for tab in page.get_by_role("tab").all():
        tab.click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("window.struck") is None
    assert page.locator("img, iframe, object, body style, body link").count() == 0
    assert page.locator("body script").count() == 1
    hrefs = page.locator("a").evaluate_all("all => all.map(each => each.getAttribute('href'))")
    assert {href.partition(":")[0] for href in hrefs if not href.startswith("#")} == {"http"}
    assert "<script>window.struck = 1</script>" in page.locator(".answer").inner_text()
    assert "{{ 7*7 }} </div></section></main>" in page.locator(".answer").inner_text()


def test_a_page_fits_a_narrow_window_and_a_dark_one(reader: Reader) -> None:
    """Nothing is wider than a phone."""
    page = reader.open(CONVERSATION)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light


def test_consultations_show_their_case_and_how_sure_they_are(reader: Reader) -> None:
    """Pros beside cons where there is room, and a chart of confidence before and after."""
    answer = ANSWERS[GPT].model_copy(update={"consultation": consultation()})
    later = consultation(debate={**DEBATE, "round": 2})
    surer = later.model_copy(
        update={"confidence": later.confidence.model_copy(update={"score": 9, "reasoning": "Tested."})}
    )
    correction = CORRECTIONS[GPT].model_copy(update={"consultation": surer})
    message = ASSISTANT.model_copy(
        update={
            "stage1": [answer, *ASSISTANT.stage1[1:]],
            "stage2_5": [correction, *(ASSISTANT.stage2_5 or [])[1:]],
        }
    )
    page = reader.open(conversation(UserMessage(role="user", content=QUESTION), message))
    before = consultation().confidence.score
    said = page.get_by_role("img").last.get_attribute("aria-label")
    assert said == f"gpt-5: {before} before, 9 after"
    page.get_by_role("tab", name=GPT_TAB).click()
    pros, cons = page.locator(".panel:visible .columns").first.locator("> div").all()[:2]
    assert pros.inner_text().startswith("Pros")
    assert cons.inner_text().startswith("Cons")
    first, second = pros.bounding_box(), cons.bounding_box()
    assert first is not None
    assert second is not None
    assert first["y"] == second["y"]
    assert "9 of 10" in page.locator(".panel:visible").inner_text()


def test_rounds_are_one_below_the_other_in_each_members_tab(reader: Reader) -> None:
    """Each with its own diff; the rankings say how answers moved and why it ended."""
    with ThreadPoolExecutor(1) as pool:  # Playwright has a loop of its own in this thread
        _, message = pool.submit(lambda: asyncio.run(held(profile(*SEATS, max_rounds=2)))).result()
    page = reader.open(conversation(UserMessage(role="user", content=QUESTION), message))
    assert page.locator(".finding h3").all_inner_texts() == ["Ranking", "Ranking, round 2", "Rounds"]
    page.get_by_role("tab", name="one").click()
    panel = page.locator(".panel:visible")
    assert panel.locator("h3").all_inner_texts() == ["a/one", "a/one, round 2"]
    assert panel.locator(".round").all_text_contents() == ["Round 1", "Round 2"]
    headings = ["Original response", "Corrected response"]
    headings += ["Response of round 1", "Corrected response"]
    assert panel.locator(":scope > .part > :first-child").all_text_contents() == headings
    moved = panel.locator(":scope > .part .facts").all_inner_texts()
    assert moved == [
        "3 words removed above, 10 words added here.",
        "11 words removed above, 13 words added here.",
    ]
    assert page.locator(".reviews h3").all_inner_texts() == ["Reviews", "Reviews, round 2"]
    assert [figure.inner_text().split("\n")[0] for figure in page.locator("figcaption").all()] == [
        "Where each reviewer put each answer, round 1",
        "Where each reviewer put each answer, round 2",
        "How much each member\u2019s corrections changed",
    ]


def test_old_and_sparse_documents_are_shown(reader: Reader) -> None:
    """Without corrections, ranking or title; questions are numbered where there are several."""
    old = AssistantMessage(
        role="assistant",
        stage1=[Stage1Result(model="a/b", response="Yes.")],
        stage2=[],
        stage3=Stage3Result(model="a/b", response="Yes indeed."),
    )
    asked = UserMessage(role="user", content="Now?\nOr later?")
    page = reader.open(conversation(asked, old, asked))
    assert page.get_by_role("heading", level=2).all_inner_texts() == ["Question 1", "Question 2"]
    assert page.locator(".question blockquote").first.inner_text() == "Now?\nOr later?"
    assert "Yes indeed." in page.locator("article").first.inner_text()
    assert "It has no answer." in page.locator("article").last.inner_text()
    assert page.get_by_role("tab").all_inner_texts() == ["b"]
    assert page.get_by_role("img").count() == 0


def test_the_first_run_dates_a_page_and_an_empty_one_has_its_head(reader: Reader) -> None:
    """Not when the answer was stored, nor when a later question was asked."""
    later = ASSISTANT.model_copy(update={"started_at": "2026-01-21T08:00:00.000Z"})
    asked = UserMessage(role="user", content=QUESTION)
    stored = conversation(asked, ASSISTANT, asked, later).model_copy(
        update={"created_at": "2026-01-20T10:31:30.000Z"}
    )
    assert "Started\n2026-01-20 10:30 UTC" in reader.open(stored).locator("header dl").inner_text()
    old = ASSISTANT.model_copy(update={"started_at": None})
    without = stored.model_copy(update={"messages": [asked, old]})
    assert "Started\n2026-01-20 10:31 UTC" in reader.open(without).locator("header dl").inner_text()
    page = reader.open(conversation())
    assert page.locator("h1").inner_text() == TITLE
    assert page.locator("article").count() == 0
    del reader.requests[1:]
