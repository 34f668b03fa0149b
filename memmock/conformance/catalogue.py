"""The requests of a check, as data: what keeps the contract, what breaks it, and wrong authorizations."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from typing import Any, NamedTuple

from memmock.conformance.case import Case, Form

LARGE, HUGE = 20, (1000, 3_000_000_000)
"""More memories than by default, and more than a provider need give."""
REFUSED = range(400, 500)
NONSENSE = "zqxjkvwb qqfzxtplm"


class Probe(NamedTuple):
    """One request, and how it may be answered.

    Attributes:
        case: what is sent.
        aspect: what it is about; findings of one rule about one aspect have one cause.
        may_be: statuses that are as good as 200.
        only: the codes that are judged; empty for all.
    """

    case: Case
    aspect: str
    may_be: Container[int] = ()
    only: Collection[str] = ()


LIVE_ID = "730184451629056"
FIRST = Case({"query": "What does the user like?"})
QUERIES = (  # broad ones, for providers that leave out what has no hit
    "用户喜欢什么",
    "coffee tea food drink work job name home city family partner friend pet cat dog music book film game "
    "travel plan project budget allergy meeting format tone language birthday week year",
    "咖啡 茶 食物 饮料 工作 职业 名字 称呼 家 城市 家人 伴侣 朋友 宠物 猫 狗 音乐 书 电影 游戏 旅行 "
    "计划 项目 预算 过敏 会议 格式 语气 语言 生日 上周 去年",
)
_TEXTS = (
    "🍵 tea 👩‍👩‍👧 🇸🇪 𠮷",
    "cafe\u0301 Straße İstanbul ﬁne ı ΐ",
    "\u200fשלום \u202eabc\u202c مرحبا \u2067x\u2069",
    "² ① ٣ Ⅷ ½ 10³",
    "{0} {name} {{y}} { %s %(x)d 50 % ${x} #{z}",
    "He said \"tea\" and 'milk', it's `so`",
    "C:\\new\\users \\u00e \\x \\",
    "first line\nsecond line\r\n\tthird",
    "a <b> & c; d -- e | f (g [h *",
    "tea\u200bpot\u200d cup\u00ad \ufeff \u2028 plate",
    "?!… 。",
    "null",
    "42",
    "茶",
    "tea " + "a" * 60 + "!",
)
FORMS = (
    Form(names="lower", content_type="application/json; charset=utf-8", user_agent=False),
    Form(names="upper", content_type="Application/JSON", accept="Application/JSON"),
    Form(
        accept="text/plain;q=0.5, application/json, */*;q=0.1",
        content_type='application/json;charset="UTF-8"',
    ),
    Form(spaced=True, reverse=True),
    Form(escaped=True),
    Form(framing="chunked"),
    Form(slices=3),
)
_OPTIONAL: tuple[dict[str, Any], ...] = (
    {"live_id": "", "reason": "", "memory_types": [], "time_hint": ""},
    {"live_id": "18446744073709551615"},
    {"reason": "用户问起：why does it matter?"},
    {"time_hint": "上周"},
    {"time_hint": "last week"},
)
_WRONG_FIELDS: tuple[dict[str, Any], ...] = (
    {"live_id": None, "reason": None, "memory_types": None, "time_hint": None, "max_results": None},
    {"memory_types": None},
    {"max_results": None},
    {"query": ""},
    {"query": 7},
    {"memory_types": "preference"},
    {"memory_types": [7, None]},
    {"memory_types": ["no-such-kind"]},
    {"memory_types": ["preference", "preference"]},
    {"max_results": 0},
    {"max_results": -1},
    {"max_results": "3"},
    {"max_results": 2.5},
    {"live_id": 730184451629056},
    {"reason": ["tea"], "time_hint": 7},
)
_WRONG_BODIES = (b'{"query": "tea', b"", b"[]", b'{"query": "\xb2\xe8"}', b"[" * 2000 + b"]" * 2000, b"{}")


def simple_probes() -> Iterator[Probe]:
    """Yield what is judged without looking at other answers."""
    tea = Case({"query": "tea", "live_id": LIVE_ID})
    for fields in _OPTIONAL:
        yield Probe(tea.with_fields(**fields), "optional fields")
    for text in _TEXTS:
        yield Probe(Case({"query": text, "reason": text, "time_hint": text}), "text")
    yield Probe(Case({"query": "用户喜欢喝什么茶? " * 30}), "long text")
    yield Probe(Case({"query": "what tea " * 600, "reason": "tea " * 300}), "long text", may_be=(413,))
    yield Probe(Case({"query": "  "}), "text", may_be=REFUSED)
    yield Probe(Case({"query": NONSENSE, "max_results": LARGE}), "nothing found")
    yield Probe(Case({"query": NONSENSE, "memory_types": ["other"]}), "nothing found")


def wrong_probes() -> Iterator[Probe]:
    """Yield what breaks the contract: refused with 4xx, or answered all the same."""
    for fields in _WRONG_FIELDS:
        yield Probe(Case({"query": "tea", **fields}), "wrong fields", may_be=REFUSED)
    for body in _WRONG_BODIES:
        yield Probe(Case(body=body), "wrong body", may_be=REFUSED)
    yield Probe(FIRST, "plain")  # on the same connection, as below
    text = Case({"query": "tea"}, form=Form(content_type="text/plain"))
    yield Probe(text, "wrong headers", may_be=REFUSED)
    yield Probe(FIRST, "plain")
    # another format was asked for, and another method is another thing: only a crash counts
    html = Case({"query": "tea"}, form=Form(accept="text/html"))
    yield Probe(html, "wrong headers", may_be=range(200, 500), only=("RES002", "RES007"))
    get = Case(body=b"", method="GET")
    yield Probe(get, "wrong method", may_be=range(200, 500), only=("RES002", "RES007", "RES502"))
    yield Probe(FIRST, "plain")


def wrong_authorizations(right: str) -> Iterator[tuple[str, Case]]:
    """Yield how an authorization is wrong, and a request with it; none decodes to the right one."""
    scheme, space, token = right.rpartition(" ")
    cut = max(1, len(token) * 2 // 3)
    before = scheme + space
    wrong = {
        "a wrong one": f"{before}memmock-wrong-authorization",
        "the right one truncated": before + token[:cut],
        "the right one with another end": before + token[:cut] + "".join(map(_other, token[cut:])),
        "the right one and more behind it": f"{right}-more",
        "the right one with more in front": f"{before}more-{token}",
        "the right one in another case": before + token.swapcase(),
        "its scheme alone": scheme,
        "the right one without its scheme": token,
        "the right one with another scheme": f"Token {token}" if scheme and scheme != "Token" else "",
    }
    yield "no Authorization", Case(FIRST.fields, authorization="")
    yield "an empty Authorization", Case(FIRST.fields, authorization="", headers=(("Authorization", ""),))
    for how, value in wrong.items():
        if value and value != right:
            yield how, Case(FIRST.fields, authorization=value)


def _other(char: str) -> str:
    return "z" if char.lower() != "z" else "y"
