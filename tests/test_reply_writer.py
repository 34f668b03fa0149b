"""Replies as bytes and pauses, without a socket."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memmock.http import AT_ONCE, Delivery, Reply, Request
from memmock.reply_writer import PACE_S, SLICE_BYTES, encoded, scripted

ASKED = Request("POST", "/x")
ASKED_1_0 = Request("POST", "/x", version="1.0")
ABC = Reply(body=b"abc")
LENGTH_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CLOSE_HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


def steps(reply, request=ASKED, keep_alive=True):
    return list(scripted(reply, request, keep_alive).steps)


def wire(reply, request=ASKED, keep_alive=True):
    return b"".join(step for step in steps(reply, request, keep_alive) if isinstance(step, bytes))


def ending(reply, request=ASKED, keep_alive=True):
    return scripted(reply, request, keep_alive).ending


def unchunked(data):
    """Decode the chunks of a body, which must be all of it."""
    body = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        n = int(size, 16)
        body, mark, data = body + data[:n], data[n : n + 2], data[n + 2 :]
        assert mark == b"\r\n"
        if n == 0:
            assert data == b""
            return body


# ---- framing


@pytest.mark.parametrize(
    ("reply", "expected", "end"),
    [
        (ABC, LENGTH_HEAD + b"abc", "keep"),
        (ABC.chunked(2), CHUNKED_HEAD + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", "keep"),
        (ABC.until_close(), CLOSE_HEAD + b"abc", "close"),
        (ABC._replace(delivery=Delivery(framing="close")), CLOSE_HEAD + b"abc", "close"),
        (Reply(), b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "keep"),
        (Reply().chunked(), CHUNKED_HEAD + b"0\r\n\r\n", "keep"),
        (Reply().until_close(), CLOSE_HEAD, "close"),
        (Reply(299), b"HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n", "keep"),
    ],
)
def test_framing_tells_the_end_of_the_body(reply, expected, end):
    assert (wire(reply), ending(reply)) == (expected, end)


@settings(deadline=None)
@given(st.binary(max_size=5000), st.integers(1, 6000))
def test_chunks_of_any_size_are_the_body(body, size):
    head, _, chunks = wire(Reply(body=body).chunked(size)).partition(b"\r\n\r\n")
    assert head + b"\r\n\r\n" == CHUNKED_HEAD
    assert unchunked(chunks) == body


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=300), st.integers(1, 400))
def test_chunks_are_as_large_as_asked_for(body, size):
    _, _, chunks = wire(Reply(body=body).chunked(size)).partition(b"\r\n\r\n")
    assert int(chunks.partition(b"\r\n")[0], 16) == min(size, len(body))


@pytest.mark.parametrize("keep_alive", [True, False])
def test_http_1_0_gets_no_chunks(keep_alive):
    assert wire(ABC.chunked(1), ASKED_1_0, keep_alive) == CLOSE_HEAD + b"abc"
    assert ending(ABC.chunked(1), ASKED_1_0, keep_alive) == "close"


def test_http_1_0_is_told_that_the_connection_is_kept():
    head = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\n"
    assert wire(ABC.delayed(1), ASKED_1_0) == head + b"abc"


def test_reply_that_is_sent_at_once_has_the_same_bytes():
    for reply, request, keep_alive in itertools.product(
        (ABC, Reply(204), Reply.json({}, 404), Reply(headers=(("Connection", "close"),))),
        (ASKED, ASKED_1_0, Request("HEAD", "/x")),
        (True, False),
    ):
        data, kept = encoded(reply, request, keep_alive)
        assert wire(reply, request, keep_alive) == data
        assert ending(reply, request, keep_alive) == ("keep" if kept else "close")


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("status", [204, 304])
def test_bodiless_status_has_no_framing_and_no_body(framing, status):
    reply = Reply(status, (("X", "1"),), b"abc", Delivery(framing=framing))
    assert wire(reply).endswith(b"\r\nX: 1\r\n\r\n")
    assert ending(reply) == "keep"


@pytest.mark.parametrize(
    ("reply", "head"),
    [
        (ABC.delayed(1), LENGTH_HEAD),
        (ABC.chunked(), CHUNKED_HEAD),
        (ABC.until_close(), CLOSE_HEAD),
        (ABC.chunked().endless(), CHUNKED_HEAD),
    ],
)
def test_head_request_gets_the_head_only(reply, head):
    assert wire(reply, Request("HEAD", "/x")) == head


def test_framing_that_the_handler_gives_is_left_out():
    own = (("content-length", "7"), ("Transfer-Encoding", "gzip"))
    assert wire(ABC._replace(headers=own).chunked()) == wire(ABC.chunked())


@pytest.mark.parametrize("name", ["X\r\nY", "X"])
@pytest.mark.parametrize("value", ["a\r\nb: c", "a\n", "\r"])
@pytest.mark.parametrize("delivery", [Delivery(delay_s=1), Delivery(interim=((103, (("X", "a\nb"),)),))])
def test_header_with_a_line_break_is_refused(name, value, delivery):
    with pytest.raises(ValueError, match="a header holds a line break"):
        scripted(Reply(headers=((name, value),), delivery=delivery), ASKED, True)


def test_interim_header_with_a_line_break_is_refused():
    with pytest.raises(ValueError, match="a header holds a line break"):
        scripted(ABC.after(103, (("X", "a\r\nb"),)), ASKED, True)


def test_header_that_is_not_latin_1_is_refused():
    with pytest.raises(UnicodeEncodeError):
        scripted(Reply(headers=(("X", "暗号"),)).delayed(1), ASKED, True)


# ---- before the reply


def test_delay_comes_first():
    assert steps(ABC.delayed(0.5).after(103)) == [
        0.5,
        b"HTTP/1.1 103 Early Hints\r\n\r\n" + LENGTH_HEAD + b"abc",
    ]


@pytest.mark.parametrize("keep_alive", [True, False])
def test_interim_replies_come_before_the_reply_in_their_order(keep_alive):
    hints = ABC.after(103, (("Link", "</a>"), ("Link", "</b>"))).after(100)
    before = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    assert wire(hints, keep_alive=keep_alive) == before + wire(ABC, keep_alive=keep_alive)


# ---- slices


def test_large_body_comes_in_slices_with_a_short_pause():
    sent = steps(Reply(body=b"x" * (3 * SLICE_BYTES)).delayed(1))[1:]
    assert [len(step) for step in sent[::2]][:-1] == [SLICE_BYTES] * 3
    assert set(sent[1::2]) == {PACE_S}


@pytest.mark.parametrize(
    ("part", "size", "expected"),
    [
        ("body", 2, [LENGTH_HEAD, 0.5, b"ab", 0.5, b"c"]),
        ("head", 20, [LENGTH_HEAD[:20], 0.5, LENGTH_HEAD[20:], 0.5, b"abc"]),
        ("all", len(LENGTH_HEAD) + 1, [LENGTH_HEAD + b"a", 0.5, b"bc"]),
    ],
)
def test_part_that_is_sliced_is_the_one_that_was_chosen(part, size, expected):
    assert steps(ABC.dripped(size, 0.5, part=part)) == expected


@pytest.mark.parametrize("part", ["body", "head", "all"])
def test_slices_have_the_size_and_the_pause_that_were_chosen(part):
    sent = steps(Reply(body=b"x" * 100).dripped(7, 0.25, part=part))
    assert set(sent[1::2]) == {0.25}
    slices = sent[::2]
    if part == "body":
        slices = slices[1:]  # the head
    elif part == "head":
        slices = slices[:-1]  # the body
    assert {len(each) for each in slices[:-1]} == {7}
    assert 1 <= len(slices[-1]) <= 7


@pytest.mark.parametrize("part", ["body", "head", "all"])
def test_reply_without_a_body_has_no_pause_at_its_end(part):
    assert isinstance(steps(Reply().dripped(7, 0.25, part=part))[-1], bytes)


def test_slices_do_not_keep_to_chunks():
    assert steps(ABC.chunked(2).dripped(6, 0.5))[1:] == [
        0.5,
        b"2\r\nab\r",
        0.5,
        b"\n1\r\nc\r",
        0.5,
        b"\n0\r\n\r\n",
    ]


def test_slices_without_a_pause_are_slices_still():
    assert steps(ABC.dripped(2, 0.0))[1:] == [0.0, b"ab", 0.0, b"c"]


FRAMED = st.sampled_from(
    [
        lambda reply: reply,
        lambda reply: reply.chunked(3),
        lambda reply: reply.until_close(),
        lambda reply: reply.after(103),
        lambda reply: reply.cut(5),
        lambda reply: reply.chunked(2).cut(9),
        lambda reply: reply.cut_head(11),
        lambda reply: Reply.raw(b"HTTP/1.1 200 OK\r\n\r\n" + reply.body),
    ]
)


@settings(deadline=None)
@given(
    st.binary(max_size=200),
    FRAMED,
    st.integers(1, 300),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from(["body", "head", "all"]),
)
def test_bytes_do_not_depend_on_the_slicing(body, framed, size, every_s, part):
    reply = framed(Reply(body=body))
    assert wire(reply.dripped(size, every_s, part=part)) == wire(reply)


@settings(deadline=None)
@given(st.binary(max_size=200), FRAMED, st.integers(1, 300), st.sampled_from(["body", "head", "all"]))
def test_no_slice_is_empty_and_no_two_pauses_meet(body, framed, size, part):
    sent = steps(framed(Reply(body=body)).dripped(size, 0.5, part=part))
    assert all(isinstance(step, bytes) and step for step in sent[::2])
    assert all(step == 0.5 for step in sent[1::2])


# ---- cuts


@pytest.mark.parametrize("after", [0, 1, 17, len(LENGTH_HEAD) - 1, len(LENGTH_HEAD), 1000])
def test_cut_head_sends_so_many_bytes_of_the_head_and_nothing_after_them(after):
    assert wire(ABC.cut_head(after)) == LENGTH_HEAD[:after]
    assert ending(ABC.cut_head(after)) == "close"


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(1, 5))
def test_cut_body_counts_the_framing(after, size):
    whole = wire(Reply(body=b"abcdef").chunked(size))
    assert wire(Reply(body=b"abcdef").chunked(size).cut(after)) == whole[: len(CHUNKED_HEAD) + after]


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4])
def test_cut_body_leaves_the_head_whole(after):
    assert wire(ABC.cut(after)) == LENGTH_HEAD + b"abc"[:after]
    assert ending(ABC.cut(after)) == "close"


@pytest.mark.parametrize(
    ("reply", "end"),
    [
        (ABC.cut(1).reset(), "reset"),
        (ABC.reset().cut(1), "reset"),
        (ABC.cut_head(1).hanging(), "hang"),
        (ABC.hanging().cut_head(1), "hang"),
        (ABC.closed(), "close"),
        (ABC.until_close().reset(), "reset"),
    ],
)
def test_ending_that_was_chosen_is_kept(reply, end):
    assert ending(reply) == ending(reply, keep_alive=False) == end


@pytest.mark.parametrize("reply", [ABC.delayed(1), Reply.raw(b"x", ending="keep")])
def test_connection_is_closed_when_the_client_asked_for_it(reply):
    assert (ending(reply), ending(reply, keep_alive=False)) == ("keep", "close")


def test_connection_is_closed_when_a_header_says_so():
    assert ending(Reply(headers=(("Connection", "close"),)).delayed(1)) == "close"


def test_ending_that_was_not_announced_does_not_show_in_the_head():
    assert wire(ABC.closed()) == wire(ABC.reset()) == wire(ABC.hanging()) == wire(ABC)


def test_pause_before_the_ending_comes_last():
    script = scripted(ABC.reset(after=0.5), ASKED, keep_alive=True)
    assert (list(script.steps), script.end_s, script.serves) == ([LENGTH_HEAD + b"abc"], 0.5, False)


def test_connection_is_served_until_it_is_closed_when_nothing_tells_of_it():
    assert scripted(ABC.closed(after=0.5), ASKED, keep_alive=True).serves
    assert not scripted(ABC.closed(after=0.5), ASKED, keep_alive=False).serves
    assert not scripted(ABC.cut(1).closed(after=0.5), ASKED, keep_alive=True).serves


def test_nothing_is_sent_of_a_reply_that_is_cut_before_its_head():
    assert steps(ABC.cut_head(0).hanging()) == []


# ---- endless


@pytest.mark.parametrize(
    ("reply", "head", "again"),
    [
        (ABC.endless(), CLOSE_HEAD, b"abc"),
        (ABC.chunked().endless(), CHUNKED_HEAD, b"3\r\nabc\r\n"),
        (ABC.endless().chunked(), CHUNKED_HEAD, b"3\r\nabc\r\n"),
    ],
)
def test_endless_body_is_sent_again_and_again(reply, head, again):
    first = list(itertools.islice(scripted(reply, ASKED, True).steps, 9))
    sent = b"".join(first[::2])
    assert len(sent) == 5 * SLICE_BYTES
    assert sent == head + (again * len(sent))[: len(sent) - len(head)]
    assert set(first[1::2]) == {PACE_S}


def test_endless_body_may_be_dripped():
    dripped = scripted(ABC.endless().dripped(4, 0.5), ASKED, True).steps
    assert list(itertools.islice(dripped, 7)) == [CLOSE_HEAD, 0.5, b"abca", 0.5, b"bcab", 0.5, b"cabc"]


def test_endless_body_ends_where_it_is_cut():
    assert wire(ABC.endless().cut(10)) == CLOSE_HEAD + b"abcabcabca"


def test_endless_body_is_the_end_of_the_connection_for_http_1_0():
    first = list(itertools.islice(scripted(ABC.chunked().endless(), ASKED_1_0, True).steps, 1))
    assert first[0].startswith(CLOSE_HEAD + b"abcabc")


def test_endless_body_of_nothing_ends():
    assert wire(Reply().endless()) == CLOSE_HEAD
    assert wire(Reply().chunked().endless()) == CHUNKED_HEAD + b"0\r\n\r\n"


# ---- wire


@pytest.mark.parametrize(
    "data", [b"", b"\x16\x03garbage", b"HTTP/1.1 200 OK\r\n\r\nabc", b"HTTP/1.1 200\n\nabc"]
)
@pytest.mark.parametrize("end", ["keep", "close", "reset", "hang"])
def test_bytes_are_sent_as_they_are(data, end):
    reply = Reply.raw(data, ending=end)
    assert (wire(reply), wire(reply, Request("HEAD", "/")), ending(reply)) == (data, data, end)


def test_bytes_have_a_head_and_a_body_to_slice_and_cut():
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    reply = Reply.raw(head + b"abc")
    assert steps(reply.dripped(2, 0.5)) == [head, 0.5, b"ab", 0.5, b"c"]
    assert wire(reply.cut(1)) == head + b"a"
    assert wire(reply.cut_head(4)) == b"HTTP"
    assert wire(reply.after(100)) == b"HTTP/1.1 100 Continue\r\n\r\n" + head + b"abc"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nabc", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc"),
        (b"garbage", b"garbage"),
    ],
)
def test_bytes_of_a_reply_tell_a_client_when_its_connection_is_not_kept(data, expected):
    assert wire(Reply.raw(data, ending="keep"), keep_alive=False) == expected
    assert wire(Reply.raw(data, ending="close"), keep_alive=False) == data


@pytest.mark.parametrize("status", [0, 99, 100, 199, 1000, -1])
@pytest.mark.parametrize("delivery", [AT_ONCE, Delivery(delay_s=1)])
def test_status_that_is_no_final_one_is_refused(status, delivery):
    with pytest.raises(ValueError, match="the status of a reply is from 200 to 999"):
        (encoded if delivery is AT_ONCE else scripted)(Reply(status, delivery=delivery), ASKED, True)
