"""Messages: where the bot may write and read, what a message may hold, posting, editing, showing."""

import json
from collections.abc import Mapping
from typing import Any, Literal, cast

from aiohttp import web

from tests.slack_server.blocks import checked, pinged, refused_blocks
from tests.slack_server.rules import Json, Refused, Rules
from tests.slack_server.workspace import (
    Channel,
    Ephemeral,
    Message,
    Scheduled,
    StoredFile,
    Team,
    User,
    Workspace,
)

HISTORY = {"public": "channels:history", "private": "groups:history", "im": "im:history"}
PARSED = ("blocks", "attachments", "files", "metadata")
TEXT_MOST = 40_000
UPDATED_TEXT_MOST = 4_000
SCHEDULED_DAYS = 120
SCHEDULED_MOST, SCHEDULED_WINDOW = 30, 300


class Board:
    """What the bot reads and writes, however it reaches Slack."""

    def __init__(self, world: Workspace, rules: Rules) -> None:
        self.world = world
        self.rules = rules

    def user(self, team: Team, user: Any) -> User:
        found = self.world.users.get(str(user))
        if found is None or found.team != team.id:
            raise Refused("user_not_found")
        return found

    def visible(self, team: Team, arguments: Json) -> Channel:
        """Return the channel that a call names; a private channel without the bot doesn't exist for it."""
        channel = self.world.channels.get(str(arguments.get("channel") or ""))
        if channel is None or channel.deleted or channel.team != team.id:
            raise Refused("channel_not_found")
        if channel.kind != "public" and team.bot.id not in channel.members:
            raise Refused("channel_not_found")
        return channel

    def writable(self, team: Team, arguments: Json) -> Channel:
        """Return the channel that a call names, if the bot may write there."""
        channel = self.visible(team, arguments)
        if channel.archived:
            raise Refused("is_archived")
        if team.bot.id not in channel.members and "chat:write.public" not in team.scopes:
            raise Refused("not_in_channel")
        return channel

    def readable(self, team: Team, arguments: Json) -> Channel:
        """Return the channel that a call names, if the bot may read its messages."""
        channel = self.visible(team, arguments)
        need(team, HISTORY[channel.kind])
        if team.bot.id not in channel.members:
            raise Refused("not_in_channel")
        return channel

    def content(self, arguments: Json, text_most: int = TEXT_MOST) -> Json:
        """Return what a message says, checked; `blocks` is None when the call names none."""
        text, blocks = str(arguments.get("text") or ""), arguments.get("blocks")
        if arguments.get("markdown_text") is not None:
            if text or blocks:
                raise Refused("markdown_text_conflict")
            blocks = [{"type": "markdown", "text": arguments["markdown_text"]}]
        if self.rules.measure(text) > text_most:
            raise Refused("msg_too_long")
        attachments: list[Json] = arguments.get("attachments") or []
        if len(attachments) > 100:
            raise Refused("too_many_attachments")
        nested = [block for attachment in attachments for block in attachment.get("blocks", ())]
        try:
            checked(nested, self.rules)
        except Refused as refusal:
            raise refused_blocks(refusal.extra.get("errors", []), "invalid_attachments") from refusal
        stored = None if blocks is None else checked(blocks, self.rules)
        if not text.strip() and not stored and not attachments:
            raise Refused("no_text")
        return {**arguments, "text": text, "blocks": stored}

    def post(
        self,
        team: Team,
        channel: Channel,
        content: Json,
        thread_ts: str | None = None,
        files: list[StoredFile] | None = None,
        at: float | None = None,
    ) -> Message:
        """Put a checked message of the bot into a channel, and note whom it pings."""
        people = (user for user in self.world.users.values() if user.team == team.id)
        handles = {user.name: user.id for user in people if not user.is_bot}
        return self.world.keep(
            Message(
                channel=channel.id,
                ts=self.world.new_ts(),
                user=team.bot.id,
                bot_id=team.bot_id,
                text=content["text"],
                blocks=content["blocks"] or [],
                attachments=content.get("attachments") or [],
                posted_at=self.world.clock() if at is None else at,
                thread_ts=thread_ts,
                files=files or [],
                pinged=pinged(content, handles, self.rules),
                arguments=content,
            )
        )

    def schedule(self, team: Team, channel: Channel, content: Json, post_at: Any) -> Scheduled:
        now = self.world.clock()
        if not str(post_at or "").isdigit():
            raise Refused("invalid_time")
        time = int(post_at)
        if time <= now:
            raise Refused("time_in_past")
        if time > now + SCHEDULED_DAYS * 24 * 3600:
            raise Refused("time_too_far")
        near = [
            each
            for each in self.world.scheduled
            if each.channel is channel and abs(each.post_at - time) < SCHEDULED_WINDOW
        ]
        if len(near) >= SCHEDULED_MOST:
            raise Refused("restricted_too_many")
        one = Scheduled(
            self.world.new_id("Q"), team, channel, content, time, int(now), content.get("thread_ts")
        )
        self.world.scheduled.append(one)
        return one

    def post_scheduled(self) -> None:
        """Post the scheduled messages that are due, and drop those that can no longer be posted."""
        now = self.world.clock()
        due = [each for each in self.world.scheduled if each.post_at <= now]
        for each in sorted(due, key=lambda one: one.post_at):
            self.world.scheduled.remove(each)
            channel, thread_ts = each.channel, each.thread_ts
            is_open = not (channel.archived or channel.deleted)
            if is_open and (thread_ts is None or channel.has_thread(thread_ts)):
                self.post(each.team, channel, each.content, thread_ts, at=each.post_at)

    def revise(self, message: Message | Ephemeral, content: Json) -> None:
        """Replace a message; without `blocks` it keeps its old ones, unless a new text replaces them."""
        blocks = content["blocks"]
        if blocks is None:
            blocks = [] if content["text"] else message.blocks
        if isinstance(message, Message) and content.get("attachments") is not None:
            message.attachments = content["attachments"]
        message.becomes(self.world.clock(), content["text"], blocks)
        self.world.changes.happened()

    def show(
        self,
        channel: str,
        user: str,
        content: Json,
        via: Literal["chat.postEphemeral", "response_url", "ack"],
        thread_ts: str | None = None,
    ) -> Ephemeral:
        text, blocks = content["text"], cast("list[Json]", content["blocks"] or [])
        now, ts = self.world.clock(), self.world.new_ts()
        self.world.ephemerals.append(Ephemeral(channel, user, text, blocks, now, ts, via, thread_ts))
        self.world.changes.happened()
        return self.world.ephemerals[-1]


def need(team: Team, *scopes: str) -> None:
    """Refuse a call whose token lacks a scope."""
    missing = [scope for scope in scopes if scope not in team.scopes]
    if missing:
        raise Refused("missing_scope", needed=missing[0], provided=",".join(sorted(team.scopes)))


async def read_arguments(request: web.Request) -> Json:
    """Return a call's arguments from the query, a form or a JSON body; parse strings of JSON."""
    arguments: Json = dict(request.query)
    if request.content_type == "application/json":
        body = await request.text()
        arguments |= cast("Json", json.loads(body)) if body else {}
    elif request.can_read_body:
        arguments |= cast("Mapping[str, Any]", await request.post())
    for name in PARSED:
        if isinstance(arguments.get(name), str):
            try:
                arguments[name] = json.loads(arguments[name])
            except json.JSONDecodeError:
                arguments[name] = None if name == "metadata" else "unreadable"
    return arguments
