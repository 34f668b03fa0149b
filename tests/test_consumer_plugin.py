"""`memmock_verdict` as a user meets it: suites that check a consumer, in a pytest of their own."""

from __future__ import annotations

import sys

import pytest

from memmock.consumer_conformance import act, bench, checks, function, process, shown
from memmock.report import text
from memmock.scenarios import CATALOGUE
from tests.subjects import BUGGY_FILE

LOADED = (act, bench, checks, function, process, shown, text)  # once, rather than by each suite

GOOD = """
import pytest
from memmock import Consumer, Retrieval, RetrievalConfig

def retrieve(memory_retrieval, request):
    with Consumer(RetrievalConfig(**memory_retrieval)) as consumer:
        return consumer.retrieve(Retrieval(**request))

async def aretrieve(memory_retrieval, request):
    async with Consumer(RetrievalConfig(**memory_retrieval)) as consumer:
        return await consumer.aretrieve(Retrieval(**request))

def bad(memory_retrieval, request):
    result = retrieve(memory_retrieval, request).to_json()
    if not result["ok"]:
        result["error"]["code"] = "sorry"
    return result
"""
TEST = """
@pytest.fixture
def memmock_consumer():
    return {consumer}

@pytest.mark.memmock_scenarios({names})
def test_consumer(memmock_verdict):
    {body}
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """Return what runs a suite, here."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugins = ("-p", "memmock.plugin", "-p", "memmock.consumer_plugin", "-p", "no:cacheprovider")
    pytester.makeini("[pytest]\nfilterwarnings = error\n")

    def run(source, *options):
        pytester.makepyfile(test_consumer=GOOD + source)
        result = pytester.runpytest_inprocess(*plugins, *options)
        shown = result.stdout.str() + result.stderr.str()
        assert "INTERNALERROR" not in shown
        assert "Traceback" not in shown
        assert "consumer_plugin.py" not in shown
        return result

    return run


def for_consumer(consumer, names="'empty', 'server-error', 'plain-text'", body="pass"):
    return TEST.format(consumer=consumer, names=names, body=body)


def test_good_function_passes(suite):
    suite(for_consumer("retrieve")).assert_outcomes(passed=3)


def test_good_coroutine_passes(suite):
    suite(for_consumer("aretrieve")).assert_outcomes(passed=3)


def test_command_passes(suite):
    command = [sys.executable, str(BUGGY_FILE), "run", "right"]
    suite(for_consumer(command)).assert_outcomes(passed=3)


def test_bad_function_fails_where_it_is_bad(suite):
    result = suite(for_consumer("bad"))
    result.assert_outcomes(passed=1, failed=2)
    lines = result.stdout.str()
    assert "test_consumer[empty]" not in lines
    assert "_ test_consumer[server-error] _" in lines
    assert "CON002" in lines
    assert 'the code of the error is "sorry", should be one of timeout, connection_failed' in lines
    assert "ERROR" not in lines  # it is the test that fails, not its set-up


def test_body_of_a_test_is_run_when_the_verdict_is_good(suite):
    body = "assert memmock_verdict.matrix[0].seen == 'ok'"
    result = suite(for_consumer("retrieve", "'empty', 'server-error'", body))
    result.assert_outcomes(passed=1, failed=1)
    assert "assert 'http_error' == 'ok'" in result.stdout.str()


def test_consumer_that_is_not_overridden_is_a_clear_error(suite):
    source = '@pytest.mark.memmock_scenarios("empty")\ndef test_consumer(memmock_verdict): pass\n'
    result = suite(source, "-W", "default")  # the mock of the default consumer warns that it was not called
    result.assert_outcomes(errors=1, warnings=1)
    assert (
        "override the fixture memmock_consumer: return your function (memory_retrieval, request) -> tool "
        "result, or the command of your adapter as a list"
    ) in result.stdout.str()


@pytest.mark.parametrize("consumer", ["'python adapter.py'", "None", "7"])
def test_consumer_that_is_none_is_a_clear_error(suite, consumer):
    result = suite(for_consumer(consumer, "'empty'"))
    result.assert_outcomes(errors=1)
    assert "override the fixture memmock_consumer: " in result.stdout.str()


def test_verdict_without_the_marker_is_a_clear_error(suite):
    source = for_consumer("retrieve").replace("@pytest.mark.memmock_scenarios", "#")
    result = suite(source)
    result.assert_outcomes(errors=1)
    assert "memmock_verdict is for tests with @pytest.mark.memmock_scenarios" in result.stdout.str()


def test_command_that_cannot_be_started_is_a_clear_error(suite):
    result = suite(for_consumer(["/dev/null/nothing"], "'empty'"))
    result.assert_outcomes(errors=1)
    assert "the command '/dev/null/nothing' cannot be started: " in result.stdout.str()


def test_marker_without_names_stands_for_all_scenarios(suite):
    result = suite(for_consumer("retrieve", ""), "--collect-only", "-q")
    collected = [line.partition("[")[2].rstrip("]") for line in result.stdout.lines if "::test_" in line]
    assert collected == list(CATALOGUE)


def test_marker_without_names_can_leave_some_out(suite):
    result = suite(for_consumer("retrieve", "without=['timing', 'empty']"), "--collect-only", "-q")
    collected = {line.partition("[")[2].rstrip("]") for line in result.stdout.lines if "::test_" in line}
    out = {scenario.name for scenario in CATALOGUE.values() if scenario.family == "timing"} | {"empty"}
    assert collected == set(CATALOGUE) - out


def test_consumer_has_one_stand_for_all_its_tests(suite):
    source = """
class Client:
    def retrieve(self, memory_retrieval, request):
        return retrieve(memory_retrieval, request)

CLIENT = Client()

@pytest.fixture
def memmock_consumer():
    return CLIENT.retrieve

@pytest.mark.memmock_scenarios("empty", "bad-request")
def test_consumer(memmock_verdict): pass

def test_stands(memmock_bench, memmock_consumer):
    assert memmock_bench(memmock_consumer) is memmock_bench(CLIENT.retrieve)
    assert memmock_bench(memmock_consumer).calls > 6
"""
    suite(source).assert_outcomes(passed=3)


def test_old_stands_are_ended_where_each_test_has_a_consumer(suite):
    source = """
import threading

@pytest.fixture
def memmock_consumer():
    return lambda *arguments: retrieve(*arguments)

@pytest.mark.memmock_scenarios("statuses")
def test_consumer(memmock_verdict):
    assert threading.active_count() < 40
"""
    result = suite(source)
    passed = sum(scenario.family == "statuses" for scenario in CATALOGUE.values())
    result.assert_outcomes(passed=passed)


def test_timeout_of_the_settings_is_that_of_the_consumer(suite):
    source = """
from memmock.mock import MockSettings

@pytest.fixture(scope="session")
def memmock_settings():
    return MockSettings(timeout_ms=777)

@pytest.fixture
def memmock_consumer():
    def noted(memory_retrieval, request):
        assert memory_retrieval["timeout_ms"] == 777
        return retrieve(memory_retrieval, request)
    return noted

@pytest.mark.memmock_scenarios("empty")
def test_consumer(memmock_verdict): pass
"""
    suite(source).assert_outcomes(passed=1)
