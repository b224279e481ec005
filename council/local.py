"""Model servers on this machine: found at the ports that they use unless told otherwise.

They are only asked for their list of models (`GET /v1/models`). Nothing is asked of a model that nobody
has put into the configuration.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Never

from council.calls import Call
from council.errors import ModelError
from council.models.client import ModelClient
from council.profile import Member, Profile

PLACES: Mapping[str, int] = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080}
SECONDS = 1.0
"""How long a server may take to list its models; where none is, the answer comes at once."""
MOST_MODELS = 4
_ID = re.compile(r"[\w./:@+-]{1,120}", re.ASCII)


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server on this machine: what it usually is, its base URL, and some of its models."""

    name: str
    endpoint: str
    models: tuple[str, ...]

    def council(self) -> Profile | None:
        """Return a council of its models; `None` where there is only one, which has no peers."""
        if len(self.models) == 1:
            return None
        members = tuple(Member(model=model, endpoint=self.endpoint) for model in self.models)
        return Profile(members=members, chairman=members[0])


async def find_servers(
    places: Mapping[str, int] = PLACES, seconds: float = SECONDS
) -> list[LocalServer]:
    """Return the servers that list models at these ports of 127.0.0.1, all asked at once."""
    async with ModelClient(_nobody) as client:
        looks = (_look(client, name, port, seconds) for name, port in places.items())
        return [found for found in await asyncio.gather(*looks) if found]


async def _look(client: ModelClient, name: str, port: int, seconds: float) -> LocalServer | None:
    endpoint = f"http://127.0.0.1:{port}/v1"
    try:
        async with asyncio.timeout(seconds):
            listed = await client.models(Member(model="any", endpoint=endpoint))
    except (TimeoutError, ModelError):
        return None
    ids = (str(model.get("id")) for model in listed)
    models = tuple(each for each in ids if _ID.fullmatch(each) and "embed" not in each.lower())
    return LocalServer(name, endpoint, models[:MOST_MODELS]) if models else None


def _nobody(call: Call) -> Never:
    raise AssertionError(f"{call.member.model} was asked for a list only")
