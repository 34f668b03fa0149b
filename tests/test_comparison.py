"""How an answer differs from the recorded one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memmock.comparison import NULL, reply_differences, reply_key
from memmock.http import Reply


def memories(*items, **more):
    return Reply.json({"memories": list(items), **more})


def body(text, media="application/json"):
    return Reply(200, (("Content-Type", media),), text if isinstance(text, bytes) else text.encode())


def shown(recorded, now):
    return [str(found) for found in reply_differences(recorded, now)]


ONE = {"id": "m-1", "summary": "Likes tea.", "type": "preference"}
TWO = {"id": "m-2", "summary": "Works in Xi'an.", "type": "profile"}
THREE = {"id": "m-3", "summary": "Has a cat.", "type": "other"}


# ---- what is the same


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}'),
        ('{"a": 1}', '{"a": 1.0}'),
        ('{"a": 100}', '{"a": 1e2}'),
        ('{"a": "é"}', '{"a": "\\u00e9"}'),
        ("null", " null "),
        ("plain words", "plain words"),
        ("", ""),
        (b"\xff", b"\xff"),
    ],
)
def test_equal_values_are_no_difference(recorded, now):
    assert reply_differences(body(recorded), body(now)) == []
    assert reply_key(body(recorded)) == reply_key(body(now))


def test_of_the_headers_only_the_media_type_counts():
    recorded = Reply(200, (("Content-Type", "application/json"), ("Date", "Mon")), b"{}")
    now = Reply(200, (("content-type", "Application/JSON; charset=utf-8"), ("Server", "x")), b"{}")
    assert shown(recorded, now) == []
    assert shown(recorded, now._replace(headers=(("Content-Type", "text/html"),))) == [
        'Content-Type   expected "application/json"   received "text/html"'
    ]
    assert shown(recorded, now._replace(headers=())) == [
        'Content-Type   expected "application/json"   received nothing'
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "é"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abid"), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, JSON)
def test_there_are_differences_exactly_when_the_keys_differ(one, other):
    one, other = Reply.json(one), Reply.json(other)
    assert reply_differences(one, one) == []
    assert bool(reply_differences(one, other)) == (reply_key(one) != reply_key(other))


# ---- what differs


@pytest.mark.parametrize(
    ("recorded", "now", "expected"),
    [
        (
            Reply.error(503, "overloaded", "later"),
            memories(),
            [
                "status         expected 503   received 200",
                '/error         expected {"code": "overloaded", "message": "later"}   received nothing',
                "/memories      expected nothing   received []",
            ],
        ),
        (
            memories({**ONE, "confidence": 0.9}),
            memories({**ONE, "summary": "Likes coffee."}),
            [
                '/memories/0/summary expected "Likes tea."   received "Likes coffee."',
                "/memories/0/confidence expected 0.9   received nothing",
            ],
        ),
        (body("true"), body("1"), ["body           expected true   received 1"]),
        (body('{"a": null}'), body("{}"), ["/a             expected null   received nothing"]),
        (body('{"a": 0}'), body('{"a": null}'), ["/a             expected 0   received null"]),
        (
            body('{"a": [1, 2]}'),
            body('{"a": {"b": 1}}'),
            ['/a             expected [1, 2]   received {"b": 1}'],
        ),
        (
            body('["a", "b", "c"]'),
            body('["b", "b"]'),
            ['/0             expected "a"   received "b"', '/2             expected "c"   received nothing'],
        ),
        (body('["a"]'), body('["a", null]'), ["/1             expected nothing   received null"]),
        (body('{"a/b": 1}'), body('{"a/b": 2}'), ["/a~1b          expected 1   received 2"]),
        (body("{}"), body("nothing"), ['body           expected "{}"   received "nothing"']),
        (body("{}"), body(""), ['body           expected "{}"   received nothing']),
        (
            body(b"\xff\xfe\x00\x01\x02\x03\x04\x05\x06"),
            body(b"\xff"),
            ['body           expected "9 bytes, ff fe 00 01 02 03 04 05 …"   received "1 bytes, ff"'],
        ),
        (body(b"\xff"), body(b""), ['body           expected "1 bytes, ff"   received nothing']),
    ],
)
def test_differences_name_the_field_and_both_values(recorded, now, expected):
    assert shown(recorded, now) == expected
    assert reply_key(recorded) != reply_key(now)


def test_long_texts_are_shown_from_where_they_differ():
    recorded, now = body("x" * 200 + "old" + "y" * 200, "text/plain"), body("x" * 200 + "new", "text/plain")
    assert shown(recorded, now) == [
        f'body           expected "…{"x" * 20}old{"y" * 47}…"   received "…{"x" * 20}new"'
    ]
    assert shown(body("abc"), body("abcd")) == ['body           expected "abc"   received "abcd"']


def test_null_and_absent_are_told_apart():
    assert repr(NULL) == "null"
    [found] = reply_differences(body('{"a": null}'), body("{}"))
    assert (found.expected, found.received) == (NULL, None)


# ---- memories that came, went and moved


@pytest.mark.parametrize(
    ("recorded", "now", "expected"),
    [
        (
            [ONE, TWO],
            [THREE, ONE, TWO],
            [
                "/memories/0 (id m-3) expected nothing   received "
                '{"id": "m-3", "summary": "Has a cat.", "type": "other"}'
            ],
        ),
        (
            [ONE, TWO, THREE],
            [TWO, {**THREE, "type": "history"}],
            [
                '/memories/0 (id m-1) expected {"id": "m-1", "summary": "Likes tea.", "type": "preference"}'
                "   received nothing",
                '/memories/2/type expected "other"   received "history"',
            ],
        ),
        ([ONE, TWO, THREE], [TWO, THREE, ONE], ["/memories/0 (id m-1) place expected 1   received 3"]),
        ([ONE, TWO], [TWO, ONE], ["/memories/0 (id m-1) place expected 1   received 2"]),
        (
            [{"summary": "a"}, {"summary": "b"}],
            [{"summary": "new"}, {"summary": "a"}, {"summary": "b"}],
            ['/memories/0    expected nothing   received {"summary": "new"}'],
        ),
        (
            [{"summary": "a"}, {"summary": "b"}],
            [{"summary": "a"}, {"summary": "c"}],
            ['/memories/1/summary expected "b"   received "c"'],
        ),
        (
            [ONE, ONE],
            [ONE],
            [
                '/memories/1 (id m-1) expected {"id": "m-1", "summary": "Likes tea.", "type": "preference"}'
                "   received nothing"
            ],
        ),
        (
            [ONE],
            [None],
            [
                '/memories/0    expected {"id": "m-1", "summary": "Likes tea.", "type": "preference"}'
                "   received null"
            ],
        ),
    ],
)
def test_memories_are_paired_by_id(recorded, now, expected):
    assert shown(memories(*recorded), memories(*now)) == expected


def test_as_few_memories_as_can_be_have_moved():
    items = [{"id": str(n), "summary": "x"} for n in range(200)]
    assert shown(memories(*items), memories(*items[1:100], items[0], *items[100:])) == [
        "/memories/0 (id 0) place expected 1   received 100"
    ]
    assert len(shown(memories(*items), memories(*reversed(items)))) == 199


@pytest.mark.parametrize("depth", [400, 900, 100_000])
def test_deep_nesting_is_compared_or_shown_as_text(depth):
    recorded, now = body("[" * depth + "1" + "]" * depth), body("[" * depth + "2" + "]" * depth)
    assert len(reply_differences(recorded, now)) == 1
    assert reply_key(recorded) != reply_key(now)
    assert reply_key(recorded) == reply_key(recorded)
