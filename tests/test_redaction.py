"""Secrets are taken out of what is stored, in every form, and nothing else is."""

import base64
import codecs
import gzip
import html
import json
import re
import threading
import zlib
from urllib.parse import quote, quote_plus, unquote_to_bytes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memmock import codings
from memmock.errors import MemmockError
from memmock.http import Reply, Request
from memmock.redaction import MASK, Redactor, mask_of
from memmock.redaction.redactor import _LONGEST_LEARNED, MOST_LEARNED

KEY = 'kT/9+x"Zq7'
BEARER = f"Bearer {KEY}"
QUICK = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def recorded(redactor, *, headers=(), target="/v1", body=b"", reply=b"", reply_headers=()):
    return redactor.exchange(Request("POST", target, headers, body), Reply(200, reply_headers, reply))


# ---- what text reads as: slow and plain, to check the redactor by


def readings(data, depth=3):
    """All that bytes may be taken for: with percent, JSON and Base64 undone, inside each other too."""
    found, new = {data}, {data}
    for _ in range(depth):
        new = {other for text in new for other in once(text)} - found
        found |= new
    return found


def once(data):
    yield unquote_to_bytes(data)
    yield unquote_to_bytes(data.replace(b"+", b" "))
    text = data.decode("latin-1")
    yield re.sub(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])', unescaped, text).encode("utf-8", "surrogatepass")
    for run in re.findall(rb"[\w+/-]{4,}", data):
        plain = run.translate(bytes.maketrans(b"-_", b"+/"))
        for start in range(4):
            part = plain[start:]
            yield base64.b64decode(part[: len(part) // 4 * 4])
            yield base64.b64decode(part + b"A" * (-len(part) % 4))


def unescaped(found):
    return json.loads(f'"{found[0]}"').encode("utf-8", "surrogatepass").decode("latin-1")


def survives(secret, *parts):
    secret = secret.encode()
    data = [part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part for part in parts]
    return any(secret in reading for part in data for reading in readings(part))


def parts_of(message):
    values = [text for pair in message.headers for text in pair]
    return [message.body, *values, *([message.target] if isinstance(message, Request) else [])]


# ---- forms of a secret


def escaped(text, choice):
    """JSON-escape the characters of a text, each as `choice` says."""
    ways = [lambda char: json.dumps(char)[1:-1], lambda char: f"\\u{ord(char):04x}", upper]
    return "".join(ways[next(choice) % 3](char) for char in text)


def upper(char):
    return "\\/" if char == "/" else f"\\u{ord(char):04X}"


def percent(text, choice):
    ways = [quote_plus, lambda char: f"%{ord(char):02x}", lambda char: f"%{ord(char):02X}"]
    return "".join(ways[next(choice) % 3](char) for char in text)


def twice(text, choice):
    return percent(percent(text, choice), choice)


def nested(text, choice):
    return escaped(escaped(text, choice), choice)


def deeper(text, choice):
    return escaped(nested(text, choice), choice)


def mixed(text, choice):
    return escaped(percent(text, choice), choice)


def coded(text, choice):
    before, after = b"xyz"[: next(choice) % 4], b"=?>"[: next(choice) % 4]
    code = base64.urlsafe_b64encode if next(choice) % 2 else base64.b64encode
    return code(before + text.encode() + after).decode()


def coded_and_escaped(text, choice):
    return escaped(coded(text, choice), choice)


FORMS = [escaped, percent, twice, nested, deeper, mixed, coded, coded_and_escaped]


def endless(numbers):
    while True:
        yield from numbers


choices = st.lists(st.integers(0, 11), min_size=1, max_size=40).map(endless)
secrets = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=24).filter(
    lambda text: len(set(text) - set('*"')) > 3
)
noise = st.text(st.sampled_from("ab ,.:{}é中\n"), max_size=12)


@QUICK
@given(secrets, choices, st.sampled_from(FORMS), noise, noise)
def test_configured_secret_survives_in_no_form(secret, choice, form, before, after):
    redactor = Redactor(secrets=[f"Bearer {secret}"])
    text = form(secret, choice)
    data = f"{before}<{text}>{after}".encode()
    request, reply = recorded(
        redactor, headers=(("X-Echo", text),), target=f"/a/{text}", body=data, reply=data
    )
    assert not survives(secret, *parts_of(request), *parts_of(reply), redactor.text(data.decode()))
    assert redactor.leaks(data) == ["the configured secret 1"]
    assert redactor.leaks(reply.body) == []


@QUICK
@given(secrets, choices, st.sampled_from([escaped, nested, deeper]), st.sampled_from(["utf-8", "utf-16-le"]))
def test_json_stays_json_with_all_else_the_same(secret, choice, form, charset):
    other = json.dumps({"a": [1, None, 'é"\\'], "b": 1.50})
    parts = f'{{"x": "{{}}", "list": [{other}, "~{{}}~"], "~{{}}~": 1e5 }}'.split("{}")
    before, after = form(secret, choice).join(parts), MASK.join(parts)
    json.loads(before)
    _, reply = recorded(Redactor(secrets=[secret]), reply=before.encode(charset))
    assert reply.body == after.encode(charset)


@QUICK
@given(
    secrets,
    choices,
    st.sampled_from(FORMS),
    st.sampled_from(["utf-8", "utf-16", "utf-32-be", "latin-1", "gzip", "deflate", "raw"]),
    st.binary(max_size=12),
)
def test_secret_survives_in_no_encoding(secret, choice, form, encoding, noise_bytes):
    body = f"<{form(secret, choice)}>".encode(encoding if "-" in encoding else "utf-8")
    headers = (("Content-Type", f"text/plain; charset={encoding}"),)
    if encoding in ("gzip", "deflate", "raw"):
        body = squeezed(noise_bytes + body + noise_bytes, encoding)
        headers = (("Content-Encoding", "deflate" if encoding == "raw" else encoding),)
    redactor = Redactor(secrets=[secret])
    request, reply = recorded(redactor, headers=headers, body=body, reply=body, reply_headers=headers)
    assert request.body == reply.body
    text = reply.body.decode(encoding) if "-" in encoding else reply.body
    assert not survives(secret, text)
    assert redactor.leaks(body) == [] or encoding not in ("gzip", "deflate", "raw")


@QUICK
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    st.sampled_from(
        ["4711", "true", "null", "0041", "1234", "uabcd", '"a":', "12, 3", "u00e9", "\\u00", "nabc"]
    ),
    st.booleans(),
    st.booleans(),
)
def test_json_stays_json_whatever_the_secret_is(value, secret, narrow, first):
    values = [secret, value] if first else [value, {"a": secret, secret: value}]
    if secret.isdigit():
        values += [int(secret.lstrip("0")), float(secret) / 8]
    data = json.dumps([values, 47114711, True, 1234.5, None, "é\n\nabc", [12, 3]], ensure_ascii=narrow)
    data = data.encode("utf-8", "surrogatepass")
    redactor = Redactor(secrets=[secret])
    _, reply = recorded(redactor, reply=data)
    json.loads(reply.body.decode("utf-8", "surrogatepass"))
    assert recorded(redactor, reply=reply.body)[1].body == reply.body


@QUICK
@given(
    st.binary(max_size=60),
    st.sampled_from(
        ["", "application/json", "text/plain; charset=latin-1", "x/y; charset=utf-16", "a; charset=no"]
    ),
    st.lists(st.text(st.characters(max_codepoint=255), max_size=12), max_size=3),
    st.sampled_from(["/v1", "/a?b=%41&c=+", "http://h:1/%?x#y=1", ""]),
)
def test_what_holds_no_secret_stays_byte_for_byte(body, media, values, target):
    redactor = Redactor(secrets=["Bearer ÿþ-never-there"], fields=["never"], patterns=["never-ever"])
    headers = (("Content-Type", media), *(("X-A", value) for value in values))
    request, reply = Request("POST", target, headers, body), Reply(201, headers, body)
    assert redactor.exchange(request, reply) == (request, reply)
    assert redactor.request(request) == request
    assert redactor.uri(target) == target
    assert redactor.leaks(body) == []


@QUICK
@given(secrets, choices, st.sampled_from(FORMS), st.sampled_from(["Authorization", "x-api-key", "Cookie"]))
def test_header_value_is_learned_and_hidden_in_both_directions_and_later(secret, choice, form, name):
    secret = re.sub(r'[;,="%]', "x", secret)
    value = f"sid={secret}; b=2" if name == "Cookie" else secret
    redactor = Redactor()
    text = form(secret, choice).encode()
    request, reply = recorded(redactor, headers=((name, value),), body=text, reply=text)
    assert request.headers == ((name, MASK),)
    assert not survives(secret, *parts_of(request), *parts_of(reply))
    later, _ = recorded(redactor, body=text)
    assert not survives(secret, later.body)
    assert redactor.leaks(text) == [f"the value of the header {name.lower()}"]


@QUICK
@given(secrets, choices, st.sampled_from(FORMS), st.booleans())
def test_redacting_the_redacted_changes_nothing(secret, choice, form, is_json):
    redactor = Redactor(secrets=[secret], fields=["pin"], patterns=[r"\d\d", "(?<=id=).+"])
    text = form(secret, choice)
    body = json.dumps({"pin": 12345, "a": [text, "id=7, 123"], "n": 1}).encode() if is_json else text.encode()
    headers = (("Authorization", secret), ("X-A", f"id=33 {text}"), ("Content-Length", str(len(body))))
    once_done = recorded(redactor, headers=headers, body=body, reply=body, reply_headers=headers)
    assert redactor.exchange(*once_done) == once_done
    assert redactor.request(once_done[0]) == once_done[0]
    assert redactor.leaks(once_done[1].body) == []


@QUICK
@given(secrets, choices, st.sampled_from(FORMS))
def test_request_is_redacted_as_it_was_recorded(secret, choice, form):
    text = form(secret, choice)
    body = json.dumps({"a": text, "pin": "1"}).encode()
    request = Request(
        "POST", f"/x?token={quote(secret)}&u={text}", (("X-Api-Key", secret), ("X-B", text)), body
    )
    asked, _ = Redactor(fields=["pin"]).exchange(request, Reply())
    replayed = Redactor(fields=["pin"])
    assert replayed.request(request) == asked
    assert replayed.leaks(body) == []


# ---- headers


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        *(
            (name, True)
            for name in ("Authorization", "proxy-authorization", "COOKIE", "Set-Cookie", "X-Api-Key")
        ),
        *((name, True) for name in ("apikey", "X-Auth-Token", "X-Amz-Security-Token", "X-Amz-Signature")),
        *(
            (name, True)
            for name in ("X-Session-Id", "Client-Secret", "X-Passwd", "Ocp-Apim-Subscription-Key")
        ),
        *((name, False) for name in ("Content-Type", "X-RateLimit-Remaining-Tokens", "X-Max-Tokens", "Date")),
        *((name, False) for name in ("Access-Control-Allow-Credentials", "X-Token-Type", "Idempotency-Key")),
    ],
)
def test_header_is_hidden_by_its_name(name, is_secret):
    request, reply = recorded(Redactor(), headers=((name, "ab"),), reply_headers=((name, "cd"), (name, "ef")))
    assert request.headers == ((name, MASK if is_secret else "ab"),)
    assert reply.headers == (((name, MASK),) * 2 if is_secret else ((name, "cd"), (name, "ef")))


def test_header_that_was_named_is_hidden_in_any_case():
    request, _ = recorded(Redactor(headers=["X-Tenant"]), headers=(("x-TENANT", "a"), ("x-tenant", "b")))
    assert request.headers == (("x-TENANT", MASK), ("x-tenant", MASK))


BASIC = base64.b64encode(b"alice:open-sesame").decode()


@pytest.mark.parametrize(
    ("header", "hidden", "kept"),
    [
        (("Authorization", "Bearer abcdefgh"), ["Bearer abcdefgh", "abcdefgh"], ["abcdefg"]),
        (("Authorization", "Bearer abc"), ["Bearer abc"], ["abc"]),
        (("Authorization", f"Basic {BASIC}"), [BASIC, "alice:open-sesame", "open-sesame"], ["alice"]),
        (("authorization", f"basic {BASIC}"), [BASIC, "open-sesame"], []),
        (
            ("Proxy-Authorization", "AWS4 Credential=AKIA/2024, Signature=0123abcd"),
            ["0123abcd"],
            ["Signature"],
        ),
        (("Cookie", 'a=12345678; b="87654321"; c=1'), ["12345678", "87654321"], ["a=", "1;"]),
        (("Cookie", "a=12%2F345678"), ["12/345678", "12%2f345678"], []),
        (("Set-Cookie", "sid=12345678; Path=/long/path; Max-Age=123456789"), ["12345678"], ["/long/path"]),
        (("X-Api-Key", "1234567"), [], ["1234567"]),
        (("X-Api-Key", "schlüssel".encode().decode("latin-1")), ["schlüssel", "schl%C3%BCssel"], []),
        (("X-Api-Key", "schl\xfcssel"), ["schlüssel", "schl%FCssel", "schl\\u00fcssel"], []),
        (("X-Api-Key", "********"), [], ["********"]),
    ],
)
def test_parts_of_a_header_are_secrets_too(header, hidden, kept):
    body = (
        json.dumps([f"<{text}>" for text in hidden + kept], ensure_ascii=False).replace("\\\\", "\\").encode()
    )
    _, reply = recorded(Redactor(), headers=(header,), reply=body)
    assert json.loads(reply.body) == ["<***>"] * len(hidden) + [f"<{text}>" for text in kept]


def test_value_from_a_reply_is_hidden_in_its_request():
    request, _ = recorded(Redactor(), body=b"was 12345678", reply_headers=(("Set-Cookie", "a=12345678"),))
    assert request.body == b"was ***"


@pytest.mark.parametrize(
    ("secret", "headers", "shown"),
    [
        ("abc", (("X-A", "abc"), ("X-B", "abcd")), (("X-A", MASK), ("X-B", "abcd"))),
        ("abcd", (("X-A", "abc"), ("X-B", "xabcdx")), (("X-A", "abc"), ("X-B", "x***x"))),
        ("Bearer abc", (("X-A", "abc"), ("X-B", "Bearer+abc")), (("X-A", MASK), ("X-B", MASK))),
        ("Basic YTpiY2Rl", (("X-A", "bcde"), ("X-B", "a%3Abcde")), (("X-A", MASK), ("X-B", MASK))),
        ("ab c d", (("X-A", "ab+c d"), ("X-B", "ab%20c+d")), (("X-A", MASK), ("X-B", MASK))),
        ("schlüssel", (("X-A", "schl\xc3\xbcssel"), ("X-B", "schl\xfcssel")), (("X-A", MASK), ("X-B", MASK))),
    ],
)
def test_configured_secret_is_hidden_in_other_headers(secret, headers, shown):
    request, reply = recorded(Redactor(secrets=[secret]), headers=headers, body=b"abc", reply_headers=headers)
    assert (request.headers, reply.headers, request.body) == (shown, shown, b"abc")


def test_length_that_looks_like_a_secret_stays():
    headers = (("Content-Length", "1234"),)
    assert recorded(Redactor(secrets=["1234"]), headers=headers)[0].headers == headers


# ---- URLs


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("http://bob:pass@host:1/a?b=c", "http://***@host:1/a?b=c"),
        ("http://bob:p@ss@host/", "http://***@host/"),
        ("https://token@host/a@b", "https://***@host/a@b"),
        ("/a@b/?q=x@y", "/a@b/?q=x@y"),
        ("/a?x=1&api_key=2&y=3", "/a?x=1&api_key=***&y=3"),
        ("/a?Access%5FToken=2;x#token=3", "/a?Access%5FToken=***#token=***"),
        ("/a?pin=2&p=1", "/a?pin=***&p=1"),
        ("/a?a=1;token=X&b=2", "/a?a=1;token=***&b=2"),
        ("/a?token=X;b=2&c=3", "/a?token=***&c=3"),
        ("/a?q=%7B%22pin%22%3A+1%2C%22b%22%3A2%7D", "/a?q=%7B%22pin%22%3A+%22***%22%2C%22b%22%3A2%7D"),
        ("/a?page_token=2&max_tokens=3&token=", "/a?page_token=2&max_tokens=3&token="),
    ],
)
def test_secrets_in_a_url_are_hidden(uri, shown):
    redactor = Redactor(fields=["PIN"])
    assert redactor.uri(uri) == shown
    assert redactor.request(Request("GET", uri)).target == shown
    assert redactor.uri(shown) == shown


def test_secrets_of_a_url_are_learned_and_hidden_elsewhere():
    target = "http://bob:sesame%2Fopen@host/?sig=a%62cdefghi"
    request, reply = recorded(Redactor(), target=target, reply=b"<sesame/open> <abcdefghi> <a%62cdefghi>")
    assert request.target == "http://***@host/?sig=***"
    assert reply.body == b"<***> <***> <***>"


def test_urls_in_headers_and_texts_are_redacted():
    redactor = Redactor()
    link = '<https://a:b@h/?token=1&x=2>; rel="next"'
    _, reply = recorded(redactor, reply_headers=(("Link", link),))
    assert reply.headers == (("Link", '<https://***@h/?token=***&x=2>; rel="next"'),)
    assert redactor.text(f"see {link}") == 'see <https://***@h/?token=***&x=2>; rel="next"'


def test_text_beyond_latin_1_is_redacted():
    redactor = Redactor(secrets=["秘密的钥匙"])
    assert redactor.text("说：秘密的钥匙。") == "说：***。"
    assert redactor.text("\\u79d8\\u5bc6\\u7684\\u94a5\\u5319 \ud800") == "*** \ud800"
    assert redactor.text("说") == "说"


# ---- fields

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("depth", range(9))
def test_field_is_hidden_in_json_of_any_depth(depth):
    body, shown = json.dumps({"pin": [1], "b": 2}), json.dumps({"pin": MASK, "b": 2})
    for _ in range(depth):
        body, shown = json.dumps({"a": body}), json.dumps({"a": shown})
    assert recorded(Redactor(fields=["pin"]), body=body.encode())[0].body.decode() == shown


def test_json_that_is_sent_as_a_form_stays_json():
    headers = (("Content-Type", FORM),)
    body = b'{"pin": "1", "u": "/a?token=2", "n": [12345, "x;secret=3&b=c"]}'
    expected = b'{"pin": "***", "u": "/a?token=***", "n": [12345, "x;secret=***&b=c"]}'
    assert recorded(Redactor(fields=["pin"]), headers=headers, body=body)[0].body == expected
    assert Redactor(fields=["pin"]).request(Request("POST", "/", headers, body)).body == expected


@pytest.mark.parametrize(
    ("number", "is_learned"),
    [("12345678", True), ("-12345678", True), ("1234.5678", True), ("1234567", False), ("true", False)],
)
def test_long_numbers_of_fields_are_learned(number, is_learned):
    _, reply = recorded(
        Redactor(fields=["pin"]), body=f'{{"pin": {number}}}'.encode(), reply=f"<{number}>".encode()
    )
    assert (MASK in reply.body.decode()) is is_learned


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ('{"pin": "1", "a": {"PIN":2}}', '{"pin": "***", "a": {"PIN":"***"}}'),
        ('{"pin": {"a": "}", "b": [1]}, "c": 1}', '{"pin": "***", "c": 1}'),
        ('[{"pin": [1, "]"]} , {"pin":null,"b":true}]', '[{"pin": "***"} , {"pin":"***","b":true}]'),
        ('{"p\\u0069n" : "a\\"b", "x": "pin"}', '{"p\\u0069n" : "***", "x": "pin"}'),
        ('{"pin": "", "spin": 1, "a\\"pin": 1}', '{"pin": "***", "spin": 1, "a\\"pin": 1}'),
        ('{"a": 1, "pin": "12', '{"a": 1, "pin": "***'),
        ('{"a": 1, "pin": {"b": [1', '{"a": 1, "pin": "***"'),
        ('{"a": 1, "pin": ', '{"a": 1, "pin": '),
        ('{"pin": {"pin": 1, "a": {"pin": "2"}}, "b": 3}', '{"pin": "***", "b": 3}'),
        ('"{\\"pin\\": 1, \\"a\\": \\"pin\\"}"', '"{\\"pin\\": \\"***\\", \\"a\\": \\"pin\\"}"'),
        (
            json.dumps({"a": json.dumps({"pin": "", "b": "c"})}),
            json.dumps({"a": json.dumps({"pin": MASK, "b": "c"})}),
        ),
        (json.dumps(json.dumps(json.dumps({"pin": [1]}))), json.dumps(json.dumps(json.dumps({"pin": MASK})))),
        ('data: {"pin": 1}\n\ndata: {"pin": 2}\n\n', 'data: {"pin": "***"}\n\ndata: {"pin": "***"}\n\n'),
        ("a=1&pin=2&b=pin", "a=1&pin=***&b=pin"),
        ("pin=a%20b+c", "pin=***"),
        ("the pin=1 is", "the pin=1 is"),
        ("a=1;pin=2&b=3", "a=1;pin=***&b=3"),
        ("a=%7B%22pin%22%3A%22x%22%7D&b=%22", "a=%7B%22pin%22%3A%22***%22%7D&b=%22"),
        ("a=%7b%22pin%22:+12%7d", "a=%7b%22pin%22:+%22***%22%7d"),
        ('a={"pin":"1"}&b=2', 'a={"pin":"***"}&b=2'),
        ('{"a": "{\\u0022pin\\u0022: \\u00221\\u0022}"}', '{"a": "{\\u0022pin\\u0022: \\u0022***\\u0022}"}'),
        ("{'pin': 'a\\'b', 'c': {'pin': 1}}", "{'pin': \"***\", 'c': {'pin': \"***\"}}"),
        ("{\"a\": \"{'pin': '1'}\"}", "{\"a\": \"{'pin': '***'}\"}"),
        (
            "<pin>1</pin><s:Pin x='1'> 2 </s:Pin><pin/><b>3</b>",
            "<pin>***</pin><s:Pin x='1'> ***</s:Pin><pin/><b>3</b>",
        ),
        ('{"a": "<pin>1</pin>", "b": 2}', '{"a": "<pin>***</pin>", "b": 2}'),
        (
            '--x\r\nContent-Disposition: form-data; name="pin"\r\nA: b\r\n\r\n1\r\n2\r\n--x--',
            '--x\r\nContent-Disposition: form-data; name="pin"\r\nA: b\r\n\r\n***\r\n--x--',
        ),
    ],
)
def test_fields_are_hidden_by_their_name(body, shown):
    redactor = Redactor(fields=["Pin"])
    for media in ("", "application/problem+json; charset=utf-8", "image/png", FORM):
        if media == FORM and " pin=" in body:
            continue
        headers = (("Content-Type", media),)
        request, reply = recorded(redactor, headers=headers, body=body.encode(), reply=body.encode())
        assert (request.body.decode(), reply.body.decode()) == (shown, shown)
    assert redactor.request(Request("POST", "/", (), body.encode())).body.decode() == shown


def test_field_name_that_is_not_ascii_is_found():
    _, reply = recorded(Redactor(fields=["Schlüssel"]), reply=b'{"schl\\u00fcssel": 1}')
    assert reply.body == b'{"schl\\u00fcssel": "***"}'


def test_values_of_fields_are_learned():
    redactor = Redactor(fields=["pin"])
    request, reply = recorded(
        redactor, body=b'{"pin": "1234\\u0035678"}', reply=b"12345678", reply_headers=(("X-A", "a12345678"),)
    )
    assert (request.body, reply.body, reply.headers) == (b'{"pin": "***"}', b'"***"', (("X-A", "a***"),))
    assert redactor.leaks(b"12345678") == ["the value of the field pin"]


def test_secret_fields_of_a_form_are_hidden():
    headers = (("Content-Type", "application/x-www-form-urlencoded"),)
    body = b"grant=a&client_secret=ab%20cdefg&x=ab+cdefg"
    request = Request("POST", "/", headers, body)
    expected = b"grant=a&client_secret=***&x=***"
    assert Redactor().request(request).body == expected
    assert recorded(Redactor(), headers=headers, body=body)[0].body == expected


# ---- more forms of what was configured

LIVE = "sk-Live/4711+abcdef"


def twice_coded(data):
    return base64.b64encode(b"x" + base64.b64encode(b"yz" + data + b"?") + b"!").decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (LIVE.lower(), MASK),
        (LIVE.upper(), MASK),
        (quote(LIVE.lower(), safe=""), MASK),
        (LIVE.encode().hex(), MASK),
        (LIVE.encode().hex().upper(), MASK),
        (f"key {LIVE[:12]}... is bad", "key ***... is bad"),
        (f"key {LIVE[:14].upper()}… is bad", "key ***… is bad"),
        (f"key {LIVE[:12]}********", "key ***"),
        (f"key {LIVE[:11]}...", f"key {LIVE[:11]}..."),
        (f"key {LIVE[:12]}, {LIVE[:12]}x...", f"key {LIVE[:12]}, {LIVE[:12]}x..."),
        ("Bearer+" + LIVE.lower(), MASK),
        ("sk-Live&#47;4711&#x2b;abcdef", MASK),
        ("sk-Live&sol;4711&plus;abcdef", MASK),
        ("sk-Live&#x2F;4711&amp;#43;abcdef", MASK),
        ("sk-Live&unknown;4711", "sk-Live&unknown;4711"),
    ],
)
def test_configured_secret_is_hidden_in_more_forms(text, shown):
    redactor = Redactor(secrets=[f"Bearer {LIVE}"])
    assert redactor.text(f"<{text}>") == f"<{shown}>"
    assert recorded(redactor, reply=json.dumps([text]).encode())[1].body.decode() == json.dumps([shown])
    assert bool(redactor.leaks(text.encode())) is (text != shown)


@pytest.mark.parametrize("data", [LIVE.encode("utf-16-le"), LIVE.encode("utf-16-be")])
@pytest.mark.parametrize("before", [b"", b"x", b"xy"])
def test_base64_of_utf_16_is_hidden(data, before):
    coded_text = base64.b64encode(before + data + b"xyz").decode()
    assert MASK in Redactor(secrets=[LIVE]).text(coded_text)


def test_base64_of_base64_is_hidden():
    redactor = Redactor(secrets=[LIVE])
    for lead in range(3):
        text = twice_coded(b"a" * lead + LIVE.encode())
        assert not survives(LIVE, redactor.text(text))
        assert MASK in redactor.text(text)


@pytest.mark.parametrize("text", ["pass&#119;ord-1", "a&quot;b&amp;cdefg", "&lt;12345678&gt;"])
def test_learned_value_is_hidden_in_html(text):
    value = html.unescape(text)
    _, reply = recorded(Redactor(), headers=(("X-Api-Key", value),), reply=f"({text})".encode())
    assert reply.body == b"(***)"


def test_value_of_a_parameter_is_learned_up_to_a_semicolon():
    _, reply = recorded(Redactor(), target="/?token=12345678;a=1", reply=b"12345678")
    assert reply.body == b'"***"'


# ---- tokens and patterns


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ('{"a": 12345678, "b": [912345678.5]}', '{"a": "***", "b": ["***"]}'),
        ("12345678", '"***"'),
        (" 12345678 is a number", " *** is a number"),
        ('{"\\u1234": "\\u12345678"}', '{"\\u1234": "***"}'),
        ('{"a": "x12345678', '{"a": "x***'),
    ],
)
def test_number_that_is_a_secret_becomes_text(body, shown):
    _, reply = recorded(Redactor(secrets=["12345678"]), reply=body.encode())
    assert reply.body.decode() == shown


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("tel 555-1234, 555-9999.", "tel ***, ***."),
        ("é 555-1234 é 555-1234", "é *** é ***"),
        ('{"a": "555-\\u0031234", "b": 5}', '{"a": "***", "b": 5}'),
        ("555%2D1234", "***"),
        ("5555-12345", "5***5"),
    ],
)
def test_match_of_a_pattern_is_hidden(body, shown):
    redactor = Redactor(patterns=["never", r"\d{3}-\d{4}|\b\B"])
    request, reply = recorded(redactor, target="/555-1234", headers=(("A", "555-1234"),), reply=body.encode())
    assert (request.target, request.headers, reply.body.decode()) == ("/***", (("A", MASK),), shown)
    assert redactor.leaks(body.encode()) == ["a match of the pattern 2"]
    assert redactor.leaks(reply.body) == []


@pytest.mark.parametrize("pattern", [".", "..", ".+", r"\*", "a*b?c", "[^x]{3}"])
def test_pattern_that_matches_masks_settles(pattern):
    redactor = Redactor(patterns=[pattern])
    done = redactor.text("abcd *** ***** x1")
    assert redactor.text(done) == done


def test_pattern_that_cannot_be_read_is_refused():
    with pytest.raises(MemmockError) as caught:
        Redactor(patterns=["a", "b("])
    assert str(caught.value) == (
        "the pattern 2 is not a regular expression: missing ), unterminated subpattern at position 1"
    )


@pytest.mark.parametrize(
    "pattern", ["(?P<s3cr3t>a)(?P<s3cr3t>b)", "[s3cr3t-a]", r"s3cr3t\q", "(?P=s3cr3t)", "s3cr3t**"]
)
def test_pattern_that_cannot_be_read_is_not_quoted(pattern):
    with pytest.raises(
        MemmockError, match=r"the pattern 1 is not a regular expression: [a-z -]+\d*$"
    ) as caught:
        Redactor(patterns=[pattern])
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_pattern_that_matches_nothing_at_all_is_refused():
    with pytest.raises(MemmockError) as caught:
        Redactor(patterns=["a*\n?"])
    assert str(caught.value) == ("the pattern 1 matches the empty text, so it would hide everything")


# ---- encodings of bodies


def squeezed(data, coding):
    if coding == "raw":
        squeezer = zlib.compressobj(wbits=-15)
        return squeezer.compress(data) + squeezer.flush()
    return gzip.compress(data) if "gzip" in coding else zlib.compress(data)


@pytest.mark.parametrize(
    ("coding", "squeeze"),
    [
        ("gzip", ["gzip"]),
        ("X-GZip", ["gzip"]),
        ("deflate", ["deflate"]),
        ("deflate", ["raw"]),
        ("deflate, gzip", ["deflate", "gzip"]),
        ("identity", []),
    ],
)
def test_compressed_body_is_decoded(coding, squeeze):
    plain = json.dumps({"a": KEY, "b": "x" * 50}).encode()
    body = plain
    for step in squeeze:
        body = squeezed(body, step)
    headers = (("Content-Encoding", coding), ("content-length", str(len(body))), ("X", "1"))
    redactor = Redactor(secrets=[BEARER])
    request, reply = recorded(redactor, headers=headers, body=body, reply=body, reply_headers=headers)
    expected = json.dumps({"a": MASK, "b": "x" * 50}).encode()
    assert request.body == reply.body == expected
    assert request.headers == reply.headers == (("content-length", str(len(expected))), ("X", "1"))
    assert redactor.request(Request("POST", "/v1", headers, body)) == request


def test_members_of_gzip_are_all_decoded():
    body = gzip.compress(b"<sec") + gzip.compress(b"ret>") + bytes(8)
    _, reply = recorded(
        Redactor(secrets=["secret"]), reply=body, reply_headers=(("Content-Encoding", "gzip"),)
    )
    assert reply.body == b"<***>"


@pytest.mark.parametrize(
    ("coding", "body", "message"),
    [
        ("br", b"x", "the body is encoded as br and cannot be looked into for secrets"),
        (
            "zstd, gzip",
            gzip.compress(b"x", mtime=0),
            "the body is encoded as zstd and cannot be looked into for secrets",
        ),
        ("gzip", bytes(20), "the body is encoded as gzip, but broken, and cannot be looked into for secrets"),
        (
            "deflate",
            b"\xff" * 20,
            "the body is encoded as deflate, but broken, and cannot be looked into for secrets",
        ),
        (
            "gzip",
            gzip.compress(b"x" * 99, mtime=0)[:-5],
            "the body is encoded as gzip, but cut short, and cannot be looked into for secrets",
        ),
        (
            "gzip",
            gzip.compress(bytes(1001), mtime=0),
            "the body is encoded as gzip, holds more than 0 MiB, and cannot be looked into for secrets",
        ),
    ],
)
def test_body_that_cannot_be_looked_into_is_refused(coding, body, message, monkeypatch):
    monkeypatch.setattr(codings, "MOST_BYTES", 1000)
    headers = (("Content-Encoding", coding), ("X-Api-Key", "1"))
    with pytest.raises(MemmockError) as caught:
        recorded(Redactor(), reply=body, reply_headers=headers)
    assert str(caught.value) == message
    request = Redactor().request(Request("POST", "/", headers, body))
    assert (request.body, request.headers) == (body, (headers[0], ("X-Api-Key", MASK)))


@pytest.mark.parametrize("coding", ["Bearer sk-live-4711abcdef", "x" * 21, "k=4711"])
def test_coding_that_is_no_plain_name_is_not_shown(coding):
    with pytest.raises(MemmockError) as caught:
        recorded(Redactor(), reply=b"x", reply_headers=(("Content-Encoding", coding),))
    assert str(caught.value) == (
        "the body is encoded as something of no plain name and cannot be looked into for secrets"
    )


@pytest.mark.parametrize(
    ("plain", "what"),
    [
        (b"<secret>", "the configured secret 1"),
        (b'{"pin": 1}', "a hidden field"),
        ("<secret>".encode("utf-16"), "the configured secret 1"),
        (b"a 12345678 b", "the value of the header x-api-key"),
        (gzip.compress(b"secret", mtime=0), "the configured secret 1"),
    ],
)
def test_packed_body_that_does_not_say_so_is_refused_with_a_secret_in_it(plain, what):
    redactor = Redactor(secrets=["secret"], fields=["pin"])
    body, headers = gzip.compress(plain), (("X-Api-Key", "12345678"),)
    with pytest.raises(MemmockError) as caught:
        recorded(redactor, headers=headers, reply=body)
    assert (
        str(caught.value) == f"the body cannot be stored: packed as gzip without saying so, it holds {what}"
    )
    assert redactor.request(Request("POST", "/", (), body)).body == body


def test_packed_body_that_does_not_say_so_stays_with_nothing_in_it():
    body = gzip.compress(b"hello")
    assert recorded(Redactor(secrets=["secret"]), body=body)[0].body == body


def test_packed_body_that_is_broken_is_refused():
    with pytest.raises(MemmockError, match="encoded as gzip, but cut short, and cannot be looked into"):
        recorded(Redactor(), body=gzip.compress(b"hello" * 9)[:-9])


def test_coding_of_an_empty_body_stays():
    headers = (("Content-Encoding", "br"), ("Content-Length", "99"))
    assert recorded(Redactor(), reply_headers=headers)[1].headers == headers


@pytest.mark.parametrize(
    ("media", "codec", "mark"),
    [
        ("text/plain; charset=UTF-16", "utf-16-be", codecs.BOM_UTF16_BE),
        ("text/plain; charset=utf-16", "utf-16-le", b""),
        ("text/plain; charset=utf-16", "utf-16-be", b""),
        ("text/plain", "utf-32-le", codecs.BOM_UTF32_LE),
        ("text/plain", "utf-16-le", codecs.BOM_UTF16_LE),
        ("", "utf-16-le", b""),
        ("", "utf-32-be", b""),
        ("", "utf-8", codecs.BOM_UTF8),
        ('text/plain; charset="ISO-8859-1"', "latin-1", b""),
        ("text/plain; charset=gbk", "gbk", b""),
        ("text/plain; charset=utf-16", "utf-8", b""),
        ("text/plain; charset=utf-8", "latin-1", b""),
        ("text/plain; charset=base64", "utf-8", b""),
        ("text/plain; charset=ascii", "utf-8", b""),
    ],
)
def test_body_is_redacted_in_its_charset(media, codec, mark):
    extra = "中" if codec == "gbk" or "utf" in codec else "é"
    text = '{{"a": "{}' + extra + '", "pin": {}, "b": {}}}'
    redactor = Redactor(secrets=["schlüssel" if codec != "gbk" else "钥匙钥匙"], fields=["pin"])
    secret = "schl\\u00fcssel" if codec != "gbk" else "钥匙钥匙"
    body = mark + text.format(secret, 12, 3).encode(codec)
    _, reply = recorded(redactor, reply=body, reply_headers=(("Content-Type", media),))
    assert reply.body == mark + text.format(MASK, '"***"', 3).encode(codec)


def test_secret_between_bytes_that_are_no_text_is_hidden():
    for noise_bytes in (b"\x00\x01\xff", b"\xff\xfe\x01", b"\x01\x00\x00"):
        body = noise_bytes + KEY.encode() + noise_bytes
        assert recorded(Redactor(secrets=[KEY]), reply=body)[1].body == noise_bytes + b"***" + noise_bytes


def test_end_of_a_text_that_was_cut_within_a_character_stays():
    body = codecs.BOM_UTF16_LE + "a secret!".encode("utf-16-le") + b"x"
    _, reply = recorded(Redactor(secrets=["secret"]), reply=body)
    assert reply.body == codecs.BOM_UTF16_LE + "a ***!".encode("utf-16-le") + b"x"


def test_base64_in_lines_is_hidden():
    lines = base64.encodebytes(b"x" * 50 + KEY.encode() + b"y" * 50)
    redactor = Redactor(secrets=[KEY])
    for body in (lines, lines.replace(b"\n", b"\n    "), lines.replace(b"\n", b"\r\n")):
        assert redactor.leaks(body) == ["the configured secret 1"]
        _, reply = recorded(redactor, reply=body)
        assert not survives(KEY, re.sub(rb"\s", b"", reply.body))
        assert reply.body.endswith(body[-4:])


def test_base64_of_something_close_stays():
    redactor = Redactor(secrets=["secret"])
    for place in range(3):
        for other in (b"tecret", b"secreu"):
            body = base64.b64encode(b"x" * place + other + b"x" * 9)
            assert recorded(redactor, reply=body)[1].body == body


def test_leak_in_wide_text_is_found():
    assert Redactor(secrets=["secret"]).leaks("a secret".encode("utf-16-le")) == ["the configured secret 1"]


# ---- what is remembered


def test_latest_values_are_remembered():
    redactor = Redactor(secrets=["configured"])
    for number in range(5000):
        recorded(redactor, headers=(("X-Api-Key", f"value-{number:04}-"),))
    text = redactor.text("value-4999- value-2952- value-0001- configured c%6fnfigured dmFsdWUtNDk5OS0")
    assert text == "*** *** value-0001- *** *** ***"
    assert len(redactor._learned) <= MOST_LEARNED


def test_one_large_value_is_hidden_but_not_remembered():
    redactor = Redactor()
    value = "v" * _LONGEST_LEARNED + "w"
    _, reply = recorded(redactor, headers=(("X-Api-Key", value),), reply=value.encode())
    assert reply.body == b"***"
    assert redactor.text(value) == value


def test_request_is_hidden_by_what_was_learned_meanwhile():
    redactor = Redactor()
    request = Request("POST", "/", (("X-A", "12345678"),), b"<12345678>")
    assert redactor.request(request) is request
    recorded(redactor, headers=(("X-Api-Key", "12345678"),))
    assert redactor.request(request) == Request("POST", "/", (("X-A", MASK),), b"<***>")


def test_threads_learn_together():
    redactor = Redactor()

    def learn(first):
        for number in range(first, first + 30):
            value = f"value-{number:04}-"
            assert recorded(redactor, headers=(("X-Api-Key", value),), reply=value.encode())[1].body == b"***"

    threads = [threading.Thread(target=learn, args=(100 * number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(redactor.text(f"value-{100 * number + 29:04}-") == MASK for number in range(6))


def test_many_sets_of_headers_are_redacted():
    redactor = Redactor()
    for number in range(200):
        request, _ = recorded(redactor, headers=(("Cookie", "a"), ("X-A", str(number))))
        assert request.headers == (("Cookie", MASK), ("X-A", str(number)))


def test_mask_hides_the_beginning_of_a_secret_where_a_text_was_cut():
    mask = mask_of("Bearer abcdefgh", None)
    assert mask("abcdefgh and abcde… or abcde") == "*** and ***… or abcde"
