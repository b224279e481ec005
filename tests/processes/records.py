"""What is in the database that several processes share, and how to judge it."""

from collections import Counter
from collections.abc import Mapping, Sequence

import psycopg

from council.document.conversation import AssistantMessage
from tests.crashes.figures import NUMBER, Figures, answers_of, count_messages
from tests.crashes.people import Asked


async def recorded_replies(address: str) -> set[int]:
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        rows = await (await connection.execute("SELECT outcome FROM steps")).fetchall()
    return {int(found[1]) for (outcome,) in rows if (found := NUMBER.search(outcome))}


async def answers(address: str) -> dict[str, AssistantMessage]:
    """Read every document, whole and with one exchange: its answer by its question."""
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        rows = await (await connection.execute("SELECT content FROM documents")).fetchall()
    return answers_of(document for (document,) in rows)


async def judge(address: str, asked: Sequence[Asked], hidden: Mapping[str, Counter[str]]) -> Figures:
    """Compare what people see with the documents, once everything is shown.

    `hidden` are, by question, the messages that Slack may have twice.
    """
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        sql = "SELECT brief::json ->> 'question', status, delivery FROM runs"
        rows = await (await connection.execute(sql)).fetchall()
        turns = await (await connection.execute("SELECT run, state, worker FROM turns")).fetchall()
        sql = "SELECT id, status, args FROM procrastinate_jobs WHERE task_name = 'council.run'"
        jobs = await (await connection.execute(sql)).fetchall()
    written = await answers(address)
    figures = Figures(runs=len(rows))
    for question in asked:
        found = [row for row in rows if row[0] == question.text]
        if not found and (question.taken() or question.cards()):
            figures.wrong.append(f"{question.text}: taken or shown, and not in the journal")
        elif found and [row[1:] for row in found] != [("answered", "shown")]:
            figures.wrong.append(f"{question.text}: {found}")
        elif found and question.text not in written:
            figures.wrong.append(f"{question.text}: no document")
        elif found:
            count_messages(
                question, written[question.text], hidden.get(question.text, Counter()), figures
            )
    figures.wrong += [f"left in the queue: {turn}" for turn in turns]
    figures.wrong += [f"left as a job: {job}" for job in jobs]
    return figures
