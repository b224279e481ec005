"""The question in the pictures, and what its council says: written texts, so that pictures stay alike.

Everything around them is a real run. Which part a model plays is read from the prompt it was sent.
"""

import re
from collections.abc import Mapping
from typing import cast

from tests.model_server import Json

GPT = "openai/gpt-5"
CLAUDE = "anthropic/claude-sonnet-4.5"
GEMINI = "google/gemini-2.5-pro"
GROK = "x-ai/grok-4"
CHAIRMAN = "anthropic/claude-opus-4.1"
TITLE_MODEL = "openai/gpt-5-mini"
MEMBERS = (GPT, CLAUDE, GEMINI, GROK)

QUESTION = (
    "Should we shard the orders database now, or buy a bigger machine? "
    "Postgres, 1.8 TB, CPU at 70% at peak, growing 5% a month."
)
TITLE = "Shard the orders database or scale up"

ANSWERS: Mapping[str, str] = {
    GPT: """\
**Buy the bigger machine.** At 5% a month, 70% becomes 100% in about seven months. That is too \
short to shard safely and long enough to move to a larger server without haste.

1. Double the cores and the memory; peak load falls to about 35%.
2. Move reports to a read replica.
3. Decide about sharding when load is high again.""",
    CLAUDE: """\
**Buy the bigger machine, and look before you do.** Sharding can't be undone in a weekend; a server can.

- Take the ten costliest statements from `pg_stat_statements`. One missing index often explains \
20 points of CPU.
- Doubling the cores lasts about 18 months, until peak load is at 85%.
- Set the trigger for sharding today: **60% at peak on the new machine**.

I don't know your share of writes. If it is above half, replicas won't help and the 18 months are \
all you have.""",
    GEMINI: """\
**Shard now, by customer.** A bigger machine only postpones the work, and every month adds 5% to \
what has to be moved.

- Use `customer_id` as the key: almost every query has it.
- Start with four shards, which gives each a quarter of the load.
- Expect two months of work for three engineers.""",
    GROK: """\
**Neither yet.** Most of those 1.8 TB are orders that nobody reads any more.

1. Partition `orders` by month.
2. Move what is older than two years to cheap storage.
3. Look at CPU again afterwards; it should drop by half.""",
}

CORRECTIONS: Mapping[str, str] = {
    GPT: """\
**Buy the bigger machine, and write down now when you will shard.** At 5% a month, 70% becomes \
100% in about seven months: too short to shard safely, long enough to move without haste.

1. First fix the costliest statements; that may already win months.
2. Double the cores and the memory. Peak load falls to about 35% and is back at 60% after 11 months.
3. **Begin sharding at 60%.** From there, seven months are left until 85%.
4. Move reports to a read replica, if they are a fair part of the load.""",
    CLAUDE: """\
**Buy the bigger machine, and look before you do.** Sharding can't be undone in a weekend; a server can.

- Fix the ten costliest statements in `pg_stat_statements` first. I said that an index often wins \
20 points; that was a guess, so measure before you order hardware.
- Doubling the cores lasts about 18 months, until peak load is at 85%.
- Set the trigger for sharding today: **60% at peak**, about 11 months from now. That leaves seven \
months for the migration.
- Put `customer_id` into every key and query of new code, so that the trigger finds you ready.

If more than half of the load is writes, replicas won't help.""",
    GEMINI: """\
**Buy the bigger machine for time, and spend that time on sharding by customer.** My peers are right \
that seven months are too short for a migration with nothing in reserve.

- Put `customer_id` into every query and key of the orders code now. This costs little today and \
more each month.
- Keep one database until peak load is at 60% on the new machine, then split it.
- I still disagree on one point: begin the routing layer **this quarter**, not at the trigger.""",
    GROK: """\
**Buy the bigger machine, and partition by month on it.** I withdraw the claim that archiving halves \
CPU: rows that nobody reads cost storage, backups and vacuum, not peak CPU.

1. Fix the costliest statements, then double the machine.
2. Partition `orders` by month. Old months become cheap to archive, and vacuum stays short.
3. Keep `customer_id` in each primary key, so that sharding stays open.""",
}

REVIEWS: Mapping[str, Mapping[str, str]] = {
    GPT: {
        CLAUDE: "The strongest: it measures first, names a trigger and says what it doesn't know.",
        GEMINI: "The key is well chosen. Two months leave no reserve, and there is no way back.",
        GROK: "Partitioning is useful, but old rows that nobody reads hardly cost CPU at peak.",
    },
    CLAUDE: {
        GPT: "Right about the seven months. “When load is high again” is no trigger: name a number.",
        GEMINI: "Concrete, and `customer_id` is the right key. It doesn't say what happens to "
        "queries across customers, and it underrates the migration.",
        GROK: "“It should drop by half” has no ground: archiving saves storage, not CPU.",
    },
    GEMINI: {
        GPT: "Clear and sound, but it only postpones: nothing in it makes later sharding cheaper.",
        CLAUDE: "Careful and honest. The trigger at 60% is what the other answers lack.",
        GROK: "Doesn't answer the question. The claim about CPU is most likely wrong.",
    },
    GROK: {
        GPT: "Good arithmetic. It skips the cheap fixes that may make the purchase smaller.",
        CLAUDE: "Best overall: cheap fixes first, then the machine, then a number to act on.",
        GEMINI: "Too much risk at 70% load: a migration itself adds load for weeks.",
    },
}
VOTES: Mapping[str, tuple[str, ...]] = {
    GPT: (CLAUDE, GEMINI, GROK),
    CLAUDE: (GPT, GEMINI, GROK),
    GEMINI: (CLAUDE, GPT, GROK),
    GROK: (CLAUDE, GPT, GEMINI),
}

FINAL = """\
**Buy the bigger machine now, and fix today when you will shard: at 60% CPU at peak on the new one.**

At 5% a month you reach 100% in about seven months. That is too short for a safe migration, and \
long enough to change the server without haste.

1. **This week:** take the ten costliest statements from `pg_stat_statements` and fix them.
2. **This month:** double the cores and the memory.
3. **This quarter:** partition `orders` by month, with `customer_id` in every primary key.

| Option | Peak CPU | Time until 85% | Way back |
| --- | ---: | ---: | --- |
| Do nothing | 70% | 4 months | easy |
| Bigger machine | 35% | 18 months | easy |
| Four shards now | about 18% | years | hard |

**Dissent:** gemini-2.5-pro would build the routing layer this quarter, because each month adds \
queries without `customer_id`. The others would wait for the trigger.

**Not known:** your share of writes. Above half, a read replica won't help."""


def part(request: Json) -> str:
    """Say which part of a council a request asks for."""
    last = _messages(request)[-1]
    for mark, name in (
        ("Then rank them.", "review"),
        ("whole corrected answer", "correction"),
        ("Give this conversation a title", "title"),
        ("Now answer the question itself", "final"),
    ):
        if mark in last:
            return name
    return "answer"


def play(request: Json) -> str:
    """Say what the asked model says in the part it is asked for."""
    model = str(request["model"])
    match part(request):
        case "review":
            return _review(model, _messages(request)[-1])
        case "correction":
            return CORRECTIONS[model]
        case "title":
            return TITLE
        case "final":
            return FINAL
        case _:
            return ANSWERS[model]


def _messages(request: Json) -> list[str]:
    return [str(message["content"]) for message in cast("list[Json]", request["messages"])]


def _review(reviewer: str, prompt: str) -> str:
    """Write a review under the labels that the answers have in this prompt."""
    label = {
        member: found[1]
        for member, answer in ANSWERS.items()
        if (found := re.search(rf"\[(Response [A-Z]) \S+\]\n{re.escape(answer)}", prompt))
    }
    said = sorted(f"**{label[member]}.** {text}" for member, text in REVIEWS[reviewer].items())
    places = (f"{place}. {label[member]}" for place, member in enumerate(VOTES[reviewer], 1))
    return "\n\n".join(said) + "\n\nFINAL RANKING:\n" + "\n".join(places)
