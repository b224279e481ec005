"""Take pictures of a transcript's page as a reader sees it."""

from pathlib import Path

from playwright.sync_api import FloatRect, Locator, Page, sync_playwright

from pictures.render import CHROMIUM, NoPicture, shrink
from pictures.runs import LOW, NARROW

WIDTH = 900
HEIGHT = 1180
MARGIN = 32
CHANGED = "which the calendar just allows"
"""A sentence in which single words were changed (bot/demo/texts)."""


def photograph(html: str, folder: Path) -> list[Path]:
    """Write pictures of a page: down to the answer, a member's correction, changed words."""
    beginning, changes, words = (
        folder / f"transcript-{name}.png" for name in ("answer", "changes", "words")
    )
    with sync_playwright() as playwright:
        # Chromium refuses to run as root with its sandbox; the page holds only what this program made.
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, chromium_sandbox=False, args=["--disable-gpu"]
        )
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=2, locale="en-US"
        )
        page.set_content(html)
        changed = page.locator(".panel", has=page.locator("del, ins")).first
        _open(page, changed)
        answer = _box(page.locator(".answer").first)
        correction = _box(changed.locator(".part", has=page.locator("ins")).first)
        _photograph(page, beginning, 0, answer["y"] + answer["height"] + MARGIN)
        _photograph(
            page, changes, correction["y"] - MARGIN, correction["y"] + correction["height"] + MARGIN
        )
        page.set_viewport_size({"width": NARROW, "height": HEIGHT})
        sentence = page.locator("p", has=page.locator("ins"), has_text=CHANGED)
        _open(page, page.locator(".panel", has=sentence))
        top = _box(sentence)["y"] - MARGIN / 2
        _photograph(page, words, top, top + LOW, NARROW)
        browser.close()
    for picture in (beginning, changes, words):
        shrink(picture)
    return [beginning, changes, words]


def _open(page: Page, panel: Locator) -> None:
    """Open a member's tab, and go back to the page's top, from which a clip counts."""
    page.locator(f'.tabs a[href="#{panel.get_attribute("id")}"]').click()
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")


def _photograph(page: Page, picture: Path, top: float, end: float, width: int = WIDTH) -> None:
    clip = FloatRect(x=0, y=top, width=width, height=end - top)
    page.screenshot(path=picture, full_page=True, clip=clip)


def _box(part: Locator) -> FloatRect:
    box = part.bounding_box()
    if box is None:
        raise NoPicture("No picture: the page lacks the answer, or a member whose answer changed.")
    return box
