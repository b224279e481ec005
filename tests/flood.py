"""A stranger who keeps connections to a port open and sends no whole request on any of them.

`python -m tests.flood PORT CONNECTIONS SECONDS`: each connection that is closed is replaced at once. A fifth sends
nothing, a fifth headers and one byte of the body, a fifth a header's byte each second, and two fifths what looks
whole and isn't. Only 127.0.0.1 is reached. Prints how many connections were opened.
"""

import errno
import resource
import select
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field

HEADERS = b"POST /slack/events HTTP/1.1\r\nHost: council\r\nContent-Type: application/json\r\n"
SLOWLY = b"POST /slack/events HTTP/1.1\r\nX-Slow: "
SENT = (
    b"",
    HEADERS + b"Content-Length: 1000\r\n\r\n{",
    SLOWLY,
    HEADERS + b"Content-Length: 10000000000\r\n\r\n{",
    HEADERS + b"Transfer-Encoding: chunked\r\n\r\n5\r\n0\r\n\r\n",
)
AT_ONCE = 200
"""How many connections are begun in a row, so that those that are open have their turn."""


@dataclass(slots=True)
class Flood:
    """The connections to a port; `opened` counts them."""

    port: int
    opened: int = 0
    _poll: select.epoll = field(default_factory=select.epoll)
    _sent: dict[int, bytes] = field(default_factory=dict[int, bytes])
    _open: dict[int, socket.socket] = field(default_factory=dict[int, socket.socket])

    def keep(self, connections: int, seconds: float) -> None:
        """Keep that many connections open for that long."""
        ends = time.monotonic() + seconds
        next_byte = time.monotonic() + 1
        while (now := time.monotonic()) < ends:
            for _ in range(min(AT_ONCE, connections - len(self._open))):
                if not self._begin():
                    break
            for number, _ in self._poll.poll(0.01):
                self._hear(number)
            if now >= next_byte:
                next_byte = now + 1
                self._send_a_byte()

    def _begin(self) -> bool:
        one = socket.socket()
        one.setblocking(False)
        # Closed without a trace: else the kernel keeps its port for a minute.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if one.connect_ex(("127.0.0.1", self.port)) not in (0, errno.EINPROGRESS):
            one.close()
            return False
        self._open[one.fileno()] = one
        self._poll.register(one, select.EPOLLOUT)
        return True

    def _hear(self, number: int) -> None:
        """Send what a new connection is to send; close one that the other side has closed."""
        one = self._open[number]
        try:
            if number not in self._sent:
                one.getpeername()
                self.opened += 1
                self._sent[number] = SENT[self.opened % len(SENT)]
                one.send(self._sent[number])
                self._poll.modify(number, select.EPOLLIN)
                return
            is_open = bool(one.recv(4096))
        except OSError:
            is_open = False
        if not is_open:
            del self._open[number]
            self._sent.pop(number, None)
            one.close()

    def _send_a_byte(self) -> None:
        for number, sent in self._sent.items():
            if sent is SLOWLY:
                with suppress(OSError):  # that it has ended is heard by itself
                    self._open[number].send(b"x")


if __name__ == "__main__":
    _, HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (HARD, HARD))
    STRANGER = Flood(int(sys.argv[1]))
    STRANGER.keep(int(sys.argv[2]), float(sys.argv[3]))
    print(STRANGER.opened)  # noqa: T201 - its output
