"""What the project's HTML pages share: templates, head, style and content security policy.

A page is one file that needs nothing else: no network, and no script but its own.
"""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from jinja2 import Environment

SHARED = "bot.transcript"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing with what it shows."""

    caption: str
    drawing: Markup
    note: str


@cache
def environment(package: str = SHARED) -> "Environment":
    """Return the templates in a package's `page` folder, and below them those that all pages share."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(each, "page") for each in dict.fromkeys((package, SHARED))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def asset(name: str, package: str = SHARED) -> Markup:
    """Return a style or script of ours, to be written into a page."""
    return Markup((files(package) / "page" / name).read_text("utf-8"))  # noqa: S704 - ours


def policy(style: str, script: str | None = None) -> str:
    """Return a policy that lets only this style and this script through."""
    scripts = f"script-src '{_digest(script)}'; " if script is not None else ""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; {scripts}base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
