"""A consumer that is a callable of this program."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import queue
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

from memmock import strictjson
from memmock.consumer_conformance.process import KEPT_ERRORS, shown
from memmock.consumer_conformance.subject import Told

_END_S = 0.5
"""How long a coroutine that was cancelled, or a loop that was stopped, may take."""
_ITS_OWN = (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError)
"""What a callable may raise that is its failure; others, as the outcomes of pytest, are for the caller."""


class Function:
    """Calls a callable, sync or async, as `call(memory_retrieval, request)`, in threads of its own.

    All sync calls are made in one thread. All coroutines run on one event loop, which goes on between the
    calls, so that sessions live on. A call that does not come back is left to itself: the next one gets
    another thread or loop.

    Args:
        call: takes two dicts and returns, or is awaited for, a tool result: a dict, or what has `to_json()`.
        name: how it is called in reports; that of the callable when not given.
    """

    def __init__(
        self, call: Callable[[dict[str, Any], dict[str, Any]], Any], *, name: str | None = None
    ) -> None:
        self._call = call
        self._name = name or getattr(call, "__name__", "") or type(call).__name__
        self._is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
            getattr(call, "__call__", None)  # noqa: B004  # of an object whose class has an async one
        )
        self._fresh = True
        self._worker: _Worker | None = None
        self._loop: _Loop | None = None

    @property
    def name(self) -> str:
        """The name of the callable, or the one that was given."""
        return self._name

    @property
    def fresh(self) -> bool:
        """Whether it was not called yet, or not since it failed."""
        return self._fresh

    def call(
        self, memory_retrieval: Mapping[str, Any], request: Mapping[str, Any], patience_s: float
    ) -> Told:
        """Return what it makes of one retrieval. It gets copies of both.

        What it raises that is no failure of its own (pytest's outcomes) is raised.
        """
        arguments = json.loads(json.dumps([dict(memory_retrieval), dict(request)]))
        self._fresh = False
        started = time.monotonic()
        future = self._begun(arguments)
        try:
            wait([future], patience_s)
        except BaseException:
            self._end_silent(future)
            raise
        elapsed_s = time.monotonic() - started
        if not future.done():
            self._fresh = True
            left = "" if self._end_silent(future) else ", and was left to itself"
            message = f"the callable gave no result within {patience_s:.3g} s{left}"
            return Told(None, elapsed_s, "silent", message)
        told = _told(future.result(), elapsed_s, str(memory_retrieval["authorization"]))
        self._fresh = bool(told.failure)
        return told

    def restart(self) -> None:
        """Treat the next call as the first. What the callable itself keeps is out of reach."""
        self._fresh = True

    def close(self) -> None:
        """End the threads, and what still runs on the loop."""
        if self._loop is not None:
            self._loop.stop()
        if self._worker is not None:
            self._worker.stop()
        self._loop = self._worker = None
        self._fresh = True

    def _begun(self, arguments: list[Any]) -> Future[_Outcome]:
        self._loop = self._loop or _Loop()
        if self._is_async:
            return self._loop.begun(lambda: self._call(*arguments))
        self._worker = self._worker or _Worker()
        loop = self._loop

        def called() -> _Outcome:
            outcome = _outcome(lambda: self._call(*arguments))
            try:
                goes_on = inspect.isawaitable(outcome.value)
            except Exception:  # of an object that says odd things of its class
                return outcome
            return loop.begun(lambda: outcome.value).result() if goes_on else outcome

        return self._worker.begun(called)

    def _end_silent(self, future: Future[_Outcome]) -> bool:
        """Get rid of a call that goes on; tell whether it has ended."""
        assert self._loop is not None
        self._loop.cancel()
        if wait([future], _END_S).done:
            return True
        if self._worker is not None:
            self._worker.leave()
            self._worker = None
        if not self._loop.answers():
            self._loop.leave()
            self._loop = None
        return False


class _Outcome(NamedTuple):
    """What came of a call: a value, or what was raised."""

    value: Any = None
    raised: BaseException | None = None


def _outcome(make: Callable[[], Any]) -> _Outcome:
    try:
        value = make()
        return _Outcome(value.to_json() if hasattr(value, "to_json") else value)
    except BaseException as error:
        return _Outcome(raised=error)


def _told(outcome: _Outcome, elapsed_s: float, authorization: str) -> Told:
    error = outcome.raised
    if isinstance(error, _ITS_OWN):
        what = "".join(traceback.format_exception_only(error)).strip().splitlines()
        message = f"the callable raised {shown(' '.join(what), authorization)}"
        return Told(None, elapsed_s, "died", message, _traceback(error))
    if error is not None:
        raise error
    if not isinstance(outcome.value, dict):
        message = f"the callable returned {type(outcome.value).__name__}, not a dict or what has to_json()"
        return Told(None, elapsed_s, "garbled", message)
    try:
        text = json.dumps(outcome.value, allow_nan=False)
        value = strictjson.parse_quickly(text.encode())
    except (TypeError, ValueError, RecursionError) as reason:
        message = f"the callable returned a dict that is not JSON: {shown(str(reason), authorization)}"
        return Told(None, elapsed_s, "garbled", message)
    value.pop("id", None)
    return Told(value, elapsed_s)


def _traceback(error: BaseException) -> str:
    """Return the end of the traceback, from the first frame that is not ours."""
    inner = error.__traceback__
    while inner is not None and inner.tb_frame.f_code.co_filename == __file__:
        inner = inner.tb_next
    return "".join(traceback.format_exception(type(error), error, inner))[-KEPT_ERRORS:]


class _Worker:
    """A thread that makes one call after the other."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[Callable[[], _Outcome], Future[_Outcome]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._work, name="memmock-subject", daemon=True)
        self._thread.start()

    def begun(self, call: Callable[[], _Outcome]) -> Future[_Outcome]:
        """Return the future of a call that begins now."""
        future: Future[_Outcome] = Future()
        self._waiting.put((call, future))
        return future

    def leave(self) -> None:
        """Let the thread end once its call has."""
        self._waiting.put(None)

    def stop(self) -> None:
        """End the thread."""
        self.leave()
        self._thread.join()

    def _work(self) -> None:
        while (work := self._waiting.get()) is not None:
            call, future = work
            future.set_result(call())


class _Loop:
    """An event loop that runs in a thread of its own."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memmock-subject-loop", daemon=True)
        self._thread.start()
        self._ready.wait()

    def begun(self, make: Callable[[], Any]) -> Future[_Outcome]:
        """Return the future of a coroutine that begins now."""
        return asyncio.run_coroutine_threadsafe(self._outcome(make), self._loop)

    def cancel(self) -> None:
        """Cancel the call that is going on."""
        self._soon(lambda: self._task and self._task.cancel())

    def answers(self) -> bool:
        """Tell whether the loop still runs, rather than being held up by a call."""
        answered = threading.Event()
        self._soon(answered.set)
        return answered.wait(_END_S)

    def leave(self) -> None:
        """Let the thread end as soon as it can."""
        self._soon(self._over.set)

    def stop(self) -> None:
        """Cancel what runs, and end the thread."""
        self.leave()
        self._thread.join(_END_S)

    def _soon(self, do: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(do)

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._task: asyncio.Task[Any] | None = None
        self._ready.set()
        await self._over.wait()

    async def _outcome(self, make: Callable[[], Any]) -> _Outcome:
        self._task = asyncio.current_task()
        try:
            value = await make()
        except BaseException as error:
            return _Outcome(raised=error)
        finally:
            self._task = None
        return _outcome(lambda: value)
