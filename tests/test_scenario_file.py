"""Files with scenarios of one's own: what they may say, and what is wrong with them where."""

from __future__ import annotations

import json

import pytest

from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Delivery, Reply, Request
from memmock.scenario_file import read
from memmock.scenarios import Stage

HONEST = Reply.json({"memories": [{"summary": "甲"}]}, headers=(("X-Honest", "1"),))
STAGE = Stage(request=Request("POST", "/memory_retrieval"), answer=lambda: HONEST)


@pytest.fixture
def file(tmp_path):
    """Write a file and return its path."""

    def write(text, name="own.yaml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def reply(file):
    """Return what the scenario with these fields replies."""

    def make(fields):
        text = "scenarios:\n  sleepy:\n" + "".join(f"    {line}\n" for line in fields.splitlines())
        return read(file(text)).scenarios["sleepy"].reply(STAGE)

    return make


# ---- what may be said


def test_scenario_has_all_that_is_said_of_it(file):
    own = read(
        file("""
            scenarios:
              sleepy:
                summary: Half a second late, in chunks.
                status: 203
                headers: {X-Name: 茶, Set-Cookie: [a=1, b=2], X-Number: 7, x-float: 0.5}
                body: {memories: [], n: 1.0}
                delivery: {delay_ms: 500, framing: chunked}
                outcomes: [ok, invalid_json]
              second: {}
        """)
    )
    assert list(own.scenarios) == ["sleepy", "second"]
    assert own.always == {}
    scenario = own.scenarios["sleepy"]
    assert (scenario.name, scenario.family) == ("sleepy", "own")
    assert scenario.summary == "Half a second late, in chunks."
    assert scenario.outcomes == ("ok", "invalid_json")
    assert scenario.parameters == ()
    assert scenario.reply(STAGE) == Reply(
        203,
        (
            ("Content-Type", JSON_TYPE),
            ("X-Name", "茶".encode().decode("latin-1")),
            ("Set-Cookie", "a=1"),
            ("Set-Cookie", "b=2"),
            ("X-Number", "7"),
            ("x-float", "0.5"),
        ),
        b'{"memories":[],"n":1.0}',
        Delivery(delay_s=0.5, framing="chunked"),
    )


def test_json_file_says_the_same(file):
    fields = {"status": 500, "headers": {"X": ["a", "b"]}, "body": {"a": "暗号"}, "delivery": {"cut_body": 3}}
    path = file(json.dumps({"scenarios": {"sleepy": fields}}), "own.json")
    expected = Reply.json({"a": "暗号"}, 500, (("X", "a"), ("X", "b"))).cut(3)
    assert read(path).scenarios["sleepy"].reply(STAGE) == expected


def test_file_without_scenarios_has_none(file):
    own = read(file("scenarios: {}"))
    assert (own.scenarios, own.always) == ({}, {})


@pytest.mark.parametrize(
    ("fields", "body", "content_type"),
    [
        ("body: {a: [1, null, true, 1.5]}", b'{"a":[1,null,true,1.5]}', JSON_TYPE),
        ("body: [1]", b"[1]", JSON_TYPE),
        ("body: null", b"null", JSON_TYPE),
        ("body: 12", b"12", JSON_TYPE),
        ("body: 没查到", "没查到".encode(), "text/plain; charset=utf-8"),
        ("body: ''", b"", "text/plain; charset=utf-8"),
        ("body: 2024-05-01", b"2024-05-01", "text/plain; charset=utf-8"),
        ("body: |\n  one\n  two", b"one\ntwo\n", "text/plain; charset=utf-8"),
        ("body: !!binary //79", b"\xff\xfe\xfd", "application/octet-stream"),
        ("body_base64: //79", b"\xff\xfe\xfd", "application/octet-stream"),
        ("body_base64: ''", b"", "application/octet-stream"),
    ],
)
def test_body_is_sent_as_what_it_is(reply, fields, body, content_type):
    made = reply(fields)
    assert (made.status, made.body, made.headers) == (200, body, (("Content-Type", content_type),))


def test_content_type_may_be_another(reply):
    assert reply("body: x\nheaders: {content-type: text/html}").headers == (("content-type", "text/html"),)


@pytest.mark.parametrize(
    ("fields", "data", "status"),
    [
        (r'wire: "HTTP/1.1 418 no\r\n\r\nabc"', b"HTTP/1.1 418 no\r\n\r\nabc", 418),
        ("wire: !!binary //79", b"\xff\xfe\xfd", 0),
        ("wire_base64: //79", b"\xff\xfe\xfd", 0),
        ("wire: 茶", "茶".encode(), 0),
        ("wire: ''", b"", 0),
    ],
)
def test_wire_is_sent_as_it_is(reply, fields, data, status):
    made = reply(f"{fields}\ndelivery: {{ending: reset, delay_ms: 10, slice_bytes: 2}}")
    assert made.delivery == Delivery(wire=data, ending="reset", delay_s=0.01, slice_bytes=2)
    assert made.status == status


def test_without_a_body_the_honest_answer_is_delivered_in_another_way(reply):
    made = reply("delivery: {framing: chunked}")
    assert made == HONEST.chunked()


def test_honest_answer_may_have_another_status_and_other_headers(reply):
    made = reply("status: 500\nheaders: {x-honest: '2', X-More: a}")
    assert (made.status, made.body) == (500, HONEST.body)
    assert made.headers == (("Content-Type", JSON_TYPE), ("x-honest", "2"), ("X-More", "a"))


@pytest.mark.parametrize(
    ("fields", "delivery"),
    [
        ("", Delivery()),
        ("delay_ms: 250", Delivery(delay_s=0.25)),
        ("delay_ms: 0.5", Delivery(delay_s=0.0005)),
        (
            "interim: [{status: 103, headers: {Link: [</a>, </b>]}}, {status: 100}]",
            Delivery(interim=((103, (("Link", "</a>"), ("Link", "</b>"))), (100, ()))),
        ),
        ("framing: chunked, chunk_bytes: 7", Delivery(framing="chunked", chunk_bytes=7)),
        ("framing: close", Delivery(framing="close", ending="close")),
        ("framing: close, ending: reset", Delivery(framing="close", ending="reset")),
        (
            "slice_bytes: 5, every_ms: 20, sliced: head",
            Delivery(slice_bytes=5, every_s=0.02, sliced="head"),
        ),
        ("cut_head: 0", Delivery(cut_head=0, ending="close")),
        ("cut_body: 9, ending: hang", Delivery(cut_body=9, ending="hang")),
        ("endless: true", Delivery(endless=True, framing="close", ending="close")),
        ("endless: true, framing: chunked", Delivery(endless=True, framing="chunked")),
        ("endless: false", Delivery()),
        ("ending: close, end_ms: 40", Delivery(ending="close", end_s=0.04)),
    ],
)
def test_delivery_is_what_is_said_of_it(reply, fields, delivery):
    assert reply(f"body: x\ndelivery: {{{fields}}}").delivery == delivery


def test_delivery_says_the_same_as_the_methods_of_a_reply(reply):
    for fields, same in (
        ("framing: close", HONEST.until_close()),
        ("cut_body: 3", HONEST.cut(3)),
        ("cut_head: 3", HONEST.cut_head(3)),
        ("ending: hang, cut_body: 0", HONEST.cut(0).hanging()),
        ("slice_bytes: 3, every_ms: 500, sliced: all", HONEST.dripped(3, 0.5, part="all")),
        ("interim: [{status: 103}]", HONEST.after(103)),
        ("ending: reset, end_ms: 1000", HONEST.reset(after=1)),
    ):
        assert reply(f"delivery: {{{fields}}}") == same


def test_scenario_with_calls_of_its_own_is_played_to_them_always(file):
    own = read(file("scenarios:\n  a: {when: {query: 暗号, memory_types: [style]}}\n  b: {}\n"))
    assert own.always == {"a": {"query": "暗号", "memory_types": ["style"]}}
    assert list(own.scenarios) == ["a", "b"]


def test_name_may_be_any_text_without_what_plans_are_written_with(file):
    for name in ("睡", "a.b", "A_b-9", "x:y", "[1]", "it's"):
        assert list(read(file(json.dumps({"scenarios": {name: {}}}), "own.json")).scenarios) == [name]


# ---- what is wrong


MISTAKES = [
    ("[]", 1, "the file must be a mapping, not a list"),
    ("# nothing", None, "the file must be a mapping, not null"),
    ("a: 1", 1, 'the file has no field "a"; its fields are scenarios'),
    ("{}", 1, "scenarios must be a mapping, not null"),
    ("\nscenarios: []", 2, "scenarios must be a mapping, not a list"),
    ("scenarios:\n  late: {}", 2, "scenarios.late is a scenario of memmock's own; give yours another name"),
    (
        "scenarios:\n  '500': {}",
        2,
        'scenarios["500"] is a scenario of memmock\'s own; give yours another name',
    ),
    (
        "scenarios:\n  server-error: {}",
        2,
        'scenarios["server-error"] is a scenario of memmock\'s own; give yours another name',
    ),
    ("scenarios:\n  500: {}", 2, "scenarios has 500 as a name; a name is text without space ( ) = , *"),
    ("scenarios:\n  a b: {}", 2, 'scenarios has "a b" as a name; a name is text without space ( ) = , *'),
    ("scenarios:\n  a(b): {}", 2, 'scenarios has "a(b)" as a name; a name is text without space ( ) = , *'),
    ("scenarios:\n  a*2: {}", 2, 'scenarios has "a*2" as a name; a name is text without space ( ) = , *'),
    ("scenarios:\n  '': {}", 2, 'scenarios has "" as a name; a name is text without space ( ) = , *'),
    ("scenarios:\n  x:", 2, "scenarios.x must be a mapping, not null"),
    ("scenarios:\n  x: late", 2, 'scenarios.x must be a mapping, not "late"'),
]
FIELDS = (
    "its fields are summary, status, headers, body, body_base64, wire, wire_base64, delivery, when, outcomes"
)
DELIVERY = (
    "its fields are delay_ms, interim, framing, chunk_bytes, slice_bytes, every_ms, sliced, cut_head, "
    "cut_body, endless, ending, end_ms"
)
MOST = "1,000,000,000"
FIELD_MISTAKES = [
    ("stat: 1", f'x has no field "stat"; {FIELDS}'),
    ("true: 1", f"x has no field true; {FIELDS}"),
    ("summary: [a]", "x.summary must be text, not a list"),
    ("status: 99", "x.status must be an integer from 100 to 999, not 99"),
    ("status: 1000", "x.status must be an integer from 100 to 999, not 1000"),
    ("status: 200.0", "x.status must be an integer from 100 to 999, not 200.0"),
    ("status: '200'", 'x.status must be an integer from 100 to 999, not "200"'),
    ("status: true", "x.status must be an integer from 100 to 999, not true"),
    ("headers: [a]", "x.headers must be a mapping, not a list"),
    ("headers: {a b: c}", 'x.headers has "a b", which is no name of a header'),
    ("headers: {1: c}", "x.headers has 1, which is no name of a header"),
    ("headers: {茶: c}", 'x.headers has "茶", which is no name of a header'),
    (
        "headers: {Content-length: 3}",
        'x.headers["Content-length"] is added by the framing; for a wrong one, write the reply out as `wire`',
    ),
    (
        "headers: {transfer-encoding: gzip}",
        'x.headers["transfer-encoding"] is added by the framing; '
        "for a wrong one, write the reply out as `wire`",
    ),
    ("headers: {X: null}", "x.headers.X must be text, not null"),
    ("headers: {X: true}", "x.headers.X must be text, not true"),
    ("headers: {X: {}}", "x.headers.X must be text, not a mapping"),
    ("headers: {X: [a, [b]]}", "x.headers.X[1] must be text, not a list"),
    (
        r'headers: {X: "a\r\nb"}',
        "x.headers.X holds a line break; for a broken head, write the reply out as `wire`",
    ),
    (
        r'headers: {X: [a, "b\n"]}',
        "x.headers.X[1] holds a line break; for a broken head, write the reply out as `wire`",
    ),
    (
        "body: {a: .nan}",
        "x.body cannot be written as JSON: Out of range float values are not JSON compliant…",
    ),
    (
        "body: [!!binary aa==]",
        "x.body cannot be written as JSON: Object of type bytes is not JSON serializable",
    ),
    ("body: &a [*a]", "x is larger than 16,777,216 bytes, once its aliases are written out"),
    ("body_base64: a", "x.body_base64 is not base64"),
    ("body_base64: 茶", "x.body_base64 is not base64"),
    ("body_base64: [a]", "x.body_base64 must be text, not a list"),
    ("wire: {}", "x.wire must be text, not a mapping"),
    ("wire_base64: '!'", "x.wire_base64 is not base64"),
    ("body: a\n    wire: b", "x.wire cannot be there beside body"),
    ("wire_base64: aaaa\n    body_base64: aaaa", "x.wire_base64 cannot be there beside body_base64"),
    ("wire: a\n    status: 200", "x.status cannot be there beside wire, which has it all"),
    ("wire_base64: aaaa\n    headers: {}", "x.headers cannot be there beside wire_base64, which has it all"),
    ("wire: a\n    headers: {}\n    status: 200", "x.headers cannot be there beside wire, which has it all"),
    ("delivery: fast", 'x.delivery must be a mapping, not "fast"'),
    ("delivery: {delay: 1}", f'x.delivery has no field "delay"; {DELIVERY}'),
    (
        "delivery: {delay_ms: -1}",
        "x.delivery.delay_ms must be a number of milliseconds from 0 to 86,400,000, not -1",
    ),
    (
        "delivery: {every_ms: true}",
        "x.delivery.every_ms must be a number of milliseconds from 0 to 86,400,000, not true",
    ),
    (
        "delivery: {end_ms: .inf}",
        "x.delivery.end_ms must be a number of milliseconds from 0 to 86,400,000, not Infinity",
    ),
    ("delivery: {framing: http}", 'x.delivery.framing must be one of length, chunked, close, not "http"'),
    ("delivery: {framing: [a]}", "x.delivery.framing must be one of length, chunked, close, not a list"),
    ("delivery: {sliced: tail}", 'x.delivery.sliced must be one of head, body, all, not "tail"'),
    ("delivery: {ending: fin}", 'x.delivery.ending must be one of keep, close, reset, hang, not "fin"'),
    ("delivery: {endless: 1}", "x.delivery.endless must be true or false, not 1"),
    ("delivery: {chunk_bytes: 0}", f"x.delivery.chunk_bytes must be an integer from 1 to {MOST}, not 0"),
    ("delivery: {slice_bytes: 0}", f"x.delivery.slice_bytes must be an integer from 1 to {MOST}, not 0"),
    ("delivery: {cut_head: -1}", f"x.delivery.cut_head must be an integer from 0 to {MOST}, not -1"),
    (
        "delivery: {cut_body: 1000000001}",
        f"x.delivery.cut_body must be an integer from 0 to {MOST}, not 1000000001",
    ),
    ("delivery: {interim: {}}", "x.delivery.interim must be a list, not a mapping"),
    ("delivery: {interim: [103]}", "x.delivery.interim[0] must be a mapping, not 103"),
    (
        "delivery: {interim: [{status: 103}, {status: 200}]}",
        "x.delivery.interim[1].status must be an integer from 100 to 199, not 200",
    ),
    (
        "delivery: {interim: [{headers: {}}]}",
        "x.delivery.interim[0].status must be an integer from 100 to 199, not null",
    ),
    (
        "delivery: {interim: [{status: 103, body: a}]}",
        'x.delivery.interim[0] has no field "body"; its fields are status, headers',
    ),
    ("when: 暗号", 'x.when must be a mapping, not "暗号"'),
    ("when: {}", "x.when is empty; leave it out for a scenario that is chosen by name"),
    (
        "when: {quary: a}",
        'x.when has no field "quary"; its fields are query, live_id, reason, memory_types, time_hint, '
        "max_results",
    ),
    ("outcomes: ok", 'x.outcomes must be a list, not "ok"'),
    (
        "outcomes: [ok, late]",
        "x.outcomes[1] must be one of ok, timeout, connection_failed, http_error, response_too_large, "
        'invalid_json, invalid_response, not "late"',
    ),
]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        *MISTAKES,
        *((f"scenarios:\n  x:\n    {text}", 0, f"scenarios.{says}") for text, says in FIELD_MISTAKES),
    ],
)
def test_mistake_is_named_with_its_line(file, text, line, message):
    path = file(text)
    with pytest.raises(MemmockError) as caught:
        read(path)
    where, _, says = str(caught.value).removeprefix(str(path)).partition(" ")
    if message.endswith("…"):  # what follows depends on the version of Python
        says = f"{says[: len(message) - 1]}…"
    assert says == message
    if line is None:
        assert where == ":"
    elif line:
        assert where == f":{line}:"
    else:  # that of the last field, which is the second of two that do not go together
        assert where in (":3:", ":4:")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("scenarios:\n  x:\n    body: a\n    delivery:\n      cut_body: 1\n\n      ending: fin\n", 7),
        ("scenarios:\n  x:\n    headers:\n      X:\n      - a\n      - [b]\n", 6),
        ("scenarios:\n  x:\n    delivery:\n      interim:\n      - status: 103\n      - headers: {}\n", 6),
        ("scenarios:\n\n  x:\n    outcomes:\n    - ok\n    - bad\n", 6),
        ("scenarios:\n  a: {}\n  late:\n    body: a\n", 4),
        ("scenarios:\n  x:\n    wire: a\n    status: 200\n", 4),
    ],
)
def test_line_is_that_of_the_mistake(file, text, line):
    path = file(text)
    with pytest.raises(MemmockError, match=rf"own\.yaml:{line}: scenarios"):
        read(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '{\n"scenarios": {\n\t"x": {"status": 7}}}',
            ":3: scenarios.x.status must be an integer from 100 to 999, not 7",
        ),
        ("{}", ":1: scenarios must be a mapping, not null"),
        ('{"scenarios": {"x": {}, "x": {}}}', ': /scenarios/x: the name "x" occurs more than once'),
        ('{"scenarios": ', ":1: not JSON: "),
        (
            '{"scenarios": {"x": {"headers": {"X": "a\\u0000"}}}}',
            ":1: scenarios.x.headers.X holds a line break",
        ),
    ],
)
def test_mistake_in_a_json_file_is_named_with_its_line(file, text, says):
    path = file(text, "own.json")
    with pytest.raises(MemmockError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}{says}")


def test_half_a_surrogate_pair_may_stand_in_a_json_file(file):
    path = file('{"scenarios": {"x": {"headers": {"X": "\\ud83d"}, "body": "\\ud83d"}}}', "own.json")
    reply = read(path).scenarios["x"].reply(STAGE)
    assert reply.header("X") == "\xed\xa0\xbd"
    assert reply.body == b"\xed\xa0\xbd"


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("a", "own.txt", "a file of scenarios ends in .yaml, .yml or .json"),
        ("", "own.yaml", "the file is empty"),
        (b"\xff", "own.yml", "not UTF-8 (byte 0xff at offset 0)"),
        ("scenarios: {x: {}, x: {}}", "own.yml", "x occurs more than once in a mapping"),
        ("scenarios: {x: {<<: {}}}", "own.yml", "merge keys (<<) are not read, write the fields out"),
        ("scenarios: [", "own.yml", "not YAML: "),
    ],
)
def test_file_that_cannot_be_read_is_a_clear_error(file, text, name, message):
    path = file(text, name)
    with pytest.raises(MemmockError) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_file_that_is_not_there_is_a_clear_error(tmp_path):
    path = tmp_path / "own.yaml"
    with pytest.raises(MemmockError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: No such file or directory"


def test_aliases_that_grow_are_refused(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    body = "".join(f"      {line}\n" for line in lines)
    path = tmp_path / "own.yaml"
    path.write_text(f"scenarios:\n  x:\n    body:\n{body}", "utf-8")
    with pytest.raises(MemmockError, match=r"scenarios.x is larger than 16,777,216 bytes, once its aliases"):
        read(path)


@pytest.mark.parametrize(
    "text", ["headers: {X: 0x" + "f" * 4000 + "}", "body: 1" + ":1" * 50_000 + ".5"], ids=["header", "body"]
)
def test_number_of_any_length_is_no_traceback(tmp_path, text):
    path = tmp_path / "own.yaml"
    path.write_text(f"scenarios:\n  x:\n    {text}\n", "utf-8")
    with pytest.raises(MemmockError, match=r"own\.yaml") as caught:
        read(path)
    assert len(str(caught.value)) < 500
