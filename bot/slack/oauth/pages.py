"""The pages that somebody who installs the app sees: plain HTML that loads nothing.

Every text is escaped. The addresses of these pages carry one-time codes, so nothing keeps them or
passes them on.
"""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from bot.slack.manifest import OPTIONAL, REQUIRED
from bot.view.wording import slack_install as wording
from bot.view.wording.slack import SCOPES

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_PAGE = Markup("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>
body {{ font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 4rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.5rem; }}
a.button {{ background: #4a154b; color: #fff; padding: .7rem 1.2rem; border-radius: .3rem; }}
a.button {{ text-decoration: none; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
""")


def offer(address: str, with_threads: str, days: int) -> str:
    """Return the page that leads to Slack, with or without the permission to read threads."""
    button = Markup('<p><a class="button" href="{}">{}</a></p>').format(address, wording.BUTTON)
    other = Markup('<p><a href="{}">{}</a></p>').format(with_threads, wording.WITH_THREADS)
    leaves = wording.what_leaves(days)
    return _page(wording.TITLE, _paragraphs(wording.OFFER, leaves), button, other)


def installed(workspace: str, scopes: Sequence[str]) -> str:
    """Return the page that says that the app is installed, and which permissions it lacks."""
    needed, missed = REQUIRED - {*scopes}, OPTIONAL - {*scopes}
    parts = [_paragraphs(wording.installed_in(workspace))] if not needed else []
    for names, what in ((needed, wording.NEEDS), (missed, wording.WORKS_WITHOUT)):
        if names:
            lines = wording.lacking((name, SCOPES[name]) for name in sorted(names))
            items = Markup().join(Markup("<li>{}</li>").format(line) for line in lines)
            parts.append(_paragraphs(what) + Markup("<ul>{}</ul>").format(items))
    if needed or missed:
        parts.append(_paragraphs(wording.ALLOW_ALL))
    if not needed:
        parts.append(_paragraphs(wording.INVITE, wording.MAY_BE_CLOSED))
    return _page(wording.INSTALLED, *parts)


def failed(why: str, again: str) -> str:
    """Return the page that says why nothing was installed, with the address to start again."""
    link = Markup('<p><a href="{}">{}</a></p>').format(again, wording.AGAIN)
    return _page(wording.FAILED, _paragraphs(why, wording.NOTHING_CHANGED), link)


def _paragraphs(*texts: str) -> Markup:
    return Markup().join(Markup("<p>{}</p>\n").format(text) for text in texts)


def _page(title: str, *parts: Markup) -> str:
    return str(_PAGE.format(title=title, body=Markup().join(parts)))
