import json
from dataclasses import replace

import pytest

from memmock.consumer_conformance import parts
from memmock.consumer_conformance.making import made
from memmock.consumer_conformance.shrinking import shrink
from memmock.reply_case import NOTHING, ReplyCase
from memmock.reply_wire import PLAIN, Style

LIMIT = 65_536


class Asked:
    """Whether a reply still shows what is wrong; counts how often that is asked."""

    def __init__(self, still):
        self.still = still
        self.cases = []

    def __call__(self, case):
        self.cases.append(case)
        return self.still(case)


def full(*changes, count=20, place=7) -> ReplyCase:
    return made(*changes, count=count, place=place, max_response_bytes=LIMIT)


def value(case):
    try:
        return json.loads(case.body)
    except ValueError:
        return None


def some_summary(test):
    def still(case):
        found = value(case)
        memories = found.get("memories") if isinstance(found, dict) else None
        return isinstance(memories, list) and any(
            isinstance(each, dict) and isinstance(each.get("summary"), str) and test(each["summary"])
            for each in memories
        )

    return still


def test_shrink_leaves_the_one_character_that_matters():
    case = full(("field", ("summary", '"many words, <b> and more of them"')))
    assert shrink(case, some_summary(lambda text: "<" in text)) == ReplyCase(
        body=b'{"memories":[{"summary":"<"}]}'
    )


def test_shrink_leaves_the_field_that_matters():
    case = full(("field", ("confidence", "0.0")), ("style", (("framing", "chunked"), ("chunk_bytes", 7))))

    def still(case):
        return b'"confidence":0' in case.body and b'"summary"' in case.body

    found = json.loads(shrink(case, still).body)
    assert found == {"memories": [{"summary": "a", "confidence": 0}]} or found == {
        "memories": [{"summary": "", "confidence": 0}]
    }


def test_shrink_leaves_as_many_memories_as_matter():
    def still(case):
        found = value(case)
        memories = found.get("memories") if isinstance(found, dict) else None
        return isinstance(memories, list) and len(memories) > 5

    assert len(json.loads(shrink(full(count=60), still).body)["memories"]) == 6


def test_shrink_keeps_a_size_only_as_far_as_it_matters():
    case = full(("size", (100_000, "茶")))
    found = shrink(case, lambda case: len(case.body) > LIMIT)
    assert len(found.body) == LIMIT + 1


def test_shrink_keeps_numbers_as_they_are_written():
    case = full(("field", ("confidence", "1e400")))
    found = shrink(case, lambda case: b"1e400" in case.body)
    assert found.body.replace(b"1e400", b"") in (b'{"":}', b'{"memories":[{"confidence":}]}')


def test_shrink_keeps_half_a_surrogate_pair_escaped():
    case = full(("field", ("summary", r'"half a pair \ud83d of two"')))
    found = shrink(case, some_summary(lambda text: "\ud83d" in text))
    assert found.body == rb'{"memories":[{"summary":"\ud83d"}]}'


def test_shrink_keeps_equal_names():
    case = full(("item", '{"summary":"one","summary":"two","id":"x"}'), count=2, place=0)
    found = shrink(case, lambda case: case.body.count(b'"summary"') == 2 and value(case) is not None)
    assert found.body.count(b'"summary"') == 2
    assert len(found.body) < 60


def test_shrink_reduces_what_is_no_json_byte_by_byte():
    case = ReplyCase(body=b'{"memories":[{"summary":"some words \xff and more"}]}')
    assert shrink(case, lambda case: b"\xff" in case.body).body == b"\xff"


def test_shrink_keeps_the_way_that_json_is_written_when_that_matters():
    case = full(("write", "spaced"), count=3)
    assert shrink(case, lambda case: b" : " in case.body and value(case) is not None).body.count(b" : ") == 1


@pytest.mark.parametrize("levels", [65, 2000])
def test_shrink_takes_deep_values(levels):
    case = ReplyCase(body=b"[" * levels + b"]" * levels)
    found = shrink(case, lambda case: case.body.count(b"[") >= 60, calls=300)
    assert 60 <= found.body.count(b"[") < 130


def test_shrink_makes_the_style_plain_but_for_what_matters():
    style = Style(
        names="lower",
        framing="chunked",
        chunk_bytes=5,
        extension=';a="b;c"',
        slices=40,
        spread=0.3,
        delay=0.5,
    )
    found = shrink(replace(full(), style=style), lambda case: bool(case.style.extension))
    assert found == ReplyCase(style=Style(extension=";a"))


def test_shrink_drops_headers_but_for_the_one_that_matters():
    headers = (("Content-Type", "text/html"), ("X-A", "1"), ("X-Note", "caf\xe9 au lait"), ("X-B", "2"))

    def still(case):
        return any("\xe9" in text for _, text in case.headers)

    assert shrink(ReplyCase(headers=headers), still).headers == (("X-Note", "\xe9"),)


def test_shrink_keeps_a_cut_within_the_reply():
    case = full(("cut", (900, "close")))

    def still(case):
        return case.style.cut is not None and case.head_bytes < case.style.cut < len(case.wire)

    found = shrink(case, still)
    assert found.body == NOTHING
    assert found.style == PLAIN._replace(cut=found.style.cut, ending=found.style.ending)


def test_shrink_gives_the_plain_reply_when_nothing_matters():
    assert shrink(full(parts.STATUSES[3], parts.STYLES[4]), lambda case: True) == ReplyCase()


def test_shrink_leaves_a_reply_that_cannot_be_smaller():
    case = full()
    assert shrink(case, lambda each: False) == case


@pytest.mark.parametrize("calls", [0, 1, 30])
def test_shrink_asks_no_more_often_than_it_may(calls):
    asked = Asked(some_summary(lambda text: "黑" in text))
    shrink(full(), asked, calls)
    assert len(asked.cases) <= calls


def test_shrink_asks_of_no_reply_twice():
    case = full(("field", ("summary", '"some words & more"')))
    asked = Asked(some_summary(lambda text: "&" in text))
    found = shrink(case, asked)
    assert len(set(asked.cases)) == len(asked.cases) <= 120
    assert case not in asked.cases
    assert shrink(case, Asked(asked.still)) == found
