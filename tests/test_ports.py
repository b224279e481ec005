"""Ports that tests start programs on."""

import asyncio
import os
import socket
from itertools import count

import pytest

from tests import ports


async def test_a_port_is_given_once_and_can_be_listened_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a process asks that would have chosen the same one."""
    first = ports.free_port()
    monkeypatch.setattr(ports, "_next", count(first - ports.FIRST - os.getpid() * ports.OWN))
    assert ports.free_port() != first
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", first)
    server.close()
    await server.wait_closed()


def test_nobody_answers_there_before() -> None:
    """Who connects is refused."""
    with socket.socket() as client, pytest.raises(ConnectionRefusedError):
        client.connect(("127.0.0.1", ports.free_port()))
