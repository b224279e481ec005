"""Each server with everything that a council needs of one, and what came of it.

A council of three models of one server answers, reviews, corrects itself and concludes: with ballots by
schema where the server takes one, then in prose. Then its key is wrong, a model unknown, a limit reached,
its account empty.
"""

import random
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from pydantic import BaseModel

from council.calls import MemorySteps
from council.cancel import Stop
from council.document.conversation import AssistantMessage
from council.errors import Cause, RunError
from council.events import AnswerStreamed, Event
from council.models.client import ModelClient
from council.models.directory import Directory
from council.models.retries import Backoff, Retries
from council.profile import Profile
from council.run import deliberate
from tests.council.scripted import Clock, ScriptedCouncil
from tests.model_server import Exchange, Json
from tests.model_servers.stand_in import (
    CONCLUSION,
    KEY,
    TASK_LENGTH,
    THOUGHT,
    StandIn,
    form_of,
    prompt_of,
)
from tests.passing_time import Rest

KEY_VARIABLE = "STAND_IN_KEY"
COST = 0.002
"""What each call costs, where that is stated."""
MAX_TOKENS = 4_000
TEMPERATURE = 0.3
MOST_LESSONS = 5
MEMBERS = 3
YES, NONE = "yes", "\u2013"
"""It is so; its original has no such thing."""
FORMS = {"json_schema": "schema", "json_object": "JSON", "text": "prose"}
CREDIT_SHOWN: Mapping[Cause, str] = {
    "credit": YES,
    "key": "reads as a wrong key",
    "key_limit": "reads as the key's limit",
}
TEXT_BALLOT = "End with a line that says FINAL RANKING:"


class Row(BaseModel):
    """What came of a server's cells; `wrong` says, by cell, what should be otherwise."""

    server: str
    dialect: str
    answers: str = NONE
    ballots_by_schema: str = NONE
    ballots_in_prose: str = NONE
    corrections: str = NONE
    preview: str = NONE
    usage_and_cost: str = NONE
    thoughts_hidden: str = NONE
    wrong_key: str = NONE
    unknown_model: str = NONE
    rate_limit: str = NONE
    no_credit: str = NONE
    learning: int = 0
    """Requests that were refused, of the model with most of them."""
    wrong: dict[str, str] = {}

    def show(self, cell: str, shown: str, *faults: str | None) -> None:
        """Fill a cell: with what it shows, or with what is wrong."""
        said = "; ".join(fault for fault in faults if fault)
        setattr(self, cell, "no" if said else shown)
        if said:
            self.wrong[cell] = said


@dataclass(slots=True)
class Council:
    """Three models of one server, and what was heard of them."""

    models: Sequence[str]
    seat: Json
    directory: Directory
    client: ModelClient
    rest: Rest
    call_deadline: float = 120.0
    events: list[Event] = field(default_factory=list[Event])

    def profile(
        self,
        settings: Json | None = None,
        *,
        models: Sequence[str] = (),
        personas: Sequence[Mapping[str, str]] = (),
    ) -> Profile:
        """Seat each model, or a single one with each persona; the last one takes the chair."""
        seats = [{"model": model, **self.seat, **(settings or {})} for model in models or self.models]
        members = [{**seats[0], "persona": persona} for persona in personas] or seats
        times = {"call_deadline": self.call_deadline, "stage_deadline": 3 * self.call_deadline}
        profile = Profile.model_validate({"members": members, "chairman": seats[-1], **times})
        self.directory.add([profile])
        return profile

    async def run(
        self,
        settings: Json | None = None,
        *,
        models: Sequence[str] = (),
        personas: Sequence[Mapping[str, str]] = (),
    ) -> AssistantMessage:
        """Take a question through all stages, with these settings of each seat; raises `RunError`."""
        profile = self.profile(settings, models=models, personas=personas)
        self.events.clear()
        deliberation = await deliberate(
            ScriptedCouncil.brief(await self.client.catalog.resolve(profile)),
            ask=self.client.ask,
            steps=MemorySteps(),
            emit=self.events.append,
            now=Clock(),
            stop=Stop(),
        )
        return deliberation.message


@asynccontextmanager
async def council_at(
    address: str, models: Sequence[str], *, key: str | None, dialect: str | None = None
) -> AsyncGenerator[Council]:
    """Yield a council of these models at an address."""
    directory, rest = Directory(), Rest()
    seat: Json = {"endpoint": address}
    seat |= {} if key is None else {"api_key_env": KEY_VARIABLE}
    seat |= {} if dialect is None else {"dialect": dialect}
    async with ModelClient(
        directory.find,
        keys={KEY_VARIABLE: key or ""},
        retries=Retries(3, Backoff(first=0.01), random.Random(1), rest),  # noqa: S311 - jitter
    ) as client:
        yield Council(models, seat, directory, client, rest)


@dataclass(frozen=True, slots=True)
class Matrix:
    """One stand-in, asked in its dialect (`is_named`) or as any server."""

    kind: type[StandIn]
    is_named: bool

    async def row(self) -> Row:
        """Fill its row."""
        row = Row(server=self.kind.title, dialect=self.kind.dialect)
        await self._answers(row)
        await self._prose(row)
        await self._wrong_key(row)
        await self._unknown_model(row)
        await self._no_credit(row)
        return row

    @asynccontextmanager
    async def _opened(self, key: str = KEY) -> AsyncGenerator[tuple[StandIn, Council]]:
        async with self.kind() as server:
            dialect = self.kind.dialect if self.is_named else None
            given = key if self.kind.asks_for_key else None
            models = self.kind.models_served
            async with council_at(server.base_url, models, key=given, dialect=dialect) as council:
                yield server, council

    async def _answers(self, row: Row) -> None:
        # No dialect can know every model that takes no temperature.
        settings: Json = {"max_tokens": MAX_TOKENS}
        settings |= {} if self.is_named else {"temperature": TEMPERATURE}
        async with self._opened() as (server, council):
            try:
                message = await council.run(settings)
            except RunError as error:
                row.show("answers", YES, said(error))
                return
            row.show("answers", YES, *unanswered(council, message))
            row.show("ballots_by_schema", shown_forms(server.taken), uncounted(message))
            row.show("corrections", YES, *uncorrected(message))
            row.show("preview", streamed(council.events), *unlike(council.events, message))
            row.show(
                "usage_and_cost",
                self._counting(),
                *miscounted(server.measured, message, cost=self._cost(server)),
            )
            if any(self.kind.thinks_about(server, request) for request in server.taken):
                row.show(
                    "thoughts_hidden", YES, *shown_thoughts(server.history, council.events, message)
                )
            lessons = Counter(str(refusal.request["model"]) for refusal in server.refusals)
            row.learning = max(lessons.values(), default=0)
            learned = len(server.refusals)
            await self._again(row, server, council, settings)
            most = self.kind.unforeseen if self.is_named else MOST_LESSONS
            if row.learning > most:
                texts = [refusal.said for refusal in server.refusals]
                row.wrong["learning"] = f"{row.learning} requests, at most {most}: {texts}"
            if again := len(server.refusals) - learned:
                row.wrong["learning"] = f"{again} more requests in the second run"

    def _cost(self, server: StandIn) -> float:
        return COST * len(server.counted) if self.kind.states_cost else 0.0

    def _counting(self) -> str:
        if self.kind.usage_in == "nowhere":
            return "estimated"
        return "counted, cost stated" if self.kind.states_cost else "counted"

    async def _prose(self, row: Row) -> None:
        async with self._opened() as (server, council):
            try:
                message = await council.run({"structured": False})
            except RunError as error:
                row.show("ballots_in_prose", YES, said(error))
                return
            forms = forms_of_reviews(server.taken)
            asked = None if forms == {"text"} else f"asked for {forms}"
            row.show("ballots_in_prose", YES, asked, uncounted(message))

    async def _wrong_key(self, row: Row) -> None:
        if self.kind.asks_for_key:
            async with self._opened(key="sk-wrong") as (server, council):
                fault = await refused(council, "key")
                row.show("wrong_key", YES, fault, too_many(server, MEMBERS))

    async def _unknown_model(self, row: Row) -> None:
        if self.kind.unknown_model is None:
            row.unknown_model = "any name is served"
            return
        async with self._opened() as (server, council):
            models = (f"{council.models[0]}-typo", *council.models[1:])
            try:
                message = await council.run(models=models)
            except RunError as error:
                row.show("unknown_model", YES, said(error))
                return
            causes = {failure.member: failure.failure.cause for failure in message.failures}
            asked = sum(exchange.model == models[0] for exchange in server.history)
            asked -= sum(refusal.request["model"] == models[0] for refusal in server.refusals)
            row.show(
                "unknown_model",
                YES,
                None if causes == {models[0]: "not_found"} else f"failures: {causes}",
                None if len(message.stage1) == MEMBERS - 1 else f"{len(message.stage1)} answers",
                None if asked == 1 else f"asked {asked} times",
            )

    async def _again(self, row: Row, server: StandIn, council: Council, settings: Json) -> None:
        """Ask the same models once more, and have a limit reached where the server has one."""
        if "rate limit" not in self.kind.troubles:
            await council.run(settings)
            return
        waited = len(council.rest.waits)
        server.suffer("rate limit", times=2)
        try:
            message = await council.run(settings)
        except RunError as error:
            row.show("rate_limit", YES, said(error))
            return
        causes = {failure.member: failure.failure.cause for failure in message.failures}
        waits = council.rest.waits[waited:]
        row.show(
            "rate_limit",
            YES,
            *([f"failures: {causes}"] if causes else []),
            None if len(waits) == 2 else f"waited {waits}",
        )

    async def _no_credit(self, row: Row) -> None:
        if "no credit" not in self.kind.troubles:
            return
        async with self._opened() as (server, council):
            server.suffer("no credit")
            cause = self.kind.credit_cause
            fault = await refused(council, cause)
            row.show("no_credit", CREDIT_SHOWN[cause], fault, too_many(server, 2 * MEMBERS))


# What may be wrong with a run ---------------------------------------------------------------------


def said(error: RunError) -> str:
    """Return how a run ended."""
    causes = {member: f"{why.cause} ({why.detail})" for member, why in error.failures.items()}
    return f"{type(error).__name__}: {causes or error}"


async def refused(council: Council, cause: Cause) -> str | None:
    """Run; return how it ended, unless it is with this cause for everybody."""
    try:
        await council.run()
    except RunError as error:
        causes = {failure.cause for failure in error.failures.values()}
        single = getattr(error, "failure", None)
        causes |= set() if single is None else {single.cause}
        return None if causes and causes <= {cause, "not_needed"} else said(error)
    return "there was an answer"


def too_many(server: StandIn, most: int) -> str | None:
    """Return how often a server was asked in vain, if that is too often."""
    asked = len(server.history)
    return f"asked {asked} times, at most {most}" if asked > most else None


def unanswered(council: Council, message: AssistantMessage) -> list[str]:
    """Return the failures, and every answer that isn't what its model said."""
    failed = [f"{each.member}, {each.stage}: {each.failure}" for each in message.failures]
    wanted = {model: f"{model} thinks that it depends on the load." for model in council.models}
    found = {answer.model: answer.response for answer in message.stage1}
    others = [f"{model}: {found.get(model)}" for model in wanted if found.get(model) != wanted[model]]
    final = message.stage3.response
    concludes = CONCLUSION.format(council.models[-1])
    return [*failed, *others, *([] if final == concludes else [f"the final answer: {final}"])]


def uncounted(message: AssistantMessage) -> str | None:
    """Return the ballots, unless all of them count as they were meant."""
    rankings = [review.parsed_ranking for review in message.stage2]
    counted = message.aggregate_ranking.ballots if message.aggregate_ranking else 0
    if counted == MEMBERS and all(ranking == sorted(ranking) for ranking in rankings):
        return None
    failed = [f"{each.member}: {each.failure.cause}" for each in message.failures]
    return f"{counted} ballots of {MEMBERS} count: {rankings} {failed}"


def uncorrected(message: AssistantMessage) -> list[str]:
    """Return the corrections that aren't what their models said."""
    wanted = "{} holds, having read its peers, that it depends on the load."
    found = {each.model: each for each in message.stage2_5 or ()}
    return [
        f"{model}: {each.fallback or each.corrected_response}"
        for model, each in found.items()
        if each.corrected_response != wanted.format(model)
    ] or ([] if len(found) == MEMBERS else [f"{len(found)} corrections"])


def streamed(events: Collection[Event]) -> str:
    """Return how the final answer was heard."""
    pieces = sum(isinstance(event, AnswerStreamed) for event in events)
    return YES if pieces > 1 else "at once"


def unlike(events: Collection[Event], message: AssistantMessage) -> list[str]:
    """Return the preview if it isn't the final answer."""
    heard = "".join(event.text for event in events if isinstance(event, AnswerStreamed))
    return [] if heard.strip() == message.stage3.response else [f"heard {heard!r}"]


def miscounted(counted: Collection[Json], message: AssistantMessage, *, cost: float) -> list[str]:
    """Return what the run's usage says, if it isn't what was counted; an estimate, if nothing was."""
    run = message.usage.run if message.usage else None
    if run is None:
        return ["no usage"]
    if not counted:
        return [] if run.source == "estimated" and run.tokens > 0 else [str(run)]
    prompt = sum(cast("int", usage["prompt_tokens"]) for usage in counted)
    total = sum(cast("int", usage["total_tokens"]) for usage in counted)
    faults: list[str] = []
    if (run.prompt_tokens, run.tokens, run.source) != (prompt, total, "measured"):
        faults.append(f"{run}, though {prompt} + {total - prompt} tokens were counted")
    if round(run.cost, 9) != round(cost, 9):
        faults.append(f"${run.cost}, though ${cost:g} was stated")
    return faults


def shown_thoughts(
    history: Collection[Exchange], events: Collection[Event], message: AssistantMessage
) -> list[str]:
    """Return where thoughts were let out."""
    places = {
        "the document": THOUGHT in message.model_dump_json(),
        "a prompt": any(THOUGHT in prompt_of(exchange.request) for exchange in history),
        "an event": any(THOUGHT in str(event) for event in events),
    }
    return [place for place, leaks in places.items() if leaks]


def shown_forms(requests: Collection[Json]) -> str:
    """Return in which formats ballots were given."""
    forms = forms_of_reviews(requests)
    return ", ".join(name for form, name in FORMS.items() if form in forms)


def forms_of_reviews(requests: Collection[Json]) -> set[str]:
    """Return the formats in which ballots were asked for."""
    forms = {form_of(request) for request in requests} - {"text"}
    if any(
        form_of(request) == "text" and TEXT_BALLOT in prompt_of(request)[-TASK_LENGTH:]
        for request in requests
    ):
        forms.add("text")
    return forms
