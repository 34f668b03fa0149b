from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest

from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES
from memmock.http import AT_ONCE, Reply, Request
from memmock.readings import Reading, mismatch, readings
from memmock.scenarios import CATALOGUE, Scenario, Stage
from memmock.tool_result import tool_result

MEMORY = {
    "id": "1",
    "summary": "喜欢喝茶 tea",
    "type": "preference",
    "confidence": 0.9,
    "updated_at": "2026-05-18T08:12:40+08:00",
    "source": "long_term_memory",
}
OTHERS = [{"summary": f"memory number {n}"} for n in range(1, 5)]


def found(reply: Reply, accepts: str | None = None, limit: int = 65_536) -> list[Reading]:
    return list(readings(reply, max_response_bytes=limit, accepts=accepts))


def outcomes(reply: Reply, accepts: str | None = None, limit: int = 65_536) -> list[str]:
    return sorted(reading.outcome for reading in found(reply, accepts, limit))


def of_body(body: bytes, coding: str = "", **options: Any) -> list[str]:
    headers = (("Content-Encoding", coding),) if coding else ()
    return outcomes(Reply(200, headers, body), **options)


def ok_with(*memories: Any) -> Reading:
    (reading,) = found(Reply.json({"memories": list(memories)}))
    return reading


# ---- the catalogue


def stage() -> Stage:
    request = Request("POST", "/memory", (("Accept-Encoding", "identity"),), b'{"query": "tea"}')
    answer = Reply.json({"memories": [MEMORY, *OTHERS]})
    return Stage(
        request=request, answer=lambda: answer, path="/memory", elsewhere=lambda: "http://other.example"
    )


WHOLE = [
    scenario
    for scenario in CATALOGUE.values()
    if scenario.promise.replies and not scenario.promise.late and scenario.promise.end in ("open", "close")
]


@pytest.mark.parametrize("scenario", WHOLE, ids=repr)
def test_readings_of_a_scenario_are_its_outcomes(scenario: Scenario):
    reply = scenario.reply(stage())

    may_be = set(outcomes(reply, limit=DEFAULT_MAX_RESPONSE_BYTES))

    of_clients = {"response_too_large", "connection_failed"} if scenario.name == "huge-header" else set()
    assert may_be == set(scenario.outcomes) - of_clients


@pytest.mark.parametrize(
    "scenario", [each for each in WHOLE if each.reply(stage()).delivery.wire is None], ids=repr
)
def test_reference_consumer_makes_one_of_the_readings_of_a_scenario(scenario: Scenario):
    reply = scenario.reply(stage())
    result = tool_result(reply)
    memories = [memory.to_json() for memory in result.memories]

    status = None if result.error is None else result.error.status
    same = [each for each in found(reply) if each.outcome == result.outcome and each.status in (None, status)]
    assert same
    if result.ok:
        assert None in [mismatch(reading, memories) for reading in same]


# ---- status


@pytest.mark.parametrize("status", [300, 304, 404, 500, 599])
def test_error_status_decides(status):
    assert found(Reply(status, (), b'{"memories": []}')) == [Reading("http_error", status)]


@pytest.mark.parametrize("status", [101, 600, 999])
def test_status_beyond_http_may_be_a_failed_connection(status):
    assert found(Reply(status)) == [Reading("http_error", status), Reading("connection_failed")]


def test_final_100_may_be_waited_on():
    assert outcomes(Reply(102)) == ["connection_failed", "http_error", "timeout"]


# ---- size and content codings


GOOD = json.dumps({"memories": [MEMORY]}).encode()
PACKED = gzip.compress(GOOD)


def test_body_at_the_limit_is_read_and_one_byte_more_is_too_large():
    assert of_body(GOOD, limit=len(GOOD)) == ["ok"]
    assert of_body(GOOD, limit=len(GOOD) - 1) == ["response_too_large"]


@pytest.mark.parametrize("accepts", ["gzip", "br, GZIP;q=0.5", "*", "x-gzip"])
def test_gzip_that_was_asked_for_must_be_decoded(accepts):
    assert of_body(PACKED, "gzip", accepts=accepts) == ["ok"]


@pytest.mark.parametrize("accepts", [None, "", "identity", "gzip;q=0", "*;q=0.0", "br"])
def test_gzip_that_was_not_asked_for_may_be_refused(accepts):
    assert of_body(PACKED, "gzip", accepts=accepts) == ["invalid_json", "ok"]


def test_gzip_members_are_one_body():
    assert of_body(gzip.compress(GOOD[:20]) + gzip.compress(GOOD[20:]), "X-Gzip", accepts="gzip") == ["ok"]


@pytest.mark.parametrize(
    "body", [b"\x1f\x8b\x08\x00" + bytes(40), PACKED[:-5], PACKED[:-8] + bytes(8), GOOD], ids=range(4)
)
def test_broken_gzip_is_no_json_or_a_failed_connection(body):
    assert of_body(body, "gzip", accepts="gzip") == ["connection_failed", "invalid_json"]


def test_text_after_gzip_may_be_passed_over():
    assert of_body(PACKED + b"and more", "gzip", accepts="gzip") == [
        "connection_failed",
        "invalid_json",
        "ok",
    ]
    assert of_body(PACKED + b"\0\0\0", "gzip", accepts="gzip") == ["ok"]


def test_decoded_body_over_the_limit_is_too_large():
    body = gzip.compress(b'{"memories": []}'.ljust(5000))
    assert of_body(body, "gzip", accepts="gzip", limit=4999) == ["response_too_large"]
    assert of_body(body, "gzip", limit=4999) == ["invalid_json", "response_too_large"]
    assert of_body(body, "gzip", accepts="gzip", limit=5000) == ["ok"]


def test_broken_gzip_over_the_limit_may_be_too_large():
    body = gzip.compress(b" " * 5000)[:-4]
    assert of_body(body, "gzip", accepts="gzip", limit=100) == [
        "connection_failed", "invalid_json", "response_too_large",
    ]  # fmt: skip


@pytest.mark.parametrize("bits", [15, -15])
def test_deflate_is_decoded_or_refused(bits):
    packer = zlib.compressobj(wbits=bits)
    body = packer.compress(GOOD) + packer.flush()
    assert of_body(body, "deflate") == ["invalid_json", "ok"]
    assert of_body(body, "deflate", accepts="deflate") == ["ok"]


def test_unknown_coding_may_be_refused_or_passed_over():
    assert of_body(GOOD, "utf-8") == ["invalid_json", "ok"]
    assert of_body(b"\x0b\x02\x80", "br", accepts="br") == ["connection_failed", "invalid_json"]


# ---- JSON


@pytest.mark.parametrize(
    "body",
    [
        b"", b" \n", b"nothing", b'{"memories": [', b'{"memories": []} x', b'{"memories": [NaN]}',
        b'{"memories": [-Infinity]}', b'{"memories": [], "a": "\n"}', b'{"memories": [], "a": "\xff"}',
        b'{"memories": [], "a": "\xed\xa0\x80"}', b"{'memories': []}", b'{"memories": [],}',
        b'{"memories": [], "a": 01}', "{\"memories\": []}".encode("utf-16"), b"\x0c{}",
    ],
)  # fmt: skip
def test_body_that_is_no_json_is_invalid_json(body):
    assert of_body(body) == ["invalid_json"]


@pytest.mark.parametrize("body", [b"null", b"[]", b"7", b'"{}"', b"{}", b'{"memories": null}',
                                  b'{"memories": {}}', b'{"memories": [1, {"summary": ""}]}'])  # fmt: skip
def test_json_without_usable_memories_is_invalid_response(body):
    assert of_body(body) == ["invalid_response"]


def test_byte_order_mark_is_skipped_or_refused():
    assert of_body(b"\xef\xbb\xbf" + GOOD) == ["invalid_json", "ok"]
    assert of_body(b"\xef\xbb\xbf\xef\xbb\xbf" + GOOD) == ["invalid_json"]
    assert of_body(b" \xef\xbb\xbf" + GOOD) == ["invalid_json"]


def test_of_repeated_names_the_first_or_the_last_counts():
    may_be = found(Reply(200, (), b'{"memories": [{"summary": "a", "summary": "b"}]}'))

    assert [reading.memories for reading in may_be] == [({"summary": "b"},), ({"summary": "a"},), ()]
    assert may_be[-1].outcome == "invalid_json"


@pytest.mark.parametrize("number", ["1e400", "-1e999", "9" * 5000, "0." + "1" * 400])
def test_number_that_is_beyond_a_double_or_long_may_be_refused(number):
    assert of_body(b'{"memories": [], "n": %s}' % number.encode()) == ["invalid_json", "ok"]


@pytest.mark.parametrize("levels", [70, 5000, 30_000])
def test_deep_json_may_be_refused(levels):
    deep = b"[" * levels + b'"]"' + b"]" * levels
    assert of_body(deep) == ["invalid_json", "invalid_response"]
    assert of_body(b'{"memories": [{"summary": "tea", "x": %s}]}' % deep) == ["invalid_json", "ok"]


def test_deep_json_that_is_none_is_refused():
    assert of_body(b"[" * 20_000) == ["invalid_json"]
    assert of_body(b"]" * 20_000) == ["invalid_json"]


def test_many_memories_are_not_deep():
    assert of_body(json.dumps({"memories": [MEMORY] * 200}).encode()) == ["ok"]


# ---- memories


def test_unusable_memories_are_left_out():
    reading = ok_with(None, {"id": "2"}, MEMORY, {"summary": 3}, "tea", {"summary": ""}, OTHERS[0])
    assert list(reading.memories) == [MEMORY, OTHERS[0]]
    assert reading.optional == frozenset()


@pytest.mark.parametrize("blank", [" ", "\n\t", "\u3000", "\u200b", "\ufeff", "\0"])
def test_blank_summary_is_optional(blank):
    assert ok_with({"summary": blank}, MEMORY).optional == {0}
    assert outcomes(Reply.json({"memories": [{"summary": blank}]})) == ["invalid_response", "ok"]


# ---- bytes on the wire


def wire(*lines: str, body: bytes = GOOD, ending: Any = "close") -> Reply:
    return Reply.raw("\r\n".join([*lines, "", ""]).encode() + body, ending=ending)


LENGTH = f"Content-Length: {len(GOOD)}"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (wire("HTTP/1.1 200 OK", LENGTH), ["ok"]),
        (wire("HTTP/1.0 200 OK"), ["ok"]),
        (
            wire("HTTP/1.1 100 Continue", "", "HTTP/1.1 103 Early Hints", "", "HTTP/1.1 200 OK", LENGTH),
            ["ok"],
        ),
        (wire("HTTP/1.1 503 No", "Content-Length: 999"), ["http_error"]),
        (wire("HTTP/1.1 200 OK", "Content-Length: 999"), ["connection_failed"]),
        (wire("HTTP/1.1 200 OK", "Content-Length: -5"), ["connection_failed"]),
        (wire("HTTP/1.1 200 OK", LENGTH, "Content-Length: 7"), ["connection_failed"]),
        (wire("HTTP/1.1 200 OK", LENGTH, LENGTH), ["connection_failed", "ok"]),
        (wire("HTTP/1.1 200 OK", LENGTH, body=GOOD + b"more"), ["connection_failed", "ok"]),
        (wire("HTTP/1.1 200", LENGTH), ["connection_failed", "ok"]),
        (wire("HTTP/1.1 200 OK", "X: a\r\n b", LENGTH), ["connection_failed", "ok"]),
        (wire("HTTP/1.1 200 OK", "no header", LENGTH), ["connection_failed"]),
        (wire("HTTP/1.1 200 OK", "Transfer-Encoding: gzip"), ["connection_failed"]),
        (wire("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", body=b"zz"), ["connection_failed"]),
        (wire("200 OK"), ["connection_failed"]),
        (wire("HTTP/1.1 OK"), ["connection_failed"]),
        (Reply.raw(b""), ["connection_failed"]),
    ],
)
def test_wire_is_read_as_http(reply, expected):
    assert outcomes(reply) == expected


def test_wire_has_the_memories():
    chunks = b"5;x=y\r\n%s\r\n%x\r\n%s\r\n0\r\nTrailer: 1\r\n\r\n" % (GOOD[:5], len(GOOD) - 5, GOOD[5:])
    (reading,) = found(wire("HTTP/1.1 201 Created", "transfer-encoding:chunked", body=chunks, ending="keep"))
    assert reading.memories == (MEMORY,)


def test_delivery_without_a_wire_does_not_matter():
    reply = Reply.json({"memories": [MEMORY]})
    assert found(reply.chunked(3)) == found(reply)
    assert reply.delivery is AT_ONCE


# ---- what was passed on


@pytest.mark.parametrize(
    "passed",
    [
        MEMORY,
        {**MEMORY, "confidence": 0.8999999761581421, "advice": "use naturally"},
        {**MEMORY, "keywords": None},
    ],
)
def test_memory_as_it_was_sent_is_no_mismatch(passed):
    assert mismatch(ok_with(MEMORY), [passed]) is None


@pytest.mark.parametrize(
    ("field", "sent"),
    [("id", 7), ("id", ""), ("type", "mood"), ("confidence", True), ("confidence", 1.5),
     ("confidence", "0.9"), ("updated_at", "yesterday"), ("source", ["a"])],
)  # fmt: skip
def test_field_that_breaks_the_contract_may_be_left_out_null_or_as_sent(field, sent):
    reading = ok_with({**MEMORY, field: sent})
    rest = {name: value for name, value in MEMORY.items() if name != field}

    assert mismatch(reading, [rest]) is None
    assert mismatch(reading, [{**rest, field: None}]) is None
    assert mismatch(reading, [{**rest, field: sent}]) is None
    other = mismatch(reading, [{**rest, field: "another"}])
    assert other is not None
    assert other.kind == "field"


def test_confidence_beyond_a_double_is_any_number_or_none():
    (reading, _) = found(Reply(200, (), b'{"memories": [{"summary": "tea", "confidence": 1e400}]}'))

    assert mismatch(reading, [{"summary": "tea", "confidence": 1.7e308}]) is None
    assert mismatch(reading, [{"summary": "tea"}]) is None
    assert mismatch(reading, [{"summary": "tea", "confidence": "much"}]) == (
        "field", "/memories/0/confidence",
        'memory 1: confidence is "much", and a number beyond a double was sent',
    )  # fmt: skip


@pytest.mark.parametrize(
    "passed", [json.loads(r'"a \ud83d b"'), "a \ufffd b", "a \ufffd\ufffd\ufffd b"], ids=ascii
)
def test_lone_surrogate_is_kept_or_replaced(passed):
    reading = ok_with({"summary": "a \ud83d b", "id": "\udc00"})
    assert mismatch(reading, [{"summary": passed, "id": "\ufffd"}]) is None


def test_blank_memories_may_be_left_out():
    blank = {"summary": " ", "id": "b"}
    reading = ok_with(blank, MEMORY, blank, OTHERS[0], {**blank, "id": "c"})

    for passed in ([MEMORY, OTHERS[0]], list(reading.memories), [MEMORY, blank, OTHERS[0]],
                   [MEMORY, OTHERS[0], {**blank, "id": "c"}]):  # fmt: skip
        assert mismatch(reading, passed) is None


@pytest.mark.parametrize(
    ("passed", "kind", "pointer", "message"),
    [
        ([0, 2, 3], "set", "/memories",
         '3 of 4 usable memories are passed on; the 2nd is missing: "memory number 2"'),
        ([], "set", "/memories",
         '0 of 4 usable memories are passed on; the 1st is missing: "memory number 1"'),
        ([0, 2, 1, 3], "set", "/memories/1",
         'the memories come in another order: memory 2 is "memory number 3"'),
        ([0, 1, 1, 2, 3], "set", "/memories/2",
         '5 memories are passed on where 4 are usable; the 3rd comes again: "memory number 2"'),
        ([0, 1, 2, 3, {"summary": "made up"}], "set", "/memories/4",
         '5 memories are passed on where 4 are usable; the 5th is none of them: "made up"'),
        ([{"summary": None}, 0, 1, 2, 3], "set", "/memories/0",
         "5 memories are passed on where 4 are usable; the 1st has no summary"),
        ([0, {"summary": "memory num"}, 2, 3], "text", "/memories/1/summary",
         "memory 2: the summary is cut after 10 of 15 characters"),
        ([0, 1, 2, {}], "text", "/memories/3/summary", 'memory 4: the summary is lost: "memory number 4"'),
        ([0, 1, {"summary": " memory number 3"}, 3], "text", "/memories/2/summary",
         "memory 3: the white space around the summary is not as it was sent"),
        ([{"summary": "memory nUmber 1"}, 1, 2, 3], "text", "/memories/0/summary",
         'memory 1: the summary differs from character 9 on: "memory number 1" was sent, '
         '"memory nUmber 1" came'),
    ],
)  # fmt: skip
def test_difference_of_the_set_is_told(passed, kind, pointer, message):
    memories = [OTHERS[each] if isinstance(each, int) else each for each in passed]
    assert mismatch(ok_with(*OTHERS), memories) == (kind, pointer, message)


@pytest.mark.parametrize(
    ("sent", "passed", "message"),
    [
        ("R&D", "R&amp;D", 'memory 1: the summary is escaped as HTML: "R&amp;D"'),
        ("Cafe\u0301", "Café", 'memory 1: the characters of the summary are normalised: "Café"'),
        ("a\0b", "a", "memory 1: the summary is cut after 1 of 3 characters"),
    ],
)
def test_difference_of_a_summary_is_told(sent, passed, message):
    assert mismatch(ok_with({"summary": sent}), [{"summary": passed}]) == (
        "text", "/memories/0/summary", message,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "passed", "message"),
    [
        ({"confidence": 0}, {}, "memory 1: confidence 0 is lost"),
        ({"confidence": 0.25}, {"confidence": 0.3}, "memory 1: confidence is 0.3, and 0.25 was sent"),
        ({"confidence": 1}, {"confidence": True}, "memory 1: confidence is true, and 1 was sent"),
        ({}, {"confidence": 0.0}, "memory 1: confidence 0.0 is made up"),
        ({"id": "7"}, {"id": 7}, 'memory 1: id is 7, and "7" was sent'),
        ({"type": "other"}, {"type": None}, 'memory 1: type "other" is lost'),
    ],
)
def test_difference_of_a_field_is_told(sent, passed, message):
    (field,) = {*sent, *passed}
    assert mismatch(ok_with({"summary": "tea", **sent}), [{"summary": "tea", **passed}]) == (
        "field", f"/memories/0/{field}", message,
    )  # fmt: skip


def test_fields_that_were_not_sent_may_be_null_or_empty():
    passed = {"summary": "tea", "id": None, "type": "", "confidence": None, "updated_at": "", "source": None}
    assert mismatch(ok_with({"summary": "tea"}), [passed]) is None
