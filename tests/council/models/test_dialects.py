"""What each server takes: which row an address gets, and what a request to it looks like, as `sent.toml` says."""

import tomllib
from pathlib import Path
from typing import Any, get_args

import httpx

from council.models.servers import SERVERS, known_server
from council.profile import DialectName
from tests.council.models.scene import call, failure, opened
from tests.council.models.test_adaptation import TOLD, sent_format
from tests.model_server import ModelServer, Turn
from tests.pairs import rows

Row = dict[str, Any]
ROWS: dict[str, list[Row]] = tomllib.loads(
    Path(__file__).with_name("sent.toml").read_text(encoding="utf-8")
)
BARE = {"messages": [*TOLD], "stream": True, "stream_options": {"include_usage": True}}


def test_every_dialect_has_a_row() -> None:
    """The configuration knows no other names."""
    assert SERVERS.keys() == {*get_args(DialectName)}


@rows("row", ROWS["hosts"], ids=lambda row: row["address"])
def test_an_address_gets_the_dialect_of_its_host(row: Row) -> None:
    """Unless another is named: a proxy speaks what stands behind it."""
    assert known_server(httpx.URL(row["address"]), row.get("named")).name == row["dialect"]


@rows("row", ROWS["sent"], ids=lambda row: f"{row['dialect']} {row.get('settings')}")
async def test_a_request_is_what_its_server_takes(row: Row) -> None:
    """What somebody set, in the server's words and places, and nothing else."""
    model = row.get("model", "m")
    bare = {"model": model, **BARE}
    async with ModelServer() as server, opened(server, dialect=row["dialect"]) as client:
        await client.ask(call(model, *TOLD, **row.get("settings", {})))
    (request,) = (exchange.request for exchange in server.history)
    found = {name: value for name, value in request.items() if bare.get(name) != value}
    assert found == row.get("has", {})
    assert [name for name in bare if name not in request] == row.get("lacks", [])


@rows("name", sorted(SERVERS.keys() - {"openrouter"}))
async def test_only_openrouter_gets_its_own_fields(name: str) -> None:
    """Other servers refuse what they don't know."""
    async with ModelServer() as server, opened(server, dialect=name) as client:
        await client.ask(call("m", *TOLD, fallbacks=["n"], web=True))
    assert server.history[0].request.keys() <= {"model", *BARE}


@rows("row", ROWS["forms"], ids=lambda row: f"{row['dialect']} {row.get('model')}")
async def test_json_is_asked_for_in_forms_a_server_takes(row: Row) -> None:
    """The best first; where all are refused, the failure says so."""
    refused = Turn(status=400, body={"error": {"message": "response_format is not supported"}})
    async with ModelServer() as server, opened(server, dialect=row["dialect"]) as client:
        server.always("*", refused)
        why = await failure(
            client, call(row.get("model", "m"), structured=True, schema={"type": "object"})
        )
    assert why.cause == "format_refused"
    formats: list[Any] = [sent_format(exchange) for exchange in server.history]
    assert ["strict" if "strict" in str(each) else each["type"] for each in formats] == row["forms"]
