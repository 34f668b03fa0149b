"""Plays the steps of one reply on a transport of asyncio's, and counts what was sent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time

from memmock.reply_writer import Script
from memmock.sockets import HARD, LINGER_S, buffer_little, unsent


class Player:
    """Plays one script; is told by the connection's protocol whether the client takes more.

    Whoever awaits `play` and is cancelled knows from `sent_bytes` how far it came.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self.sent_bytes = 0
        self._transport = transport
        self._taking = asyncio.Event()
        self._taking.set()
        transport.set_write_buffer_limits(high=0)  # so that nothing waits in the transport unnoticed
        buffer_little(transport.get_extra_info("socket"))

    def pause(self) -> None:
        """Send no more until `resume`: the client does not read."""
        self._taking.clear()

    def resume(self) -> None:
        """Send on."""
        self._taking.set()

    async def play(self, script: Script) -> None:
        """Return when everything was sent; never, when the script hangs or its steps have no end."""
        due = time.monotonic()
        for step in script.steps:
            if isinstance(step, bytes):
                await self._send(step)
            else:
                due = max(due + step, time.monotonic())
                await _sleep_until(due)
        if script.stream is not None:
            async with contextlib.aclosing(script.stream) as parts:
                async for part in parts:
                    await self._send(part)
        if script.end_s and not script.serves:
            await _sleep_until(time.monotonic() + script.end_s)
        if script.ending == "hang":
            await asyncio.Event().wait()
        if script.ending == "reset":
            await self._taken()

    async def _send(self, data: bytes) -> None:
        self._transport.write(data)
        await self._taking.wait()
        self.sent_bytes += len(data)

    async def _taken(self) -> None:
        """Wait until the client's system has what was sent: a reset throws the rest away."""
        sock = self._transport.get_extra_info("socket")
        deadline = time.monotonic() + LINGER_S
        while unsent(sock) and time.monotonic() < deadline:
            await asyncio.sleep(0.001)


def reset(transport: asyncio.Transport) -> None:
    """Close so that the client sees a reset."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HARD)
    transport.abort()


async def _sleep_until(due: float) -> None:
    """Sleep by the clock: the loop rounds to milliseconds, and over many pauses that adds up."""
    await asyncio.sleep(0)  # however short the pause, the others get their turn
    while (rest := due - time.monotonic()) > 0:
        await asyncio.sleep(rest)
