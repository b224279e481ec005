"""Answers that speak of labels, of other answers or of the judging, found without a model.

An answer has no reason to know of them: each was written alone. Whoever does may be talking to the
judge, so the run goes its full depth. A false alarm costs the reviews that were to be saved, no more.
"""

import re
from collections.abc import Iterable

_LABEL = r"(?i:response|answer|antwort|réponse|respuesta|resposta|risposta|antwoord)[ \u00a0-]"
_READERS = (
    "(?:judge|reviewers?|evaluators?|graders?|referee|chairman|schiedsrichter|gutachter|bewerter|juge"
    "|juez|giudice|\u0441\u0443\u0434\u044c\\w+|\u5be9\u67fb\u54e1|\u8bc4\u5ba1)"
)
_SPEAKS = rf"""
    # of other answers
    other\ (?:answers|responses|replies|assistants|council\ members)
  | (?:rival|competing|fellow)\ (?:answers|responses|models|members)
  | (?:all|every|each|both|these|the|four|three)\ (?:\w+\ )?(?:answers|responses)\ (?:\w+\ )?
      (?:agree|are\ (?:identical|equivalent|the\ same)|say\ the\ same)
  | ander(?:e|en|er)\ antworten | autres\ réponses | (?:otras|demás)\ respuestas | outras\ respostas
  | altre\ risposte | andere\ antwoorden
  | \u0434\u0440\u0443\u0433\u0438[\u0435\u0445]\ \u043e\u0442\u0432\u0435\u0442
  | \u4ed6\u306e\u56de\u7b54 | \u5176\u4ed6\u7684?(?:\u56de\u7b54|\u7b54\u6848)
  | \ub2e4\ub978\ \ub2f5\ubcc0
    # to whoever judges it
  | (?:note|message|instructions?|attention|dear|hint|reminder|hello|hinweis|lieber?|cher|estimado)
      [\ ,:]+(?:(?:to|for|an|au|al|für)\ )?(?:(?:the|any|all|den|die|le|el)\ )?{_READERS}
  | {_READERS}[\ ,:]+(?:please|must|should|is\ to|will)\ (?:rank|rate|score|prefer|choose|report|say)
  | final\ ranking
  | (?:rank|rate|score)\ (?:this|my|me)\b
  | (?:as|being|when|are|is)\ (?:an?\ )?(?:judged|graded|ranked)\ (?:answer|response|against)
  | (?:ignore|disregard|forget)\ (?:(?:all|any|the|your)\ )*
      (?:previous|prior|above|earlier|other)\ (?:instructions?|answers?|responses?|text|rules)
  | (?:ignorier\w*|vergiss)\ (?:(?:alle|die|deine)\ )*
      (?:vorherigen|bisherigen|obigen)\ (?:anweisungen|regeln)
  | ["'\u201c](?:recommendation|differences|steering)["'\u201d]\s*:
"""
_PATTERN = re.compile(_SPEAKS, re.IGNORECASE | re.VERBOSE)


def steers(texts: Iterable[str], labels: Iterable[str]) -> bool:
    """Return whether one of the texts speaks of its label, of other answers or of the judging."""
    letters = "".join(label.split()[-1] for label in labels)
    labelled = re.compile(rf"\b{_LABEL}[{letters}]\b(?!['\u2019/])")
    return any(_PATTERN.search(text) or labelled.search(text) for text in texts)
