import pytest

from memmock.http import AT_ONCE, Delivery, Reply, Request, encode_json


def test_header_is_found_whatever_its_case():
    request = Request("POST", "/", (("Content-TYPE", "a"), ("X", "1"), ("x", "2")))
    assert request.header("content-type") == "a"
    assert request.header("X") == "1, 2"
    assert request.header("Y") is None


def test_path_has_no_query_string():
    assert Request("POST", "/a/b?c=/d").path == "/a/b"


def test_json_is_compact_and_readable():
    assert encode_json({"a": ["暗号", 1.5]}) == '{"a":["暗号",1.5]}'.encode()


def test_json_with_half_a_surrogate_pair_is_escaped():
    assert encode_json("\ud83d暗") == b'"\\ud83d\\u6697"'


def test_json_without_a_form_is_refused():
    with pytest.raises(ValueError, match="Out of range"):
        encode_json(float("nan"))


def test_error_has_the_structured_form():
    reply = Reply.error(429, "rate_limited", "too fast", (("Retry-After", "1"),), limit=3)
    assert reply.status == 429
    assert reply.header("retry-after") == "1"
    assert reply.body == b'{"error":{"code":"rate_limited","message":"too fast","limit":3}}'


def test_delays_add_up():
    reply = Reply.json({})
    assert reply.delivery is AT_ONCE
    assert reply.delayed(0.25).delayed(0.5).delivery == Delivery(delay_s=0.75)


REPLY = Reply(201, (("X", "1"),), b"abc")


@pytest.mark.parametrize(
    ("reply", "delivery"),
    [
        (REPLY, Delivery()),
        (REPLY.delayed(0.5), Delivery(delay_s=0.5)),
        (REPLY.after(103, (("A", "b"),)).after(100), Delivery(interim=((103, (("A", "b"),)), (100, ())))),
        (REPLY.chunked(), Delivery(framing="chunked", chunk_bytes=1024)),
        (REPLY.chunked(7), Delivery(framing="chunked", chunk_bytes=7)),
        (REPLY.until_close(), Delivery(framing="close", ending="close")),
        (REPLY.dripped(3, 0.25), Delivery(slice_bytes=3, every_s=0.25)),
        (REPLY.dripped(3, 0.25, part="head"), Delivery(slice_bytes=3, every_s=0.25, sliced="head")),
        (REPLY.cut(2), Delivery(cut_body=2, ending="close")),
        (REPLY.cut_head(0), Delivery(cut_head=0, ending="close")),
        (REPLY.cut(2).reset(), Delivery(cut_body=2, ending="reset")),
        (REPLY.reset(0.5).cut(2), Delivery(cut_body=2, ending="reset", end_s=0.5)),
        (REPLY.hanging().cut_head(2), Delivery(cut_head=2, ending="hang")),
        (REPLY.endless(), Delivery(endless=True, framing="close")),
        (REPLY.endless().chunked(9), Delivery(endless=True, framing="chunked", chunk_bytes=9)),
        (REPLY.chunked(9).endless(), Delivery(endless=True, framing="chunked", chunk_bytes=9)),
        (REPLY.closed(after=0.5), Delivery(ending="close", end_s=0.5)),
        (REPLY.closed(), Delivery(ending="close")),
        (REPLY.hanging(), Delivery(ending="hang")),
    ],
)
def test_reply_keeps_all_but_the_delivery_that_is_chosen(reply, delivery):
    assert reply == (201, (("X", "1"),), b"abc", delivery, None)


def test_listener_is_kept_when_the_delivery_changes():
    def listener(_):
        pass

    assert REPLY._replace(on_sent=listener).cut(1).reset().on_sent is listener


@pytest.mark.parametrize("size", [0, -1])
def test_chunk_of_nothing_is_refused(size):
    for choose in (REPLY.chunked, lambda chunk: REPLY.dripped(chunk, 0.1)):
        with pytest.raises(ValueError, match=f"chunk must be at least 1 byte, not {size}"):
            choose(size)


@pytest.mark.parametrize(
    ("wire", "status"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n", 404),
        (b"HTTP/1.0 200\r\n\r\n", 200),
        (b"HTTP/1.1 20", 0),
        (b"HTTP/1.1 OK two-hundred\r\n\r\n", 0),
        (b"\x16\x03\x01", 0),
        (b"", 0),
    ],
)
def test_reply_of_bytes_has_the_status_they_begin_with(wire, status):
    assert Reply.raw(wire) == Reply(status, delivery=Delivery(wire=wire, ending="close"))
    assert Reply.raw(wire, ending="hang").delivery.ending == "hang"


@pytest.mark.parametrize(
    ("reply", "cut"),
    [(REPLY, False), (REPLY.reset(), False), (REPLY.cut(0), True), (REPLY.cut_head(0), True)],
)
def test_delivery_knows_whether_a_part_is_never_sent(reply, cut):
    assert reply.delivery.cut is cut
