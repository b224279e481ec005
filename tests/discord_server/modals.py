"""Forms: what Discord accepts as one, and what it sends when somebody submits it.

Source: https://discord.com/developers/docs/components/reference
"""

from collections.abc import Iterator, Mapping

from . import errors, limits
from .state import Json

TEXT, SELECT, LABEL, FILES = 4, 3, 18, 19
TITLE, TOP_LEVEL, LABEL_TEXT, DESCRIPTION, TYPED = 45, 5, 45, 100, 4000


def check(data: Json) -> None:
    """Refuse what Discord refuses: 50035 naming the field."""
    _length("data.title", data.get("title"), TITLE)
    _length("data.custom_id", data.get("custom_id"), 100)
    rows: list[Json] = data.get("components") or []
    if not 1 <= len(rows) <= TOP_LEVEL:
        raise errors.bad_length("data.components", 1, TOP_LEVEL)
    for index, row in enumerate(rows):
        at = f"data.components.{index}"
        if row.get("type") != LABEL:
            raise errors.invalid(f"{at}.type", "UNION_TYPE_CHOICES", "Only labels are known here")
        _length(f"{at}.label", row.get("label"), LABEL_TEXT)
        if "description" in row:
            _length(f"{at}.description", row["description"], DESCRIPTION)
        _check_field(f"{at}.component", row["component"])


def _check_field(at: str, field: Json) -> None:
    _length(f"{at}.custom_id", field.get("custom_id"), 100)
    if field["type"] == TEXT:
        most = field.get("max_length", TYPED)
        if not 1 <= most <= TYPED:
            raise errors.bad_length(f"{at}.max_length", 1, TYPED)
        if limits.units(field.get("value") or "") > most:
            raise errors.too_long(f"{at}.value", most)
        if limits.units(field.get("placeholder") or "") > 100:
            raise errors.too_long(f"{at}.placeholder", 100)
    elif field["type"] == SELECT:
        options: list[Json] = field.get("options") or []
        if not 1 <= len(options) <= 25:
            raise errors.bad_length(f"{at}.options", 1, 25)
        for number, option in enumerate(options):
            _length(f"{at}.options.{number}.label", option.get("label"), 100)
            _length(f"{at}.options.{number}.value", option.get("value"), 100)
        if sum(bool(option.get("default")) for option in options) > 1:
            raise errors.invalid(f"{at}.options", "SELECT_COMPONENT_INVALID_DEFAULT_VALUES", "Too many")
    elif field["type"] == FILES:
        least, most = field.get("min_values", 1), field.get("max_values", 1)
        if not (0 <= least <= 10 and 1 <= most <= 10 and least <= most):
            raise errors.bad_length(f"{at}.max_values", 1, 10)
    else:
        raise errors.invalid(f"{at}.type", "UNION_TYPE_CHOICES", "Unknown field")


def _length(at: str, text: str | None, most: int) -> None:
    if not 1 <= limits.units(text or "") <= most:
        raise errors.bad_length(at, 1, most)


def fields(form: Json) -> Iterator[Json]:
    """Yield what can be filled in, as the bot sent it."""
    for row in form["components"]:
        yield row["component"]


def submitted(form: Json, values: Mapping[str, str], files: Mapping[str, Json] | None = None) -> Json:
    """Return the data of a submission: each field as it was prefilled, unless somebody wrote otherwise.

    `files` are those that somebody uploads, by their ids.

    Raises `LookupError` for a field that isn't there, and for what a client doesn't let anybody enter.
    """
    if strange := values.keys() - {field["custom_id"] for field in fields(form)}:
        raise LookupError(f"no such fields: {strange}")
    rows = [
        {"type": LABEL, "id": number, "component": _filled(number, field, values, [*(files or {})])}
        for number, field in enumerate(fields(form), 1)
    ]
    resolved: Json = {"resolved": {"attachments": dict(files)}} if files else {}
    return {"custom_id": form["custom_id"], "components": rows, **resolved}


def _filled(number: int, field: Json, values: Mapping[str, str], files: list[str]) -> Json:
    name = field["custom_id"]
    told: Json = {"type": field["type"], "id": 100 + number, "custom_id": name}
    if field["type"] == TEXT:
        text = values.get(name, field.get("value") or "")
        if limits.units(text) > field.get("max_length", TYPED) or (
            field.get("required", True) and not text
        ):
            raise LookupError(f"{name} takes no such text")
        return {**told, "value": text}
    if field["type"] == FILES:
        if not field.get("min_values", 1) <= len(files) <= field.get("max_values", 1):
            raise LookupError(f"{name} takes not so many files")
        return {**told, "values": files}
    options: list[Json] = field["options"]
    preset = [option["value"] for option in options if option.get("default")]
    chosen = [values[name]] if name in values else preset
    if {*chosen} - {option["value"] for option in options}:
        raise LookupError(f"{chosen} is not among the options of {name}")
    return {**told, "values": chosen}
