"""A consumer under test that is a callable: threads, loops, and what it raises."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading

import pytest

from memmock.consumer_conformance.function import Function
from memmock.consumer_conformance.process import KEPT_ERRORS
from memmock.tool_result import ToolResult

PATIENCE_S = 20.0
SECRET = "k-5f0c1d9e77"
CONFIG = {"endpoint": "http://127.0.0.1:1/memory", "authorization": f"Bearer {SECRET}", "timeout_ms": 1000}
ASKED = {"query": "tea"}
GOOD = {"ok": True, "memories": []}


def call(subject, patience_s=PATIENCE_S):
    return subject.call(CONFIG, ASKED, patience_s)


def own_threads():
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("memmock-subject")}


@contextlib.contextmanager
def function(call, **options):
    subject = Function(call, **options)
    try:
        yield subject
    finally:
        subject.close()


def test_function_is_called_with_copies_in_one_thread():
    seen = []

    def retrieve(memory_retrieval, request):
        seen.append((dict(memory_retrieval), dict(request), threading.current_thread()))
        memory_retrieval.clear()
        request.clear()
        return {**GOOD, "id": "1"}

    with function(retrieve) as subject:
        assert subject.name == "retrieve"
        assert subject.fresh
        assert call(subject).value == call(subject).value == GOOD
        assert not subject.fresh
    assert [each[:2] for each in seen] == [(CONFIG, ASKED)] * 2
    assert seen[0][2] is seen[1][2] is not threading.current_thread()


def test_function_may_be_named():
    with function(lambda config, request: GOOD, name="ours") as subject:
        assert subject.name == "ours"


def test_object_is_named_for_its_class():
    class Retriever:
        async def __call__(self, memory_retrieval, request):
            return GOOD

    with function(Retriever()) as subject:
        assert subject.name == "Retriever"
        assert call(subject).value == GOOD


def test_tool_result_of_the_reference_consumer_is_taken():
    with function(lambda config, request: ToolResult.failed("http_error", "no", 503)) as subject:
        error = {"code": "http_error", "message": "no", "status": 503}
        assert call(subject).value == {"ok": False, "error": error}


def test_coroutines_run_on_one_loop_that_goes_on_between_the_calls():
    loops, ticked = [], threading.Event()

    async def tick():
        await asyncio.sleep(0)
        ticked.set()

    async def retrieve(memory_retrieval, request):
        loops.append(asyncio.get_running_loop())
        if len(loops) == 1:
            loops[0].call_soon(lambda: loops[0].create_task(tick()))
        return GOOD

    with function(retrieve) as subject:
        assert call(subject).value == GOOD
        assert ticked.wait(PATIENCE_S)
        assert call(subject).value == GOOD
    assert loops[0] is loops[1]
    assert loops[0].is_closed()


def test_function_that_returns_an_awaitable_is_awaited():
    async def retrieve(memory_retrieval, request):
        await asyncio.sleep(0)
        return GOOD

    with function(lambda *arguments: retrieve(*arguments)) as subject:
        assert call(subject).value == GOOD


def test_function_may_run_a_loop_of_its_own():
    async def retrieve():
        return GOOD

    with function(lambda *arguments: asyncio.run(retrieve())) as subject:
        assert call(subject).value == GOOD


def raising(error):
    def retrieve(memory_retrieval, request):
        raise error

    async def retrieve_async(memory_retrieval, request):
        raise error

    return retrieve, retrieve_async


@pytest.mark.parametrize("number", [0, 1], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (TypeError("no\nlen()"), "TypeError: no len()"),
        (TimeoutError(), "TimeoutError"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (asyncio.CancelledError(), "asyncio.exceptions.CancelledError"),
        (ValueError(f"Bearer {SECRET}"), "ValueError: [authorization]"),
        (ValueError("x" * 1000), f"ValueError: {'x' * 148}…"),
    ],
)
def test_what_a_function_raises_is_told(error, message, number):
    with function(raising(error.with_traceback(None))[number]) as subject:
        told = call(subject)
        assert (told.value, told.failure) == (None, "died")
        assert told.message == f"the callable raised {message}"
        assert "in retrieve" in told.errors
        assert "function.py" not in told.errors
        assert len(told.errors) <= KEPT_ERRORS
        assert subject.fresh
        assert call(subject).failure == "died"


@pytest.mark.parametrize("number", [0, 1], ids=["sync", "async"])
def test_outcome_of_pytest_is_not_taken_for_a_failure(number):
    def retrieve(memory_retrieval, request):
        pytest.skip("not today")

    async def retrieve_async(memory_retrieval, request):
        pytest.skip("not today")

    made = function((retrieve, retrieve_async)[number])
    with made as subject, pytest.raises(pytest.skip.Exception, match="not today"):
        call(subject)


LOOP = {}
LOOP["again"] = LOOP


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "returned NoneType, not a dict or what has to_json()"),
        ([], "returned list, not a dict or what has to_json()"),
        (
            {"ok": float("nan")},
            "returned a dict that is not JSON: Out of range float values are not JSON compliant",
        ),
        ({"ok": b"x"}, "returned a dict that is not JSON: Object of type bytes is not JSON serializable"),
        (LOOP, "returned a dict that is not JSON: Circular reference detected"),
    ],
)
def test_value_that_is_no_tool_result_is_told(value, message):
    with function(lambda *arguments: value) as subject:
        told = call(subject)
        assert (told.value, told.failure) == (None, "garbled")
        assert told.message.startswith(f"the callable {message}")


def test_tuples_become_arrays_as_from_a_process():
    with function(lambda *arguments: {"ok": True, "memories": ({"summary": "\ud83d"},)}) as subject:
        assert call(subject).value == {"ok": True, "memories": [{"summary": "\ud83d"}]}


def test_silent_function_is_left_to_itself_and_the_next_call_is_made_elsewhere():
    over, threads = threading.Event(), []

    def retrieve(memory_retrieval, request):
        threads.append(threading.current_thread())
        if len(threads) == 1:
            over.wait(PATIENCE_S)
        return GOOD

    with function(retrieve) as subject:
        told = call(subject, patience_s=0.1)
        assert (told.value, told.failure) == (None, "silent")
        assert told.message == "the callable gave no result within 0.1 s, and was left to itself"
        assert subject.fresh
        assert call(subject).value == GOOD
    over.set()
    threads[0].join(PATIENCE_S)
    assert not threads[0].is_alive()
    assert threads[0] is not threads[1]


def test_silent_coroutine_is_cancelled_and_its_loop_is_kept():
    loops, cancelled = [], []

    async def retrieve(memory_retrieval, request):
        loops.append(asyncio.get_running_loop())
        if len(loops) == 1:
            try:
                await asyncio.sleep(PATIENCE_S)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise
        return GOOD

    with function(retrieve) as subject:
        told = call(subject, patience_s=0.1)
        assert told.message == "the callable gave no result within 0.1 s"
        assert cancelled == [True]
        assert call(subject).value == GOOD
    assert loops[0] is loops[1]


def test_coroutine_that_holds_up_its_loop_is_left_behind_with_it():
    over, threads = threading.Event(), []

    async def retrieve(memory_retrieval, request):
        threads.append(threading.current_thread())
        if len(threads) == 1:
            over.wait(PATIENCE_S)
        return GOOD

    with function(retrieve) as subject:
        assert call(subject, patience_s=0.1).failure == "silent"
        assert call(subject).value == GOOD
    over.set()
    threads[0].join(PATIENCE_S)
    assert not threads[0].is_alive()


def test_interrupt_does_not_wait_for_the_function():
    over = threading.Event()

    def retrieve(memory_retrieval, request):
        os.kill(os.getpid(), signal.SIGINT)
        over.wait(PATIENCE_S)
        return GOOD

    with function(retrieve) as subject, pytest.raises(KeyboardInterrupt):
        call(subject)
    over.set()


def test_restart_keeps_the_loop_on_which_sessions_live():
    loops = []

    async def retrieve(memory_retrieval, request):
        loops.append(asyncio.get_running_loop())
        return GOOD

    with function(retrieve) as subject:
        call(subject)
        subject.restart()
        assert subject.fresh
        call(subject)
    assert loops[0] is loops[1]


def test_closed_function_leaves_no_thread_and_no_task():
    ended = threading.Event()

    async def background():
        try:
            await asyncio.sleep(PATIENCE_S)
        finally:
            ended.set()

    async def retrieve(memory_retrieval, request):
        retrieve.task = asyncio.create_task(background())
        await asyncio.sleep(0)
        return GOOD

    with function(retrieve) as subject, function(lambda *arguments: GOOD) as other:
        call(subject)
        call(other)
        assert own_threads()
    assert ended.is_set()
    assert own_threads() == set()
