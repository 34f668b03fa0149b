"""What a run found, as text, JSON, JUnit XML and HTML."""

from __future__ import annotations

import gzip
import html as html_text
import json
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from memmock.conformance.case import Case, Form
from memmock.conformance.finding import Finding, Outcome, Result
from memmock.conformance.session import Answer, Session, Target
from memmock.http import Reply
from memmock.redaction import Redactor
from memmock.report import FORMATS, as_html, as_json, as_junit, as_text, report_of
from memmock.report.document import document
from memmock.report.parts import CONSUMER, Block, Entry, Report, Row
from memmock.rules import RULES, Severity

RIGHT = "Bearer sk-live-0123456789abcdef"
URL = "http://127.0.0.1:8700/memory_retrieval"
TARGET = Target(url=URL, authorization=RIGHT, headers=(("X-Api-Key", "key-abcdef"), ("X-Tenant", "t1")))
PLAIN = Target(url=URL, authorization=RIGHT)
GOOD = Reply.json({"memories": [{"id": "1", "summary": "用户喜欢喝茶"}]})
ONE = Case({"query": "用户喜欢喝什么", "max_results": 0})
TEA = Case({"query": "tea"})


def answer(case, reply=None, failure="", *, ms=12.3, target=PLAIN):
    return Answer(case, Session(target).request(case), reply, failure, ms / 1000, False)


def finding(code, message, *answers, pointer="", expected="what is right", together=False, flaky=False):
    return Finding(RULES[code], message, pointer, answers, expected, together, flaky)


def result(*findings, outcomes=(), **facts):
    return Result(URL, list(findings), list(outcomes), **{"requests": 214, "seconds": 3.21, **facts})


MANY = finding(
    "RES302", "body /memories: holds 1 memory, more than max_results, 0", answer(ONE, GOOD),
    pointer="/memories", expected="no memory",
)  # fmt: skip
LATE = finding(
    "RES006", "no complete reply within 3000 ms",
    answer(TEA, failure="timeout: no complete reply within 3000 ms", ms=3000), flaky=True,
)  # fmt: skip
OTHER = finding(
    "RES601", '1 memory ("1") for an authorization that is not the right one',
    answer(TEA, GOOD), answer(Case({"query": "tea"}, authorization=RIGHT[:-3]), GOOD), expected="401",
)  # fmt: skip
MARKUP = finding("RES403", "should be plain", answer(TEA, GOOD), pointer="/memories/0/summary")
OUTCOMES = (
    Outcome(RULES["RES001"], "passed", "14 replies"),
    Outcome(RULES["RES003"], "passed"),
    Outcome(RULES["RES004"], "not applicable", "no reply had a Content-Encoding"),
    Outcome(RULES["RES302"], "violated"),
    Outcome(RULES["RES403"], "violated"),
)


# ---- text

CHECKED = f"""\
{URL}

passed (2)
  RES001  A retrieval that keeps the contract is answered with 200.  (14 replies)
  RES003  Content-Type is application/json, in UTF-8.

not applicable (1)
  RES004  Content-Encoding is one that the request accepts, and the body decodes.  \
no reply had a Content-Encoding

violated (2)
  RES302  There are at most max_results memories.
  RES403  A summary is plain text, without HTML, JSON or Markdown.

RES302 error  body /memories: holds 1 memory, more than max_results, 0
  why        Every memory costs the model time and attention while the user waits. When the request
             names no number it is 5.
  request    curl -sS \\
               {URL} \\
               -H 'Accept: application/json' \\
               -H 'Content-Type: application/json' \\
               -H "Authorization: $AUTHORIZATION" \\
               --data-binary '{{"query":"用户喜欢喝什么","max_results":0}}'
  reply      200 in 12 ms
             Content-Type: application/json
             {{"memories":[{{"id":"1","summary":"用户喜欢喝茶"}}]}}
  expected   no memory

RES403 warning  at /memories/0/summary: should be plain
  why        The digital human speaks: marks are read aloud, or the model answers in the same form.
  request    curl -sS \\
               {URL} \\
               -H 'Accept: application/json' \\
               -H 'Content-Type: application/json' \\
               -H "Authorization: $AUTHORIZATION" \\
               --data-binary '{{"query":"tea"}}'
  reply      200 in 12 ms
             Content-Type: application/json
             {{"memories":[{{"id":"1","summary":"用户喜欢喝茶"}}]}}
  expected   what is right

1 error, 1 warning: 214 requests in 3.2 s.
"""

FUZZED = f"""\
{URL}

RES006 error  no complete reply within 3000 ms (not every time)
  why        The character is in the middle of a sentence. The consumer gives up, and the model gets
             `timeout`. The limit, 3000 ms unless set otherwise, includes connecting and the body.
  request    curl -sS \\
               {URL} \\
               -H 'Accept: application/json' \\
               -H 'Content-Type: application/json' \\
               -H "Authorization: $AUTHORIZATION" \\
               --data-binary '{{"query":"tea"}}'
  reply      none: timeout: no complete reply within 3000 ms
  expected   what is right

RES601 error  1 memory ("1") for an authorization that is not the right one
  why        The authorization is all that tells whose memories these are: whoever has none, or an
             altered one, must not read them.
  request 1  curl -sS \\
               {URL} \\
               -H 'Accept: application/json' \\
               -H 'Content-Type: application/json' \\
               -H "Authorization: $AUTHORIZATION" \\
               --data-binary '{{"query":"tea"}}'
  reply 1    200 in 12 ms
             Content-Type: application/json
             {{"memories":[{{"id":"1","summary":"用户喜欢喝茶"}}]}}
  request 2  curl -sS \\
               {URL} \\
               -H 'Accept: application/json' \\
               -H 'Content-Type: application/json' \\
               -H "Authorization: $ALTERED_AUTHORIZATION" \\
               --data-binary '{{"query":"tea"}}'
             ALTERED_AUTHORIZATION is AUTHORIZATION[:-3]
  reply 2    200 in 12 ms
             Content-Type: application/json
             {{"memories":[{{"id":"1","summary":"用户喜欢喝茶"}}]}}
  expected   401

3 findings of the baseline left out.
Gone since the baseline: RES201 /memories 200
Stopped early: the time is over
2 new errors: 1,214 requests in 60.0 s, seed 42.
"""


def test_the_whole_text_of_a_check():
    assert as_text(report_of(result(MARKUP, MANY, outcomes=OUTCOMES), PLAIN)) == CHECKED


def test_the_whole_text_of_a_fuzz_run():
    run = result(LATE, OTHER, requests=1214, seconds=60.04, seed=42, stopped="the time is over")
    report = report_of(run, PLAIN, known=3, gone=["RES201 /memories 200"])
    assert as_text(report) == FUZZED


def test_a_run_that_found_nothing_is_short():
    assert as_text(report_of(result(seed=0), PLAIN)) == (
        f"{URL}\n\nNothing was found: 214 requests in 3.2 s, seed 0.\n"
    )
    assert "Nothing new was found" in as_text(report_of(result(), PLAIN, known=1))
    assert "1 finding of the baseline" in as_text(report_of(result(), PLAIN, known=1))


def test_a_long_query_shows_its_beginning_in_text_and_is_whole_in_json():
    long = finding("RES006", "late", answer(Case({"query": "长" * 4000}), failure="timeout: late"))
    report = report_of(result(long), PLAIN)
    text = as_text(report)
    assert len(text) < 2000
    assert "# the beginning of a body of 12,012 bytes; the JSON report has all of it" in text
    assert '--data-binary \'{"query":"长长' in text
    (found,) = document(report)["findings"]
    assert shlex.split(found["curl"])[-1] == json.dumps(
        {"query": "长" * 4000}, ensure_ascii=False, separators=(",", ":")
    )
    assert found["request"]["body"].endswith("长… (12,012 bytes in all)")
    assert len(found["request"]["body"]) < 2100


def test_a_long_body_that_is_no_text_shows_its_beginning():
    long = finding("RES006", "late", answer(Case(body=b"\xff" * 4000), failure="timeout: late"))
    assert "a body of 4,000 bytes" in as_text(report_of(result(long), PLAIN))


def test_calls_made_together_are_said_to_be():
    two = finding("RES606", "status 500", answer(TEA, GOOD), answer(ONE, Reply(500)), together=True)
    text = as_text(report_of(result(two), PLAIN))
    assert "  together   The 2 calls were made at the same time.\n" in text
    assert "  request 2  curl" in text
    assert "             (no body)\n" in text


def test_of_many_calls_made_together_the_last_is_shown_in_full():
    others = [answer(Case({"query": f"q{n}"}), GOOD) for n in range(5)]
    text = as_text(report_of(result(finding("RES606", "x", *others, together=True)), PLAIN))
    assert text.count("curl -sS") == 1
    assert '--data-binary \'{"query":"q4"}\'' in text
    assert '  together   with 4 other calls:\n             {"query":"q0"}\n' in text
    assert (
        as_html(report_of(result(finding("RES606", "x", *others, together=True)), PLAIN)).count("curl -sS")
        == 5
    )


def test_the_header_that_is_wrong_is_shown():
    reply = Reply(200, (("X-Odd", "1"), ("Content-Encoding", "br"), ("X-Other", "2")), b"\xff\x00\x81")
    text = as_text(report_of(result(finding("RES004", "br", answer(TEA, reply), pointer="X-Odd")), PLAIN))
    assert "X-Odd: 1" in text
    assert "X-Other" not in text
    assert "             Content-Encoding: br\n             (encoded, not shown: 3 bytes)\n" in text


def test_an_encoded_body_is_shown_decoded_and_its_header_as_it_was():
    packed = gzip.compress(b'{"memories":[]}')
    reply = Reply(200, (("Content-Encoding", "gzip"), ("Content-Length", "35")), packed)
    (found,) = document(report_of(result(finding("RES004", "gzip", answer(TEA, reply))), PLAIN))["findings"]
    assert found["reply"]["body"] == '{"memories":[]}'
    assert found["reply"]["headers"] == (("Content-Encoding", "gzip"), ("Content-Length", "35"))


def test_headers_are_shown_as_utf_8_if_they_are():
    reply = Reply(200, (("X-A", "\xe9"), ("X-B", "茶".encode().decode("latin-1"))), b"{}")
    (found,) = document(report_of(result(finding("RES004", "x", answer(TEA, reply))), PLAIN))["findings"]
    assert found["reply"]["headers"] == (("X-A", "\xe9"), ("X-B", "茶"))


def test_a_request_that_says_it_is_encoded_is_shown_as_it_is():
    case = Case({"query": "tea"}, headers=(("Content-Encoding", "br"),))
    (found,) = document(report_of(result(finding("RES004", "x", answer(case, GOOD))), PLAIN))["findings"]
    assert found["request"]["body"] == '{"query":"tea"}'
    assert found["reply"]["body"] == GOOD.body.decode()


def test_an_empty_authorization_is_written_as_curl_takes_it():
    case = Case({"query": "tea"}, authorization="", headers=(("Authorization", ""),))
    (found,) = document(report_of(result(finding("RES601", "x", answer(case, GOOD))), PLAIN))["findings"]
    assert '-H "Authorization;"' in found["curl"]
    assert ("Authorization", "") in found["request"]["headers"]
    absent = Case({"query": "tea"}, authorization="")
    (found,) = document(report_of(result(finding("RES601", "x", answer(absent, GOOD))), PLAIN))["findings"]
    assert "Authorization" not in found["curl"]


# ---- JSON


def test_the_whole_json():
    outcomes = [Outcome(RULES["RES302"], "violated"), Outcome(RULES["RES004"], "not applicable", "no need")]
    run = result(MANY, LATE, outcomes=outcomes)
    first, last = document(report_of(run, PLAIN))["findings"]
    curl = (
        f"curl -sS \\\n  {URL} \\\n"
        "  -H 'Accept: application/json' \\\n  -H 'Content-Type: application/json' \\\n"
        '  -H "Authorization: $AUTHORIZATION" \\\n'
        """  --data-binary '{"query":"用户喜欢喝什么","max_results":0}'"""
    )
    body = '{"query":"用户喜欢喝什么","max_results":0}'
    call = {
        "request": {
            "method": "POST",
            "target": "/memory_retrieval",
            "headers": (
                ("Host", "127.0.0.1:8700"),
                ("Accept", "application/json"),
                ("Content-Type", "application/json"),
                ("Authorization", "$AUTHORIZATION"),
                ("User-Agent", "memmock"),
                ("Content-Length", str(len(body.encode()))),
            ),
            "body": body,
        },
        "reply": {
            "status": 200,
            "headers": (("Content-Type", "application/json"),),
            "body": '{"memories":[{"id":"1","summary":"用户喜欢喝茶"}]}',
            "elapsed_ms": 12.3,
        },
        "curl": curl,
    }
    assert first == {
        "rule": "RES302",
        "severity": "error",
        "title": RULES["RES302"].title,
        "message": "body /memories: holds 1 memory, more than max_results, 0",
        "pointer": "/memories",
        **call,
        "flaky": False,
        "expected": "no memory",
        "reason": RULES["RES302"].reason,
        "together": False,
        "calls": [call],
    }
    assert last["flaky"] is True
    assert last["reply"] == {"failure": "timeout: no complete reply within 3000 ms"}
    facts = json.loads(as_json(report_of(run, PLAIN)))
    del facts["findings"]
    assert facts == {
        "target": URL,
        "ok": False,
        "stats": {"requests": 214, "seconds": 3.21, "seed": None},
        "stopped": "",
        "rules": [
            {"rule": "RES302", "state": "violated", "reason": ""},
            {"rule": "RES004", "state": "not applicable", "reason": "no need"},
        ],
    }


def test_fuzzing_has_no_rules_and_a_baseline_is_told_of():
    facts = document(report_of(result(seed=7), PLAIN, known=2, gone=["RES201 200"]))
    assert facts == {
        "target": URL,
        "ok": True,
        "findings": [],
        "stats": {"requests": 214, "seconds": 3.21, "seed": 7},
        "stopped": "",
        "baseline": {"known": 2, "gone": ["RES201 200"]},
    }


def test_warnings_fail_only_when_they_are_to():
    assert report_of(result(MARKUP), PLAIN).ok
    assert not report_of(result(MARKUP), PLAIN, fail_on=Severity.WARNING).ok


# ---- JUnit


def cases(text):
    """Return what became of each test case, by its name."""
    root = ET.fromstring(text)
    assert root.tag == "testsuites"
    (suite,) = root.findall("testsuite")
    for name, path in {
        "tests": "",
        "failures": "/failure",
        "skipped": "/skipped",
        "errors": "/error",
    }.items():
        assert int(suite.get(name)) == int(root.get(name)) == len(suite.findall(f"testcase{path}"))
    return {
        case.get("name"): [(child.tag, child.get("message")) for child in case]
        for case in suite.iter("testcase")
    }


def test_the_whole_junit():
    run = result(MARKUP, outcomes=[OUTCOMES[2]], stopped="the time is over")
    text = as_junit(report_of(run, PLAIN, fail_on=Severity.WARNING))
    shown = as_text(report_of(run, PLAIN)).split("\n\n")[2]
    assert (
        text
        == f"""\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="1" errors="0" skipped="1" time="3.210">
  <testsuite name="memmock check" tests="2" failures="1" errors="0" skipped="1" time="3.210">
    <properties>
      <property name="target" value="{URL}" />
      <property name="requests" value="214" />
      <property name="stopped" value="the time is over" />
    </properties>
    <testcase classname="memmock.check" name="RES004 {RULES["RES004"].title}" time="0">
      <skipped message="no reply had a Content-Encoding" />
    </testcase>
    <testcase classname="memmock.check" name="RES403 {RULES["RES403"].title}" time="0">
      <failure type="RES403" message="{shown.partition(chr(10))[0]}">{shown}</failure>
    </testcase>
  </testsuite>
</testsuites>
"""
    )


def test_a_check_has_a_test_case_for_each_rule():
    found = cases(as_junit(report_of(result(MANY, MARKUP, outcomes=OUTCOMES), PLAIN)))
    assert {name[:6]: [tag for tag, _ in children] for name, children in found.items()} == {
        "RES001": [],
        "RES003": [],
        "RES004": ["skipped"],
        "RES302": ["failure"],
        "RES403": ["system-out"],
    }


@pytest.mark.parametrize(
    ("known", "fail_on", "child"),
    [
        (None, Severity.ERROR, ("skipped", "violated")),
        (None, Severity.WARNING, ("failure", "violated")),
        (1, Severity.WARNING, ("skipped", "only what the baseline has: violated")),
    ],
)
def test_a_violated_rule_without_findings_fails_unless_the_baseline_has_them(known, fail_on, child):
    report = report_of(result(outcomes=[OUTCOMES[-1]]), PLAIN, known=known, fail_on=fail_on)
    assert list(cases(as_junit(report)).values()) == [[child]]


def test_a_fuzz_run_has_a_test_case_for_each_finding_and_one_when_there_is_none():
    found = cases(as_junit(report_of(result(LATE, MANY, MARKUP, seed=1), PLAIN)))
    assert [name[:9] for name in found] == ["1: RES006", "2: RES302", "3: RES403"]
    assert [children[0][0] for children in found.values()] == ["failure", "failure", "system-out"]
    none = cases(as_junit(report_of(result(seed=1), PLAIN)))
    assert none == {"Nothing was found: 214 requests in 3.2 s, seed 1.": []}


# ---- HTML


class Page(HTMLParser):
    """The elements of a page, its text, and whether every element is closed in its turn."""

    VOID = ("meta",)

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self):
        return "".join(self.words)


TAGS = {"html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "h3", "h4", "p",
        "code", "section", "article", "span", "pre", "table", "thead", "tbody", "tr", "th", "td"}  # fmt: skip
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "id", "tabindex", "scope"}


def checked(text):
    """Return a page that has only the elements and attributes that it may have."""
    page = Page(text)
    assert {tag for tag, _ in page.elements} <= TAGS
    assert {name for _, attributes in page.elements for name in attributes} <= ATTRIBUTES
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)[1]
    assert not re.search(r"url\(|@import|expression", style)
    return page


def test_a_page_stands_alone_and_shows_everything():
    text = as_html(
        report_of(result(MANY, OTHER, outcomes=OUTCOMES, stopped="the time is over"), PLAIN, known=2)
    )
    page = checked(text)
    words = page.text
    for shown in (
        URL, "2 new errors: 214 requests in 3.2 s.", "Stopped early: the time is over",
        RULES["RES302"].reason, "RES302 error", "holds 1 memory", "no memory", "用户喜欢喝茶",
        '--data-binary \'{"query":"tea"}\'',
        "AUTHORIZATION[:-3]", "no reply had a Content-Encoding", "2 findings of the baseline left out.",
        "Request 2",
    ):  # fmt: skip
        assert shown in words
    policy = next(dict(attributes) for _, attributes in page.elements if "http-equiv" in attributes)[
        "content"
    ]
    assert re.fullmatch(
        r"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-[\w+/]{43}='", policy
    )
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_the_policy_allows_the_style_that_is_there():
    import base64
    import hashlib

    text = as_html(report_of(result(), PLAIN))
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"sha256-{digest}" in html_text.unescape(text)


class Evidence:
    """A block of every kind."""

    def blocks(self, *, brief):
        return [
            Block("played", ("first sentence", "second sentence"), "prose"),
            Block("said", ("brief" if brief else "whole", "a\nb")),
            Block("", ("ends with ",), "note", "this"),
            Block("then", ("all at once",), "aside"),
        ]

    def calls(self):
        return [{"call": 1}, {"call": 2}]

    def to_json(self):
        return {"more": True}


def of_consumer():
    entry = Entry("CON301", Severity.ERROR, "T", "R", "late", "/x", "soon", Evidence(), False, "drip",
                  (Block("try", ("run it",), "command"),))  # fmt: skip
    rows = (Row("drip", "timing", ("ok", "timeout"), "<b>", False, ("CON301",)),
            Row("late", "timing", ("timeout",), "timeout", True))  # fmt: skip
    return Report("me", False, Severity.ERROR, (entry,), (), 3, 1.0, None, "", side=CONSUMER, matrix=rows)


def test_blocks_of_each_kind_are_lines_of_text():
    assert (
        as_text(of_consumer())
        == """\
me

1 of 2 scenarios as expected
        expected       seen
  drip  ok or timeout  <b>   CON301

CON301 error  drip: at /x: late
  why        R
  played     first sentence
             second sentence
  said       brief
             a\\u000ab
             ends with this
  then       all at once
  expected   soon
  try        run it

1 error: 3 calls in 1.0 s.
"""
    )


def test_blocks_of_each_kind_are_elements_of_a_page():
    text = as_html(of_consumer())
    page = checked(text)
    assert "<h4>Played</h4>\n<p>first sentence</p>\n<p>second sentence</p>\n" in text
    assert '<h4>Said</h4>\n<pre tabindex="0">whole\na\\u000ab</pre>\n' in text
    assert '<p>ends with <code>this</code></p>\n<p class="soft">all at once</p>\n' in text
    assert '<p>soon</p>\n<h4>Try</h4>\n<pre class="command" tabindex="0">run it</pre>\n' in text
    assert "1 of 2 scenarios as expected." in page.text
    assert '<td class="error">&lt;b&gt;</td><td>CON301</td>' in text


def test_a_finding_says_of_its_last_call_what_json_says_of_it():
    (found,) = document(of_consumer())["findings"]
    assert (found["call"], found["more"], found["calls"]) == (2, True, [{"call": 1}, {"call": 2}])


def test_of_many_scenarios_that_went_wrong_only_the_first_are_listed():
    rows = tuple(Row(f"s{n}", "more", ("ok",), "timeout", False) for n in range(43))
    text = as_text(replace(of_consumer(), matrix=rows))
    assert "\n  s39  ok        timeout\n  and 3 more, which the other formats have too\n\n" in text


def test_when_all_went_as_expected_only_that_is_said_of_the_scenarios():
    good = replace(of_consumer(), entries=(), matrix=of_consumer().matrix[1:])
    assert as_text(good) == ("me\n\n1 of 1 scenario as expected\n\nNothing was found: 3 calls in 1.0 s.\n")


def test_a_page_without_findings_has_no_section_for_them():
    words = checked(as_html(report_of(result(outcomes=OUTCOMES[:1]), PLAIN))).text
    assert "Findings" not in words
    assert "Rules" in words


# ---- hostile content, in every format

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</pre></style><script>alert(1)</script>",
    "]]></failure><x a='1\">&amp;&#0;",
    "\x00\x07\x1b[2J\x1b]0;title\x07\x7f\x9b31m",
    "\u202egnp.exe\u2066 \u200b\ufeff\u2028\u2029",
    "\ud83c half, \ufffe \uffff \U0010ffff",
    "{target} {0} %s %(x)s $HOME `id` $(id) !! \\",
    "'; rm -rf ~; echo '",
    "line\r\nInjected: 1\n\ttab",
    "用户喜欢喝茶 🍵 𠮷",
]


def hostile(text):
    """Return a result that holds a text wherever a provider or a fuzzer can put it."""
    sent = text.encode("utf-8", "surrogatepass")
    value = (
        "".join(char for char in text if char not in "\r\n\0").encode("utf-8", "replace").decode("latin-1")
    )
    reply = Reply(200, (("Content-Type", value), (f"X-{value}", value)), sent)
    calls = (
        answer(Case({"query": text, text: text}, form=Form(spaced=True)), reply),
        answer(Case(body=sent, headers=(("X-Odd", value),)), reply),
        answer(Case({"query": text}), failure=f"connection_failed: {text}"),
    )
    return result(
        finding("RES403", text, *calls, pointer=f"/{text}", expected=text),
        finding("RES003", text, calls[1], pointer="Content-Type", expected=text, flaky=True),
        outcomes=[
            Outcome(RULES["RES003"], "violated", text),
            Outcome(RULES["RES004"], "not applicable", text),
        ],
        stopped=text,
    )


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_content_is_text_only_in_every_format(text):
    report = report_of(hostile(text), TARGET, known=1, gone=[text])
    shown = {name: make(report) for name, make in FORMATS.items()}
    for made in shown.values():
        made.encode()
    for name in ("text", "html", "junit"):
        assert all(line.isprintable() for line in shown[name].split("\n")), name
    page = checked(shown["html"])
    visible = text.split("\n", 1)[0]
    if visible.isprintable():
        assert visible in page.text
        assert visible in shown["text"]
    found = json.loads(shown["json"])["findings"][1]
    assert found["message"] == text
    assert found["expected"] == text
    children = cases(shown["junit"])
    assert len(children) == 3
    # a command that can be shown is one that a shell takes apart as it was made
    curl = found["calls"][0]["curl"]
    if text.isprintable():
        assert json.loads(shlex.split(curl)[-1])["query"] == text


# ---- secrets


def leaking():
    """Return a result in which the secrets stand wherever they can be."""
    token = RIGHT[7:]
    text = f"{RIGHT} and {RIGHT.lower()}, {token.upper()} key-abcdef"
    reply = Reply(
        200,
        (("Set-Cookie", "session=abcdefghijkl"), ("X-Echo", RIGHT), ("Location", f"http://a/?token={token}")),
        json.dumps({"memories": [], "you": text, "cut": token, "cookie": "abcdefghijkl",
                    "escaped": "".join(f"\\u{ord(c):04x}" for c in token)}).encode(),
    )  # fmt: skip
    packed = Reply(400, (("Content-Encoding", "gzip"),), gzip.compress(text.encode()))
    calls = tuple(
        answer(case, answered, failure, target=TARGET)
        for case, answered, failure in (
            (Case({"query": text, token: 1}), reply, ""),
            (Case({"query": "tea"}, authorization=RIGHT.swapcase()), packed, ""),
            (Case({"query": "tea"}, authorization=RIGHT[:-1]), Reply(401, (), RIGHT[:-1].encode()), ""),
            (Case(body=RIGHT.encode(), headers=(("X-Note", RIGHT),)), None, f"connection_failed: {text}"),
        )
    )
    return result(
        finding("RES502", f'holds "{token[:12]}…', *calls, pointer=f"/{token}", expected=text),
        outcomes=[Outcome(RULES["RES502"], "violated", text)],
        stopped=text,
    )


@pytest.mark.parametrize("name", FORMATS)
def test_no_secret_is_in_any_report(name):
    made = FORMATS[name](report_of(leaking(), TARGET, known=1, gone=[RIGHT]))
    assert "$AUTHORIZATION" in made
    for secret in ("0123456789", "sk-live-0", "abcdefghijkl", "key-abcdef"):
        assert secret not in made.lower(), secret
    assert "".join(f"\\u{ord(char):04x}" for char in "sk-live") not in made.replace("\\\\", "\\")
    assert "t1" in made  # what is no secret stays


@pytest.mark.parametrize("name", FORMATS)
def test_a_short_authorization_is_hidden_where_it_is_one(name):
    target = Target(url=URL, authorization="k")
    made = FORMATS[name](
        report_of(result(finding("RES003", "like", answer(TEA, GOOD, target=target))), target)
    )
    assert "$AUTHORIZATION" in made
    assert "Authorization: k" not in html_text.unescape(made)
    assert "like" in made


def test_the_secrets_of_a_url_are_hidden():
    target = Target(url="http://127.0.0.1/m?api_key=abcdefgh12&a=1", authorization=RIGHT)
    report = report_of(result(finding("RES003", "like", answer(TEA, GOOD, target=target))), target)
    assert report.target == "http://127.0.0.1/m?api_key=***&a=1"
    assert all("abcdefgh12" not in make(report) for make in FORMATS.values())


def test_a_redactor_hides_more():
    reply = Reply.json({"memories": [], "phone": "555-0199", "note": "call Ann"})
    redactor = Redactor(fields=["phone"], patterns=["Ann"])
    report = report_of(result(finding("RES003", "Ann", answer(TEA, reply))), PLAIN, redactor=redactor)
    for make in FORMATS.values():
        assert "555-0199" not in make(report)
        assert "Ann" not in make(report)


def test_a_secret_at_the_end_of_what_is_shown_is_not_cut_in_two():
    for before in range(1975, 2001):
        reply = Reply(200, (), b"x" * before + RIGHT.encode() + b"y" * 90_000)
        report = report_of(result(finding("RES005", "large", answer(TEA, reply))), PLAIN)
        body = document(report)["findings"][0]["reply"]["body"]
        assert "sk" not in body
        assert body.endswith(f"… ({before + len(RIGHT) + 90_000:,} bytes in all)")
