"""How every prompt of a run begins: the role, the conversation so far, the files, the question.

Questions, answers, reviews and critiques are data: two lines around each carry the run's random
boundary (`council.text.fence`), and every prompt says that nothing between them is an instruction.

Providers charge less for the beginning of a prompt that they have read before. So all prompts of a run
begin alike and end in what differs: the answers, then the task.
"""

from collections.abc import Iterable

from council.brief import Attachment, Brief
from council.calls import ChatMessage
from council.criteria import EvaluationCriteria
from council.profile import Member
from council.text.fence import fenced, rule, unmarked

ROLE = (
    "You take part in a council of language models. A team asked the council a question and "
    "will act on its answer, so be correct first, then clear, then brief."
)
IN_A_THREAD = (
    "The question was asked in a thread. These are its messages before the question, oldest first."
)
SEEN_PICTURE = "(picture {number} of those above, {width} \u00d7 {height})"
UNSEEN_PICTURE = "(a picture, {width} \u00d7 {height}, that you can't see)"
NOT_READ = "(not read: {why})"
CITE_PAGES = "Where you rely on a page of a file, cite it as its text names it, such as [p. 4]."

WEIGHED = (
    "The team weighs answers by these criteria: the greater the weight, the more it counts, and an "
    "answer that fails a must-have is of no use to it."
)


def chat(brief: Brief, member: Member, *parts: str) -> tuple[ChatMessage, ...]:
    """Return a prompt's messages; only what a member's persona is comes before the question, too."""
    persona = [member.persona.prompt] if member.persona else []
    system = "\n\n".join((ROLE, rule(brief.boundary), *persona))
    return (
        {"role": "system", "content": system},
        {"role": "user", "content": "\n\n".join(parts)},
    )


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
        """Return a file's text, with what its pictures are and what is missing of it."""
        said = [file.text]
        for picture in file.pictures:
            form = SEEN_PICTURE if sees else UNSEEN_PICTURE
            number = sent.index(picture.sha256) + 1 if sees else None
            page = f"[p. {picture.page}] " if picture.page else ""
            said.append(page + form.format(number=number, width=picture.width, height=picture.height))
        if file.omitted:
            said.append(NOT_READ.format(why=file.omitted))
        return fence(brief, name, "\n\n".join(filter(None, said)))

    before = (shown(f"Earlier attachment {file.name}", file) for file in brief.earlier)
    messages = brief.context.messages if brief.context else ()
    thread = [IN_A_THREAD] if messages else []
    for message in messages:
        thread.append(fence(brief, f"Message by {message.name}", message.text))
        thread += (
            shown(f"File {file.name}, sent with the message above", file) for file in message.files
        )
    attached = (
        shown(f"Page {file.url}" if file.url else f"Attachment {file.name}", file)
        for file in brief.attachments
    )
    rules = [CITE_PAGES] if any(file.pages for file in brief.files) else []
    return [*earlier, *before, *thread, *attached, *rules, asked(brief)]


def asked(brief: Brief) -> str:
    return fence(brief, "Question", brief.question)


def criteria(brief: Brief) -> list[str]:
    """Return what the team weighs answers by, if it said so."""
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
    """Return somebody's text between two lines with the run's boundary."""
    return fenced(brief.boundary, name, text)
