"""Strategies: each is an instruction to the chairman, stored with the answer."""

from typing import get_args

from council.profile import Strategy
from council.prompts.chair import STRATEGIES
from tests.council.scripted import ScriptedCouncil, profile
from tests.pairs import rows

CHAIR = "stage3.1:chair/man:chairman"


def test_every_strategy_has_an_instruction_of_its_own() -> None:
    """No two are the same."""
    assert [*STRATEGIES] == [*get_args(Strategy)]
    assert len({strategy.instruction for strategy in STRATEGIES.values()}) == len(STRATEGIES)


@rows("strategy", get_args(Strategy))
async def test_the_chairman_is_told_the_strategy_and_the_document_keeps_it(strategy: Strategy) -> None:
    """Only that strategy's instruction is in the prompt."""
    council = ScriptedCouncil()
    message = (await council.run(profile(strategy=strategy))).message
    assert message.strategy == strategy
    prompt = council.prompt(CHAIR)
    told = [name for name, each in STRATEGIES.items() if each.instruction in prompt]
    assert told == [strategy]


async def test_security_first_shows_the_chairman_the_reviews() -> None:
    """Otherwise it couldn't know what a reviewer called insecure."""
    council = ScriptedCouncil()
    await council.run(profile(strategy="security_first"))
    assert council.prompt(CHAIR).count("\nReview by ") == 4
    plain = ScriptedCouncil()
    await plain.run()
    assert "\nReview by " not in plain.prompt(CHAIR)
