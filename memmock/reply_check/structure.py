"""Whether a reply gives its conclusion first, and then two or three reasons, as far as its structure tells.

Reasons are told by marks: numbers, bullets, "first" and "second", "because" and what joins another reason to
it. A reply without any mark is given credit: the sentences after its first one count as reasons.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memmock.reply_check.prose import Prose, Span

FEWEST, MOST = 2, 3
"""How many reasons there should be [seed]."""


class Fault(NamedTuple):
    """What is wrong with the structure, and where in the original text."""

    says: str
    span: Span


def fault(prose: Prose) -> Fault | None:
    """Return what is wrong with a reply that should give a conclusion, then two or three reasons.

    Only the start of a very long reply is looked at, from shortly before its first letter. The reply has one.
    """
    cut = 0
    if len(prose.original) > _LOOKED_AT:
        begin = prose.first_letter
        start = Prose(prose.original[max(begin - _LED_BY, 0) : begin + _LOOKED_AT])
        if start.letters:
            prose, cut = start, max(begin - _LED_BY, 0)
    found = _fault(prose)
    if found is None:
        return None
    place = prose.original_span(*found.span)
    return Fault(found.says, Span(place.start + cut, place.end + cut))


def _fault(prose: Prose) -> Fault | None:
    """Return the fault, with its place in the folded text."""
    reasons = _Reasons.of(prose)
    text = prose.text
    if reasons.marked and not _says_something(text[: reasons.marked[0].start]):
        if reasons.conclusion_after:
            return Fault(
                "gives its reasons before the conclusion; the conclusion comes first", reasons.marked[0]
            )
        return Fault("starts with its reasons; a conclusion comes first", reasons.marked[0])
    if not reasons.marked and reasons.conclusion_after:
        return Fault(
            "gives its reasons before the conclusion; the conclusion comes first", prose.sentences[0]
        )
    if reasons.least > MOST:
        extra = reasons.marked[MOST] if len(reasons.marked) > MOST else reasons.marked[0]
        return Fault(f"gives {reasons.least} reasons; two or three are enough", extra)
    if reasons.most < FEWEST:
        given = "one reason" if reasons.most else "no reasons"
        place = reasons.marked[0] if reasons.marked else prose.sentences[-1]
        return Fault(f"gives {given} for its conclusion; there should be two or three", place)
    if not reasons.marked and reasons.most > _MOST_UNMARKED:
        says = "marks no reasons, as with 第一, 1. or because; two or three should follow the conclusion"
        return Fault(says, prose.sentences[min(1, len(prose.sentences) - 1)])
    return None


_MOST_UNMARKED = 6
_LOOKED_AT = 2_000
_LED_BY = 40
"""So many characters before the first letter are looked at too: they may be a bullet or a bracket."""


class _Reasons(NamedTuple):
    """The reasons of a reply.

    `marked` are their places; there are at `least` and at `most` so many, since not each sentence is
    plainly one.
    """

    marked: list[Span]
    least: int
    most: int
    conclusion_after: bool

    @classmethod
    def of(cls, prose: Prose) -> _Reasons:
        text = prose.text
        series = _series(text)
        if len(series) >= FEWEST:
            return cls(_up_to_next(series, text), len(series), len(series), _concludes(text, series[-1]))
        marks = _because(text)
        if series and (not marks or series[0] < marks[0]):
            marks = sorted({*series, *(mark for mark in marks if mark > series[0] + 8)})
        if not marks:
            return _unmarked(prose)
        places = _up_to_next(marks, text)
        more = sum(
            _may_be_reason(told)
            for sentence, told in _after_conclusion(prose)
            if not any(sentence.start <= mark < sentence.end for mark in marks)
        )
        headed = _HEADING.match(text, marks[0]) is not None
        least, most = len(marks) + more * headed, len(marks) + more + text.count("、", marks[0])
        if declared := _DECLARED.search(text):
            number = _NUMBERS[declared["zh"] or declared["zh2"] or declared["en"]]
            least, most = max(least, number), max(least, number)
        return cls(places, least, most, _concludes(text, marks[-1]))


def _unmarked(prose: Prose) -> _Reasons:
    """Return the reasons of a reply without marks: all that could be one, after the first sentence."""
    later = [told for _, told in _after_conclusion(prose)]
    first = prose.text[slice(*prose.sentences[len(prose.sentences) - len(later) - 1])]
    most = sum(
        1 + sum(bool(mark["joins"]) for mark in _BECAUSE.finditer(told))
        for told in later
        if _may_be_reason(told)
    )
    concludes = any(_CONCLUSION_LATE.match(told) for told in later) and not _ADVICE.search(first)
    return _Reasons([], 0, most + first.partition(":")[2].count(";"), concludes)


def _after_conclusion(prose: Prose) -> list[tuple[Span, str]]:
    """Return the sentences after the first one that is more than a greeting."""
    told = [(span, prose.text[slice(*span)]) for span in prose.sentences]
    return told[next((n for n, (_, text) in enumerate(told, 1) if not _is_opening(text)), len(told)) :]


def _is_opening(text: str) -> bool:
    return _OPENING.fullmatch(text) is not None or not _says_something(text)


def _series(text: str) -> list[int]:
    """Return where the items of the longest enumeration start; of the earliest, among equals."""
    best: list[int] = []
    for family in _FAMILIES:
        found: list[int] = []
        for mark in family.finditer(text):
            if _NOT_A_REASON.match(text, mark.end()):
                continue
            number = next((n for n, value in enumerate(mark.groups(), 1) if value is not None), 0)
            if number == len(found) + 1 or (found and number >= _LAST) or (family is _BULLETS):
                found.append(mark.start())
        if len(found) > len(best):
            best = found
    return best


def _because(text: str) -> list[int]:
    """Return where reasons start that are given with "because", and those that are joined to one."""
    marks: list[int] = []
    for mark in _BECAUSE.finditer(text):
        start = mark.start("mark")
        if mark["joins"] and not marks:
            continue
        if marks and start - marks[-1] < _SHORTEST_REASON:
            continue
        if mark["joins"] and _NOT_A_REASON.match(text, mark.end()):
            continue
        marks.append(start)
    return marks


def _up_to_next(starts: list[int], text: str) -> list[Span]:
    ends = [*starts[1:], len(text)]
    return [Span(start, min(_stop(text, start), end)) for start, end in zip(starts, ends, strict=True)]


def _stop(text: str, start: int) -> int:
    stop = _STOP.search(text, start + 4)
    return stop.end() if stop else len(text)


def _concludes(text: str, start: int) -> bool:
    return _CONCLUSION_ANYWHERE.search(text, start) is not None


def _says_something(text: str) -> bool:
    """Tell whether a text is more than a greeting, a heading or a promise of the form."""
    rest = _EMPTY_TALK.sub("", text)
    return len(re.findall(r"[^\W\d_]", _LEAD.sub("", rest))) >= _SHORTEST_CONCLUSION


_SHORTEST_CONCLUSION = 2
_SHORTEST_REASON = 3


def _may_be_reason(text: str) -> bool:
    return not (_CLOSING.search(text) or _STEP.match(text) or "?" in text or _CONCLUSION_LATE.match(text))


# ---- marks

_EDGE = r"(?:^|(?<=[\s。!?;:,.，、)\]】\"”]))"
_LAST = 7
"""The group that stands for the last item, whatever its number."""


def _family(*items: str, last: str = r"(?!)", edge: str = _EDGE) -> re.Pattern[str]:
    padded = [*items, *[r"(?!)"] * (_LAST - 1 - len(items))]
    return re.compile(edge + "(?:" + "|".join(f"({item})" for item in [*padded, last]) + ")", re.MULTILINE)


def _numbered(form: str, *names: str, edge: str = _EDGE) -> re.Pattern[str]:
    return _family(*(form.format(name) for name in names), edge=edge)


_BULLETS = re.compile(r"^ ?(?:([-•·*●▪◦‣➤✅👉→+])|([–—]) ) ?(?=\S)", re.MULTILINE)
_ZH = ("一", "二", "三", "四", "五", "六")
_GOES_ON = r"(?=[,:]| (?:reason|it|you|the|your|because|i|a)\b)"
_FAMILIES = (
    _numbered(r"\(?{}\s?(?:[.)](?![0-9])|、|:(?![0-9]))", *"123456", edge=r"(?<![0-9a-z.])"),
    _numbered(
        r"第{}(?:[,:、.\s是]|个?(?:理由|原因|点|条|,)|(?=[一-鿿]))"
        r"(?!次|时间|天|章|名|眼|反应|步|遍|回|杯|本|页|口|句)",
        *_ZH,
    ),
    _numbered(r"第{}(?:点|条|个)?(?:[,:、.]|理由|原因)", *"123456"),
    _numbered(r"\(?{}(?:、|\)|\.)", *_ZH),
    _numbered(r"其{}", *_ZH),
    _numbered(r"(?:理由|原因) ?{}", *_ZH),
    _numbered(r"(?:理由|原因) ?{}(?![0-9])", *"123456"),
    _numbered(r"{}(?:是|来|则|者)(?!个|种|说)", *_ZH),
    _family(
        r"首先|第一[,、:]|一方面",
        r"其次|另一方面|第二[,、:]|然后(?=[,、])",
        r"再次|再者|第三[,、:]|此外|另外|还有",
        r"还有|另外|此外|第四[,、:]",
        last=r"最后",
    ),
    _family(
        rf"first(?:ly)?(?: off| of all)?\b{_GOES_ON}|for one(?: thing)?,|one(?: reason)?[,:]|to begin with,"
        r"|to start,|(?:the )?first reason",
        rf"second(?:ly)?\b{_GOES_ON}|for another(?: thing)?,|two[,:]|next,|then,|also,"
        r"|(?:the )?(?:second|other) reason",
        rf"third(?:ly)?\b{_GOES_ON}|three[,:]|(?:the )?third reason",
        r"fourth(?:ly)?\b|four[,:]",
        r"fifth(?:ly)?\b|five[,:]",
        r"sixth(?:ly)?\b|six[,:]",
        last=r"(?:and )?finally,|last(?:ly)?(?: but not least| of all)?,|(?:the )?(?:last|final) reason",
    ),
    _numbered(r"\(?{}\)", *"abcdef"),
    _numbered(r"(?:reason|point) (?:number |#)?{}\b", *"123456"),
    _numbered(r"(?:reason|point) (?:number )?{}\b", "one", "two", "three", "four", "five", "six"),
    _BULLETS,
)
"""The ways to enumerate, each with a group for each of its items."""

_OPENS = (
    r"因为|由于|毕竟|不[仅但只光](?!如此|要|想|能|是)",
    r"(?:主要)?(?:理由|原因)(?:有[两二三四五六2-6一]?[个条点]?|很简单|是|在于|如下|呢)?[:,是]",
    r"(?:理由|原因)(?:是|在于)",
    r"为什么(?:呢|这么说|推荐)?[?:]|\bwhy\b[^.!?]{0,20}[?:]",
    r"\bbecause\b|\bsince (?=you|it|your|the|there)|\bdue to\b|\breasons?:",
    r"\bthe (?:main )?reasons?\b(?: is| are|:)?",
)
"""What opens a reason."""

_JOINS = (
    r"而且|并且|再加上|加上|况且|更何况|何况|再说|再者|另外|此外|还有|同时|不仅如此|顺便",
    r"也(?!许)|又(?!一)|还(?!是|没)|并(?=且|能|让|不|可)|;|but also",
    r"\band (?:because|since|also|it|you|your|the|there|a|they|that|will)\b",
    r"\band (?:helps?|keeps?|makes?|lets?|gives?)\b",
    r"\b(?:also|besides|plus|moreover|furthermore|what's more)\b",
    r"\b(?:in addition|on top of that|as well as|another)\b",
)
"""What joins another reason to one."""

_BECAUSE = re.compile(f"(?P<mark>{'|'.join(_OPENS)}|(?P<joins>{'|'.join(_JOINS)}))")
_DECLARED = re.compile(
    r"(?:(?:理由|原因)有(?P<zh>[两二三四五六2-6])|(?P<zh2>[两二三四五六2-6])[个条点](?:理由|原因)"
    r"|\b(?P<en>two|three|four|five|six) (?:\w+ )?reasons\b)"
)
_NUMBERS = {name: n for n, names in {2: "两 二 2 two", 3: "三 3 three", 4: "四 4 four", 5: "五 5 five",
                                     6: "六 6 six"}.items() for name in names.split()}  # fmt: skip
_HEADING = re.compile(r"(?:理由|原因|(?:the )?reasons?)[^,。.!?:]{0,8}:")
"""What follows are reasons, with a mark or without."""
_STOP = re.compile(r"[。!?;\n]|\.(?=\s|$)")

# ---- what stands around

_CONCLUSION = (
    r"(?:所以|因此|综上|总之|总的来说|结论(?:就是|是|:)|这样看来|看来|我的?建议(?:是|就是|:|你)?|建议你"
    r"|因而|于是|那就|therefore\b|thus\b|hence\b|in conclusion\b|so,? (?:i|my|tonight|just|try|go|let's"
    r"|you should|the|it's best|put|take|listen|turn|do|have|why not|conclusion)\b|so,|that's why\b|my "
    r"(?:advice|suggestion|conclusion)\b|conclusion:|all in all\b|to sum up\b|overall,|which is why\b"
    r"|the bottom line\b|in short\b)"
)
_CONCLUSION_LATE = re.compile(rf"^[\s\"“*-]*{_CONCLUSION}")
_CONCLUSION_ANYWHERE = re.compile(
    rf"(?:^|[。!?.,;:\n]\s?)(?:{_CONCLUSION})|,就?(?:早点|先|不如|今晚)|[,] (?:go|try|put|take|listen"
    r"|you should|i'd|just|let's|i suggest|i would)\b"
)
_ADVICE = re.compile(
    r"吧|建议|推荐|试试|最好|不如|可以|就好|就行|适合|先|别|去|要|听|泡|关|早点|结论|躺|写|喝|做|放下"
    r"|深呼吸|冲"
    r"|\b(?:try|take|go|put|listen|suggest|recommend|should|let's|have|do|best|turn|lie|drink|read"
    r"|write|just|conclusion|answer|make|stretch|breathe|dim|skip|soak|run|spend|play|close|leave|set"
    r"|keep|sit|give|warm)\b"
)
_CLOSING = re.compile(
    r"晚安|好梦|做个?(?:好|甜)|睡个好觉|我(?:会|就|都|一直)?(?:在|陪)|陪着?你|加油|辛苦|要不要|需要我"
    r"|随时|告诉我|祝你|好好(?:休息|睡)|明天见|慢慢来|试试看|放心"
    r"|\b(?:good ?night|sweet dreams|sleep (?:well|tight)|i'm (?:right )?here|let me know|rest well"
    r"|take care|see you|i'll be|hope (?:that|this|it) helps|want me|shall i|enjoy|you've got this)\b"
)
_STEP = re.compile(
    r"^\s*(?:先|再|然后|接着|之后|最后|接下来|随后)|^\s*(?:then|next|after that|afterwards|finally"
    r"|lastly|once)\b|.*吧[。!~]*\s*$"
)
_NOT_A_REASON = re.compile(
    r"[\s:,、是]*(?:\W?(?:结论|我的建议|建议|答案|总之|所以)[\W是]|conclusion|short answer|晚安|祝你?"
    r"|好梦|愿你|做个好梦|早点|记得|别忘|good ?night|sweet dreams|sleep well|my advice|the answer)"
)
_OPENING = re.compile(
    r"\W*(?:(?:好|好的|好呀|好啊|嗯|嗯嗯|当然|没问题|可以|收到|行|来啦|哈喽|嗨|晚上好|阿澈"
    r"|[^\W\d_]{1,3}|sure|okay|ok|of course|hi|hey|hello|alright|gladly|right|yes|good evening"
    r"|no problem|got it|absolutely|thanks)(?: thing| there)?(?:[\s,~!。.]+|$)){1,3}\W*"
)
_EMPTY_TALK = re.compile(
    r"[^。!?\n:,]{0,30}(?:(?:先|首先)[^。!?\n:,]{0,4}结论|结论(?:先|在前)|[按照依]?(?:照)?你喜欢的"
    r"(?:方式|格式|风格|习惯)|理由(?:如下|有|是)?|原因(?:如下|有|是)?|(?:几|两|三|二|四|五|[0-9])(?:个"
    r"|条|点)(?:建议|理由|原因|方法|步骤|小?建议))[^。!?\n:,]{0,30}(?=[,。:!?\n]|$)[,。:!?\n]?"
    r"|[^.!?\n:]{0,60}\b(?:conclusion first|the way you like|(?:my|the|two|three|a few|some|here are "
    r"(?:my|the|some|a few|two|three)) (?:reasons|tips|suggestions|steps|ideas)|here(?:'s| is) why"
    r"|reasons?|your favou?rite format)\b[^.!?\n:,]{0,60}[,.:!?\n]?"
)
_LEAD = re.compile(
    r"(?:好的?[呀啊哒呢]?|嗯+|当然|没问题|可以|收到|阿澈|哈喽|嗨|晚上好|那|今晚的?|关于今晚|先[说讲]|\b(?:sure"
    r"(?: thing)?|okay|ok|of course|hi|hey|hello|alright|well|gladly|right|yes|so|good evening"
    r"|no problem|a-?che|there)\b)(?=[\s,.~!。:、]|$)"
)
