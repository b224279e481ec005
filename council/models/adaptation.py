"""One attempt at a call, asked otherwise until the server takes it.

A repeated request isn't a retry: the server has refused how it was asked, at once and for nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from council.calls import Call
from council.errors import Failure, ModelError
from council.models.learning import (
    MOST_REFUSALS,
    Lesson,
    Traits,
    named_change,
    smaller_limit,
    steps_left,
    trials,
)
from council.models.refusals import RefusedCall, is_out_of_form
from council.models.reply import Completion
from council.models.request import body_of_call
from council.models.servers import VERSION, Server
from council.text.json_objects import JsonObject


class Send(Protocol):
    """Sends one request and reads its reply; `on_accepted` hears that the server has taken it."""

    async def __call__(
        self, call: Call, body: JsonObject, on_accepted: Callable[[], None] | None = None
    ) -> Completion:
        """Return the completion. Raises `ModelError`, of which `RefusedCall` is the server's own."""
        ...


async def adapting(server: Server, call: Call, send: Send) -> Completion:
    """Make one attempt, and repeat it otherwise where the server refuses how it was asked.

    Raises `ModelError`: `format_refused` where the server takes no JSON schema in any form.
    """
    model = call.member.model
    without_version: RefusedCall | None = None
    while True:
        traits = server.traits(model)
        if _has_no_format(server, call, traits):
            raise ModelError(Failure(cause="format_refused", attempts=0))
        body = body_of_call(call, server.dialect, traits)
        try:
            return await _sent(call, body, send)
        except RefusedCall as refused:
            if without_version and refused.failure.cause == "no_api":
                server.forget_prefix()
                raise without_version from refused
            if server.may_lack_version(refused.failure):
                without_version = refused
                server.learn(model, Lesson(Traits(prefix=VERSION), everywhere=True))
                continue
            if _has_learned(server, model, traits):
                continue  # from another call's refusal
            less = smaller_limit(refused.failure, refused.error, call.max_tokens)
            if less is not None:
                call = replace(call, max_tokens=less)
                continue
            if await _is_named(server, call, body, refused, traits):
                continue
            if not trials(refused.failure, refused.error, body, server.dialect, traits):
                raise  # nothing that is sent otherwise would help
            completion = await _on_trial(server, call, body, refused, traits, send)
            if completion is not None:
                return completion


async def _sent(call: Call, body: JsonObject, send: Send) -> Completion:
    """Send a request; a reply that its server can't read in the form asked for is wanted without one."""
    try:
        return await send(call, body)
    except ModelError as error:
        if "response_format" in body and is_out_of_form(error.failure):
            raise _without_format(error) from error
        raise


async def _is_named(
    server: Server, call: Call, body: JsonObject, refused: RefusedCall, traits: Traits
) -> bool:
    """Take in the change that a refusal asks for by name; return whether it named one.

    Raises the refusal where enough was spent on learning, and `format_refused` where no format is left.
    """
    model = call.member.model
    if traits.refusals >= MOST_REFUSALS:
        raise refused
    lesson = named_change(refused.error, refused.failure, body, server.dialect, traits)
    if lesson is None:
        return False
    server.learn(model, lesson)
    if _has_no_format(server, call, server.traits(model)):
        raise _without_format(refused) from refused
    return True


async def _on_trial(
    server: Server, call: Call, body: JsonObject, refused: RefusedCall, traits: Traits, send: Send
) -> Completion | None:
    """Try changes one at a time, of which the one that helps is kept.

    Returns `None` where another call has learned meanwhile. Raises the refusal if nothing helps.
    """
    model, spent = call.member.model, 1
    is_over = False

    def end() -> None:
        nonlocal is_over
        if not is_over:
            is_over = True
            server.trial.release()

    def accept(change: Traits) -> None:
        # Others needn't wait until the whole reply is there.
        server.learn(model, Lesson(change), refusals=spent)
        end()

    await server.trial.acquire()
    try:
        if _has_learned(server, model, traits):
            return None
        traits = server.traits(model)  # another call may have tried in vain
        for change in trials(refused.failure, refused.error, body, server.dialect, traits):
            tried = change.beside(traits)
            if traits.refusals + spent >= MOST_REFUSALS or _has_no_format(server, call, tried):
                continue
            changed = body_of_call(call, server.dialect, tried)
            try:
                completion = await send(call, changed, partial(accept, change))
            except RefusedCall as again:
                if is_over or again.failure.cause != refused.failure.cause:
                    raise
                spent += 1
                continue
            return completion
        if "response_format" in body:
            gone = len(server.dialect.ladder(model))
            server.learn(model, Lesson(Traits(format_steps=gone)), refusals=spent)
            raise _without_format(refused) from refused
        server.learn(model, Lesson(Traits(tried=True)), refusals=spent)
        raise refused
    finally:
        end()


def _has_learned(server: Server, model: str, traits: Traits) -> bool:
    """Return whether a request would look otherwise now than by these traits."""
    return server.traits(model).form != traits.form


def _has_no_format(server: Server, call: Call, traits: Traits) -> bool:
    """Return whether a call wants JSON by a schema and every way to ask for it was refused."""
    wants = call.schema is not None and bool(call.member.structured)
    return wants and not steps_left(server.dialect, traits, call.member.model)


def _without_format(error: ModelError) -> ModelError:
    return ModelError(error.failure.model_copy(update={"cause": "format_refused"}))
