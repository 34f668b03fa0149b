"""The plugin as a user meets it: suites that run in a pytest of their own."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

SUITE = Path(__file__).parent.parent / "fixtures" / "suite"

# Each suite runs in a process of its own, so that what it leaves behind would be seen there.
pytestmark = pytest.mark.usefixtures("suite_options")


@pytest.fixture
def suite_options(pytester):
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n")


def run(pytester, *options):
    return pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider", *options)


def copy(pytester, *names):
    for name in ("clients.py", *names):
        pytester.path.joinpath(name).write_text((SUITE / name).read_text("utf-8"), "utf-8")


def test_sample_suite_passes(pytester):
    copy(pytester, "test_clients.py")
    run(pytester).assert_outcomes(passed=14)


def test_sample_suite_passes_in_random_order_on_several_workers(pytester):
    copy(pytester, "test_clients.py")
    pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n", "3").assert_outcomes(passed=14)


def test_broken_clients_fail_with_a_message_worth_reading(pytester):
    copy(pytester, "test_broken_client.py")
    result = run(pytester, "-W", "default::memmock.mock.MemmockWarning")
    text = result.stdout.str()
    result.assert_outcomes(passed=5, failed=7, errors=4, warnings=2)
    assert "Traceback" not in text

    assert (
        """The consumer broke the contract in 2 of 2 calls.

call 1: POST /memory_retrieval {"query": "咖啡", "user_id": "u-17", "memory_types": ["preference"]} -> 200
  REQ301 error at body /user_id: """
        in text
    )
    assert 'call 2: POST /memory_retrieval {"query": "", "max_results": 0} -> 400' in text
    assert "REQ003 error at header Accept: " in text
    assert "REQ202 error at body /query: must not be empty" in text
    assert "REQ209 error at body /max_results: must be an integer of at least 1, not 0" in text
    assert '  @pytest.mark.memmock(allow=["REQ003", "REQ202", "REQ209", "REQ301"])' in text
    assert "`memmock rules REQ003` explains a rule." in text
    assert "MemmockWarning: call 1 was answered with 404: nothing is here; the path " in text

    assert (
        "Expected a retrieval with query='咖啡', memory_types=['preference'], max_results=3, "
        "but none of 2 calls matched."
    ) in text
    assert (
        """Nearest is call 2:
E         memory_types   expected ["preference"]   received ["profile"]"""
    ) in text
    assert "During handling of the above exception" not in text  # a message is not the context of itself
    assert ": in remember" not in text  # no frame of ours
    assert "Expected a retrieval, but no call came." in text
    assert "Is the code under test configured with the endpoint http://127.0.0.1:" in text
    assert "Expected no call, but 1 call came:" in text
    assert "Expected 1 retrieval with query='茶', but 3 of 3 calls matched." in text
    assert "Expected 2 calls within 0.05 s, but none came." in text
    assert "a retrieval has no field 'queri'; its fields are query, live_id, " in text
    assert "memories[0] has no summary" in text
    assert "there is no rule 'REQ999'; `memmock rules` lists them" in text
    assert "@pytest.mark.memmock takes allow=[codes of rules], not " in text
    assert "REQ202 error at body /query: must be a string, not 7" in text
    assert "MemmockWarning: call 1: REQ203 warning at body /query: " in text


def test_settings_are_a_fixture_to_override(pytester):
    persona = (SUITE.parent / "persona" / "small.yaml").read_text("utf-8")
    pytester.path.joinpath("persona.yaml").write_text(persona, "utf-8")
    pytester.makeconftest(
        """
        import pytest
        from memmock import MockSettings

        @pytest.fixture(scope="session")
        def memmock_settings():
            return MockSettings(
                persona="persona.yaml", path="/v1/memory", authorization="Key 7", timeout_ms=250
            )
        """
    )
    pytester.makepyfile(
        """
        def test_settings(memmock, memmock_consumer):
            assert memmock.endpoint.endswith("/v1/memory")
            assert memmock.config() == {
                "enabled": True, "endpoint": memmock.endpoint, "authorization": "Key 7", "timeout_ms": 250
            }
            assert len(memmock_consumer.retrieve("a").memories) == min(5, len(memmock.memories)) > 0
        """
    )
    run(pytester).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('MockSettings(persona="nowhere.yaml")', "*nowhere.yaml*"),
        ('MockSettings(path="memory")', "the path must start with /*"),
    ],
)
def test_settings_that_cannot_be_used_are_a_clear_error(pytester, settings, message):
    pytester.makeconftest(
        f"""
        import pytest
        from memmock import MockSettings

        @pytest.fixture(scope="session")
        def memmock_settings():
            return {settings}
        """
    )
    pytester.makepyfile("def test(memmock): pass\ndef test_other(memmock_httpserver): pass")
    result = run(pytester)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines([message])
    assert "Traceback" not in result.stdout.str()
    assert "memmock/plugin.py" not in result.stdout.str()


def test_exception_in_a_handler_of_the_test_reaches_the_test(pytester):
    pytester.makepyfile(
        """
        import urllib.request, urllib.error
        import pytest
        from memmock import Server

        def test_handler():
            def handler(request):
                raise LookupError("the reason")
            with Server(handler) as server:
                with pytest.raises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(server.url)
                caught.value.close()
                with pytest.raises(LookupError, match="the reason"):
                    server.check()
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_session_leaves_no_thread_and_no_socket(pytester):
    pytester.makeconftest(
        """
        import gc, threading

        def pytest_unconfigure(config):
            gc.collect()
            left = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
            print(f"left behind: {left}")
        """
    )
    pytester.makepyfile(
        """
        def test_one(memmock_consumer):
            assert memmock_consumer.retrieve("a").ok

        def test_two(memmock_server):
            with memmock_server.fresh():
                pass
        """
    )
    result = run(pytester, "-s", "-W", "error")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["left behind: []"])


def test_marker_is_listed(pytester):
    pytester.runpytest("--markers").stdout.fnmatch_lines(["@pytest.mark.memmock(allow=*"])


HEAVY = ("hypothesis", "vcr", "aiohttp", "click", "yaml", "asyncio", "httptools", "uvloop", "werkzeug")


def test_plugin_imports_nothing_heavy():
    program = f"""
import sys, pytest
before = set(sys.modules)
import memmock.plugin
print(sorted(set({HEAVY!r}) & (set(sys.modules) - before)))
"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert output.stdout == "[]\n"


def test_no_thread_is_left_in_this_process(memmock_server):
    before = threading.active_count()
    with memmock_server.fresh():
        pass
    assert threading.active_count() == before
