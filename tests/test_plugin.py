"""The plugin as a user meets it: suites that run in a pytest of their own."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memmock.scenarios import CATALOGUE, family

SUITE = Path(__file__).parent.parent / "fixtures" / "suite"

# Each suite runs in a process of its own, so that what it leaves behind would be seen there.
pytestmark = pytest.mark.usefixtures("suite_options")


@pytest.fixture
def suite_options(pytester):
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n")


QUICK = ("-p", "no:cacheprovider", "-p", "no:schemathesis")  # it takes two seconds to load


def run(pytester, *options):
    return pytester.runpytest_subprocess("-p", "no:randomly", *QUICK, *options)


@pytest.fixture
def bare(pytester, monkeypatch):
    """Return what runs a suite with memmock and httpserver alone, which takes a fraction of the time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    plugins = ("-p", "memmock.plugin", "-p", "pytest_httpserver.pytest_plugin", "-p", "no:cacheprovider")

    def run(*options):
        result = pytester.runpytest_subprocess(*plugins, *options)
        text = result.stdout.str() + result.stderr.str()
        assert "INTERNALERROR" not in text
        assert "Traceback" not in text
        assert "memmock/plugin.py" not in text
        return result

    return run


def copy(pytester, *names):
    for name in ("clients.py", *names):
        pytester.path.joinpath(name).write_text((SUITE / name).read_text("utf-8"), "utf-8")


def message(result, title):
    """Return what is told of an error, below the line that has its title."""
    lines = result.stdout.lines
    (start,) = (n for n, line in enumerate(lines) if line.strip("_ ") == title and line.startswith("_"))
    end = next(n for n, line in enumerate(lines[start + 1 :], start + 1) if line[:3] in ("___", "===", "---"))
    return "\n".join(lines[start + 1 : end])


CLIENTS = 14
FAULTS = sum(len(family(name)) for name in ("connection", "statuses", "bodies")) - 2 + 4
"""How many tests the sample suite has; of the families two are left out, and four are of no family."""


def test_sample_suite_passes(pytester):
    copy(pytester, "test_clients.py", "test_faults.py")
    run(pytester).assert_outcomes(passed=CLIENTS + FAULTS)


def test_sample_suite_passes_in_random_order_on_several_workers(pytester):
    copy(pytester, "test_clients.py", "test_faults.py")
    result = pytester.runpytest_subprocess(*QUICK, "-n", "3")
    result.assert_outcomes(passed=CLIENTS + FAULTS)


def test_broken_clients_fail_with_a_message_worth_reading(pytester):
    copy(pytester, "test_broken_client.py")
    result = run(pytester, "-W", "default::memmock.mock.MemmockWarning")
    text = result.stdout.str()
    result.assert_outcomes(passed=7, failed=10, errors=5, warnings=3)
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
    assert (
        "@pytest.mark.memmock takes scenario=name, plan=text and allow=[codes of rules], no scenari; "
        "memmock.use and memmock.plan take the rest"
    ) in text
    assert "HTTPError: 500 Server Error" in text
    assert "___ test_client_that_trusts_the_answer[memories-null] ___" in text
    assert "___ test_client_that_trusts_the_answer[memories-missing] ___" in text
    assert '  "server-error, success" was played 1 of 2 times; next would be success\n' in text
    assert "MemmockWarning: call 2 followed a redirect, as a POST with the authorization; " in text
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


# ---- the markers


def test_markers_are_listed(bare):
    text = bare("--markers").stdout.str()
    assert (
        "@pytest.mark.memmock(scenario=…, plan=…, allow=[…]): what the mock plays (`memmock scenarios` lists "
        "it all), and which rules of the contract the consumer may break (`memmock rules` lists them)\n"
    ) in text
    assert (
        "@pytest.mark.memmock_scenarios(*names, without=[…]): run the test once for each of these scenarios "
        "and families of scenarios, all when none is named; the fixture memmock_scenario is the one that is "
        "played\n"
    ) in text


def test_marker_that_is_nearest_says_what_is_played(pytester, bare):
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.memmock(scenario="server-error")

        def played(memmock, consumer, calls=1):
            for _ in range(calls):
                consumer.retrieve("a")
            return [call.played for call in memmock.calls]

        def test_module(memmock, memmock_consumer):
            assert played(memmock, memmock_consumer) == ["server-error"]

        @pytest.mark.memmock(plan="null, 503")
        def test_plan_comes_before_the_scenario(memmock, memmock_consumer):
            assert played(memmock, memmock_consumer, 3) == ["null", "unavailable", "server-error"]

        @pytest.mark.memmock(scenario="empty", plan="html*2")
        class TestClass:
            def test_class(self, memmock, memmock_consumer):
                assert played(memmock, memmock_consumer, 3) == ["html", "html", "empty"]

            @pytest.mark.memmock(plan="nan")
            def test_plan_of_the_function(self, memmock, memmock_consumer):
                assert played(memmock, memmock_consumer, 2) == ["nan", "empty"]

            @pytest.mark.memmock(scenario="rate-limited(retry_after=7)", plan="nan")
            def test_function(self, memmock, memmock_consumer):
                assert played(memmock, memmock_consumer, 2) == ["nan", "rate-limited(retry_after=7)"]

        @pytest.mark.memmock(scenario="empty")
        @pytest.mark.memmock_scenarios("null")
        def test_chosen_scenario_wins(memmock, memmock_consumer):
            assert played(memmock, memmock_consumer) == ["null"]
        """
    )
    bare().assert_outcomes(passed=6)


def test_all_that_markers_allow_is_allowed(pytester, bare):
    pytester.makepyfile(
        """
        import urllib.request
        import pytest

        pytestmark = pytest.mark.memmock(allow=("REQ002",))

        @pytest.mark.memmock(allow="REQ003")
        def test_allowed(memmock):
            request = urllib.request.Request(memmock.endpoint, b'{"query": "a"}')
            request.add_header("Authorization", memmock.authorization)
            urllib.request.urlopen(request).close()
            assert {found.code for found in memmock.calls[0].violations} == {"REQ002", "REQ003"}
        """
    )
    bare().assert_outcomes(passed=1)


TAKES = "@pytest.mark.memmock takes scenario=name, plan=text and allow=[codes of rules], "
WRONG_MARKERS = {
    "scenario='lat'": "there is no scenario 'lat'; near it are late, ",
    "scenario='late(facter=2)'": "scenario late has no parameter 'facter'; it has factor",
    "scenario=''": "'' should be the name of a scenario, as late or late(factor=2)",
    "plan='late*'": "plan: 'late*' should be a scenario, or a scenario*N for N times",
    "plan='late, refused'": "plan: refused cannot be counted, as nobody sees who is refused",
    "'late'": f"{TAKES}not ('late',); memmock.use and memmock.plan take the rest",
    "scenari='late'": f"{TAKES}no scenari; memmock.use and memmock.plan take the rest",
    "scenario='late', times=2": f"{TAKES}no times; memmock.use and memmock.plan take the rest",
    "scenario=503": f"{TAKES}not {{'scenario': 503}}",
    "plan=['late']": f"{TAKES}not {{'plan': ['late']}}",
    "allow=3": f"{TAKES}not {{'allow': 3}}",
    "allow=[7, 'REQ003']": f"{TAKES}not {{'allow': [7, 'REQ003']}}",
    "allow=[['REQ003']]": f"{TAKES}not {{'allow': [['REQ003']]}}",
}


def test_marker_that_cannot_be_used_is_a_clear_error_at_setup(pytester, bare):
    tests = [
        f"@pytest.mark.memmock({arguments})\ndef test_{n}(memmock): assert False, 'it ran'\n"
        for n, arguments in enumerate(WRONG_MARKERS)
    ]
    pytester.makepyfile("import pytest\n\n" + "\n".join(tests))
    result = bare()
    result.assert_outcomes(errors=len(WRONG_MARKERS))
    for n, expected in enumerate(WRONG_MARKERS.values()):
        assert message(result, f"ERROR at setup of test_{n}").startswith(expected)


def test_plan_that_is_not_finished_fails_at_teardown(pytester, bare):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.memmock(plan="empty*2, success")
        def test_early_end(memmock, memmock_consumer):
            memmock_consumer.retrieve("茶")

        @pytest.mark.memmock(plan="empty")
        def test_no_call(memmock_httpserver):
            pass

        @pytest.mark.memmock(plan="empty, success")
        def test_end(memmock, memmock_consumer):
            for _ in range(3):
                memmock_consumer.retrieve("茶")

        def test_may_end_early(memmock):
            memmock.plan("empty", must_finish=False)
        """
    )
    result = bare()
    result.assert_outcomes(passed=4, errors=2)
    assert (
        message(result, "ERROR at teardown of test_early_end")
        == """A plan was not played to its end.

  "empty*2, success" was played 1 of 3 times; next would be empty

1 call came:
  call 1: POST /memory_retrieval {"query": "茶"} -> 200 (empty: completed)

For a plan that may end early: memmock.plan(…, must_finish=False)"""
    )
    assert (
        message(result, "ERROR at teardown of test_no_call")
        == """A plan was not played to its end.

  "empty" was played 0 of 1 times; next would be empty

No call came.

For a plan that may end early: memmock.plan(…, must_finish=False)"""
    )


def names(*families, without=()):
    return [each.name for name in families for each in family(name) if each.name not in without]


CHOICES = {
    "'timing'": names("timing"),
    "'late', 'empty'": ["empty", "late"],  # in the order of the catalogue
    "'timing', 'empty', 'late'": ["empty", *names("timing")],
    "'503', '429'": ["rate-limited", "unavailable"],
    "'timing', without=['drip', 'slow-headers']": names("timing", without=["drip", "slow-headers"]),
    "'timing', without='drip'": names("timing", without=["drip"]),
    "'statuses', without=('503',)": names("statuses", without=["unavailable"]),
    "'timing', 'bodies', without=['bodies', 'hang']": names("timing", without=["hang"]),
}


def test_marker_chooses_scenarios(pytester, bare):
    tests = [
        f"@pytest.mark.memmock_scenarios({arguments})\ndef test_{n}(memmock): pass\n"
        for n, arguments in enumerate(CHOICES)
    ]
    pytester.makepyfile("import pytest\n\n" + "\n".join(tests))
    collected = bare("--collect-only", "-q").stdout.lines
    expected = [f"test_{n}[{name}]" for n, chosen in enumerate(CHOICES.values()) for name in chosen]
    assert [line.partition("::")[2] for line in collected if "::" in line] == expected


def test_markers_of_class_and_function_add_up_and_play_each_scenario_once(pytester, bare):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.memmock_scenarios("late", "empty")
        class TestClass:
            @pytest.mark.memmock_scenarios("late", "null")
            @pytest.mark.parametrize("n", [1, 2])
            def test(self, memmock, n): pass
        """
    )
    collected = bare("--collect-only", "-q").stdout.lines
    found = [line.rpartition("::")[2] for line in collected if "::" in line]
    assert sorted(found) == sorted(f"test[{name}-{n}]" for name in ("late", "empty", "null") for n in (1, 2))


def test_chosen_scenario_is_played_and_at_hand(pytester, bare):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.memmock_scenarios("bodies", "empty")
        def test_chosen(memmock, memmock_consumer, memmock_scenario):
            assert memmock_consumer.retrieve("a").outcome in memmock_scenario.outcomes
            assert [call.played for call in memmock.calls] == [memmock_scenario.name]

        @pytest.mark.memmock_scenarios("refused")
        def test_refused(memmock_consumer):
            assert memmock_consumer.retrieve("a").outcome == "connection_failed"

        def test_none(memmock, memmock_consumer, memmock_scenario):
            assert memmock_scenario is None
            assert memmock_consumer.retrieve("a").ok
            assert not memmock.calls[0].played
        """
    )
    bare().assert_outcomes(passed=len(family("bodies")) + 3)


NAMES = "@pytest.mark.memmock_scenarios takes names of scenarios and families, and without=[names]"
WRONG_CHOICES = {
    "'timin'": "there is no scenario 'timin'; near it are timing, ",
    "'late', 'reset-mid-bod'": "there is no scenario 'reset-mid-bod'; near it are reset-mid-body, ",
    "'timing', without=['dripp']": "there is no scenario 'dripp'; near it are drip; ",
    "'late(factor=2)'": "there is no scenario 'late(factor=2)'; give the name alone, without parameters",
    "['late', 'hang']": NAMES,
    "503": NAMES,
    "'late', withot=['hang']": NAMES,
    "'timing', without=[503]": NAMES,
    "'timing', without=503": NAMES,
    "'timing', without=None": NAMES,
}


def test_choice_that_cannot_be_made_is_a_clear_error_of_collection(pytester, bare):
    for n, arguments in enumerate(WRONG_CHOICES):
        source = f"import pytest\n@pytest.mark.memmock_scenarios({arguments})\ndef test(memmock): 0"
        pytester.makepyfile(**{f"test_{n}": source})
    result = bare()
    result.assert_outcomes(errors=len(WRONG_CHOICES))
    for n, expected in enumerate(WRONG_CHOICES.values()):
        assert message(result, f"ERROR collecting test_{n}.py").startswith(f"test_{n}.py::test: {expected}")


def test_choice_for_a_test_without_a_mock_is_a_clear_error_of_collection(pytester, bare):
    pytester.makepyfile(test_it="import pytest\n@pytest.mark.memmock_scenarios('late')\ndef test(): 0")
    result = bare()
    result.assert_outcomes(errors=1)
    assert message(result, "ERROR collecting test_it.py") == (
        "test_it.py::test: @pytest.mark.memmock_scenarios is for tests that use a memmock fixture"
    )


REFUSED = [scenario for scenario in CATALOGUE.values() if scenario.needs]


def test_httpserver_plays_what_the_markers_say_but_for_a_few_by_name(pytester, bare):
    pytester.makepyfile(
        f"""
        import pytest
        from memmock import Consumer, RetrievalConfig

        def asked(memmock):
            with Consumer(RetrievalConfig(**memmock.config())) as consumer:
                return consumer.retrieve("a").outcome

        @pytest.mark.memmock(scenario="html", plan="null")
        def test_marker(memmock_httpserver):
            assert [asked(memmock_httpserver) for _ in range(2)] == ["invalid_response", "invalid_json"]

        @pytest.mark.memmock_scenarios("reset-mid-body", "garbage")
        def test_chosen(memmock_httpserver, memmock_scenario):
            assert asked(memmock_httpserver) in memmock_scenario.outcomes

        @pytest.mark.memmock_scenarios({", ".join(repr(scenario.name) for scenario in REFUSED)})
        def test_refused(memmock_httpserver):
            assert False, "it ran"
        """
    )
    result = bare()
    result.assert_outcomes(passed=3, errors=len(REFUSED))
    assert len(REFUSED) == 4
    for scenario in REFUSED:
        assert message(result, f"ERROR at setup of test_refused[{scenario.name}]") == (
            f"scenario {scenario.name} cannot be played here: it needs {scenario.needs}, which memmock's own "
            "server has (the fixture memmock, `memmock serve`)"
        )


def test_client_that_works_against_the_rules_is_warned_of(pytester, bare):
    pytester.makeconftest(
        """
        import pytest
        from memmock import MockSettings

        @pytest.fixture(scope="session")
        def memmock_settings():
            return MockSettings(timeout_ms=50)
        """
    )
    pytester.makepyfile(
        """
        import pytest, requests

        def ask(memmock):
            headers = {"Accept": "application/json", "Authorization": memmock.authorization}
            assert requests.post(memmock.endpoint, json={"query": "a"}, headers=headers, timeout=10).ok
            memmock.wait_until_sent()

        @pytest.mark.memmock(scenario="redirect-308")
        def test_follows(memmock): ask(memmock)

        @pytest.mark.memmock(scenario="redirect-elsewhere")
        def test_follows_elsewhere(memmock): ask(memmock)

        @pytest.mark.memmock(scenario="drip(factor=8)")
        def test_stays(memmock): ask(memmock)

        @pytest.mark.memmock(scenario="html")
        def test_does_not_ask(memmock): pass
        """
    )
    result = bare("-W", "default::memmock.mock.MemmockWarning")
    result.assert_outcomes(passed=4, warnings=4)
    result.stdout.fnmatch_lines(
        [
            "*::test_follows",
            "*MemmockWarning: call 2 followed a redirect, as a POST with the authorization; "
            "a consumer does not follow redirects",
            "*::test_follows_elsewhere",
            "*MemmockWarning: call 2 followed a redirect to *, as a POST without the authorization; "
            "a consumer does not follow redirects",
            "*::test_stays",
            "*MemmockWarning: call 1, drip(factor=8.0): the client stayed for * ms, but timeout_ms is 50; "
            "it bounds the whole exchange, not each read",
            "*::test_does_not_ask",
            "*MemmockWarning: html was to be played, and no call came for it",
        ]
    )


def test_failed_test_shows_what_was_asked_and_what_is_played(pytester, bare):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.memmock(scenario="html")
        def test_wrong(memmock, memmock_consumer):
            assert not memmock_consumer.retrieve("茶").ok
            memmock.chaos("null=1", seed=7)
            assert memmock_consumer.retrieve("茶").ok

        def test_wrong_without_calls(memmock):
            assert False

        def test_right(memmock_consumer):
            assert memmock_consumer.retrieve("茶").ok
        """
    )
    result = bare("-rA")
    result.assert_outcomes(passed=1, failed=2)
    assert result.stdout.str().count("- memmock -") == 1
    section = result.stdout.str().partition("- memmock -")[2].partition("\n")[2].partition("\n__")[0]
    assert (
        section
        == """It plays, the first that applies:
  null=1.0 (seed 7)
  html
2 calls came:
  call 1: POST /memory_retrieval {"query": "茶"} -> 200 (html: completed)
  call 2: POST /memory_retrieval {"query": "茶"} -> 200 (null: completed)"""
    )


def test_scenarios_are_played_on_several_workers(pytester, bare):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.memmock_scenarios("connection")
        def test_chosen(memmock, memmock_consumer, memmock_scenario):
            assert memmock_consumer.retrieve("a").outcome in memmock_scenario.outcomes

        @pytest.mark.memmock(plan="server-error, success")
        def test_marked(memmock, memmock_consumer):
            assert [memmock_consumer.retrieve("a").ok for _ in range(2)] == [False, True]
        """
    )
    bare("-p", "xdist", "-n", "2").assert_outcomes(passed=len(family("connection")) + 1)


# ---- imports

HEAVY = ("hypothesis", "vcr", "aiohttp", "click", "yaml", "asyncio", "httptools", "uvloop", "werkzeug")


def test_plugin_imports_nothing_heavy():
    program = f"""
import sys, pytest
before = set(sys.modules)
import memmock.plugin
new = set(sys.modules) - before
print(sorted(set({HEAVY!r}) & new), sorted(name for name in new if name.startswith("memmock")))
"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert output.stdout == "[] ['memmock', 'memmock.errors', 'memmock.plugin']\n"


def test_suite_without_a_mock_imports_nothing_of_it(pytester, bare):
    pytester.makepyfile(
        """
        import sys
        import pytest

        def test_without():
            heavy = {"hypothesis", "vcr", "aiohttp", "click", "yaml", "httptools", "uvloop"}
            assert not heavy & set(sys.modules)
            there = {name for name in sys.modules if name.startswith("memmock")}
            assert there == {"memmock", "memmock.errors", "memmock.plugin"}

        def test_with(memmock):
            assert "memmock.scenarios" in sys.modules
            assert not {"hypothesis", "vcr", "aiohttp", "click"} & set(sys.modules)
        """
    )
    bare("-p", "no:pytest_httpserver.pytest_plugin").assert_outcomes(passed=2)


def test_no_thread_is_left_in_this_process(memmock_server):
    before = threading.active_count()
    with memmock_server.fresh():
        pass
    assert threading.active_count() == before


def test_settings_of_a_module_hold_for_its_tests_whoever_started_the_server(pytester, bare):
    for name, path in (("test_a", "/a"), ("test_b", "/b")):
        pytester.path.joinpath(f"{name}.py").write_text(
            f"""
import pytest
from memmock import MockSettings

@pytest.fixture(scope="session")
def memmock_settings():
    return MockSettings(path="{path}", timeout_ms=50)

def test_it(memmock, memmock_consumer):
    assert memmock.endpoint.endswith("{path}")
    assert memmock_consumer.config.timeout_ms == 50
    assert memmock_consumer.retrieve("a").ok
""",
            "utf-8",
        )
    bare().assert_outcomes(passed=2)
