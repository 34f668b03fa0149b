from __future__ import annotations

import gzip
import json
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memmock.contract import FORBIDDEN_FIELDS, MEMORY_TYPES
from memmock.http import AT_ONCE, Reply, Request
from memmock.rules import (
    RULES,
    Severity,
    Violation,
    body_violations,
    reply_violations,
    request_violations,
)
from memmock.rules.summaries import chat_log_sign, garbled_sign, markup_sign, says_nothing_found
from tests.contract_cases import Case, reply_cases, request_cases, request_of

REQUESTS, REPLIES = request_cases(), reply_cases()
GOOD = request_of({"json": {"query": "tea"}})
MEMORY = {
    "id": "1",
    "summary": "Likes tea.",
    "type": "preference",
    "confidence": 0.9,
    "updated_at": "2026-05-18T08:12:40Z",
    "source": "long_term_memory",
}


def found(violations: list[Violation]) -> list[str]:
    return [f"{violation.code} {violation.place}" for violation in violations]


def of_summary(text: str) -> list[str]:
    violations = reply_violations(Reply.json({"memories": [{**MEMORY, "summary": text}]}))
    assert {violation.place for violation in violations} <= {"body /memories/0/summary"}
    return [violation.code for violation in violations]


# ---- the fixtures


@pytest.mark.parametrize("case", REQUESTS, ids=str)
def test_request_fixture_breaks_exactly_its_rules(case: Case):
    assert found(request_violations(case.message)) == case.broken


@pytest.mark.parametrize("case", REPLIES, ids=str)
def test_reply_fixture_breaks_exactly_its_rules(case: Case):
    violations = reply_violations(case.message, case.to, elapsed_s=case.elapsed_s)

    assert found(violations) == case.broken


@pytest.mark.parametrize("case", REQUESTS, ids=str)
def test_body_violations_are_those_of_the_request_in_its_body(case: Case):
    assert found(body_violations(case.message.body)) == [at for at in case.broken if " body" in at]


def test_every_rule_is_broken_by_a_fixture_but_the_one_that_needs_a_configuration():
    broken = {at.split()[0] for case in REQUESTS + REPLIES for at in case.broken}

    of_calls = {code for code in RULES if code == "RES007" or code.startswith("RES6")}
    of_messages = {code for code in RULES if not code.startswith("CON")}
    assert of_messages - broken == {"REQ006"} | of_calls  # no single message shows these


def test_fixture_names_are_unique():
    for cases in (REQUESTS, REPLIES):
        assert len({case.name for case in cases}) == len(cases)


# ---- the table


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_rule_can_be_read(rule):
    assert rule.title.endswith(".")
    assert "\n" not in rule.title
    assert rule.reason.endswith(".")
    assert "  " not in rule.title + rule.reason
    assert rule.source in ("[seed]", "[ref]", "[ours]")
    assert rule.wrong
    assert rule.right
    assert rule.wrong != rule.right
    assert max(map(len, f"{rule.wrong}\n{rule.right}".splitlines())) <= 100


def test_codes_are_in_order_and_have_no_gap_inside_a_group():
    codes = list(RULES)
    assert list(dict.fromkeys(code[:3] for code in codes)) == ["REQ", "RES", "CON"]
    assert codes == sorted(codes, key=lambda code: (["REQ", "RES", "CON"].index(code[:3]), code))
    for group in {code[:4] for code in codes}:
        numbers = [int(code[4:]) for code in codes if code.startswith(group)]
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize(
    "code", [code for code in RULES if code[:4] in ("REQ1", "REQ2", "REQ3") and code != "REQ101"]
)
def test_examples_of_a_request_body_show_the_rule(code):
    assert code in [violation.code for violation in body_violations(RULES[code].wrong.encode())]
    assert body_violations(RULES[code].right.encode()) == []


@pytest.mark.parametrize(
    "code", [code for code in RULES if code[:4] in ("RES1", "RES2", "RES4") and code != "RES101"]
)
def test_examples_of_a_reply_body_show_the_rule(code):
    def codes(example: str) -> set[str]:
        whole = example if '"memories"' in example or code < "RES203" else f'{{"memories": [{example}]}}'
        reply = Reply(200, (("Content-Type", "application/json"),), whole.encode())
        return {violation.code for violation in reply_violations(reply)}

    assert code in codes(RULES[code].wrong)
    assert codes(RULES[code].right) <= {"RES209"}  # examples leave out what they are not about


# ---- violations


def test_violation_reads_as_one_line():
    (violation,) = body_violations(b'{"query": "tea", "max_results": 0}')

    assert str(violation) == "REQ209 error at body /max_results: must be an integer of at least 1, not 0"
    assert violation == Violation(
        RULES["REQ209"], "body", "/max_results", "must be an integer of at least 1, not 0", "0"
    )
    assert violation.severity is Severity.ERROR
    assert repr(violation.rule) == "<Rule REQ209>"


def test_rules_and_violations_can_be_written_as_json():
    (violation,) = body_violations(b'{"query": 1}')

    assert json.loads(json.dumps(violation.to_json())) == {
        "code": "REQ202",
        "severity": "error",
        "where": "body",
        "pointer": "/query",
        "message": "must be a string, not 1",
        "value": "1",
    }
    written = json.loads(json.dumps(RULES["RES209"].to_json()))
    assert list(written) == ["code", "severity", "title", "reason", "source", "wrong", "right"]
    assert written["severity"] == "warning"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the text is empty"),
        (b"tea", "Expecting value at character 0"),
        (b'{"query": "a"} x', "more text after the value, at character 15"),
        (b'{"query": null}', "must be a string, not null"),
        (b'{"query": {"a": 1}}', "must be a string, not an object with 1 field"),
        (b'{"query": [1, 2]}', "must be a string, not an array of 2"),
        (b'{"query": "a", "max_results": "\\u001b[2J"}', 'not "\\u001b[2J"'),
        (b'{"query": "a", "live_id": ' + b"9" * 200 + b"}", f"must be a string, not {'9' * 60}…"),
        (b'{"query": "a", "memory_types": ["' + b"x" * 99 + b'"]}', f'one of the kinds, not "{"x" * 59}…'),
    ],
)  # fmt: skip
def test_message_names_what_was_found_shortened(body, message):
    (violation,) = body_violations(body)

    assert violation.message.endswith(message)
    assert len(violation.value) <= 80


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"null", 'must be an object; nothing found is {"memories": []}; this is null'),
        (b"nothing", 'Expecting value at character 0; nothing found is {"memories": []}'),
        (b'{"memories": null}', 'must be an array; nothing found is {"memories": []}; this is null'),
        (b'{"error": {}}', "is absent beside an error; an error has a status outside 2xx"),
    ],
)
def test_message_of_a_wrong_shape_says_what_to_send_instead(body, message):
    (violation,) = reply_violations(Reply(200, (("Content-Type", "application/json"),), body))

    assert violation.message == message


def test_place_is_printable_and_short_where_a_name_is_not():
    (violation,) = body_violations(json.dumps({"query": "a", "\x1b\u202e" + "k" * 500: {"sql": 1}}).encode())

    assert violation.pointer == f"/\x1b\u202e{'k' * 500}/sql"
    assert violation.place == f"body /\\u001b\\u202e{'k' * 117}…"


def test_violations_of_one_rule_are_counted_past_twenty():
    violations = body_violations(json.dumps({"query": "a", "memory_types": [1] * 100, "x": 0}).encode())

    assert [violation.code for violation in violations] == ["REQ207"] * 21
    assert violations[19].pointer == "/memory_types/19"
    assert violations[20].pointer == ""
    assert violations[20].message == "and 80 more like this"


# ---- the head


@pytest.mark.parametrize(
    ("sent", "configured", "codes"),
    [
        ("opaque-1", "opaque-1", []),
        ("Bearer opaque-1", "opaque-1", ["REQ006"]),
        ("bearer opaque-1", "Bearer opaque-1", ["REQ006"]),
        ("opaque-1", " opaque-1 ", []),
        ("密钥".encode().decode("latin-1"), "密钥", []),
        ("", "opaque-1", ["REQ004"]),
    ],
)
def test_authorization_is_compared_verbatim_with_the_configured_one(sent, configured, codes):
    request = request_of({"json": {"query": "tea"}, "headers": {"Authorization": sent}})

    violations = request_violations(request, authorization=configured)

    assert [violation.code for violation in violations] == codes
    assert "opaque-1" not in f"{violations}{[str(violation) for violation in violations]}"


@pytest.mark.parametrize("accept", ["application/*", "application/jsonp", "text/application/json", ""])
def test_accept_without_json_is_a_violation(accept):
    request = request_of({"json": {"query": "tea"}, "headers": {"Accept": accept}})

    assert found(request_violations(request)) == ["REQ003 header Accept"]


@pytest.mark.parametrize("kind", FORBIDDEN_FIELDS)
def test_forbidden_name_is_found_in_every_spelling(kind):
    code = f"REQ30{1 + list(FORBIDDEN_FIELDS).index(kind)}"
    for name in FORBIDDEN_FIELDS[kind]:
        head, *rest = name.split("_")
        for spelling in (name, name.upper(), name.replace("_", "-"), head + "".join(map(str.title, rest))):
            assert found(body_violations(json.dumps({"query": "a", "b": [{spelling: 1}]}).encode())) == [
                f"{code} body /b/0/{spelling}"
            ]


def test_forbidden_name_is_found_in_a_body_that_is_no_object():
    assert found(body_violations(b'[{"user_id": 1}]')) == ["REQ201 body", "REQ301 body /0/user_id"]


@pytest.mark.parametrize("status", [0, 100, 199, 204, 299, 301, 401, 500, 999])
def test_any_status_but_200_breaks_the_contract_without_a_request(status):
    codes = [violation.code for violation in reply_violations(Reply.json({"memories": []}, status))]

    assert codes == ["RES001"]


@pytest.mark.parametrize(
    ("status", "codes"), [(200, []), (400, []), (422, []), (302, ["RES002"]), (503, ["RES002"])]
)
def test_a_wrong_request_may_be_answered_or_refused(status, codes):
    violations = reply_violations(Reply.json({"memories": []}, status), request_of({"json": {}}))

    assert [violation.code for violation in violations] == codes


def test_a_request_with_warnings_only_is_to_be_answered():
    violations = reply_violations(Reply.error(400, "bad_request", ""), request_of({"json": {"query": " "}}))

    assert [violation.code for violation in violations] == ["RES001"]


@pytest.mark.parametrize("status", [200, 503])
def test_size_counts_as_received_and_as_decoded(status):
    to = request_of({"json": {"query": "tea"}, "headers": {"Accept-Encoding": "gzip"}})
    body = b'{"memories": []}'.ljust(1000)
    plain = Reply(status, (("Content-Type", "application/json"),), body)
    packed = Reply(status, (*plain.headers, ("Content-Encoding", "gzip")), gzip.compress(body))

    def codes(reply: Reply, limit: int) -> set[str]:
        return {found.code for found in reply_violations(reply, to, max_response_bytes=limit)} - {"RES001"}

    assert codes(plain, 1000) == set()
    assert codes(plain, 999) == {"RES005"}
    assert codes(packed, 1000) == set()
    assert codes(packed, 999) == {"RES005"}
    assert codes(packed, 10) == {"RES005"}


def test_time_is_judged_against_the_setting():
    (violation,) = reply_violations(Reply.json({"memories": []}), timeout_ms=50, elapsed_s=0.0512)

    assert str(violation) == "RES006 error at exchange: took 51 ms, more than the 50 ms allowed"


def test_a_short_authorization_may_stand_in_an_error():
    to = request_of({"json": {"query": "tea"}, "headers": {"Authorization": "request"}})
    reply = Reply.error(400, "bad_request", "bad request")

    assert [violation.code for violation in reply_violations(reply, to)] == ["RES001"]


@pytest.mark.parametrize(
    "trace",
    [
        '  File "app.py", line 3, in lookup',
        "at com.example.Lookup.run(Lookup.java:41)",
        "at lookup (/srv/app.js:10:5)",
        "goroutine 1 [running]:",
    ],
)
def test_stack_trace_in_an_error_is_found(trace):
    codes = [violation.code for violation in reply_violations(Reply.error(500, "internal_error", trace))]

    assert codes == ["RES001", "RES502"]


# ---- what was asked for


@pytest.mark.parametrize(
    ("asked", "codes"),
    [
        ({"query": "a", "max_results": 2.0}, []),
        ({"query": "a", "max_results": 1.0}, ["RES302"]),
        ({"query": "a", "max_results": 10**30}, []),
        ({"query": "a", "max_results": True}, []),
        ({"query": "a", "max_results": 0}, []),
        ({"query": "a", "memory_types": ["food"]}, []),
        ({"query": "a", "memory_types": ["food", {}, "style"]}, ["RES303", "RES303"]),
        ([], []),
    ],
)
def test_reply_to_a_request_is_judged_by_what_can_be_read_of_it(asked, codes):
    reply = Reply.json({"memories": [MEMORY, {**MEMORY, "id": "2"}]})

    violations = reply_violations(reply, request_of({"json": asked}))

    assert [violation.code for violation in violations] == codes


def test_unknown_kind_is_reported_once_where_kinds_were_asked_for():
    reply = Reply.json({"memories": [{**MEMORY, "type": "food"}]})

    violations = reply_violations(reply, request_of({"json": {"query": "a", "memory_types": ["style"]}}))

    assert found(violations) == ["RES206 body /memories/0/type"]


# ---- summaries


@pytest.mark.parametrize(
    "text",
    [
        "没查到", "没有找到相关记忆。", "未找到", "暂无相关记忆", "没有任何记录",
        "抱歉，没有找到与咖啡相关的记忆。",
        "没有相关信息", "查无结果", "无", "数据库中没有找到相关记录", "没有找到相关的记忆：咖啡", "(未找到)",
        "No memories found.", "no relevant memories found for this query", "No results", "Nothing found",
        "Sorry, I could not find any relevant memories.", "not found", "None", "n/a", "NULL",
        "I couldn't find anything about tea.", "There are no memories about this.", "Memory not found!",
        "No memory found for query: tea", "Unable to retrieve any information about the user",
    ],
)  # fmt: skip
def test_summary_that_says_nothing_was_found_is_an_error(text):
    assert says_nothing_found(text)
    assert of_summary(text) == ["RES202"]


@pytest.mark.parametrize(
    "text",
    [
        "user: hi\nassistant: hello", "用户：你好\n助手：好", "Chen: hi\nLi: hello", "User: tea please",
        "用户: 来杯茶",
        "Human: tea please AI: with sugar?", "[2026-01-02 10:00] tea please", "[10:00:01] tea please",
        "2026-01-02 10:00:01 tea please", "10:01 tea\n10:02 coffee",
        "2026/01/02 10:01 tea\n2026/01/02 10:02 tea",
        "<|im_start|>likes tea", "[INST] likes tea [/INST]",
    ],
)  # fmt: skip
def test_summary_that_is_a_chat_log_is_warned_about(text):
    assert chat_log_sign(text)
    assert "RES402" in of_summary(text)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("<b>Likes</b> tea", "an HTML tag"), ("Likes tea<br/>", "an HTML tag"),
        ("<!DOCTYPE html>", "an HTML tag"),
        ('<a href="x">tea</a>', "an HTML tag"), ("tea &amp; coffee", "an HTML entity"),
        ("&#39;tea", "an HTML entity"),
        ('{"likes": "tea"}', "JSON"), ("{'likes': 'tea'}", "JSON"), ('["tea"]', "JSON"), ("[1, 2]", "JSON"),
        ("{}", "JSON"), ('The user: {"likes": 1}', "JSON"), ("```tea```", "a Markdown code block"),
        ("| a | b |", "a Markdown table"), ("a | b\n---|---", "a Markdown table"),
        ("# Tea", "a Markdown heading"),
        ("- tea\n- coffee", "a Markdown list"), ("Likes **tea**", "Markdown emphasis"),
        ("[tea](https://tea.example)", "a Markdown link"),
    ],
)  # fmt: skip
def test_summary_with_markup_is_warned_about(text, sign):
    assert markup_sign(text) == sign
    assert "RES403" in of_summary(text)


@pytest.mark.parametrize(
    "text",
    [
        "Lives in MalmÃ¶.", "å–œæ¬¢", "用户喜欢".encode().decode("latin-1"), "用户".encode().decode("gbk"),
        "Likes t\ufffda", "Likes\x00tea", "\\u559c\\u6b22", "tea\\n coffee", "????????", "caf\\xe9",
    ],
)  # fmt: skip
def test_summary_that_is_garbled_is_warned_about(text):
    assert garbled_sign(text)
    assert "RES404" in of_summary(text)


@pytest.mark.parametrize(
    "text",
    [
        "I <3 tea", "a < b and c > d", "Note to self: buy milk", "他说：“好的，先结论：再理由。”",
        "User prefers tea",
        "Loves R&D; also AT&T", "Nora <nora@example.com> sells bowls", "10:00 is too early",
        "[重要] 对花生过敏",
        "What??? Really?", "C# 和 F#", "Ünïcödé naïve café, Malmö", "Å", "用户没有找到工作。", "没有找到工作",
        "没有童年的记忆", "The user could not find his keys.", "Nothing makes the user happier than tea.",
        "No Python.", "没有兄弟姐妹", "不用 Python", "The user: likes tea", "Works in C:\\Windows",
        "🍵 2 * 3 * 4 _ok_",
        "Q: what is RFC 3339?", "联通", "x" * 300, " padded\n",
    ],
)  # fmt: skip
def test_natural_sentence_passes(text):
    assert of_summary(text) == []


def test_summary_of_more_than_300_characters_is_warned_about():
    assert of_summary("x" * 301) == ["RES401"]


# ---- any input

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.sampled_from(["", "a", *MEMORY_TYPES]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["query", "memories", "memory_types", "max_results", "live_id", "user_id", "error", *MEMORY]
            )
            | st.text(st.characters(codec=None)),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)  # fmt: skip
BODIES = st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode())
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["content-type", "Accept", "Authorization", "Content-Encoding", "Accept-Encoding"])
        | st.text(max_size=5),
        st.sampled_from(["gzip", "deflate", "*", "application/json", "gzip;q=0", ",;="])
        | st.text(max_size=20),
    ),
    max_size=4,
).map(tuple)


@given(st.builds(Request, st.text(max_size=8), st.just("/"), HEADERS, BODIES))
def test_any_request_can_be_judged(request):
    violations = request_violations(request)

    assert all("\n" not in str(violation) and len(str(violation)) < 500 for violation in violations)
    assert str(violations) == str(request_violations(request))


@given(
    st.builds(Reply, st.integers(0, 999), HEADERS, BODIES, st.just(AT_ONCE)),
    st.none() | st.builds(Request, st.just("POST"), st.just("/"), HEADERS, BODIES),
    st.none() | st.floats(),
)
def test_any_reply_can_be_judged(reply, to, elapsed_s):
    for violation in reply_violations(reply, to, elapsed_s=elapsed_s):
        assert str(violation).isprintable()
        assert len(str(violation)) < 500


KINDS = st.sampled_from(MEMORY_TYPES)
WORDS = st.sampled_from(["tea", "coffee", "茶", "the user", "likes", "<3", "早上", "🍵", "10:00"])
SENTENCES = st.lists(WORDS, min_size=1, max_size=9).map(" ".join)
UTF8 = st.text(st.characters(codec="utf-8"))
RETRIEVALS = st.fixed_dictionaries(
    {"query": UTF8.filter(str.strip)},
    optional={
        "live_id": UTF8,
        "reason": UTF8,
        "time_hint": UTF8,
        "memory_types": st.lists(KINDS, unique=True),
        "max_results": st.integers(1),
    },
)
MEMORIES = st.fixed_dictionaries(
    {
        "id": UTF8,
        "summary": SENTENCES,
        "type": KINDS,
        "confidence": st.floats(0, 1) | st.integers(0, 1),
        "updated_at": st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat),
        "source": UTF8,
    }
)


@given(RETRIEVALS)
def test_a_request_that_keeps_the_contract_has_no_violation(retrieval):
    assert request_violations(request_of({"json": retrieval})) == []


@given(RETRIEVALS, st.lists(MEMORIES, max_size=7, unique_by=lambda memory: memory["id"]))
def test_a_reply_that_keeps_the_contract_has_no_violation(retrieval, memories):
    wanted = retrieval.get("memory_types") or MEMORY_TYPES
    memories = [memory for memory in memories if memory["type"] in wanted]
    reply = Reply.json({"memories": memories[: retrieval.get("max_results", 5)]})

    assert reply_violations(reply, request_of({"json": retrieval})) == []


MIB = 1 << 20
HOSTILE = {
    "an array of numbers": b'{"query":"a","memories":[' + b"1," * 120_000 + b"1]}",
    "objects without anything": b'{"query":"a","memories":[' + b"{}," * 80_000 + b"{}]}",
    "memory_types without end": b'{"query":"a","memory_types":[' + b'"x",' * 60_000 + b'"x"]}',
    "a long name above many flaws": b'{"' + b"k" * 200_000 + b'":[' + b"1e999," * 20_000 + b"1]}",
    "a long name above forbidden ones": b'{"' + b"k" * 200_000 + b'":[' + b'{"sql":1},' * 20_000 + b"1]}",
    "nested without end": b"[" * 100_000,
    "nested objects": b'{"memories":[' * 80_000,
    "a number of a million digits": b'{"query":"a","max_results":' + b"9" * MIB + b"}",
    "a long summary": b'{"memories":[{"summary":"' + b"<a user: \\n" * 25_000 + b'"}]}',
    "many summaries": b'{"memories":[' + b'{"summary":"No a a a a <a"},' * 9_000 + b"{}]}",
    "equal ids": b'{"memories":[' + b'{"id":"1"},' * 25_000 + b"{}]}",
    "repeated names": b"{" + b'"a":1,' * 40_000 + b'"a":1}',
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_body_is_judged_in_bounded_time_and_words(body):
    began = time.perf_counter()
    violations = [
        *request_violations(Request("POST", "/", (), body)),
        *reply_violations(Reply(200, (), body), GOOD),
        *reply_violations(Reply(500, (), body), Request("POST", "/", (), body)),
    ]
    elapsed_s = time.perf_counter() - began

    assert elapsed_s < 20, "not linear"  # less than 1 s; what is quadratic takes much longer
    assert len(violations) < 250
    assert sum(len(str(violation)) for violation in violations) < 50_000
