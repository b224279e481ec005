"""What the command line says: usage, serving, and what is wrong with a setting."""

import re
from collections.abc import Iterable, Mapping, Sequence

from bot.view.wording.budgets import amount
from bot.view.wording.figures import count

NOT_SET = "not set"
ONE_FORM = "Choose either --events or --json."
NOT_UTF8 = "it isn't UTF-8 text."
NO_AMOUNT = "it isn't an amount in US dollars from 0 to 1,000,000, such as 2.50."
YOUR_QUESTION = "Your question: "
NO_QUESTION = "There is no question. Run council ask, and type it there or pipe it in."
LINE_TOO_LONG = (
    "A terminal takes no line of more than 4,000 characters, so the question's end is lost. Nothing was "
    "asked. Put it in a file: council ask - < FILE"
)
NO_TOKEN = "DISCORD_TOKEN isn't set. The address needs the application's id, which comes from it."  # noqa: S105 - words about one
NO_TERMINAL = (
    "`council init` asks questions, so it needs a terminal. Without one, copy .env.example to .env, "
    "fill it in, and run `council doctor`."
)
DEMONSTRATION = "\nNo provider or member is configured: the built-in demonstration model answers."
REPAIR = "Run `council index rebuild` to repair it."
REBUILT = "The index has been rebuilt."
NOT_CONFIGURED = "The configuration can't be used:"
MISSING = "not in the index"
STALE = "changed since being indexed"
ORPHANED = "in the index without a document"
NO_DATABASE = "DATABASE_URL isn't set: it names the database to copy to or from."
NO_POSTGRES = (
    "DATABASE_URL is set, but the extra postgres isn't installed. "
    "Run uv sync --frozen --inexact --extra postgres, or unset DATABASE_URL"
)


def others(names: Iterable[str]) -> str:
    return f"Also: {', '.join(names)}. council COMMAND --help describes each."


def unknown_example(name: str, names: Sequence[str]) -> str:
    return f"There is no example {name}. There are {', '.join(names[:-1])} and {names[-1]}."


def budget_unknown(given: str, keys: Iterable[str]) -> str:
    return f"{given} isn't a budget. Choose one of {', '.join(keys)}."


def budget_id_unreadable(given: str, scope: str) -> str:
    """Refuse an id, saying how one of this kind is written."""
    slack = "slack:TEAM" if scope == "workspace" else "slack:TEAM/ID"
    return f"{given} names no {scope}. Write discord:ID or {slack}."


def budget_place_unknown(given: str) -> str:
    return f"No question in {given} is on record, so its server isn't known and nothing counts for it."


def budget_state(key: str, whose: str, when: str, spent: float, reserved: float, limit: str) -> str:
    """Return what counts toward a budget; `when` is a day or a month of UTC."""
    sums = f"{_sum(spent)} spent, {_sum(reserved)} reserved"
    return f"{key} of {whose}, {when} (UTC): {sums}; {limit}."


def _sum(dollars: float) -> str:
    return amount(dollars) if dollars else "nothing"


def budget_limit(dollars: float | None) -> str:
    return "no limit is set" if dollars is None else f"the limit is {amount(dollars)}"


def several(start: str, rows: Iterable[tuple[str, str]]) -> str:
    """List the conversations that match; `rows` are their ids and titles."""
    titles = "".join(f"\n  {number}  {title}" for number, title in rows)
    return f"More than one conversation begins with {start}.{titles}"


def none(start: str) -> str:
    return f"No conversation begins with {start}."


def imported(taken: int, present: int, skipped: int) -> str:
    """Return how much was imported, and how much of it was here already."""
    already = f"{present} already here, " if present else ""
    return f"{taken} imported, {already}{skipped} skipped"


def skipped(name: str, why: str) -> str:
    return f"  {name}: {why}"


def backed_up(conversations: int, file: object, size: int) -> str:
    return f"{count(conversations, 'conversation')} in {file}, {size / 1e6:.1f} MB"


def restored(conversations: int, folder: object) -> str:
    return f"{count(conversations, 'conversation')} restored to {folder}"


def copied(done: int, total: int) -> str:
    return f"{done:,} of {count(total, 'conversation')} copied"


def migrated(conversations: int, runs: int, *, was_there: bool) -> str:
    """Report that everything is where it was to be copied."""
    what = f"{count(conversations, 'conversation')} and {count(runs, 'run')}"
    return f"{what} had been copied already" if was_there else f"{what} copied"


def indexed(documents: int) -> str:
    return count(documents, "conversation")


def database_set_aside(name: str) -> str:
    return f"{name} was set aside: the database was damaged; its journal was carried over"


def set_aside(name: str) -> str:
    return f"{name} was set aside"


def unreadable(name: str, why: object) -> str:
    return f"{name} can't be read: {why}"


def file_unreadable(name: object, why: object) -> str:
    return f"{name} can't be read ({why})."


def input_unreadable() -> str:
    return f"Standard input can't be read: {NOT_UTF8}"


def listed(ids: Sequence[str], meaning: str, most: int = 10) -> str:
    """List the conversations that need repair."""
    more = ", \u2026" if len(ids) > most else ""
    return f"{len(ids)} {meaning}: {', '.join(ids[:most])}{more}"


def seat(model: str, persona: str | None, endpoint: str | None) -> str:
    """Return a member as the configuration has it."""
    named = f" as {persona}" if persona else ""
    return f"{model}{named}{f' at {endpoint}' if endpoint else ''}"


def no_public_address(given: str) -> str:
    """Refuse an address that Slack can't send to."""
    wanted = "the public address of your proxy, such as https://council.example.com"
    return f"--url takes {wanted}, not {given}."


NO_PLATFORM = "neither Discord nor Slack is configured"
SET_A_PLATFORM = (
    "Run `council init`, or set DISCORD_TOKEN, or SLACK_BOT_TOKEN with SLACK_APP_TOKEN (Socket Mode) or "
    "with SLACK_SIGNING_SECRET and SLACK_HTTP_PORT (HTTP); docs/discord.md and docs/slack.md are the "
    "guides"
)
HALF_SLACK = "Slack is only half configured"
COMPLETE_SLACK = (
    "Slack needs SLACK_BOT_TOKEN and either SLACK_APP_TOKEN (Socket Mode), or SLACK_SIGNING_SECRET and "
    "SLACK_HTTP_PORT (HTTP)"
)
NO_PROVIDER = (
    "No model provider is configured, so the tiny built-in model would answer a team's questions. "
    "Set one up with council init, or set COUNCIL_DEMO=1 to show how a council works."
)
NEEDS_DATABASE = (
    "council worker carries out what other processes accept, so it needs their database: set "
    "DATABASE_URL. Without one, council run does it all."
)


_NUMBER = "Write a number without quotes, such as 0.5"
_WHOLE = "it isn't a whole number", "Write a whole number without quotes, such as 2"
_LIST = "it isn't a list", 'Write a list, such as ["one", "two"]'
_TABLE = "it isn't a table", 'Write a table, such as {{ key = "value" }}'
_KINDS: Mapping[str, tuple[str, str]] = {
    "missing": ("it is missing", "Add it"),
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": ("it isn't a number", _NUMBER),
    "float_parsing": ("it isn't a number", _NUMBER),
    "finite_number": ("it isn't a finite number", _NUMBER),
    "bool_type": ("it is neither true nor false", "Write true or false, without quotes"),
    "bool_parsing": ("it is neither true nor false", "Write true or false, without quotes"),
    "string_type": ("it isn't text", "Write it in quotes"),
    "string_too_short": ("it is empty", "Fill it in, or remove it"),
    "string_too_long": ("it is longer than {max_length} characters", "Shorten it"),
    "tuple_type": _LIST,
    "list_type": _LIST,
    "frozen_set_type": _LIST,
    "too_short": ("it has no entry", "Add one, or remove it"),
    "too_long": ("it has more than {max_length} entries", "Remove some"),
    "model_type": _TABLE,
    "dict_type": _TABLE,
    "greater_than": ("it isn't above {gt:.15g}", "Write more than {gt:.15g}"),
    "greater_than_equal": ("it is below {ge:.15g}", "Write {ge:.15g} or more"),
    "less_than": ("it isn't below {lt}", "Write less than {lt}"),
    "less_than_equal": ("it is above {le:.15g}", "Write {le:.15g} or less"),
    "extra_forbidden": ("there is no such key", "Remove it"),
    "literal_error": ("it isn't one of {expected}", "Choose one of them"),
}
"""Words and fix, by pydantic's types of errors: https://docs.pydantic.dev/latest/errors/validation_errors/"""

NOT_TEXT = "it isn't UTF-8 text"
SAVE_AS_TEXT = "Save it as text"
SEE_DOCUMENTS = "Correct it; docs/configuration.md lists every key"
CORRECT_LINE = "Correct that line, then try again: what comes after it wasn't read"
SEAT = 'Write a model\'s id in quotes, or a table such as { model = "openai/gpt-5" }'


def wrong(kind: str, context: Mapping[str, object], message: str) -> str:
    """Return what is wrong with a value; our own words where the check is ours."""
    if kind not in _KINDS:
        return message.removeprefix("Value error, ")
    given = {
        name: value.replace("'", "") if isinstance(value, str) else value
        for name, value in context.items()
    }
    return _KINDS[kind][0].format(**given)


def remedy(kind: str, context: Mapping[str, object]) -> str:
    return _KINDS[kind][1].format(**context) if kind in _KINDS else SEE_DOCUMENTS


def choices(context: Mapping[str, object]) -> list[str]:
    return re.findall(r"'([^']*)'", str(context.get("expected", "")))


def not_toml(message: str, lines: int) -> str:
    """Return where a file isn't TOML; an error at its end is on its last line."""
    place = f"at the end, line {lines}"
    return f"it can't be read as TOML ({message.replace('at end of document', place)})"


def below(table: str) -> str:
    return f"Write it below [{table}]"


def entitle(table: str) -> str:
    return f"Write [{table}]"
