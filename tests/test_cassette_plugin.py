"""Cassettes in pytest as a user meets them: suites in a pytest of their own, against pytest-httpserver."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
import vcr
from werkzeug import Request, Response

from memmock import cassette_server, patching, tape, upstream
from memmock.cassette_file import load

LOADED = (cassette_server, patching, tape, upstream, vcr)  # once, rather than by each suite that runs in here
SECRET = "Bearer swordfish-4711"

CLIENT = """
import json, urllib.error, urllib.request

def ask(endpoint, query, **fields):
    body = json.dumps({"query": query, **fields}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer own"}
    try:
        with urllib.request.urlopen(urllib.request.Request(endpoint, body, headers)) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return json.load(error)
"""


class Provider:
    """A provider on pytest-httpserver: it answers with what it was asked, and counts."""

    def __init__(self, httpserver) -> None:
        self.url = httpserver.url_for("/v1/memories")
        self.asked: list[str] = []
        self.summary = "记得："
        self._lock = threading.Lock()
        httpserver.expect_request("/v1/memories", method="POST").respond_with_handler(self.answer)

    def answer(self, request: Request) -> Response:
        asked = request.get_json()
        with self._lock:
            self.asked.append(asked["query"])
        memory = {"id": asked["query"], "summary": self.summary + asked["query"]}
        seen = request.headers.get("Authorization", "")
        body = json.dumps({"memories": [memory], "seen": seen}, ensure_ascii=False)
        return Response(body, content_type="application/json", headers={"Set-Cookie": "sid=0123456789"})


@pytest.fixture
def provider(httpserver):
    return Provider(httpserver)


@pytest.fixture
def suite(pytester, monkeypatch):
    """Return what runs a suite with memmock alone."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("CI", "MEMMOCK_RECORD", "MEMMOCK_UPSTREAM", "MEMMOCK_UPSTREAM_AUTHORIZATION"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    pytester.path.joinpath("client.py").write_text(CLIENT)
    plugins = ("-p", "memmock.plugin", "-p", "memmock.cassette_plugin", "-p", "no:cacheprovider")

    def run(*options):
        started = pytester.runpytest_subprocess if "xdist.plugin" in options else pytester.runpytest_inprocess
        result = started(*plugins, *options)
        text = result.stdout.str() + result.stderr.str()
        assert "INTERNALERROR" not in text
        assert "Traceback" not in text
        assert "cassette_plugin.py" not in text
        return result

    return run


@pytest.fixture
def write(pytester):
    """Return what writes a test module; it has `ask`."""

    def write(source, name="test_chat.py"):
        path = pytester.path / name
        path.write_text(f"import pytest\nfrom client import ask\n{source}", "utf-8")
        return path

    return write


def cassette(pytester, name="test_it", module="test_chat") -> Path:
    return pytester.path / "cassettes" / module / f"{name}.yaml"


def queries(path):
    return [json.loads(each.request.body)["query"] for each in load(path)]


def said(result):
    return "\n".join(line.removeprefix("E   ").rstrip() for line in result.stdout.lines)


TWO = """
def test_it(memmock_cassette):
    assert ask(memmock_cassette.endpoint, "称呼", live_id="1")["memories"][0]["summary"] == "记得：称呼"
    assert ask(memmock_cassette.endpoint, "暗号", reason="why")["memories"][0]["summary"] == "记得：暗号"
"""


def test_recorded_once_is_replayed_without_the_provider(pytester, suite, write, provider, monkeypatch):
    write(TWO)
    monkeypatch.setenv("MEMMOCK_UPSTREAM_AUTHORIZATION", SECRET)
    suite("--memmock-record=once", f"--memmock-upstream={provider.url}").assert_outcomes(passed=1)
    assert provider.asked == ["称呼", "暗号"]
    text = cassette(pytester).read_text("utf-8")
    assert "swordfish" not in text
    assert "Bearer own" not in text
    assert "0123456789" not in text
    assert '"记得：称呼"' in text
    assert f"uri: {provider.url}" in text
    monkeypatch.delenv("MEMMOCK_UPSTREAM_AUTHORIZATION")
    suite().assert_outcomes(passed=1)
    suite("--memmock-record=once").assert_outcomes(passed=1)  # it is there: no upstream is needed
    assert provider.asked == ["称呼", "暗号"]


def test_what_was_never_recorded_fails_though_the_client_swallowed_it(suite, write):
    write(
        'def test_it(memmock_cassette):\n    ask(memmock_cassette.endpoint, "称呼", memory_types=["style"])\n'
    )
    result = suite()
    result.assert_outcomes(passed=1, errors=1)
    assert """1 retrieval was not recorded (cassettes/test_chat/test_it.yaml, not there).

  "称呼" memory_types=["style"]
    there is no recording at all

To record what is missing: --memmock-record=once""" in said(result)


def test_miss_and_unplayed_interaction_are_told_with_the_nearest(suite, write, provider):
    write(TWO)
    suite("--memmock-record=once", f"--memmock-upstream={provider.url}")
    swallowed = TWO.replace('["memories"]', '.get("memories", [{"summary": "记得：暗号"}])')
    write(swallowed.replace('"暗号", reason', '"暗号", max_results=2, reason'))
    result = suite()
    result.assert_outcomes(passed=1, errors=1)
    assert """1 retrieval was not recorded (cassettes/test_chat/test_it.yaml, 2 interactions).

  "暗号" reason="why" max_results=2
    nearest is interaction 2:
      max_results    expected nothing   received 2

To record what is missing: --memmock-record=new_episodes

1 interaction was not played (cassettes/test_chat/test_it.yaml, 2 interactions):

  interaction 2: "暗号" reason="why"

To record anew what the test asks: --memmock-record=rewrite; to let it be: allow_unplayed=True""" in said(
        result
    )


def test_failed_test_shows_what_its_cassette_says_and_saves_nothing(pytester, suite, write, provider):
    write(f"{TWO}    assert 0\n")
    result = suite("--memmock-record=once", f"--memmock-upstream={provider.url}")
    result.assert_outcomes(failed=1)
    assert "memmock cassette" in result.stdout.str()
    assert f"What was recorded is not saved, as the test failed ({cassette(pytester)})." in said(result)
    assert not cassette(pytester).exists()
    result = suite()
    result.assert_outcomes(failed=1)  # and no error besides
    assert "there is no recording at all" in said(result)


def test_new_episodes_adds_what_is_missing_and_plays_the_rest(pytester, suite, write, provider):
    write(TWO)
    record = (f"--memmock-upstream={provider.url}", "--memmock-record=new_episodes")
    suite(*record).assert_outcomes(passed=1)
    write(f'{TWO}    ask(memmock_cassette.endpoint, "建议")\n')
    suite(*record).assert_outcomes(passed=1)
    assert provider.asked == ["称呼", "暗号", "建议"]
    assert queries(cassette(pytester)) == ["称呼", "暗号", "建议"]


def test_all_replaces_what_is_asked_and_keeps_the_rest(pytester, suite, write, provider):
    write(TWO)
    record = (f"--memmock-upstream={provider.url}", "--memmock-record=all")
    suite(*record).assert_outcomes(passed=1)
    provider.summary = "现在："
    write('def test_it(memmock_cassette):\n    ask(memmock_cassette.endpoint, "称呼")\n')
    suite(*record).assert_outcomes(passed=1)
    assert queries(cassette(pytester)) == ["暗号", "称呼"]
    assert "现在：称呼" in load(cassette(pytester))[1].reply.body.decode()


def test_rewrite_keeps_nothing_of_before(pytester, suite, write, provider):
    write(TWO)
    record = (f"--memmock-upstream={provider.url}", "--memmock-record=rewrite")
    suite(*record).assert_outcomes(passed=1)
    write('def test_it(memmock_cassette):\n    ask(memmock_cassette.endpoint, "建议")\n')
    suite(*record).assert_outcomes(passed=1)
    assert queries(cassette(pytester)) == ["建议"]


def test_verify_passes_while_the_provider_agrees_and_tells_how_it_does_not(suite, write, provider):
    write(TWO.replace('== "记得：', '!= "'))
    upstream = f"--memmock-upstream={provider.url}"
    suite(upstream, "--memmock-record=once").assert_outcomes(passed=1)
    suite(upstream, "--memmock-record=verify").assert_outcomes(passed=1)
    provider.summary = "现在："
    result = suite(upstream, "--memmock-record=verify")
    result.assert_outcomes(passed=1, errors=1)
    path = "cassettes/test_chat/test_it.yaml"
    assert f"The provider no longer answers as recorded ({path}, 2 interactions)." in said(result)
    assert 'expected "记得：称呼"   received "现在：称呼"' in said(result)
    assert "To record what it answers now: --memmock-record=rewrite" in said(result)
    assert provider.asked == ["称呼", "暗号"] * 3


def test_same_retrieval_is_recorded_and_played_as_often_as_it_was_asked(pytester, suite, write, provider):
    write(
        "def test_it(memmock_cassette):\n    for _ in range(3):\n"
        '        ask(memmock_cassette.endpoint, "称呼")\n'
    )
    suite("--memmock-record=once", f"--memmock-upstream={provider.url}").assert_outcomes(passed=1)
    assert queries(cassette(pytester)) == ["称呼"] * 3
    suite().assert_outcomes(passed=1)
    write(
        "def test_it(memmock_cassette):\n    for _ in range(4):\n"
        '        ask(memmock_cassette.endpoint, "称呼")\n'
    )
    result = suite()
    result.assert_outcomes(passed=1, errors=1)
    assert "no recording is left: interaction 3 answers it, already played" in said(result)


def test_command_line_wins_over_marker_over_fixture_over_ini_file(pytester, suite, write, provider):
    pytester.makeini(
        "[pytest]\nmemmock_record = all\nmemmock_repeats = cycle\nmemmock_redact_fields = seen\n"
    )
    write(
        f'''
@pytest.fixture(scope="session")
def memmock_cassette_config():
    return {{"record": "none", "upstream": "{provider.url}", "repeats": "last", "redact_fields": ["id"]}}

@pytest.mark.memmock_cassette(record="once")
def test_marked(memmock_cassette):
    assert memmock_cassette.tape.mode == "once"
    ask(memmock_cassette.endpoint, "称呼")

def test_fixture(memmock_cassette):
    assert memmock_cassette.tape.mode == "none"
    assert memmock_cassette.tape.cassette.repeats == "last"
'''
    )
    suite().assert_outcomes(passed=2)
    text = cassette(pytester, "test_marked").read_text("utf-8")
    assert '"seen": "***"' in text  # what is to be hidden adds up
    assert '"id": "***"' in text
    result = suite("--memmock-record=verify", "-k", "fixture")
    assert "assert 'verify' == 'none'" in said(result)


def test_nothing_is_recorded_in_ci_unless_the_command_line_says_so(suite, write, provider, monkeypatch):
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("MEMMOCK_UPSTREAM", provider.url)
    write(f'@pytest.mark.memmock_cassette(record="once")\n{TWO.lstrip()}')
    result = suite()
    result.assert_outcomes(failed=1)
    assert provider.asked == []
    suite("--memmock-record=once").assert_outcomes(passed=1)
    assert provider.asked == ["称呼", "暗号"]


MISTAKES = [
    ('@pytest.mark.memmock_cassette(recrod="once")', "no recrod"),
    ('@pytest.mark.memmock_cassette(record="sometimes")', "record must be one of none, once, new_episodes"),
    (
        '@pytest.mark.memmock_cassette(match_on=["color"])',
        "cannot match on color: it must be of method, path",
    ),
    ("@pytest.mark.memmock_cassette(match_on=3)", "match_on as a list of texts, not 3"),
    ('@pytest.mark.memmock_cassette("a", "b")', "takes one name of a cassette"),
    ('@pytest.mark.memmock_cassette(redact_patterns=["("])', "("),
    (
        '@pytest.mark.memmock_cassette(record="once")',
        "to record, an upstream is needed: give --memmock-upstream=URL",
    ),
    (
        '@pytest.mark.memmock_cassette(record="once", upstream="provider")',
        "the upstream must be an absolute http or https URL",
    ),
    ('@pytest.mark.memmock_cassette("broken")', "cassettes/test_chat/broken.yaml"),
]


def test_mistakes_in_settings_are_told_in_a_line(pytester, suite, write):
    cassette(pytester, "broken").parent.mkdir(parents=True)
    cassette(pytester, "broken").write_text("version: 2\n")
    tests = [f"{marker}\ndef test_{n}(memmock_cassette): ...\n" for n, (marker, _) in enumerate(MISTAKES)]
    write("\n".join(tests))
    result = suite("-rE")
    result.assert_outcomes(errors=len(MISTAKES))
    for _, says in MISTAKES:
        assert says in said(result)
    assert cassette(pytester, "broken").read_text() == "version: 2\n"


def test_tests_share_a_cassette_by_name_and_need_not_play_it_whole(pytester, suite, write, provider):
    write(
        """
@pytest.mark.memmock_cassette("shared.json")
@pytest.mark.parametrize("query", ["称呼", "暗号", "称呼"])
def test_it(memmock_cassette, query):
    assert ask(memmock_cassette.endpoint, query)["memories"]
"""
    )
    suite("--memmock-record=new_episodes", f"--memmock-upstream={provider.url}").assert_outcomes(passed=3)
    path = cassette(pytester).with_name("shared.json")
    assert queries(path) == ["称呼", "暗号"]
    suite().assert_outcomes(passed=3)


def test_names_of_files_say_which_test_it_is(pytester, suite, write, provider):
    write(
        """
class TestChat:
    class TestInner:
        @pytest.mark.parametrize("query", ["称呼", "b", "c", "d"], ids=["zh", "a/b", "a-b", "x" * 300])
        def test_it(self, memmock_cassette, query):
            ask(memmock_cassette.endpoint, query)
"""
    )
    suite("--memmock-record=once", f"--memmock-upstream={provider.url}").assert_outcomes(passed=4)
    names = sorted(path.name for path in cassette(pytester).parent.iterdir())
    assert len(names) == 4
    assert names[0].startswith("TestChat.TestInner.test_it[a-b]")
    assert "TestChat.TestInner.test_it[zh].yaml" in names
    assert all(len(name) < 200 for name in names)
    suite().assert_outcomes(passed=4)


VCR = """
import requests
def fetch(query):
    return requests.post("{url}", json={{"query": query}}, timeout=5).json()["memories"][0]["summary"]

@pytest.mark.memmock_vcr
def test_it():
    assert fetch("称呼") == "记得：称呼"

@pytest.mark.memmock_vcr
def test_threads():
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(fetch, map(str, range(24))))
    assert found == [f"记得：{{n}}" for n in range(24)]
"""


def test_patched_clients_are_recorded_and_replayed_in_threads_too(pytester, suite, write, provider):
    write(VCR.format(url=provider.url))
    suite("--memmock-record=once").assert_outcomes(passed=2)
    assert len(provider.asked) == 25
    assert sorted(queries(cassette(pytester, "test_threads"))) == sorted(map(str, range(24)))
    suite().assert_outcomes(passed=2)
    assert len(provider.asked) == 25


def test_same_file_is_played_by_the_server_and_by_the_patch(suite, write, provider):
    write(
        f'''
import requests
@pytest.mark.memmock_cassette("same", record="once", upstream="{provider.url}")
def test_1(memmock_cassette):
    ask(memmock_cassette.endpoint, "称呼")

@pytest.mark.memmock_vcr("same")
def test_2():
    assert requests.post("{provider.url}", json={{"query": "称呼"}}, timeout=5).json()["memories"]

@pytest.mark.memmock_vcr("same")
def test_3():
    with pytest.raises(Exception, match="nearest is interaction 1"):
        requests.post("{provider.url}", json={{"query": "暗号"}}, timeout=5)
'''
    )
    result = suite()
    result.assert_outcomes(passed=3, errors=1)
    assert provider.asked == ["称呼"]
    assert "1 retrieval was not recorded (cassettes/test_chat/same.yaml, 1 interaction)." in said(result)


def test_connection_that_passes_by_the_cassette_fails_the_test(suite, write, provider):
    write(
        f'''
import socket
ADDRESS = ("{provider.url.split("/")[2].split(":")[0]}", {provider.url.split("/")[2].split(":")[1]})
@pytest.mark.memmock_vcr
def test_refused():
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(ADDRESS)

@pytest.mark.memmock_vcr(allow_hosts=[f"{{ADDRESS[0]}}:{{ADDRESS[1]}}"])
def test_allowed():
    socket.create_connection(ADDRESS).close()
'''
    )
    result = suite()
    result.assert_outcomes(passed=2, errors=1)
    assert "was refused: nothing is reached while a cassette plays." in said(result)


def test_orphans_are_named_and_fail_the_run(pytester, suite, write, provider):
    write(TWO)
    suite("--memmock-record=once", f"--memmock-upstream={provider.url}")
    suite("--memmock-check-orphans").assert_outcomes(passed=1)
    cassette(pytester, "test_gone").write_text("interactions: []\nversion: 1\n")
    gone = cassette(pytester, "test_it", "test_removed")
    gone.parent.mkdir()
    gone.write_text("interactions: []\nversion: 1\n")
    result = suite("--memmock-check-orphans", "-k", "nothing")
    assert result.ret == 1
    assert "cassettes/test_chat/test_gone.yaml\ncassettes/test_removed/test_it.yaml" in said(result)
    assert "cassettes/test_chat/test_it.yaml" not in said(result)
    result = suite("--memmock-check-orphans", "test_chat.py::test_it")
    assert result.ret == 4
    assert "--memmock-check-orphans needs whole files" in result.stderr.str()


def test_workers_of_xdist_record_replay_and_find_orphans(pytester, suite, write, provider):
    write(TWO + TWO.replace("test_it", "test_other"))
    plugins = ("-p", "xdist.plugin", "-n", "2")
    suite(*plugins, "--memmock-record=once", f"--memmock-upstream={provider.url}").assert_outcomes(passed=2)
    cassette(pytester, "test_gone").write_text("interactions: []\nversion: 1\n")
    result = suite(*plugins, "--memmock-check-orphans")
    assert result.ret == 1
    assert "cassettes/test_chat/test_gone.yaml" in said(result)
    assert "cassettes/test_chat/test_it.yaml" not in said(result)
