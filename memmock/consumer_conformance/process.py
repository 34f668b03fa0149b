"""A consumer that is a command: a process that reads one call a line and writes one result a line.

In: `{"id", "memory_retrieval", "request"}`, in ASCII. Out: a tool result with the same `id`. It ends when its
standard input does. What it writes to standard error is its log, which nobody waits for.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from memmock import strictjson
from memmock.consumer_conformance.subject import Failure, Told
from memmock.errors import MemmockError

MOST_LINE_BYTES = 64 * 1024 * 1024
"""How long one result may be [ours]."""
KEPT_ERRORS = 4000
"""How many characters of standard error are kept, the last ones."""
_END_S = 0.5
"""How long a process may take to end once its standard input has, or once it was asked to by SIGTERM."""
_LOOK_S = 0.1
"""How often it is looked whether a process still lives; one that ends closes its output, as a rule."""
_READ_BYTES = 256 * 1024
_HINT = "only results belong on standard output, logs belong on standard error"


class Process:
    """Drives a command; one call at a time. It is started with the first call.

    The command gets a session of its own, so that all that it starts can be ended with it, and so that an
    interrupt from the keyboard does not reach it.

    Args:
        command: the program and its arguments.
        cwd: where it runs; None for here.
        env: its environment; None for that of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._command = list(command)
        self._cwd = cwd
        self._env = env
        self._calls = 0
        self._running: _Running | None = None

    @property
    def name(self) -> str:
        """The command, as it is written in a shell."""
        return shlex.join(self._command)

    @property
    def fresh(self) -> bool:
        """Whether the next call starts it."""
        return self._running is None

    def call(
        self, memory_retrieval: Mapping[str, Any], request: Mapping[str, Any], patience_s: float
    ) -> Told:
        """Return what it makes of one retrieval. After a failure the next call starts it anew.

        Raises:
            MemmockError: the command cannot be started.
        """
        running = self._running = self._running or self._started()
        self._calls += 1
        call_id, authorization = str(self._calls), str(memory_retrieval["authorization"])
        asked = {"id": call_id, "memory_retrieval": dict(memory_retrieval), "request": dict(request)}
        started = time.monotonic()
        try:
            running.look(authorization)
            line = running.exchanged(json.dumps(asked).encode() + b"\n", patience_s)
            elapsed_s = time.monotonic() - started
            value = _result(line, call_id, authorization)
        except _GivenUp as given_up:
            elapsed_s = time.monotonic() - started
            self._kill()
            return Told(None, elapsed_s, given_up.failure, given_up.message, running.errors.taken())
        except BaseException:
            self._kill()
            raise
        return Told(value, elapsed_s, errors=running.errors.taken())

    def restart(self) -> None:
        """Forget its state: the next call starts it anew."""
        self.close()

    def close(self) -> None:
        """End it, and all that it has started. A good one ends by itself when its input does."""
        if self._running is not None:
            try:
                self._running.wait_for_end()
            finally:
                self._kill()

    def _kill(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.kill()

    def _started(self) -> _Running:
        if not self._command:
            raise MemmockError("there is no command to start as the consumer")
        try:
            return _Running(
                subprocess.Popen(
                    self._command,
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=self._cwd,
                    env=self._env,
                    start_new_session=True,
                )
            )
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            if self._cwd is not None and not Path(self._cwd).is_dir():
                reason = f"there is no directory {str(self._cwd)!r}"
            raise MemmockError(
                f"the command {strictjson.printable(self._command[0])!r} cannot be started: {reason}"
            ) from None


def shown(text: str, authorization: str, width: int = 160) -> str:
    """Return the beginning of a text on one line, without what the consumer was given to authorize itself.

    Args:
        text: of any length.
        authorization: with or without a scheme in front.
        width: how many characters are shown.
    """
    for secret in (authorization, authorization.rpartition(" ")[2]):
        if secret:
            text = text.replace(secret, "[authorization]")
    text = " ".join(text[: 4 * width].split())
    return strictjson.printable(text if len(text) <= width else f"{text[:width]}…")


class _GivenUp(Exception):
    """Why a call has no result."""

    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message


class _Ends(NamedTuple):
    """Our ends of the pipes."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]


class _Running:
    """A process that runs, its pipes, and what it has written."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._ends = _Ends(process.stdin, process.stdout, process.stderr)
        self._unread = b""
        self._at_end = False
        os.set_blocking(self._ends.stdin.fileno(), False)
        os.set_blocking(self._ends.stdout.fileno(), False)
        self.errors = _Tail(self._ends.stderr)

    def ended(self) -> bool:
        """Tell whether the process has ended; what it left behind in its group is ended then, too."""
        if self._process.poll() is None:
            return False
        self._signal(signal.SIGKILL)
        return True

    def look(self, authorization: str) -> None:
        """See to it that the process is ready for a call.

        Raises:
            _GivenUp: it has ended, or has written more than its results.
        """
        self._unread = self._unread or self._some() or b""
        if self._unread:
            text = shown(self._unread.decode(errors="replace"), authorization)
            raise _GivenUp("garbled", f"the process wrote more than one line for a call; {_HINT}: {text}")
        if self.ended():
            hint = "a consumer reads one line after the other until its input ends"
            raise _GivenUp("died", f"{self._how_it_ended()} before it was called; {hint}")

    def _how_it_ended(self) -> str:
        """Return the beginning of a sentence about it."""
        code = self._process.returncode
        if code >= 0:
            return f"the process ended with exit code {code}"
        try:
            return f"the process was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"the process was ended by signal {-code}"

    def exchanged(self, line: bytes, patience_s: float) -> bytes:
        """Return the line that answers a line.

        Raises:
            _GivenUp: none comes.
        """
        deadline = time.monotonic() + patience_s
        unsent, parts, size = memoryview(line), [], 0
        poll, stdin, stdout = select.poll(), self._ends.stdin.fileno(), self._ends.stdout.fileno()
        poll.register(stdout, select.POLLIN)
        poll.register(stdin, select.POLLOUT)
        while (left_s := deadline - time.monotonic()) > 0:
            ready = {fd for fd, _ in poll.poll(min(left_s, _LOOK_S) * 1000)}
            ended = not ready and self.ended()
            if stdin in ready:
                unsent = self._sent(unsent)
                if not unsent:
                    poll.unregister(stdin)
            if stdout not in ready and not ended:
                continue
            data = self._some()
            if data is None and (ended or self._at_end):
                self._fail_at_end(bool(size))
            part, newline, self._unread = (data or b"").partition(b"\n")
            parts.append(part)
            size += len(part)
            if size > MOST_LINE_BYTES:
                limit = MOST_LINE_BYTES // 2**20
                raise _GivenUp("garbled", f"the process wrote a line of more than {limit} MiB")
            if newline:
                return b"".join(parts)
        what = "end its line" if size else "answer"
        raise _GivenUp("silent", f"the process did not {what} within {patience_s:.3g} s, and was killed")

    def wait_for_end(self) -> None:
        """End its input, and wait a moment for the process to end."""
        self._ends.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)

    def kill(self) -> None:
        """End the process and its group; nothing of it is left."""
        try:
            if not self.ended():
                self._signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_END_S)
        finally:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self.errors.stop()
            for end in self._ends:
                end.close()

    def _signal(self, number: int) -> None:
        # macOS refuses with EPERM when only the dead are left
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _sent(self, unsent: memoryview) -> memoryview:
        """Return what is still to be sent; nothing when nobody reads any more."""
        try:
            return unsent[os.write(self._ends.stdin.fileno(), unsent) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            return unsent[:0]

    def _some(self) -> bytes | None:
        """Return some of what was written; None when there is nothing now."""
        try:
            data = os.read(self._ends.stdout.fileno(), _READ_BYTES)
        except BlockingIOError:
            return None
        self._at_end = not data
        return data or None

    def _fail_at_end(self, begun: bool) -> NoReturn:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        what = self._how_it_ended() if self.ended() else "the process closed its standard output"
        raise _GivenUp("died", f"{what} {'within a line' if begun else 'before it answered'}")


class _Tail:
    """The end of what is written to standard error. It is read by a thread, so that nobody waits for us."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = b""
        self._lock = threading.Lock()
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._drain, name="memmock-subject-stderr", daemon=True)
        self._thread.start()

    def taken(self) -> str:
        """Return the last of what was written since this was asked before."""
        with self._lock:
            kept, self._kept = self._kept, b""
        return kept.decode(errors="replace")[-KEPT_ERRORS:]

    def stop(self) -> None:
        """Read what is left, and end the thread."""
        self._thread.join(_END_S)
        os.close(self._wake)  # a process that has left its group may hold the pipe
        self._thread.join()
        os.close(self._woken)

    def _drain(self) -> None:
        poll, errors = select.poll(), self._stream.fileno()
        for fd in (errors, self._woken):
            poll.register(fd, select.POLLIN)
        while self._woken not in {fd for fd, _ in poll.poll()}:
            data = os.read(errors, _READ_BYTES)
            if not data:
                return
            with self._lock:
                self._kept = (self._kept + data)[-4 * KEPT_ERRORS :]  # four bytes a character at most


def _result(line: bytes, call_id: str, authorization: str) -> dict[str, Any]:
    """Return the tool result of a line.

    Raises:
        _GivenUp: the line is none, or is that of another call.
    """

    def garbled(what: str) -> _GivenUp:
        text = shown(line[:100_000].decode(errors="replace"), authorization)
        hint = "" if line.startswith(b'{"') else f"; {_HINT}"
        return _GivenUp("garbled", f"the process wrote a line that {what}{hint}: {text}")

    try:
        value = strictjson.parse_quickly(line)
    except UnicodeDecodeError:
        raise garbled("is not UTF-8") from None
    except json.JSONDecodeError:
        raise garbled("is not JSON") from None
    except ValueError as error:
        raise garbled(f"is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise garbled("is not a JSON object")
    if "id" not in value:
        raise garbled(f'has no id, and should have "{call_id}"')
    if (given := value.pop("id")) != call_id:
        if isinstance(given, str) and given.isdecimal() and int(given[:18]) < int(call_id):
            raise garbled(f'answers the earlier call "{given[:18]}" instead of "{call_id}"')
        raise garbled(f'has another id than the call, which has "{call_id}"')
    return value
