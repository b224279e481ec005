"""What servers and models write that isn't an answer: rows, with a place where each was seen.

A mark within code is part of an answer, and so is one that the prompt has, which asks about it. Each row
begins with one letter and no group: a text without it is passed over thirty times as fast.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from council.calls import ChatMessage

LEAST_ANSWER = 200
"""Characters before a call of a tool from which on they are an answer; fewer announce the call."""

_BAR = "[|\uff5c\u2016]"
_DSML, _TOOL = rf"{_BAR}{{1,2}}DSML{_BAR}{{1,2}} ?", r"tool[\u2581_]calls?(?:_section)?"
_CALLED = r"(?=\s*(?:[\[{<]|call:|[\w.-]+(?::\d+)?(?:[({\[<]|\s*\n\s*[<{`])))"
"""What follows the mark of a call, and not one that is spoken of."""
_CALLS = (
    # DeepSeek to V3.1, Kimi K2, Granite, LFM2, Gemma 4, Llama, Command R: vllm/tool_parsers
    rf"<{_BAR}(?:{_TOOL}(?:[\u2581_](?:begin|start))?|python_\w+|START_ACTION|action_start){_BAR}?>{_CALLED}",
    # DeepSeek V4, Kimi K3: TokenRhythm/opensquilla#985, lsdefine/GenericAgent#804, can1357/oh-my-pi#8495
    rf"<(?:{_DSML}(?:\w*calls|invoke)\b[^<>\n]*>?|\|open\|>tool[^<>\n]*<\|sep\|>){_CALLED}",
    # Hermes, Qwen, GLM, Hunyuan, MiniMax, Seed, LongCat, Nemotron, Olmo; Llama, Claude, Grok
    rf"<(?i:(?:\w+[:_])?(?:tool|tool_?calls?|function_calls?)(?::\w+)?)>{_CALLED}",
    rf"<(?:\w+:)?(?:function=[\w.:-]+|(?:invoke|function_call) name=[^<>\n]+)>{_CALLED}",
    # Mistral, Phi-4, NousResearch/hermes-agent#27834; Gemma 3; gpt-oss
    rf"\[(?:TOOL_CALLS\]|(?<=functools\[)|Calling tool: [\w.-]+ with arguments:){_CALLED}",
    r"```tool_code(?=\n)",
    rf"=(?<= to=)(?:functions|browser|python)[\w.]*(?: code| json)?{_CALLED}",
)
_STOP = (  # Open-LLM-VTuber/Open-LLM-VTuber#160, vllm-project/vllm#23694, ChatterUI#382, templates
    rf"(?i:{_BAR}?(?:end[\u2581_]?of[\u2581_]?\w+|(?:hy_)?eo(?:s|[tm](?:_id)?)){_BAR}?"
    r"|turn\||\|(?:im_end|end|return|call|end_response)\|)>"
)
_WORD = r"(?=\n\s*\S|[^\s.,;:!?)\"'|])"
_TURNS = (
    # GLM, Phi-3, Zephyr, Command R, Kimi K2; Qwen, gpt-oss, Llama 3, Granite, Gemma; DeepSeek; Llama 2
    rf"<(?<![ \t\"'(|]<)\|(?:user|human|observation|START_OF_TURN_TOKEN|im_user)\|>(?:{_WORD}|\s*\Z)",
    r"<(?<![ \t\"'(|]<)(?:\|(?:im_start|start\w*|turn)\|?|start_of_turn)>(?=user|assistant|system|tool)",
    rf"<(?<![ \t\"'(|]<)(?:{_BAR}(?:hy_)?User{_BAR}>{_WORD}|/s>\s*(?=\[INST\]))",
    rf"<(?<=[^\s\"'(|]<){_STOP}{_WORD}",
)
_END = re.compile(
    rf"(?:<{_STOP}|</s>|\[(?:/INST|EOS|TOOL_CALLS)\]|<{_BAR}{_TOOL}(?:[\u2581_](?:begin|end))?{_BAR}?>"
    # what is left of a call: TokenRhythm/opensquilla#985, raullenchai/Rapid-MLX#448
    rf"|</?(?:\w+:|{_DSML})?(?:tool_calls?|function(?:_calls?)?|invoke)>|<{_DSML}\w*)\Z"
)
_SOURCES = (
    # OpenAI: lidge-jun/opencodex#3150, mmeyerlein/meclaw#569, its assistants, gpt-oss, ChatGPT; Gemini
    *(rf"{left}\d+(?::\d+)?\u2020[^\u3011\u3015\n]{{0,100}}[\u3011\u3015]" for left in "\u3010\u3014"),
    r"\[(?:\d+(?::\d+)?\u2020[^\]\n]{0,100}|oaicite:\d+|cite: [\d, ]+)\]",
    r"\ue200(?!entity)[^\ue200\ue201\n]{0,500}(?:\ue201|$)",
    *(rf"{name}(?:turn\d{{1,4}}[a-z]{{2,12}}\d{{1,4}})+" for name in ("cite", "filecite")),
    r":contentReference\[oaicite:\d+\](?:\{index=\d+\})?",
    # Grok; epam/ai-dial-chat#8864
    r"<grok:render [^<>]{0,300}>(?:\s*<argument [^<>]{0,100}>[^<>]{0,300}</argument>\s*)*</grok:render>",
    r"<cit id=[^<>\n]{0,60}>",
)
_WRAPPERS = (
    # lmstudio-ai/lmstudio-bug-tracker#2221, Claude, Command R, GLM-V; Gemini; ChatGPT
    r"<(?:/?(?:citations>(?:[ \t]*\n)?|cite(?: index=[^<>\n]*)?>|co: ?[\d, ]+>)|\|\w+_of_box\|>)",
    r"\[cite_start\]",
    r"\ue200entity\ue202\[\"[^\"\n]{0,60}\", ?\"(?P<name>[^\"\n]{0,200})\"[^\ue201\n]{0,300}\ue201",
    *map(chr, range(0xE200, 0xE207)),
)

_CODE = (
    r"(?P<code>^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<fence>`{3,}|~{3,})[\s\S]*?"
    r"(?:^[ \t>]*(?P=fence)[`~]*[ \t]*(?=$|<)|\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n)[\s\S]){1,1000}?(?<!`)(?P=ticks)(?!`))"
)
_CLOSING = re.compile(rf"</[^<>\n]{{1,40}}>|<{_BAR}[^<>\n]{{1,40}}>|<\w+\|>")
_NO_WORDS = re.compile(r"(?:<[^<>\n]{1,60}>|```|[\]\s])*")
_NAME = re.compile(r"\W*\w+")
_QUOTES = tuple("\"'\u201c\u2018\u201e\u00ab")


@cache
def _pattern(*rows: str) -> re.Pattern[str]:
    return re.compile("|".join(rows), re.MULTILINE)


def _outside_code(text: str, *rows: str) -> Iterator[re.Match[str]]:
    if _pattern(*rows).search(text):
        yield from (each for each in _pattern(*rows, _CODE).finditer(text) if not each["code"])


def answer_in(text: str, prompt: Sequence[ChatMessage]) -> str:
    """Return what of a reply is an answer: no call of a tool, no turn played on, no end of a template.

    Nothing is left of one that calls a tool, after a few words at most.
    """

    @cache
    def is_asked(mark: str) -> bool:
        return any(mark in message["content"] for message in prompt)

    first = len(text) - len(text.lstrip())
    for rows in (_TURNS, _CALLS) if text[first : first + 1] != "{" else ():  # JSON quotes what it likes
        for found in _outside_code(text, *rows):
            before = text[: found.start()].rstrip()
            if is_asked((_NAME.match(text, found.start()) or found)[0]):
                return text
            if rows is _CALLS:
                is_call = _is_made(text, found, first)
                return text if not is_call else before if len(before) >= LEAST_ANSWER else ""
            if before:
                text = before
                break
    end = kept = last = len(text.rstrip())
    struck = text.rfind("<s>")  # in HTML
    struck_until = text.find("</s>", struck) if struck >= 0 else -1
    while found := _END.search(text, max(0, end - 60), end):
        end = found.start()
        is_word = text[end - 1 : end] in (" ", "\t") or end == struck_until
        if is_word or is_asked(found[0]) or is_asked(found[0].replace("/", "")):
            break
        while end and text[end - 1].isspace():
            end -= 1
        kept = end
    return text[:kept] if kept < last else text


def _is_made(text: str, call: re.Match[str], first: int) -> bool:
    """Return whether a call is what a text begins or ends by, and no example within a sentence."""
    begin, end = call.span()
    is_within = text[begin - 1] in " \t" and text[:begin].rstrip()[-1:] not in ".!?\u2026\u3002"
    if begin == first or is_within:
        return begin == first
    closed = [found.end() for found in _CLOSING.finditer(text, end)]
    rest = closed[-1] if closed else 1 + max(text.rfind(each, end) for each in "}])")
    return not rest or _NO_WORDS.fullmatch(text, rest) is not None


def without_sources(text: str) -> str:
    """Return Markdown without marks of sources that lead nowhere; what they surround stays."""
    parts, last = list[str](), 0
    for found in _outside_code(text, *_SOURCES, *_WRAPPERS):
        begin, end = found.span()
        if not _pattern(*_WRAPPERS).fullmatch(found[0]):
            while begin > last and text[begin - 1] in " \t":
                begin -= 1
            is_apart = begin < found.start() and re.match(r"[ \t]+\w", text[end : end + 3])
            if (is_apart and "\u2020" in found[0]) or text[begin - 1 : begin] in _QUOTES:
                continue  # it is spoken of
            begin = found.start() if text[end : end + 1].isalnum() else begin
        parts += text[last:begin], found["name"] or ""
        last = end
    return "".join((*parts, text[last:])) if parts else text
