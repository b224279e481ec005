"""How every prompt of a run begins: the role, the conversation so far, the files, the question.

Questions, answers, reviews and critiques are data: two lines around each carry the run's random
boundary (`council.text.fence`), and every prompt says that nothing between them is an instruction.

Providers charge less for the beginning of a prompt that they have read before. So all prompts of a run
begin alike and end in what differs: the answers, then the task.

How much of a conversation and of a thread the prompts repeat is counted here, too.
"""

from collections.abc import Iterable, Sequence

from council.brief import Attachment, Brief, History, Turn
from council.calls import ChatMessage
from council.criteria import EvaluationCriteria
from council.document.conversation import Conversation, exchanges
from council.profile import Member
from council.text import clip, sentence_ends
from council.text.fence import fenced, rule, unmarked
from council.usage import BYTES_PER_TOKEN, CHARACTERS_PER_TOKEN, tokens

ROLE = (
    "You take part in a council of language models. A team asked the council a question and "
    "will act on its answer, so be correct first, then clear, then brief."
)

WEIGHED = (
    "The team weighs answers by these criteria: the greater the weight, the more it counts, and an "
    "answer that fails a must-have is of no use to it."
)
LEAST_ROOM = 500
"""Tokens for a conversation beside a question that fills the context window by itself."""
LEAST_ANSWER = 200
"""Tokens that are left of an answer at least; below, its question alone is repeated."""
TITLES_SHARE = 8
"""One part in so many of the room is kept for titles."""
MOST_MESSAGES = 50
MOST_CHARACTERS = 20_000
"""Of a thread's messages, their files not counted."""


def chat(brief: Brief, member: Member, *parts: str) -> tuple[ChatMessage, ...]:
    """Return a prompt's messages; only what a member's persona is comes before the question, too."""
    persona = [member.persona.prompt] if member.persona else []
    system = "\n\n".join((ROLE, rule(brief.boundary), *persona))
    return ({"role": "system", "content": system}, {"role": "user", "content": "\n\n".join(parts)})


def question(brief: Brief, member: Member | None) -> list[str]:
    """Return what was said and sent before the question, and the question, last."""
    titles = [turn.question for turn in brief.history.turns if turn.answer is None]
    listed = "\n".join(f"- {each}" for each in titles)
    earlier = [fence(brief, "Earlier questions, answers not repeated", listed)] if titles else []
    for turn in brief.history.turns:
        if turn.answer is not None:
            earlier.append(fence(brief, "Earlier question", turn.question))
            earlier.append(fence(brief, "The council's answer", turn.answer))
    sent = [picture.sha256 for picture in brief.pictures]
    sees = member is not None and bool(member.vision)

    def shown(name: str, file: Attachment) -> str:
        said = [file.text]
        for picture in file.pictures:
            page = f"[p. {picture.page}] " if picture.page else ""
            size = f"{picture.width} \u00d7 {picture.height}"
            if sees:
                number = sent.index(picture.sha256) + 1
                said.append(f"{page}(picture {number} of those above, {size})")
            else:
                said.append(f"{page}(a picture, {size}, that you can't see)")
        if file.omitted:
            said.append(f"(not read: {file.omitted})")
        return fence(brief, name, "\n\n".join(filter(None, said)))

    before = (shown(f"Earlier attachment {file.name}", file) for file in brief.earlier)
    messages = brief.context.messages if brief.context else ()
    intro = (
        "The question was asked in a thread. These are its messages before the question, oldest first."
    )
    thread = [intro] if messages else []
    for message in messages:
        thread.append(fence(brief, f"Message by {message.name}", message.text))
        thread += (
            shown(f"File {file.name}, sent with the message above", file) for file in message.files
        )
    attached = (
        shown(f"Page {file.url}" if file.url else f"Attachment {file.name}", file)
        for file in brief.attachments
    )
    cite = "Where you rely on a page of a file, cite it as its text names it, such as [p. 4]."
    rules = [cite] if any(file.pages for file in brief.files) else []
    return [*earlier, *before, *thread, *attached, *rules, asked(brief)]


def asked(brief: Brief) -> str:
    return fence(brief, "Question", brief.question)


def criteria(brief: Brief) -> list[str]:
    return weighing(brief.boundary, brief.profile.criteria)


def weighing(boundary: str, criteria: EvaluationCriteria | None) -> list[str]:
    """Name the team's criteria; somebody typed them, so they are fenced like a question."""
    if criteria is None:
        return []
    lines = (
        f"- {each.name} (weight {each.weight:g}{', must-have' if each.must_have else ''})"
        f"{each.description and f': {each.description}'}"
        for each in criteria.criteria
    )
    return [fenced(boundary, "Criteria", "\n".join(lines)), WEIGHED]


def without_boundary(brief: Brief, parts: Iterable[str]) -> list[str]:
    """Return our own parts without the boundary, which criteria and names in them might contain."""
    return [unmarked(brief.boundary, part) for part in parts]


def fence(brief: Brief, name: str, text: str) -> str:
    return fenced(brief.boundary, name, text)


def room_beside(window: int, texts: Iterable[str]) -> int:
    """Return the tokens that what came before may take in a context window, beside these texts.

    That is half of what the texts leave free: reviews and corrections repeat other members'
    answers, and the reply needs room, too.
    """
    return max((window - sum(map(tokens, texts))) // 2, LEAST_ROOM)


def newest(texts: Sequence[str], room: int) -> list[str]:
    """Return the last of a thread's messages, oldest first: as many as fit into `room` tokens.

    At most `MOST_MESSAGES` of `MOST_CHARACTERS` together; the last one in any case. If that one alone
    is longer, it is cut at a sentence's end, visibly.
    """
    kept: list[str] = []
    characters = MOST_CHARACTERS
    for text in reversed(texts[-MOST_MESSAGES:]):
        characters -= len(text)
        room -= tokens(text)
        if characters < 0 or room < 0:
            break
        kept.insert(0, text)
    if texts and not kept:
        most = min(room + tokens(texts[-1]), MOST_CHARACTERS // BYTES_PER_TOKEN)
        kept = [_cut(texts[-1], most - 20)]  # there is room for the note at the cut
    return kept


def turns(conversation: Conversation) -> list[Turn]:
    """Return a conversation's questions with their final answers, oldest first."""
    return [
        Turn(question=each.question, answer=each.answer.stage3.response or None)
        for each in exchanges(conversation)
        if each.answer and each.question
    ]


def recent(turns: Sequence[Turn], room: int) -> History:
    """Return as much of a conversation as fits into `room` tokens, the end of it first."""
    sizes = [tokens(turn.question) + tokens(turn.answer or "") for turn in turns]
    if sum(sizes) <= room:
        return History(turns=tuple(turns))
    left = room - room // TITLES_SHARE
    whole: list[Turn] = []
    for turn, size in zip(reversed(turns), reversed(sizes), strict=True):
        if size > left:
            break
        whole.insert(0, turn)
        left -= size
    cut = not whole and tokens(turns[-1].question) + LEAST_ANSWER <= left
    if cut:
        asked = turns[-1].question
        whole = [Turn(question=asked, answer=_cut(turns[-1].answer or "", left - tokens(asked)))]
        left = 0
    older = [
        Turn(question=clip(" ".join(turn.question.split()), 80), answer=None)
        for turn in turns[: len(turns) - len(whole)]
    ]
    room_for_titles = left + room // TITLES_SHARE
    titled: list[Turn] = []
    for turn in reversed(older):
        room_for_titles -= tokens(turn.question)
        if room_for_titles < 0:
            break
        titled.insert(0, turn)
    return History(turns=(*titled, *whole), left_out=len(older) - len(titled), cut=cut)


def _cut(text: str, room: int) -> str:
    """Cut a text at a sentence's end so that it fits into `room` tokens."""
    # `shorten` counts four characters a token, and this text may need more bytes for each.
    [kept] = shorten([text], room * len(text) // len(text.encode(errors="replace")))
    return kept


def shorten(texts: Sequence[str], max_tokens: int) -> list[str]:
    """Return texts that fit into `max_tokens` together; the longest are cut first.

    Texts are cut at a sentence end where there is one, with a visible mark.
    """
    room = max_tokens * CHARACTERS_PER_TOKEN
    if sum(map(len, texts)) <= room:
        return [*texts]
    limit, uncut = room, len(texts)
    for length in sorted(map(len, texts)):  # the shortest leave room to the others
        limit = room // uncut
        if length > limit:
            break
        room, uncut = room - length, uncut - 1
    return [text if len(text) <= limit else _clipped(text, limit) for text in texts]


def _clipped(text: str, limit: int) -> str:
    ends = [text.rfind("\n", 0, limit), *sentence_ends(text, limit)]
    kept = text[: max(ends) if max(ends) > 0 else limit].rstrip()
    return f"{kept}\n[shortened: {len(kept):,} of {len(text):,} characters]"
