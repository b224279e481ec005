r"""Formulas as MathML that can do nothing: a formula is hostile text.

The converter passes on what `\href`, `\style` and `\text` hold, so that nothing of it is taken as it is:
its elements are written again if all of them are on a list, with the attributes on another, and all text
escaped.
"""

import re
from functools import lru_cache
from html import unescape
from xml.etree.ElementTree import Element

from markupsafe import Markup

_ELEMENTS = (
    "math", "menclose", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom",
    "mprescripts", "mroot", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable",
    "mtd", "mtext", "mtr", "munder", "munderover", "none",
)  # fmt: skip
_WORDS = (
    "true", "false", "left", "right", "center", "prefix", "postfix", "infix", "block", "inline", "box",
    "none", "solid", "normal", "bold", "italic", "bold-italic", "double-struck", "script",
    "bold-script", "fraktur", "sans-serif", "monospace", "thin", "medium", "thick",
)  # fmt: skip
_ATTRIBUTES = (
    "accent", "accentunder", "columnalign", "columnlines", "columnspacing", "display", "displaystyle",
    "fence", "form", "linethickness", "lspace", "mathvariant", "maxsize", "minsize", "movablelimits",
    "notation", "rowlines", "rowspacing", "rspace", "scriptlevel", "separator", "stretchy",
    "symmetric", "width",
)  # fmt: skip
_OPERATORS = ("\u00b1", "\u2213")  # letters to the converter
# Browsers leave no space around `log` in `n log n`, and much beside the bars of `|x|`.
_SPACED = re.compile(r"[A-Za-z]{2,}|\|")
_SIZE = re.compile(r"-?[0-3]?(?:\.\d{1,4})?(?:em|ex)?")
_ALIGNED = {
    f"{{{name}}}": "{split}"
    for name in (
        "aligned",
        "alignedat",
        "gathered",
        "gather",
        "gather*",
        "align",
        "equation",
        "equation*",
    )
}  # the converter knows few environments
_UNKNOWN = {"arg": r"\operatorname{arg}", "nonumber": "", "notag": "", "nolimits": ""}
_UNKNOWN_NAMED = re.compile(rf"\\({'|'.join(_UNKNOWN)})(?![A-Za-z])")
_DEFINING = re.compile(r"\\(?:\w*def|let|\w*newcommand|DeclareMathOperator|\w*newenvironment)(?![a-z])")
_REFUSED = (LookupError, RuntimeError, StopIteration, TypeError, ValueError, AttributeError)


@lru_cache(maxsize=512)
def mathml(formula: str, *, displayed: bool) -> Markup | None:
    """Return a formula (without delimiters) as MathML, or nothing if that can't be done faithfully."""
    from latex2mathml import exceptions
    from latex2mathml.converter import Converter

    if _DEFINING.search(formula):
        return None  # a few definitions can multiply without end
    for known, instead in _ALIGNED.items():
        formula = formula.replace(known, instead)
    formula = _UNKNOWN_NAMED.sub(lambda named: _UNKNOWN[named[1]], formula)
    errors = [
        each
        for each in vars(exceptions).values()
        if isinstance(each, type) and issubclass(each, Exception)
    ]
    try:
        converter = Converter(display="block" if displayed else "inline")
        return _written(converter.convert_to_element(formula))
    except (*_REFUSED, *errors):
        return None


def _written(element: Element) -> Markup:
    """Return an element as HTML; raises `ValueError` if one in it isn't on the list."""
    if element.tag not in _ELEMENTS or (
        element.tag == "menclose"
        and element.get("notation") != "box"  # struck out, but not for a browser
    ):
        raise ValueError(element.tag)
    said = unescape(element.text or "")  # the converter writes signs as references within text
    if element.tag != "mtext" and re.match(r"\\\w", said):
        raise ValueError(said)  # a command that the converter doesn't know
    is_operator = said in _OPERATORS or (element.tag in ("mi", "mo") and _SPACED.fullmatch(said))
    space = "0em" if said == "|" else "0.17em"
    spaces = {"lspace": space, "rspace": space} if is_operator and said not in _OPERATORS else {}
    kept = (
        Markup(' {0}="{1}"').format(name, value)
        for name, value in (*element.items(), *spaces.items())
        if name in _ATTRIBUTES and all(map(_is_harmless, value.split()))
    )
    text = Markup("{0}").format(said)
    tag = "mo" if is_operator else element.tag
    inner = Markup("").join((text, *map(_written, element)))
    return Markup("<{0}{1}>{2}</{0}>").format(tag, Markup("").join(kept), inner)


def _is_harmless(value: str) -> bool:
    return value in _WORDS or _SIZE.fullmatch(value) is not None
