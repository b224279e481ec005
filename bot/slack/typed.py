"""The text that people type on Slack, with names for ids.

Source: https://docs.slack.dev/messaging/formatting-message-text#advanced
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from bot.view.wording.figures import CHANNEL, COLLEAGUE, GROUP, called

NOBODY: Mapping[str, str] = MappingProxyType({})
GROUP_MENTION = "!subteam^"

# Slack writes each mention and link as `<target>` or `<target|label>`; a typed `<` comes as `&lt;`.
_CONTROL = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


def plain(text: str, bot: str = "", names: Mapping[str, str] = NOBODY) -> str:
    """Return what was typed as people read it, without mentions of `bot`.

    `names` are those of people, channels and user groups, by id, where Slack sent none.
    """

    def said(found: re.Match[str]) -> str:
        target, label = found[1], found[2]
        if target[0] == "@":
            who = target[1:]
            return "" if who == bot else called("@", label or names.get(who), COLLEAGUE)
        if target[0] == "#":
            return called("#", label or names.get(target[1:]), CHANNEL)
        if target.startswith(GROUP_MENTION):
            group = label or names.get(target.removeprefix(GROUP_MENTION))
            return called("@", group, GROUP)
        if target.startswith("!date^"):
            return label or ""
        if target[0] == "!":  # here, channel, everyone
            return f"@{label or target[1:]}"
        if label and target.partition(":")[2].lstrip("/") == label:
            return label
        return f"{label} ({target})" if label else target

    read = _CONTROL.sub(said, text)
    return read.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def unnamed(text: str, bot: str = "") -> Iterator[str]:
    """Yield the ids of people, channels and user groups that a text mentions without their names."""
    for target, label in _CONTROL.findall(text):
        if target.startswith(("@", "#", GROUP_MENTION)) and not label:
            who = target.removeprefix(GROUP_MENTION).lstrip("@#")
            if who != bot:
                yield who
