"""Signs that a reply tells of the machinery behind it: tools, interfaces, stores, raw data, instructions.

The names of machinery are ordinary words too: a user builds APIs, mends things with tools, studies
databases. So a word alone is no sign. What counts is a construction in which it works for the one who
speaks: *I* called it, *it* returned something about the user, a memory is *in* it. A construction that could
as well be about the user's own work is let pass where the reply has been speaking of that.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from memmock.reply_check import machinery_en, machinery_zh
from memmock.reply_check.prose import Span, clauses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memmock.reply_check.prose import Prose


class Sign(NamedTuple):
    """A place that tells of machinery, and what it tells."""

    says: str
    span: Span


_RAW = {
    "shows raw data": (
        r"""\{\s*["'](?:memories|summary|id|type|ok|error|query|reason|tool|function|name|arguments|live_id)["']\s*:[^\n}\]]{0,60}""",
        r"""["'](?:memories|summary|confidence|updated_at|source|memory_types)["']\s*:""",
        r"```\s*json|<\|?/?(?:tool|function)[a-z_]*\|?>?|\[/?tool[a-z_ ]*\]",
        r"(?<![a-z_])(?:confidence|updated_at|source|type|summary|ok|status)\s*[:=]\s*"
        r"(?:[01]\.[0-9]+|true|false|long_term_memory|explicit_user_statement"
        r"|[0-9]{4}-[0-9]{2}-[0-9]{2}t[0-9:+]+)",
    ),
    "shows the name of a field or a function": (
        r"(?<![a-z0-9_])(?:memory_types?|memory_ids?|live_id|user_id|character_id|max_results|time_hint"
        r"|updated_at"
        r"|has_more|timeout_ms|tool_calls?|function_calls?|tool_results?|builtin_avatars|conversation_summary"
        r"|long_term_memory|explicit_user_statement|response_too_large|connection_failed|invalid_response"
        r"|invalid_json|http_error|rate_limited|internal_error|[a-z]+_memor(?:y|ies)|memor(?:y|ies)_[a-z_]+)"
        r"(?![a-z0-9_])",
    ),
    "shows the id of a memory": (
        r"(?<![a-z0-9_-])m0[0-9]{2,3}(?![a-z0-9_-])",
        r"(?:\bid|memory|记忆|编号)\s?[:#]?\s?\(?m?[0-9]{3,4}(?![0-9年]|\s?(?:times|years|days))",
        r"\(m[0-9]{3,4}\)",
    ),
}
"""Never in what a character says, whatever it speaks of."""


class _Pattern(NamedTuple):
    says: str
    find: re.Pattern[str]
    firm: bool
    """It tells of the speaker's own machinery, also where the reply speaks of the user's work."""
    needs: re.Pattern[str]
    """A letter of its language: without one in a sentence there is no need to search it."""


@cache
def _patterns() -> list[_Pattern]:
    latin, chinese = re.compile("[a-z]"), re.compile("[一-鿿]")
    made = [_Pattern(says, re.compile("|".join(forms)), True, latin) for says, forms in _RAW.items()]
    for language, needs in ((machinery_zh, chinese), (machinery_en, latin)):
        for firm, table in ((True, language.FIRM), (False, language.LOOSE)):
            for says, forms in table.items():
                made += [_Pattern(says, re.compile(form), firm, needs) for form in forms]
    return made


@cache
def _needs() -> set[re.Pattern[str]]:
    return {pattern.needs for pattern in _patterns()}


def signs(prose: Prose) -> Iterator[Sign]:
    """Yield what tells of machinery, in the order of the text, no place twice."""
    found = []
    code = [Span(*match.span()) for match in _CODE.finditer(prose.text)]
    starts = [block.start for block in code]
    for number, sentence in enumerate(prose.sentences):
        there = {needs for needs in _needs() if needs.search(prose.text, *sentence)}
        for pattern in _patterns():
            if pattern.needs not in there:
                continue
            for match in pattern.find.finditer(prose.text, sentence.start, sentence.end):
                span = Span(
                    match.start("what") if "what" in match.groupdict() else match.start(), match.end()
                )
                block = bisect_right(starts, span.start) - 1
                if block >= 0 and span.start < code[block].end:
                    continue
                if not _is_excused(prose, number, span, firm=pattern.firm):
                    found.append(Sign(pattern.says, span))
    end = 0
    for sign in sorted(found, key=lambda sign: (sign.span.start, -sign.span.end)):
        if sign.span.start >= end:
            yield sign
            end = sign.span.end


def _is_excused(prose: Prose, number: int, span: Span, *, firm: bool) -> bool:
    """Tell whether a construction is a title, somebody else's words, or about somebody else's machinery."""
    sentence = prose.sentences[number]
    before = prose.text[sentence.start : span.start]
    if before.rfind("《") > before.rfind("》"):
        return True
    if _quotes(before) and _OTHERS_WORDS.search(before):
        return True
    if _DENIED.search(before):
        return True
    if firm:
        return False
    clause = next(part for part in clauses(prose.text, sentence) if part.end > span.start)
    within = prose.text[clause.start : span.start]
    up_to_end = prose.text[clause.start : max(clause.end, span.end)]
    earlier = prose.text[prose.sentences[max(number - 2, 0)].start : sentence.start]
    return bool(
        _SUPPOSED.search(within)
        or any(subject.start() < len(within) for subject in _OTHER_SUBJECT.finditer(up_to_end))
        or _THEIR_WORK.search(before)
        or _THEIR_TRADE.search(earlier + before)
    )


def _quotes(before: str) -> bool:
    """Tell whether a quotation is open at the end of a text."""
    return (
        before.rfind("“") > before.rfind("”")
        or before.rfind("「") > before.rfind("」")
        or before.count('"') % 2 == 1
        or re.search(r"(?:^|[\s:,(])'[^']*$", before) is not None
    )


_CODE = re.compile(r"```(?! ?json)[^`]{0,5000}(?:```|$)")
"""A block of code that the user may have asked for."""

_OTHERS_WORDS = re.compile(
    r"你|您|他|她|老师|写着|书名|歌名|片名|叫做?|\b(?:you|he|she|they|your|his|her|their|titled?|says?"
    r"|said|called|named|reads?)\b"
)
_DENIED = re.compile(
    r"(?:不是|没有?|并没|才不|不用|不需要|不靠|无需|用不着|不会(?:去)?|别以为|何必)(?:什么|因为|靠|去"
    r"|在|用|一个|从|我|有)*$"
    r"|\b(?:not|n't|never|without|no need to|rather than|instead of)(?: (?:because|that|just|even|some"
    r"|a|an|the|any|have to"
    r"|need to|from|by|in|like|really|ever|kind of|sort of))*\s*$"
)
_SUPPOSED = re.compile(
    r"(?:如果|要是|假如|一旦|万一|倘若|每当|若)|\b(?:if|when|whenever|in case|unless|once)\b"
)
_OWNED_BY_USER = (
    r"(?:喜好|偏好|昵称|记忆|记录|信息|资料|名字|暗号|习惯|生日|数据|需求|问题|画像|称呼|约定|猫|事)"
)
_OTHER_SUBJECT = re.compile(
    r"(?<![为帮给替对向跟关于把让])(?:你|您|他|她|它)们?(?!的[^,]{0,6}" + _OWNED_BY_USER + ")"
    r"|老周|同事|妹妹|公司|客户|领导|老板|主角|机器人|故事里"
    r"|\b(?:your(?! (?:nick|name|preference|memor|profile|record|data|info|detail|birthday|password"
    r"|favou?rite|answer|history|past"
    r"|likes|habits|tastes))|his|her|their|robot|hero|story)\b|\b(?:you|he|she|they)\b(?! (?:like|love"
    r"|prefer|are|were|want|told)\b)"
)
_THEIR_WORK = re.compile(
    r"(?:你|您|他|她)们?(?:[^,。]{0,8})(?:说|提|讲|写|做|聊|抱怨|吐槽|修|调试|改|部署|学|上班|排查|开发"
    r"|搭|测)"
    r"|\b(?:you|he|she|they)(?:'re|'ve|'d)?(?: \w+){0,3}? (?:said|mention\w*|complain\w*|wrote|writ\w+"
    r"|buil[dt]\w*|debug\w*"
    r"|fix\w*|work\w*|test\w*|spent|stayed|hate|hated|deploy\w*|ship\w*|maintain\w*|design\w*|study\w*"
    r"|learn\w*|code\w*|run|ran)\b"
)
_THEIR_TRADE = re.compile(
    r"(?:你|您|他|她|老周|同事|妹妹)[^。!?]{0,20}(?:代码|程序|项目|bug|上线|开发|工程师|后端|前端|部署"
    r"|事故|面试|论文|运维"
    r"|测试|作业|考试|架构|线上|脚本|网站|app)"
    r"|\b(?:you|your|he|she|his|her)\b[^.!?]{0,60}\b(?:code|coding|programm\w+|engineer\w*|deploy\w*"
    r"|app|bug|bugs|outage"
    r"|incident|backend|startup|website|script|thesis|interview|production|on-call|developer|project"
    r"|homework|exam)\b"
)
