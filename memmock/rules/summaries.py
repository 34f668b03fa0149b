"""Signs that a summary is not a short natural sentence.

A summary is free text, so these are signs and not proof: each function returns what it saw, or None. They
are made to let good sentences pass (`<3`, "a < b", a colon, quotation marks) rather than to catch all.
Only the start of a text is looked at, so that a hostile one costs no time.
"""

from __future__ import annotations

import re

LONGEST = 300
"""More characters than this are not a short sentence [ours]."""

_LOOKED_AT = 2_000
"""The length of the start that is searched: in what is longer, the signs show early."""


def says_nothing_found(text: str) -> bool:
    """Return whether the whole text says that nothing was found, in English or Chinese.

    A sentence about the user who has not found something ("没有找到工作") is not meant.
    """
    return len(text) <= _LONGEST_EXCUSE and _NOTHING_FOUND.fullmatch(text.strip(_PUNCTUATION)) is not None


def chat_log_sign(text: str) -> str | None:
    """Return what makes a text look like a raw chat log: speakers or times in front of what was said."""
    text = text[:_LOOKED_AT]
    if not _MAY_BE_A_LOG.search(text):
        return None
    if _SPEAKER_FIRST.search(text) or len(_SPEAKER_ANYWHERE.findall(text)) > 1:
        return "a speaker in front of what was said"
    if len(_LABELLED_LINE.findall(text)) > 1:
        return "several lines that start with a name"
    if _FULL_TIME_FIRST.search(text) or len(_TIME_FIRST.findall(text)) > 1:
        return "a time in front of what was said"
    return "chat template marks" if _TEMPLATE_MARK.search(text) else None


def markup_sign(text: str) -> str | None:
    """Return what markup a text holds: HTML, JSON or Markdown."""
    text = text[:_LOOKED_AT]
    if not _MAY_BE_MARKUP.search(text):
        return None
    return next((name for name, pattern in _MARKUP.items() if pattern.search(text)), None)


def garbled_sign(text: str) -> str | None:
    """Return what makes a text look decoded or escaped wrongly."""
    text = text[:_LOOKED_AT]
    if "\ufffd" in text:
        return "a replacement character (U+FFFD)"
    if _CONTROL.search(text):
        return "control characters"
    if _ESCAPED.search(text):
        return "text that was escaped twice"
    if text.count("?") > 3 and text.count("?") * 2 > len(text.strip()):
        return "question marks in place of its characters"
    return "UTF-8 that was read in another encoding" if _is_mojibake(text) else None


def _is_mojibake(text: str) -> bool:
    """Return whether the text becomes other text when its bytes are read as UTF-8.

    That real text does so by chance is next to impossible in Latin-1 and Windows-1252; for GBK, where single
    words do, the result must hold Chinese.
    """
    if text.isascii():
        return False
    for encoding in ("gbk",) if _WIDE.search(text) else ("latin-1", "cp1252", "gbk"):
        try:
            meant = text.encode(encoding).decode()
        except UnicodeError:
            continue
        if meant != text and (encoding != "gbk" or _CHINESE.search(meant)):
            return True
    return False


# most texts are told by these not to need the searches above
_MAY_BE_A_LOG = re.compile("[:：<\\[]")
_MAY_BE_MARKUP = re.compile(r"[<&{\[`~|#*\]]|[-+]\s")
_WIDE = re.compile("[\u2200-\U0010ffff]")
_PUNCTUATION = " \t\r\n.!?…~。！？～,，:：;；\"'“”‘’「」()（）[]【】<>《》-–—*_`"
_LONGEST_EXCUSE = 120

# ---- "nothing was found", as a whole text

_ZH_FIRST = (  # an apology, or where was looked
    r"(?:(?:抱歉|对不起|很遗憾|不好意思|目前|暂时|当前|系统|我|数据库[中里]?|记忆库?[中里]|关于[^，,]{1,30}"
    r"|在[^，,]{1,20}[中里])[，,\s]*){0,3}"
)
_ZH_LOOKED = (
    r"(?:(?:没有?|未能?|没能|暂未|无法|尚未)(?:查找|查询|检索|搜索|查|找|搜)[到出]?|[找查搜]不到|查无)"
)
_ZH_THING = r"(?:记忆|记录|结果|信息|内容|资料|数据|匹配项)(?:[，,：:].{0,60})?"
_ZH_NONE = r"(?:没有|暂无|并无|查无|未有|无)(?:任何|可用的?|相关的?|匹配的?|符合条件的?|对应的?|有关的?){0,3}"
_EN_FIRST = r"(?:(?:sorry|unfortunately|i['’]?m sorry|i am sorry)[,.!]?\s+)?"
_EN_THING = r"(?:memory|memories|results?|records?|match|matches|entry|entries|information|data)"
_EN_FOUND = r"(?:found|available|matched|match|exists?|stored|returned|remembered|related|relevant)"
_EN_NOT = (
    r"(?:could ?n[o'’]?t|couldnt|can ?n[o'’]?t|can['’]?t|did ?n[o'’]?t|(?:was |were )?unable to"
    r"|(?:was|were) not able to|failed to)"
)
_NOTHING_FOUND = re.compile(
    "|".join(
        (
            rf"{_ZH_FIRST}{_ZH_LOOKED}",  # 没查到
            rf"{_ZH_FIRST}{_ZH_LOOKED}[^，。！,]{{0,40}}?{_ZH_THING}",  # 没有找到与咖啡相关的记忆
            rf"{_ZH_FIRST}{_ZH_NONE}{_ZH_THING}",  # 暂无相关记忆
            rf"{_EN_FIRST}(?:there (?:is|are|was|were) )?no (?:\w+ ){{0,3}}?{_EN_THING}"
            rf"(?: (?:(?:was|were|is|are|has been) )?(?:{_EN_FOUND}|yet|about|matching|for)\b.{{0,80}})?",
            rf"{_EN_FIRST}nothing (?:(?:was|is|useful) )?{_EN_FOUND}(?: .{{0,60}})?",
            rf"{_EN_FIRST}(?:(?:i|we|the system) )?{_EN_NOT} (?:find|locate|retrieve|recall)"
            rf"(?: anything|(?: \w+){{0,4}}? {_EN_THING})\b.{{0,60}}",
            rf"(?:{_EN_THING} )?not found|nothing|none|null|nil|n/?a|empty|无|空",
        )
    ),
    re.IGNORECASE,
)

# ---- chat logs

_ROLE = r"(?:user|assistant|human|chatbot|用户|助手|助理)\s?[:：]"
_SPEAKER_FIRST = re.compile(rf"^\s{{0,9}}{_ROLE}", re.IGNORECASE | re.MULTILINE)
_SPEAKER_ANYWHERE = re.compile(
    rf"(?:^|[\s。！？.!?;；,，]){_ROLE}|(?:^|\s)(?:ai|bot|system|我|你|q|a)[:：]", re.IGNORECASE
)
_LABELLED_LINE = re.compile(r"^[^\S\n]{0,9}[^\s:：][^\n:：]{0,24}[:：][^\n]", re.MULTILINE)
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
_DATE = r"[0-9]{4}[-/.年][0-9]{1,2}[-/.月][0-9]{1,2}日?"
_FULL_TIME_FIRST = re.compile(
    rf"^\s{{0,9}}(?:[\[(【（](?:{_DATE}[T\s]?\s?)?{_CLOCK}[^\])】）\n]{{0,9}}[\])】）]"
    rf"|{_DATE}[T\s]\s?[0-9]{{1,2}}:[0-9]{{2}}:[0-9]{{2}})",
    re.MULTILINE,
)
_TIME_FIRST = re.compile(rf"^[^\S\n]{{0,9}}(?:{_DATE}[T\s]?)?[^\S\n]?{_CLOCK}", re.MULTILINE)
_TEMPLATE_MARK = re.compile(r"<\|\w{1,40}\|>|\[/?INST\]|<<SYS>>")

# ---- markup, what it is called and what it looks like

_MARKUP = {
    "an HTML tag": re.compile(
        r"</?[a-z][a-z0-9-]{0,20}(?:\s[^<>]{0,200})?/?>|<!(?:--|doctype|\[cdata)", re.IGNORECASE
    ),
    "an HTML entity": re.compile(r"&(?:[a-z]{2,8}|#[0-9]{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE),
    "JSON": re.compile(
        r"""\{\s{0,9}["'][^"'\n]{0,100}["']\s{0,9}:"""  # {"a": …
        r"""|\A\s{0,9}\[\s{0,9}(?:["'{\[]|[0-9.]{1,20}\s{0,9}[,\]])"""  # ["a", or [1,
        r"""|\A\s{0,9}\{\s{0,9}\}"""
    ),
    "a Markdown code block": re.compile(r"```|~~~"),
    "a Markdown table": re.compile(r"\|\s?:?-{3,}|^[^\S\n]{0,9}\|[^\n|]{1,100}\|", re.MULTILINE),
    "a Markdown heading": re.compile(r"^#{1,6}\s\S", re.MULTILINE),
    "a Markdown list": re.compile(r"^[^\S\n]{0,9}[-*+]\s\S[^\n]{0,500}\n\s{0,9}[-*+]\s\S", re.MULTILINE),
    "Markdown emphasis": re.compile(r"\*\*[^*\s](?:[^*\n]{0,200}[^*\s])?\*\*"),
    "a Markdown link": re.compile(r"\]\((?:https?:|/|#)[^\s)]{0,300}\)"),
}

# ---- wrong encodings and escapes

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ESCAPED = re.compile(r"\\u[0-9a-f]{4}|\\[nrt](?![a-z0-9_\\])|\\x[0-9a-f]{2}", re.IGNORECASE)
_CHINESE = re.compile("[\u4e00-\u9fff]")
