"""The collector that traces are sent to."""

import os
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import unquote

import aiohttp

from bot.checks.check import Check, Outcome, wrong
from bot.config.configuration import Configuration
from bot.service.runs.observing import can_trace

TRACES = "Traces"
BASE, WHOLE = "otel_exporter_otlp_endpoint", "otel_exporter_otlp_traces_endpoint"
SECONDS = 5.0


def telemetry_checks(configuration: Configuration) -> list[Check]:
    """Return the check of the collector, if one is configured."""
    given = configuration.traces
    return [] if given is None else [Check(TRACES, lambda: _collector(given))]


async def _collector(given: Mapping[str, str]) -> Outcome:
    """Send the collector a request without any trace."""
    name = WHOLE if given.get(WHOLE) else BASE
    if not can_trace():
        return wrong(
            name.upper(),
            "the extra otel isn't installed, so no traces are sent",
            "Run: uv sync --frozen --inexact --extra otel; or unset it",
            "warning",
        )
    address = given[name] if name == WHOLE else f"{given[name].rstrip('/')}/v1/traces"
    headers_name, headers = _headers(given)
    try:
        status = await _status(address, headers, given.get("otel_exporter_otlp_certificate"))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number and number > 0 else "no answer"
        return _no_collector(name, reason)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return wrong(
            headers_name.upper(),
            "the collector refuses it",
            "Set it to the headers that the collector asks for: name=value,name=value",
            "warning",
        )
    if status >= HTTPStatus.MULTIPLE_CHOICES:
        return _no_collector(name, str(status))
    return Outcome("the collector takes them")


def _no_collector(name: str, reason: str) -> Outcome:
    return wrong(
        name.upper(),
        f"no collector takes traces there ({reason})",
        "Set the address of its receiver for OTLP over HTTP, usually on port 4318",
        "warning",
    )


def _headers(given: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    name = "otel_exporter_otlp_headers"
    if given.get("otel_exporter_otlp_traces_headers"):
        name = "otel_exporter_otlp_traces_headers"
    pairs = (each.partition("=") for each in given.get(name, "").split(",") if each.strip())
    return name, {key.strip(): unquote(value.strip()) for key, _, value in pairs}


async def _status(address: str, headers: Mapping[str, str], certificate: str | None) -> int:
    context = ssl.create_default_context(cafile=certificate) if certificate else True
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    async with (
        aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
        session.post(
            address,
            data=b"",  # a message of this format without any field
            headers={**headers, "Content-Type": "application/x-protobuf"},
            ssl=context,
            allow_redirects=False,
        ) as answer,
    ):
        return answer.status
