"""The severity of a sentence in a review, by its English words.

JSON reviews give it themselves, in any language.
"""

import re
from functools import cache, partial

from council.document.results import Severity

GRADES: tuple[Severity, ...] = ("high", "medium", "low")


def severity(sentence: str) -> Severity | None:
    """Return how grave a sentence is; `None` if it criticizes nothing."""
    said = _PRAISE().sub(" ", sentence)
    if _LOW().search(said) and not (_GRAVE().search(said) or _EMPTY().search(said)):
        return "low"
    if _HIGH().search(said):
        return "high"
    return "medium" if _MEDIUM().search(said) or _EMPTY().search(said) else None


def praises(sentence: str) -> bool:
    """Return whether a sentence praises, even in words of critique: `no errors`, `catches the bug`."""
    return bool(_PRAISE().search(sentence) or (_GOOD().search(sentence) and severity(sentence) is None))


@cache  # at the first review: compiling takes a tenth of what is imported at a start
def _any_of(*phrases: str) -> re.Pattern[str]:
    """Return a pattern that finds any of these as whole words; a blank is any white space."""
    return re.compile(rf"\b(?:{'|'.join(phrases)})(?!\w)".replace(" ", r"\s+"), re.IGNORECASE)


_GRAVE = partial(_any_of, "dangerous", "unsafe", "insecure", "data loss", "loses data")
_EMPTY = partial(
    _any_of,
    r"(?:only|simply|just|merely|nothing but) (?:a )?"
    r"(?:repeats?|repetition of|restates?|restatement of)(?! itself)",
)
"""What only repeats adds nothing, which is more than a fault of form."""

_HIGH = partial(
    _any_of,
    r"wrong(?:ly)?|incorrect(?:ly)?|inaccura\w+|false(?:ly)?|untrue|erroneous\w*|mistake[ns]?|errors?",
    r"dangerous\w*|unsafe|insecure|vulnerab\w+|harmful|mislead\w*|illegal|data loss|loses data|exposes",
    r"fabricat\w+|hallucinat\w+|made[ -]up|invent(?:s|ed)|contradict\w*|broken|breaks|crash\w*"
    r"|bugs?|buggy",
    r"(?:won't|will not|doesn't|does not|do not|don't|can't|cannot|didn't) (?:work|compile|run|answer)",
    r"fatal(?:ly)?|fundamental(?:ly)?|serious(?:ly)?|severe(?:ly)?|major",
    r"critical (?:flaw|gap|issue|omission|error)|ignores the question|off[ -]topic",
    r"fails? to (?:answer|address the question)|steers?|manipulat\w+|(?:prompt )?injection attempt",
)
_MEDIUM = partial(
    _any_of,
    r"lack(?:s|ed|ing)?|miss(?:es|ed|ing)|omit\w*|omission\w*|ignor(?:es?|ed|ing)|overlook\w*"
    r"|neglect\w*",
    r"without (?:a|any|citing|giving|explaining|evidence|sources?|examples?|saying)",
    r"no (?:mention|examples?|sources?|evidence|citations?|tests?|numbers?|figures|discussion"
    r"|word|data)",
    r"no (?:explanation|details?|trade-?offs?|fallback|rollback|error handling|context|justification)",
    r"not (?:enough|mention\w*|explain\w*|address\w*|cover\w*|consider\w*|discuss\w*|say|give"
    r"|cite|clear)",
    r"not (?:convincing|specific|quantif\w+|justif\w+|support\w*|compare|show|state|account|tell"
    r"|include)",
    r"not (?:go (?:far|deep)|very|detailed|complete|backed|answer\w*|actionable)",
    r"(?:doesn't|does not|didn't|did not|never|hardly|barely|fails? to|failed to|neglects to) \w+",
    r"should|could|would (?:benefit|be (?:better|stronger|clearer|improved)|have|help)|needs?|ought",
    r"unclear|vague\w*|ambiguous|incomplete|insufficient\w*|superficial\w*|shallow|thin|limited"
    r"|confus\w+",
    r"weak(?:er|est|ness\w*|ly)?|outdated|obsolete|over-?simplif\w+|over(?:sells?|sold|states?|stated)",
    r"exaggerat\w+|forg[eo]t\w*|too \w+|only (?:covers?|mentions?|touches|lists?|gives?|names?)",
    r"hard to|difficult to|less (?!than)\w+|worse|worst|poor(?:ly)?|problem\w*|issues?|flaw\w*|gaps?",
    r"shortcomings?|drawbacks?|questionable|assum(?:es|ing)|generic|impractical|risky|biased|one-sided",
    r"un(?:supported|substantiated|proven|sourced|justified|realistic|explained|convincing|necessary)",
    r"rambl\w+|disorgani[sz]ed|inconsisten\w+|skips?|skipped|glosses|leaves out|leaves open|stops short",
    r"falls short|brief|short on|light on|behind",
)
_LOW = partial(
    _any_of,
    r"minor|slight(?:ly)?|nit(?:pick\w*)?|typos?|spelling|cosmetic|word(?:y|iness)|verbos\w+"
    r"|repetiti\w+",
    r"redundan\w+|long-?winded|a (?:bit|little|touch)|somewhat|formatting|tone|phrasing|wording|small",
)

_GOOD = partial(
    _any_of,
    r"(?:is|are|it's) (?:(?:already|also|both|very|quite|a|an|the) )*(?:clear|correct|accurate|concise"
    r"|complete|straightforward|excellent|good|right|best|useful|helpful|sound|thorough|well)",
    r"already \w+|easy to (?:understand|follow|read)|would not make it better",
)
"""Praise without words of critique: under *Weaknesses*, everything else is critique."""

_FAULT = (
    r"(?:errors?|mistakes?|issues?|problems?|flaws?|gaps?|bugs?|weakness\w*|shortcomings?|drawbacks?"
    r"|inaccura\w+|omissions?|contradictions?|inconsistenc\w+|missing|wrong|unclear)"
)
_FAULTS = rf"{_FAULT}(?:,? (?:or|and|nor) (?:\w+ ){{0,2}}?{_FAULT})*"
_RISKS = (
    r"(?:dangerous|unsafe|insecure|vulnerab\w+|injections?|risky|data loss|crash\w*"
    r"|limited|outdated|misleading)"
)
_DEALS_WITH = (
    r"(?:avoid|handl|address|solv|resolv|fix|identif|explain|warn|catch|caught|mention|discuss"
    r"|spot|cover"
    r"|point|flag|list|recogni[sz]|notic|acknowledg|prevent|correct)\w*"
)
_PRAISE = partial(
    _any_of,
    rf"(?:no|not any|free (?:of|from)|without(?: any)?|hardly any|zero"
    rf"|nothing) (?:\w+ ){{0,2}}?{_FAULTS}",
    rf"(?:doesn't|does not|don't|do not) (?:contain|have|include|introduce|make|show) (?:any |a )?"
    rf"(?:\w+ ){{0,2}}?{_FAULTS}",
    r"nothing (?:\w+ ){0,2}?to (?:fault|criticis\w+|criticiz\w+|add|improve)",
    r"(?:isn't|is not|not|never) (?:wrong|incorrect|misleading|vague|wordy|verbose|outdated"
    r"|superficial)",
    r"lacks nothing|leaves nothing out|misses nothing|never (?:misses|loses)",
    r"(?:doesn't|does not) (?:miss|lack|omit|overlook|ignore|forget) \w+",
    r"(?:could|can)(?:n't| not) be (?:better|clearer)|(?:hard|difficult) to (?:fault|beat|improve)",
    r"error[ -]handling|errors? (?:messages?|rates?|codes?|budgets?)|missing values?|bug reports?",
    rf"{_DEALS_WITH} (?:\w+,? ){{0,4}}?(?:{_FAULTS}|{_RISKS})",
    r"should be (?:ranked|first|the (?:winner|answer))|as (?:it|they) should|could be used|could win",
    r"breaks? (?:(?:it|this|that|them|the (?:\w+ ){1,2}?))?down",
    r"(?:the|this|given|math\w*|word) (?:given |original )?(?:problem|issue)"
    r"(?! (?:with|is|in|of|here|lies|was))|if there (?:were|was|is) any\b[^.;]*",
    r"none of (?:\w+ ){1,2}?(?:lacks|misses|is|are)(?: \w+){1,5}",
    r"no (?:mention of )?(?:any )?(?:steering|orders|instructions|attempts?)",
    r"less (?:error|risk)\w*|problem[ -]solv\w+|worst[ -]case|needs? (?:no|nothing|little)|not only",
)
