"""Whether a sentence asks or doubts what it holds, or states it as a fact.

A question mark alone does not do: “你喜欢纸质书，今晚想看哪一本？” asks for something else and takes the
memory for granted. Nor does a doubt about something else: "You prefer paper books, so maybe we could go to a
shop."
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memmock.reply_check.prose import Span, clauses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memmock.reply_check.prose import Prose


def stated(prose: Prose, point: Prose) -> Iterator[Span]:
    """Yield each sentence that states a memory point as a fact, as a place of the folded text."""
    told: set[int] = set()
    for place in prose.find(point):
        number = prose.sentence_at(place.start)
        if number not in told and not _is_open(prose, number, place):
            told.add(number)
            yield prose.sentences[number]


def _is_open(prose: Prose, number: int, place: Span) -> bool:
    """Tell whether what is at a place of a sentence is asked or doubted, there or in a sentence beside it."""
    sentence = prose.sentences[number]
    text, parts = prose.text, clauses(prose.text, sentence)
    own = next(n for n, part in enumerate(parts) if place.start < part.end)
    before, after = text[sentence.start : place.start], text[place.end : sentence.end]
    if _RHETORICAL.search(before):
        return False
    if _asked_beforehand(before, text[parts[own].start : place.start]):
        return True
    last = next((n for n, part in enumerate(parts) if place.end <= part.end), own)
    later = [text[part.start : part.end] for part in parts[last + 1 :]]
    if _asked_afterwards(text[parts[own].start : parts[last].end], text[place.end : parts[last].end], later):
        return True
    if "?" in after and _is_about(before, text[slice(*parts[own])], "".join(later)):
        return True
    beside = [
        text[slice(*prose.sentences[n])] for n in (number - 1, number + 1) if 0 <= n < len(prose.sentences)
    ]
    following = beside[-1] if number + 1 < len(prose.sentences) else ""
    return bool(_TAG.match(following)) or any(_UNSURE.search(other) for other in beside)


def _asked_beforehand(before: str, within: str) -> bool:
    """Tell whether a doubt or a question starts before the point, `within` its clause or earlier."""
    if _UNSURE.search(before) or _INVERTED.search(within) or _INVERTED.match(before):
        return True
    if _PERHAPS.search(within):
        return True
    earlier = before[: len(before) - len(within)]
    return any(_PERHAPS.search(part) and _MEMORY.search(part) for part in _PARTS.split(earlier))


def _asked_afterwards(clause: str, rest: str, later: list[str]) -> bool:
    """Tell whether the clause goes on to ask or to doubt, or one of the `later` ones does nothing else."""
    if _PARTICLE.search(rest) and not _PROPOSAL.match(clause):
        return True
    if _UNSURE.search(rest) or _PERHAPS_AFTER.search(rest):
        return True
    return any(_TAG.match(part) or _UNSURE.search(part) or _PERHAPS_AFTER.search(part) for part in later)


def _is_about(before: str, clause: str, later: str) -> bool:
    """Tell whether a question is about the point rather than about something that follows from it."""
    if not later or _STILL.search(later) or not _PERSON.search(clause):
        return True
    return not (_GRANTED.search(before) or _ASKS_ELSE.search(later))


def _any_of(*forms: str) -> re.Pattern[str]:
    return re.compile("|".join(forms))


_PARTS = re.compile("[,:;]")

_UNSURE = _any_of(
    r"没(?:有)?(?:记|搞|弄|听|理解)错(?:的话|吧|吗)|记得没错的话|记得对的话",
    r"记错(?:了)?(?:吗|没|的话|也|请|就|你)|不对(?:的话)?(?:你)?(?:就)?(?:告诉|纠正|提醒)|纠正我"
    r"|以你说的为准",
    r"(?:是不是|可能|也许|会不会|怕)(?:是)?(?:我)?[^,。]{0,2}(?:记|搞|弄|听)(?:错|混|岔)",
    r"不(?:太|大|是很|敢|能|没法|那么|怎么|完全|百分百|很)*(?:确定|肯定|有把握|敢说)|没(?:什么|有)?"
    r"(?:把握|法确定)|拿不准|吃不准|说不准|没准",
    r"记得?不(?:太|大|是很)?(?:清|准|牢|住)|不(?:太|大)记得|记(?:得|忆)?(?:有点|有些|很)?模糊|印象"
    r"(?:有点|有些|比较|很)?(?:模糊|不深)",
    r"模糊(?:的|地)?(?:印象|记得)|印象(?:中|里)|隐约|隐隐|依稀|恍惚",
    r"(?:想|要|得)(?:先)?(?:跟|和|向|找)?(?:你)?(?:再)?(?:确认|核实|求证|问问|问一下|问一声|问你)|"
    r"(?:确认|求证|核实)一下",
    r"不知道(?:我)?(?:有没有|是不是|对不对|记|说|理解|还)|(?:只是|是)(?:我)?(?:瞎|乱)?猜",
    r"\bif (?:i|my memory) ?(?:'m|am|do|have)? ?(?:not|don't|n't)? ?(?:remember|recall|recollect"
    r"|mistaken|wrong|serves|got|have|right|correct|is right)\b",
    r"\bif memory serves\b|\bas far as i (?:can )?(?:remember|recall|know|tell)\b|\bunless i(?:'m| am"
    r"|'ve| have)\b|\bcorrect me\b|\bdon't quote me\b|\bremind me\b",
    r"\b(?:not|n't)(?: (?:so|too|quite|entirely|totally|completely|really|all that|that|very|100%"
    r"|absolutely))? (?:sure|certain|positive)\b",
    r"\bi (?:could|may|might) (?:well )?(?:be|have) (?:\w+ )?(?:wrong|mistaken|misremember\w*|mix\w*"
    r"|confus\w*|misheard|dream\w*)",
    r"\b(?:vague|hazy|fuzzy|faint|dim)(?:ly)?\b|\bi wonder\b|\bwondering (?:if|whether)\b|\bjust to "
    r"(?:check|confirm|be sure)\b",
    r"\bdouble-check\b|\b(?:can|could) you confirm\b|\btell me if\b|\blet me know if i\b|\bwanted to "
    r"(?:check|ask|confirm)\b",
    r"\b(?:is|was) that (?:right|correct|still|so|true)\b|\bam i (?:right|wrong|remembering|mixing)\b"
    r"|\bdid i (?:get|remember|hear)\b",
    r"\bdo i (?:have (?:it|that)|remember (?:it|that|right|correctly))\b|\bhave i got\b",
    r"\b(?:can't|don't) (?:quite |really |exactly )?remember (?:if|whether)\b",
)
"""Doubts about one's own memory: they hold for the sentence, and for the ones beside it."""

_PERHAPS = _any_of(
    r"好像|似乎|也许|或许|(?<!不)可能|大概|估计|貌似|多半|八成|听起来|我猜|猜你|猜测|是不是|是否|有没有"
    r"|会不会|该不会|莫非|难道是",
    r"应该(?=是|喜欢|更|在|有|没|会|还|不|就|爱|住|叫|挺|比较|蛮|算|属于)|想问|问问|对不对|喜不喜欢"
    r"|爱不爱|在不在|记不记得",
    r"\b(?:maybe|perhaps|possibly|probably|presumably|apparently|might|whether|could it be|my guess"
    r"|you seem)\b",
    r"\bi (?:think|thought|believe|guess|suppose|suspect|assume)\b|\bi'd guess\b|\bi'm guessing\b"
    r"|\bseem to (?:remember|recall)\b",
    r"\bi (?:have|get|got) (?:a feeling|an idea|the (?:feeling|impression))\b|\b(?:seems|sounds|looks) "
    r"(?:like|as if|to me)\b",
)
"""Doubts that hold for their own clause, and for a later one if they are about what was remembered."""

_MEMORY = re.compile(r"我|你|记|忆|听|说过|印象|弄|搞|提过|\b(?:i|you|remember|recall|memory|mention\w*)\b")

_PARTICLE = _any_of(
    r"(?:吗|么|嘛|来着|吧|对不对|是不是|没有|不是)[哈呀哦啊呢嗯]?[?!~,.。”\"」]*\s*$",
    r"\b(?:right|no|yes|huh|eh)\?",
)
"""Ends of a clause that make it a question or a guess."""

_PROPOSAL = re.compile(
    r"(?:那么?|所以|今晚|明天|周末|现在|待?会儿|不如|干脆|就|,)*(?:让)?(?:我们|咱们?|一起|我来?(?:给|帮"
    r"|陪|替|为)|去|来|给你|陪你)"
)
"""Starts of a clause that makes a proposal when it ends in 吧."""

_PERHAPS_AFTER = _any_of(
    r"(?:应该|大概|可能|好像)(?:是|没错|对)?(?:这样|的)?(?:吧)?[,。.!?~]*\s*$",
    r"\b(?:i think|i believe|i guess|i suppose|maybe|perhaps|probably|or something|or so i (?:think"
    r"|recall))[.,!?~]*\s*$",
)

_TAG = _any_of(
    r"[\s\"'“”,呃嗯哈你]*我?(?:没(?:有)?(?:记|说|弄|搞|猜)错|[记说猜]得?(?:对|没错))了?(?:吗|吧|嘛|么"
    r"|没|不|\?)",
    r"[\s\"'“”,呃嗯哈]*(?:现在|真的)?(?:还)?(?:对|是|是这样|这样|没错|可以这么说|真的|准)的?(?:吗|吧|嘛"
    r"|么|不对|不是|不|没|\?)",
    r"[\s\"'“”,呃嗯哈]*(?:是不是|对不对|有没有记错|或者是|要不就是|(?:还是)?我?(?:记|搞)(?:错|混)了"
    r"|是我记错)",
    r"[\s\"'“”,]*还是(?:说)?(?!很|那么|一样|老样子|要|得|想)[^,。]{1,14}\?",
    r"[\s\"'“”,]*(?:and |or )?(?:right|correct|yes|no|yeah|eh|huh)\s?(?:\?|$)",
    r"\s*(?:isn't|aren't|don't|didn't|wasn't|weren't|haven't|doesn't|won't|wouldn't) (?:it|you|he|she"
    r"|that|they)\b",
    r"\s*(?:is|was) (?:that|it) (?:right|correct|so|still|true|not)?|\s*am i (?:right|wrong)|\s*did i\b"
    r"|\s*do i have\b",
    r"\s*or (?:was|is|are|am|did|do|have|has|not)\b|\s*or (?:\w+ ){0,3}\w+\?$",
    r"\s*(?:are|do) you still\b|\s*did you (?:say|mention|tell)\b|\s*still (?:true|the case|so)\b"
    r"|\s*have i\b",
)
"""Clauses and sentences that do nothing but ask whether what was said is so."""

_INVERTED = re.compile(
    r"(?:^|[,:;.\"'“] ?|\b(?:so|wait|hey|and|but|hmm|oh|tell me|say) )"
    r"(?:do|does|did|are|is|was|were|have|has|had|didn't|don't|aren't|isn't|wasn't|weren't|haven't"
    r"|would|could) "
    r"(?:you|it|he|she|they|that|your|i|there|we|the)\b|是不是|是否|有没有|会不会"
)
"""How a question starts."""

_RHETORICAL = _any_of(
    r"怎么(?:会|可能|能|敢)(?:不|忘)|哪(?:会|能|敢)(?:不|忘)|谁不知道|难道(?:我)?(?:会|能|不|还)|以为我"
    r"(?:会)?(?:忘|不)",
    r"(?:当然|一直|清楚地?|明明|肯定|绝对|百分百)都?(?:记得|知道)",
    r"\bhow could i (?:ever )?(?:forget|not)\b|\bwho (?:doesn't|wouldn't)\b|\bof course i (?:remember"
    r"|know)\b",
    r"\b(?:do|did) you (?:really )?think i(?:'d| would| could| had|'ve)? (?:ever )?(?:forg[eo]t\w*|not)\b",
)
"""What looks like a question and is an assertion."""

_ASKS_ELSE = _any_of(
    r"哪|什么|怎么|几|谁|多少|为何|要不要|想不想|要我|好不好|好吗|行吗|可以吗|如何|我们|咱|一起"
    r"|[去来看听].{0,8}吗|需要我|([一-鿿])不\1",
    r"\b(?:what|which|where|when|how|why|who|shall|should|want|would you|could we|(?:can|may) (?:i|we)"
    r"|let's|fancy|feel like|ready|ok|okay)\b",
)
"""A question after the point that is about something else, and takes the point for granted."""

_STILL = re.compile(r"还(?:是|在|会|想|要|喜欢|爱|这么|那么)|现在(?:呢|也)|\bstill\b|\bchanged\b")
"""What asks whether the point holds on."""

_GRANTED = re.compile(
    r"既然|因为|由于|知道|(?:^|[^还])记得|\b(?:since|because|knowing|given|as) you|\bi (?:know"
    r"|remember)\b"
)
"""What takes for granted what follows it."""

_PERSON = re.compile(r"你|您|\byou|\b(?:he|she|they|we)\b")
