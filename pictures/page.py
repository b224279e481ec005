"""Take pictures of a transcript's page as a reader sees it."""

from pathlib import Path

from playwright.sync_api import FloatRect, Locator, Page, sync_playwright

from pictures.render import CHROMIUM, NoPicture, shrink

WIDTH = 900
HEIGHT = 1180
MARGIN = 32


def photograph(html: str, folder: Path) -> list[Path]:
    """Write pictures of a page: down to the answer, a member's tab, and its correction."""
    beginning, member, changes = (
        folder / f"transcript-{name}.png" for name in ("answer", "member", "changes")
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
        page.locator(f'.tabs a[href="#{changed.get_attribute("id")}"]').click()
        page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")  # a clip counts from the page's top
        answer, members = (_box(page.locator(part).first) for part in (".answer", ".members"))
        correction = _box(changed.locator(".part", has=page.locator("ins")).first)
        _photograph(page, beginning, 0, answer["y"] + answer["height"] + MARGIN)
        _photograph(page, member, answer["y"] + answer["height"], members["y"] + HEIGHT)
        _photograph(
            page, changes, correction["y"] - MARGIN, correction["y"] + correction["height"] + MARGIN
        )
        browser.close()
    for picture in (beginning, member, changes):
        shrink(picture)
    return [beginning, member, changes]


def _photograph(page: Page, picture: Path, top: float, end: float) -> None:
    clip = FloatRect(x=0, y=top, width=WIDTH, height=end - top)
    page.screenshot(path=picture, full_page=True, clip=clip)


def _box(part: Locator) -> FloatRect:
    box = part.bounding_box()
    if box is None:
        raise NoPicture("No picture: the page lacks the answer, or a member whose answer changed.")
    return box
