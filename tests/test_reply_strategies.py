import time

import pytest
from hypothesis import HealthCheck, find, settings

from memmock.conformance.drawing import drawn
from memmock.consumer_conformance.edges import edges
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES
from memmock.reply_case import ReplyCase
from memmock.reply_wire import PLAIN, Style
from memmock.strategies import memory_replies
from memmock.tool_result import ERROR_CODES

quick = settings(
    max_examples=500,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
BYTES = 4096


def cases(valid=None, count=500, limit=DEFAULT_MAX_RESPONSE_BYTES) -> list[ReplyCase]:
    return list(drawn(memory_replies(valid, limit), 1, count, BYTES))


def outcomes(case: ReplyCase) -> set[str]:
    return {reading.outcome for reading in case.readings()}


# ---- strategies


def test_replies_are_of_every_outcome():
    found = {outcome for case in cases(count=1500) for outcome in outcomes(case)}
    assert found == {"ok", *ERROR_CODES}


def test_valid_replies_are_ok_for_everybody():
    assert all(outcomes(case) == {"ok"} for case in cases(True))


def test_replies_not_valid_may_come_to_something_else():
    assert all(outcomes(case) != {"ok"} for case in cases(False))


def test_replies_vary_every_attribute():
    drawn_cases = cases(count=3000)
    for name in Style._fields:
        assert len({getattr(case.style, name) for case in drawn_cases}) > 1, name
    assert {200, 204, 302, 429, 500} <= {case.status for case in drawn_cases}
    assert len({case.headers for case in drawn_cases}) > 20
    assert max(case.body.count(b'"summary"') for case in drawn_cases) >= 60


def test_replies_are_mostly_plain_in_style():
    plain = sum(case.style == PLAIN for case in cases())
    assert 200 < plain < 480


def test_replies_go_by_the_limit():
    assert {2000, 2001} <= {len(case.body) for case in cases(count=1500, limit=2000)}


def test_replies_are_the_same_for_the_same_seed():
    assert cases(count=50) == cases(count=50)


def test_replies_are_drawn_quickly():
    cases(count=20)
    start = time.process_time()
    cases(count=500)
    assert time.process_time() - start < 2.5


def test_replies_shrink_to_the_plain_one():
    assert find(memory_replies(), lambda case: True, settings=quick) == ReplyCase()


def test_replies_shrink_to_one_change():
    found = find(memory_replies(), lambda case: case.status >= 300, settings=quick)
    assert found.style == PLAIN
    assert found.headers[0] == ReplyCase().headers[0]


# ---- edges


@pytest.mark.parametrize("limit", [2000, DEFAULT_MAX_RESPONSE_BYTES])
def test_edges_are_the_same_each_time_and_no_two_alike(limit):
    found = edges(limit)
    assert found == edges(limit)
    assert len(set(found)) == len(found)
    assert 250 <= len(found) <= 450


def test_edges_are_of_every_outcome():
    assert {outcome for case in edges(DEFAULT_MAX_RESPONSE_BYTES) for outcome in outcomes(case)} == {
        "ok",
        *ERROR_CODES,
    }


def test_edges_that_take_all_the_time_come_last():
    late = ["timeout" in outcomes(case) for case in edges(DEFAULT_MAX_RESPONSE_BYTES)]
    first = late.index(True)
    assert first > len(late) - 20


def test_edges_are_around_the_limit():
    sizes = {len(case.body) for case in edges(3000)}
    assert {3000, 3001} <= sizes
