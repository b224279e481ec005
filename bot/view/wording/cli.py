"""What the command line says in several places, and what is wrong with a setting."""

from collections.abc import Mapping

from pydantic_core import ErrorDetails

from bot.view.wording import to_install

ONE_FORM = "Choose either --events or --json."
NO_POSTGRES = (
    f"DATABASE_URL needs the extra postgres. Run {to_install('postgres')}, or unset DATABASE_URL"
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


def wrong(detail: ErrorDetails) -> str:
    """Return what is wrong with a value; our own words where the check is ours."""
    if detail["type"] not in _KINDS:
        return detail["msg"].removeprefix("Value error, ")
    given = {
        name: value.replace("'", "") if isinstance(value, str) else value
        for name, value in detail.get("ctx", {}).items()
    }
    return _KINDS[detail["type"]][0].format(**given)


def remedy(detail: ErrorDetails) -> str:
    _, fix = _KINDS.get(detail["type"], ("", "Correct it; docs/configuration.md lists every key"))
    return fix.format(**detail.get("ctx", {}))
