"""Secrets hidden in texts, whatever repeats them: libraries' logs, providers' errors, tracebacks."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus, unquote

import orjson

HIDDEN = "[hidden]"
SHORT = 8
"""A secret of fewer characters is hidden only as a word: a key `x` would hide every x."""
HEAD = 12
"""Characters by which a secret is known that was cut off; shorter ones say little more than its kind."""
WORTH_CUTTING = 16  # characters of a secret that is also looked for in part
SHORTEST_PASSWORD = 5
SHORTEST_NAME = 12
"""Characters of what is alone before the @ of an address, and is a token rather than a name."""
_BEFORE_THE_SERVER = re.compile(r"\w://([^/?#\s]*)@")
_BASE64 = re.compile(r"[\w+/=-]*", re.ASCII)


def passwords(text: str) -> list[str]:
    """Return the secrets of the addresses in a text: name with password, and the password alone."""
    secrets: list[str] = []
    for found in _BEFORE_THE_SERVER.finditer(text):
        name, _, password = found[1].partition(":")
        if password:
            secrets += (found[1], unquote(found[1]))
        alone, shortest = (password, SHORTEST_PASSWORD) if password else (name, SHORTEST_NAME)
        if len(alone) >= shortest:
            secrets += (alone, unquote(alone))
    return secrets


class Redaction:
    """Hides secrets in texts: whole, cut off after their first characters, and encoded.

    Encoded means as URLs, JSON and Python's `repr` escape them, and as Basic authentication does.
    """

    def __init__(self, secrets: Iterable[str], mark: str = HIDDEN) -> None:
        self._mark = mark
        forms = {form: is_open for secret in secrets if secret for form, is_open in _forms(secret)}
        self._forms: dict[str, list[tuple[str, bool]]] = {}
        for form, is_open in forms.items():
            head = form[:HEAD] if len(form) >= WORTH_CUTTING else form
            self._forms.setdefault(head, []).append((form, is_open))
        heads = (
            re.escape(head) if len(head) >= SHORT else rf"(?<![\w/.-]){re.escape(head)}(?![\w/-]|\.\w)"
            for head in sorted(self._forms, key=len, reverse=True)
        )
        self._heads = re.compile("|".join(heads)) if forms else None

    def hide(self, text: str) -> str:
        if self._heads is None:
            return text
        kept: list[str] = []
        end = 0
        while found := self._heads.search(text, end):
            kept += (text[end : found.start()], self._mark)
            end = max(self._end(text, found.start(), *each) for each in self._forms[found[0]])
        return "".join((*kept, text[end:]))

    def beginning(self, text: str, length: int) -> str:
        """Return a text's first characters without secrets; not even one that the cut goes through."""
        head = text[:length]
        if len(head) < len(text):
            forms = [form for each in self._forms.values() for form, _ in each]
            parts = {form[:size] for form in forms for size in range(1, len(form) + 1)}
            cut = max((len(part) for part in parts if head.endswith(part)), default=0)
            head = head[: len(head) - cut]
        return self.hide(head)

    def _end(self, text: str, start: int, form: str, is_open: bool) -> int:
        there = text[start : start + len(form)]
        same = (at for at in range(len(there), 0, -1) if form.startswith(there[:at]))
        end = start + next(same)
        found = _BASE64.match(text, end) if is_open and end == start + len(form) else None
        return found.end() if found else end


def _forms(secret: str) -> Iterator[tuple[str, bool]]:
    """Return the ways a secret is written, each with whether it may have a longer end."""
    written = (quote(secret, safe=""), quote_plus(secret), orjson.dumps(secret).decode()[1:-1])
    for form in (secret, *written, repr(secret)[1:-1]):
        yield form, False
    # Only whole groups: the last one depends on what follows.
    whole = b64encode(secret.encode(errors="replace"))[: len(secret) // 3 * 4].decode()
    if len(whole) >= HEAD:
        yield whole, True
        yield whole.translate({ord("+"): "-", ord("/"): "_"}), True
