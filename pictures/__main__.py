"""Draw what people see: `python -m pictures` writes docs/pictures/*.png from real runs.

`council run` answers the same question on Discord and on Slack, between fake platforms and a fake model
provider on 127.0.0.1. What they recorded is drawn, as far as a page shows it; only the models' texts are
written by hand (bot/demo/texts).
"""

import asyncio
import sys
from pathlib import Path

from pictures import scenario
from pictures.on_discord import OnDiscord
from pictures.on_slack import OnSlack
from pictures.page import photograph
from pictures.render import missing, render
from pictures.runs import Picture, council
from pictures.scenario import play
from tests.discord_server import DiscordServer
from tests.model_server import Json, ModelServer
from tests.slack_server import SlackServer

OUT = Path(__file__).parent.parent / "docs" / "pictures"
DOLLARS_A_TOKEN = {"prompt": "0.000003", "completion": "0.000015"}


async def record() -> tuple[list[Picture], str]:
    """Do all runs, platform by platform; return what to draw, and the transcript's page.

    Each platform has a program and models of its own: what one leaves unsaid, the other doesn't hear.
    """
    priced = (*scenario.MEMBERS, scenario.CHAIRMAN, scenario.TITLE_MODEL)
    listed: list[Json] = [{"id": model, "pricing": DOLLARS_A_TOKEN} for model in priced]
    async with DiscordServer() as discord, SlackServer() as slack:
        async with ModelServer(play, models=listed) as models, council(discord, slack, models):
            pictures, page = await OnDiscord(discord, models).record()
        async with ModelServer(play, models=listed) as models, council(discord, slack, models):
            return [*pictures, *await OnSlack(slack, models).record()], page


def main() -> None:
    """Record, then draw."""
    if sys.argv[1:]:
        sys.exit("python -m pictures draws all of them, and takes no arguments.")
    if lack := missing():
        sys.exit(f"No picture: {lack}.")
    OUT.mkdir(parents=True, exist_ok=True)
    pictures, page = asyncio.run(record())
    made = photograph(page, OUT)
    for each in pictures:
        made.append(OUT / f"{each.platform}-{each.name}.png")
        render(
            each.platform,
            each.messages,
            made[-1],
            width=each.width,
            height=each.height,
            title=each.title,
            names=each.names,
        )
    for out in made:
        print(f"{out.relative_to(OUT.parent.parent)}  {out.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
