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
