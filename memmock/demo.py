"""The demo of character 01 (灵绯): three questions whose answers show that it remembers [seed]."""

from __future__ import annotations

from typing import NamedTuple


class DemoQuestion(NamedTuple):
    """One row of the demo: first the query to the provider, then the question to the digital human.

    `point` is what must be plain in the reply; `words` are the parts of it that the memory must hold.
    """

    query: str
    question: str
    point: str
    words: tuple[str, ...]

    def found_in(self, summary: str) -> bool:
        """Tell whether a memory with this summary holds the point."""
        return all(word in summary for word in self.words)


DEMO = (
    DemoQuestion("用户喜欢灵绯怎么称呼自己", "你还记得我喜欢你怎么叫我吗？", "阿澈", ("阿澈",)),
    DemoQuestion("用户和灵绯之前约定的暗号", "我们之前约定的暗号是什么？", "月亮醒了", ("月亮醒了",)),
    DemoQuestion(
        "用户喜欢灵绯用什么格式给建议",
        "按我喜欢的方式，给我一个今晚睡前放松建议。",
        "先给结论，再补充两三条理由",
        ("先给结论", "理由"),
    ),
)
