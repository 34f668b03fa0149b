"""Applications of ASGI and WSGI are served as a server would, and checked: by a call, and one test a rule."""

from __future__ import annotations

import asyncio
import functools
import http.client
import importlib
import json
import socket
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from memmock.apps import is_asgi, served
from memmock.checking import check_provider, fuzz_provider
from memmock.errors import MemmockError
from memmock.rules import RULES

PROVIDERS = Path(__file__).parent.parent / "fixtures" / "providers"
TOKEN = "Bearer good-token"
CODES = [code for code in RULES if code.startswith("RES")]


def ask(url, target="/", method="POST", body=b"{}", headers=()):
    """Return the response of a server, read, and its body; what is missing at its end is missing."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    try:
        connection.request(method, target, body, dict(headers))
        response = connection.getresponse()
        try:
            return response, response.read()
        except http.client.IncompleteRead as error:
            return response, error
    finally:
        connection.close()


@pytest.fixture(params=["plain_asgi", "plain_wsgi"])
def correct(request, monkeypatch):
    """Return a correct application."""
    monkeypatch.syspath_prepend(PROVIDERS)
    yield importlib.import_module(request.param).app
    for name in (request.param, "memories"):
        sys.modules.pop(name, None)


# ---- ASGI


def asgi(*messages, before=(), after=None):
    """Return an application that sends these messages."""

    async def app(scope, receive, send):
        assert scope["type"] == "http"
        for message in (*before, *messages):
            await send(message)
        if after is not None:
            await after(receive)

    return app


def start(status=200, *headers):
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def part(body=b"", more=False):
    return {"type": "http.response.body", "body": body, "more_body": more}


def test_asgi_application_gets_the_request_as_it_came():
    seen = {}

    async def app(scope, receive, send):
        assert scope["type"] == "http"
        seen.update(scope, message=await receive())
        await send(start())
        await send(part())

    with served(app) as url:
        ask(url, "/a%20b/%E8%8C%B6?q=%20", "PUT", b"body", {"X-One": "1", "Content-Type": "text/plain"})
    assert (seen["method"], seen["path"], seen["raw_path"]) == ("PUT", "/a b/茶", b"/a%20b/%E8%8C%B6")
    assert (seen["query_string"], seen["http_version"], seen["client"][0]) == (b"q=%20", "1.1", "127.0.0.1")
    assert {(b"x-one", b"1"), (b"content-type", b"text/plain")} <= set(seen["headers"])
    assert seen["message"] == {"type": "http.request", "body": b"body", "more_body": False}


def test_asgi_body_comes_in_parts_and_headers_are_repeated():
    headers = [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"x-text", "ä".encode("latin-1"))]
    with served(asgi(start(201, *headers), part(b"one ", more=True), part(b"two"), part(b"late"))) as url:
        response, body = ask(url)
    assert (response.status, body) == (201, b"one two")
    assert response.headers.get_all("set-cookie") == ["a=1", "b=2"]
    assert response.getheader("x-text") == "ä"


def test_asgi_application_without_headers_or_body_has_neither():
    with served(asgi({"type": "http.response.start", "status": 204}, {"type": "http.response.body"})) as url:
        response, body = ask(url)
    assert (response.status, body) == (204, b"")


async def fail(*_):
    raise RuntimeError("broken")


async def forget(*_):
    pass


@pytest.mark.parametrize("app", [fail, forget])
def test_asgi_application_that_raises_or_forgets_to_answer_is_answered_for(app):
    with served(app) as url:
        assert [ask(url)[0].status for _ in range(2)] == [500, 500]


@pytest.mark.parametrize("after", [fail, None])
def test_asgi_reply_that_is_never_whole_ends_early(after):
    with served(asgi(start(), part(b"half", more=True), after=after)) as url:
        response, body = ask(url)
    assert response.status == 200
    assert isinstance(body, http.client.IncompleteRead)


def test_what_an_asgi_application_does_after_its_reply_does_not_hold_it_up():
    done = []

    async def later(receive):
        assert (await receive())["type"] == "http.request"
        assert (await receive())["type"] == "http.disconnect"
        await asyncio.sleep(0.3)
        done.append(1)

    async def broken(receive):
        await fail()

    with served(asgi(start(), part(b"{}"), after=later)) as url:
        begin = time.monotonic()
        assert ask(url)[1] == b"{}"
        assert time.monotonic() - begin < 0.25
        assert not done
    assert done  # it is waited for at the end
    with served(asgi(start(), part(b"{}"), after=broken)) as url:
        assert ask(url)[1] == b"{}"


def test_client_of_an_asgi_application_is_there_until_it_is_answered():
    async def app(scope, receive, send):  # as Django and Quart do
        assert scope["type"] == "http"
        await receive()
        leaving = asyncio.ensure_future(receive())
        await asyncio.wait([leaving], timeout=0.05)
        await send(start(500 if leaving.done() else 200))
        await send(part())

    with served(app) as url:
        assert ask(url)[0].status == 200


def test_asgi_application_is_cancelled_when_its_client_leaves_or_the_end_has_come(monkeypatch):
    monkeypatch.setattr("memmock.apps._AFTERWARDS_S", 0.05)
    left, called = threading.Event(), threading.Event()

    async def forever(*_):
        called.set()
        try:
            await asyncio.sleep(60)
        finally:
            left.set()

    with served(asgi(after=forever)) as url:
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            assert called.wait(5)
        assert left.wait(5)
        left.clear()
        called.clear()
    with served(asgi(start(), part(), after=forever)) as url:
        ask(url)
        assert called.wait(5)
        assert not left.is_set()
    assert left.wait(5)


@pytest.mark.parametrize(("declared", "status"), [(2, b"{}"), (1, b"{"), (9, None)])
@pytest.mark.parametrize("kind", ["asgi", "wsgi"])
def test_length_that_an_application_tells_is_kept(kind, declared, status):
    def wsgi(environ, start_response):
        start_response("200 OK", [("Content-Length", str(declared))])
        return [b"{}"]

    length = (b"content-length", str(declared).encode())
    with served(wsgi if kind == "wsgi" else asgi(start(200, length), part(b"{}"))) as url:
        _, body = ask(url)
        head, nothing = ask(url, method="HEAD")
    assert isinstance(body, http.client.IncompleteRead) if status is None else body == status
    assert (head.status, nothing) == (200, b"")


def test_asgi_calls_are_made_at_the_same_time():
    together = []

    async def app(scope, receive, send):
        assert scope["type"] == "http"
        together.append(1)
        while len(together) < 5:
            await asyncio.sleep(0.005)
        await send(start())
        await send(part())

    with served(app) as url:
        threads = [threading.Thread(target=ask, args=(url,)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
    assert len(together) == 5


# ---- the lifespan of ASGI


class WithLifespan:
    """Notes what is done with it; state is shared by a copy for each request."""

    def __init__(self, failure=None, ends=True):
        self.noted = []
        self.failure = failure
        self.ends = ends

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await self.live(scope, receive, send)
            return
        state = scope["state"]
        self.noted.append(("asked", state["name"], state.get("count", 0)))
        state["count"] = 1
        await send(start())
        await send(part())

    async def live(self, scope, receive, send):
        self.noted.append((await receive())["type"])
        if self.failure is not None:
            await send({"type": "lifespan.startup.failed", "message": self.failure})
            raise RuntimeError
        scope["state"]["name"] = "shared"
        await send({"type": "lifespan.startup.complete"})
        self.noted.append((await receive())["type"])
        if self.ends:
            await send({"type": "lifespan.shutdown.complete"})
            await receive()  # forever, were it not ended


def test_lifespan_is_around_the_calls():
    app = WithLifespan()
    with served(app) as url:
        assert app.noted == ["lifespan.startup"]
        assert [ask(url)[0].status for _ in range(2)] == [200, 200]
    calls = [("asked", "shared", 0)] * 2
    assert app.noted == ["lifespan.startup", *calls, "lifespan.shutdown"]
    app = WithLifespan(ends=False)
    with served(app):
        pass
    assert app.noted == ["lifespan.startup", "lifespan.shutdown"]


@pytest.mark.parametrize(
    ("failure", "says"),
    [("Traceback:\n  line 1\nOSError: no database\n", "OSError: no database"), ("", "it does not say why")],
)
def test_application_that_cannot_start_is_told_in_a_line(failure, says):
    with pytest.raises(MemmockError, match=f"^the application does not start: {says}$"):
        check_provider(WithLifespan(failure))


def test_application_that_is_never_ready_is_given_up(monkeypatch):
    monkeypatch.setattr("memmock.apps._START_S", 0.05)
    monkeypatch.setattr("memmock.apps._END_S", 0.05)

    async def app(scope, receive, send):
        await asyncio.sleep(60)

    with pytest.raises(MemmockError, match=r"does not start: it is not ready after 0\.05 s"), served(app):
        pass


# ---- WSGI


def test_wsgi_application_gets_the_request_as_it_came():
    seen = {}

    def app(environ, start_response):
        seen.update(environ, body=environ["wsgi.input"].read())
        start_response("200 OK", [])
        return []

    with served(app) as url:
        headers = {"X-One": "1", "Content-Type": "text/plain", "Authorization": "a"}
        assert ask(url, "/a%20b/%E8%8C%B6?q=%20", "PUT", iter([b"bo", b"dy"]), headers)[1] == b""
    assert (seen["REQUEST_METHOD"], seen["PATH_INFO"]) == ("PUT", "/a b/茶".encode().decode("latin-1"))
    assert (seen["QUERY_STRING"], seen["SERVER_PROTOCOL"]) == ("q=%20", "HTTP/1.1")
    assert (seen["CONTENT_TYPE"], seen["CONTENT_LENGTH"], seen["body"]) == ("text/plain", "4", b"body")
    assert (seen["HTTP_X_ONE"], seen["HTTP_AUTHORIZATION"]) == ("1", "a")
    assert "HTTP_TRANSFER_ENCODING" not in seen


class Parts:
    """An iterable with a close."""

    def __init__(self, *parts):
        self.parts = parts
        self.closed = 0

    def __iter__(self):
        for each in self.parts:
            if isinstance(each, Exception):
                raise each
            yield each

    def close(self):
        self.closed += 1


def test_wsgi_body_is_what_is_written_and_what_is_iterated_over():
    parts = Parts(b"two ", b"three")

    def app(environ, start_response):
        write = start_response("201 Created", [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
        write(b"one ")
        return parts

    with served(app) as url:
        response, body = ask(url)
    assert (response.status, body, parts.closed) == (201, b"one two three", 1)
    assert response.headers.get_all("set-cookie") == ["a=1", "b=2"]


def test_wsgi_application_may_begin_when_it_is_iterated_over():
    def app(environ, start_response):
        start_response("200 OK", [])
        start_response("503 Service Unavailable", [("X-Two", "2")], (None, None, None))
        yield b"{}"

    with served(app) as url:
        response, body = ask(url)
    assert (response.status, response.getheader("x-two"), body) == (503, "2", b"{}")


def test_wsgi_application_that_raises_is_closed_and_answered_for():
    parts = Parts(b"one", RuntimeError("broken"))

    def app(environ, start_response):
        if environ["PATH_INFO"] == "/raises":
            raise RuntimeError("broken")
        if environ["PATH_INFO"] != "/forgets":
            start_response("200 OK", [])
        return parts if environ["PATH_INFO"] == "/parts" else []

    with served(app) as url:
        assert [ask(url, path)[0].status for path in ("/raises", "/forgets", "/parts", "/")] == [
            500,
            500,
            500,
            200,
        ]
    assert parts.closed == 1


# ---- which of the two it is


def test_kind_is_told_by_how_it_is_called():
    async def coroutine(scope, receive, send): ...

    def returning(scope, receive, send):
        return coroutine(scope, receive, send)

    class Called:
        async def __call__(self, scope, receive, send): ...

        async def method(self, scope, receive, send): ...

        def wsgi(self, environ, start_response): ...

    def wsgi(environ, start_response, debug=False): ...

    partial = functools.partial(lambda settings, *args: coroutine(*args), {})
    functools.update_wrapper(partial, coroutine)
    apps = [coroutine, returning, Called(), Called().method, functools.partial(coroutine), partial]
    assert [is_asgi(app) for app in apps] == [True] * 6
    assert not any(map(is_asgi, [wsgi, Called().wsgi, functools.partial(wsgi, debug=True), dict]))


def test_what_is_no_application_is_told():
    with pytest.raises(MemmockError, match="a provider is a URL, or an ASGI or WSGI application, not 5"):
        check_provider(5)


# ---- checks


def test_check_of_a_correct_application_finds_nothing(correct):
    result = check_provider(correct, authorization=TOKEN)
    assert result.findings == []
    assert {outcome.state for outcome in result.outcomes} <= {"passed", "not applicable"}
    assert result.requests > 90


def test_fuzz_of_a_correct_application_finds_nothing(correct):
    result = fuzz_provider(correct, authorization=TOKEN, time_limit_s=0.5, seed=1)
    assert result.findings == []
    assert result.seed == 1


def test_other_paths_and_rules_are_chosen(correct):
    assert check_provider(correct, path="/other", rules=["RES001"]).findings[0].answers[-1].status == 404
    assert check_provider(correct, path="/other", ignore=["RES001"]).findings == []


# ---- one test a rule

CONFTEST = f"""
import sys
import pytest

sys.path.insert(0, {str(PROVIDERS)!r})

@pytest.fixture(scope="session")
def memmock_provider():
    import memories, plain_wsgi
    real = memories.find
    memories.find = lambda query, types, most: real(query, types, most + {{more}})
    yield {{given}}
    memories.find = real
"""
GIVEN = f'{{"provider": plain_wsgi.app, "authorization": {TOKEN!r}}}'
TEST = """
import pytest

@pytest.mark.memmock_rules({arguments})
def test_rule(memmock_rule):
    assert memmock_rule.startswith("RES")
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """Return what runs a suite of tests of a provider, with memmock alone."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugins = ("-p", "memmock.plugin", "-p", "memmock.provider_plugin", "-p", "no:cacheprovider", "-rs")

    def run(arguments="", given=GIVEN, more=0, source=TEST, options=()):
        pytester.makeini("[pytest]\nfilterwarnings = error\n")
        if given:
            pytester.makeconftest(CONFTEST.format(given=given, more=more))
        pytester.makepyfile(test_provider=source.format(arguments=arguments))
        result = pytester.runpytest_inprocess(*plugins, *options)
        text = result.stdout.str() + result.stderr.str()
        assert "INTERNALERROR" not in text
        assert "Traceback" not in text
        assert "provider_plugin.py" not in text.replace("-rs", "")
        return result

    yield run
    for name in ("memories", "plain_wsgi"):
        sys.modules.pop(name, None)
    sys.path[:] = [path for path in sys.path if path != str(PROVIDERS)]


def test_each_rule_is_a_test_that_passes(suite):
    result = suite(options=("-v",))
    counts = result.parseoutcomes()
    assert set(counts) <= {"passed", "skipped"}
    assert sum(counts.values()) == len(CODES)
    assert "test_provider.py::test_rule[RES302] PASSED" in result.stdout.str()


def test_rule_that_is_broken_fails_with_the_finding(suite):
    result = suite('"RES302", "RES201", "RES103"', more=1, options=("-v",))
    result.assert_outcomes(passed=2, failed=1)
    said = result.stdout.str()
    assert "test_rule[RES302]" in said
    assert "RES302 error" in said
    assert "curl" in said
    assert "$AUTHORIZATION" in said
    assert TOKEN not in said


def test_rule_that_cannot_be_told_is_skipped_with_the_reason(suite):
    result = suite(
        '"RES601", "RES001"',
        given=f'lambda e, s: plain_wsgi.app({{**e, "HTTP_AUTHORIZATION": {TOKEN!r}}}, s)',
    )
    result.assert_outcomes(passed=1, skipped=1)
    assert "SKIPPED [1]" in result.stdout.str()
    assert "authorization" in result.stdout.str().lower()


def test_rules_are_chosen_and_left_out(suite):
    result = suite("without=['RES601', 'RES606', 'RES002']", options=("--collect-only", "-q"))
    said = result.stdout.str()
    assert said.count("test_rule[") == len(CODES) - 3
    assert "RES601" not in said
    result = suite("without='RES601'", options=("--collect-only", "-q"))
    assert result.stdout.str().count("test_rule[") == len(CODES) - 1


WITHOUT_FIXTURE = "import pytest\n@pytest.mark.memmock_rules\ndef test_it(): ...\n"
MISTAKES = [
    ({"arguments": '"RES999"'}, "there is no rule 'RES999' for providers; `memmock rules` lists them"),
    ({"arguments": '"REQ001"'}, "there is no rule 'REQ001' for providers"),
    ({"arguments": "without=['RES9']"}, "there is no rule 'RES9' for providers"),
    ({"arguments": "except_for=['RES001']"}, "@pytest.mark.memmock_rules takes codes of rules, and without="),
    ({"arguments": "302"}, "@pytest.mark.memmock_rules takes codes of rules, and without="),
    (
        {"source": WITHOUT_FIXTURE},
        "@pytest.mark.memmock_rules is for tests that use the fixture memmock_rule",
    ),
    ({"arguments": '"RES001"', "given": ""}, "override the fixture memmock_provider: return the URL"),
    ({"arguments": '"RES001"', "given": "'http://127.0.0.1:1/'"}, "http://127.0.0.1:1/: "),
    (
        {"arguments": '"RES001"', "given": "None"},
        "a provider is a URL, or an ASGI or WSGI application, not None",
    ),
]


@pytest.mark.parametrize(("how", "says"), MISTAKES)
def test_mistakes_are_told_in_a_line(suite, how, says):
    result = suite(**how)
    result.assert_outcomes(errors=1)
    lines = [line for line in result.stdout.str().splitlines() if says in line]
    assert lines


# ---- the corpus


def test_corpus_of_buggy_providers_lists_each_bug_once(monkeypatch):
    monkeypatch.syspath_prepend(PROVIDERS)
    buggy = importlib.import_module("buggy")
    try:
        assert {kind for kind, *_ in buggy.BUGS.values()} == {"ok", "mutant"}
        said = [made.__doc__ for *_, made in buggy.BUGS.values()]
        assert len(set(said)) == len(said) >= 20
        assert json.loads((PROVIDERS / "memories.json").read_text("utf-8")) == buggy.MEMORIES
    finally:
        for name in ("buggy", "memories"):
            sys.modules.pop(name, None)
