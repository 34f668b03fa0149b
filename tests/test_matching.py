from __future__ import annotations

import json
import unicodedata
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memmock.errors import MemmockError
from memmock.http import Request
from memmock.matching import FIELDS, MATCH_ON, Difference, Matcher, asked, closest, differences


@pytest.mark.parametrize(
    ("expected", "received"),
    [
        ({}, {"query": "a"}),
        ({"query": "a"}, {"query": "a", "max_results": 3}),
        ({"query": ANY}, {"query": "a"}),
        ({"reason": None}, {"query": "a"}),
        ({"memory_types": ["style", "other"]}, {"memory_types": ["other", "style", "other"]}),
        ({"memory_types": {"style"}}, {"memory_types": ["style"]}),
    ],
)
def test_same_retrieval_has_no_differences(expected, received):
    assert differences(expected, received) == []


@pytest.mark.parametrize(
    ("expected", "received", "line"),
    [
        ({"query": "a"}, {"query": "b"}, 'query          expected "a"   received "b"'),
        ({"query": "a"}, {}, 'query          expected "a"   received nothing'),
        ({"max_results": 1}, {"max_results": True}, "max_results    expected 1   received true"),
        ({"max_results": 1}, {"max_results": "1"}, 'max_results    expected 1   received "1"'),
        (
            {"memory_types": {"style", "other"}},
            {"memory_types": ["other"]},
            'memory_types   expected ["other", "style"]   received ["other"]',
        ),
        (
            {"memory_types": ["other"]},
            {"memory_types": "other"},
            'memory_types   expected ["other"]   received "other"',
        ),
        (
            {"query": "暗" * 100},
            {"query": object},
            f'query          expected "{"暗" * 78}…   received {object!r}',
        ),
    ],
)
def test_difference_says_what_was_expected_and_received(expected, received, line):
    assert [str(difference) for difference in differences(expected, received)] == [line]


def test_closest_differs_in_the_fewest_fields_and_is_the_earliest():
    candidates = [("none", {}), ("one", {"query": "a"}), ("also one", {"reason": "r"})]
    assert closest({"query": "a", "reason": "r"}, candidates) == "one"
    assert closest({"query": "a"}, []) is None


def test_differences_keep_the_order_of_what_is_expected():
    assert differences({"reason": "r", "query": "q"}, {}) == [
        Difference("reason", "r", None),
        Difference("query", "q", None),
    ]


# ---- the same retrieval


def asking(body, target="/memory_retrieval", method="POST"):
    return Request(method, target, (), body if isinstance(body, bytes) else json.dumps(body).encode())


def same(one, other, match_on=MATCH_ON):
    """Whether two requests have one key; `differences` must agree."""
    matcher = Matcher(match_on)
    equal = matcher.key(one) == matcher.key(other)
    assert (matcher.differences(one, other) == []) is equal
    assert not equal or hash(matcher.key(one)) == hash(matcher.key(other))
    return equal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"query": "a"}, {"query": "a", "live_id": "7", "reason": "r"}),
        ({"query": "a"}, {"query": "a", "memory_types": [], "time_hint": "", "max_results": 5}),
        ({"query": "a"}, {"query": "a", "memory_types": None, "time_hint": None, "max_results": None}),
        ({"query": "a", "max_results": 3}, b'{ "max_results" : 3.0, "query":"\\u0061"}\n'),
        ({"query": "a", "max_results": 100}, b'{"query":"a","max_results":1E2}'),
        (
            {"query": "a", "memory_types": ["style", "other"]},
            {"query": "a", "memory_types": ["other", "style", "other"]},
        ),
        ({"query": "caf\u00e9 \u304c"}, {"query": "cafe\u0301 \u304b\u3099"}),
        ({"query": "a", "time_hint": "\u00e9"}, {"query": "a", "time_hint": "e\u0301"}),
        ({"query": "a"}, {"query": "a", "unknown": 1}),
        ({"query": "b"}, b'{"query":"a","query":"b"}'),
        ({"query": "\U0001f319"}, b'{"query":"\\ud83c\\udf19"}'),
        (b"", b""),
        (b"\xff\x00", b"\xff\x00"),
    ],
)
def test_same_retrieval_in_another_form_is_the_same(one, other):
    assert same(asking(one), asking(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"query": "a"}, {"query": "A"}),
        ({"query": "a"}, {"query": "a "}),
        ({"query": "a"}, {"query": None}),
        ({"query": ""}, {}),
        ({"query": "a", "max_results": 1}, {"query": "a", "max_results": True}),
        ({"query": "a", "max_results": 0}, {"query": "a", "max_results": False}),
        ({"query": "a", "max_results": 1}, {"query": "a", "max_results": "1"}),
        ({"query": "a", "max_results": 5}, {"query": "a", "max_results": 4}),
        ({"query": 1}, {"query": True}),
        ({"query": "true"}, {"query": True}),
        ({"query": ["true"]}, {"query": [True]}),
        ({"query": [1]}, {"query": {"1": 1}}),
        ({"query": {}}, {"query": []}),
        ({"query": "a"}, {"query": "a", "memory_types": {}}),
        ({"query": "a"}, {"query": "a", "memory_types": ""}),
        ({"query": "a", "memory_types": ["style"]}, {"query": "a", "memory_types": "style"}),
        ({"query": "a", "memory_types": [1]}, {"query": "a", "memory_types": [True]}),
        ({"query": "a", "time_hint": "now"}, {"query": "a"}),
        ({"query": "\ufb01"}, {"query": "fi"}),  # NFC, not NFKC
        ({"query": "a"}, b"a"),
        (b'["a"]', b'[ "a"]'),
        (b"", b"{}"),
    ],
)
def test_another_retrieval_is_another_one(one, other):
    assert not same(asking(one), asking(other))
    assert not same(asking(other), asking(one))


def test_method_and_path_are_matched_and_the_query_string_is_not():
    request = asking({"query": "a"})
    assert not same(request, request._replace(method="PUT"))
    assert not same(request, request._replace(target="/memory_retrieval/"))
    assert same(request, request._replace(target="/memory_retrieval?trace=7"))
    assert not same(request, request._replace(target="/memory_retrieval?trace=7"), ["target"])


@pytest.mark.parametrize(
    ("match_on", "field"),
    [("live_id", "live_id"), ("reason", "reason"), ("body", "unknown"), ("max_results", "max_results")],
)
def test_match_on_adds_a_field(match_on, field):
    one, other = asking({"query": "a"}), asking({"query": "a", field: "7"})
    assert not same(one, other, ["query", match_on])
    assert same(one, other, ["query"])


def test_match_on_method_and_path_takes_any_body():
    one = asking({"query": "a"})
    assert same(one, one._replace(body=b""), ["method", "path"])
    assert same(one, one._replace(body=b'{"query":"b"}'), ["method", "path"])


def test_body_is_matched_by_value():
    one = asking({"query": "a", "more": {"x": [1, 2], "y": "e\u0301"}})
    assert same(one, asking(b'{"more":{"y":"\\u00e9","x":[1.0,2]},"query":"a"}'), ["body"])
    assert not same(one, asking({"query": "a", "more": {"x": [2, 1], "y": "e\u0301"}}), ["body"])


def test_body_that_is_nested_too_deeply_is_matched_as_it_is():
    deep = b'{"query":%b1%b}' % (b"[" * 990, b"]" * 990)
    assert same(asking(deep), asking(deep))
    assert not same(asking(deep), asking(deep.replace(b"1", b"2")))


@pytest.mark.parametrize(
    ("match_on", "message"),
    [
        (
            ["query", "quary", "user"],
            "cannot match on quary, user: it must be of method, path, target, query, ",
        ),
        ([], "nothing to match on: name some of method, path, target, query, "),
    ],
)
def test_match_on_of_another_name_is_refused(match_on, message):
    with pytest.raises(MemmockError, match=f"^{message}"):
        Matcher(match_on)


def test_differences_are_told_in_the_order_of_match_on():
    one = asking({"query": "a", "max_results": 1})
    other = asking({"query": "b", "max_results": 2}, "/elsewhere", "PUT")
    found = Matcher(["max_results", "path", "query", "method"]).differences(one, other)
    assert [each.field for each in found] == ["path", "method", "max_results", "query"]
    assert found[2:] == [Difference("max_results", 1, 2), Difference("query", "a", "b")]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 6)
    | st.sampled_from(["", "a", "\u00e9", "e\u0301", "style"])
    | st.floats(0, 6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
RETRIEVALS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4)


@given(RETRIEVALS, RETRIEVALS)
def test_key_and_differences_agree(one, other):
    same(asking(one), asking(other), [*MATCH_ON, "reason"])
    same(asking(one), asking(other), ["body"])


@given(RETRIEVALS, st.randoms())
def test_order_of_names_and_form_do_not_matter(retrieval, random):
    items = list(retrieval.items())
    random.shuffle(items)
    changed = {
        name: unicodedata.normalize("NFD", value) if isinstance(value, str) else value
        for name, value in items
    }
    other = json.dumps(changed, ensure_ascii=False, indent=1).encode()
    assert same(asking(retrieval), asking(other), [*MATCH_ON, "body"])


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"query": "称呼"}, '"称呼"'),
        (
            {"query": "a", "memory_types": ["style"], "max_results": 3, "time_hint": ""},
            '"a" memory_types=["style"] max_results=3',
        ),
        ({"live_id": "7"}, "POST /memory_retrieval"),
        (b"plain", "POST /memory_retrieval"),
    ],
)
def test_asked_reads_as_what_was_asked(body, text):
    assert asked(asking(body)) == text
