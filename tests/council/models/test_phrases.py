"""What servers and models write that isn't an answer, and what only speaks of it.

Each row is as a report, a server's source or a model's template has it; `council/models/phrases.py` names
the places. Those of calls are of vLLM's tool parsers.
"""

import time
from dataclasses import replace

import orjson
import pytest

from bot.render.markdown import contain
from council.calls import Call
from council.errors import ModelError
from council.models.phrases import answer_in, without_sources
from council.models.reply import Completion
from council.profile import Member

SAID = "Water boils at 100 degrees at sea level."
LONG = f"{SAID} It boils at less on a mountain, because the air presses less on it there. " * 3
JSON = '{"name": "web_search", "arguments": {"query": "boiling point"}}'
ARGUMENTS = '{"query": "boiling point"}'


def call(question: str = "At what temperature does water boil?") -> Call:
    """Return a call that asks a question."""
    return Call(
        step="stage1:1:a",
        member=Member(model="lab/one"),
        prompt=lambda: ({"role": "user", "content": question},),
        deadline=5.0,
    )


def completion(text: str, finish: str = "stop") -> Completion:
    """Read a stream that says a text."""
    read = Completion()
    for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
        read.take_chunk({"choices": [{"delta": {"content": piece}}]})
    read.take_chunk({"choices": [{"delta": {}, "finish_reason": finish}]})
    return read


def answer(text: str, asked: Call | None = None) -> str:
    """Return what of a text is the answer."""
    return completion(text).reply(asked or call(), 1, lambda _: None).text


DSML = (
    '<{0}tool_calls>\n<{0}invoke name="web_search">\n<{0}parameter name="query" string="true">boiling '
    "point</{0}parameter>\n</{0}invoke>\n</{0}tool_calls>"
)
INVOKE = '<invoke name="web_search">\n<parameter name="query">boiling point</parameter>\n</invoke>'
CALLS = {
    "DeepSeek V3": "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function"
    f"<\uff5ctool\u2581sep\uff5c>web_search\n```json\n{ARGUMENTS}\n```<\uff5ctool\u2581call\u2581end\uff5c>"
    "<\uff5ctool\u2581calls\u2581end\uff5c>",
    "DeepSeek V3, one call": "<\uff5ctool\u2581call\u2581begin\uff5c>web_search<\uff5ctool\u2581sep\uff5c>"
    f"{ARGUMENTS}<\uff5ctool\u2581call\u2581end\uff5c>",
    "DeepSeek V4": DSML.format("\uff5cDSML\uff5c"),
    "DeepSeek V4, bars of ASCII": DSML.format("|DSML|"),
    "DeepSeek V4, two bars": DSML.format("\uff5c\uff5cDSML\uff5c\uff5c"),
    "DeepSeek V4, bars of mathematics": DSML.format("\u2016DSML\u2016"),
    "DeepSeek V4, blanks": DSML.format("\uff5c\uff5cDSML\uff5c\uff5c "),
    "DeepSeek V3.2": DSML.format("\uff5cDSML\uff5c").replace("tool_calls", "function_calls"),
    "DeepSeek V4, bare": DSML.format("\uff5cDSML\uff5c").split("\n", 1)[1].rsplit("\n", 1)[0],
    "Hermes": f"<tool_call>\n{JSON}\n</tool_call>",
    "Hermes, two calls": f"<tool_call>\n{JSON}\n</tool_call>\n<tool_call>\n{JSON}\n</tool_call>",
    "Hermes, unclosed": f"<tool_call>\n{JSON}",
    "Hermes, in capitals": f"<TOOL_CALL>{JSON}</TOOL_CALL>",
    "Qwen3 Coder": "<tool_call>\n<function=web_search>\n<parameter=query>\nboiling point\n</parameter>\n"
    "</function>\n</tool_call>",
    "Qwen3 Coder, bare": "<function=web_search>\n<parameter=query>\nboiling point\n</parameter>\n</function>",
    "Qwen3 Coder, cut": "<function=web_search>\n<parameter=query>\nboiling point",
    "Llama 3.1": f"<function=web_search>{ARGUMENTS}</function>",
    "Llama 3.1, built in": '<|python_tag|>web_search.call(query="boiling point")',
    "Llama 3.2": f"<|python_tag|>{JSON}<|eom_id|>",
    "Llama 4": '<|python_start|>[web_search(query="boiling point")]<|python_end|>',
    "Mistral": f"[TOOL_CALLS] [{JSON}]",
    "Mistral Small 3.2": f"[TOOL_CALLS]web_search[CALL_ID]a1b2c3d4e[ARGS]{ARGUMENTS}",
    "Magistral": f"[TOOL_CALLS]web_search[ARGS]{ARGUMENTS}</s>",
    "Devstral": f"[TOOL_CALLS]web_search{ARGUMENTS}",
    "Kimi K2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.web_search:0"
    f"<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>",
    "Kimi K2, no section": f"<|tool_call_begin|>functions.web_search:0<|tool_call_argument_begin|>{ARGUMENTS}"
    "<|tool_call_end|>",
    "Kimi K2.5": f"<|tool_calls_section_begin|>\n<|tool_call_begin|>functions.web_search\n```json\n{ARGUMENTS}\n"
    "```\n<|tool_call_end|>\n<|tool_calls_section_end|>",
    "Kimi K3": '<|open|>toolscall tool="web_search" index="1"<|sep|><|open|>argument key="query" type="string"'
    "<|sep|>boiling point<|close|>argument<|sep|><|close|>call<|sep|>",
    "GLM": "<tool_call>web_search\n<arg_key>query</arg_key>\n<arg_value>boiling point</arg_value>\n</tool_call>",
    "GLM 4.7": "<tool_call>web_search<arg_key>query</arg_key><arg_value>boiling point</arg_value></tool_call>",
    "MiniMax M1": f"<tool_calls>\n{JSON}\n</tool_calls>",
    "MiniMax M2": f"<minimax:tool_call>\n{INVOKE}\n</minimax:tool_call>",
    "MiniMax M2, odd end": f"{INVOKE}\n<minimax:tool_call>",
    "Claude": f"<function_calls>\n{INVOKE}\n</function_calls>",
    "Claude, bare": INVOKE,
    "Grok": '<xai:function_call name="web_search">\n<parameter name="query">boiling point</parameter>\n'
    "</xai:function_call>",
    "Granite": f"<|tool_call|>[{JSON}]",
    "Phi-4 mini": f"functools[{JSON}]",
    "LFM2": '<|tool_call_start|>[web_search(query="boiling point")]<|tool_call_end|>',
    "Gemma 4": "<|tool_call>call:web_search{query:boiling point}<tool_call|>",
    "Gemma 3": '```tool_code\nprint(web_search("boiling point"))\n```',
    "FunctionGemma": "<start_function_call>call:web_search{query:boiling point}<end_function_call>",
    "Command R": f'<|START_ACTION|>[{{"tool_name": "web_search", "parameters": {ARGUMENTS}}}]<|END_ACTION|>',
    "InternLM": f"<|action_start|><|plugin|>\n{JSON}<|action_end|>",
    "gpt-oss": "<|channel|>commentary to=functions.web_search <|constrain|>json<|message|>"
    f"{ARGUMENTS}<|call|>",
    "gpt-oss, without its marks": f"commentary to=functions.web_search json{ARGUMENTS}",
    "Seed-OSS": "<seed:tool_call>\n<function=web_search>\n<parameter=query>boiling point</parameter>\n"
    "</function>\n</seed:tool_call>",
    "LongCat": f"<longcat_tool_call>\n{JSON}\n</longcat_tool_call>",
    "Nemotron": f"<TOOLCALL>[{JSON}]</TOOLCALL>",
    "Olmo 3": '<function_calls>\nweb_search(query="boiling point")\n</function_calls>',
    "Hunyuan": "<tool_calls:opensource>\n<tool_call:opensource>web_search<tool_sep>\n<arg_key>query</arg_key>\n"
    "<arg_value>boiling point</arg_value></tool_call:opensource></tool_calls:opensource>",
    "DeepSeek on the web": f"<tool>{JSON}</parameter></tool>",
    "Hermes Studio": f"[Calling tool: web_search with arguments: {ARGUMENTS}]",
    "announced": f"I'll look that up for you.\n\n<tool_call>\n{JSON}\n</tool_call>",
    "announced, in one line": f"Let me check this first. <tool_call>{JSON}</tool_call>",
    "announced, attached": f"Let me check this first:[TOOL_CALLS]web_search{ARGUMENTS}",
    "nothing but an end": "<|im_end|>",
    "thought about": f"<think>I should look that up.</think>\n<tool_call>\n{JSON}\n</tool_call>",
    "answered by itself": f"<tool_call>\n{JSON}\n</tool_call>\n<tool_response>\n99\n</tool_response>\n99 degrees.",
}


@pytest.mark.parametrize("text", CALLS.values(), ids=[*CALLS])
def test_a_call_of_a_tool_is_no_answer(text: str) -> None:
    """Nobody offered a tool: it is as if nothing had been said, and asked for once more."""
    for finish in ("stop", "tool_calls", "length"):
        with pytest.raises(ModelError) as caught:
            completion(text, finish).reply(call(), 1, lambda _: None)
        failure = caught.value.failure
        assert (failure.cause, failure.detail) == (
            "empty",
            "it wrote markup, such as a tool's call, and no answer",
        )
        assert failure.usage is not None


ABOUT = {
    "a block": f"Hermes models call tools like this:\n\n```xml\n<tool_call>\n{JSON}\n</tool_call>\n```",
    "a block alone": f"```\n<tool_call>\n{JSON}\n</tool_call>\n```",
    "a block with tildes": f"So:\n\n~~~\n[TOOL_CALLS]web_search[ARGS]{ARGUMENTS}\n~~~",
    "a block in a list": f"1. So:\n   ```\n   <tool_call>\n   {JSON}\n   </tool_call>\n   ```",
    "a span": f"They write `<tool_call>{JSON}</tool_call>`",
    "a span over two lines": f"They write `<tool_call>\n{JSON}</tool_call>`",
    "a longer span": f"They write ``<tool_call>{JSON}`</tool_call>``",
    "its name": "<tool_call> is the tag by which a Hermes model begins a call, </tool_call> ends it.",
    "its name at the end": "A Hermes model begins a call by <tool_call>",
    "Mistral's name": "[TOOL_CALLS] is the token before the calls, and [ARGS] precedes their arguments.",
    "DeepSeek's name": "<\uff5ctool\u2581calls\u2581begin\uff5c> and <\uff5ctool\u2581calls\u2581end\uff5c>"
    " surround what DeepSeek calls.",
    "an example": f"Hermes models call tools so:\n\n<tool_call>\n{JSON}\n</tool_call>\n\nThe server reads that.",
    "an example in a line": f"Hermes writes <tool_call>{JSON}</tool_call> there.",
    "an example in a line, at its end": f"{SAID} Hermes would write <tool_call>{JSON}</tool_call>",
    "a function": "Write <function=name>{arguments}</function> for each call, says the model's card.",
    "JSON": JSON,
    "JSON with marks": orjson.dumps(
        {"text": f"<tool_call>\n{JSON}\n</tool_call> and <|user|>\n"}
    ).decode(),
    "generic types": "Use `List<Tool>` or Map<String, Function> with invoke(name) where it fits.",
    "a Markdown list": "The [TOOL_CALLS] row:\n\n- [x] done\n- [ ] open",
    "commentary": "The commentary to John is long; analysis to=date is a word that nobody writes.",
    "marks of turns": "A template begins a user's turn by <|user|> and the model's by <|assistant|>, in a line.",
    "marks of turns in code": "So:\n\n```\n<|user|>\nWhy?\n<|assistant|>\n```\n\nThat is all.",
    "marks of turns in a table": "| mark | meaning |\n| --- | --- |\n| <|user|> | a turn |\n|<|im_end|>| its end |",
    "a turn's end": "Qwen's turns end with <|im_end|>",
    "a turn's end, quoted": 'Its stop token is "<|im_end|>", as its card says.',
    "a text's end": "GPT-2 puts <|endoftext|> between two documents; BERT puts [SEP] there.",
    "struck": "Water boils at <s>90</s> 100 degrees, not at <s>80</s>",
    "struck over two lines": "<s>Water boils\nat 90 degrees.</s>",
    "an instruction": "Llama 2 wants [INST] before the question and [/INST] behind it.",
}


@pytest.mark.parametrize("text", ABOUT.values(), ids=[*ABOUT])
def test_an_answer_that_speaks_of_such_a_mark_survives(text: str) -> None:
    """In code, or as a word among others."""
    assert answer(text) == text


@pytest.mark.parametrize("name", ["Hermes", "Mistral", "DeepSeek V4", "Claude", "Gemma 3", "gpt-oss"])
def test_what_the_question_has_is_part_of_the_answer(name: str) -> None:
    """Whoever asks about a template gets it, in code or not."""
    text = CALLS[name]
    assert answer(text, call(f"Which model writes {text[:40]}, and how does it go on?")) == text


OWN_TURN = "<|im_start|>user\nAnd on a mountain?<|im_end|>\n<|im_start|>assistant\nLess."
LEFT = {
    "": ["</s>", "\n</s>", "<eos>", "<|im_end|>", "<|eot_id|>\n", "<|eom_id|>", "<|end|><|return|>", "<turn|>"],
    "DeepSeek": ["<\uff5cend\u2581of\u2581sentence\uff5c>", "<\uff5cend_of_sentence\uff5c>", "<|end_of_sentence|>"],
    "others": [
        *("<|endoftext|>", "<|end_of_text|>", "<|EOT|>", "<|endofassistant|>", "<|END_OF_TURN_TOKEN|>"),
        *("<end_of_turn>", "<end_of_utterance>", "<|end_of_turn|>", "<|end_of_role|>", "[/INST]", "<|eos|>"),
        *("<|END_RESPONSE|>", "<|hy_eos|>", "<\uff5chy_EOT\uff5c>", "[EOS]", "<|call|>", "<|end_of_box|>"),
    ],
    "marks of calls": [
        *("\n\n<\uff5cDSML\uff5cfunction_calls", "\n<\uff5cDSML\uff5ctool_calls>", "\n<tool_call>", "</tool_call>"),
        *("\n</invoke>\n</minimax:tool_call>", "<|tool_calls_section_begin|>", "\n[TOOL_CALLS]", "<|tool_call>"),
        *("\n<|tool_calls_section_end|>", "</\uff5cDSML\uff5ctool_calls>", "\n</function>", "<function_calls>"),
        "<\uff5ctool\u2581calls\u2581begin\uff5c>",
    ],
    "a turn played on": [
        *("\n<|user|>\nAnd on a mountain?\n<|assistant|>\nLess.", "<|user|>\nAnd on a mountain?", "\n<|user|>"),
        *(f"\n{OWN_TURN}", f"<|im_end|>\n{OWN_TURN}", "<|im_end|>\n<|im_start|>assistant\nAnd that is all."),
        "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd on a mountain?<|eot_id|>",
        "<end_of_turn>\n<start_of_turn>user\nAnd on a mountain?<end_of_turn>\n<start_of_turn>model\nLess.",
        "<\uff5cUser\uff5c>And on a mountain?<\uff5cAssistant\uff5c>Less.",
        "<\uff5cend\u2581of\u2581sentence\uff5c><\uff5cUser\uff5c>And on a mountain?",
        "</s> [INST] And on a mountain? [/INST] Less.</s>",
        "</s>\n<|user|>\nAnd on a mountain?</s>",
        "<|im_end|><|im_user|>user<|im_middle|>And on a mountain?<|im_end|>",
        "<|end|><|start|>user<|message|>And on a mountain?<|end|>",
        "<turn|>\n<|turn>user\nAnd on a mountain?<turn|>",
        "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>And on a mountain?",
        "<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>And on a mountain?",
        "<|endoftext|>Human: And on a mountain?\n\nAssistant: Less.",
        "\n<|observation|>\nboiling point: 99",
    ],
    "a call behind an answer": [f"\n\n{CALLS['Hermes']}", f"\n\n{CALLS['DeepSeek V4']}", CALLS["Kimi K2"]],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "left"), [(kind, left) for kind, marks in LEFT.items() for left in marks]
)
def test_what_a_template_leaves_behind_an_answer_is_cut(kind: str, left: str) -> None:
    """With all that follows it: the end of a turn, one that is played on, a call, or the mark of one."""
    said = LONG.strip() if kind.startswith("a call") else SAID
    assert answer(said + left) == said
    block = f"{said}\n\n```sh\nkettle\n```"
    assert answer(block + left) == block


SHOWN = {
    f"{SAID[:-1]}【4:0†source】.": SAID,
    f"{SAID[:-1]} 【4:0†source】.": SAID,
    f"{SAID}【4:0†source】【12†boiling.pdf】": SAID,
    f"{SAID} 【1†L3-L7】 【2†source】\n\nSo.": f"{SAID}\n\nSo.",
    "Water boils【4:0†source】, as everybody knows.": "Water boils, as everybody knows.",
    f"{SAID}[4:1†source]": SAID,
    f"{SAID}\u30143†source\u3015": SAID,
    f"{SAID} \ue200cite\ue202turn0search0\ue201": SAID,
    f"{SAID}\ue200cite\ue202turn1view0\ue202turn1view1\ue201 So.": f"{SAID} So.",
    f"\ue203{SAID}\ue204\ue200filecite\ue202turn0file3\ue202L1-L5\ue201": SAID,
    f"{SAID}\ue200navlist\ue202Water\ue202turn0news1,turn0news2\ue201": SAID,
    'Ask \ue200entity\ue202["city","Paris","in France"]\ue201 for it.': "Ask Paris for it.",
    f"{SAID} citeturn0search0turn0news12": SAID,
    f"{SAID} :contentReference[oaicite:2]{{index=2}}": SAID,
    f"{SAID}[oaicite:1]": SAID,
    f"[cite_start]{SAID} [cite: 1, 12]": SAID,
    f'{SAID}<grok:render card_id="67ef52" card_type="citation_card" type="render_inline_citation">\n'
    '<argument name="citation_id">48</argument>\n</grok:render>': SAID,
    f'<cite index="0-1,0-2">{SAID}</cite>': SAID,
    f"<co: 0,1>{SAID}</co: 0,1>": SAID,
    f'{SAID[:-1]}<cit id="e7d731">.': SAID,
    f"<|begin_of_box|>{SAID}<|end_of_box|> So.": f"{SAID} So.",
    f"{SAID}\n\n<citations>\n* [A](https://a.example)\n* [B](https://b.example)\n</citations>": f"{SAID}\n\n"
    "* [A](https://a.example)\n* [B](https://b.example)",
}


@pytest.mark.parametrize(("text", "shown"), SHOWN.items())
def test_marks_of_sources_that_lead_nowhere_are_left_out(text: str, shown: str) -> None:
    """From what is asked now and from what was imported; a list of links among them stays."""
    assert answer(text).strip() == shown
    assert contain(text).strip() == shown


NAMED = [
    "The code `x【1†y】` shows it.",
    "```\nx【1†y】 \ue200cite\ue202turn0search0\ue201\n```",
    "OpenAI's assistants write marks like 【4:0†source】 behind a claim.",
    'Its marks look so: "【4:0†source】", with a number.',
    "標準大気圧では【水】は100度で沸騰する。",
    "See [1] and [2, 3], and the note†.",
    "They cite: [cite] is a command of LaTeX, \\cite{knuth} another.",
    "Turn it on; cite turn 3 of the game.",
]


@pytest.mark.parametrize("text", NAMED)
def test_a_text_that_speaks_of_such_marks_survives(text: str) -> None:
    """In code, in quotation marks, or set apart as a word."""
    assert answer(text) == text
    assert without_sources(text) == text


HOSTILE = [
    *("<|im_end|>{}x", "x{}\n</s>", "{}`<tool_call>{{", "{}` `` <tool_call>{{", "{}```\n<tool_call>{{"),
    *(
        "{}x <tool_call>{{ ",
        "{}\n<tool_call>{{ x",
        "{} \u30101\u2020",
        "{}\ue200",
        "{}<grok:render ",
        "{}<s>{}</s>",
    ),
    *(
        '{}"\u30101\u2020a\u3011',
        "{}\n[TOOL_CALLS]x{{ x",
        "{}x<|user|>. ",
        "{}\n<|user|> x",
        "{}<cite index=",
    ),
]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_text_is_read_in_time_that_grows_with_it(pattern: str) -> None:
    """Ten times as long takes no hundred times as long: a model may write millions of characters."""

    def seconds(times: int) -> float:
        text = "".join(part * times for part in pattern.replace("{{", "{").split("{}"))
        began = time.process_time()
        answer_in(text, ())
        without_sources(text)
        return time.process_time() - began

    assert min(seconds(20_000) for _ in range(2)) < 40 * max(0.003, *(seconds(2_000) for _ in range(3)))


def test_a_ballot_keeps_what_its_texts_say() -> None:
    """A JSON reply that quotes a mark isn't cut in the middle."""
    asked = replace(call(), schema={"type": "object", "required": ["text"]})
    said = orjson.dumps({"text": f"It ends so:</s>\n{OWN_TURN}"}).decode()
    assert answer(said, asked) == said
