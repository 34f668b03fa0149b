"""The catalogue: what it holds, that each scenario is on the wire, and that good consumers cope with it."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from memmock import Consumer, RetrievalConfig, verification
from memmock.client import READ_BYTES
from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Reply, Request
from memmock.mock import MockSettings
from memmock.rules import Severity, reply_violations
from memmock.scenarios import CATALOGUE, FAMILIES, Stage, family, members, named
from memmock.tool_result import ERROR_CODES, tool_result
from memmock.verification import proof, verify
from tests.wire import Wire, request

SETTINGS = MockSettings(timeout_ms=1000)
EVERY = pytest.mark.parametrize("scenario", CATALOGUE.values(), ids=lambda scenario: scenario.name)

AT_LEAST = {
    "answers": """
        success empty extra-fields has-more no-optional-fields mixed-memories low-confidence conflicting
        over-max-results unicode escaped-json whitespace-json chunked chunk-extensions-and-trailers
        http10-close close-delimited compressed created-201 charset-parameter early-hints continue-100
        many-headers exact-limit just-in-time stale-keep-alive
        """,
    "statuses": """
        400 401 403 404 405 413 422 429 500 502 503 504 error-with-memories error-plain-text error-empty
        error-endless redirect-301 redirect-302 redirect-303 redirect-307 redirect-308 redirect-elsewhere
        redirect-loop 304 204
        """,
    "bodies": """
        plain-text html empty-body truncated-json nan invalid-utf8 gbk utf16 bom trailing-garbage ndjson
        json-in-string duplicate-keys deep-nesting huge-number lone-surrogate null top-level-array
        memories-null memories-missing memories-object memories-all-unusable wrong-content-type
        """,
    "sizes": """
        over-limit-by-one oversized oversized-chunked oversized-without-length endless gzip-bomb huge-header
        """,
    "timing": "late hang hang-after-headers hang-mid-body drip slow-headers",
    "connection": """
        refused reset-on-connect reset-after-request reset-mid-body close-without-reply close-mid-headers
        close-mid-body garbage malformed-status-line malformed-chunk length-too-long length-too-short
        two-replies
        """,
}


@pytest.fixture(scope="session")
def memmock_settings():
    return SETTINGS


def stage(*, answer=None, headers=(), **settings):
    honest = Reply.json({"memories": [{"id": "1", "summary": "用户喜欢茶。", "type": "other"}]})
    request = Request("POST", "/memory_retrieval", headers, b'{"query": "x"}')
    return Stage(request=request, answer=lambda: answer or honest, path="/memory_retrieval", **settings)


# ---- the catalogue


@pytest.mark.parametrize("name", FAMILIES)
def test_family_holds_at_least_what_was_asked_for(name):
    there = {alias for scenario in family(name) for alias in (scenario.name, *scenario.aliases)}
    assert set(AT_LEAST[name].split()) - there == set()


@EVERY
def test_scenario_is_told_in_one_sentence(scenario):
    assert re.fullmatch(r"[^\n]{10,110}\.", scenario.summary)
    assert set(scenario.outcomes) <= {"ok", *ERROR_CODES}
    assert scenario.outcomes
    assert json.loads(json.dumps(scenario.to_json()))["name"] == scenario.name


def test_statuses_are_names_too():
    assert named("503") is named("unavailable")
    assert named("Reset_Mid_Body") is named("reset-mid-body")


def test_name_stands_for_a_family_or_one_scenario():
    assert members("timing") == family("timing")
    assert members("late") == [named("late")]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (named, "there is no scenario 'lat'; near it are late, "),
        (members, "there is no scenario 'lat'; near it are late, "),
        (family, "there is no family of scenarios 'lat'; they are answers, statuses, "),
    ],
)
def test_unknown_name_gets_the_nearest(call, message):
    with pytest.raises(MemmockError, match=re.escape(message)):
        call("lat")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"facter": 2}, "scenario late has no parameter 'facter'; it has factor"),
        ({"factor": "soon"}, "scenario late: factor must be a number from 0 to 1,000,000,000, not 'soon'"),
        ({"factor": -1}, "scenario late: factor must be a number from 0 to 1,000,000,000, not -1"),
        ({"factor": float("nan")}, "scenario late: factor must be a number from 0 to 1,000,000,000, not nan"),
        ({"factor": True}, "scenario late: factor must be a number from 0 to 1,000,000,000, not True"),
    ],
)
def test_wrong_parameter_is_refused(given, message):
    with pytest.raises(MemmockError, match=re.escape(message)):
        named("late").settings(given)


def test_parameter_may_be_given_as_text():
    assert named("late").settings({"factor": "2"}) == {"factor": 2.0}
    assert named("chunked").settings({"chunk_bytes": "7"}) == {"chunk_bytes": 7}
    with pytest.raises(MemmockError, match="chunk_bytes must be an integer"):
        named("chunked").settings({"chunk_bytes": 1.5})


# ---- single scenarios, as values


@pytest.mark.parametrize("limit", [16, 50, 107, 108, 109, 110, 111, 112, 1000, 65_536, 1_000_000])
@pytest.mark.parametrize(("name", "more"), [("exact-limit", 0), ("over-limit-by-one", 1)])
def test_size_is_exact_in_bytes_and_the_answer_good(name, more, limit):
    reply = named(name).reply(stage(max_response_bytes=limit))
    assert len(reply.body) == limit + more
    assert len(reply.body.decode()) < len(reply.body) or limit < 150
    assert tool_result(reply, limit + more).ok


@pytest.mark.parametrize("name", ["oversized", "oversized-chunked", "oversized-without-length"])
@pytest.mark.parametrize("factor", [0.0, 1.0, 2.5])
def test_oversized_is_over_the_limit_whatever_the_factor(name, factor):
    reply = named(name).reply(stage(max_response_bytes=1000), factor=factor)
    assert len(reply.body) == max(1001, int(1000 * factor))


def test_nesting_is_100_000_deep_where_the_limit_allows():
    assert (
        named("deep-nesting").reply(stage(max_response_bytes=1_000_000)).body
        == b"[" * 100_000 + b"]" * 100_000
    )
    assert len(named("deep-nesting").reply(stage()).body) == 65_536


def test_gzip_bomb_is_small_and_inflates_past_the_limit():
    reply = named("gzip-bomb").reply(stage())
    assert len(reply.body) < 65_536
    assert tool_result(reply).outcome == "response_too_large"
    assert tool_result(reply, 10 * 1024 * 1024).ok


@pytest.mark.parametrize(
    ("accepts", "coded"),
    [
        (None, False),
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("br", False),
    ],
)
def test_answer_is_compressed_only_for_clients_that_accept_it(accepts, coded):
    headers = () if accepts is None else (("Accept-Encoding", accepts),)
    reply = named("compressed").reply(stage(headers=headers))
    assert reply.header("Content-Encoding") == ("gzip" if coded else None)
    assert tool_result(reply).memories == tool_result(stage().answer()).memories


@pytest.mark.parametrize("scenario", family("answers"), ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("max_results", [1, 5])
def test_answer_has_usable_memories_of_the_kinds_that_were_asked_for(scenario, max_results):
    if scenario.name == "empty":
        return
    reply = scenario.reply(stage(max_results=max_results, memory_types=["style"]))
    if reply.delivery.wire is None:
        result = tool_result(reply)
        assert result.memories
        assert len(result.memories) <= max_results or scenario.name == "over-max-results"


@pytest.mark.parametrize(
    "name",
    ["success", "empty", "no-optional-fields", "low-confidence", "conflicting", "unicode", "escaped-json"],
)
def test_plain_answer_keeps_the_contract(name):
    reply = named(name).reply(stage())
    found = reply_violations(reply, stage().request)
    assert [violation for violation in found if violation.severity is Severity.ERROR] == []


def test_scenario_has_memories_to_play_with_when_the_honest_answer_has_none():
    empty = Reply.json({"memories": []})
    reply = named("mixed-memories").reply(stage(answer=empty))
    assert len(tool_result(reply).memories) == 2
    assert None in json.loads(reply.body)["memories"]


def test_random_bytes_depend_on_the_seed_only():
    garbage = named("garbage")
    assert garbage.reply(stage()) == garbage.reply(stage())
    assert garbage.reply(stage(), seed=2) != garbage.reply(stage())


def test_redirect_elsewhere_needs_a_second_port():
    with pytest.raises(MemmockError, match="needs a second port"):
        named("redirect-elsewhere").reply(stage())


# ---- on the wire


@pytest.fixture(scope="module")
def proofs():
    return {proof.scenario.name: proof for proof in verify(CATALOGUE.values(), 300)}


@EVERY
def test_scenario_arrives_as_promised(scenario, proofs):
    assert proofs[scenario.name].mistakes == ()


def test_all_scenarios_arrive_as_promised_under_load():
    command = [sys.executable, "-m", "memmock", "scenarios", "--verify"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") for _ in range(8)]
    printed = [run.communicate(timeout=100)[0] for run in runs]
    wrong = [line for text in printed for line in text.splitlines()[:-2] if not line.startswith("ok ")]
    assert wrong == []
    kept = f"{len(CATALOGUE)} of {len(CATALOGUE)} scenarios arrived as promised."
    assert [text.splitlines()[-1] for text in printed] == [kept] * 8
    assert [run.returncode for run in runs] == [0] * 8


@pytest.mark.parametrize(
    ("name", "promise", "mistake"),
    [
        ("close-mid-body", {"end": "reset"}, "the end: reset was promised, close was seen"),
        ("reset-mid-body", {"end": "close"}, "the end: close was promised, reset was seen"),
        ("success", {"end": "close"}, "the end: close was promised, open was seen"),
        ("two-replies", {"replies": 1}, "complete replies: 1 was promised, 2 was seen"),
        ("success", {"status": 201}, "the status: 201 was promised, 200 was seen"),
        ("success", {"late": True}, "time: it should be late, and was complete after "),
        ("success", {"end": "endless"}, "bytes: no end was promised, "),
        ("reset-on-connect", {"end": "refused"}, "the end: refused was promised, reset was seen"),
    ],
)
def test_promise_that_is_not_kept_is_told(monkeypatch, name, promise, mistake):
    monkeypatch.setattr(verification, "SLACK_S", 0.3)  # what does not come is waited for
    scenario = named(name)
    lying = dataclasses.replace(scenario, promise=dataclasses.replace(scenario.promise, **promise))
    mistakes = proof(lying, SETTINGS).mistakes
    assert any(text.startswith(mistake) for text in mistakes), mistakes


def test_outcome_that_does_not_follow_is_told():
    lying = dataclasses.replace(named("nan"), outcomes=("ok",))
    (mistake,) = proof(lying, SETTINGS).mistakes
    assert mistake == "the outcome: ok was promised, by the contract it is invalid_json"


# ---- the reference consumer


@EVERY
def test_reference_consumer_copes_with(scenario, memmock, memmock_consumer):
    memmock.use(scenario)
    exchange = memmock_consumer.exchange("用户的猫", max_results=3)

    assert exchange.result.outcome in scenario.outcomes
    if exchange.result.outcome == "http_error":
        assert exchange.result.error.status == scenario.promise.status
    assert exchange.elapsed_s < SETTINGS.timeout_ms / 1000 + 0.25
    assert exchange.received_bytes <= SETTINGS.max_response_bytes + READ_BYTES

    memmock.use("success")
    if scenario.name == "stale-keep-alive":
        memmock.wait_until_sent()
        assert memmock.connections == 1
    assert memmock_consumer.retrieve("用户的猫").outcome == "ok"
    if scenario.name == "stale-keep-alive":
        assert memmock.connections == 2
    for call in memmock.wait_until_sent()[:1]:
        if scenario.promise.end in ("hang", "endless"):
            assert call.sent.how == "client closed"


def test_reference_consumer_survives_three_faults_in_a_row(memmock, memmock_consumer):
    memmock.plan("reset-mid-body, hang-mid-body, garbage, success")
    outcomes = [memmock_consumer.retrieve("用户的猫").outcome for _ in range(4)]
    assert outcomes == ["connection_failed", "timeout", "connection_failed", "ok"]


# ---- the same on pytest-httpserver

OWN_SERVER_ONLY = {"refused", "reset-on-connect", "redirect-elsewhere", "stale-keep-alive"}


@pytest.mark.memmock_scenarios(*FAMILIES, without=sorted(OWN_SERVER_ONLY))
def test_scenario_is_played_on_httpserver(memmock_httpserver, memmock_scenario):
    with Consumer(RetrievalConfig(**memmock_httpserver.config())) as consumer:
        exchange = consumer.exchange("用户的猫", max_results=3)
        assert exchange.result.outcome in memmock_scenario.outcomes
        assert exchange.elapsed_s < SETTINGS.timeout_ms / 1000 + 0.25
        memmock_httpserver.use("success")
        assert consumer.retrieve("用户的猫").outcome == "ok"


@pytest.mark.parametrize("name", sorted(OWN_SERVER_ONLY))
def test_scenario_that_werkzeug_cannot_play_is_refused_by_name(memmock_httpserver, name):
    with pytest.raises(MemmockError, match=f"scenario {name} cannot be played here: it needs "):
        memmock_httpserver.use(name)


def test_every_scenario_is_played_on_httpserver_or_named():
    assert {scenario.name for scenario in CATALOGUE.values() if scenario.needs} == OWN_SERVER_ONLY


# ---- resets, seen by what clients use


def test_reset_reaches_the_client_as_econnreset_also_after_data(memmock):
    memmock.use("reset-mid-body")
    headers = (
        f"Authorization: {memmock.authorization}",
        f"Accept: {JSON_TYPE}",
        f"Content-Type: {JSON_TYPE}",
    )
    with Wire(urlsplit(memmock.endpoint).port) as wire:
        wire.send(request(b'{"query": "x"}', *headers))
        first = wire.socket.recv(65536)
        assert first.startswith(b"HTTP/1.1 200 OK\r\n")
        with pytest.raises(ConnectionResetError):
            wire.rest()


@pytest.mark.parametrize(
    "scenario", [*family("answers"), *family("bodies")], ids=lambda scenario: scenario.name
)
@pytest.mark.parametrize(("limit", "max_results"), [(1000, 5), (4000, 20), (65_536, 1000)])
def test_scenario_that_is_not_about_size_keeps_to_the_limit(scenario, limit, max_results):
    memories = [{"id": f"m{n}", "summary": "用户喜欢喝茶。" * 3, "type": "other"} for n in range(max_results)]
    while len(Reply.json({"memories": memories}).body) > limit:
        memories.pop()
    honest = Reply.json({"memories": memories})
    reply = scenario.reply(stage(answer=honest, max_response_bytes=limit, max_results=max_results))
    wire, framing = reply.delivery.wire, 100
    assert len(reply.body if wire is None else wire.partition(b"\r\n\r\n")[2][framing:]) <= limit


@pytest.mark.parametrize(
    "name",
    ["oversized", "oversized-chunked", "oversized-without-length", "gzip-bomb", "huge-header", "garbage"],
)
def test_parameter_of_any_size_makes_a_reply_of_some_megabytes(name):
    scenario = named(name)
    reply = scenario.reply(stage(), **{scenario.parameters[0].name: 1_000_000_000})
    size = len(reply.body) + len(reply.delivery.wire or b"") + sum(len(value) for _, value in reply.headers)
    assert size <= 17 * 1024 * 1024


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        (
            lambda reply: reply.delayed(1.5),
            "time: it should be in time, and its last byte is sent after 1,500 ms",
        ),
        (lambda reply: reply._replace(status=500), "the status: 200 was promised, 500 was seen"),
    ],
)
def test_delivery_that_breaks_the_promise_is_told(change, mistake):
    lying = dataclasses.replace(named("success"), make=lambda stage: change(stage.answer()))
    assert mistake in proof(lying, SETTINGS).mistakes


def test_body_that_ends_is_not_endless():
    finite = Reply(200, (), b"x" * 5_000_000).until_close()
    lying = dataclasses.replace(named("endless"), make=lambda stage: finite)
    assert "an endless body: True was promised, False was seen" in proof(lying, SETTINGS).mistakes
