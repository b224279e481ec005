"""The session of one run: every model call passes through it, in one way."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

import structlog
from pydantic import BaseModel

from council import calls, events
from council.accounts import Accounts
from council.brief import Brief
from council.calls import Ask, AskAgain, Call, Meter, Outcome, Prompt, Read, Reply, Steps
from council.document.conversation import FailedCall, RunUsage
from council.errors import CouncilError, Failure, ModelError
from council.events import Emit, Stage, StageResult
from council.notes import AnswerStream
from council.profile import Member, Profile
from council.prompts.builtin import prompts_of
from council.tasks import Cancellation, Stop, offload
from council.text.fence import stripped, unmarked
from council.text.json_objects import JsonObject
from council.usage import Usage, total

log = structlog.stdlib.get_logger()

R = TypeVar("R", bound=StageResult)
T = TypeVar("T", bound=BaseModel | str)

UNREADABLE = Failure(cause="malformed")
"""What a reply is that no reader foresaw."""

WRITE_SECONDS = 5.0
"""How long a process that ends waits for a reply to be recorded."""
FORM_TOKENS = 480
"""Room for what the demonstration's grammar ends by itself: a ballot, a consultation."""


class StageCancellation(Cancellation):
    """A stage's cancellation in one round: its wall clock, and the stragglers' grace after quorum."""

    def __init__(self, stage: Stage, number: int, profile: Profile, within: Cancellation) -> None:
        super().__init__(within)
        self.stage: Stage = stage
        self.round = number
        self._deadline: float | None = profile.stage_deadline
        self._grace = profile.straggler_grace
        self._missing = profile.quorum

    def begin(self) -> None:
        if self._deadline is not None:
            self.expire("stage_deadline", self._deadline)
            self._deadline = None

    def succeed(self) -> None:
        self._missing -= 1
        if self._missing == 0 and self._grace is not None:
            self.expire("straggler", self._grace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a member is asked; `role` distinguishes two calls of one member in a stage.

    An endpoint that refuses the `schema`, or has nothing to say by it, is asked again without it, by the
    `plain` prompt if there is one.
    """

    prompt: Prompt
    schema: JsonObject | None = None
    plain: Prompt | None = None
    repeat_penalty: float | None = None
    role: str = ""


class Session:
    """Calls members, records their replies, tells the observers, and adds up usage."""

    def __init__(
        self,
        brief: Brief,
        *,
        ask: Ask,
        steps: Steps,
        emit: Emit,
        now: Callable[[], datetime],
        stop: Stop,
    ) -> None:
        self.brief = brief
        self.prompts = prompts_of(brief)
        self.emit = emit
        self.now = now
        self.stop = stop
        self.failures: list[FailedCall] = []
        self.saw: dict[str, None] = {}
        """The names of those who were shown the question's pictures, in the order of their answers."""
        self.was_stopped = False
        """Whether a press of Stop kept a member from answering."""
        self._ask = ask
        self._steps = steps
        self._retries, self._last_retries = calls.run_retries(calls.MAX_RETRIES)
        self._usage: dict[str, Usage] = {}
        self._latencies: dict[str, int] = {}
        self.accounts = Accounts()

    @contextmanager
    def open(self, stage: Stage, number: int = 1) -> Generator[StageCancellation]:
        within = self.stop.everything if stage == "stage3" else self.stop.members
        cancellation = StageCancellation(stage, number, self.brief.profile, within)
        try:
            yield cancellation
        finally:
            cancellation.close()

    async def ask(
        self, stage: StageCancellation, member: Member, request: Request, read: Read[R]
    ) -> R | Failure:
        """Call a member in a stage and return the result of `read` for its reply, or the failure.

        The observers learn of it either way. A call that was cut off before it began is neither made nor
        recorded, and announced only if its account was refused.
        """
        answer = None
        if stage.stage == "stage3":  # only the final answer is shown while it is written
            answer = AnswerStream(self.brief.boundary, self.brief.notes_mark)
        call = self._call(stage, member, request, answer)
        calls = Cancellation(stage, self.accounts.calls(member))
        # In a replay, what came before the cancellation counts as it did then.
        if self._steps.recall(call) is None:
            if calls.cause is not None:
                why = Failure(cause=calls.cause, attempts=0)
                if why.is_account:
                    return self._failed(stage, member, why)
                self.was_stopped |= why.cause == "stopped"
                return why
            stage.begin()
            self.emit(events.MemberStarted(stage.stage, member.name, stage.round))
        call, outcome = await self._step(call, calls, request)
        if isinstance(outcome, Reply):
            if answer and (rest := answer.rest()):
                self.emit(events.AnswerStreamed(member.name, rest))
            result, reply = await self._read(call, outcome, read, calls)
            if not isinstance(result, Failure):
                if call.pictures and not outcome.unseen:
                    self.saw[member.name] = None
                took, used = reply.latency_ms, reply.usage
                self.emit(
                    events.MemberAnswered(stage.stage, member.name, result, took, used, stage.round)
                )
                stage.succeed()
                return result
            outcome = result
        self.accounts.note(member, outcome)
        return self._failed(stage, member, self.accounts.seen_whole(member, outcome))

    def _call(
        self, stage: StageCancellation, member: Member, request: Request, answer: AnswerStream | None
    ) -> Call:
        profile = self.brief.profile

        def retry(failure: Failure, wait: float) -> None:
            if answer:
                answer.restart()
            self.emit(events.MemberRetried(stage.stage, member.name, failure, wait, stage.round))

        def stream(text: str) -> None:
            if answer and (shown := answer.feed(text)):
                self.emit(events.AnswerStreamed(member.name, shown))

        def withdraw() -> None:
            if answer:
                answer.restart()
                self.emit(events.AnswerWithdrawn(member.name))

        is_form = request.schema and profile.demonstration
        role = f":{request.role}" if request.role else ""
        return Call(
            step=f"{stage.stage}.{stage.round}:{member.name}{role}",
            member=member,
            prompt=request.prompt,
            deadline=profile.call_deadline,
            idle_timeout=profile.idle_timeout,
            profile=profile.name,
            schema=request.schema,
            pictures=self.brief.pictures if member.vision else (),
            web=profile.web and stage.stage in ("stage1", "stage2_5"),
            temperature=profile.temperature if member.temperature is None else member.temperature,
            max_tokens=FORM_TOKENS if is_form else member.max_tokens or profile.max_tokens,
            repeat_penalty=request.repeat_penalty,
            retries=self._last_retries if answer else self._retries,
            on_retry=retry,
            on_text=stream if answer else None,
            on_withdrawn=withdraw if answer else None,
        )

    def _failed(self, cancellation: StageCancellation, member: Member, why: Failure) -> Failure:
        stage, number = cancellation.stage, cancellation.round
        self.was_stopped |= why.cause == "stopped"
        self.failures.append(FailedCall(stage=stage, member=member.name, failure=why, round=number))
        self.emit(events.MemberFailed(stage, member.name, why, number))
        return why

    async def _read(
        self, call: Call, reply: Reply, read: Read[T], cancellation: Cancellation
    ) -> tuple[T | Failure, Reply]:
        """Return what a reply is read as, with the reply; what a second one took counts, too."""
        try:
            result = await read(reply)
            if not isinstance(result, AskAgain):
                return result, reply
            if call.on_text and call.on_retry:
                call.on_retry(Failure(cause="malformed"), 0.0)  # what has streamed is void
            _, second = await self._step(self._again(call, reply, result), cancellation)
            if second.usage is not None:
                reply = reply.model_copy(update={"usage": total((reply.usage, second.usage))})
            if isinstance(second, Reply):
                both = {"usage": reply.usage, "latency_ms": reply.latency_ms + second.latency_ms}
                reply = second.model_copy(update=both)
                better = await (result.read or read)(reply)
                if not isinstance(better, AskAgain):
                    return better, reply
        except CouncilError:
            raise
        except Exception:  # a reader that crashes costs a voice
            log.exception("reply_not_read", step=call.step)
            return UNREADABLE, reply
        return result.otherwise, reply

    def _again(self, call: Call, reply: Reply, asked: AskAgain[T | Failure]) -> Call:
        boundary, said = self.brief.boundary, reply.text
        return replace(
            call,
            step=f"{call.step}:again",
            prompt=lambda: (
                *call.messages,
                {"role": "assistant", "content": unmarked(boundary, said)},
                {"role": "user", "content": unmarked(boundary, asked.words)},
            ),
            schema=call.schema and (asked.schema or call.schema),
            max_tokens=asked.max_tokens or call.max_tokens,
            meter=Meter(),
        )

    async def ask_beside(
        self, step: str, member: Member, request: Request, read: Read[T], cancellation: Cancellation
    ) -> T | Failure:
        """Make a call that belongs to no stage, such as the title's; return what its reply is read as.

        It is recorded and counted like any other, and its failure doesn't affect the run.
        """
        call = Call(
            step=step,
            member=member,
            prompt=request.prompt,
            deadline=self.brief.profile.call_deadline,
            idle_timeout=self.brief.profile.idle_timeout,
            profile=self.brief.profile.name,
            schema=request.schema,
            temperature=member.temperature,
            max_tokens=member.max_tokens,
            retries=self._retries,
        )
        calls = Cancellation(cancellation, self.accounts.calls(member))
        call, outcome = await self._step(call, calls, request)
        if isinstance(outcome, Failure):
            return outcome
        result, _ = await self._read(call, outcome, read, calls)
        return result

    def skips(self, stage: str, number: int = 1) -> bool:
        """Return whether Stop was pressed before any call of this stage had ended in a round."""
        skipped = self.stop.pressed and not self._steps.has_begun(f"{stage}.{number}")
        self.was_stopped |= skipped
        return skipped

    def can_ask(self, member: Member) -> bool:
        return self.accounts.calls(member).cause is None

    def tokens(self, *stages: str) -> int:
        return sum(usage.tokens for key, usage in self._usage.items() if key.partition(":")[0] in stages)

    def usage(self) -> RunUsage:
        stages: dict[str, list[Usage]] = {}
        for key, usage in self._usage.items():
            stages.setdefault(key.partition(".")[0], []).append(usage)
        return RunUsage(
            run=total(self._usage.values()),
            stages={stage: total(usages) for stage, usages in stages.items()},
            calls=dict(self._usage),
            latencies=dict(self._latencies),
        )

    async def _step(
        self, call: Call, cancellation: Cancellation, request: Request | None = None
    ) -> tuple[Call, Outcome]:
        """Return a call's outcome, recorded or made now, and the call that it is of.

        Where the schema of its `request` is refused, that is the call that was made without.
        """
        outcome = self._steps.recall(call)
        if outcome is None:
            try:
                outcome = await cancellation.guard(self._ask_and_record(call, cancellation))
            except ModelError as cut_off:
                outcome = cut_off.failure.model_copy(update={"usage": call.meter.usage})
                await asyncio.shield(self._steps.record(call, outcome))
        if outcome.usage is not None:
            self._usage[call.step] = outcome.usage
            self.emit(events.CallSpent(call.step, outcome.usage))
        if isinstance(outcome, Reply):
            self._latencies[call.step] = outcome.latency_ms
        is_form = call.schema is not None and bool(call.member.structured)
        if request is None or not is_form or not isinstance(outcome, Failure):
            return call, outcome
        # An endpoint may take a schema in no form, or say nothing because of it.
        if outcome.cause not in ("format_refused", "empty"):
            return call, outcome
        # The refusal is on record, so that a replay asks the same.
        prompt = request.plain or request.prompt
        call = replace(call, step=f"{call.step}:plain", prompt=prompt, schema=None, meter=Meter())
        return await self._step(call, cancellation)

    async def _ask_and_record(self, call: Call, cancellation: Cancellation) -> Outcome:
        try:
            outcome: Outcome = await self._ask(call)
        except ModelError as error:
            outcome = why = error.failure
            log.info(
                "call_failed",
                step=call.step,
                model=call.member.model,
                cause=why.cause,
                status=why.status,
                attempts=why.attempts,
                # Not what a server sent: it may quote the question.
                connection=why.detail if why.reason.quotes == "log" else None,
            )
        except Exception:
            log.exception("call_crashed", step=call.step)
            outcome = UNREADABLE
        # A call that has come back is recorded and counts, even if it is ended at this very moment.
        writing = asyncio.ensure_future(self._record(call, outcome))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            # Only a process that ends can't wait for a full disk: its next start asks again.
            seconds = WRITE_SECONDS if cancellation.cause is None else None
            try:
                await asyncio.wait({writing}, timeout=seconds)
            finally:
                if not writing.done():
                    writing.cancel()
            if not writing.done() or writing.cancelled() or writing.exception():
                raise  # nobody waits for the error
            return writing.result()

    async def _record(self, call: Call, outcome: Outcome) -> Outcome:
        """Record what a call came to, and return it without the run's boundary.

        Models copy the boundary from their prompts. Everything that is used, stored or shown of a reply
        has passed through here.
        """
        boundary, mark = self.brief.boundary, self.brief.notes_mark
        if isinstance(outcome, Failure):
            detail = stripped(boundary, outcome.detail)
            detail = stripped(mark, detail) if mark else detail
            outcome = outcome.model_copy(update={"detail": detail})
        else:
            text = await offload(len(outcome.text) // 16, stripped, boundary, outcome.text)
            if not text.strip():
                outcome = Failure(cause="empty", usage=outcome.usage)
            elif text != outcome.text:
                outcome = outcome.model_copy(update={"text": text})
        await self._steps.record(call, outcome)
        return outcome
