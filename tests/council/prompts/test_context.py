"""What prompts repeat: a conversation's end in full and titles of the rest; critiques whole, if there is room."""

from hypothesis import given
from hypothesis import strategies as st

from council.brief import Turn
from council.prompts.opening import (
    BYTES_PER_TOKEN,
    LEAST_ROOM,
    MOST_CHARACTERS,
    newest,
    recent,
    room_beside,
    shorten,
)


def chain(length: int, answer: str = "x" * 3980) -> list[Turn]:
    return [Turn(question=f"Question number {each:02}?", answer=answer) for each in range(length)]


def test_the_last_exchanges_are_whole_and_those_before_are_titles() -> None:
    """In their order; a title is one line, cut at a word, and those without room are counted."""
    context = recent(chain(3), 3000)
    assert (context.turns, context.left_out, context.cut) == (tuple(chain(3)), 0, False)
    turns = chain(12)
    context = recent(turns, 4000)
    titles = tuple(Turn(question=turn.question, answer=None) for turn in turns[:9])
    assert context.turns == (*titles, *turns[9:])
    assert (context.left_out, context.cut) == (0, False)
    long = Turn(question="Should we\n\n shard " + "the database now " * 100, answer="No.")
    context = recent([long, *chain(2)], 2000)
    title = context.turns[0].question
    assert title.startswith("Should we shard the database now")
    assert title.endswith("\u2026")
    assert len(title) <= 80
    context = recent(chain(500), 2000)
    titles = [turn for turn in context.turns if turn.answer is None]
    assert len(context.turns) - len(titles) == 1
    assert titles[-1].question == "Question number 498?"
    assert context.left_out == 499 - len(titles)
    assert context.left_out > 0


def test_a_last_answer_that_is_too_long_is_shortened_and_the_question_has_its_room() -> None:
    """Its beginning is worth more than its question alone; half of the rest is for the conversation."""
    answer = "This is a sentence of the answer. " * 1000
    context = recent([*chain(2), Turn(question="And then?", answer=answer)], 2000)
    assert context.cut
    assert [turn.answer for turn in context.turns[:2]] == [None, None]
    kept = context.turns[2].answer
    assert kept is not None
    assert kept.startswith("This is a sentence of the answer. This")
    assert "[shortened: " in kept
    assert room_beside(16_000, ["x" * 4000, "x" * 8000]) == (16_000 - 1000 - 2000) // 2
    assert room_beside(1000, ["x" * 40_000]) == LEAST_ROOM


def test_a_thread_is_read_from_its_end_and_its_last_message_in_any_case() -> None:
    """At most 50 messages and 20,000 characters; one that is too long by itself is cut, visibly."""
    texts = [f"{number:03}" for number in range(60)]
    assert newest(texts, 10_000) == texts[10:]
    assert newest(["x" * 9000, "y" * 9000, "z" * 9000], 10_000) == ["y" * 9000, "z" * 9000]
    assert newest(["x" * 4000, "y" * 4000], 1500) == ["y" * 4000]
    assert newest([], 1500) == []
    [kept] = newest(["before", "Too long. " * 4000], 10_000)
    assert kept.startswith("Too long. ")
    assert kept.endswith("of 40,000 characters]")
    assert len(kept) <= MOST_CHARACTERS


@given(st.lists(st.text(max_size=6000), max_size=60), st.integers(LEAST_ROOM, 6000))
def test_what_is_read_of_a_thread_fits(texts: list[str], room: int) -> None:
    """In any language, without a gap between messages."""
    kept = newest(texts, room)
    assert len("".join(kept)) <= MOST_CHARACTERS
    assert len("".join(kept).encode(errors="replace")) <= (room + len(kept)) * BYTES_PER_TOKEN
    assert not kept or kept[1:] == texts[len(texts) - len(kept) + 1 :]


@given(
    turns=st.lists(
        st.builds(Turn, question=st.text(max_size=300), answer=st.text(max_size=6000)), max_size=12
    ),
    room=st.integers(LEAST_ROOM, 4000),
)
def test_it_fits_in_any_language(turns: list[Turn], room: int) -> None:
    """Four bytes a token; every question is repeated, or counted."""
    context = recent(turns, room)
    texts = [each for turn in context.turns for each in (turn.question, turn.answer or "")]
    slack = 4 * len(texts) + 80  # rounding, and the note at a cut
    assert len("".join(texts).encode(errors="replace")) <= room * 4 + slack
    assert len(context.turns) + context.left_out == len(turns)


def test_the_longest_is_cut_first_at_a_sentence_end() -> None:
    """The short one stays whole; the cut is visible and says how much is missing."""
    assert shorten(["One.", "Two."], 2) == ["One.", "Two."]
    long = "First sentence. Second sentence. Third sentence that is longer."
    short = "Brief."
    cut, kept = shorten([long, short], 10)
    assert kept == short
    assert cut == "First sentence. Second sentence.\n[shortened: 32 of 63 characters]"
    [cut] = shorten(["x" * 100], 10)
    assert cut == "x" * 40 + "\n[shortened: 40 of 100 characters]"


@given(st.lists(st.text(max_size=300), max_size=6), st.integers(min_value=1, max_value=200))
def test_what_is_kept_fits_and_is_a_beginning(texts: list[str], max_tokens: int) -> None:
    """Each text comes back whole or as its own beginning, and together they fit."""
    short = shorten(texts, max_tokens)
    kept = [
        text.rpartition("\n[shortened:")[0] if text != whole else text
        for text, whole in zip(short, texts, strict=True)
    ]
    assert sum(map(len, kept)) <= max(4 * max_tokens, sum(map(len, texts)) if short == texts else 0)
    assert all(whole.startswith(text) for text, whole in zip(kept, texts, strict=True))
