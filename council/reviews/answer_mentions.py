"""Which answers a line or a sentence of a review names, and how."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from council.reviews.reviewer_lines import Line

# A script without spaces touches a letter without belonging to it.
_WORD = r"(?-i:[0-9A-Za-z_\u00c0-\u024f\u0400-\u04ff])"
_NOUN = (
    rf"(?<!{_WORD})(?:responses?|answers?|replies|reply|candidates?|submissions?|antwort(?:en)?|réponses?"
    r"|respuestas?|respostas?|rispost[ae]|odpowied\w+|\u043e\u0442\u0432\u0435\u0442\w{0,3}"
    r"|回答|答案|回复|答复|回應|응답|답변)"
)
_AND = r"and|or|und|oder|et|ou|y|o|e|\u0438|\u548c|\u4e0e|\u53ca|&|/|\+"
MENTION = re.compile(
    rf"{_NOUN}[\s:#-]*[(\[]?((?-i:[A-Z]))(?!{_WORD})(?:[)\]]?(?:\s*[,\u3001\uff0c]\s*(?:(?:{_AND})\s+)?"
    rf"|\s*(?:{_AND})\s*)(?:{_NOUN}\s*)?(?-i:[A-HJ-Z])(?!{_WORD})(?!'))*",
    re.IGNORECASE,
)
_LETTER = re.compile(rf"(?<!{_WORD})(?<!['+#])[A-Z](?!{_WORD})(?![+#])")
_ARTICLE = re.compile(
    r"(?:^|(?<=[.!?:;]\s)|(?<=[\"'(]))A\s+(?=[a-z])(?!(?:\w+ly\s+)?(?:\w+[^su\W]s|is|has|was|can|could|should)\b)"
)
IS_ENGLISH = re.compile(
    r"\b(?:the|is|it|its|and|with|but|not|are|this|that|of|to|I|would|found)\b", re.IGNORECASE
)
_TWO_TO_SEVEN = "(?:two|three|four|five|six|seven)"
_LACK = "(?:are|do|have|give|get|miss|lack|say|agree|differ|fail|share|recommend)"
_SEVERAL_IN_WORDS = (
    # English
    "others",
    "in common",
    "neither",
    "no other",
    "on par",
    "tie",
    "former",
    "latter",
    "head to head",
    r"(?:among|between) (?:them|these|the (?:two|three|four|answers|responses))",
    "they (?:all|both)",
    r"the rest\b(?! of (?:it|the (?:answer|response|text|plan|code)))",
    rf"(?:the )?(?:(?:other|remaining) )?{_TWO_TO_SEVEN} (?:answers|responses|others|ones?)",
    "(?:the )?(?:other|remaining) (?:two|three|four|answers?|responses?|ones?)",
    rf"(?:the )?(?:two|three|four) {_LACK}",
    rf"both(?:(?=[.,;]|$)| (?:of|answers|responses|{_LACK}))",
    (
        r"(?:none|all|each|any|either|most|some) of"
        r" (?:them|these|the (?:\w+ )?(?:answers|responses|two|three|four))"
    ),
    (
        r"(?:all|most|some|several|many|few|these|those|every|each|either|no) (?:\w+ )?"
        r"(?:answers?|responses?)"
    ),
    "(?:the|these) responses",
    rf"(?:^|\. )all {_TWO_TO_SEVEN}|all {_TWO_TO_SEVEN}(?=[.,;]|$| (?:of|{_LACK}))",
    "all should",
    (
        "(?:first|second|third|fourth|last|previous|next|other|winning|best|strongest|weakest|better|worse)"
        " (?:one|answer|response|two|of the (?:two|three|four))"
    ),
    "one (?:that|which)",
    "my (?:ranking|pick|choice|vote|favou?rite|order)",
    (
        r"(?:rank|place|put)(?:s|ed)? (?:it |them |this (?:one )?)?"
        "(?:first|second|third|last|above|below|ahead)"
    ),
    # German
    r"(?:die|den|der) (?:anderen?|übrigen|beiden|restlichen|zweite|dritte|letzte)(?! (?:teil|punkt))",
    "alle (?:drei|vier|antworten)|beiden? (?:antworten|nennen|sind)|keine der|jede der",
    "(?:erst|letzt)ere|die erste(?: antwort)?",
    # French, Spanish, Italian, Portuguese, Dutch, Russian
    "(?:les|des) (?:autres|deux|trois)|aucune des",
    "(?:l[ao]s )?(?:otr[ao]s|demás|amb[ao]s)",
    "(?:l[ae]|gli) altr[aei]|entramb[ei]",
    "(?:as|os) outr[ao]s|ambas",
    "de andere|beide",
    r"\u0434\u0440\u0443\u0433\w+|\u043e\u0441\u0442\u0430\u043b\w+|\u043e\u0431[\u0430\u0435]",
)
_SEVERAL_IN_SIGNS = (
    "其他|其余|另外|另一个|所有回答|前者|后者|相比|比起|第[一二三四]个回答",
    "[两三四各]个?(?:回答|者|答案)",
    "他の|両方|다른",
)
_SEVERAL = re.compile(
    rf"(?<!\w)(?:{'|'.join(_SEVERAL_IN_WORDS)}|^both)(?!\w)|{'|'.join(_SEVERAL_IN_SIGNS)}", re.IGNORECASE
)
"""Words that mean other answers without naming them."""


def letters(mention: str) -> list[str]:
    """Return the letters that a mention names, in its order."""
    return [*dict.fromkeys(_LETTER.findall(re.sub(_NOUN, " ", mention, flags=re.IGNORECASE)))]


def named(text: str, known: Mapping[str, str]) -> set[str]:
    """Return the letters of all answers that a text may name, and of unknown ones after a noun."""
    spelled = {letter for mention in MENTION.finditer(text) for letter in letters(mention[0])}
    bare = {*_LETTER.findall(_ARTICLE.sub("", text))} & known.keys()
    return spelled | bare


def means_others(text: str, letter: str, known: Mapping[str, str]) -> bool:
    """Return whether a text may mean another answer than the one of this letter."""
    return bool(named(text, known) - {letter} or _SEVERAL.search(text))


# Headings --------------------------------------------------------------------------------------

_GOOD = (
    r"(?:key |main )?(?:strengths?|pros?|positives?|good|right|advantages?|merits?)"
    r"|what (?:is|was|it does|it gets)\b(?!.*\b(?:not|wrong|missing|unclear|better))(?:,? \w+){0,3}"
    r" (?:right|well|good|useful|correct|strong)(?:,? \w+){0,4}|what works(?: well)?"
    r"|(?:right|correct|useful|good)(?:,? (?:and )?(?:right|correct|useful|good)){1,2}"
    r"(?: in (?:it|the answer))?"
    r"|stärken?|vorteile?|positiv\w*|points forts|优点|优势|长处|亮点"
)
_BAD = (
    r"(?:key |main )?(?:weakness(?:es)?|cons?|negatives?|issues?|problems?|flaws?|concerns?|critiques?"
    r"|criticisms?|shortcomings?|gaps?|missing|errors?|drawbacks?|limitations?|wrong|unclear"
    r"|improvements?|suggestions?)|what (?:is|was|are)\b(?:,? \w+){0,3}"
    r" (?:wrong|missing|unclear|weak|bad|incorrect|lacking)(?:,? \w+){0,4}"
    r"|what (?:could|would|should|can|needs?|to)\b(?: \w+){0,5}|would make it better"
    r"|(?:wrong|missing|unclear)(?:,? (?:(?:and|or) )?(?:wrong|missing|unclear)){1,2}"
    r"(?: in (?:it|the answer))?"
    r"|areas? (?:for|of)\b(?: \w+){0,3}|(?:how )?to improve|could be better"
    r"|schwächen?|nachteile?|kritik(?:punkte)?|mängel|verbesserung\w*|points faibles"
    r"|缺点|不足|劣势|改进\w*|问题"
)
_NEUTRAL = (
    r"accuracy|correctness|completeness|clarity|depth|structure|style|tone|relevance|usefulness"
    r"|practicality|actionability|security|cost|content|form|details?"
)
_REVIEW = r"assessment|evaluation|review|analysis|comments?|feedback|critique"
PART = re.compile(
    rf"^(?:(?P<good>{_GOOD})|(?P<bad>{_BAD}))\s*(?:\([^()]*\)\s*)?(?::|$)\s*", re.IGNORECASE
)
_NEUTRAL_PART = re.compile(rf"^(?:{_NEUTRAL}|{_REVIEW})\W*$", re.IGNORECASE)
_PART_IN_TITLE = re.compile(rf"(?:(?P<good>{_GOOD})|(?P<bad>{_BAD}))(?!\w)", re.IGNORECASE)
_LEAD = re.compile(
    rf"(?:to (?:the )?author of|(?P<part>{_GOOD}|{_BAD}|{_NEUTRAL})|{_REVIEW}"
    r"|notes?|remarks?|thoughts|verdict|bewertung|beurteilung|analyse|anmerkungen|评价|评估|分析|点评)?"
    r"(?:\s+(?:and|und|&)\s+\w+)?(?:\s*[:\u2013\u2014-])?\s*"
    r"(?:(?:of|for|on|about|regarding|re|von|zu|der|für)(?!\w)|对于|对|关于|针对)?\s*:?\s*",
    re.IGNORECASE,
)
_MARK = re.compile(
    r"[\])\"]?\s*(?:\([^()]*\)\s*)?(?:的?(?:评价|评估|分析|点评))?"
    r"(?::|[-\u2013\u2014|](?:\s|$)|[.,]?$)\s*"
)
_BARE_HEADING = re.compile(
    r"[\[(\"]?(?P<letter>[A-Z])[\])\"]?\s*(?:\([^()]*\)\s*)?(?=:|[-\u2013\u2014|]\s|$)"
)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading above the review of one answer; `letter` is empty where it names several.

    `rest` is what else its line says about the answer; `part` is the part that it names.
    """

    letter: str
    rest: str
    part: str = ""


def headings(lines: Sequence[Line], known: Mapping[str, str]) -> dict[int, Heading]:
    """Return the headings that name answers, by the numbers of their lines."""
    found: dict[int, Heading] = {}
    lettered: dict[int, Heading] = {}
    for at, line in enumerate(lines):
        if heading := _heading(line):
            found[at] = heading
        elif (bare := _BARE_HEADING.match(line.text)) and bare["letter"] in known:
            lettered[at] = Heading(bare["letter"], _MARK.sub("", line.text[bare.end() :], count=1))
    # One letter may be anything; several, each before a colon, name answers.
    several = len({heading.letter for heading in lettered.values()}) > 1
    return found | lettered if several else found


def _heading(line: Line) -> Heading | None:
    lead = _LEAD.match(line.text)
    mention = MENTION.match(line.text) or (lead and MENTION.match(line.text, lead.end()))
    if not mention:
        return None
    rest = line.text[mention.end() :]
    marked = _MARK.match(rest)
    title = line.level or line.is_title
    if not (marked or line.level) or (mention.start() and not (title or marked)):
        return None
    meant = letters(mention[0])
    part = (lead["part"] or "") if lead and mention.start() else ""
    if title and not part and (found := _PART_IN_TITLE.search(rest)):
        part = found[0]
    said = rest[marked.end() :] if marked and not line.level else ""
    return Heading(meant[0] if len(meant) == 1 else "", said.strip(), part)


def part_of(line: Line) -> re.Match[str] | None:
    """Return the part of a section that a line opens, like `Weaknesses:`."""
    return PART.match(line.text)


def is_part(title: str) -> bool:
    """Return whether a title is that of a section's part, not of another section."""
    return bool(PART.match(title) or _NEUTRAL_PART.match(title))


def is_good(part: str) -> bool:
    """Return whether a part contains praise."""
    found = PART.match(part)
    return bool(found and found["good"])


def is_bad(part: str) -> bool:
    """Return whether a part contains critique."""
    found = PART.match(part)
    return bool(found and found["bad"])
