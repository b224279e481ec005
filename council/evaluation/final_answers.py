"""Where a reply says its final answer.

Nothing is guessed: a reply that names two answers, hedges or takes its answer back has none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from council.text import sentences

_NAMES = (
    r"(?:the\s+)?(?:correct\s+|right\s+|final\s+|short\s+)?(?:answer|result|solution)"
    r"|(?:die\s+|meine\s+)?(?:richtige\s+|endgültige\s+|kurze\s+)?(?:antwort|lösung)|(?:das\s+)?(?:end)?ergebnis"
    r"|(?:la\s+)?(?:bonne\s+)?(?:réponse|solution)(?:\s+finale|\s+correcte)?|(?:le\s+)?résultat(?:\s+final)?"
    r"|(?:la\s+)?(?:respuesta|solución)(?:\s+final|\s+correcta)?|(?:el\s+)?resultado(?:\s+final)?"
)
_MARK = re.compile(
    rf"(?:^|(?<=[\s>*_#(]))(?:{_NAMES})\s*[*_`]*\s*(?:[:：=]|\b(?:is|lautet|ist|est|es|equals)\b\s*:?)[ \t]*[*_]*",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
_BOLD = re.compile(r"\*\*(.+?)\*\*|__(.+?)__", re.DOTALL)
_TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|correction|sorry|oops|on second thought|however|but|korrektur|moment|doch|eigentlich"
    r"|allerdings|aber|entschuldigung|pardon|en fait|attendez|mais|cependant|perdón|en realidad|espera|pero"
    r"|sin embargo)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|isn't|isn\u2019t|cannot|can't|never|wrong|nicht|kein\w*|niemals|falsch|pas|jamais|faux|fausse"
    r"|incorrect\w*|nunca|falso)\b|\bn[\u2019']|\bno es\b|\bno son\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:or|either|maybe|perhaps|possibly|probably|between|unless|oder|entweder|vielleicht|eventuell"
    r"|zwischen|wohl|ou|soit|peut-être|entre|o bien|quizás|tal vez|unclear|unklar|unknown)\b|\s[oó]\s|\?",
    re.IGNORECASE,
)
_PARENTHESIS = re.compile(r"\([^()]*\)")


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The part of a reply that holds its answer; `marked` says that the reply names it as such."""

    text: str
    marked: bool

    @property
    def is_negated(self) -> bool:
        """Whether it says what the answer isn't."""
        return bool(_NEGATED.search(self.text))

    @property
    def is_hedged(self) -> bool:
        """Whether it leaves open which answer it is."""
        return bool(_HEDGED.search(self.text))

    @property
    def without_parentheses(self) -> str:
        """The text without what is in brackets, unless that is all of it."""
        return _PARENTHESIS.sub(" ", self.text).strip() or self.text


def final_answer(reply: str) -> FinalAnswer | None:
    """Return where a reply says its answer; `None` where it says none, or takes it back."""
    text = reply.strip()
    if not text:
        return None
    boxed = [*_BOXED.finditer(text)]
    marks = [*_MARK.finditer(text)]
    if boxed and (not marks or boxed[-1].start() > marks[-1].start()):
        rest = text[boxed[-1].end() :]
        return None if _takes_back(rest) else FinalAnswer(boxed[-1].group(1).strip(), marked=True)
    if marks:
        return _after(text, marks)
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) == 1:
        return FinalAnswer(_sentences(_bare(lines[0]))[-1], marked=False)
    return FinalAnswer(_sentences(_bare(lines[-1]))[-1], marked=False)


def _after(text: str, marks: list[re.Match[str]]) -> FinalAnswer | None:
    said = text[marks[-1].end() :].lstrip("*_ \t")
    line, _, rest = said.partition("\n")
    if not line.strip():  # the answer is on the next line, or in a block of code
        following = rest.strip()
        if following.startswith("```"):
            block, _, after = following[3:].partition("```")
            _, _, block = block.partition("\n")
            return None if _takes_back(after) else FinalAnswer(block.strip("\n"), marked=True)
        line, _, rest = following.partition("\n")
    first, *more = _sentences(_bare(line))
    if _takes_back(" ".join([*more, rest])):
        return None
    return FinalAnswer(first, marked=True)


def _takes_back(rest: str) -> bool:
    return bool(_TAKEN_BACK.search(rest))


def _bare(line: str) -> str:
    """Return a line without its emphasis and list mark."""
    line = re.sub(r"^\s*(?:[-*+]\s+|#+\s+|>\s*)", "", line)
    return _BOLD.sub(lambda bold: bold.group(1) or bold.group(2), line).strip().strip("*_").strip()


def _sentences(line: str) -> list[str]:
    return sentences(line) or [line]


def code_blocks(reply: str) -> Iterator[str]:
    """Yield the contents of a reply's fenced blocks."""
    for block in re.finditer(r"```[^\n]*\n(.*?)```", reply, re.DOTALL):
        yield block.group(1).strip("\n")
