"""Separates what a model thinks from what it answers, in a whole text or while it streams.

Reasoning models write `<think>…</think>` before their answer; behind templates that write the opening
tag themselves (vLLM, llama.cpp, Ollama), only the closing one arrives. Thoughts end at the first
`</think>` outside code, if the text began with `<think>` or the tag stands alone on its line, in
capitals or not. Some models write other marks (`OTHER_MARKS`), which count only at the beginning; three
of these also need a line's end and an answer behind their end, because people write of such tags, too.
Any other tag is text: an answer may explain the tags.
"""

import re
from collections import deque
from collections.abc import Callable
from typing import Literal, cast

OPENING = "<think>"
CLOSING = "</think>"
OTHER_MARKS = {
    "[think]": "[/think]",
    "<seed:think>": "</seed:think>",
    "\u25c1think\u25b7": "\u25c1/think\u25b7",
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
    "<|channel|>commentary<|message|>": "<|channel|>final<|message|>",
    "<|channel|>final<|message|>": "",  # without thoughts
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
}
"""Those of Magistral, Seed-OSS, Kimi-VL and gpt-oss, and what models were told to write.

Sources: ggml-org/llama.cpp#16158, open-webui/open-webui#16856, sgl-project/sglang#9192,
johnbean393/Sidekick#75, vllm-project/vllm#23694, ephraimduncan/opencode-cursor#12.
"""
_UNSURE = ("<thinking>", "<thought>", "<reasoning>")
_END_OF_LINE = re.compile(r"[ \t\r]*\n\s*\S")
_OPENINGS = (OPENING, *OTHER_MARKS)
MOST_KEPT = 2**18
"""Characters of thoughts that are kept, the last ones: a ballot stands at their end."""
LONGEST_MARK = 200
"""Characters of a line within which it is known for a tag or a fence."""
LONGEST_LINE = 10_000
"""Characters of a line within which a tag may be code."""
MOST_INDENT = 1_000

_ANY_CLOSING = rf"(?ai:{CLOSING})"
_CLOSING = re.compile(_ANY_CLOSING)
_BLANK = re.compile(r"[\s\ufeff\u200b\u2060]*+")
"""What may precede the opening tag: white space, a byte order mark, characters without a width."""
_MARGIN = r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?"
_TILDES = re.compile(rf"{_MARGIN}~{{3}}")
_FENCE = _MARGIN + r"(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*"
_TAG = rf" {{,3}}(?P<tag>{_ANY_CLOSING})[ \t\r]*"
_MARKED = re.compile(rf"^(?:{_FENCE}|{_TAG})$", re.MULTILINE)
_MARKED_OR_INLINE = re.compile(rf"^(?:{_FENCE}|[^\n]*{_ANY_CLOSING}[^\n]*)$", re.MULTILINE)
_FENCE_CLOSED = re.compile(r"[ \t>]*(?P<fence>`{3,}|~{3,})[ \t\r]*\Z")
_ALONE = re.compile(rf"\s*{_ANY_CLOSING}\s*\Z")
_SPAN_OR_TAG = re.compile(rf"`+|{_ANY_CLOSING}")
_MAYBE_MARKED = re.compile(
    r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)]?)(?:[ \t]+|\Z))?(?:\Z|`{1,2}\Z|`{3}|~{1,2}\Z|~{3})"
    "|"
    rf" {{,3}}(?ai:{'|'.join(re.escape(CLOSING[:size]) for size in range(1, len(CLOSING)))})?\Z"
    "|"
    rf" {{,3}}{_ANY_CLOSING}[ \t\r]*\Z"
)


class Thoughts:
    """What a model thought: counted in full, kept only at its end."""

    __slots__ = ("_kept", "_pieces", "characters")

    def __init__(self) -> None:
        self.characters = 0
        self._pieces: deque[str] = deque()
        self._kept = 0

    def add(self, text: str) -> None:
        """Take some more."""
        if not text:
            return
        self.characters += len(text)
        self._pieces.append(text)
        self._kept += len(text)
        while len(self._pieces) > 1 and self._kept - len(self._pieces[0]) >= MOST_KEPT:
            self._kept -= len(self._pieces.popleft())

    @property
    def text(self) -> str:
        """The last quarter of a million characters."""
        return "".join(self._pieces)[-MOST_KEPT:]


class ThoughtFilter:
    """Takes a reply's text piece by piece; `answer` is what isn't thought.

    `heard` gets the answer as it comes. A text that began without the opening tag is heard until a
    closing one shows that it was thought: then `withdrawn` is called, and what was heard is void. With
    `waits_for_tag`, for models known to leave the opening tag out, nothing is heard before the closing
    one, or the end.
    """

    __slots__ = (
        "_blank",
        "_doubtful",
        "_fence",
        "_head",
        "_heard",
        "_is_closed",
        "_is_plain",
        "_lead",
        "_line",
        "_opening",
        "_pieces",
        "_state",
        "_tail",
        "_waits",
        "_withdrawn",
        "closed_without_opening",
        "thoughts",
    )

    def __init__(
        self,
        heard: Callable[[str], None] | None = None,
        withdrawn: Callable[[], None] | None = None,
        *,
        waits_for_tag: bool = False,
    ) -> None:
        self.thoughts = Thoughts()
        self.closed_without_opening = False
        """Whether a closing tag ended thoughts that no opening tag began."""
        self._heard = heard
        self._withdrawn = withdrawn
        self._waits = waits_for_tag
        self._state: Literal["beginning", "thinking", "marked", "undecided", "answering"] = "beginning"
        self._pieces: list[str] = []
        self._blank: list[str] = []  # white space before the first word
        self._head = ""  # what may become the opening tag
        self._opening = ""  # one of the other marks
        self._is_closed = False  # by the mark's end, but for what must follow
        self._line: list[str] = []  # of the current line, what isn't settled yet
        self._tail = ""  # its last characters, for a tag that comes in pieces
        self._is_plain = False  # the current line is neither tag nor fence
        self._fence = ""  # the open fence
        self._doubtful: list[str] | None = None  # what followed the last tag in code
        self._lead = ""  # white space between the closing tag and the answer

    @property
    def answer(self) -> str:
        """The answer so far, but for what may still become a tag."""
        return "".join(self._pieces)

    def feed(self, piece: str) -> None:
        """Take the next piece."""
        if self._state == "undecided":
            if self._is_plain and "\n" not in piece:  # nearly every token
                self._say(piece)
            else:
                self._decide(piece)
        elif self._state == "thinking":
            self._think(piece)
        elif self._state == "answering":
            self._answer(piece)
        elif self._state == "marked":
            self._think_in_marks(piece)
        else:
            self._begin(piece)

    def end(self, *, is_whole: bool) -> None:
        """Settle what was held back; `is_whole` says that the model stopped by itself.

        Whoever stops by itself has ended its thoughts: where that was done only inside code that was
        left open, it counts. Whoever always thinks first and was cut off without a closing tag was
        still thinking.
        """
        if self._state == "beginning":
            self._state = "undecided"
            self._decide("".join((*self._blank, self._head)))
        if self._state == "marked" and self._opening in _UNSURE:
            self._take_marks_for_text()
        elif self._state == "marked":
            self.thoughts.add("".join(self._line))
        if self._state in ("thinking", "undecided"):
            self._settle("".join(self._line))
        self._settle_doubts(is_whole=is_whole)
        if self._waits:
            self._waits = False
            if self._heard is not None and (text := self.answer):
                self._heard(text)
        self._state = "answering"

    # The beginning: white space, and perhaps the opening tag

    def _begin(self, piece: str) -> None:
        if not self._head:
            first = cast("re.Match[str]", _BLANK.match(piece)).end()
            self._blank.append(piece[:first])
            piece = piece[first:]
        self._head += piece
        if opening := next((each for each in _OPENINGS if self._begins_with(each)), None):
            rest = self._head[len(opening) :]
            if opening == OPENING:
                self._open(rest)
            else:
                self._state, self._opening = "marked", opening
                self._think_in_marks(rest)
        elif not any(each.startswith(self._head.lower()) for each in _OPENINGS):
            self._state = "undecided"
            self._decide("".join((*self._blank, self._head)))

    def _begins_with(self, opening: str) -> bool:
        return self._head[: len(opening)].lower() == opening

    # Thoughts in other marks: nothing is heard

    def _think_in_marks(self, piece: str) -> None:
        closing = OTHER_MARKS[self._opening]
        self._line.append(piece)
        if self._is_closed and not piece.strip():
            return
        near = (self._tail + piece).lower()
        self._tail = near[1 - len(closing) :]
        self._is_closed = self._is_closed or closing in near
        if not self._is_closed:
            return
        said = "".join(self._line)
        found = re.search(re.escape(closing), said, re.IGNORECASE)
        after = said[found.end() :] if found else ""
        if found and (self._opening not in _UNSURE or _END_OF_LINE.match(after)):
            self.thoughts.add(said[: found.start()])
            self._line, self._tail = [], ""
            self._close(after)
        elif after.strip():
            self._take_marks_for_text()

    def _take_marks_for_text(self) -> None:
        said = "".join((*self._blank, self._head[: len(self._opening)], *self._line))
        self._state, self._line, self._tail = "undecided", [], ""
        self._decide(said)

    def _open(self, text: str) -> None:
        self._state = "thinking"
        self._think(text)

    # Thoughts with an opening tag: nothing is heard

    def _think(self, piece: str) -> None:
        is_tag_near = bool(_CLOSING.search(self._tail + piece)) and not self._is_plain
        self._tail = (self._tail + piece)[1 - len(CLOSING) :]
        self._line.append(piece)
        if "\n" in piece:
            lines, newline, rest = "".join(self._line).rpartition("\n")
            self._line = [rest]
            self._tail = rest[1 - len(CLOSING) :]
            self._is_plain = False
            if self._find_end(lines, newline):
                return
            is_tag_near = bool(_CLOSING.search(rest))
        if is_tag_near and not self._fence:
            line = "".join(self._line)
            before, after = _CLOSING.split(line, maxsplit=1)
            # After a backtick, the rest of the line tells whether the tag is code.
            self._is_plain = "`" in before or bool(_TILDES.match(before))
            if not self._is_plain:
                self._line = []
                self._think_on(before)
                self._close(after)

    def _find_end(self, lines: str, newline: str) -> bool:
        """Look for the end of thoughts in whole lines; take them in."""
        begin = 0
        for found in _MARKED_OR_INLINE.finditer(lines) if _has_mark(lines) else ():
            line = found[0]
            if self._is_fence(found["fence"], line):
                continue
            if self._fence or (end := _closing(line)) is None:
                if _ALONE.match(line):
                    self._think_on(lines[begin : found.start()])
                    self._doubt()
                    begin = found.end()
                continue
            self._think_on(lines[begin : found.start() + end])
            rest = "".join((lines[found.start() + end + len(CLOSING) :], newline, *self._line))
            self._line = []
            self._close(rest)
            return True
        self._think_on(lines[begin:] + newline)
        return False

    def _think_on(self, text: str) -> None:
        if self._doubtful is None:
            self.thoughts.add(text)
        else:
            self._doubtful.append(text)

    def _doubt(self) -> None:
        """Begin to keep what follows a tag in code: it is the answer if no other tag comes."""
        if self._state == "thinking":
            self.thoughts.add("".join(self._doubtful or ()))
        self._doubtful = []

    # Text without an opening tag: heard until a tag alone on its line shows that it was thought

    def _decide(self, piece: str) -> None:
        if self._is_plain:
            line, newline, piece = piece.partition("\n")
            self._say(line + newline)
            self._is_plain = not newline
            if self._is_plain:
                return
        if self._line:
            piece = "".join((*self._line, piece))
            self._line = []
        lines, newline, rest = piece.rpartition("\n")
        if newline and self._find_tag(lines, newline, rest):
            return
        if len(rest) > LONGEST_MARK and _MAYBE_MARKED.match(rest):
            self._settle(rest)
            self._is_plain = True
        elif _MAYBE_MARKED.match(rest):
            self._line = [rest]
        else:
            self._say(rest)
            self._is_plain = True

    def _find_tag(self, lines: str, newline: str, rest: str) -> bool:
        begin = 0
        for found in _MARKED.finditer(lines) if _has_mark(lines) else ():
            if self._is_fence(found["fence"], found[0]) or not found["tag"]:
                continue
            if not self._fence:
                self.thoughts.add(self.answer + lines[begin : found.start()])
                self._withdraw()
                self._close(lines[found.end() :] + newline + rest)
                return True
            if self._waits:
                self._say(lines[begin : found.end()])
                self._doubt()
                begin = found.end()
        self._say(lines[begin:] + newline)
        return False

    def _settle(self, line: str) -> None:
        """Take in what was held of a line that is over, or too long to be a tag."""
        self._line = []
        if self._state == "thinking":
            self._find_end(line, "")
        elif self._state == "undecided":
            self._find_tag(line, "", "")

    def _settle_doubts(self, *, is_whole: bool) -> None:
        """Decide at the end whether thoughts ended at a tag in code, or not at all."""
        doubtful = "".join(self._doubtful or ())
        was_doubtful, self._doubtful = self._doubtful is not None, None
        if self._state == "thinking":
            if was_doubtful and is_whole:
                self._close(doubtful)
            else:
                self.thoughts.add(doubtful)
        elif self._state == "undecided" and self._waits:
            said = self.answer
            if was_doubtful and is_whole and self._fence:
                thought = said.removesuffix(doubtful)
                self.thoughts.add(thought[: thought.rindex("<")])
                self._withdraw()
                self._close(doubtful)
            elif not is_whole:
                self.thoughts.add(said)
                self._pieces = []

    def _withdraw(self) -> None:
        was_heard = bool(self._pieces) and not self._waits
        self._pieces = []
        self.closed_without_opening = True
        if was_heard and self._withdrawn is not None:
            self._withdrawn()

    def _is_fence(self, fence: str | None, line: str) -> bool:
        """Note a fence that a line opens or closes; return whether it does."""
        if self._fence:
            closing = _FENCE_CLOSED.match(line)
            if closing and closing["fence"].startswith(self._fence):
                self._fence = ""
                return True
            return False
        self._fence = fence or ""
        return bool(fence)

    # The answer

    def _close(self, text: str) -> None:
        if self._state == "thinking":
            self.thoughts.add("".join(self._doubtful or ()))
        self._doubtful = None
        self._state = "answering"
        self._waits = False
        self._answer(text)

    def _answer(self, text: str) -> None:
        if self._pieces:
            self._say(text)
            return
        text = self._lead + text
        words = text.lstrip()
        _, newline, indent = text[: len(text) - len(words)].rpartition("\n")
        if words:
            self._say(indent + words if newline else words)
        else:
            self._lead = newline + indent[:MOST_INDENT] if newline else ""

    def _say(self, text: str) -> None:
        if not text:
            return
        self._pieces.append(text)
        if self._doubtful is not None:
            self._doubtful.append(text)
        if self._heard is not None and not self._waits:
            self._heard(text)


def _has_mark(lines: str) -> bool:
    # Several times faster than to look at the beginning of each line.
    return "```" in lines or "~~~" in lines or bool("</" in lines and _CLOSING.search(lines))


def _closing(line: str) -> int | None:
    """Return where the first closing tag outside code spans begins, `None` if there is none."""
    found = [*_SPAN_OR_TAG.finditer(line, 0, LONGEST_LINE)]
    last = {len(each[0]): each.start() for each in found if each[0][0] == "`"}
    open_run = 0
    for each in found:
        if each[0][0] != "`":
            if not open_run:
                return each.start()
        elif open_run == len(each[0]):
            open_run = 0
        elif not open_run and last[len(each[0])] > each.start():
            open_run = len(each[0])
    further = _CLOSING.search(line, LONGEST_LINE)
    return further.start() if further else None
