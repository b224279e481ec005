"""Questions on Slack: by command, mention or shortcut; each becomes a run."""

import asyncio
from dataclasses import dataclass

from bot.actions import Actions
from bot.errors import Refusal
from bot.service.commands import Typed, parse, parse_message
from bot.service.options import RunOptions
from bot.service.requests.question import Question
from bot.slack.client import Json
from bot.slack.locations import Locations, direct
from bot.slack.replies import SlackReply
from bot.slack.typed import plain, words
from bot.slack.venue import is_direct
from council.brief import Discussion


@dataclass(frozen=True, slots=True)
class Asking:
    """Turns what people send in one workspace into questions; `me` is the bot's user there.

    A question that can't be accepted raises `Refusal`.
    """

    actions: Actions
    locations: Locations
    me: str

    async def ask(self, command: Json, reply: SlackReply) -> None:
        """Ask what follows `/council`: here or, if it is to be private, in direct messages."""
        here, channel = reply.here, command["channel_id"]
        is_private = parse(plain(command["text"])).is_private
        text, standing, where = await asyncio.gather(
            self.locations.reader.typed(command["text"]),
            self.locations.standing_of(here),
            direct(self.locations.client, str(here.user)) if is_private else asyncio.sleep(0, channel),
        )
        typed = parse(text)
        question = Question(
            text=typed.question,
            source=here.model_copy(update={"channel": where}),
            entry_key=command["trigger_id"],
            standing=standing,
            asker=command["user_name"],
            options=RunOptions.read(typed.given),
            asked_in=here if is_private else None,
        )
        if await self.actions.ask(question, reply) and where != channel:
            await reply.say("The council will answer in your direct messages.")

    async def ask_about(
        self, message: Json, key: str, nothing: str, context: Discussion, reply: SlackReply
    ) -> None:
        """Ask all that a message says, with its files; answer `nothing` to an empty one.

        Options count in what somebody writes to the bot, not in a message that a shortcut picks: only
        that comes with the asker's name.
        """
        here = reply.here

        async def name() -> str:
            return reply.name or (await self.locations.reader.person(str(here.user))).name

        text, *rest = words(message)
        files, text, shown, called, standing = await asyncio.gather(
            self.locations.reader.files(message),
            self.locations.reader.typed(text, self.me),
            self.locations.reader.typed("\n".join(rest), self.me),
            name(),
            self.locations.standing_of(here),
        )
        typed = Typed(text, {}) if reply.name else parse_message(text)
        asked = "\n\n".join(filter(None, (typed.question, shown)))
        if not asked and not files:
            raise Refusal(nothing)
        question = Question(
            text=asked,
            source=here,
            entry_key=key,
            standing=standing,
            asker=called,
            sent=files,
            context=None if here.thread is None or is_direct(here) else context,
            options=RunOptions.read(typed.given),
        )
        await self.actions.ask(question, reply)
