"""One attempt at a call, asked otherwise until the server takes it.

A repeated request isn't a retry: the server has refused how it was asked, at once and for nothing.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from council.calls import Call
from council.errors import Failure, ModelError
from council.models.dialects import format_part
from council.models.refusals import (
    RefusedCall,
    is_out_of_form,
    names_nothing,
    refused_part,
    smaller_limit,
)
from council.models.reply import Completion
from council.models.request import body_of_call
from council.models.servers import VERSION, Server
from council.text.json_objects import JsonObject

MOST_REFUSALS = 5
"""Refused requests that may be spent on learning what one model's server takes."""

Send = Callable[[Call, JsonObject], Awaitable[Completion]]
"""Sends one request and reads its reply; raises `ModelError`, a server's own as `RefusedCall`."""


async def adapting(server: Server, call: Call, send: Send) -> Completion:
    """Make one attempt, and repeat it otherwise where the server refuses how it was asked.

    Raises `ModelError`: `format_refused` where the server takes no JSON schema in any form.
    """
    model = call.member.model
    without_version: RefusedCall | None = None
    has_stepped = False
    while True:
        known = server.prefix, server.refused(model)
        if _has_no_format(server, call):
            raise ModelError(Failure(cause="format_refused", attempts=0))
        body = body_of_call(call, server.dialect, known[1])
        try:
            return await send(call, body)
        except ModelError as refused:
            # A reply that its server can't read in the form asked for is wanted without one.
            if "response_format" in body and is_out_of_form(refused.failure):
                raise _without_format(refused) from refused
            if not isinstance(refused, RefusedCall):
                raise
            if without_version and refused.failure.cause == "no_api":
                server.prefix = ""  # with it, there is no API either
                raise without_version from refused
            if server.may_lack_version(refused.failure):
                without_version, server.prefix = refused, VERSION
                server.requests[model] += 1
                continue
            less = smaller_limit(refused.failure, refused.error, call.max_tokens)
            if less is not None:
                call = replace(call, max_tokens=less)
            elif (
                server.prefix,
                server.refused(model),
            ) == known:  # else another call's refusal has taught something
                has_stepped = _learn(server, call, body, refused, has_stepped=has_stepped)
                if _has_no_format(server, call):
                    raise _without_format(refused) from refused


def _learn(
    server: Server, call: Call, body: JsonObject, refused: RefusedCall, *, has_stepped: bool
) -> bool:
    """Take in what a refusal says of its request; return whether the format was given up on a guess.

    One that names nothing is about the format, if it is about any part: the next one is tried, once.
    Raises the refusal where nothing is left to be learned of it.
    """
    model = call.member.model
    left = [format_part(each) for each in server.dialect.ladder(model, server.refused(model))]
    if server.requests[model] >= MOST_REFUSALS:
        raise refused
    if named := refused_part(refused.error, refused.failure, body):
        part, is_everywhere = named
        server.learn(model, left[0] if part == "response_format" else part, everywhere=is_everywhere)
        return has_stepped
    is_hosted = bool(server.dialect.hosts)
    if "response_format" not in body or not names_nothing(refused.failure, is_hosted=is_hosted):
        raise refused
    server.learn(model, *(left if has_stepped else left[:1]))
    return True


def _has_no_format(server: Server, call: Call) -> bool:
    """Return whether a call wants JSON by a schema and every way to ask for it was refused."""
    model = call.member.model
    wants = call.schema is not None and bool(call.member.structured)
    return wants and not server.dialect.ladder(model, server.refused(model))


def _without_format(error: ModelError) -> ModelError:
    return ModelError(error.failure.model_copy(update={"cause": "format_refused"}))
