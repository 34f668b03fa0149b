"""A cassette in memory: which recording is played to which request, and why none is."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memmock.cassette import Cassette, Miss
from memmock.http import Request
from memmock.matching import Difference, Matcher
from memmock.redaction import Redactor
from tests.cassette_clients import asking, in_threads, recorded


def played(cassette, *queries):
    return [cassette.play(asking(query)) for query in queries]


def missed(cassette, request):
    miss = cassette.play(request)
    assert isinstance(miss, Miss)
    return miss


def numbers(found):
    return [None if isinstance(each, Miss) else each for each in found]


def test_recording_of_the_retrieval_is_played():
    cassette = Cassette([recorded("a"), recorded("b")])
    assert played(cassette, "b", "a") == [2, 1]


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [
        ("last", [1, 3, 4, 4, 4, 4]),
        ("cycle", [1, 3, 4, 1, 3, 4]),
        ("none", [1, 3, 4, None, None, None]),
    ],
)
def test_repeated_retrieval_is_played_in_its_order_and_then_as_set(repeats, expected):
    cassette = Cassette([recorded(query) for query in "abaa"], repeats=repeats)
    assert numbers(played(cassette, *"aaaaaa")) == expected


@pytest.mark.parametrize(
    ("repeats", "expected"), [("last", [1, 1, 2, 2]), ("cycle", [1, 1, 2, 1]), ("none", [1, None, 2, None])]
)
def test_recording_that_is_added_later_is_next(repeats, expected):
    cassette = Cassette([recorded()], repeats=repeats)
    first = played(cassette, "a", "a")
    cassette.add(recorded())
    assert numbers([*first, *played(cassette, "a", "a")]) == expected


def test_recording_that_is_added_as_played_is_not_next():
    cassette = Cassette(repeats="none")
    assert cassette.add(recorded(), played=True) == 1
    assert cassette.add(recorded()) == 2
    assert numbers(played(cassette, "a", "a")) == [2, None]


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_every_recording_is_played_once_and_in_order(recordings, asked):
    cassette = Cassette([recorded(query) for query in recordings], repeats="none")
    found = numbers(played(cassette, *asked))
    for query in "abc":
        there = [number for number, one in enumerate(recordings, 1) if one == query]
        got = [number for number, one in zip(found, asked, strict=True) if one == query]
        assert got == (there + [None] * len(got))[: len(got)]
    assert cassette.unplayed == [n for n in range(1, len(recordings) + 1) if n not in found]


def test_plays_and_unplayed_tell_what_was_used():
    cassette = Cassette([recorded(query) for query in "abc"])
    played(cassette, "a", "a", "c", "x")
    assert (cassette.plays, cassette.unplayed, len(cassette)) == ([2, 0, 1], [2], 3)


def test_numbers_are_those_of_the_same_retrieval():
    cassette = Cassette([recorded(query) for query in "aba"])
    assert cassette.numbers(asking("a", live_id="7")) == [1, 3]
    assert cassette.numbers(asking("x")) == []


def test_secret_is_hidden_before_it_is_looked_up():
    redactor = Redactor(fields=["reason"])
    cassette = Cassette(
        [recorded("a", reason="***")], matcher=Matcher(["query", "reason"]), redactor=redactor
    )
    assert cassette.play(asking("a", reason="a secret")) == 1
    assert missed(cassette, asking("b", reason="a secret")).request == asking("b", reason="***")


# ---- misses


def test_empty_cassette_has_no_nearest():
    assert missed(Cassette(), asking()) == Miss(asking(), None, [], 0)


def test_miss_names_the_recording_that_differs_least():
    cassette = Cassette(
        [recorded("a", max_results=1), recorded("b", max_results=2), recorded("a", max_results=3)]
    )
    miss = missed(cassette, asking("b", max_results=3))
    assert (miss.nearest, miss.differences) == (2, [Difference("max_results", 2, 3)])


def test_of_equally_near_recordings_the_text_that_is_most_alike_is_named():
    cassette = Cassette(
        [recorded("what is my job"), recorded("how do you call me"), recorded("where I live")]
    )
    assert missed(cassette, asking("how do I call you")).nearest == 2


def test_of_equal_recordings_the_earliest_is_named():
    cassette = Cassette([recorded("bb"), recorded("cc"), recorded("bb")])
    assert missed(cassette, asking("xx")).nearest == 1


def test_request_of_another_form_is_told_as_such():
    cassette = Cassette([recorded("a")])
    miss = missed(cassette, asking()._replace(body=b"plain"))
    assert miss.nearest == 1
    assert [each.field for each in miss.differences] == ["query", "body"]


def test_retrieval_is_nearer_to_a_retrieval_than_to_another_form():
    text = recorded()._replace(request=asking()._replace(body=b"plain"))
    cassette = Cassette([text, recorded("a", max_results=1, time_hint="now")])
    assert missed(cassette, asking("b")).nearest == 2


def test_miss_of_what_is_used_up_says_how_often_it_was_played():
    cassette = Cassette([recorded("a"), recorded("a")], repeats="none")
    played(cassette, "a", "a")
    assert missed(cassette, asking("a")) == Miss(asking("a"), 2, [], 1)
    assert missed(cassette, asking("b")).played == 1


@given(
    st.lists(st.tuples(*[st.sampled_from("xyz")] * 3), min_size=1), st.tuples(*[st.sampled_from("xyz")] * 3)
)
def test_nearest_differs_in_the_fewest_fields(recordings, asked):
    def request(values):
        return asking(values[0], time_hint=values[1], memory_types=[values[2]])

    def distance(values):
        return sum(one != other for one, other in zip(values, asked, strict=True))

    cassette = Cassette([recorded()._replace(request=request(values)) for values in recordings])
    miss = cassette.play(request(asked))
    least = min(map(distance, recordings))
    if least == 0:
        assert recordings[miss - 1] == asked
    else:
        assert distance(recordings[miss.nearest - 1]) == len(miss.differences) == least


def test_any_body_is_looked_up_without_an_error():
    deep = b"[" * 990 + b"]" * 990
    cassette = Cassette([recorded()])
    for body in (
        b"",
        b"\xff",
        b"null",
        b"[1]",
        b'{"query":%b}' % deep,
        b"[" * 100_000,
        b'{"query":1e999}',
        b'{"a":"\\ud800"}',
    ):
        request = asking()._replace(body=body)
        assert missed(cassette, request).nearest == 1
        number = cassette.add(recorded()._replace(request=request))
        assert cassette.play(request) == number
        cassette = Cassette([recorded()])


# ---- size and threads


def test_lookup_and_miss_take_no_longer_in_a_large_cassette():
    def time_of(cassette, query):
        best = 1.0
        for _ in range(5):
            start = time.perf_counter()
            cassette.play(asking(query))
            best = min(best, time.perf_counter() - start)
        return best

    small, large = (Cassette([recorded(f"query {n}") for n in range(size)]) for size in (200, 10_000))
    for query in ("query 7", "another query"):  # 50 times as many recordings
        assert time_of(large, query) < 10 * time_of(small, query) + 0.001


def test_threads_play_every_recording_once():
    cassette = Cassette([recorded(f"{n % 8}") for n in range(32 * 25)], repeats="none")
    found = Counter()

    def play(thread):
        for n in range(25):
            found[cassette.play(asking(f"{(thread * 25 + n) % 8}"))] += 1

    in_threads(32, play)
    assert found == dict.fromkeys(range(1, 32 * 25 + 1), 1)
    assert cassette.plays == [1] * (32 * 25)


def test_threads_add_while_others_play():
    cassette = Cassette([recorded("0")])

    def work(thread):
        for n in range(25):
            if thread % 2:
                number = cassette.add(recorded(f"{thread} {n}"))
                assert cassette.interactions[number - 1].request == asking(f"{thread} {n}")
                assert cassette.play(asking(f"{thread} {n}")) == number
            else:
                assert cassette.play(asking("0")) == 1
                assert isinstance(cassette.play(asking("x")), Miss)

    in_threads(32, work)
    assert len(cassette) == 1 + 16 * 25
    assert cassette.unplayed == []


def test_requests_of_any_method_are_played():
    request = Request("GET", "/memory_retrieval?q=1")
    cassette = Cassette([recorded()._replace(request=request)])
    assert cassette.play(request) == 1
    assert (
        cassette.play(request._replace(target="/memory_retrieval?q=2")) == 1
    )  # the path is matched, not the target
    assert isinstance(
        Cassette([recorded()._replace(request=request)], matcher=Matcher(["target"])).play(
            Request("GET", "/x")
        ),
        Miss,
    )
