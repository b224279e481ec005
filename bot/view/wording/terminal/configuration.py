"""What is wrong with a value of a setting, and what to write instead."""

import re
from collections.abc import Mapping

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
    """Say what is wrong with a value; our own words where the check is ours."""
    if kind not in _KINDS:
        return message.removeprefix("Value error, ")
    given = {
        name: value.replace("'", "") if isinstance(value, str) else value
        for name, value in context.items()
    }
    return _KINDS[kind][0].format(**given)


def remedy(kind: str, context: Mapping[str, object]) -> str:
    """Say what to write instead."""
    return _KINDS[kind][1].format(**context) if kind in _KINDS else SEE_DOCUMENTS


def choices(context: Mapping[str, object]) -> list[str]:
    """Return the values that there are for a key, where they are few."""
    return re.findall(r"'([^']*)'", str(context.get("expected", "")))


def not_toml(message: str, lines: int) -> str:
    """Say where a file isn't TOML; an error at its end is on its last line."""
    place = f"at the end, line {lines}"
    return f"it can't be read as TOML ({message.replace('at end of document', place)})"


def below(table: str) -> str:
    """Say below which line a key belongs."""
    return f"Write it below [{table}]"


def entitle(table: str) -> str:
    """Say what a table is called."""
    return f"Write [{table}]"
