"""Block Kit's limits, refused with Slack's own words, and whom a message pings."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.slack_server.rules import Json, Refused, Rules

TYPES = {
    "actions", "container", "context", "context_actions", "data_table", "divider", "file", "header",
    "image", "markdown", "plan", "rich_text", "section", "table", "task_card", "video",
}  # fmt: skip
BLOCKS = 50
TABLE_CHARACTERS = 10_000

_MENTION = re.compile(
    r"<(?:@([UW][A-Z0-9]+)|!(channel|here|everyone)|!subteam\^([A-Z0-9]+))(?:\|[^>]*)?>"
)
_SHOUT = re.compile(r"(?<![\w<@])@(channel|here|everyone)\b")
# No raw HTML, so that `<!channel>` is text; no joining, so that an escaped `<` stays a token of its own.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("text_join")


@dataclass(frozen=True, slots=True)
class _Markdown:
    blocks: int
    tables: int
    pinged: frozenset[str]
    pinged_from_code: frozenset[str]


@functools.lru_cache(maxsize=2048)
def _read_markdown(text: str) -> _Markdown:
    """Count the blocks Slack makes of a `markdown` block, and find its mentions.

    A header per heading, a divider per rule, a table per table, rich text for each run of anything else.
    """
    blocks = tables = 0
    in_run = False
    prose: list[str] = []
    code: list[str] = []
    for token in _MARKDOWN.parse(text):
        if token.level == 0 and token.nesting >= 0:
            alone = token.type in {"heading_open", "hr", "table_open"}
            blocks += alone or not in_run
            in_run = not alone
            tables += token.type == "table_open"
        if token.type == "inline":
            prose.append(_plain(token))
            code += [child.content for child in token.children or () if child.type == "code_inline"]
        elif token.type in {"fence", "code_block"}:
            code.append(token.content)
    return _Markdown(blocks, tables, _mentions("\n".join(prose)), _mentions("\n".join(code)))


def _plain(inline: Token) -> str:
    """Return the text that may contain a mention: an escaped character or code splits it."""
    return "".join(
        child.content if child.type == "text" else "\n"
        for child in inline.children or ()
        if child.nesting == 0
    )


def _mentions(text: str) -> frozenset[str]:
    return frozenset(next(filter(None, found.groups())) for found in _MENTION.finditer(text))


def pinged(arguments: Json, handles: dict[str, str], rules: Rules) -> frozenset[str]:
    """Return whom posting this message notifies: user and group ids, `channel`, `here`, `everyone`.

    `text` counts beside the blocks. A bare `@everyone` or `@name` notifies only with `parse=full` or
    `link_names`; `handles` maps each name to its id.
    """
    text: str = arguments.get("text") or ""
    found = set(_mentions(text))
    if arguments.get("parse") == "full" or str(arguments.get("link_names", "0")).lower() in {
        "1",
        "true",
    }:
        found.update(_SHOUT.findall(text))
        found.update(user for name, user in handles.items() if re.search(rf"(?<![\w<@])@{name}\b", text))
    for attachment in arguments.get("attachments") or ():
        found.update(_mentions(f"{attachment.get('pretext', '')}\n{attachment.get('text', '')}"))
    found.update(_pings_of([arguments.get("blocks"), arguments.get("attachments")], rules))
    return frozenset(found)


def _pings_of(node: object, rules: Rules) -> Iterator[str]:
    if isinstance(node, list):
        for item in cast("list[object]", node):
            yield from _pings_of(item, rules)
    elif isinstance(node, dict):
        item = cast("Json", node)
        match item.get("type"):
            case "mrkdwn":
                yield from _mentions(str(item.get("text", "")))
            case "markdown":
                read = _read_markdown(str(item.get("text", "")))
                yield from read.pinged
                yield from read.pinged_from_code if rules.pings_from_markdown_code else ()
            case "user" if "user_id" in item:
                yield str(item["user_id"])
            case "usergroup" if "usergroup_id" in item:
                yield str(item["usergroup_id"])
            case "broadcast" if "range" in item:
                yield str(item["range"])
            case _:
                yield from _pings_of(list(item.values()), rules)


def checked(blocks: Any, rules: Rules) -> list[Json]:
    """Return the blocks as Slack stores them, each with a block_id.

    Raises:
        Refused: `invalid_blocks_format`, `invalid_blocks` with each `errors`, `msg_blocks_too_long`, or
            `invalid_attachments` for a second table.
    """
    if not isinstance(blocks, list):
        raise Refused("invalid_blocks_format")
    stored = [
        dict(cast("Json", block)) for block in cast("list[object]", blocks) if isinstance(block, dict)
    ]
    if len(stored) != len(cast("list[object]", blocks)):
        raise Refused("invalid_blocks_format")
    errors = list(_errors(stored, rules))
    if errors:
        raise refused_blocks(errors)
    texts = [str(block["text"]) for block in stored if block["type"] == "markdown"]
    if sum(map(rules.measure, texts)) > rules.markdown_total:
        raise Refused("msg_blocks_too_long")
    if sum(rules.measure(text) for text in _texts(stored)) > rules.message_total:
        raise Refused("msg_blocks_too_long")
    tables = sum(block["type"] in {"table", "data_table"} for block in stored)
    if rules.tables_in_markdown:
        tables += sum(_read_markdown(text).tables for text in texts)
    if tables > 1:
        raise Refused("invalid_attachments", errors=["only_one_table_allowed"])
    for number, block in enumerate(stored):
        block.setdefault("block_id", f"b{number}")
    return stored


def refused_blocks(errors: list[str], error: str = "invalid_blocks") -> Refused:
    """Return Slack's refusal of blocks, which names each fault twice."""
    messages = [f"[ERROR] {fault}" for fault in errors]
    return Refused(error, errors=errors, response_metadata={"messages": messages})


def _texts(node: object) -> Iterator[str]:
    if isinstance(node, list):
        for item in cast("list[object]", node):
            yield from _texts(item)
    elif isinstance(node, dict):
        for key, value in cast("Json", node).items():
            if key == "text" and isinstance(value, str):
                yield value
            else:
                yield from _texts(value)


def _errors(blocks: list[Json], rules: Rules) -> Iterator[str]:
    count = sum(
        _read_markdown(str(block.get("text", ""))).blocks if block.get("type") == "markdown" else 1
        for block in blocks
    )
    if count > BLOCKS:
        yield f"no more than {BLOCKS} items allowed [json-pointer:/blocks]"
    ids: set[str] = set()
    for number, block in enumerate(blocks):
        at = f"/blocks/{number}"
        if block.get("type") not in TYPES:
            yield f"unsupported type: {block.get('type')} [json-pointer:{at}/type]"
            continue
        block_id = block.get("block_id", "")
        yield from _long(block_id, 255, f"{at}/block_id", rules)
        if block_id and block_id in ids:
            yield f"`block_id` already exists [json-pointer:{at}/block_id]"
        ids.add(block_id)
        yield from _block_errors(block, at, rules)


def _block_errors(block: Json, at: str, rules: Rules) -> Iterator[str]:
    match block["type"]:
        case "section":
            yield from _section(block, at, rules)
        case "header":
            yield from _text(block.get("text"), 150, f"{at}/text", rules, kind="plain_text")
        case "context":
            yield from _context(block, at, rules)
        case "actions":
            yield from _actions(block, at, rules)
        case "markdown":
            yield from _long(block.get("text"), rules.markdown_total, f"{at}/text", rules, least=1)
        case "image":
            yield from _long(block.get("alt_text"), 2000, f"{at}/alt_text", rules, least=1)
        case "table":
            yield from _table(block, at, rules)
        case _:
            pass


def _section(block: Json, at: str, rules: Rules) -> Iterator[str]:
    if "text" not in block and not block.get("fields"):
        yield f"missing required field: text [json-pointer:{at}]"
    if "text" in block:
        yield from _text(block["text"], 3000, f"{at}/text", rules)
    yield from _many(block.get("fields", []), 10, f"{at}/fields")
    for number, item in enumerate(block.get("fields", [])):
        yield from _text(item, 2000, f"{at}/fields/{number}", rules)
    if "accessory" in block:
        yield from _element(block["accessory"], f"{at}/accessory", rules)


def _context(block: Json, at: str, rules: Rules) -> Iterator[str]:
    yield from _many(block.get("elements"), 10, f"{at}/elements", least=1)
    for number, item in enumerate(block.get("elements") or ()):
        if item.get("type") != "image":
            yield from _text(item, 3000, f"{at}/elements/{number}", rules)


def _actions(block: Json, at: str, rules: Rules) -> Iterator[str]:
    yield from _many(block.get("elements"), 25, f"{at}/elements", least=1)
    for number, item in enumerate(block.get("elements") or ()):
        yield from _element(item, f"{at}/elements/{number}", rules)
    ids = [item["action_id"] for item in block.get("elements") or () if "action_id" in item]
    if len(ids) != len(set(ids)):
        yield f"`action_id` already exists [json-pointer:{at}/elements]"


def _table(block: Json, at: str, rules: Rules) -> Iterator[str]:
    rows: list[Any] = block.get("rows") or []
    yield from _many(rows, 100, f"{at}/rows", least=1)
    for number, row in enumerate(rows):
        yield from _many(row, 20, f"{at}/rows/{number}", least=1)
        for column, cell in enumerate(row):
            if cell.get("type") == "raw_text":
                yield from _long(
                    cell.get("text"), TABLE_CHARACTERS, f"{at}/rows/{number}/{column}", rules, 1
                )
    if sum(rules.measure(text) for text in _texts(rows)) > TABLE_CHARACTERS:
        yield f"must be less than {TABLE_CHARACTERS + 1} characters [json-pointer:{at}/rows]"


def _element(element: Json, at: str, rules: Rules) -> Iterator[str]:
    yield from _long(element.get("action_id", ""), 255, f"{at}/action_id", rules)
    if element.get("type") == "button":
        yield from _text(element.get("text"), 75, f"{at}/text", rules, kind="plain_text")
        yield from _long(element.get("value", ""), 2000, f"{at}/value", rules)
        yield from _long(element.get("url", ""), 3000, f"{at}/url", rules)
        if element.get("style", "primary") not in {"primary", "danger"}:
            yield f"must be a valid enum value [json-pointer:{at}/style]"


def _text(text: Any, most: int, at: str, rules: Rules, kind: str | None = None) -> Iterator[str]:
    if not isinstance(text, dict):
        yield f"missing required field: text [json-pointer:{at}]"
        return
    item = cast("Json", text)
    if item.get("type") not in ({kind} if kind else {"mrkdwn", "plain_text"}):
        yield f"unsupported type: {item.get('type')} [json-pointer:{at}/type]"
    yield from _long(item.get("text"), most, f"{at}/text", rules, least=1)


def _long(text: Any, most: int, at: str, rules: Rules, least: int = 0) -> Iterator[str]:
    if not isinstance(text, str):
        yield f"must be a string [json-pointer:{at}]"
    elif rules.measure(text) > most:
        yield f"must be less than {most + 1} characters [json-pointer:{at}]"
    elif len(text) < least:
        yield f"must be more than {least - 1} characters [json-pointer:{at}]"


def _many(items: Any, most: int, at: str, least: int = 0) -> Iterator[str]:
    if not isinstance(items, list) or len(cast("list[object]", items)) < least:
        yield f"must provide at least {least} items [json-pointer:{at}]"
    elif len(cast("list[object]", items)) > most:
        yield f"no more than {most} items allowed [json-pointer:{at}]"
