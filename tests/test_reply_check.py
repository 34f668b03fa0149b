"""What a digital human says after a retrieval, judged; the tables of replies are in fixtures/replies."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import pytest
import yaml

from memmock.demo import DEMO
from memmock.errors import MemmockError
from memmock.reply_check import CONCLUSION_THEN_REASONS, Flaw, check_reply

REPLIES = Path(__file__).parent.parent / "fixtures" / "replies"
GOOD, BAD, MORE = (
    yaml.safe_load((REPLIES / f"{name}.yaml").read_text("utf-8")) for name in ("good", "bad", "more")
)


def named(cases):
    return [pytest.param(case, id=case["name"]) for case in cases]


def flaws_of(case):
    return check_reply(case["reply"], case.get("remembers", ()), case.get("unsure", ()))


@pytest.mark.parametrize("case", named(GOOD))
def test_good_reply_has_no_flaw(case):
    assert flaws_of(case) == []


@pytest.mark.parametrize("case", named(BAD))
def test_bad_reply_has_its_flaws_quoted(case):
    found = flaws_of(case)
    assert [flaw.kind for flaw in found] == [flaw["kind"] for flaw in case["flaws"]]
    for flaw, expected in zip(found, case["flaws"], strict=True):
        assert flaw.quote == expected.get("quote", flaw.quote)


@pytest.mark.parametrize("case", [pytest.param(case, id=f"line {n}") for n, case in enumerate(MORE, 2)])
def test_reply_of_the_long_table_has_the_kinds_of_flaws_that_are_listed(case):
    assert [flaw.kind for flaw in flaws_of(case)] == case.get("flaws", [])


@pytest.mark.parametrize("case", named(GOOD + BAD))
def test_quote_is_what_stands_between_start_and_end(case):
    for flaw in flaws_of(case):
        assert case["reply"][flaw.start : flaw.end] == flaw.quote


@pytest.mark.parametrize("kind", ["missing", "machinery", "stated", "structure"])
def test_tables_show_every_kind(kind):
    assert any(flaw["kind"] == kind for case in BAD for flaw in case["flaws"])


def test_point_of_the_third_demo_row_means_the_structure():
    point = DEMO[2].point
    assert check_reply("听雨声吧。因为没有人声，而且你听着睡得快。", [point]) == []
    assert check_reply("先给结论，再补充两三条理由。", [point])[0].kind == "structure"


def test_name_of_the_structure_may_be_written_freely():
    assert check_reply("早点睡。", [CONCLUSION_THEN_REASONS.upper().replace(",", "")])[0].kind == "structure"


def test_flaws_are_the_missing_points_and_then_the_others_in_order():
    found = check_reply("你喜欢纸质书。我查了数据库。", ["阿澈", "月亮醒了"], ["纸质书"])
    assert [flaw.kind for flaw in found] == ["missing", "missing", "stated", "machinery"]


def test_flaw_says_what_is_wrong_and_is_told_as_data():
    assert check_reply("嗯，我调用了 API。", ["阿澈"]) == [
        Flaw("missing", "the memory point “阿澈” is not in the reply"),
        Flaw(
            "machinery",
            "the reply tells that a tool or an interface was used; a character just remembers",
            quote="我调用了 API", start=2, end=10,
        ),
    ]  # fmt: skip
    assert Flaw("missing", "why").to_json() == {
        "kind": "missing", "message": "why", "quote": "", "start": 0, "end": 0,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", " \n", "……！", "🌙", "\u200b"])
def test_empty_reply_is_one_flaw_that_says_so(text):
    assert check_reply(text, ["阿澈"], ["纸质书"]) == [
        Flaw("missing", "the reply is empty: it has no letter or digit")
    ]


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("月亮 醒了！", "月亮醒了"),
        ("月，亮\n醒*了*", "月亮醒了"),
        ("ＡＣＨＥ！", "ache"),
        ("cafe\u0301", "Café"),
        ("ﬁsh", "fish"),
        ("moon light", "moonlight"),
        ("a\u200bche", "Ache"),
        ("8,000 yuan", "8000"),
        ("한국", "\u1112\u1161\u11ab국"),
    ],
)
def test_point_is_found_whatever_its_form(text, point):
    assert check_reply(text, [point]) == []


@pytest.mark.parametrize(
    ("text", "point"), [("steak", "tea"), ("18000", "8000"), ("80001", "8000"), ("teapot", "tea")]
)
def test_point_is_not_found_inside_of_a_longer_word(text, point):
    assert [flaw.kind for flaw in check_reply(text, [point])] == ["missing"]


def test_quote_keeps_what_folding_leaves_out():
    (flaw,) = check_reply("嗯。我  **调用**\u200b了 `API` 呢。")
    assert flaw.quote == "我  **调用**\u200b了 `API"


def test_quote_has_no_white_space_around_it():
    (flaw,) = check_reply("\n \n 你喜欢纸质书。 \n", unsure=["纸质书"])
    assert flaw.quote == "你喜欢纸质书。"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None,), "the reply must be a text, not NoneType"),
        ((b"ok",), "the reply must be a text, not bytes"),
        (("ok", "阿澈"), "remembers must be a list of texts, not one text"),
        (("ok", None), "remembers must be a list of texts, not NoneType"),
        (("ok", [1]), "a point of remembers must be a text, not int"),
        (("ok", (), ["！"]), "a point of unsure must have a letter or digit, not '！'"),
    ],
)
def test_wrong_argument_is_named(arguments, message):
    with pytest.raises(MemmockError, match=f"^{message}$"):
        check_reply(*arguments)


LEADS = [
    ",",
    " ",
    "\n",
    "\r\n",
    "。",
    ".",
    "…",
    "🌙",
    "\ud83c",
    "\u200b",
    "\ufe0f",
    "\u0301",
    "- ",
    "“",
    "《",
    "*",
    "`",
]


@pytest.mark.parametrize("lead", LEADS, ids=ascii)
def test_reply_after_many_leading_units_is_judged_as_without_them(lead):
    start = perf_counter()
    reply = lead * 20_000 + "你喜欢纸质书。"
    found = check_reply(reply, ["阿澈", CONCLUSION_THEN_REASONS], ["纸质书"])
    assert [flaw.kind for flaw in found if flaw.kind != "machinery"] in (
        ["missing", "stated", "structure"],
        ["missing", "structure", "stated"],
    )
    assert all(flaw.quote == reply[flaw.start : flaw.end] != "" for flaw in found[1:])
    assert perf_counter() - start < 5


def test_good_reply_after_many_leading_units_has_no_flaw():
    reply = "，" * 20_000 + "阿澈，听雨声吧。第一，没有人声；第二，你听着睡得快。"
    assert check_reply(reply, ["阿澈", CONCLUSION_THEN_REASONS], ["纸质书"]) == []


def test_place_of_a_structure_after_many_leading_units_is_in_the_whole_reply():
    (flaw,) = check_reply("，" * 20_000 + "第一，你累了。第二，很晚了。", [CONCLUSION_THEN_REASONS])
    assert (flaw.start, flaw.quote) == (20_000, "第一，你累了。")


def test_many_items_in_one_sentence_are_a_fault_of_structure():
    (flaw,) = check_reply("早点睡：a；b；c；d；e；f；g；h；i", [CONCLUSION_THEN_REASONS])
    assert flaw.kind == "structure"


def test_code_that_was_asked_for_is_no_machinery():
    reply = 'Here you are:\n```python\nquery = {"id": user_id, "memory_types": []}\n```\nSleep well!'
    assert check_reply(reply) == []


def test_json_in_a_block_of_code_is_machinery():
    assert check_reply('```json\n{"memories": []}\n```') != []


@pytest.mark.parametrize(
    "part",
    [
        "我",
        "我一个",
        "刚",
        "let me ",
        "the api ",
        ". ",
        "因为",
        "1.",
        "纸质书",
        "'a ",
        "《",
        "```",
        "我查了数据库，",
        "```a```我查了数据库，",
    ],
)
def test_hostile_reply_takes_little_time(part):
    start = perf_counter()
    check_reply(part * 2000, ["阿澈", CONCLUSION_THEN_REASONS], ["纸质书"])
    assert perf_counter() - start < 5
