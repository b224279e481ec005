"""Dates in prose: `2024-03-01`, `1 March 2024`, `March 1st, 2024`, `1. März 2024`, `01.03.2024`."""

import re
from collections.abc import Mapping
from datetime import date

_MONTHS: Mapping[str, str] = {
    "en": "january february march april may june july august september october november december",
    "short": "jan feb mar apr may jun jul aug sep oct nov dec",
    "sept": "- - - - - - - - sept - - -",
    "de": "januar februar märz april mai juni juli august september oktober november dezember",
    "at": "jänner feber maerz - - - - - - okt - dez",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
}
_NUMBER: Mapping[str, int] = {
    name: number
    for names in _MONTHS.values()
    for number, name in enumerate(names.split(), 1)
    if name != "-"
}
_NAME = "|".join(sorted(_NUMBER, key=len, reverse=True))
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_DAY_FIRST = re.compile(
    rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?\s*(?:of\s+|de\s+)?({_NAME})\.?,?\s*(?:de\s+|del\s+)?(\d{{4}})(?!\d)",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(
    rf"\b({_NAME})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})(?!\d)", re.IGNORECASE
)
_YEAR_FIRST = re.compile(rf"(?<!\d)(\d{{4}})\s+({_NAME})\s+(\d{{1,2}})(?!\d)", re.IGNORECASE)
_DOTTED = re.compile(r"(?<![\d.])(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})(?!\d)")
_SLASHED = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4})(?!\d)")


def dates(text: str, language: str | None) -> set[date] | None:
    """Return the dates in a text; `None` where one can be read in two ways.

    `03/04/2024` is one only where the language says which number is the day: not in English.
    """
    found: set[date] = set()
    for match in _ISO.finditer(text):
        _add(found, match[1], match[2], match[3])
    for match in _DAY_FIRST.finditer(text):
        _add(found, match[3], match[2], match[1])
    for match in _MONTH_FIRST.finditer(text):
        _add(found, match[3], match[1], match[2])
    for match in _YEAR_FIRST.finditer(text):
        _add(found, match[1], match[2], match[3])
    for match in _DOTTED.finditer(text):
        _add(found, match[3], match[2], match[1])
    for match in _SLASHED.finditer(text):
        first, second = int(match[1]), int(match[2])
        is_day_first = language in ("German", "French", "Spanish", "Italian", "Portuguese", "Dutch")
        if first > 12 or first == second or (is_day_first and second <= 12):
            _add(found, match[3], match[2], match[1])
        elif second > 12:
            _add(found, match[3], match[1], match[2])
        else:
            return None
    return found


def _add(found: set[date], year: str, month: str, day: str) -> None:
    number = int(month) if month.isdigit() else _NUMBER[month.lower()]
    try:
        found.add(date(int(year), number, int(day)))
    except ValueError:  # the 31st of June
        return
