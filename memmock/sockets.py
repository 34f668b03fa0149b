"""What a fault needs of a socket: a hard close, a small buffer, and a look at what is still to be taken."""

from __future__ import annotations

import contextlib
import socket
import struct
import sys

HARD = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
"""The value of SO_LINGER that makes closing a reset."""
LINGER_S = 2.0
"""How long a client that was refused may go on sending before it is cut off. Closing at once would reset the
connection, and take the refusal away before the client has read it."""
SNDBUF_BYTES = 16 * 1024


def buffer_little(sock: socket.socket) -> None:
    """Let the system buffer little of what is sent, as all that it buffers counts as sent."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SNDBUF_BYTES)


def unsent(sock: socket.socket) -> bool:
    """Tell whether the system still holds bytes that the client's has not acknowledged.

    A reset throws these away. Where the system does not tell, there are none.
    """
    with contextlib.suppress(ImportError, OSError):  # no such thing on Windows, or it is over
        import fcntl
        import termios

        return fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0" * 4) != b"\0" * 4
    return False
