"""The plain English words by which a sentence of a review praises or objects.

What is wrong or harmful is grave and what concerns only the form is minor, as the prompt for reviews
says. All read small letters alone: ignoring case takes four times as long.
"""

import re
from functools import cache, partial


@cache  # at the first review: compiling takes a tenth of what is imported at a start
def _any_of(*phrases: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(phrases)})(?!\w)")


GRAVE = partial(
    _any_of,
    r"wrong(?:ly)?|incorrect(?:ly)?|inaccura\w+|false(?:ly)?|untrue|erroneous\w*|mistake[ns]?|errors?",
    r"dangerous\w*|unsafe|insecure|vulnerab\w+|harmful|mislead\w*|illegal|data loss|fabricat\w+",
    r"hallucinat\w+|made[ -]up|invent(?:s|ed)|contradict\w*|broken|breaks|crash\w*|bugs?|buggy",
    r"(?:does not|doesn't|won't|can't|cannot) (?:work|compile|run|answer)|fails? to answer",
    r"fatal(?:ly)?|serious(?:ly)?|severe(?:ly)?|major|off[ -]topic|steer(?:s|ing)?|manipulat\w+",
)
LACKING = partial(
    _any_of,
    r"lack(?:s|ed|ing)?|miss(?:es|ed|ing)|omi(?:ts?|tted|ssions?)|ignor(?:es|ed|ing)|overlook\w*",
    r"neglect\w*|forg[eo]t\w*|leaves (?:out|open|readers guessing)|skips?|skipped|falls short",
    r"stops short|(?:does|did|do)(?: not|n't) \w+|never \w+|hardly|barely|fails? to|failed to",
    r"could not|couldn't|(?:solves|covers|handles) \w+, not \w+|misapplies|misunderstands|confuses",
    r"not (?:enough|clear|very|useful|convincing|specific|detailed|complete|mention\w*|explain\w*)",
    r"no (?:mention|examples?|sources?|evidence|citations?|tests?|numbers?|word|detail|explanation)",
    r"without (?:any|citing|giving|explaining|saying)|should|could|would (?:benefit|be better)|needs?",
    r"unclear|vague\w*|ambiguous|incomplete|insufficient\w*|superficial|shallow|thin|limited",
    r"confus(?:ing|ed)|weak\w*|outdated|obsolete|deprecated|over-?simpl\w+|over(?:sells?|states?)",
    r"exaggerat\w+|only (?:covers?|mentions?|lists?|gives?|names?|states?|repeats?)|hard to",
    r"difficult to|(?:just|simply|merely) (?:repeats?|a repetition)|too \w+|worse|poor(?:ly)?",
    r"problem\w*|issues?|flaw\w*|gaps?|shortcomings?|drawbacks?|questionable|assumes|generic",
    r"impractical|unrealistic|premature|risky|inconsisten\w+",
    r"un(?:supported|substantiated|proven|sourced|tested|justified|explained|necessary)",
)
MINOR = partial(
    _any_of,
    r"minor|slight(?:ly)?|nit(?:pick\w*)?|typos?|spelling|cosmetic|word(?:y|iness)|verbos\w+",
    r"repetitive|redundan\w+|long-?winded|a (?:bit|little|touch)|somewhat|formatting|phrasing|wording",
)
GOOD = partial(
    _any_of,
    r"clear|correct(?:ly)?|accurate|concise|complete|thorough|excellent|good|best|right|solid|sound",
    r"strong|useful|helpful|fine|convincing|actionable|readable|careful|honest|realistic|precise",
    r"detailed|practical|covers|explains|identifies|cites|handles|finds|weighs|solves|well[ -]\w+",
)
QUALIFIED = partial(
    _any_of,
    r"no|nobody|nothing|not|never|none|but|though|although|however|yet|only|if|would|almost|more|less",
    r"than|then|\w+n't",
)
"""Beside one of these words, a word of praise proves nothing."""

_FAULT = (
    r"(?:errors?|mistakes?|issues?|problems?|flaws?|gaps?|bugs?|weakness\w*|risks?|contradictions?"
    r"|inaccura\w+|omissions?|missing|wrong|incorrect|mislead\w+|unclear|vague|outdated|dangerous"
    r"|unsafe|insecure|vulnerab\w+|injections?|crash\w*|limited|superficial)"
)
CLEARED = partial(
    _any_of,
    r"(?:no|not|nothing|never|hardly any|without|free (?:of|from)|(?:contain|have|make)s? any"
    r"|(?:avoid|handl|address|fix|identif|explain|warn|catch|mention|spot|cover|point|flag)\w*)"
    rf" (?:\w+ ){{0,2}}?{_FAULT}(?:,? (?:or|and) {_FAULT})*",
    rf"(?:(?<!not )(?:correct|right) about|(?<!never )thinks of) (?:\w+ ){{0,2}}?{_FAULT}",
    rf"(?:does not|doesn't) (?:contain|have|make|show) (?:any |a )?(?:\w+ )?{_FAULT}(?: or {_FAULT})*",
    r"(?:leaves|misses|lacks) nothing(?: out)?|none of (?:\w+ ){1,2}(?:lacks|misses|is)\b[^.;]*",
    r"no (?:mention of )?(?:any )?(?:\w+ or )?steering|error[ -](?:handling|messages?|rates?)",
    r"(?:given|to the) problem|breaks (?:\w+ ){0,2}down|already|if there (?:were|was|is) any\b[^.;]*",
)
"""Words of critique that say there is nothing to criticize."""
