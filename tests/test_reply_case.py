import json

import pytest

from memmock import scenario_file
from memmock.consumer_conformance import parts
from memmock.consumer_conformance.edges import edges
from memmock.consumer_conformance.making import made
from memmock.errors import MemmockFailure
from memmock.http import Reply, Request
from memmock.readings import Reading
from memmock.reply_case import ReplyCase
from memmock.reply_wire import PLAIN, Style
from memmock.reply_writer import scripted
from memmock.scenarios import Stage
from memmock.tool_result import ToolResult

LIMIT = 65_536
REQUEST = Request("POST", "/memory", (("Host", "localhost"),))
TEA = b'{"memories":[{"summary":"tea"},{"summary":"cake"}]}'
EDGES = edges(LIMIT)


def styled(body=TEA, status=200, **style) -> ReplyCase:
    return ReplyCase(status, body=body, style=PLAIN._replace(**style))


def outcomes(case: ReplyCase, limit: int = LIMIT) -> list[str]:
    return sorted({reading.outcome for reading in case.readings(limit)})


def sent(reply: Reply) -> tuple[bytes, float, str]:
    """Return the bytes of a reply, the seconds that they take, and the ending."""
    script = scripted(reply, REQUEST, True)
    steps = list(script.steps)
    data = b"".join(step for step in steps if isinstance(step, bytes))
    return data, sum(step for step in steps if isinstance(step, float)), script.ending


# ---- bytes


def test_plain_style_is_written_by_the_server_itself():
    reply = styled().reply(0.3)
    assert reply == Reply(200, (("Content-Type", "application/json"),), TEA)


def test_wire_is_what_the_server_sends_of_every_edge():
    for case in EDGES:
        interim = 0
        if case.style.interim:
            whole = sent(case.reply(0.3))[0]
            interim = whole.index(case.wire[: case.head_bytes])
        data, _, _ = sent(case.reply(0.3))
        expected = case.wire if case.style.cut is None else case.wire[: case.style.cut]
        assert data[interim:] == expected, case.summary


@pytest.mark.parametrize(
    ("style", "head"),
    [
        (
            {"names": "lower"},
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n",
        ),
        ({"colon": ":"}, b"HTTP/1.1 200 OK\r\nContent-Type:application/json\r\nContent-Length:2\r\n\r\n"),
        (
            {"reason": "absent"},
            b"HTTP/1.1 200\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n",
        ),
        (
            {"reason": "empty"},
            b"HTTP/1.1 200 \r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n",
        ),
        (
            {"version": "1.0"},
            b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n",
        ),
        ({"length_by": 7}, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"),
    ],
)
def test_head_is_written_in_its_style(style, head):
    assert styled(b"{}", **style).wire == head + b"{}"


def test_chunks_are_written_in_their_style():
    style = {"chunk_bytes": 11, "sizes": "upper", "extension": ";a", "trailers": (("X-Sum", "1"),)}
    case = styled(b"a" * 12, framing="chunked", **style)
    assert case.wire.endswith(b"\r\n\r\nB;a\r\naaaaaaaaaaa\r\n1;a\r\na\r\n0;a\r\nX-Sum: 1\r\n\r\n")


def test_status_without_body_is_sent_without_one():
    assert styled(status=204).wire == b"HTTP/1.1 204 No Content\r\nContent-Type: application/json\r\n\r\n"


@pytest.mark.parametrize("part", ["all", "head", "body"])
def test_slices_take_their_part_of_the_time(part):
    reply = styled(slices=10, spread=0.5, sliced=part).reply(2.0)
    assert sent(reply)[1] == pytest.approx(1.0, abs=0.01)


# ---- readings


@pytest.mark.parametrize("style", [dict(change[1]) for change in (*parts.STYLES, *parts.SLOW_STYLES)])
def test_readings_of_odd_but_valid_framing_are_ok(style):
    assert outcomes(styled(**style)) == ["ok"]


def test_readings_of_a_status_line_without_space_are_open():
    assert outcomes(styled(reason="absent")) == ["connection_failed", "ok"]


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize(
    ("ending", "outcome"),
    [("close", "connection_failed"), ("reset", "connection_failed"), ("hang", "timeout")],
)
def test_readings_of_a_cut_body_go_by_the_ending(framing, ending, outcome):
    case = styled(framing=framing)
    cut = case.style._replace(cut=len(case.wire) - 6, ending=ending)
    assert outcomes(ReplyCase(body=TEA, style=cut)) == [outcome]


def test_readings_of_a_last_chunk_without_the_empty_line_are_open():
    case = styled(framing="chunked")
    for missing in (1, 2):
        cut = case.style._replace(cut=len(case.wire) - missing, ending="close")
        assert sorted(outcomes(ReplyCase(body=TEA, style=cut))) == ["connection_failed", "ok"]


def test_readings_of_a_body_cut_where_the_connection_ends_it_are_those_of_what_came():
    case = styled(framing="close")
    assert outcomes(styled(framing="close", cut=len(case.wire) - 1)) == ["invalid_json"]
    assert outcomes(styled(TEA + b"  ", framing="close", cut=len(case.wire))) == ["ok"]
    assert outcomes(styled(framing="close", ending="reset")) == ["connection_failed", "ok"]
    assert outcomes(styled(framing="close", ending="hang")) == ["timeout"]


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ({"cut": 70, "ending": "close"}, ["http_error"]),
        ({"cut": 90, "ending": "hang"}, ["http_error"]),
        ({"cut": 90, "ending": "reset"}, ["connection_failed", "http_error"]),
        ({"cut": 40, "ending": "close"}, ["connection_failed"]),
        ({"cut": 40, "ending": "hang"}, ["timeout"]),
        ({"slices": 30, "spread": 3.0, "sliced": "body"}, ["http_error"]),
        ({"slices": 30, "spread": 3.0, "sliced": "head"}, ["timeout"]),
        ({"surplus": b"x"}, ["http_error"]),
        ({"delay": 1.6}, ["timeout"]),
    ],
)
def test_readings_of_an_error_are_decided_by_its_head(style, expected):
    case = ReplyCase(500, (), TEA, Style(**style))
    assert 40 < case.head_bytes < 70
    assert outcomes(case) == expected


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ({"delay": 0.5}, ["ok"]),
        ({"delay": 1.0}, ["ok", "timeout"]),
        ({"delay": 1.6}, ["timeout"]),
        ({"delay": 1.6, "cut": 0, "ending": "close"}, ["timeout"]),
        ({"slices": 40, "spread": 2.0}, ["timeout"]),
        ({"surplus": b"}"}, ["connection_failed", "ok"]),
        ({"ending": "close"}, ["ok"]),
        ({"ending": "hang"}, ["ok"]),
        ({"ending": "reset"}, ["connection_failed", "ok"]),
        ({"length_by": -1}, ["connection_failed", "invalid_json"]),
        ({"length_by": 1}, ["timeout"]),
        ({"length_by": 1, "ending": "close"}, ["connection_failed"]),
        ({"length_by": LIMIT, "ending": "close"}, ["connection_failed", "response_too_large"]),
        ({"length_by": LIMIT}, ["response_too_large", "timeout"]),
    ],
)
def test_readings_go_by_the_way_of_sending(style, expected):
    assert outcomes(styled(**style)) == expected


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_readings_of_a_body_that_stands_still_beyond_the_limit_are_too_large(framing):
    case = made(("stall", (70_000, framing)), max_response_bytes=1000)
    assert outcomes(case, 1000) == ["response_too_large"]
    data, _, ending = sent(case.reply(0.3))
    assert ending == "hang"
    assert len(data) > 71_000


def test_readings_of_a_body_that_stands_still_just_beyond_the_limit_are_open():
    case = made(("stall", (1, "close")), max_response_bytes=1000)
    assert outcomes(case, 1000) == ["response_too_large", "timeout"]


def test_readings_of_a_size_at_the_limit_count_bytes():
    for framing in ("length", "chunked", "close"):
        style = ("style", (("framing", framing),))
        at, over = (made(("size", (by, "茶")), style, max_response_bytes=500) for by in (0, 1))
        assert (len(at.body), len(over.body)) == (500, 501)
        assert (outcomes(at, 500), outcomes(over, 500)) == (["ok"], ["response_too_large"])


def test_readings_of_a_large_head_are_open():
    case = ReplyCase(headers=tuple((f"X-{number}", "1") for number in range(150)), body=TEA)
    assert outcomes(case) == ["connection_failed", "ok", "response_too_large"]


def test_readings_of_every_edge_are_there_without_repetition():
    for case in EDGES:
        found = case.readings(LIMIT)
        assert found
        assert len(found) == len([each for n, each in enumerate(found) if each not in found[:n]])


# ---- as data


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_described_gives_the_same_reply_from_a_file(tmp_path, suffix):
    described = {f"edge-{number}": case.described(0.3, LIMIT) for number, case in enumerate(EDGES)}
    small = {name: each for name, each in described.items() if len(json.dumps(each)) < 3000}
    path = tmp_path / f"edges{suffix}"
    path.write_text(json.dumps({"scenarios": small}), encoding="utf-8")
    own = scenario_file.read(path)
    assert len(small) > 150
    for number, case in enumerate(EDGES):
        scenario = own.scenarios.get(f"edge-{number}")
        if scenario is not None:
            again = scenario.make(Stage(request=REQUEST, answer=lambda: Reply.json({"memories": []})))
            assert sent(again) == sent(case.reply(0.3)), case.summary
            assert again.delivery.interim == case.reply(0.3).delivery.interim
            assert set(scenario.outcomes) == {reading.outcome for reading in case.readings(LIMIT)}


def test_described_shows_json_as_it_is():
    assert styled(framing="chunked", chunk_bytes=7, delay=0.5).described(0.3) == {
        "summary": "A 200 with a body of 51 bytes; in chunks of 7 bytes; begun after 50 % of the "
        "consumer's time.",
        "status": 200,
        "headers": {"Content-Type": "application/json"},
        "body": {"memories": [{"summary": "tea"}, {"summary": "cake"}]},
        "delivery": {"delay_ms": 150, "framing": "chunked", "chunk_bytes": 7},
        "outcomes": ["ok"],
    }


def test_described_shows_bytes_that_are_no_text_in_base64():
    described = styled(b"\xff").described(0.3)
    assert described["body_base64"] == "/w=="
    assert "wire_base64" in ReplyCase(headers=(("X-Note", "caf\xe9"),), body=b"{}").described(0.3)


def test_json_form_gives_the_same_case():
    for case in EDGES:
        assert ReplyCase.from_json(json.loads(json.dumps(case.to_json()))) == case


@pytest.mark.parametrize(
    "change",
    [
        {"status": "200"},
        {"status": 99},
        {"body": 1},
        {"headers": [["a"]]},
        {"style": {"cut": "1"}},
        {"style": {"framing": "none"}},
        {"style": {"unknown": 1}},
        {"style": {"slices": True}},
        {"more": 1},
    ],
)
def test_json_form_that_is_none_is_refused(change):
    with pytest.raises((ValueError, KeyError, TypeError)):
        ReplyCase.from_json({**ReplyCase().to_json(), **change})


def test_cases_are_values():
    assert len({styled(), styled(), styled(delay=0.5)}) == 2


# ---- check


def test_check_takes_what_the_contract_allows():
    styled().check({"ok": True, "memories": [{"summary": "tea"}, {"summary": "cake"}]})
    styled(status=503).check(ToolResult.failed("http_error", "x", 503))
    styled(surplus=b"x").check({"ok": False, "error": {"code": "connection_failed", "message": "x"}})


@pytest.mark.parametrize(
    ("case", "result", "message"),
    [
        (
            styled(),
            ToolResult.failed("timeout", "x"),
            "expected ok with 2 memories, got timeout",
        ),
        (
            styled(status=503),
            ToolResult.failed("http_error", "x", 500),
            "expected http_error with status 503, got http_error with status 500",
        ),
        (
            styled(b"nothing"),
            {"ok": True, "memories": []},
            "expected invalid_json, got ok with 0 memories",
        ),
        (
            styled(surplus=b"x"),
            [],
            "expected ok with 2 memories or connection_failed, got what is no tool result: []",
        ),
    ],
)
def test_check_says_what_was_expected(case, result, message):
    with pytest.raises(MemmockFailure) as failure:
        case.check(result)
    assert str(failure.value) == message


def test_check_says_where_memories_differ():
    with pytest.raises(MemmockFailure, match="/memories"):
        styled().check({"ok": True, "memories": [{"summary": "tea"}]})


def test_reading_of_an_error_has_its_status():
    assert styled(status=429).readings() == (Reading("http_error", 429),)
