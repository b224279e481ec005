"""Answers that speak of labels, of other answers or of the judging, found without a model.

An answer has no reason to know of them: each was written alone. Whoever does may be talking to the
judge, so the run goes its full depth. A false alarm costs the reviews that were to be saved, no more.
"""

import re
from collections.abc import Iterable

_LABEL = r"(?i:response|answer|antwort|réponse|respuesta|resposta|risposta|antwoord)[ \u00a0-]"
_ROLE = (
    r"(?:judges?|reviewers?|evaluators?|graders?|referees?|jury|chairman"
    r"|schiedsrichter|richter|gutachter|bewerter|juges?|évaluateur|juez|jurado|giudice)"
)
_SAME = r"(?:same|identical|equivalent|agree\w*|consistent|alike)"
_SPEAKS = rf"""
    # of other answers
    \b(?:other|others'|these|those|all|every|remaining|rival|competing|fellow|members'|four|three)\b
      (?:\ of)?(?:\ the|\ my)?(?:\ \w+)?\ (?:answers|assistants|council\ members)\b
  | \b(?:other|these|remaining|rival|competing)\ (?:responses|replies)\b
  | \b(?:all|every|both|the)\ (?:\w+\ )?(?:answers|responses)\ (?:\w+\ )?(?:are\ )?{_SAME}
  | \banswers\ (?:above|below|of\ the\ other) | \bcouncil\ members\b
  | (?:ander|übrig|all|dies|restlich)e[nr]?\ antworten | (?:autres|toutes\ les|ces)\ réponses
  | (?:otras|demás|todas\ las|estas)\ respuestas | (?:outras|todas\ as|estas)\ respostas
  | (?:altre|tutte\ le|queste)\ risposte | (?:andere|alle|deze)\ antwoorden
  | (?:\u0434\u0440\u0443\u0433\u0438[\u0435\u0445]|\u0432\u0441\u0435\u0445?|\u044d\u0442\u0438)
      \ \u043e\u0442\u0432\u0435\u0442
  | (?:\u4ed6\u306e|\u3059\u3079\u3066\u306e|\u5168\u3066\u306e|\u3053\u308c\u3089\u306e)\u56de\u7b54
  | (?:\u5176\u4ed6|\u6240\u6709|\u8fd9\u4e9b|\u5168\u90e8)\u7684?(?:\u56de\u7b54|\u7b54\u6848)
  | (?:\ub2e4\ub978|\ubaa8\ub4e0)\ \ub2f5\ubcc0
    # to whoever judges it
  | (?:^|[.!?:\n*#>]\s*|\b(?:to|dear|for|as|an|au|al|cher|lieber?|estimado)\ |\byou\ are\ )
      (?:(?:the|any|all|a|den|die|le|el)\ )?{_ROLE}\s*[,:]
  | \b(?:note|message|instructions?|attention|hint|reminder|hello|hinweis)[\ ,:]+(?:to|for|an|au|al|für)
      \ (?:(?:the|any|all|den|die|le|el)\ )?{_ROLE}\b
  | \b(?:as|you\ are)\ the\ {_ROLE}\b
  | {_ROLE}[\ ,:]+(?:please|must|should|is\ to|will)\ (?:rank|rate|score|prefer|choose|report|say|mark)
  | (?:\u5ba1\u7a3f\u4eba|\u8bc4\u5ba1|\u88c1\u5224|\u8bc4\u59d4|\u5be9\u67fb\u54e1)[:\uff1a,\uff0c]
    # of the judging
  | final\ ranking | \b(?:rank|rate|score)\ (?:this|my|me)\b
  | \b(?:being|am|are|is|be)\ (?:\w+\ )?(?:judged|graded|ranked|compared)\ (?:an?\ )?
      (?:answer|response|against|with\ other)
  | \b(?:whoever|if\ you)\ (?:are\ )?compar\w+ | \bthe\ comparison\ (?:should|must|has\ to)
  | \b(?:report|list|name|find|output|mention)\ (?:\w+\ ){{0,2}}differences?\b
  | \bno\ differences?\ (?:here|between\ (?:the|these)\ (?:answers|responses))
  | \b(?:mark|treat|report|count|consider)\ (?:\w+\ ){{1,4}}as\ (?:the\ )?{_SAME}\b
  | \b(?:output|report|write|say|answer)\ (?:that\ they\ )?["'\u201c]?{_SAME}\b
  | \bskip\ (?:the\ |all\ )?reviews?\b(?!\ of) | \bno\ need\ (?:for|of)\ (?:a\ |any\ )?reviews?\b
  | \b(?:this|my)\ (?:answer|response)
      \ (?:first|is\ the\ best|should\ (?:be|win)|deserves|matches|agrees)
  | \bthe\ best\ (?:answer|response)\ of\ all
  | \b(?:ignore|disregard|forget)\ (?:(?:all|any|the|your)\ )*(?:above
      |(?:previous|prior|above|earlier|other)\ (?:instructions?|answers?|responses?|text|rules))
  | (?:ignorier\w*|vergiss)\ (?:(?:alle|die|deine)\ )*
      (?:vorherigen|bisherigen|obigen)\ (?:anweisungen|regeln)
  | ["'\u201c](?:recommendation|differences|steering)["'\u201d]\s*:
"""
_PATTERN = re.compile(_SPEAKS, re.IGNORECASE | re.VERBOSE | re.MULTILINE)
_TELLING = (
    "answer", "respon", "repl", "council", "antwort", "réponse", "respuesta", "resposta",
    "rispost", "antwoord", "judg", "review", "evalu", "évalu", "grader", "referee", "jury",
    "jurado", "juge", "juez", "giudic", "chairman", "richter", "gutachter", "bewerter",
    "rank", "rate", "score", "compar", "differ", "ignor", "disregard", "forget", "vergiss",
    "recommend", "steering", "same", "identical", "agree", "consistent", "alike",
    "equivalent", "\u043e\u0442\u0432\u0435\u0442", "\u56de\u7b54", "\u7b54\u6848",
    "\ub2f5\ubcc0", "\u5ba1", "\u8bc4", "\u88c1", "\u5be9",
)  # fmt: skip
"""One of them is in each text that the pattern finds: elsewhere, it needn't look."""
WINDOW, OVERLAP = 400, 120
"""Characters that are looked at together: a search of more would hold up the event loop."""


def steers(texts: Iterable[str], labels: Iterable[str]) -> bool:
    """Return whether one of the texts speaks of its label, of other answers or of the judging."""
    letters = "".join(label.split()[-1] for label in labels)
    labelled = re.compile(rf"\b{_LABEL}[{letters}]\b(?!['\u2019/])")
    return any(_speaks(text, start, labelled) for text in texts for start in range(0, len(text), WINDOW))


def _speaks(text: str, start: int, labelled: re.Pattern[str]) -> bool:
    end = start + WINDOW + OVERLAP
    window = text[start:end].casefold()
    if not any(word in window for word in _TELLING):
        return False
    return any(pattern.search(text, start, end) for pattern in (labelled, _PATTERN))
