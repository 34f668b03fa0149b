from unittest.mock import ANY

import pytest

from memmock.matching import Difference, closest, differences


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
