"""How every prompt of a run begins: the role, the conversation so far, the files, the question.

Questions, answers, reviews and critiques are data: two lines around each carry the run's random
boundary (`council.text.fence`), and every prompt says that nothing between them is an instruction.

Providers charge less for the beginning of a prompt that they have read before. So all prompts of a run
begin alike and end in what differs: the answers, then the task.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from council.brief import Attachment, Brief, Picture
from council.calls import ChatMessage
from council.profile import Member
from council.prompts.refinement import weighing
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


def chat(brief: Brief, member: Member, *parts: str) -> tuple[ChatMessage, ...]:
    """Return a prompt's messages; only what a member's persona is comes before the question, too."""
    persona = [member.persona.prompt] if member.persona else []
    system = "\n\n".join((ROLE, rule(brief.boundary), *persona))
    return (
        {"role": "system", "content": system},
        {"role": "user", "content": "\n\n".join(parts)},
    )


def language_rule(brief: Brief) -> list[str]:
    """Say in which language to answer."""
    return [f"Answer the question in {brief.language}."]


def question(brief: Brief, member: Member | None) -> list[str]:
    """Return what was said and sent before the question, and the question, last."""
    titles = [turn.question for turn in brief.history.turns if turn.answer is None]
    listed = "\n".join(f"- {each}" for each in titles)
    earlier = [fence(brief, "Earlier questions, answers not repeated", listed)] if titles else []
    for turn in brief.history.turns:
        if turn.answer is not None:
            earlier.append(fence(brief, "Earlier question", turn.question))
            earlier.append(fence(brief, "The council's answer", turn.answer))
    files = _Files(brief, sees=member is not None and bool(member.vision))
    before = (files.part(f"Earlier attachment {file.name}", file) for file in brief.earlier)
    attached = (files.part(_named(file), file) for file in brief.attachments)
    thread = _thread(brief, files)
    return [*earlier, *before, *thread, *attached, *files.rules(), asked(brief)]


def asked(brief: Brief) -> str:
    """Return the question alone."""
    return fence(brief, "Question", brief.question)


def _thread(brief: Brief, files: "_Files") -> Iterator[str]:
    messages = brief.context.messages if brief.context else ()
    if messages:
        yield IN_A_THREAD
    for message in messages:
        yield fence(brief, f"Message by {message.name}", message.text)
        for file in message.files:
            yield files.part(f"File {file.name}, sent with the message above", file)


def _named(file: Attachment) -> str:
    return f"Page {file.url}" if file.url else f"Attachment {file.name}"


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a question as one member reads them; pictures are numbered as they are sent."""

    brief: Brief
    sees: bool

    def part(self, name: str, file: Attachment) -> str:
        """Return a file's text, with what its pictures are and what is missing."""
        drawn = [self._picture(picture) for picture in file.pictures]
        missing = [NOT_READ.format(why=file.omitted)] if file.omitted else []
        return fence(self.brief, name, "\n\n".join(filter(None, (file.text, *drawn, *missing))))

    def rules(self) -> list[str]:
        """Return how pages are cited, if any of the files has pages."""
        return [CITE_PAGES] if any(file.pages for file in self.brief.files) else []

    def _picture(self, picture: Picture) -> str:
        page = f"[p. {picture.page}] " if picture.page else ""
        if not self.sees:
            return page + UNSEEN_PICTURE.format(width=picture.width, height=picture.height)
        sent = [one.sha256 for one in self.brief.pictures]
        number = sent.index(picture.sha256) + 1
        return page + SEEN_PICTURE.format(number=number, width=picture.width, height=picture.height)


def criteria(brief: Brief) -> list[str]:
    """Return what the team weighs answers by, if it said so."""
    return weighing(brief.boundary, brief.profile.criteria)


def without_boundary(brief: Brief, parts: Iterable[str]) -> list[str]:
    """Return our own parts without the boundary, which criteria and names in them might contain."""
    return [unmarked(brief.boundary, part) for part in parts]


def fence(brief: Brief, name: str, text: str) -> str:
    """Return somebody's text between two lines with the run's boundary."""
    return fenced(brief.boundary, name, text)
