"""Photograph a transcript's page, as a reader sees it."""

from pathlib import Path

from playwright.sync_api import FloatRect, sync_playwright

from pictures.render import CHROMIUM, NoPicture

WIDTH = 900
HEIGHT = 1180  # title, question and answer


def photograph(html: str, folder: Path) -> list[Path]:
    """Write a picture of a page's beginning, and one of what a member's correction changed."""
    beginning, changes = folder / "transcript-answer.png", folder / "transcript-changes.png"
    with sync_playwright() as playwright:
        # Chromium refuses to run as root with its sandbox; the page holds only what this program made.
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, chromium_sandbox=False, args=["--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, locale="en-US")
        page.set_content(html)
        page.screenshot(path=beginning)
        changed = page.locator(".panel", has=page.locator("del, ins")).first
        page.locator(f'.tabs a[href="#{changed.get_attribute("id")}"]').click()
        panel = changed.bounding_box()
        if panel is None:
            raise NoPicture("No picture: the page shows no member.")
        clip = FloatRect({**panel, "height": min(panel["height"], HEIGHT)})
        page.screenshot(path=changes, full_page=True, clip=clip)
        browser.close()
    return [beginning, changes]
