"""What the command line says, except its help, which is in `bot/cli.py` with the commands."""

from collections.abc import Iterable, Sequence

from bot.view.wording.figures import count
from bot.view.wording.service.estimates import amount

NOT_SET = "not set"
ONE_FORM = "Choose either --events or --json."
NOT_UTF8 = "it isn't UTF-8 text."
NO_QUESTION = 'There is no question. Write one: council ask "Should we shard now?"'
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


def unknown_example(name: str, names: Sequence[str]) -> str:
    """Answer a name that no example has."""
    return f"There is no example {name}. There are {', '.join(names[:-1])} and {names[-1]}."


def budget_unknown(given: str, keys: Iterable[str]) -> str:
    """Refuse a key that names no budget of somebody or some place."""
    return f"{given} isn't a budget. Choose one of {', '.join(keys)}."


def budget_id_unreadable(given: str, scope: str) -> str:
    """Refuse an id, saying how one of this kind is written."""
    slack = "slack:TEAM" if scope == "workspace" else "slack:TEAM/ID"
    return f"{given} names no {scope}. Write discord:ID or {slack}."


def budget_place_unknown(given: str) -> str:
    """Say that a channel's server isn't known."""
    return f"No question in {given} is on record, so its server isn't known and nothing counts for it."


def budget_state(key: str, whose: str, when: str, spent: float, reserved: float, limit: str) -> str:
    """Say what counts toward a budget; `when` is a day or a month of UTC."""
    sums = f"{_sum(spent)} spent, {_sum(reserved)} reserved"
    return f"{key} of {whose}, {when} (UTC): {sums}; {limit}."


def _sum(dollars: float) -> str:
    return amount(dollars) if dollars else "nothing"


def budget_limit(dollars: float | None) -> str:
    """Say what a budget allows."""
    return "no limit is set" if dollars is None else f"the limit is {amount(dollars)}"


def several(start: str, rows: Iterable[tuple[str, str]]) -> str:
    """List the conversations that match; `rows` are their ids and titles."""
    titles = "".join(f"\n  {number}  {title}" for number, title in rows)
    return f"More than one conversation begins with {start}.{titles}"


def none(start: str) -> str:
    """Say that no conversation matches."""
    return f"No conversation begins with {start}."


def imported(taken: int, present: int, skipped: int) -> str:
    """Say how much was imported, and how much of it was here already."""
    already = f"{present} already here, " if present else ""
    return f"{taken} imported, {already}{skipped} skipped"


def skipped(name: str, why: str) -> str:
    """Say why a document was not imported."""
    return f"  {name}: {why}"


def backed_up(conversations: int, file: object, size: int) -> str:
    """Say what a backup contains; `size` is in bytes."""
    return f"{count(conversations, 'conversation')} in {file}, {size / 1e6:.1f} MB"


def restored(conversations: int, folder: object) -> str:
    """Say what was restored."""
    return f"{count(conversations, 'conversation')} restored to {folder}"


def copied(done: int, total: int) -> str:
    """Say how far a copy has come."""
    return f"{done:,} of {count(total, 'conversation')} copied"


def migrated(conversations: int, runs: int, *, was_there: bool) -> str:
    """Say that everything is where it was to be copied."""
    what = f"{count(conversations, 'conversation')} and {count(runs, 'run')}"
    return f"{what} had been copied already" if was_there else f"{what} copied"


def indexed(documents: int) -> str:
    """Count the conversations."""
    return count(documents, "conversation")


def database_set_aside(name: str) -> str:
    """Say that a damaged database was set aside."""
    return f"{name} was set aside: the database was damaged; its journal was carried over"


def set_aside(name: str) -> str:
    """Say that a file that isn't a document was set aside."""
    return f"{name} was set aside"


def unreadable(name: str, why: object) -> str:
    """Say that a file can't be read."""
    return f"{name} can't be read: {why}"


def file_unreadable(name: object, why: object) -> str:
    """Say why an attachment can't be read."""
    return f"{name} can't be read ({why})."


def input_unreadable() -> str:
    """Say why standard input can't be read."""
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
