from __future__ import annotations

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memmock.strictjson import MOST_FLAWS, UNREADABLE, Flaw, parse, pointer, printable, read, shortened, walk

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_json_without_a_flaw_is_read_as_it_is(value):
    data = json.dumps(value, ensure_ascii=False).encode()

    assert read(data) == (value, [])
    assert parse(data) == value


@given(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()[1:]))
def test_any_bytes_can_be_read_and_both_ways_agree(data):
    value, flaws = read(data)
    if any(flaw.kind not in ("range", "surrogate") for flaw in flaws):
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the parser's
            parse(data)
    else:
        assert parse(data) == value


@pytest.mark.parametrize(
    ("data", "value", "flaws"),
    [
        (b"", UNREADABLE, [Flaw("syntax", "", "the text is empty")]),
        (b" \n", UNREADABLE, [Flaw("syntax", "", "the text is empty")]),
        (b"tea", UNREADABLE, [Flaw("syntax", "", "Expecting value at character 0")]),
        (b"[1 2]", UNREADABLE, [Flaw("syntax", "", "Expecting ',' delimiter at character 3")]),
        (b"1 2", 1, [Flaw("syntax", "", "more text after the value, at character 2")]),
        (b"01", 0, [Flaw("syntax", "", "more text after the value, at character 1")]),
        (b"\xef\xbb\xbf1", 1, [Flaw("bom", "", "the text starts with a byte-order mark")]),
        (b'"\xb2\xe8"', "\ufffd\ufffd", [Flaw("utf-8", "", "byte 0xb2 at offset 1")]),
        (b'"\xed\xa0\x80"', "\ufffd" * 3, [Flaw("utf-8", "", "byte 0xed at offset 1")]),
        (
            b'{"a":1,"b":[{"a":2,"a":3}],"a":4}',
            {"a": 4, "b": [{"a": 3}]},
            [
                Flaw("duplicate", "/a", 'the name "a" occurs more than once'),
                Flaw("duplicate", "/b/0/a", 'the name "a" occurs more than once'),
            ],
        ),
        (b'["\\ud83c\\udf75"]', ["🍵"], []),
        (b'["\\ud83c"]', ["\ud83c"], [Flaw("surrogate", "/0", "the text holds half of a surrogate pair")]),
        (
            b'{"\\ud83c":1}',
            {"\ud83c": 1},
            [Flaw("surrogate", "", 'the name "\\ud83c" holds half of a surrogate pair')],
        ),
        (b"[-1e999]", [-math.inf], [Flaw("range", "/0", "the number is beyond the range of a double")]),
        (b"1" + b"0" * 400, 10**400, [Flaw("range", "", "the number is beyond the range of a double")]),
        (b"9" * 5000, math.inf, [Flaw("range", "", "the number is beyond the range of a double")]),
        (b"9" * 300, int("9" * 300), []),
    ],
)  # fmt: skip
def test_flaw_is_listed_with_its_place(data, value, flaws):
    assert read(data) == (value, flaws)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_json_does_not_have_are_flaws(text):
    value, flaws = read(f'{{"a/b":{text}}}'.encode())

    assert flaws == [Flaw("nan", "/a~1b", f"{text} is not JSON")]
    assert shortened(value["a/b"]) == text


def test_flaws_of_several_kinds_are_all_listed_in_the_order_of_the_text():
    data = b'\xef\xbb\xbf[NaN, "\\udc00", {"a": 1, "a": 1e999}, "\xff"] x'

    assert [flaw.kind for flaw in read(data)[1]] == [
        "utf-8", "bom", "syntax", "nan", "surrogate", "duplicate", "range",
    ]  # fmt: skip


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000])
def test_nesting_without_end_is_a_flaw(data):
    assert read(data) == (UNREADABLE, [Flaw("depth", "", "nested too deeply to be read")])
    with pytest.raises(ValueError, match="nested too deeply"):
        parse(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a":1,"a":2}', "a name occurs more than once"),
        (b"[NaN]", "NaN is not JSON"),
        (b"[1] 2", "Extra data"),
        (b"\xff", "can't decode"),
        (b"\xef\xbb\xbf1", "Expecting value"),
    ],
)
def test_parse_refuses_a_text_with_a_flaw(data, message):
    with pytest.raises(ValueError, match=message):
        parse(data)


def test_parse_lets_pass_what_is_json_if_unwise():
    assert parse(b'["\\ud83c", 1e999, ' + b"9" * 5000 + b"]") == ["\ud83c", math.inf, math.inf]


def test_many_flaws_of_a_kind_are_counted():
    value, flaws = read(b"[NaN" + b",NaN" * 99 + b',"\\ud83c"]')

    assert len(value) == 101
    assert [flaw.kind for flaw in flaws] == ["nan"] * MOST_FLAWS + ["surrogate", "nan"]
    assert flaws[-1] == Flaw("nan", "", "and 80 more like this")


def test_long_name_above_many_values_costs_no_more_than_its_length():
    began = time.perf_counter()
    flaws = read(b'{"' + b"k" * 500_000 + b'":[' + b"NaN," * 100_000 + b"1]}")[1]

    assert len(flaws) == MOST_FLAWS + 1
    assert time.perf_counter() - began < 10  # a pointer for each value would be 50 GB


@pytest.mark.parametrize(
    ("steps", "text"),
    [((), ""), (("a", 0, "b"), "/a/0/b"), (("",), "/"), (("a/b", "m~n", "~1"), "/a~1b/m~0n/~01")],
)
def test_pointer_escapes_its_steps(steps, text):
    assert pointer(*steps) == text


def test_walk_visits_every_value_in_the_order_of_the_text():
    value = {"a": [1, [], {"b": None}], "c": {}, "d": 2}

    assert [(pointer(*steps), item) for steps, item in walk(value)] == [
        ("", value),
        ("/a", value["a"]),
        ("/a/0", 1),
        ("/a/1", []),
        ("/a/2", {"b": None}),
        ("/a/2/b", None),
        ("/c", {}),
        ("/d", 2),
    ]
    assert [item for _, item in walk("tea")] == ["tea"]


@given(VALUES)
def test_walk_gives_the_steps_to_every_value(value):
    for steps, item in walk(value):
        place = value
        for step in steps:
            place = place[step]
        assert place is item


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ("茶", '"茶"'),
        ('a "b"\n', '"a \\"b\\"\\n"'),
        ("\x1b[2J\x7f\u202e\ud800", '"\\u001b[2J\\u007f\\u202e\\ud800"'),
        ("x" * 60, f'"{"x" * 60}"'),
        ("x" * 61, f'"{"x" * 59}…'),
        (10**400, f"1{'0' * 59}…"),
        ([], "an array of 0"),
        ({"a": 1}, "an object with 1 field"),
        ({}, "an object with 0 fields"),
    ],
)
def test_shortened_value_is_one_printable_line(value, text):
    assert shortened(value) == text


@given(st.text(st.characters(codec=None)))
def test_printable_text_holds_nothing_that_a_terminal_acts_on(text):
    assert printable(text).isprintable()
    assert (printable(text) == text) == text.isprintable()


def test_unreadable_says_so():
    assert repr(UNREADABLE) == "UNREADABLE"
