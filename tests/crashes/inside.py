"""What a test changes in the program before it runs: quicker paces, and a witness of its moments.

Moments that no server sees are told to the address in CRASHES_WITNESS. Each waits for a line in return,
so whoever listens can end the process right there.
"""

import os
import re
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import bot.discord.bot
import bot.discord.client
import bot.service.dispatcher
import bot.slack.chat

_TABLE = re.compile(r"\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)", re.IGNORECASE)


def hurry() -> None:
    """Let cards be edited as often as they change, and take questions however busy the machine is."""
    bot.service.dispatcher.ACCEPT_SECONDS = 60.0
    discord: dict[str, Any] = bot.discord.bot.DiscordBot.__init__.__kwdefaults__ or {}
    discord.update(edit_seconds=0.01, settle_seconds=0.1)
    bot.discord.client.ALL = replace(bot.discord.client.ALL, interval=0.0)
    slack = bot.slack.chat
    slack.TIER_3 = slack.TIER_4 = slack.CARD_SECONDS = slack.POST_SECONDS = 0.01


def witness(port: int) -> Callable[[str], None]:
    """Return a call that reports a moment and waits for permission to continue."""
    connection = socket.create_connection(("127.0.0.1", port))
    stream = connection.makefile("rw")
    lock = threading.Lock()

    def tell(moment: str) -> None:
        with lock:
            stream.write(f"{moment}\n")
            stream.flush()
            stream.readline()

    return tell


class Watched(sqlite3.Connection):
    """A connection that tells of its commits, by the tables that they change."""

    tell: ClassVar[Callable[[str], None]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._changed: set[str] = set()

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        """Run a statement; around a COMMIT, tell."""
        if sql != "COMMIT":
            return super().execute(sql, *args)
        changed, self._changed = sorted(self._changed), set()
        for table in changed:
            Watched.tell(f"before commit of {table}")
        cursor = super().execute(sql)
        for table in changed:
            Watched.tell(f"after commit of {table}")
        return cursor

    def executemany(self, sql: str, *args: Any) -> sqlite3.Cursor:
        """Run a statement, noting the table that it changes."""
        if found := _TABLE.match(sql):
            self._changed.add(found[1])
        return super().executemany(sql, *args)


def watch_documents(folder: Path, tell: Callable[[str], None]) -> None:
    """Tell of a document about to be renamed, and of its folder about to be synced."""

    def hear(event: str, given: tuple[Any, ...]) -> None:
        if event == "os.rename" and Path(str(given[1])).parent == folder:
            tell("before rename")
        elif event == "open" and given[0] == str(folder) and given[2] & os.O_DIRECTORY:
            tell("after rename")

    sys.addaudithook(hear)


def watch() -> None:
    """Tell of the moments in this process from now on."""
    tell = witness(int(os.environ["CRASHES_WITNESS"]))
    Watched.tell = tell
    sqlite3.connect = partial(sqlite3.connect, factory=Watched)
    watch_documents(Path(os.environ["COUNCIL_DATA_DIR"]) / "conversations", tell)
