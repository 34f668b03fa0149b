from __future__ import annotations

import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memmock import hits, ranking
from memmock.hits import Token, query_tokens, standing_alone, text_tokens
from memmock.ranking import Ranking

if TYPE_CHECKING:
    from collections.abc import Iterator

# ---- Tokens


def as_token(text: str) -> Token:
    """Return a token by how it is written here; `猫*` is a character that stands anywhere."""
    if text[0] < "\u1100":
        return text
    if text[1:] == "*":
        return ~ord(text[0])
    return ord(text[0]) | (ord(text[1]) << 32 if text[1:] else 0)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", set()),
        (" ，。!?… 🌙 _ \u200b", set()),
        ("Green tea", {"green", "tea"}),
        ("Ｇｒｅｅｎ　ＴＥＡ２", {"green", "tea2"}),
        ("STRASSE straße", {"strasse"}),
        ("cafe\u0301 café", {"café"}),
        ("x2 3.14", {"x2", "3", "14"}),
        ("it's e-mail", {"it", "s", "e", "mail"}),
        ("हिन्दी में", {"हिन्दी", "में"}),
        ("привет, мир", {"привет", "мир"}),
        ("猫", {"猫*"}),
        ("我的猫", {"我的", "的猫", "我", "的", "猫"}),
        ("猫，我的猫", {"我的", "的猫", "我", "的", "猫*"}),
        ("喵喵喵", {"喵喵", "喵"}),
        ("用Python写", {"用*", "python", "写*"}),
        ("ｶﾀｶﾅ", {"カタ", "タカ", "カナ", "カ", "タ", "ナ"}),
        ("スーパー・ひと", {"スー", "ーパ", "パー", "ひと", "ス", "ー", "パ", "ひ", "と"}),
        ("한국", {"한국", "한", "국"}),
        (unicodedata.normalize("NFD", "한국"), {"한국", "한", "국"}),
        ("𠮷野", {"𠮷野", "𠮷", "野"}),
        ("葛\U000e0100城", {"葛城", "葛", "城"}),
        ("♥\ufe0f爱", {"爱*"}),
        ("人々〇", {"人々", "々〇", "人", "々", "〇"}),
        ("\ud800a", {"a"}),
    ],
)
def test_query_tokens_are_words_and_pairs(text: str, tokens: set[str]) -> None:
    assert query_tokens(text, list) == set(map(as_token, tokens))


def test_query_tokens_hold_single_characters_that_a_text_has_alone() -> None:
    assert query_tokens("我的猫", standing_alone(map(ord, "猫狗"))) == set(
        map(as_token, ("我的", "的猫", "猫"))
    )


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Green tea", {"green", "tea"}),
        ("小猫", {"小猫", "小*", "猫*"}),
        ("猫", {"猫", "猫*"}),
        ("用Python写", {"用", "用*", "python", "写", "写*"}),
    ],
)
def test_text_tokens_hold_each_character_alone_and_anywhere(text: str, tokens: set[str]) -> None:
    assert text_tokens(text) == set(map(as_token, tokens))


# ---- The order

FEW, MANY, MANY_AND_RARE = "few", "many", "many, with rare tokens"


@contextmanager
def way(name: str) -> Iterator[None]:
    """Make `Ranking` take the given way for any number of memories."""
    with pytest.MonkeyPatch.context() as patch:
        if name != FEW:
            patch.setattr(ranking, "_FEW", -1)
            patch.setattr(hits, "_RARE", 2 if name == MANY_AND_RARE else 10**9)
        yield


every_way = pytest.mark.parametrize("name", [FEW, MANY, MANY_AND_RARE])


class Entry(NamedTuple):
    summary: str
    keywords: tuple[str, ...] = ()
    type: str = "other"


def rank(entries: list[Entry]) -> Ranking:
    return Ranking(*([entry[field] for entry in entries] for field in range(3)))  # type: ignore[arg-type]


@every_way
@pytest.mark.parametrize(
    ("query", "hint", "entries", "order"),
    [
        ("", "", [Entry("a"), Entry("b")], [0, 1]),
        ("x", "", [Entry("a"), Entry("b")], [0, 1]),
        ("b", "", [Entry("a"), Entry("b"), Entry("c")], [1, 0, 2]),
        ("a", "", [Entry("a"), Entry("x", ("a",))], [1, 0]),
        ("a b", "", [Entry("x", ("a",)), Entry("a b")], [0, 1]),
        ("a b c", "", [Entry("x", ("a",)), Entry("a b c")], [1, 0]),
        ("a", "b", [Entry("x", ("b",)), Entry("a")], [1, 0]),
        ("a", "b", [Entry("b"), Entry("x", ("b",)), Entry("x", ("a",)), Entry("a")], [2, 3, 1, 0]),
        ("", "上周", [Entry("昨天"), Entry("上周去了"), Entry("x", ("上周",))], [2, 1, 0]),
        ("a a a", "", [Entry("a"), Entry("a a a")], [0, 1]),
        ("a b", "", [Entry("a a a"), Entry("a b")], [1, 0]),
        ("ab", "", [Entry("x", ("a", "b")), Entry("ab")], [1, 0]),
        ("猫狗", "", [Entry("x", ("猫", "狗")), Entry("猫狗")], [0, 1]),
        ("小猫", "", [Entry("大", ("大小", "猫咪")), Entry("小猫")], [1, 0]),
        ("猫", "", [Entry("小狗"), Entry("小猫")], [1, 0]),
        ("我的猫", "", [Entry("小猫"), Entry("x", ("猫",))], [1, 0]),
        ("ＴＥＡ", "", [Entry("x"), Entry("Green tea")], [1, 0]),
    ],
)
def test_order_is_by_hits_then_place(
    name: str, query: str, hint: str, entries: list[Entry], order: list[int]
) -> None:
    with way(name):
        assert rank(entries).best(query, time_hint=hint, count=9) == order


@every_way
@pytest.mark.parametrize(
    ("types", "numbers"),
    [
        (None, [0, 1, 2, 3]),
        ((), [0, 1, 2, 3]),
        (("style",), [1]),
        (("style", "profile"), [0, 1, 3]),
        (("style", "style"), [1]),
        (("project",), []),
        (("no such type", "style"), [1]),
    ],
)
def test_types_filter(name: str, types: tuple[str, ...] | None, numbers: list[int]) -> None:
    entries = [Entry("a", (), kind) for kind in ("profile", "style", "other", "profile")]
    with way(name):
        assert rank(entries).best("a", types=types, count=9) == numbers


@every_way
@pytest.mark.parametrize("count", [-1, 0, 1, 31, 32, 33, 50, 10**12])
def test_count_cuts(name: str, count: int) -> None:
    with way(name):
        assert rank([Entry("a")] * 50).best("a", count=count) == list(range(50))[: max(count, 0)]


@every_way
def test_nothing_to_rank_gives_nothing(name: str) -> None:
    with way(name):
        assert rank([]).best("a 猫", types=["style"], time_hint="b", count=5) == []
        assert rank([]).best("", count=5) == []


@pytest.mark.parametrize("size", [255, 256, 2000])
def test_best_is_found_among_many(size: int) -> None:
    entries = [Entry(f"word{n} common", (f"key{n % 7}",)) for n in range(size)]
    assert rank(entries).best(f"common word{size - 1}", count=3) == [size - 1, 0, 1]
    assert rank(entries).best("key3 common", count=3) == [3, 10, 17]


def test_long_query_counts_each_token_once() -> None:
    entries = [Entry("a b"), Entry("a c")]
    assert rank(entries).best("a c " * 50_000 + "未知" * 50_000, count=2) == [1, 0]


# ---- The same as the plainest way to do it

CJK = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL")
TYPES = ("preference", "style", "other")
texts = st.text(alphabet="aAａb茶猫猫小カｶ한Ⅳ1\u0301 ，", max_size=8)
entry_lists = st.lists(
    st.builds(Entry, texts, st.lists(texts, max_size=3).map(tuple), st.sampled_from(TYPES)), max_size=20
)
type_lists = st.none() | st.lists(st.sampled_from((*TYPES, "unknown")), max_size=3)


def plain_runs(text: str) -> tuple[list[str], list[str]]:
    """Return the words and the CJK runs, by looking at one character after another."""
    runs: dict[bool, list[str]] = {True: [], False: []}
    last = None
    for char in unicodedata.normalize("NFKC", text).casefold():
        if unicodedata.category(char)[0] not in "LNM":
            last = None
            continue
        is_cjk = unicodedata.name(char).startswith(CJK)
        if is_cjk == last:
            runs[is_cjk][-1] += char
        else:
            runs[is_cjk].append(char)
        last = is_cjk
    return runs[False], runs[True]


def plain_hits(query: str, text: str) -> int:
    words, runs = plain_runs(query)
    text_words, text_runs = plain_runs(text)
    count = len(set(words) & set(text_words))
    pairs = {run[n : n + 2] for run in runs for n in range(len(run) - 1)}
    count += sum(any(pair in run for run in text_runs) for pair in pairs)
    for char in set("".join(runs)):
        if char in runs:
            count += any(char in run for run in text_runs)
        else:
            count += char in text_runs
    return count


def plain_best(entries: list[Entry], query: str, types: list[str] | None, hint: str, count: int) -> list[int]:
    def score(number: int) -> int:
        summary, keywords, _ = entries[number]
        words = " ".join(keywords)
        return (
            8 * plain_hits(query, words)
            + 4 * plain_hits(query, summary)
            + 2 * plain_hits(hint, words)
            + plain_hits(hint, summary)
        )

    wanted = [number for number, entry in enumerate(entries) if not types or entry.type in types]
    return sorted(wanted, key=score, reverse=True)[:count]


@every_way
@given(entries=entry_lists, query=texts, types=type_lists, hint=texts, count=st.integers(0, 40))
def test_best_equals_the_plain_way(
    name: str, entries: list[Entry], query: str, types: list[str] | None, hint: str, count: int
) -> None:
    with way(name):
        found = rank(entries).best(query, types=types, time_hint=hint, count=count)
    assert found == plain_best(entries, query, types, hint, count)


@every_way
@given(entries=entry_lists, query=texts, types=type_lists, hint=texts, count=st.integers(0, 20))
def test_fewer_results_are_the_first_of_more(
    name: str, entries: list[Entry], query: str, types: list[str] | None, hint: str, count: int
) -> None:
    with way(name):
        ranked = rank(entries)
    more = ranked.best(query, types=types, time_hint=hint, count=count + 1)
    assert ranked.best(query, types=types, time_hint=hint, count=count) == more[:count]


@every_way
@given(entries=entry_lists, query=texts, types=st.lists(st.sampled_from(TYPES), min_size=1))
def test_fewer_types_keep_the_order_of_the_rest(
    name: str, entries: list[Entry], query: str, types: list[str]
) -> None:
    with way(name):
        ranked = rank(entries)
    of_all = ranked.best(query, count=99)
    narrowed = [number for number in of_all if entries[number].type in types]
    assert ranked.best(query, types=types, count=99) == narrowed
    assert ranked.best(query, types=types[::-1], count=99) == narrowed
