"""What people see on Slack, recorded from runs."""

from collections.abc import Sequence
from typing import Any

from pictures import scenario
from pictures.runs import (
    CHANNEL,
    SCREEN,
    Picture,
    held,
    rehearse,
    rehearse_failures,
    rehearse_refusal,
    settled,
    until,
)
from tests.model_server import ModelServer
from tests.slack_server import Message, SlackServer

PLACE = f"# {CHANNEL}"
THREAD = "Thread"


class OnSlack:
    """Ada, who asks the council in a channel of her team's."""

    def __init__(self, slack: SlackServer, models: ModelServer) -> None:
        self._slack = slack
        self._models = models
        self._ada = slack.add_user("ada")
        self._channel = slack.add_channel(CHANNEL, self._ada)
        self._names = {slack.team.bot.id: "Council", self._ada.id: "Ada"}

    async def record(self) -> list[Picture]:
        """Ask, and return what is to be drawn."""
        rehearse(self._models)
        before = len(self._cards())
        await self._ask()

        def card() -> dict[str, Any]:
            return self._cards()[before].wire() if len(self._cards()) > before else {}

        async with held(self._models, card):
            running = card()
        answered = await self._answered(before)
        return [
            self._picture("running", PLACE, running),
            self._picture("answer", PLACE, answered),
            *await self._below(self._cards()[before]),
            self._picture("weakened", PLACE, await self._weakened()),
            self._picture("error", PLACE, await self._failed()),
            self._picture("refused", PLACE, *await self._refused()),
            *await self._commands(),
        ]

    def _picture(self, name: str, title: str, *messages: dict[str, Any]) -> Picture:
        height = SCREEN if name == "thread" else None
        return Picture("slack", name, title, messages, self._names, height)

    def _cards(self) -> list[Message]:
        return self._slack.messages(self._channel)

    async def _ask(self, flags: str = "") -> None:
        await self._slack.slash(
            self._channel, self._ada, "/council", f"{flags}{scenario.MIGRATION.question}"
        )

    async def _answered(self, number: int) -> dict[str, Any]:
        """Wait for an answer, and for everything below it."""
        await until(
            lambda: len(self._cards()) > number and "Ask again" in str(self._cards()[number].wire())
        )
        await settled(lambda: len(self._replies(self._cards()[number])))
        card = self._cards()[number]
        return card.wire() | {"latest_reply": self._replies(card)[-1].ts}

    def _replies(self, card: Message) -> list[Message]:
        return self._slack.thread(self._channel, card.ts)

    async def _below(self, card: Message) -> list[Picture]:
        """Record the digest, the best answer, and what *Open* below that shows."""
        posted = self._replies(card)
        best = _first_with(posted, "Open")
        posted = posted[posted.index(best) - 1 :]  # the digest is above it
        shown = posted[: posted.index(best) + 1]
        return [
            self._picture("thread", THREAD, *(each.wire() for each in shown)),
            self._picture("thread", THREAD, shown[-2].wire()).cropped("objection"),
            self._picture("member", THREAD, *(each.wire() for each in shown[1:])),
            self._picture("open", THREAD, *await self._pressed(best, "Open")),
        ]

    async def _pressed(self, message: Message, label: str) -> list[dict[str, Any]]:
        """Press a button and return what it shows only to her."""
        button = next(part for part, _ in message.elements() if part["text"]["text"] == label)
        before = len(self._slack.ephemerals(self._channel, self._ada))
        await self._slack.click(message, button["action_id"], self._ada)
        return await self._told(before)

    async def _told(self, before: int) -> list[dict[str, Any]]:
        """Return what only she has been shown since then."""
        await settled(lambda: len(self._slack.ephemerals(self._channel, self._ada)) - before)
        return [
            {
                "user": self._slack.team.bot.id,
                "bot_id": self._slack.team.bot_id,
                "ts": told.ts,
                "text": told.text,
                "blocks": told.blocks,
                "is_ephemeral": True,
            }
            for told in self._slack.ephemerals(self._channel, self._ada)[before:]
        ]

    async def _weakened(self) -> dict[str, Any]:
        rehearse_failures(self._models)
        before = len(self._cards())
        await self._ask()
        return await self._answered(before)

    async def _failed(self) -> dict[str, Any]:
        rehearse_refusal(self._models)
        before = len(self._cards())
        await self._ask()
        await until(
            lambda: len(self._cards()) > before and "Continue" in str(self._cards()[before].wire())
        )
        card = self._cards()[before]
        await until(lambda: bool(self._replies(card)))  # its asker is mentioned
        return card.wire()

    async def _refused(self) -> list[dict[str, Any]]:
        before = len(self._slack.ephemerals(self._channel, self._ada))
        await self._ask("--privat ")
        return await self._told(before)

    async def _commands(self) -> list[Picture]:
        """Record what two commands reply once there are enough answers to count."""
        before = len(self._cards())
        await self._ask()
        await self._answered(before)
        return [
            self._picture(name, PLACE, *await self._replied(f"/council-{name}"))
            for name in ("help", "stats")
        ]

    async def _replied(self, command: str) -> list[dict[str, Any]]:
        before = len(self._slack.ephemerals(self._channel, self._ada))
        await self._slack.slash(self._channel, self._ada, command, "")
        return await self._told(before)


def _first_with(messages: Sequence[Message], label: str) -> Message:
    """Return the first message that has a button."""
    return next(
        each
        for each in messages
        if label in [part.get("text", {}).get("text") for part, _ in each.elements()]
    )
