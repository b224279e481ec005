"""What `council doctor --live` says of servers it had to learn about."""

import pytest
from syrupy.assertion import SnapshotAssertion

from bot.checks.models import LIVE, what_was_learned
from council.models.client import ModelEndpoint
from council.models.servers import format_part
from tests.bot.doctor.scene import Scene
from tests.model_servers.stand_in import KEY, ORIGINALS, StandIn

SEAT = '{{model = "{model}", endpoint = "{address}", api_key_env = "OWN_KEY"{more}}}'


async def asked_live(scene: Scene, name: str, more: str = "") -> list[str]:
    """Ask a council of a server's first two models, and return what is said of them."""
    async with StandIn(name) as server:
        first, second = (
            SEAT.format(model=model, address=server.base_url, more=more)
            for model in server.original.models[:2]
        )
        scene.env = {"OWN_KEY": KEY}
        scene.write(
            "council.toml",
            f"[profiles.default]\nmembers = [{first}, {second}]\nchairman = {first}\nmax_tokens = 64\n",
        )
        scene.live = True
        examination = await scene.diagnose()
        assert examination.is_well, examination.text()
        [live] = [one for one in examination.checked if one.name == LIVE]
        lines = live.lines()
        assert lines[1:] == [f"    {detail}." for detail in live.outcome.details]
        return [line.strip().replace(server.base_url, "URL") for line in lines[1:]]


REFUSED_ONCE, REFUSED_TWICE, REFUSED_THRICE = (
    f"{number} refused before that was known" for number in ("1 request", "2 requests", "3 requests")
)
LEARNED: list[tuple[str, str, str]] = [
    ("openai", "", f"its server wants max_completion_tokens instead of max_tokens; {REFUSED_ONCE}."),
    ("openai", ', dialect = "openai"', ""),
    (
        "openai-unverified",
        ", temperature = 0.3",
        (
            "its server wants max_completion_tokens instead of max_tokens, no temperature and JSON not streamed; "
            f"{REFUSED_THRICE}."
        ),
    ),
    (
        "vllm-2024",
        ', dialect = "vllm"',
        (
            "its server wants instructions in the user's message and no JSON schema; reviewers' votes come as JSON "
            f"without a schema; {REFUSED_TWICE}."
        ),
    ),
    ("gemma", ', dialect = "gemini"', "reviewers' votes come in prose."),
]


@pytest.mark.parametrize(("name", "more", "said"), LEARNED)
async def test_it_is_said_what_a_server_wants_otherwise(
    scene: Scene, name: str, more: str, said: str
) -> None:
    """A line for each member, in an admin's words; none where it takes what all take."""
    lines = await asked_live(scene, name, more)
    assert lines == [f"{model} at URL: {said}" for model in ORIGINALS[name].models[:2] if said]


async def test_a_refusal_that_concerns_all_models_is_counted_once(scene: Scene) -> None:
    """Mistral's, of a field that it doesn't know."""
    first, second = await asked_live(scene, "mistral")
    wanted = "its server wants no stream_options"
    assert {line.partition(" at URL: ")[2] for line in (first, second)} == {
        f"{wanted}; {REFUSED_ONCE}.",
        f"{wanted}.",
    }


def test_everything_that_can_be_learned_is_told(snapshot: SnapshotAssertion) -> None:
    """In a few words each."""
    for structured, refused in (
        (True, ("stream", format_part("strict"))),
        (False, ("max_tokens", "max_completion_tokens")),
    ):
        asked = ModelEndpoint("http://127.0.0.1:9", "", None, 1)
        asked.prefix = "/v1"
        asked.thinks_unmarked.add("m")
        asked.learn("m", *refused)
        assert what_was_learned(asked, "m", structured=structured) == snapshot
