"""What `council doctor --live` says of servers it had to learn about."""

import pytest

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


LEARNED: list[tuple[str, str, str]] = [
    (
        "openai",
        "",
        (
            "generic dialect; ballots by JSON schema; learned in 1 refused request:"
            " max_completion_tokens instead of max_tokens."
        ),
    ),
    (
        "openai",
        ', dialect = "openai"',
        "openai dialect; ballots by JSON schema; nothing had to be learned.",
    ),
    (
        "openai-unverified",
        ", temperature = 0.3",
        (
            "generic dialect; ballots by JSON schema; learned in 3 refused requests: max_completion_tokens"
            " instead of max_tokens, no temperature, JSON not streamed."
        ),
    ),
    (
        "vllm-2024",
        ', dialect = "vllm"',
        (
            "vllm dialect; ballots as JSON; learned in 2 refused requests: instructions in the user's message,"
            " no JSON schema."
        ),
    ),
    ("gemma", ', dialect = "gemini"', "gemini dialect; ballots in prose; nothing had to be learned."),
]


@pytest.mark.parametrize(("name", "more", "said"), LEARNED)
async def test_each_member_is_told_with_what_was_learned(
    scene: Scene, name: str, more: str, said: str
) -> None:
    """A line for each, also where nothing was to be learned."""
    lines = await asked_live(scene, name, more)
    assert lines == [f"{model} at URL: {said}" for model in ORIGINALS[name].models[:2]]


async def test_a_refusal_that_concerns_all_models_is_counted_once(scene: Scene) -> None:
    """Mistral's, of a field that it doesn't know."""
    first, second = await asked_live(scene, "mistral")
    learned = {"learned in 1 refused request: no stream_options.", "learned: no stream_options."}
    assert {line.partition("; ballots by JSON schema; ")[2] for line in (first, second)} == learned


@pytest.mark.parametrize(
    ("structured", "refused", "said"),
    [
        (
            True,
            ("stream", format_part("strict")),
            (
                "ballots by JSON schema; learned in 1 refused request: /v1 added to the address, replies not"
                " streamed, no strict JSON schema, thoughts end at a tag that nothing opened"
            ),
        ),
        (
            False,
            ("max_tokens", "max_completion_tokens"),
            (
                "ballots in prose; learned in 1 refused request: /v1 added to the address, no max_tokens, no"
                " max_completion_tokens, thoughts end at a tag that nothing opened"
            ),
        ),
    ],
)
def test_everything_that_can_be_learned_is_told(
    *, structured: bool, refused: tuple[str, ...], said: str
) -> None:
    """In a few words each."""
    asked = ModelEndpoint("http://127.0.0.1:9", "", None, 1)
    asked.prefix = "/v1"
    asked.thinks_unmarked.add("m")
    asked.learn("m", *refused)
    assert what_was_learned(asked, "m", structured=structured) == f"generic dialect; {said}"
