"""What a check of a consumer found, as reports, as a file of scenarios, and as a pytest file."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from memmock import documents, scenario_file
from memmock.conformance.finding import Outcome
from memmock.consumer_conformance import acts
from memmock.consumer_conformance.act import AUTHORIZATION, Act, Arrival, Seen
from memmock.consumer_conformance.acts import GOOD, act_named
from memmock.consumer_conformance.bench import memories
from memmock.consumer_conformance.finding import Finding, Result
from memmock.consumer_conformance.scenario_export import text_of, write_scenarios
from memmock.consumer_conformance.secrets import secrets_of
from memmock.consumer_conformance.shown import in_words, report_of
from memmock.consumer_conformance.subject import Told
from memmock.consumer_conformance.written_tests import FILE_NAME, source, write_tests
from memmock.errors import MemmockError
from memmock.http import Delivery, Reply, Request, Sent
from memmock.reply_case import ReplyCase
from memmock.report import FORMATS, as_html, as_json, as_junit, as_text
from memmock.report.document import document
from memmock.report.parts import Row
from memmock.rules import RULES, Severity
from memmock.scenarios import Stage

COMMAND = ["python3", "consumer.py"]
CONFIG = {
    "enabled": True, "endpoint": "http://127.0.0.1:8701/memory", "authorization": AUTHORIZATION,
    "timeout_ms": 300, "max_response_bytes": 65536,
}  # fmt: skip
HEADERS = (("Host", "127.0.0.1"), ("Content-Type", "text/plain"), ("Authorization", AUTHORIZATION))
ASKED = Request("POST", "/memory", HEADERS, b'{"query":"tea"}')
EMPTY = {"ok": True, "memories": []}
TIMEOUT = {"ok": False, "error": {"code": "timeout", "message": "too late"}}


def stage():
    return Stage(
        request=ASKED,
        answer=lambda: Reply.json({"memories": memories(7, ["preference"], 1)}),
        timeout_s=0.3,
        path="/memory",
        elsewhere=lambda: "http://127.0.0.2:8702",
    )


def seen(act, value=EMPTY, *, ms=12.3, came=1, sent=None, sent_bytes=0, elsewhere=False, **told):
    act = act_named(act) if isinstance(act, str) else act
    reply = act.make(stage())
    arrivals = tuple(
        Arrival(ASKED, reply, 0.003 * n, elsewhere and n > 1, sent, sent_bytes) for n in range(1, came + 1)
    )
    config = CONFIG | {"max_response_bytes": act.max_response_bytes}
    return Seen(act, config, Told(value, ms / 1000, **told), arrivals, came, 300)


def finding(code, message, *shown, pointer="", expected="what is right", also=(), flaky=False):
    return Finding(RULES[code], message, pointer, expected, shown, also, flaky)


def result(*findings, name="python3 consumer.py", **facts):
    return Result(name, list(findings), **{"calls": 214, "seconds": 3.21, **facts})


def text(*findings, **facts):
    return as_text(report_of(result(*findings), **facts))


DRIP = finding(
    "CON301", "the result came after 1,801 ms, and timeout_ms is 300",
    seen("drip", ms=1801, sent=Sent("client closed", 40, 1.8)), also=("late", "slow-headers"),
    expected="timeout, within 300 ms", flaky=True,
)  # fmt: skip
CRASH = finding(
    "CON001",
    "the process ended with exit code 1",
    seen(
        "plain-text",
        None,
        failure="died",
        message="the process ended with exit code 1 before it answered",
        errors="Traceback (most recent call last):\nValueError: no JSON\n",
    ),
)
TWICE = finding("CON401", "2 requests for one call", seen("server-error", came=2))
TYPE = finding("REQ002", "is text/plain", seen(GOOD), pointer="Content-Type")
TLS = finding("CON404", "the answer was taken", seen("untrusted-certificate", came=0))
STATE = finding("CON405", "the call after hang went wrong", seen("hang", TIMEOUT, ms=301), seen(GOOD))


# ---- the whole text

WHOLE = f"""\
python3 consumer.py

violated (2)
  CON301  {RULES["CON301"].title}
  CON401  {RULES["CON401"].title}

passed (1)
  CON302

1 of 3 scenarios as expected
                expected    seen
  drip          timeout     ok         CON301
  server-error  http_error  no answer  CON301 CON401

CON301 error  drip: the result came after 1,801 ms, and timeout_ms is 300 (not every time)
  why        Connecting, sending, headers and body together: a provider that sends one byte after
             the other must not keep the user waiting for longer than was configured.
  scenario   drip: Every read is quick, but the whole body takes `factor` times `timeout_ms`.
             also: late, slow-headers
  reply      200
             Content-Type: application/json
             {stage().answer().body.decode()}
             (the body in slices of 4 bytes every 10 ms)
             (the consumer left after 40 bytes)
  result     {{"ok":true,"memories":[]}}
             (in 1,801 ms, timeout_ms 300)
  expected   timeout, within 300 ms
  try        memmock serve --scenario drip --timeout-ms 300

1 error: 214 calls in 3.2 s.
"""


def matrix():
    return [
        Row("drip", "timing", ("timeout",), "ok", False, ("CON301",)),
        Row("success", "answers", ("ok",), "ok", True),
        Row("server-error", "statuses", ("http_error",), "no answer", False, ("CON301", "CON401")),
    ]


def test_the_whole_text_of_a_check():
    outcomes = [
        Outcome(RULES["CON301"], "violated"), Outcome(RULES["CON302"], "passed"),
        Outcome(RULES["CON401"], "violated"),
    ]  # fmt: skip
    slow = replace(DRIP, seen=(replied(DRIP.seen[0], stage().answer().dripped(4, 0.01)),))
    made = as_text(report_of(result(slow, outcomes=outcomes, matrix=matrix())))
    assert made == WHOLE


def replied(shown, reply):
    arrival = shown.arrivals[0]
    changed = Arrival(arrival.request, reply, arrival.at_s, arrival.elsewhere, arrival.sent)
    return replace(shown, arrivals=(changed,))


# ---- what is shown of a finding


def test_a_consumer_that_ended_shows_the_end_of_its_log():
    assert (
        "  result     none, the process ended with exit code 1 before it answered "
        "(in 12 ms, timeout_ms 300)\n"
        "             standard error, the end of it:\n"
        "             Traceback (most recent call last):\n"
        "             ValueError: no JSON\n"
    ) in text(CRASH)


def test_a_rule_of_requests_shows_what_was_asked_and_what_came():
    shown = text(TYPE)
    assert "REQ002 error  success: at Content-Type: is text/plain\n" in shown
    assert '  asked      {"live_id":"9007199254740993","query":"用户喜欢喝什么 tea ☕"' in shown
    assert (
        "  received   POST /memory after 3 ms\n"
        "             Content-Type: text/plain\n"
        f"             Authorization: {AUTHORIZATION}\n"
        '             {"query":"tea"}\n'
    ) in shown
    assert "  reply " not in shown


def test_another_rule_shows_what_was_asked_only_when_it_is_not_the_usual():
    assert "  asked " not in text(CRASH)
    act = replace(GOOD, name="asks for tea", retrieval={"query": "tea"})
    assert '  asked      {"query":"tea"}\n' in text(finding("CON201", "one is missing", seen(act)))


def test_several_requests_are_told_one_a_line():
    shown = text(TWICE)
    assert "  received   1: POST /memory after 3 ms\n             2: POST /memory after 6 ms\n" in shown
    assert "Authorization" not in shown


def test_a_request_at_another_address_shows_its_headers():
    leak = finding("CON403", "it went elsewhere", seen("redirect-elsewhere", came=2, elsewhere=True))
    shown = text(leak)
    assert "2: POST /memory after 6 ms at the other address, to which the redirect led\n" in shown
    assert f"             Authorization: {AUTHORIZATION}\n" in shown


def test_only_the_first_of_many_requests_are_told():
    assert "             and 3 more requests\n" in text(finding("CON401", "7", seen("server-error", came=7)))


def test_a_call_without_a_request_says_so():
    shown = text(finding("CON406", "nothing was asked", seen(GOOD, came=0)))
    assert "  received   no request came\n" in shown
    assert "  reply      none: no request came\n" in shown


def test_a_reply_that_is_not_http_is_shown_as_its_bytes():
    shown = text(finding("CON101", "ok", seen(Act(name="odd", summary="Odd.", make=_odd))))
    assert '  reply      HTTP/1.1 200\n             X: 1\n\n             {"memories": [\\xff]}\n' in shown
    assert "             (then closed)\n" in shown


def _odd(stage):
    return Reply.raw(b'HTTP/1.1 200\r\nX: 1\r\n\r\n{"memories": [\xff]}')


def test_a_reply_of_which_nothing_is_sent_shows_no_body():
    hang = finding("CON302", "given up", seen("hang", TIMEOUT, sent_bytes=0))
    assert ("  reply      not a byte of one\n             (then left open without another byte)\n") in text(
        hang
    )


def test_calls_before_the_one_that_is_wrong_are_told():
    shown = text(STATE)
    assert '  before     hang: {"ok":false,"error":{"code":"timeout","message":"too late"}}\n' in shown
    assert "             success: The honest answer.\n" in shown
    assert "  try        memmock serve --scenario hang --timeout-ms 300\n" in shown


def test_other_scenarios_that_show_the_same_are_told_without_breaking_their_names():
    also = ("exact-limit, limit 4096", *(f"scenario-number-{n}" for n in range(13)))
    shown = " ".join(text(replace(CRASH, also=also)).split())
    assert "also: exact-limit, limit 4096; scenario-number-0; scenario-number-1; scenario-number-2; " in shown
    assert "; scenario-number-10 and 2 more reply " in shown


def test_a_long_result_is_cut():
    shown = text(finding("CON002", "no tool result", seen(GOOD, {"x": "长" * 4000})))
    assert "长… (12,008 bytes in all)\n" in shown
    assert len(shown) < 2500


@pytest.mark.parametrize("value", [{1, 2}, {(1,): 2}, float("nan"), "\ud800", None])
def test_what_is_no_json_is_shown_too(value):
    run = report_of(result(finding("CON002", "no tool result", seen(GOOD, value))))
    for made in FORMATS.values():
        made(run).encode()


@pytest.mark.parametrize(
    ("delivery", "words"),
    [
        (Delivery(), ""),
        (Delivery(delay_s=0.15, ending="reset"), "after 150 ms, then reset"),
        (Delivery(interim=((103, ()),), framing="chunked", chunk_bytes=1), "behind 103, in chunks of 1 byte"),
        (Delivery(framing="close", ending="close"), "without a length, then closed"),
        (Delivery(slice_bytes=2, every_s=1.5, sliced="all"), "in slices of 2 bytes every 1,500 ms"),
        (Delivery(slice_bytes=2, every_s=0.1, sliced="head"), "the head in slices of 2 bytes every 100 ms"),
        (Delivery(cut_head=9, ending="close"), "cut after 9 bytes of the head, then closed"),
        (
            Delivery(cut_body=1, ending="hang"),
            "cut after 1 byte of the body, then left open without another byte",
        ),
        (
            Delivery(endless=True, framing="chunked"),
            "in chunks of 1,024 bytes, the body again and again, without an end",
        ),
        (Delivery(ending="close", end_s=0.05), "then closed 50 ms later"),
    ],
)
def test_how_a_reply_is_sent_in_words(delivery, words):
    assert in_words(delivery) == words


# ---- how it is played by hand


def tried(act, **facts):
    run = report_of(result(finding("CON101", "x", seen(act))), **facts)
    return run.entries[0].steps[0].rows[0]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("drip", "memmock serve --scenario drip --timeout-ms 300"),
        (
            "rate-limited(retry_after=0)",
            "memmock serve --scenario 'rate-limited(retry_after=0)' --timeout-ms 300",
        ),
        (
            "over-limit-by-one, limit 4096",
            "memmock serve --scenario over-limit-by-one --timeout-ms 300 --max-response-bytes 4096",
        ),
        ("asks for all types", "memmock serve --timeout-ms 300"),
        ("flood", "again with `--scenarios found.yaml`, which writes the reply for `memmock serve`"),
        (
            "untrusted-certificate",
            "Give the consumer an https endpoint with a certificate that it cannot know.",
        ),
    ],
)
def test_how_to_play_it_is_a_command(name, command):
    assert tried(act_named(name)) == command


def test_a_file_of_scenarios_is_named_when_it_was_written():
    assert tried(act_named("flood"), scenarios_file="my file.yaml") == (
        "memmock serve --scenarios 'my file.yaml' --scenario finding-1 --timeout-ms 300"
    )


def test_what_is_not_in_the_file_is_played_by_its_name():
    refused = seen("refused", came=0)
    run = report_of(result(finding("CON101", "x", refused)), scenarios_file="f.yaml")
    assert run.entries[0].steps[0].rows == ("memmock serve --scenario refused --timeout-ms 300",)
    assert "  reply      none: connections are refused\n" in as_text(run)


# ---- the other formats


def test_the_json_of_a_finding():
    (told,) = document(report_of(result(DRIP)))["findings"]
    assert (told["rule"], told["scenario"], told["also"]) == ("CON301", "drip", ["late", "slow-headers"])
    assert told["try"] == "memmock serve --scenario drip --timeout-ms 300"
    assert told["memory_retrieval"] == CONFIG
    assert told["received"][0]["headers"][1] == ("Content-Type", "text/plain")
    assert told["reply"]["status"] == 200
    assert told["reply"]["sent"].endswith("the consumer left after 40 bytes")
    assert (told["result"], told["failure"], told["elapsed_ms"]) == ('{"ok":true,"memories":[]}', "", 1801.0)
    assert len(told["calls"]) == 1


def test_the_json_of_a_consumer_that_ended():
    (told,) = document(report_of(result(CRASH)))["findings"]
    assert told["result"] is None
    assert told["failure"] == "the process ended with exit code 1 before it answered"
    assert told["errors"].endswith("ValueError: no JSON\n")


def test_the_json_counts_calls_and_has_the_scenarios():
    facts = json.loads(as_json(report_of(result(matrix=matrix(), seed=3), known=1, gone=["CON001 x"])))
    assert facts["stats"] == {"calls": 214, "seconds": 3.21, "seed": 3}
    assert facts["scenarios"][0] == {
        "scenario": "drip", "family": "timing", "expected": ["timeout"], "seen": "ok", "ok": False,
        "codes": ["CON301"],
    }  # fmt: skip
    assert facts["baseline"] == {"known": 1, "gone": ["CON001 x"]}


def test_the_page_marks_what_differs_and_makes_commands_easy_to_select():
    page = as_html(report_of(result(DRIP, TLS, matrix=matrix())))
    assert "<h1>Does this consumer keep the contract?</h1>" in page
    assert "<td>server-error</td><td>statuses</td><td>http_error</td>" in page
    assert '<td class="error">no answer</td><td>CON301 CON401</td>' in page
    assert '<td class="passed">ok</td>' in page
    assert "1 of 3 scenarios as expected." in page
    assert '<pre class="command" tabindex="0">memmock serve --scenario drip --timeout-ms 300</pre>' in page
    assert "<p>Give the consumer an https endpoint" in page
    assert "<h4>Scenario</h4>\n<p>drip: " in page


def test_markup_of_a_consumer_is_text():
    odd = finding("CON002", "<b>", seen(GOOD, None, failure="died", message="<i>", errors="<script>"))
    page = as_html(report_of(result(odd, name="<u>", matrix=[Row("x", "y", (), "<s>", False)])))
    assert not any(tag in page for tag in ("<b>", "<i>", "<script>", "<u>", "<s>"))


def test_junit_names_the_command():
    outcomes = [Outcome(RULES["CON301"], "violated"), Outcome(RULES["CON302"], "passed")]
    suite = ET.fromstring(as_junit(report_of(result(DRIP, outcomes=outcomes)))).find("testsuite")
    assert suite.get("name") == "memmock check-consumer"
    assert {case.get("classname") for case in suite.iter("testcase")} == {"memmock.check_consumer"}
    assert [each.get("name") for each in suite.iter("property")] == ["target", "calls"]
    suite = ET.fromstring(as_junit(report_of(result(DRIP, seed=1)))).find("testsuite")
    assert suite.get("name") == "memmock fuzz-consumer"


def test_warnings_fail_only_when_they_are_to():
    warning = next(rule for rule in RULES.values() if rule.severity is Severity.WARNING)
    run = result(replace(TWICE, rule=warning))
    assert report_of(run).ok
    assert not report_of(run, fail_on=Severity.WARNING).ok


# ---- secrets

LOG = (
    "GET /?token=query-5511-secret\n"
    'headers: {"Authorization": "Bearer log-7722-secret"}\n'
    "api_key=k-9933-secret"
)


@pytest.mark.parametrize("make", [*FORMATS.values(), lambda run: ""])
def test_no_secret_of_the_command_or_its_log_is_shown(make):
    crash = finding(
        "CON001",
        "ended: cli-4477-secret",
        seen(
            GOOD,
            {"x": "cli-4477-secret log-7722-secret"},
            failure="died",
            message="cli-4477-secret",
            errors=LOG,
        ),
        pointer="/cli-4477-secret",
    )
    run = result(
        crash,
        finding("CON002", "x", seen(GOOD, {"x": "cli-4477-secret log-7722-secret"})),
        name="./consumer --api-key cli-4477-secret TOKEN=env-8844-secret http://me:pw-6622-secret@host/",
        stopped="cli-4477-secret",
        matrix=[Row("x", "y", (), "cli-4477-secret", False)],
    )
    shown = make(report_of(run, gone=["cli-4477-secret"])) + text_of(run, "f.yaml")
    shown += source(run, ["./consumer", "--api-key", "cli-4477-secret"])
    assert "secret" not in shown.replace("it holds a secret", "")


def test_what_the_run_made_up_is_no_secret():
    log = f"sent Authorization: {AUTHORIZATION}\nUnexpected token: <\nsession = aiohttp.ClientSession()"
    crash = finding("CON001", "x", seen(GOOD, None, failure="died", message="x", errors=log))
    assert secrets_of("python3 consumer.py --max-tokens 500", [crash]) == ()


def test_the_name_of_a_function_need_not_be_a_command():
    assert secrets_of("it's") == ()


# ---- a file of scenarios


def read_back(run):
    text = text_of(run, "f.yaml")
    return documents.parse("f.yaml", text, scenario_file._own_scenarios).scenarios


@pytest.mark.parametrize(
    "act", [act for act in acts.chosen() if act.door is None and not act.tls], ids=lambda act: act.name
)
def test_each_reply_is_played_again_from_a_file(act):
    shown = seen(act)
    (scenario,) = read_back(result(finding("CON101", "x", shown))).values()
    reply, again = shown.arrivals[0].reply, scenario.reply(stage())
    assert scenario.outcomes == act.outcomes
    if reply.delivery.wire is None and again.delivery.wire is None:
        assert again[:3] == reply[:3]
        for name, value in reply.delivery._asdict().items():
            expected = pytest.approx(value) if isinstance(value, float) else value
            assert getattr(again.delivery, name) == expected
    elif reply.delivery.wire is not None:
        assert again.delivery == reply.delivery
    else:
        assert again.delivery.wire.startswith(b"HTTP/1.1 %d " % reply.status)


def test_a_generated_reply_is_a_scenario_with_what_may_be_made_of_it():
    act = Act(name="generated", summary="", make=lambda stage: CASE.reply(stage.timeout_s), case=CASE)
    run = result(finding("CON004", "no status", seen(act)))
    (scenario,) = read_back(run).values()
    assert scenario.outcomes == ("http_error",)
    assert scenario.reply(stage()).status == 503
    assert scenario.summary == "CON004 generated: no status"
    assert f"  scenario   generated: {CASE.summary}\n" in as_text(report_of(run))


def test_an_endless_reply_without_a_type_is_written_out_once():
    endless = Reply(200, (), b"abc").chunked(2).endless()
    shown = replied(seen(GOOD), endless)
    (scenario,) = read_back(result(finding("CON101", "x", shown))).values()
    delivery = scenario.reply(stage()).delivery
    assert delivery.wire.endswith(b"\r\n\r\n2\r\nab\r\n1\r\nc\r\n")
    assert (delivery.endless, delivery.ending) == (True, "keep")


def test_a_reply_without_a_type_that_ends_with_the_connection_closes_it():
    shown = replied(seen(GOOD), Reply(200, (("X", "\xe9"),), b"abc").until_close())
    (scenario,) = read_back(result(finding("CON101", "x", shown))).values()
    delivery = scenario.reply(stage()).delivery
    assert (delivery.wire, delivery.ending) == (
        b"HTTP/1.1 200 OK\r\nX: \xe9\r\nConnection: close\r\n\r\nabc",
        "close",
    )


@pytest.mark.parametrize(
    "reply",
    [
        Reply.json({"memories": []}).delayed(0.25).reset(0.125),
        Reply.json(
            {"memories": []}, headers=(("Set-Cookie", "a"), ("Set-Cookie", "茶".encode().decode("latin-1")))
        ),
        Reply(200, (("Content-Type", "text/plain"),), b"\xff\0").chunked(7).cut(3),
        Reply(503, (("Content-Type", "text/plain"),), "a\r\nb\u2028\x07".encode()).cut_head(9).hanging(),
        Reply(200, (("Content-Type", "text/plain"),), b"").dripped(1, 0.02, part="all").closed(),
        Reply(200, (("Content-Type", "x"),), b"abc").endless(),
        Reply(200, (("Content-Type", "x"),), b"abc").until_close().after(103, (("Link", "x"),)).after(100),
        Reply.raw(b"no http").cut(3),
        Reply.raw(b"HTTP/1.1 200 OK\r\n\r\nabc", ending="keep").dripped(2, 0.01),
    ],
)
def test_a_described_reply_reads_back_equal(reply):
    described = documents.yaml_text({"scenarios": {"x": scenario_file.described(reply)}})
    own = documents.parse("f.yaml", described, scenario_file._own_scenarios)
    assert own.scenarios["x"].reply(stage()) == reply


@pytest.mark.parametrize(
    "reply",
    [Reply(204), Reply(200, (("Content-Type", "\xe9"),)), Reply.json({}, headers=(("Content-Length", "1"),))],
)
def test_what_the_fields_of_a_scenario_cannot_say_is_refused(reply):
    with pytest.raises(ValueError, match=r"a scenario of a file|codec can't decode"):
        scenario_file.described(reply)


def test_findings_without_a_reply_are_left_out_and_said_to_be(tmp_path):
    path = tmp_path / "found.yaml"
    write_scenarios(result(TLS, TWICE), path)
    lines = path.read_text().splitlines()
    assert lines[1:3] == [
        "# memmock serve --scenarios found.yaml --scenario finding-2",
        "# finding-1 is left out, as no reply shows it: CON404 untrusted-certificate: the answer was taken",
    ]
    assert list(scenario_file.read(path).scenarios) == ["finding-2"]
    write_scenarios(result(TWICE), path)
    assert list(scenario_file.read(path).scenarios) == ["finding-1"]


def test_a_file_of_scenarios_that_others_wrote_is_kept(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("scenarios: {}\n")
    with pytest.raises(MemmockError, match=r"mine\.yaml was not written by memmock"):
        write_scenarios(result(TWICE), path)
    with pytest.raises(MemmockError, match=r"ends in \.yaml or \.yml"):
        write_scenarios(result(TWICE), tmp_path / "x.json")
    with pytest.raises(MemmockError, match="its directory is a file"):
        write_scenarios(result(TWICE), path / "x.yaml")


# ---- a pytest file


def test_the_whole_pytest_file():
    flaky = replace(DRIP, message="late")
    assert (
        source(result(flaky, STATE), COMMAND)
        == f'''\
# Written by memmock: what is changed here is lost when the tests are written again.
"""What memmock found, as tests that pass once the consumer is fixed.

    pytest {FILE_NAME}

They are run where the command of the consumer works.
"""

import pytest

from memmock.consumer_conformance.bench import Bench
from memmock.consumer_conformance.process import Process
from memmock.consumer_conformance.reproduction import act, assert_fixed

COMMAND = ["python3", "consumer.py"]


@pytest.fixture(scope="module")
def bench():
    with Bench(Process(COMMAND), timeout_ms=300) as bench:
        yield bench


def test_con301_drip(bench):
    """{RULES["CON301"].title}"""
    # Found: late
    # Expected: timeout, within 300 ms
    played = [
        act("drip"),
    ]
    assert_fixed("CON301", played, bench, times=20)


def test_con405_hang(bench):
    """{RULES["CON405"].title}"""
    # Found: the call after hang went wrong
    # Expected: what is right
    played = [
        act("hang"),
        act("success"),
    ]
    assert_fixed("CON405", played, bench)
'''
    )


CASE = ReplyCase(status=503, body=b"x" * 60)


def test_a_generated_reply_is_written_as_data():
    act = replace(
        GOOD,
        name="generated",
        case=CASE,
        retrieval={"query": "tea"},
        timeout_ms=900,
        max_response_bytes=4096,
    )
    made = source(result(finding("CON101", "x", seen(act)), finding("CON201", "x", seen(act))), COMMAND)
    assert "reproduction import assert_fixed, generated\n" in made
    assert "def test_con101_generated(bench)" in made
    (call,) = [
        node
        for node in ast.walk(ast.parse(made))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "generated"
    ][:1]
    assert ast.literal_eval(call.args[0]) == CASE.to_json()
    assert {each.arg: ast.literal_eval(each.value) for each in call.keywords} == {
        "retrieval": {"query": "tea"}, "timeout_ms": 900, "max_response_bytes": 4096,
    }  # fmt: skip


def test_tests_of_the_same_rule_and_scenario_are_numbered():
    made = source(result(TWICE, TWICE), COMMAND)
    assert "def test_con401_server_error(bench)" in made
    assert "def test_con401_server_error_2(bench)" in made


def test_a_command_with_a_secret_is_read_from_the_environment():
    command = ["./consumer", "--token", "t-1234567890"]
    made = source(result(TWICE, name="./consumer --token t-1234567890"), command)
    assert "1234567890" not in made
    assert 'COMMAND = shlex.split(os.environ["MEMMOCK_CONSUMER"])  # it holds a secret\n' in made
    compile(made, FILE_NAME, "exec")


def test_tests_are_written_into_a_directory(tmp_path):
    assert write_tests(result(), tmp_path, COMMAND) is None
    path = write_tests(result(TWICE), tmp_path / "new", COMMAND)
    assert path == write_tests(result(TWICE), tmp_path / "new", COMMAND)
    path.write_text("mine")
    with pytest.raises(MemmockError, match="was not written by memmock"):
        write_tests(result(TWICE), tmp_path / "new", COMMAND)
    with pytest.raises(MemmockError, match="its directory is a file"):
        write_tests(result(TWICE), path, COMMAND)
