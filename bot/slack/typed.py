"""A message's words on Slack, wherever it has them, with names for ids.

Sources: https://docs.slack.dev/messaging/formatting-message-text#advanced,
https://docs.slack.dev/reference/block-kit/blocks,
https://docs.slack.dev/legacy/legacy-messaging/legacy-secondary-message-attachments
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from bot.slack.client import Json
from bot.view.wording.figures import CHANNEL, COLLEAGUE, GROUP, called

NOBODY: Mapping[str, str] = MappingProxyType({})
GROUP_MENTION = "!subteam^"

_SHOWN = (
    *("pretext", "author_name", "title", "title_link", "subtitle", "text", "body", "description"),
    *("details", "output", "fields", "elements", "tasks", "blocks", "message_blocks", "message"),
    *("attachments", "alt_text", "footer"),
)
"""Where blocks, attachments and the messages shared in them have what people read, in that order."""
_CONTROLS = ("actions", "button", "context_actions", "input")
_RICH_LINES = ("rich_text_section", "rich_text_preformatted", "rich_text_quote")
_INLINE = {
    "user": "<@{user_id}>",
    "usergroup": f"<{GROUP_MENTION}{{usergroup_id}}>",
    "channel": "<#{channel_id}>",
    "broadcast": "<!{range}>",
    "date": "<!date^{timestamp}^{format}|{fallback}>",
    "link": "<{url}|{text}>",
    "emoji": ":{name}:",
    "color": "{value}",
}
_STOPGAPS = ("[no preview available]", "This content can't be displayed.")  # Slack's, for no text
_WORD = re.compile(r":skin-tone-\d:|&(?:lt|gt|amp);|([^\W_]+)")

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


def words(message: Json) -> list[str]:
    """Return a message's text and, line by line, what people read beside it, all in Slack's markup.

    A line whose words were there before is left out: most texts repeat what blocks show.
    """
    shown: list[str] = []
    known = " "
    for line in (str(message.get("text") or ""), *_lines({**message, "text": ""})):
        said = " ".join(filter(None, _WORD.findall(line)))
        if not shown or (said and f" {said} " not in known and line not in _STOPGAPS):
            shown.append(line)
            known += f"{said} "
    return ["" if shown[0] in _STOPGAPS else shown[0], *shown[1:]]


def _lines(part: Json | Sequence[Json] | str | None) -> Iterator[str]:
    """Yield the lines of blocks and attachments, or of their parts."""
    if isinstance(part, str):
        yield part
    elif not isinstance(part, Mapping):
        yield from (line for each in part or () for line in _lines(each))
    elif (kind := str(part.get("type"))) in _INLINE:
        yield _INLINE[kind].format_map(defaultdict[str, object](str, part))
    elif kind in _RICH_LINES:
        yield "".join(_lines(part.get("elements")))
    elif kind == "table":
        yield from (" | ".join(" ".join(_lines(cell)) for cell in row) for row in part.get("rows") or ())
    elif "value" in part:  # a field of an attachment
        yield ": ".join(str(each) for each in (part.get("title"), part["value"]) if each)
    elif kind not in _CONTROLS:
        said = [line for key in _SHOWN for line in _lines(part.get(key)) if line]
        yield from said or _lines(part.get("fallback"))


def unnamed(text: str, bot: str = "") -> Iterator[str]:
    """Yield the ids of people, channels and user groups that a text mentions without their names."""
    for target, label in _CONTROL.findall(text):
        if target.startswith(("@", "#", GROUP_MENTION)) and not label:
            who = target.removeprefix(GROUP_MENTION).lstrip("@#")
            if who != bot:
                yield who
