"""Numbers in prose: separators of thousands and decimals, words for millions, units."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

ROUNDING = Decimal("1e-9")
"""What a computer's arithmetic may be off: 25.000000000000004 is 25."""
_SPACES = "\u00a0\u202f\u2009"
_NUMBER = re.compile(
    rf"(?<![\w.,])(?P<sign>[-\u2212\u2013+]?)\s?(?:"
    rf"(?P<grouped>\d{{1,3}}(?:[ {_SPACES}'\u2019.,]\d{{3}})+(?!\d)(?:[.,]\d+)?)"
    rf"|(?P<plain>\d+(?:[.,]\d+)?))(?:e(?P<power>[-+]?\d+))?(?![\d])",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"^\s*([-\u2212]?\d+)\s*/\s*(\d+)")
_LATEX_FRACTION = re.compile(r"\\d?frac\{(\d+)\}\{(\d+)\}")
_DECIMAL_COMMA = frozenset(
    {
        "German",
        "French",
        "Spanish",
        "Italian",
        "Portuguese",
        "Dutch",
        "Polish",
        "Swedish",
        "Turkish",
        "Russian",
    }
)
_WORDS: Mapping[str, int] = {
    "thousand": 3, "tausend": 3, "mille": 3, "mil": 3, "tsd": 3,
    "million": 6, "millions": 6, "millionen": 6, "mio": 6, "millón": 6, "millones": 6, "mn": 6,
    "milliard": 9, "milliards": 9, "milliarden": 9, "milliarde": 9, "mrd": 9,
}  # fmt: skip
_ENGLISH_WORDS: Mapping[str, int] = {"billion": 9, "bn": 9, "trillion": 12}
_UNITS: Mapping[str, Mapping[str, str]] = {
    # dimension: factor -> names
    "length": {
        "0.001": "mm millimetre millimetres millimeter millimeters millimètre millimètres milímetros",
        "0.01": "cm centimetre centimetres centimeter centimeters zentimeter centimètre centimètres centímetros",
        "1": "m metre metres meter meters mètre mètres metro metros",
        "1000": "km kilometre kilometres kilometer kilometers kilomètre kilomètres kilómetro kilómetros",
    },
    "area": {
        "0.0001": "cm² cm2 cm^2",
        "1": "m² m2 m^2 qm",
        "1000000": "km² km2 km^2",
        "10000": "ha hektar hectare",
    },
    "volume": {
        "0.001": "ml millilitre millilitres milliliter milliliters mililitros",
        "0.01": "cl",
        "1": "l litre litres liter liters litro litros",
        "1000": "m³ m3 m^3",
    },
    "mass": {
        "0.001": "mg milligram milligrams milligramm",
        "1": "g gram grams gramm gramme grammes gramo gramos",
        "1000": "kg kilogram kilograms kilogramm kilo kilos kilogramme kilogrammes kilogramo kilogramos",
        "1000000": "t tonne tonnes tonnen tonelada toneladas",
    },
    "time": {
        "0.001": "ms millisecond milliseconds millisekunde millisekunden",
        "1": "s sec second seconds sekunde sekunden seconde secondes segundo segundos",
        "60": "min minute minutes minuten minuto minutos",
        "3600": "h hour hours stunde stunden heure heures hora horas std",
        "86400": "d day days tag tage tagen jour jours día días",
        "604800": "week weeks woche wochen semaine semaines semana semanas",
    },
    "data": {
        "1": "b byte bytes octet octets",
        "1000": "kb kilobyte kilobytes",
        "1000000": "mb megabyte megabytes",
        "1000000000": "gb gigabyte gigabytes",
        "1000000000000": "tb terabyte terabytes",
    },
    "share": {"1": "% percent prozent pourcent", "0.1": "‰"},
    "euro": {"1": "€ eur euro euros", "0.01": "cent cents"},
    "dollar": {"1": "$ usd dollar dollars dólar dólares"},
    "pound": {"1": "£ gbp"},
    "celsius": {"1": "°c celsius"},
    "fahrenheit": {"1": "°f fahrenheit"},
    "speed": {"1": "km/h kmh kph", "3.6": "m/s"},
}
_UNIT: Mapping[str, tuple[str, Decimal]] = {
    name: (dimension, Decimal(factor))
    for dimension, factors in _UNITS.items()
    for factor, names in factors.items()
    for name in names.split()
}
_CASED = {
    "B": ("data", Decimal(1)),
    "Mb": None,
    "Gb": None,
    "kb": None,
    "T": None,
    "G": None,
    "M": None,
    "D": None,
}
"""Abbreviations whose case tells them apart: megabits aren't megabytes."""
_AFTER = re.compile(
    rf"[\s{_SPACES}]*(?:\\text\{{\s*)?(?P<unit>°\s?[CF]\b|km/h|m/s|[%‰€$£]|[^\W\d_]+[²³]?(?:\^?[23]\b)?)"
)
_SQUARE = re.compile(r"^(square|quadrat)[\s-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit: a dimension and a factor, or `None` where there is none that is known.

    `decimals` counts the digits after the separator.
    """

    value: Decimal
    dimension: str | None = None
    factor: Decimal = Decimal(1)
    decimals: int = 0

    def equals(self, other: "Quantity", tolerance: Decimal = Decimal(0)) -> bool:
        """Return whether both are the same amount; a missing unit is taken to be the other's."""
        off = max(tolerance, abs(other.value) * ROUNDING)
        if self.dimension and other.dimension:
            if self.dimension != other.dimension:
                return False
            return abs(self.value * self.factor - other.value * other.factor) <= off * other.factor
        return abs(self.value - other.value) <= off


def quantities(text: str, language: str | None) -> list[Quantity] | None:
    """Return the numbers of a text in their order; `None` where one can be read in two ways.

    In a language that writes decimals with a comma, `1.234` is over a thousand; elsewhere `1,234` is.
    """
    text = (
        _LATEX_FRACTION.sub(r"\1/\2", text)
        .replace("{,}", ",")
        .replace("\\,", "\u202f")
        .replace("\\%", "%")
    )
    if fraction := _FRACTION.match(text):
        whole, parts = fraction.groups()
        if int(parts):
            exact = Fraction(int(whole.replace("\u2212", "-")), int(parts))
            value = Decimal(exact.numerator) / Decimal(exact.denominator)
            return [_with_unit(text, fraction.end(), value, language, text[: fraction.start()])]
    found: list[Quantity] = []
    for match in _NUMBER.finditer(text):
        value = _value(match, language)
        if value is None:
            return None
        found.append(_with_unit(text, match.end(), value, language, text[: match.start()]))
    return found


def _value(match: re.Match[str], language: str | None) -> Decimal | None:
    number = match["grouped"] or match["plain"]
    plain = _plain(number, language)
    if plain is None:
        return None
    sign = "-" if match["sign"] in ("-", "\u2212") else ""
    return Decimal(f"{sign}{plain}").scaleb(int(match["power"] or 0))


def _plain(number: str, language: str | None) -> str | None:
    """Return a number with a point for its decimals and nothing for its thousands."""
    bare = re.sub(rf"[ {_SPACES}'\u2019]", "", number)
    marks = re.findall(r"[.,]", bare)
    if not marks:
        return bare
    if len(marks) == 1 and bare == number:
        return _one_mark(bare, marks[0], language)
    last = bare.rfind(marks[-1])
    if len({*marks}) == 2:  # 1.234,5 or 1,234.5
        if marks.count(marks[-1]) > 1:
            return None
        return re.sub(r"[.,]", "", bare[:last]) + "." + bare[last + 1 :]
    if len(marks) == 1:  # 1 234,5
        return bare.replace(marks[0], ".")
    if len(bare) - last != 4:  # 1,234,5
        return None
    return re.sub(r"[.,]", "", bare)  # 1.234.567


def _one_mark(bare: str, mark: str, language: str | None) -> str:
    whole, _, rest = bare.partition(mark)
    could_be_thousands = len(rest) == 3 and 1 <= len(whole) <= 3 and not whole.startswith("0")
    decimal = "," if language in _DECIMAL_COMMA else "."
    if could_be_thousands and mark != decimal:
        return whole + rest
    return f"{whole}.{rest}"


def _with_unit(text: str, end: int, value: Decimal, language: str | None, before: str) -> Quantity:
    decimals = max(0, -int(value.as_tuple().exponent))
    after = _AFTER.match(text, end)
    word = after["unit"] if after else ""
    scaled = _WORDS.get(word.lower().rstrip("."))
    if scaled is None and language in ("English", None):
        scaled = _ENGLISH_WORDS.get(word.lower())
    if after and scaled is not None:
        value = value.scaleb(scaled)
        after = _AFTER.match(text, after.end() + (text[after.end() : after.end() + 1] == "."))
        word = after["unit"] if after else ""
        if word.lower() in ("de", "d") and after:  # cinco millones de euros
            after = _AFTER.match(text, after.end())
            word = after["unit"] if after else ""
    unit = _unit(word, text[after.start() :] if after else "")
    if unit is None and (sign := before.rstrip()[-1:]) in ("€", "$", "£"):
        unit = _UNIT[sign]
    return Quantity(value, *(unit or (None, Decimal(1))), decimals)


def _unit(word: str, rest: str) -> tuple[str, Decimal] | None:
    if not word:
        return None
    if word.lower() in ("square", "cubic", "quadratmeter", "kubikmeter", "mètres", "metros"):
        return _compound(rest) or _UNIT.get(word.lower())
    if word in _CASED:
        return _CASED[word]
    return _UNIT.get(word.lower().replace(" ", ""))


def _compound(rest: str) -> tuple[str, Decimal] | None:
    words = re.findall(r"[^\W\d_]+", rest.lower())[:2]
    if words[:1] == ["quadratmeter"]:
        return "area", Decimal(1)
    if words[:1] == ["kubikmeter"]:
        return "volume", Decimal(1000)
    if len(words) < 2:
        return None
    power = {"square": 2, "cubic": 3}.get(words[0]) or {
        "carrés": 2,
        "cuadrados": 2,
        "cubes": 3,
        "cúbicos": 3,
    }.get(words[1])
    base = _UNIT.get(words[1] if words[0] in ("square", "cubic") else words[0])
    if power is None or base is None or base[0] != "length":
        return None
    return ("area", base[1] ** 2) if power == 2 else ("volume", base[1] ** 3 * 1000)
