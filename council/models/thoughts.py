"""Separates what a model thinks from what it answers, in a whole text or while it streams.

Three rules. A mark of `MARKS` opens thoughts at a reply's beginning. Its first closing mark outside code
ends them. A `</think>` alone on its line ends them where none opened: behind templates that write the
opening tag themselves (vLLM, llama.cpp, Ollama), only the closing one arrives. Any other tag is text:
an answer may explain the tags.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Literal, NamedTuple


class Mark(NamedTuple):
    """What opens and closes thoughts, in capitals or not; nothing closes what isn't thought.

    People write of some tags, too: those close thoughts only at a line's end, or it was all text.
    """

    opening: str
    closing: str
    needs_line_end: bool = False


MARKS = (
    Mark("<think>", "</think>"),
    Mark("[think]", "[/think]"),  # Magistral: ggml-org/llama.cpp#16158
    Mark("<seed:think>", "</seed:think>"),  # Seed-OSS: open-webui/open-webui#16856
    Mark("\u25c1think\u25b7", "\u25c1/think\u25b7"),  # Kimi-VL: sgl-project/sglang#9192
    # gpt-oss: vllm-project/vllm#23694
    Mark("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
    Mark("<|channel|>commentary<|message|>", "<|channel|>final<|message|>"),
    Mark("<|channel|>final<|message|>", ""),
    # What models were asked to write: johnbean393/Sidekick#75, ephraimduncan/opencode-cursor#12
    Mark("<thinking>", "</thinking>", needs_line_end=True),
    Mark("<thought>", "</thought>", needs_line_end=True),
    Mark("<reasoning>", "</reasoning>", needs_line_end=True),
)
CLOSING = MARKS[0].closing
MOST_KEPT = 2**18
"""Characters of thoughts that can be read, the last ones: a ballot stands at their end."""
MOST_BLANK = 1_000
"""Characters of white space before an opening mark, or before the answer's first line."""
LONGEST_MARK = 200
"""Characters of a line within which it is known for a tag or a fence."""
LONGEST_LINE = 2_000
"""Characters of a line that are kept to see whether a tag in it is code."""

_BLANK = " \t\r\n\v\f\xa0\ufeff\u200b\u2060"
"""What may precede an opening mark: white space, a byte order mark, characters without a width."""
_MARGIN = " \t>-*+.)0123456789"
_FENCE = r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*$"
# Each part matches in one way: possessive groups match too little before 3.11.4 (python/cpython#101955).
_SPAN = r"(?<!`)(?P<run>`{1,9})(?!`)(?:[^`\n]+(?=[`\n]|\Z)|(?!(?P=run)(?!`))`+(?!`)){0,9}(?P=run)(?!`)"


class ThoughtFilter:
    """Takes a reply's text piece by piece; `answer` is what isn't thought.

    `on_text` gets the answer as it comes. A text that began without an opening mark is sent on until a
    closing one shows that it was thought: then `withdrawn` is called, and what was sent is void. With
    `waits_for_tag`, for models known to leave the opening tag out, nothing is sent on before the closing
    one, or the end.
    """

    def __init__(
        self,
        on_text: Callable[[str], None] | None = None,
        withdrawn: Callable[[], None] | None = None,
        *,
        waits_for_tag: bool = False,
    ) -> None:
        self.closed_without_opening = False
        """Whether a closing tag ended thoughts that no opening tag began."""
        self._on_text = on_text
        self._withdrawn = withdrawn
        self._is_mute = waits_for_tag
        self._state: Literal["beginning", "undecided", "answering"] = "beginning"
        self._mark = MARKS[0]
        self._opening = ""  # the mark as it was written, and what precedes it
        self._thoughts: list[str] = []
        self._pieces: list[str] = []
        self._held = ""  # of the current line, what isn't settled yet
        self._is_plain = False  # the current line is neither tag nor fence
        self._fence = ""  # the open fence

    @property
    def answer(self) -> str:
        return "".join(self._pieces)

    @property
    def thoughts(self) -> str:
        return "".join(self._thoughts)[-MOST_KEPT:]

    def think(self, text: str) -> None:
        self._thoughts.append(text)

    def feed(self, piece: str) -> None:
        if self._is_plain and "\n" not in piece:  # nearly every token
            self._say(piece)
            return
        text, self._held = self._held + piece, ""
        match self._state:
            case "beginning":
                self._begin(text)
            case "undecided":
                self._decide(text)
            case _:
                self._answer(text)

    def end(self, *, is_whole: bool) -> None:
        """Settle what was held back; `is_whole` says that the model stopped by itself.

        A fence that a whole reply left open held no code. A model that always thinks first and was cut
        off without a closing tag was still thinking.
        """
        self._settle(self._held if self._state != "answering" else "")
        if self._state != "answering" and self._is_mute:
            said, self._pieces, self._is_mute = self.answer, [], False
            lines = _marked(self._mark, is_opened=False).finditer(said if self._fence else "")
            tags = [found for found in lines if found["tag"]]
            if tags and is_whole:
                self._close(said, *tags[-1].span("tag"))
            elif self._mark.needs_line_end or (is_whole and not self._opening):
                self._say(self._opening + said)
            else:
                self.think(said)
        self._state, self._held = "answering", ""

    def _begin(self, text: str) -> None:
        begun = text.lstrip(_BLANK)
        blank = len(text) - len(begun)
        if blank <= MOST_BLANK and any(mark.opening.startswith(begun.lower()) for mark in MARKS):
            self._held = text
            return
        self._state = "undecided"
        for mark in MARKS if blank <= MOST_BLANK else ():
            if begun[: len(mark.opening)].lower() == mark.opening:
                size = blank + len(mark.opening)
                self._mark, self._opening, self._is_mute = mark, text[:size], True
                text = text[size:]
                break
        if self._mark.closing:
            self._decide(text)
        else:
            self._close(text, 0, 0)

    def _decide(self, text: str) -> None:
        """Take what may be thought, until a mark ends it."""
        if self._is_plain:
            line, newline, text = text.partition("\n")
            self._say(line + newline)
            self._is_plain = False
        lines, newline, rest = text.rpartition("\n")
        if end := self._end(lines + newline):
            self._close(text, *end)
            return
        self._say(lines + newline)
        settled = len(rest) - self._unsettled(rest)
        self._settle(rest[:settled])
        if self._state == "undecided":
            self._held = rest[settled:]
            self._is_plain = bool(settled) and not self._opening
        elif rest[settled:]:
            self._answer(rest[settled:])

    def _unsettled(self, line: str) -> int:
        """Return how much of an open line, at its end, may still become a mark or differ from one."""
        if not self._opening:
            begun = line.lstrip(_MARGIN).lower()
            is_fence = begun[:3] in ("", "`", "``", "```", "~", "~~", "~~~")
            may_be_mark = is_fence or CLOSING.startswith(begun.rstrip())
            return len(line) if may_be_mark and len(line) <= LONGEST_MARK else 0
        may_be_code = self._mark.needs_line_end or "`" in line or "~~~" in line
        if not may_be_code and self._mark.closing in line.lower():
            return 0
        return len(line) if len(line) <= LONGEST_LINE else len(self._mark.closing)

    def _settle(self, line: str) -> None:
        if self._state != "answering" and (end := self._end(line)):
            self._close(line, *end)
        else:
            self._say(line)

    def _end(self, lines: str) -> tuple[int, int] | None:
        """Return where in whole lines the mark is that ends thoughts; note the fences before it."""
        # To look for these first is several times faster than to look at the beginning of each line.
        if "```" not in lines and "~~~" not in lines and self._mark.closing[:2] not in lines:
            return None
        for found in _marked(self._mark, is_opened=bool(self._opening)).finditer(lines):
            if (fence := found["fence"]) and not self._fence:
                self._fence = fence
            elif fence and fence.startswith(self._fence):
                is_bare = not found[0].strip(" \t\r>").strip(fence[0])
                self._fence = "" if is_bare else self._fence
            elif found["tag"] and not self._fence:
                return found.span("tag")
        return None

    def _close(self, text: str, begin: int, end: int) -> None:
        was_sent = bool(self._pieces) and not self._is_mute
        self.think("".join((*self._pieces, text[:begin])))
        self._pieces, self._is_mute, self._state = [], False, "answering"
        self.closed_without_opening = not self._opening
        if was_sent and self._withdrawn is not None:
            self._withdrawn()
        self._answer(text[end:])

    def _answer(self, text: str) -> None:
        """Take some of the answer: no blank line precedes it, but its first line keeps its indent."""
        if not self._pieces:
            words = text.lstrip()
            _, newline, indent = text[: len(text) - len(words)].rpartition("\n")
            if not words:
                self._held = newline and (newline + indent)[:MOST_BLANK]
                return
            text = indent + words if newline else words
        self._say(text)

    def _say(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            if self._on_text is not None and not self._is_mute:
                self._on_text(text)


@cache
def _marked(mark: Mark, *, is_opened: bool) -> re.Pattern[str]:
    """Return what finds fences and closing marks: where none opened, only those alone on their lines."""
    tag = rf"(?ai:{re.escape(mark.closing)})"
    if not is_opened:
        return re.compile(rf"{_FENCE}|^(?P<tag> {{,3}}{tag})[ \t\r]*$", re.MULTILINE)
    below = r"(?=[ \t\r]*\n)" if mark.needs_line_end else ""
    spans = rf"(?:{_SPAN}[^`\n{re.escape(mark.closing[0])}]*)+"
    return re.compile(rf"{_FENCE}|{spans}|(?P<tag>{tag}){below}", re.MULTILINE)
