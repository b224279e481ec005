"""A model's thoughts are told from its answer, whole or in pieces of any size."""

from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from council.models.thoughts import CLOSING, LONGEST_MARK, MARKS, MOST_KEPT, ThoughtFilter

OPENING = MARKS[0].opening


class Read(NamedTuple):
    """What a reply was read as; `withdrawn` is what was heard and turned out to be thought."""

    answer: str
    thoughts: str
    withdrawn: list[str]
    closed_without_opening: bool


def read(*pieces: str, is_whole: bool = True, waits: bool = False) -> Read:
    """Read a reply that comes in these pieces; what is heard in the end is the answer."""
    heard: list[str] = []
    withdrawn: list[str] = []

    def withdraw() -> None:
        withdrawn.append("".join(heard))
        heard.clear()

    reading = ThoughtFilter(heard.append, withdraw, waits_for_tag=waits)
    for piece in pieces:
        reading.feed(piece)
    reading.end(is_whole=is_whole)
    assert "".join(heard) == reading.answer
    return Read(
        reading.answer,
        reading.thoughts,
        withdrawn,
        closed_without_opening=reading.closed_without_opening,
    )


@pytest.mark.parametrize(
    ("text", "answer", "thoughts"),
    [
        ("<think>\nHm.\n</think>\n\nYes.", "Yes.", "\nHm.\n"),
        ("<think>Hm.</think>Yes.", "Yes.", "Hm."),
        ("<think>Hm.</think> Yes.", "Yes.", "Hm."),
        (" \n\t<think>Hm.</think>Yes.", "Yes.", "Hm."),
        ("<think></think>Yes.", "Yes.", ""),
        ("\ufeff<think>Hm.</think>Yes.", "Yes.", "Hm."),
        ("\u200b\xa0 <think>Hm.</think>Yes.", "Yes.", "Hm."),
        ("<Think>Hm.</Think>Yes.", "Yes.", "Hm."),
        ("<THINK>\nHm.\n</think>\nYes.", "Yes.", "\nHm.\n"),
        ("Hm.\n</THINK>\nYes.", "Yes.", "Hm.\n"),
        ("<Think>Is `</Think>` a tag?</Think>Yes.", "Yes.", "Is `</Think>` a tag?"),
        ("Hm.\n</think>\n\nYes.", "Yes.", "Hm.\n"),
        ("Hm.\r\n</think>\r\nYes.", "Yes.", "Hm.\r\n"),
        ("Hm.\n  </think>  \nYes.", "Yes.", "Hm.\n"),
        ("</think>\nYes.", "Yes.", ""),
        ("Hm.\n</think>", "", "Hm.\n"),
        ("<think>Hm.", "", "Hm."),
        ("Hm.\n</think>\n    code\n", "    code\n", "Hm.\n"),
        # Only the first tag outside code counts.
        ("<think>a</think>b</think>c", "b</think>c", "a"),
        ("a\n</think>\nb\n</think>\nc", "b\n</think>\nc", "a\n"),
        ("a </think> b\n</think>\nc", "c", "a </think> b\n"),
        ("<think>Is `</think>` a tag?\n</think>\nYes.", "Yes.", "Is `</think>` a tag?\n"),
        ("<think>Is ``a ` </think>`` one?</think>Yes.", "Yes.", "Is ``a ` </think>`` one?"),
        ("<think>A ` alone.</think>Yes.", "Yes.", "A ` alone."),
        ("<think>\n```\n</think>\n```\nHm.\n</think>\nYes.", "Yes.", "\n```\n</think>\n```\nHm.\n"),
        ("```\n</think>\n```\na\n</think>\nb", "b", "```\n</think>\n```\na\n"),
        # Thoughts that leave a fence open have ended all the same.
        ("<think>\n```py\nx\n</think>\nYes.", "Yes.", "\n```py\nx\n"),
    ],
)
def test_thoughts_end_at_the_first_closing_tag_outside_code(
    text: str, answer: str, thoughts: str
) -> None:
    """If the reply began with the opening tag, or the closing one stands alone on its line."""
    result = read(text)
    assert (result.answer, result.thoughts) == (answer, thoughts)


@pytest.mark.parametrize(
    ("text", "answer", "thoughts"),
    [
        ("[THINK]Hm.[/THINK]Yes.", "Yes.", "Hm."),
        ("<seed:think>\nHm.\n</seed:think>\n\nYes.", "Yes.", "\nHm.\n"),
        ("\u25c1think\u25b7Hm.\u25c1/think\u25b7Yes.", "Yes.", "Hm."),
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
            "Yes.",
            "Hm.<|end|><|start|>assistant",
        ),
        ("<|channel|>final<|message|>Yes.", "Yes.", ""),
        ("<thinking>\nHm.\n</thinking>\n\nYes.", "Yes.", "\nHm.\n"),
        ("\n<Thought>Hm.</Thought> \nYes.", "Yes.", "Hm."),
        ("<reasoning>Hm.</reasoning>\nYes.", "Yes.", "Hm."),
        ("[THINK]Hm.", "", "Hm."),
        # People write of these tags.
        ("<thinking> opens and </thinking> ends it.", "<thinking> opens and </thinking> ends it.", ""),
        ("<reasoning>Hm.</reasoning>\n", "", "Hm."),
        ("<thought>Hm.", "<thought>Hm.", ""),
        ("`[THINK]` opens, [/THINK] ends.", "`[THINK]` opens, [/THINK] ends.", ""),
        ("[THINKING]", "[THINKING]", ""),
        ("<|channel|>", "<|channel|>", ""),
    ],
)
def test_other_marks_count_at_the_beginning(text: str, answer: str, thoughts: str) -> None:
    """Whole, and in pieces of any length; some only before an answer on a line of its own."""
    for size in (len(text), 1, 2, 3, 7):
        result = read(*(text[at : at + size] for at in range(0, len(text), size)))
        assert (result.answer, result.thoughts) == (answer, thoughts)


MENTIONS = (
    "R1 writes <think> and </think> around its thoughts.",
    "`<think>` begins them, `</think>` ends them.",
    "It ends with a line:\n\n```\n</think>\n```\n\nand so on.",
    "~~~text\n<think>\nHm.\n</think>\n~~~\n",
    "- ```\n  </think>\n  ```\n",
    "> ```\n> </think>\n> ```",
    "As code:\n\n    </think>\n\nand so on.",
    "A tag </think>\nat a line's end",
    "</think> at its beginning",
    "````\n```\n</think>\n````\n",
    "</thinking>\n",
    "\ufeffA byte order mark.",
    "<Thinker>Hm.</Thinker>",
    "</thin\u212a>\nHm.",
    "<thinking>Hm.</thinking>",
    "<thin",
    "</thi",
    "a\n</",
)


@pytest.mark.parametrize("text", MENTIONS)
@pytest.mark.parametrize("waits", [False, True])
def test_a_text_that_mentions_the_tags_keeps_every_character(text: str, waits: bool) -> None:
    """In code, among words, or another tag."""
    assert read(text, waits=waits) == (text, "", [], False)


_FRAGMENTS = st.lists(
    st.sampled_from(
        [
            OPENING,
            CLOSING,
            "\ufeff",
            "<Think>",
            "</THINK>",
            f"\n{CLOSING}\n",
            "\n",
            "\r\n",
            "`",
            "```",
            "~~~",
            " ",
            "    ",
            "- ",
            "a",
            "b c",
        ]
    )
    | st.text(max_size=4),
    max_size=14,
).map("".join)


@given(_FRAGMENTS, st.data(), st.booleans(), st.booleans())
@example("<think>    - ~~~ - b c</think>\r\n```~~~a``````", None, True, True)
def test_any_cut_reads_as_the_whole(
    text: str, data: st.DataObject | None, is_whole: bool, waits: bool
) -> None:
    """A stream's pieces come as they like."""
    places = st.lists(st.integers(0, len(text)), max_size=6)
    cuts = sorted(data.draw(places)) if data else [*range(len(text))]
    pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = read(text, is_whole=is_whole, waits=waits)
    cut = read(*pieces, is_whole=is_whole, waits=waits)
    assert cut._replace(withdrawn=[]) == whole._replace(withdrawn=[])


_THOUGHT = st.text(st.characters(exclude_characters="<`~[", codec="utf-8"), max_size=40)


@given(_THOUGHT, st.text(st.characters(codec="utf-8"), max_size=40), st.booleans(), st.integers(1, 7))
def test_nothing_before_the_closing_tag_is_answer(
    thought: str, answer: str, opened: bool, size: int
) -> None:
    """Whatever the model thought, and however it streams."""
    text = f"{OPENING}{thought}{CLOSING}" if opened else f"{thought}\n{CLOSING}\n"
    text += f"\n{answer}"
    result = read(*(text[at : at + size] for at in range(0, len(text), size)))
    assert result.answer.strip() == answer.strip()
    assert result.thoughts.strip() == thought.strip()
    assert result.closed_without_opening is not opened


@given(st.text(st.characters(exclude_characters="<", codec="utf-8"), max_size=60), st.integers(1, 9))
def test_a_text_without_the_tags_is_heard_as_it_is(text: str, size: int) -> None:
    """Not a character is lost or moved."""
    assert read(*(text[at : at + size] for at in range(0, len(text), size))).answer == text


def test_what_was_heard_of_thoughts_is_withdrawn() -> None:
    """Once: after the tag, the model is known to leave the opening one out."""
    result = read("The user ", "is new.\n", CLOSING, "\n\nYes.")
    assert result == ("Yes.", "The user is new.\n", ["The user is new.\n"], True)


def test_a_model_known_to_leave_the_opening_tag_out_is_not_heard_before_the_closing_one() -> None:
    """Then the answer is heard as it comes."""
    heard: list[str] = []
    reading = ThoughtFilter(heard.append, waits_for_tag=True)
    for piece in ("The user ", "is new.\n", CLOSING, "\n\nYes", ", it is."):
        reading.feed(piece)
    assert heard == ["Yes", ", it is."]


def test_a_known_model_that_did_not_think_is_heard_at_the_end() -> None:
    """All of it is answer."""
    assert read("Yes, ", "it is.", waits=True) == ("Yes, it is.", "", [], False)


def test_a_known_model_that_was_cut_off_before_its_tag_only_thought() -> None:
    """A model that thinks first hadn't come to its answer."""
    assert read("The user ", "is", waits=True, is_whole=False) == ("", "The user is", [], False)


def test_a_known_model_whose_thoughts_leave_a_fence_open_has_ended_them() -> None:
    """As with an opening tag; for any other model, the fence's lines are text."""
    text = "See:\n```py\nx\n</think>\nYes."
    assert read(text, waits=True).answer == "Yes."
    assert read(text).answer == text
    assert read("See:\n```\n</think>\n```\nYes.", waits=True).answer == "See:\n```\n</think>\n```\nYes."


def test_a_long_line_is_neither_tag_nor_fence() -> None:
    """Nothing is held back for it without end."""
    heard: list[str] = []
    reading = ThoughtFilter(heard.append)
    for _ in range(LONGEST_MARK):
        reading.feed("  ")
    assert len("".join(heard)) == 0  # white space before the first word
    reading.feed("a\n")
    for _ in range(LONGEST_MARK):
        reading.feed("```")
    assert len("".join(heard)) > LONGEST_MARK


def test_thoughts_are_test_thoughts_are_kept_at_their_end_at_their_end() -> None:
    """A ballot is at the end."""
    reading = ThoughtFilter()
    reading.feed(OPENING)
    for _ in range(MOST_KEPT // 50):
        reading.feed("x" * 99 + "\n")
    reading.feed(f"{CLOSING}Yes.")
    assert len(reading.thoughts) == MOST_KEPT
