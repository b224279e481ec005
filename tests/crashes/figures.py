"""Figures about a crash: calls, messages, runs, documents."""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from council.document.conversation import AssistantMessage, Conversation, UserMessage, rounds_of
from tests.crashes.people import Asked, Posted
from tests.crashes.scene import AGAIN, MEMBERS, OVER, Scene

NUMBER = re.compile(r"Reply (\d+):")
CALLS = 3 * len(MEMBERS) + 1


@dataclass(frozen=True, slots=True)
class Row:
    """A run as the journal has it, and the numbers of the replies that it has recorded."""

    id: str
    status: str
    delivery: str | None
    replies: frozenset[int]


def journal(data: Path) -> dict[str, Row]:
    """Read every run by its question; the program may be running or dead."""
    with closing(sqlite3.connect(f"file:{data}/council.db?mode=ro", uri=True)) as database:
        runs = database.execute("SELECT id, status, delivery, brief ->> 'question' FROM runs").fetchall()
        steps = database.execute("SELECT run_id, outcome FROM steps").fetchall()
    replies: dict[str, set[int]] = {}
    for run, outcome in steps:
        if found := NUMBER.search(outcome):
            replies.setdefault(run, set()).add(int(found[1]))
    return {
        question: Row(run, status, delivery, frozenset(replies.get(run, ())))
        for run, status, delivery, question in runs
    }


def answers(data: Path) -> dict[str, AssistantMessage]:
    """Read every document, whole and with one exchange: its answer by its question."""
    return answers_of(file.read_bytes() for file in (data / "conversations").glob("*.json"))


def answers_of(documents: Iterable[str | bytes]) -> dict[str, AssistantMessage]:
    """Read documents of one exchange each: the answer by its question."""
    found: dict[str, AssistantMessage] = {}
    for document in documents:
        question, answer = Conversation.model_validate_json(document).messages
        assert isinstance(question, UserMessage)
        assert isinstance(answer, AssistantMessage)
        assert question.content not in found, f"{question.content} has two documents"
        found[question.content] = answer
    return found


def leftovers(data: Path) -> list[str]:
    """Name the temporary files that are in the documents' folder."""
    return [file.name for file in (data / "conversations").glob(".*.tmp")]


@dataclass(frozen=True, slots=True)
class Crash:
    """What the kill of one start has left: the runs, and each question's newest message."""

    start: int
    runs: dict[str, Row]
    newest: dict[str, str]

    @property
    def recorded(self) -> frozenset[int]:
        return frozenset[int]().union(*(run.replies for run in self.runs.values()))


def crashed(scene: Scene, asked: Sequence[Asked]) -> Crash:
    """Return what a kill has left, before the next start."""
    newest = {each.text: (each.thread() or each.cards())[-1:] for each in asked}
    texts = {question: posted[0].text for question, posted in newest.items() if posted}
    return Crash(scene.starts, journal(scene.data), texts)


@dataclass(slots=True)
class Figures:
    """The figures of one crash or several; `wrong` lists violations in words."""

    crashes: int = 0
    too_late: int = 0
    runs: int = 0
    recorded: int = 0
    in_flight: int = 0
    recorded_repeated: int = 0
    repeated: int = 0
    posted: int = 0
    posted_twice_on_discord: int = 0
    posted_twice_on_slack: int = 0
    wrong: list[str] = field(default_factory=list[str])

    def add(self, other: "Figures") -> None:
        for name in Figures.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def __str__(self) -> str:
        """Return them as lines, for a test's report."""
        return "\n".join(
            [
                f"{self.crashes} crashes under {self.runs} runs, {self.too_late} after all was over",
                f"calls recorded at the kill {self.recorded}, of these repeated {self.recorded_repeated}",
                f"calls in flight at the kill {self.in_flight}, calls repeated {self.repeated}",
                f"messages posted {self.posted}",
                f"twice on Discord {self.posted_twice_on_discord}, on Slack {self.posted_twice_on_slack}",
                *self.wrong,
            ]
        )


def count(scene: Scene, asked: Sequence[Asked], *crashes: Crash, calls: int = CALLS) -> Figures:
    """Count the outcome of these questions after these crashes, once everything is shown.

    `calls` is how many a run takes that nothing happens to.
    """
    figures = Figures(crashes=len(crashes))
    taken = [question for question in asked if question.text in crashes[-1].runs]
    figures.runs = len(taken)
    figures.add(count_calls(scene, [question.text for question in taken], *crashes, calls=calls))
    after = journal(scene.data)
    written = answers(scene.data)
    for question in taken:
        if (status := after[question.text].status) != "answered":
            figures.wrong.append(f"{question.text}: its run is {status}")
        elif question.text not in written:
            figures.wrong.append(f"{question.text}: no document")
        else:
            # A kill may hide the reply to one post: the newest one that there is.
            hidden = Counter(text for crash in crashes if (text := crash.newest.get(question.text)))
            count_messages(question, written[question.text], hidden, figures)
    for question in asked:
        if question not in taken and (question.taken() or question.cards()):
            figures.wrong.append(f"{question.text}: taken or shown, and not in the journal")
    figures.wrong += [f"left over: {name}" for name in leftovers(scene.data)]
    return figures


def count_calls(scene: Scene, questions: Sequence[str], *crashes: Crash, calls: int = CALLS) -> Figures:
    """Compare what models were asked before and after each crash, by the whole of the requests' bodies."""
    figures = Figures()
    made = [
        (scene.start_of(each), body_of(each.request))
        for each in scene.models.history
        if any(question in each.prompt for question in questions)
    ]
    begun = 0
    for crash in crashes:
        recorded = {body_of(scene.talk.requests[number]) for number in crash.recorded}
        recorded &= {body for _, body in made}
        figures.recorded += len(recorded)
        figures.in_flight += len(
            {body for start, body in made if begun < start <= crash.start} - recorded
        )
        again = recorded & {body for start, body in made if start > crash.start}
        figures.recorded_repeated += len(again)
        begun = crash.start
    figures.repeated = len(made) - len({body for _, body in made})
    if figures.recorded_repeated:
        figures.wrong.append("recorded calls were repeated")
    if len(set(made)) < len(made):
        figures.wrong.append("a call was made twice by one process")
    if len(made) > (needed := calls * len(questions)) + figures.in_flight:
        figures.wrong.append(f"{len(made)} calls where {needed} are needed")
    return figures


def count_messages(
    question: Asked, answer: AssistantMessage, hidden: Counter[str], figures: Figures
) -> None:
    """Check that card and thread are complete and in order, and count duplicates.

    `hidden` are the messages whose posting may not have been seen, which Slack may have twice.
    """
    cards, thread = question.cards(), question.thread()
    figures.posted += len(cards) + len(thread)
    final = [card for card in cards if answer.stage3.response in card.text and AGAIN in card.text]
    if len(final) != 1:
        figures.wrong.append(f"{question.text}: not one card that shows the answer: {cards}")
    # Of two cards, one was forgotten and is still as it was posted.
    twice = [card.text for card in cards if card not in final]
    seen = Counter(each.text for each in thread)
    twice += [text for text, times in seen.items() for _ in range(times - 1)]
    if question.platform == "discord":
        figures.posted_twice_on_discord += len(twice)
        hidden = Counter()
    else:
        figures.posted_twice_on_slack += len(twice)
    if Counter(twice) - hidden:
        figures.wrong.append(f"{question.text}: posted twice: {twice}")
    once = [each for number, each in enumerate(thread) if each not in thread[:number]]
    if problem := _thread_problem(once, answer):
        figures.wrong.append(f"{question.text}: {problem}")
    if sum(each.pings for each in [*cards, *once]) != 1:
        figures.wrong.append(f"{question.text}: not exactly one mention")


def _thread_problem(thread: list[Posted], answer: AssistantMessage) -> str | None:
    """Compare a thread with its document: the last round's ranking, members best first.

    The mention waits for none of it.
    """
    *earlier, last = rounds_of(answer)
    ranking = f"Ranking, round {len(earlier) + 1}" if earlier else "Ranking"
    thread = [each for each in thread if OVER not in each.text or ranking in each.text]
    heads = [each.text.partition("\n")[0].lstrip("# ") for each in thread]
    heads = [ranking if OVER in head else head for head in heads]
    members = [place.model.rpartition("/")[2] for place in last.ranking.places] if last.ranking else []
    if heads != [ranking, *members]:
        return f"not every part, or not once, or not in order: {heads}"
    corrections = {each.model.rpartition("/")[2]: each.corrected_response for each in last.corrections}
    for head, part in zip(heads, thread, strict=True):
        if head in corrections and corrections[head] not in part.text:
            return f"{head}'s part is not what it wrote: {part.text}"
    return None


def body_of(request: object) -> str:
    """Return the whole of a request, to compare it with others."""
    return json.dumps(request, sort_keys=True)
