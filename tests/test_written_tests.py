"""Findings that are shown again: as calls, as a pytest file, and as a baseline."""

from __future__ import annotations

import ast
import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memmock.conformance import baseline, reproduction
from memmock.conformance.case import Case, Form
from memmock.conformance.finding import Finding, Result
from memmock.conformance.reproduction import assert_fixed, made_from, reproduces, secrets_of
from memmock.conformance.session import Answer, Session, Target
from memmock.conformance.written_tests import FILE_NAME, source, write_tests
from memmock.errors import MemmockError, MemmockFailure
from memmock.http import Reply, header
from memmock.rules import RULES
from memmock.server import Server

RIGHT = "Bearer sk-live-0123456789abcdef"
TEA = Case({"query": "tea"})
ONE = Case({"query": "用户喜欢喝什么", "max_results": 1})
SPACED = Case({"query": "tea"}, form=Form(spaced=True))
KINDS = Case({"query": "tea", "memory_types": ["preference"]})


class Provider:
    """Breaks as many rules as it can, until it is fixed."""

    def __init__(self) -> None:
        self.fixed = False
        self.status = 200
        self._calls = self._now = 0

    async def __call__(self, request):
        self._calls += 1
        self._now += 1
        beside = self._now > 1
        await asyncio.sleep(0.05 if header(request.headers, "x-slow") else 0)
        beside = beside or self._now > 1
        self._now -= 1
        return self._right(request) if self.fixed else self._wrong(request, beside)

    def _right(self, request):
        if self.status != 200:
            return Reply.error(self.status, "error", "no")
        if request.header("Authorization") != RIGHT:
            return Reply.error(401, "unauthorized", "no")
        try:
            asked = json.loads(request.body)
        except ValueError:
            return Reply.error(400, "bad_request", "no JSON")
        if not isinstance(asked, dict):
            return Reply.error(400, "bad_request", "no object")
        return Reply.json({"memories": [_memory("1"), _memory("2")][: asked.get("max_results", 5)]})

    def _wrong(self, request, beside):
        if beside:
            return Reply.error(500, "busy", "no")
        if b"tea" not in request.body:
            return Reply.json({"memories": [_memory("1"), _memory("2")]})
        if b" : " in request.body:
            return Reply.json({"memories": []})
        if b"memory_types" in request.body:
            return Reply.json({"memories": []})
        if b"max_results" in request.body:
            return Reply.json({"memories": [_memory("9")]})
        if b"again" in request.body:
            return Reply.json({"memories": [_memory(str(self._calls))]})
        if b"{" not in request.body:
            return Reply(500, (("Content-Type", "text/html"),), b"<h1>Oops</h1>")
        return Reply.json({"memories": [_memory("1"), _memory("2")]})


def _memory(name):
    return {
        "id": name,
        "summary": f"用户喜欢喝茶 {name}。",
        "type": "preference",
        "confidence": 0.9,
        "updated_at": "2026-05-18T08:12:40+08:00",
        "source": "explicit_user_statement",
    }


@pytest.fixture(scope="module")
def served():
    provider = Provider()
    with Server(provider) as server:
        yield provider, f"http://127.0.0.1:{server.port}/memory_retrieval"
        server.check()


@pytest.fixture
def provider(served):
    served[0].fixed, served[0].status = False, 200
    return served[0]


@pytest.fixture
def target(served):
    return Target(url=served[1], authorization=RIGHT)


@pytest.fixture
def session(target):
    session = Session(target)
    yield session
    session.close()


def found(session, code, *cases, together=False, pointer="", message="as it was", flaky=False):
    answers = session.ask_together(cases) if together else [session.ask(case) for case in cases]
    return Finding(RULES[code], message, pointer, tuple(answers), "what is right", together, flaky)


SLOW = Case({"query": "tea"}, form=Form(kept=False), headers=(("X-Slow", "1"),))
BROKEN = {
    "RES302": [ONE],
    "RES601": [Case({"query": "tea"}, authorization="Bearer SK-LIVE-0123456789ABCDEF")],
    "RES602": [Case({"query": "tea again"})] * 2,
    "RES603": [Case({"query": "tea", "max_results": 1}), TEA],
    "RES604": [TEA, KINDS],
    "RES605": [TEA, SPACED],
    "RES606": [SLOW, SLOW],
    "RES002": [Case(body=b'"tea"')],
    "RES501": [Case(body=b'"tea"')],
}


# ---- calls


@pytest.mark.parametrize("code", BROKEN)
def test_calls_that_break_a_rule_reproduce_it_until_the_provider_is_fixed(code, provider, session):
    together = code == "RES606"
    assert reproduces(code, BROKEN[code], session, together)
    with pytest.raises(MemmockFailure, match=code):
        assert_fixed(code, BROKEN[code], session, together=together)
    provider.fixed = True
    assert reproduces(code, BROKEN[code], session, together) is None
    assert_fixed(code, BROKEN[code], session, together=together)


def test_another_rule_that_is_broken_is_no_reproduction(provider, session):
    assert reproduces("RES303", [ONE], session) is None


def test_what_was_found_is_told_with_its_place(provider, session):
    assert reproduces("RES302", [ONE], session) == (
        "body /memories: holds 2 memories, more than max_results, 1"
    )


def test_one_answer_alone_shows_no_relation(provider, session):
    assert reproduces("RES602", [TEA], session) is None


def test_a_flaky_finding_is_looked_for_more_than_once(provider, session, monkeypatch):
    answers = iter([None, None, "there it is"])
    monkeypatch.setattr(reproduction, "_mistake", lambda *_: next(answers))
    assert reproduces("RES302", [ONE], session, times=3) == "there it is"


@pytest.mark.parametrize("status", [401, 404, 503])
def test_a_provider_that_refuses_everything_is_not_fixed(status, provider, session):
    provider.fixed, provider.status = True, status
    with pytest.raises(MemmockFailure, match=f"cannot be told: the retrieval was answered with {status}"):
        assert_fixed("RES302", [ONE], session)


def test_what_may_be_refused_is_fixed_by_a_refusal(provider, session):
    provider.fixed, provider.status = True, 413
    assert_fixed("RES302", [ONE], session)


def test_a_provider_that_is_not_there_is_not_fixed():
    with pytest.raises(MemmockFailure, match="cannot be told: there was no reply, connection_failed"):
        assert_fixed("RES302", [ONE], Session(Target(url="http://127.0.0.1:9/m")))


def test_without_an_authorization_none_is_missed(provider, session):
    session = Session(Target(url=session.target.url))
    provider.fixed, provider.status = True, 503
    assert reproduces("RES001", [TEA], session) == "status: must be 200, not 503"
    session.close()


def test_a_query_that_is_told_as_a_memory_is_found(session, monkeypatch):
    reply = Reply.json({"memories": [{"summary": "The user said zqxjkvwb qqfzxtplm."}]})
    case = Case({"query": "zqxjkvwb qqfzxtplm"})
    monkeypatch.setattr(session, "ask", lambda _: Answer(case, session.request(case), reply, "", 0.1, False))
    assert reproduces("RES402", [case], session) == "body /memories/0/summary: repeats the query"


def test_a_redirect_of_a_wrong_authorization_breaks_a_rule(session, monkeypatch):
    case = Case({"query": "tea"}, authorization="no")
    answer = Answer(case, session.request(case), Reply(302), "", 0.1, False)
    monkeypatch.setattr(session, "ask", lambda _: answer)
    assert "should be 4xx for a wrong authorization; this is 302" in reproduces("RES002", [case], session)


# ---- authorizations

ALTERED = {
    "": '""',
    "Bearer": "AUTHORIZATION[:6]",
    "Bearer wrong": 'AUTHORIZATION[:7] + "wrong"',
    RIGHT[:-1]: "AUTHORIZATION[:-1]",
    RIGHT + "-more": 'AUTHORIZATION + "-more"',
    RIGHT.lower(): "AUTHORIZATION.lower()",
    RIGHT.swapcase(): "AUTHORIZATION.swapcase()",
    "Bearer SK-LIVE-0123456789ABCDEF": "AUTHORIZATION[:7] + AUTHORIZATION[7:].upper()",
    RIGHT[7:]: "AUTHORIZATION[7:]",
    "Basic 'a\"b": "AUTHORIZATION",
}


@pytest.mark.parametrize("sent", [sent for sent in ALTERED if "Basic" not in sent])
def test_an_authorization_is_told_by_how_it_was_made(sent):
    assert made_from(RIGHT, sent) == ALTERED[sent]


TOKENS = st.text(st.sampled_from("abcXYZ019-_. é'\"\\ßİ\u212akK"), max_size=24)


@settings(max_examples=80, deadline=None)
@given(TOKENS, TOKENS, TOKENS, st.sampled_from([str, str.lower, str.upper, str.swapcase]))
def test_the_expression_makes_the_authorization(right, before, behind, change):
    sent = before + change(right[1:]) + behind
    expression = made_from(right, sent)
    assert eval(expression, {"AUTHORIZATION": right}) == sent


@pytest.mark.parametrize(
    ("right", "sent", "expression"),
    [
        ("tokken", "TOK\u212aEN", 'AUTHORIZATION[:3].upper() + "\u212a" + AUTHORIZATION[-2:].upper()'),
        ("İabcd", "xİabc", 'AUTHORIZATION[:-1]'),
        ("", "Bearer x", "'Bearer x'"),
        ("abcdef", "a'b\"c", "'a\\'b\"c'"),
        ("abcdef", "abcdef", "AUTHORIZATION"),
    ],

)  # fmt: skip
def test_odd_authorizations_are_told(right, sent, expression):
    assert made_from(right, sent).removeprefix('"x" + ') == expression


def test_no_part_of_the_right_authorization_is_in_the_expression():
    token = RIGHT[7:]
    for sent in (token[::-1], token[3:9] + "x" + token[5:], f"a {token.title()} b", token.upper() + token):
        literals = [node.value for node in ast.walk(ast.parse(made_from(RIGHT, sent)))
                    if isinstance(node, ast.Constant) and isinstance(node.value, str)]  # fmt: skip
        assert not any(token[n : n + 3].lower() in text.lower() for text in literals for n in range(21))


def test_secrets_are_those_of_the_target_and_what_was_made_of_them():
    target = Target(
        url="http://a:pass-word@example/", authorization=RIGHT,
        headers=(("X-Api-Key", "key-1"), ("X-Tenant", "tenant"), ("Cookie", "a=1")),
    )  # fmt: skip
    cases = [Case(authorization=each) for each in ("", "Bearer", "Bearer wrong", RIGHT[:-1])]
    assert secrets_of(target, cases) == (
        RIGHT,
        RIGHT.lower(),
        RIGHT.upper(),
        "key-1",
        "pass-word",
        RIGHT[:-1],
    )


# ---- the file

WHOLE = '''\
# Written by memmock: what is changed here is lost when the tests are written again.
"""What memmock found, as tests that pass once the provider is fixed.

    MEMMOCK_AUTHORIZATION=… pytest test_memmock_findings.py
"""

import os

import pytest

from memmock.conformance.case import Case, Form
from memmock.conformance.reproduction import assert_fixed
from memmock.conformance.session import Session, Target

ENDPOINT = os.environ.get("MEMMOCK_ENDPOINT", "http://127.0.0.1:8700/memory_retrieval")
AUTHORIZATION = os.environ.get("MEMMOCK_AUTHORIZATION", "")
HEADERS = (
    ("X-Api-Key", os.environ["MEMMOCK_HEADER_X_API_KEY"]),
    ("X-Tenant", "t1"),
)


@pytest.fixture
def session():
    if not AUTHORIZATION:
        pytest.fail("set MEMMOCK_AUTHORIZATION: without it nothing can be told")
    session = Session(Target(url=ENDPOINT, authorization=AUTHORIZATION, headers=HEADERS, timeout_ms=500))
    yield session
    session.close()


def test_res302_there_are_at_most_max_results_memories(session):
    """There are at most max_results memories."""
    # Found: body /memories: holds 2 memories, more than max_results, 1
    # Expected: at most 1
    cases = [
        Case({"query": "用户喜欢喝什么", "max_results": 1}),
    ]
    assert_fixed("RES302", cases, session)


def test_res601_memories_are_given_only_for_the_authorization(session):
    """Memories are given only for the authorization that was agreed on."""
    # Found: 1 memory ("1") for ***
    # Expected: 401
    cases = [
        Case({"query": "tea"}),
        Case({"query": "tea"}, authorization=AUTHORIZATION[:-2]),
    ]
    assert_fixed("RES601", cases, session, times=20)


def test_res302_there_are_at_most_max_results_memories_2(session):
    """There are at most max_results memories."""
    # Found: many
    # Expected: few
    cases = [
        Case(
            {
                "query": "长" * 4000,
                "reason": "tea tea" * 100,
            },
            form=Form(spaced=True),
        ),
        Case({"query": "tea"}),
    ]
    assert_fixed("RES302", cases, session, together=True)
'''


def test_the_whole_file():
    target = Target(
        url="http://127.0.0.1:8700/memory_retrieval", authorization=RIGHT, timeout_ms=500,
        headers=(("X-Api-Key", "key-abcdef"), ("X-Tenant", "t1")),
    )  # fmt: skip
    long = Case({"query": "长" * 4000, "reason": "tea tea" * 100}, form=Form(spaced=True))
    cut = Case({"query": "tea"}, authorization=RIGHT[:-2])
    text = source(
        [
            made("RES302", "body /memories: holds 2 memories, more than max_results, 1", "at most 1", ONE),
            made("RES601", f'1 memory ("1") for {RIGHT}', "401", TEA, cut, flaky=True),
            made("RES302", "many", "few", long, TEA, together=True),
        ],
        target,
    )
    assert text == WHOLE


def made(code, message, expected, *cases, flaky=False, together=False):
    answers = tuple(Answer(case, None, None, "timeout: late", 0.1, False) for case in cases)
    return Finding(RULES[code], message, "", answers, expected, together, flaky)


deep = json.loads("[" * 300 + "]" * 300)
HOSTILE = [
    Case({"query": '"""\n\\"; import os #', "reason": "'''", "time_hint": "\x00\x1b[31m\u202e\u2028\ud83c"}),
    Case({"query": "\\" * 301, "reason": "ab" * 4000 + "a", "x": [None, True, 1.5, -0.0, {"y": []}] * 30}),
    Case({"query": " ".join(f"{n} 用户喜欢喝什么茶 'tea' \"" for n in range(120))}),
    Case({"query": "tea", "max_results": 10**60, "more": float("inf"), "less": float("-inf")}),
    Case({"query": "tea", "deep": deep}),
    Case({"query": "tea", '"}': {"a" * 80: {"b" * 80: ["c" * 80, "d" * 80]}}}),
    Case(body=b'\xff\x00"""\\' + bytes(range(256)) * 2, method="PUT"),
    Case(body=b"[" * 2000 + b"]" * 2000),
    Case({}, headers=(("X-A", "b'\"\\"), ("Authorization", "")), authorization=""),
    Case({"query": "tea"}, form=Form(True, True, True, "chunked", 3, "upper", "a/b", "*/*", False, False)),
]


@pytest.mark.parametrize("case", HOSTILE, ids=range(len(HOSTILE)))
def test_a_written_case_is_the_case_that_it_was_written_from(case, monkeypatch):
    text = source(
        [made("RES001", '"""\n\u202e\\ {x}', "\\", case)], Target(url="http://a/", authorization=RIGHT)
    )
    text.encode()
    assert max(map(len, text.splitlines())) <= 110
    assert text.isprintable() or all(line.isprintable() for line in text.split("\n"))
    kept = []
    monkeypatch.setattr(reproduction, "assert_fixed", lambda code, cases, session: kept.extend(cases))
    namespace = {}
    exec(compile(text, "written", "exec"), namespace)
    namespace["test_res001_a_retrieval_that_keeps_the_contract_is_answered"](None)
    assert kept == [case]


def test_no_secret_is_in_the_file(target):
    query = f"what is {RIGHT} and {RIGHT.lower()}?"
    cases = [
        Case({"query": query, RIGHT: [RIGHT]}, authorization=RIGHT[:-1]),
        Case(body=RIGHT.encode(), headers=(("X-A", RIGHT),)),
    ]
    target = Target(
        url=f"http://example/?token={RIGHT[7:]}", authorization=RIGHT, headers=(("X-Note", f"is {RIGHT}"),)
    )
    text = source([made("RES302", query, query, *cases)], target)
    assert RIGHT[9:20].lower() not in text.lower()
    assert 'ENDPOINT = os.environ["MEMMOCK_ENDPOINT"]  # it holds a secret' in text
    assert '("X-Note", os.environ["MEMMOCK_HEADER_X_NOTE"])' in text


def test_without_an_authorization_none_is_asked_for():
    text = source(
        [made("RES302", "many", "few", ONE)], Target(url="http://a/", open=True, max_response_bytes=9)
    )
    assert "AUTHORIZATION" not in text
    assert "Session(Target(url=ENDPOINT, open=True, max_response_bytes=9))" in text


def test_the_file_fails_until_the_provider_is_fixed(pytester, provider, session, target, monkeypatch):
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n")
    monkeypatch.setenv("MEMMOCK_AUTHORIZATION", RIGHT)
    findings = [found(session, code, *cases, together=code == "RES606") for code, cases in BROKEN.items()]
    path = write_tests(Result(target.url, findings), pytester.path / "made" / "here", target)
    assert path == pytester.path / "made" / "here" / FILE_NAME
    options = ("-q", "-p", "no:randomly", "-p", "no:cacheprovider", str(path))
    failed = pytester.runpytest_inprocess(*options)
    failed.assert_outcomes(failed=len(BROKEN))
    failed.stdout.fnmatch_lines(["E*RES302: There are at most max_results memories."])
    provider.fixed = True
    pytester.runpytest_inprocess(*options).assert_outcomes(passed=len(BROKEN))
    monkeypatch.delenv("MEMMOCK_AUTHORIZATION")
    unset = pytester.runpytest_inprocess(*options, "-k", "res302")
    unset.stdout.fnmatch_lines(["E*set MEMMOCK_AUTHORIZATION: without it nothing can be told"])


def test_the_file_is_replaced_and_the_same_for_the_same(tmp_path, target):
    result = Result(target.url, [made("RES302", "many", "few", ONE)])
    first = write_tests(result, tmp_path, target).read_bytes()
    assert write_tests(result, tmp_path, target).read_bytes() == first


def test_a_file_of_somebody_else_is_not_replaced(tmp_path, target):
    (tmp_path / FILE_NAME).write_text("import mine\n")
    with pytest.raises(MemmockError, match="was not written by memmock: choose another place, or move it"):
        write_tests(Result(target.url, [made("RES302", "many", "few", ONE)]), tmp_path, target)
    assert (tmp_path / FILE_NAME).read_text() == "import mine\n"


def test_without_findings_nothing_is_written(tmp_path, target):
    assert write_tests(Result(target.url), tmp_path, target) is None
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_made_is_told(tmp_path, target):
    (tmp_path / "file").write_text("")
    with pytest.raises(MemmockError, match=r"file|directory"):
        write_tests(Result(target.url, [made("RES302", "many", "few", ONE)]), tmp_path / "file", target)


# ---- baselines


def test_a_baseline_is_sorted_and_tells_each_kind_of_finding_once(tmp_path):
    findings = [
        made("RES302", "many", "few", ONE),
        made("RES301", "b", "c", TEA),
        made("RES302", "x", "", TEA),
    ]
    keys = baseline.write(tmp_path / "new" / "known.json", findings)
    text = (tmp_path / "new" / "known.json").read_text()
    assert text == '{\n  "findings": [\n    "RES301 timeout",\n    "RES302 timeout"\n  ]\n}\n'
    assert baseline.read(tmp_path / "new" / "known.json") == keys


def test_only_what_is_not_in_the_baseline_is_new_and_what_is_not_found_is_gone():
    findings = [made("RES302", "many", "few", ONE), made("RES301", "b", "c", TEA)]
    known = frozenset({"RES302 timeout", "RES999 /a 200"})
    assert baseline.new_ones(findings, known) == [findings[1]]
    assert baseline.gone(findings, known) == ["RES999 /a 200"]


def test_a_baseline_holds_no_secret(tmp_path):
    finding = Finding(RULES["RES103"], "", f"/{RIGHT}", made("RES302", "", "", TEA).answers, "")
    hide = lambda text: text.replace(RIGHT, "***")  # noqa: E731
    keys = baseline.write(tmp_path / "known.json", [finding], hide)
    assert keys == {"RES103 /*** timeout"}
    assert baseline.new_ones([finding], keys, hide) == []
    assert baseline.gone([finding], keys, hide) == []


def test_a_key_with_half_a_surrogate_pair_can_be_kept(tmp_path):
    finding = Finding(RULES["RES104"], "", "/\ud83c", made("RES302", "", "", TEA).answers, "")
    assert baseline.write(tmp_path / "a.json", [finding]) == baseline.read(tmp_path / "a.json")


MISTAKES = {
    "": "the file is empty",
    "[]": r'the file must be \{"findings": \[…\]\}',
    '{"findings": {}}': "findings must be a list",
    '{"findings": ["a",\n7]}': r":2: findings\[1\] must be a text, not 7",
    '{"findings": [], "more": 1}': r'must be \{"findings"',
    "{": "not JSON",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_what_is_no_baseline_is_refused(text, tmp_path):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(MemmockError, match=MISTAKES[text]):
        baseline.read(tmp_path / "a.json")


def test_a_baseline_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(MemmockError, match=r"known.txt: a baseline ends in .yaml, .yml or .json"):
        baseline.write(tmp_path / "known.txt", [])
    (tmp_path / "file").write_text("")
    with pytest.raises(MemmockError, match="its directory is a file"):
        baseline.write(tmp_path / "file" / "known.json", [])
