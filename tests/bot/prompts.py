"""What a scripted council read in its prompts."""

import re

from council.calls import Call
from tests.council.scripted import FOUR, ScriptedCouncil


def fences(call: Call) -> list[tuple[str, str]]:
    """Return what a prompt fences, each text with its name."""
    text = call.messages[-1]["content"]
    return re.findall(r"\[begin \w+\]\n([^\n]+):\n\n(.*?)\n\[end \w+\]", text, re.DOTALL)


def read_by(council: ScriptedCouncil, step: str = f"stage1.1:{FOUR[0]}") -> list[tuple[str, str]]:
    """Return the other people's messages in a call's prompt."""
    [call] = [call for call in council.calls if call.step == step]
    return [(name, text) for name, text in fences(call) if name != "Question"]
