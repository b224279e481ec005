"""Each server with everything that a council needs of one, and what came of it.

A council of three models of one server answers, reviews, corrects itself and concludes: with ballots by
schema where the server takes one, then in prose. Then its key is wrong, a model unknown, a limit reached,
its account empty.
"""

import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from council.accounts import Directory
from council.calls import MemorySteps
from council.document.conversation import AssistantMessage
from council.errors import Cause, RunError
from council.events import AnswerStreamed, Event
from council.models.client import ModelClient, Retries
from council.profile import Profile
from council.run import deliberate
from council.tasks import Stop
from tests.council.scripted import Clock, ScriptedCouncil
from tests.model_server import Exchange, Json
from tests.model_servers.stand_in import (
    CONCLUSION,
    KEY,
    ORIGINALS,
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
ANY_NAME = "any name is served"
FORMS = {"json_schema": "schema", "json_object": "JSON", "text": "prose"}
CREDIT_SHOWN: Mapping[Cause, str] = {
    "credit": YES,
    "key": "reads as a wrong key",
    "key_limit": "reads as the key's limit",
}
TEXT_BALLOT = "End with a line that says FINAL RANKING:"

Faults = list[str]
Cell = tuple[str, Faults] | None
"""What a cell shows, and what is wrong with it; `None` where the original has no such thing."""


@dataclass(slots=True)
class Row:
    """What came of a server's cells; `wrong` says, by cell, what should be otherwise."""

    server: str
    cells: dict[str, str] = field(default_factory=dict[str, str])
    learning: int = 0
    """Requests that were refused, of the model with most of them."""
    wrong: dict[str, str] = field(default_factory=dict[str, str])

    def show(self, cell: str, shown: str, faults: Faults) -> None:
        """Fill a cell: with what it shows, or with what is wrong."""
        self.cells[cell] = "no" if faults else shown
        if faults:
            self.wrong[cell] = "; ".join(faults)


@dataclass(slots=True)
class Council:
    """Three models of one server, and the events of its run."""

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

    async def run(self, settings: Json | None = None, *, models: Sequence[str] = ()) -> AssistantMessage:
        """Take a question through all stages, with these settings of each seat; raises `RunError`."""
        return await self.deliberated(self.profile(settings, models=models))

    async def deliberated(self, profile: Profile) -> AssistantMessage:
        """Take a question through all stages; raises `RunError`."""
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
    directory, rest = Directory(), Rest()
    seat: Json = {"endpoint": address}
    seat |= {} if key is None else {"api_key_env": KEY_VARIABLE}
    seat |= {} if dialect is None else {"dialect": dialect}
    async with ModelClient(
        directory.find,
        keys={KEY_VARIABLE: key or ""},
        retries=Retries(3, 0.01, random.Random(1), rest),  # noqa: S311 - jitter
    ) as client:
        yield Council(models, seat, directory, client, rest)


@dataclass(frozen=True, slots=True)
class Seen:
    """A run that ended well, as the council and the servers saw it; `cost` is what these stated, `None` if unknown."""

    council: Council
    message: AssistantMessage
    history: Collection[Exchange]
    taken: Collection[Json]
    counted: Collection[Json]
    cost: float | None


# What may be wrong with a run that ended well -----------------------------------------------------


def unanswered(seen: Seen) -> Faults:
    """Return the failures, and every answer that isn't what its model said."""
    failed = [f"{each.member}, {each.stage}: {each.failure}" for each in seen.message.failures]
    found = {answer.model: answer.response for answer in seen.message.stage1}
    found["the final answer"] = seen.message.stage3.response
    models = seen.council.models
    wanted = {model: f"{model} thinks that it depends on the load." for model in models}
    wanted["the final answer"] = CONCLUSION.format(models[-1])
    return [*failed, *(f"{who}: {found.get(who)}" for who in wanted if found.get(who) != wanted[who])]


def uncounted(seen: Seen) -> Faults:
    """Return the ballots, unless all of them count as they were meant."""
    message = seen.message
    rankings = [review.parsed_ranking for review in message.stage2]
    counted = message.aggregate_ranking.ballots if message.aggregate_ranking else 0
    if counted == MEMBERS and all(ranking == sorted(ranking) for ranking in rankings):
        return []
    failed = [f"{each.member}: {each.failure.cause}" for each in message.failures]
    return [f"{counted} ballots of {MEMBERS} count: {rankings} {failed}"]


def uncorrected(seen: Seen) -> Faults:
    """Return the corrections that aren't what their models said."""
    wanted = "{} holds, having read its peers, that it depends on the load."
    found = {each.model: each for each in seen.message.stage2_5 or ()}
    return [
        f"{model}: {each.fallback or each.corrected_response}"
        for model, each in found.items()
        if each.corrected_response != wanted.format(model)
    ] or ([] if len(found) == MEMBERS else [f"{len(found)} corrections"])


def unlike(seen: Seen) -> Faults:
    """Return the preview if it isn't the final answer."""
    shown = "".join(event.text for event in seen.council.events if isinstance(event, AnswerStreamed))
    return [] if shown.strip() == seen.message.stage3.response else [f"showed {shown!r}"]


def miscounted(seen: Seen) -> Faults:
    """Return what the run's usage says, if it isn't what was counted; an estimate, if nothing was."""
    run = seen.message.usage.run if seen.message.usage else None
    if run is None:
        return ["no usage"]
    if not seen.counted:
        return [] if run.source == "estimated" and run.tokens > 0 else [str(run)]
    prompt = sum(cast("int", usage["prompt_tokens"]) for usage in seen.counted)
    total = sum(cast("int", usage["total_tokens"]) for usage in seen.counted)
    faults: Faults = []
    if (run.prompt_tokens, run.tokens, run.source) != (prompt, total, "measured"):
        faults.append(f"{run}, though {prompt} + {total - prompt} tokens were counted")
    if seen.cost is None and not run.cost:
        faults.append("no cost")
    if seen.cost is not None and round(run.cost, 9) != round(seen.cost, 9):
        faults.append(f"${run.cost}, though ${seen.cost:g} was stated")
    return faults


def shown_thoughts(seen: Seen) -> Faults:
    """Return where thoughts were let out."""
    places = {
        "the document": THOUGHT in seen.message.model_dump_json(),
        "a prompt": any(THOUGHT in prompt_of(exchange.request) for exchange in seen.history),
        "an event": any(THOUGHT in str(event) for event in seen.council.events),
    }
    return [place for place, leaks in places.items() if leaks]


def streamed(seen: Seen) -> str:
    """Return how the final answer was shown."""
    return (
        YES if sum(isinstance(event, AnswerStreamed) for event in seen.council.events) > 1 else "at once"
    )


def shown_forms(seen: Seen) -> str:
    """Return in which formats ballots were given."""
    forms = forms_of_reviews(seen.taken)
    return ", ".join(name for form, name in FORMS.items() if form in forms)


def forms_of_reviews(requests: Collection[Json]) -> set[str]:
    """Return the formats in which ballots were asked for."""
    forms = {form_of(request) for request in requests} - {"text"}
    plain = [prompt_of(request)[-TASK_LENGTH:] for request in requests if form_of(request) == "text"]
    return forms | ({"text"} if any(TEXT_BALLOT in prompt for prompt in plain) else set())


def counting(seen: Seen) -> str:
    """Return how the run's usage came about."""
    if not seen.counted:
        return "estimated"
    return "counted" if seen.cost == 0 else "counted, cost stated"


CHECKS: tuple[tuple[str, Callable[[Seen], str], Callable[[Seen], Faults]], ...] = (
    ("answers", lambda _: YES, unanswered),
    ("ballots_by_schema", shown_forms, uncounted),
    ("corrections", lambda _: YES, uncorrected),
    ("preview", streamed, unlike),
    ("usage_and_cost", counting, miscounted),
    ("thoughts_hidden", lambda _: YES, shown_thoughts),
)
"""The cells of a run with everything: what each shows, and what may be wrong."""


def said(error: RunError) -> str:
    causes = {member: f"{why.cause} ({why.detail})" for member, why in error.failures.items()}
    return f"{type(error).__name__}: {causes or error}"


async def refused(council: Council, cause: Cause) -> Faults:
    """Run; return how it ended, unless it is with this cause for everybody."""
    try:
        await council.run()
    except RunError as error:
        causes = {failure.cause for failure in error.failures.values()}
        single = getattr(error, "failure", None)
        causes |= set() if single is None else {single.cause}
        return [] if causes and causes <= {cause, "not_needed"} else [said(error)]
    return ["there was an answer"]


def too_many(server: StandIn, most: int) -> Faults:
    """Return how often a server was asked in vain, if that is too often."""
    asked = len(server.history)
    return [f"asked {asked} times, at most {most}"] if asked > most else []


def unless(holds: bool, fault: str) -> Faults:
    """Return a fault, unless all is well."""
    return [] if holds else [fault]


# Runs in which something is otherwise --------------------------------------------------------------


async def in_prose(server: StandIn, council: Council) -> Cell:
    message = await council.run({"structured": False})
    forms = forms_of_reviews(server.taken)
    asked = unless(forms == {"text"}, f"asked for {forms}")
    return YES, [*asked, *uncounted(Seen(council, message, (), (), (), None))]


async def with_wrong_key(server: StandIn, council: Council) -> Cell:
    if server.original.keyless:
        return None
    return YES, [*await refused(council, "key"), *too_many(server, MEMBERS)]


async def with_unknown_model(server: StandIn, council: Council) -> Cell:
    """Run with one model that isn't there: the others answer, and it is asked once."""
    if server.original.unknown_model is None:
        return ANY_NAME, []
    unknown = f"{council.models[0]}-typo"
    message = await council.run(models=(unknown, *council.models[1:]))
    causes = {failure.member: failure.failure.cause for failure in message.failures}
    asked = sum(exchange.model == unknown for exchange in server.history)
    asked -= sum(refusal.request["model"] == unknown for refusal in server.refusals)
    return YES, [
        *unless(causes == {unknown: "not_found"}, f"failures: {causes}"),
        *unless(len(message.stage1) == MEMBERS - 1, f"{len(message.stage1)} answers"),
        *unless(asked == 1, f"asked {asked} times"),
    ]


async def without_credit(server: StandIn, council: Council) -> Cell:
    if "no credit" not in server.original.troubles:
        return None
    server.suffer("no credit")
    cause = server.original.credit_cause
    return CREDIT_SHOWN[cause], [*await refused(council, cause), *too_many(server, 2 * MEMBERS)]


async def at_its_limit(server: StandIn, council: Council, settings: Json) -> Cell:
    """Ask the same models once more, and have a limit reached where the server has one."""
    if "rate limit" not in server.original.troubles:
        await council.run(settings)
        return None
    waited = len(council.rest.waits)
    server.suffer("rate limit", times=2)
    message = await council.run(settings)
    causes = {failure.member: failure.failure.cause for failure in message.failures}
    waits = council.rest.waits[waited:]
    return YES, [
        *unless(not causes, f"failures: {causes}"),
        *unless(len(waits) == 2, f"waited {waits}"),
    ]


RUNS: tuple[tuple[str, str, Callable[[StandIn, Council], Awaitable[Cell]]], ...] = (
    ("ballots_in_prose", KEY, in_prose),
    ("wrong_key", "sk-wrong", with_wrong_key),
    ("unknown_model", KEY, with_unknown_model),
    ("no_credit", KEY, without_credit),
)
"""The cells that need a run of their own, and the key that it has."""


@asynccontextmanager
async def opened(name: str, key: str, *, is_named: bool) -> AsyncGenerator[tuple[StandIn, Council]]:
    """Yield a stand-in and its council, which is given its dialect (`is_named`) or takes it for any server."""
    async with StandIn(name) as server:
        original = server.original
        dialect = original.dialect if is_named else None
        given = None if original.keyless else key
        async with council_at(server.base_url, original.models, key=given, dialect=dialect) as council:
            yield server, council


async def filled_row(name: str, *, is_named: bool) -> Row:
    row = Row(ORIGINALS[name].title)
    async with opened(name, KEY, is_named=is_named) as (server, council):
        try:
            await _with_everything(row, server, council, is_named=is_named)
        except RunError as error:
            row.show("answers", YES, [said(error)])
    for cell, key, check in RUNS:
        async with opened(name, key, is_named=is_named) as (server, council):
            try:
                found = await check(server, council)
            except RunError as error:
                found = YES, [said(error)]
            if found is not None:
                row.show(cell, *found)
    return row


async def _with_everything(row: Row, server: StandIn, council: Council, *, is_named: bool) -> None:
    original = server.original
    # No dialect can know every model that takes no temperature.
    settings: Json = {"max_tokens": MAX_TOKENS}
    settings |= {} if is_named else {"temperature": TEMPERATURE}
    message = await council.run(settings)
    cost = COST * len(server.counted) if original.states_cost else 0.0
    seen = Seen(council, message, server.history, server.taken, server.measured, cost)
    thinks = any(map(original.thinks_about, server.taken))
    for cell, shown, faults in CHECKS if thinks else CHECKS[:-1]:
        row.show(cell, shown(seen), faults(seen))
    lessons = Counter(str(refusal.request["model"]) for refusal in server.refusals)
    row.learning = max(lessons.values(), default=0)
    learned = len(server.refusals)
    most = original.unforeseen if is_named else MOST_LESSONS
    if row.learning > most:
        texts = [refusal.said for refusal in server.refusals]
        row.wrong["learning"] = f"{row.learning} requests, at most {most}: {texts}"
    if (found := await at_its_limit(server, council, settings)) is not None:
        row.show("rate_limit", *found)
    if again := len(server.refusals) - learned:
        row.wrong["learning"] = f"{again} more requests in the second run"
