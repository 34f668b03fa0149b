"""`memmock reply-check` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from memmock.cli.reply_check import command


def run(*options, code, stdin=None):
    result = CliRunner().invoke(command, [*map(str, options)], input=stdin)
    assert result.exit_code == code, result.output
    return result


def test_good_reply_exits_with_0():
    assert run("我记得，你喜欢我叫你阿澈。", "--remembers", "阿澈", code=0).output == "no flaws\n"


def test_flaw_is_shown_with_marks_below_the_place():
    assert run("嗯，我调用了 API，你叫阿澈。", code=1).output == (
        "machinery: the reply tells that a tool or an interface was used; a character just remembers\n"
        "  嗯，我调用了 API，你叫阿澈。\n"
        "      ^^^^^^^^^^^^\n"
        "\n"
        "1 flaw\n"
    )


def test_missing_point_has_no_place():
    output = run("你好呀。", "--remembers", "阿澈", "--remembers", "月亮醒了", code=1).output
    assert output == (
        "missing: the memory point “阿澈” is not in the reply\n"
        "\n"
        "missing: the memory point “月亮醒了” is not in the reply\n"
        "\n"
        "2 flaws\n"
    )


def test_unsure_point_that_is_stated_is_shown():
    assert "stated: “纸质书”" in run("你喜欢纸质书。", "--unsure", "纸质书", code=1).output


@pytest.mark.parametrize(
    ("number", "reply"),
    [
        (1, "你喜欢我叫你阿澈。"),
        (2, "暗号是“月亮醒了”。"),
        (3, "听雨声吧。第一，没有人声；第二，你听着睡得快。"),
    ],
)
def test_demo_takes_the_point_of_its_row(number, reply):
    run(reply, "--demo", number, code=0)
    run("我记得呀。", "--demo", number, code=1)


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_reply_is_read_from_standard_input(arguments):
    run(*arguments, "--demo", 1, stdin="你叫阿澈。\n", code=0)


def test_reply_is_read_from_a_file(tmp_path):
    file = tmp_path / "reply.txt"
    file.write_text("\ufeff你叫阿澈。\n", encoding="utf-8")
    run("--file", file, "--demo", 1, code=0)


def test_json_holds_the_flaws():
    (flaw,) = json.loads(run("在 m002 里。", "--format", "json", code=1).output)["flaws"]
    assert (flaw["kind"], flaw["quote"], flaw["start"], flaw["end"]) == ("machinery", "m002", 2, 6)
    assert json.loads(run("晚安。", "--format", "json", code=0).output) == {"flaws": []}


def test_place_in_a_long_line_is_shown_with_a_little_around_it():
    shown = run(f"{'很久以前。' * 30}在 m002 里{'，很久以后' * 30}", code=1).output.splitlines()
    assert shown[1].strip().startswith("…")
    assert shown[1].endswith("…")
    assert shown[1].encode("gbk").index(b"m002") - shown[2].index("^") == 1  # an ellipsis takes one column


def test_long_place_is_shortened():
    shown = run(f"你喜欢{'纸质书和' * 40}", "--unsure", "纸质书", code=1).output.splitlines()
    assert shown[1].endswith("…")
    assert len(shown[2].strip()) == 121


def test_only_the_line_of_the_place_is_shown():
    shown = run("早安。\n我调用了 API\r\n晚安。", code=1).output.splitlines()
    assert shown[1:3] == ["  我调用了 API", "  ^^^^^^^^^^^^"]


def test_characters_that_a_terminal_obeys_are_not_printed():
    assert "\x1b" not in run("\x1b[31m我调用了 API\x07", code=1).output


def test_only_the_first_fifty_flaws_are_shown_as_text():
    reply = "我查了一下数据库，" * 20_000
    output = run("-", stdin=reply, code=1).output
    assert output.count("machinery: ") == 50
    flaws = json.loads(run("-", "--format", "json", stdin=reply, code=1).output)["flaws"]
    assert output.splitlines()[-1] == (
        f"{len(flaws)} flaws, {len(flaws) - 50} more than are shown; --format json prints them all"
    )


def test_fifty_flaws_are_all_shown():
    output = run("m002。" * 50, code=1).output
    assert (output.count("machinery: "), output.splitlines()[-1]) == (50, "50 flaws")


@pytest.mark.parametrize("form", ["text", "json"])
def test_half_of_a_surrogate_pair_is_printed_in_another_form(form):
    output = run("我调用了\udcff API", "--remembers", "阿\udcff澈", "--format", form, code=1).output
    assert ("\\udcff" if form == "json" else "\ufffd") in output


def test_empty_text_is_a_flaw():
    assert "the reply is empty" in run("", code=1).output


@pytest.mark.parametrize(
    ("options", "stdin", "message"),
    [
        (("--demo", "4"), "x", "4 is not in the range 1<=x<=3"),
        (("x", "--file", __file__), None, "give the reply as TEXT or with --file, not both"),
        (("--file", "nowhere.txt"), None, "No such file or directory"),
        pytest.param(
            ("--file", "/proc/self/mem"),
            None,
            "cannot read the reply: ",
            marks=pytest.mark.skipif(
                not Path("/proc/self/mem").exists(), reason="there is no file that cannot be read"
            ),
        ),
        (("-",), b"\xff\xfe", "the reply is not UTF-8 (at byte 0)"),
    ],
)
def test_usage_error_exits_with_2(options, stdin, message):
    assert message in run(*options, stdin=stdin, code=2).stderr


def test_terminal_without_a_reply_is_a_usage_error(monkeypatch):
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    assert "on standard input" in run(code=2).stderr
