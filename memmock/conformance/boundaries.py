"""Requests at the edges of what the contract allows, as a list: the same each time, the plainest first.

Each case keeps the contract, so that a good provider answers it with a 200. Nothing is known of the memories
behind a provider: the words are common ones. What is drawn at random is in `strategies`, from the same texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

from memmock.conformance.case import PLAIN, Case, Form
from memmock.contract import MEMORY_TYPES

WORDS = (
    *(
        "tea",
        "茶",
        "名字",
        "喜欢",
        "工作",
        "家人",
        "项目",
        "语言",
        "习惯",
        "朋友",
        "计划",
        "预算",
        "昨天",
        "用户",
    ),
    *(
        "name",
        "like",
        "work",
        "family",
        "project",
        "language",
        "pet",
        "friend",
        "food",
        "budget",
        "the",
        "user",
    ),
)
"""Common words: some memory has one of them."""

PHRASES = (
    "What does the user like?",
    "用户喜欢什么？",
    "我们之前约定了什么",
    "What is the user working on?",
    "用户的家人和朋友",
    "How should answers be formatted?",
    "project plan for next month",
    "不要用 Python，预算不高",
    "Where does the user live?",
    "用户最近在忙的项目进展",
)
"""What a model asks."""

BROAD = " ".join(WORDS)
"""A query that most memories have something in common with."""

ODD: dict[str, tuple[str, ...]] = {
    "single": ("a", "我", "0", "é"),
    "numbers": ("7", "-1", "1e999", "2026-02-30", "3.5", "2026", "00:61", "12345678901234567890"),
    "digits that are not ASCII": ("²", "①", "½", "٣", "１２３", "Ⅷ", "三", "𝟙"),
    "case folding": ("ß", "İ", "ﬁ", "ı", "ŉ", "ΐ", "ς", "Å", "STRASSE straße"),
    "width": ("ＡＢＣ", "ﾃｽﾄ", "Ｔｅａ　ｔｉｍｅ"),
    "emoji": ("☕", "😀", "🫠", "❤️", "🛝", "🪿", "⏰", "🀄"),
    "emoji sequences": ("👨‍👩‍👧‍👦", "🇨🇳", "👍🏽", "1️⃣", "🏳️‍🌈", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"),
    "beyond 16 bits": ("𠮷野家", "𝒜", "\U0010fffd", "𐍈"),
    "combining": ("e\u0301", "\u0301", "a\u0300\u0301\u0302\u0303", "각", "Z͑ͫ̓a̴l͙g̈o", "ก็"),
    "marks of direction": ("\u200f", "\u202e", "\u2066tea", "שלום", "مرحبا tea"),
    "invisible": ("\u200b", "\u200d", "\ufeff", "\ufe0f", "\u00ad", "\u2060", "\ufefftea"),
    "noncharacters": ("\ufffe", "\U0001ffff", "\ufffd", "\ue000", "\uffff"),
    "controls": ("\0", "\x1b[31m", "\x7f", "\x80", "tea\0time", "\x01", "\x08", "\x9f"),
    "white space": ("\n", "\r\n", "\t", "\u2028", "\r", "\x85", "\x0b", "\u00a0", "\u3000", "  ", "\x1c"),
    "quotes": ("'", '"', "`", "“茶”", "「茶」", "it's", 'say "tea"', "'unclosed", '"unclosed', "\"'`"),
    "backslashes": ("tea\\", "\\u", "\\x", "\\n", "\\", "\\u0041", "\\N{", "\\1", "C:\\new\\table"),
    "formats": ("{", "{0}", "%s", "100%", "}", "{}", "{x}", "%", "%d", "%(x)s", "%00", "%zz", "%E8%8C%B6"),
    "templates": ("${x}", "{{x}}", "{% x %}", "<%= x %>", "$x", "#{x}", "$1", "\\g<0>"),
    "markup": ("<img src=x>", "&amp;", "]]>", "**茶**", "<b>茶</b>", "&#0;", "<!--", "</script>", "# 茶"),
    "SQL": ("' OR '1'='1", "'; --", "%' OR 1=1 --", "a_b", "/* tea */", "'||'"),
    "regular expressions": (
        *("(", "[", "*", "+", ")", "]", "?", "^", "$", ".", "|"),
        *("a{2", "(?", "[z-a]", "c++"),
    ),
    "search syntax": ("AND", "type:style", "NOT tea", "-tea", "tea AND", "tea~2", "tea^2", "+tea", "NEAR("),
    "paths": ("../", "https://example.org/?a=1&b=2", "a@example.org", "/", "../../etc/hosts", "file.txt"),
    "shell": ("--help", ";", "$(x)", "~", "&", "|", "!", "#", "@tea"),
    "punctuation": ("?", "。", "？！，、；：", "...", "?!.,;:", "……", "——", "()", "-"),
    "words of a language": (
        *("null", "None", "undefined", "true", "false", "NaN", "Infinity", "nil", "[]"),
        *("[object Object]", "__proto__", "constructor", "toString", "0x10"),
    ),
    "other scripts": ("Привет", "おちゃ", "오늘", "สวัสดี", "नमस्ते", "Ελλάδα", "Malmö", "naïve"),
    "no memory": ("qzxvkjw", "量子色动力学重整化"),
}
"""Texts that are handled wrongly here and there, by kind, the most telling first; some are white space."""

HINTS = (
    "", "last week", "yesterday", "上周", "昨天", "2025-01", "long ago", "去年", "today", "now", "in 2019",
    "last month", "3 days ago", "三天前", "3天前", "十年前", "2025年1月", "2026-06-01T00:00:00Z",
    "between March and May", "next year", "上个月", "最近", "从来没有", "2025-02-30", "0000-00-00", "0", "-1",
    "99999999999 days ago", "asdf", "²天前", "😀", " ", "'", "(", "%s", "{}", "\\", "\n",
)  # fmt: skip
"""Times as people say them, and what is none."""

LIVE_IDS = (
    "1", "", "0", str(2**53 + 1), str(2**63 - 1), str(2**63), str(2**64 - 1), "1" + 19 * "0", "0001",
    "-1", "7f1b6c1e-3c39-4a53-9b0e-0a6a5a1d9f10", "live-α/1", "../1", "'",
)  # fmt: skip

REASONS = (
    "the user asks for it", "", "用户问到了以前的事", "it's \"needed\"", "a\\b\\", "two\nlines\r\n", "\0",
    "😀", "{} %s ${x} {{x}}", "' OR '1'='1", "<b>why</b>", "(", "null", "\u202e",
)  # fmt: skip

EXTRAS: dict[str, Any] = {
    "locale": "zh-CN",
    "turn": 3,
    "weight": 0.5,
    "debug": False,
    "trace": None,
    "tags": ["a", 1, None],
    "client": {"name": "live", "version": [1, 2]},
    "备注": "茶",
    "": "",
    "__proto__": {"x": 1},
    "limit": 1,
    "Query": "tea",
}
"""Fields that the contract does not know and does not forbid, with a value of each type of JSON."""

MOST_RESULTS = (1, 2, 3, 5, 16, 17, 20, 50, 100, 1000)

CHANGES: tuple[tuple[str, Any], ...] = (
    ("spaced", True),
    ("escaped", True),
    ("reverse", True),
    ("content_type", "application/json; charset=utf-8"),
    ("content_type", "Application/JSON"),
    ("accept", "Application/JSON"),
    ("accept", "application/json, */*;q=0.5"),
    ("names", "lower"),
    ("names", "upper"),
    ("user_agent", False),
    ("kept", False),
    ("framing", "chunked"),
    ("slices", 2),
    ("slices", 5),
)
"""Each attribute of a form with each value that is not plain."""


_ALONE = 4


def said(text: str) -> str:
    """Return a text as a query: what is white space only stands between words."""
    return text if text.strip() else f"tea{text}茶"


def boundary_cases() -> list[Case]:
    """Return the cases, the plainest first; no two of them are the same on the wire."""
    groups = (_plain(), _kinds(), _amounts(), _others(), _queries(), _hits(), _forms(), _extras(), _long())
    cases = {(case.content, case.form): case for group in groups for case in group}
    return list(cases.values())


def _asked(query: str = BROAD, *, form: Form = PLAIN, **fields: Any) -> Case:
    return Case({"query": query, **fields}, form)


def _plain() -> Iterator[Case]:
    for query in (*PHRASES[:2], BROAD, *PHRASES[2:], *WORDS[2:8], *WORDS[14:21]):
        yield _asked(query)


def _kinds() -> Iterator[Case]:
    """Every kind alone, in every pair, in both orders; all and none."""
    yield _asked(memory_types=[])
    for kind in MEMORY_TYPES:
        yield _asked(memory_types=[kind])
        yield _asked(kind)
    yield _asked(memory_types=list(MEMORY_TYPES))
    yield _asked(memory_types=list(reversed(MEMORY_TYPES)))
    for first, second in combinations(MEMORY_TYPES, 2):
        yield _asked(memory_types=[first, second])
        yield _asked(memory_types=[second, first])


def _amounts() -> Iterator[Case]:
    """Every amount, of all kinds and of some."""
    every, some = list(MEMORY_TYPES), list(MEMORY_TYPES[:3])
    for most in MOST_RESULTS:
        yield _asked(max_results=most)
        yield _asked(memory_types=every, max_results=most)
        yield _asked(memory_types=some, max_results=most)
    for kind, most in product(MEMORY_TYPES, (1, 100)):
        yield _asked(memory_types=[kind], max_results=most)


def _others() -> Iterator[Case]:
    """The fields that a provider may ignore."""
    yield from (_asked(live_id=live_id) for live_id in LIVE_IDS)
    yield from (_asked(reason=reason) for reason in REASONS)
    yield from (_asked(time_hint=hint) for hint in HINTS)
    yield _asked(live_id="1", reason=REASONS[0], memory_types=[], time_hint="", max_results=5)


def _queries() -> Iterator[Case]:
    """The most telling odd texts of each kind alone, the rest of the kind together."""
    for texts in ODD.values():
        yield from (_asked(said(text)) for text in texts[:_ALONE])
        if rest := " ".join(texts[_ALONE:]):
            yield _asked(said(rest))


def _hits() -> Iterator[Case]:
    """A query and a hint that both have something in common with a memory, the same one or others."""
    for word, hint in (("工作", "上周"), ("project", "last week"), ("喜欢", "昨天")):
        yield _asked(word, time_hint=hint)
        yield _asked(word, time_hint=hint, max_results=1)
        yield _asked(f"{word} {hint}", time_hint=hint, max_results=50)
    every_hint = " ".join(HINTS[1:12])
    yield _asked(time_hint=every_hint, max_results=50)
    yield _asked(every_hint, time_hint=every_hint, max_results=50)
    yield _asked(time_hint=BROAD, max_results=50)


def _forms() -> Iterator[Case]:
    """Every way to write a request, with all that may be in one."""
    full: dict[str, Any] = {"live_id": str(2**63), "memory_types": ["project", "history"], "max_results": 2}
    for name, value in CHANGES:
        form = PLAIN._replace(**{name: value})
        yield _asked(form=form, reason="用户问到了", time_hint="上周", **full)
    for form in (
        Form(spaced=True, reverse=True),
        Form(spaced=True, escaped=True),
        Form(framing="chunked", slices=5),
        Form(framing="chunked", names="lower", kept=False),
        Form(names="upper", content_type="application/json; charset=utf-8"),
    ):
        yield _asked(form=form, **full)
    for text in ("😀 茶", '"\\/\n\t"', "𠮷"):
        yield _asked(text, form=Form(escaped=True))
        yield _asked(text, form=Form(slices=5))
        yield _asked(text, form=Form(framing="chunked"))


def _extras() -> Iterator[Case]:
    for name, value in EXTRAS.items():
        yield _asked(**{name: value})


def _long() -> Iterator[Case]:
    for unit, times in (
        ("a", 60),
        ("啊", 60),
        ("tea ", 50),
        ("茶", 200),
        ("用户喜欢", 250),
        ("a", 2000),
        ("茶", 4100),
        ("a", 20_000),
        ("用户喜欢", 5000),
        ("😀", 1000),
        ("(", 500),
        ('"', 500),
    ):
        yield _asked(unit * times)
    yield _asked(60 * "a" + "!")
    yield _asked(" ".join(f"word{n}" for n in range(1500)))
    yield _asked("tea", reason="用户问到了" * 1000)
    yield _asked("tea", time_hint="last week " * 200)
    for form in (Form(framing="chunked"), Form(slices=5), Form(escaped=True)):
        yield _asked("用户喜欢" * 1000, form=form)
