"""Answers that a good consumer takes, however unusual they are."""

from __future__ import annotations

import gzip
import json
from typing import Any

from memmock.http import JSON_TYPE, Reply
from memmock.scenarios.framing import framed, padded
from memmock.scenarios.scenario import Shelf, Stage

shelf = Shelf("answers")


@shelf("ok", aliases=("200",))
def success(stage: Stage) -> Reply:
    """The honest answer."""
    return stage.answer()


@shelf("ok")
def empty(stage: Stage) -> Reply:
    """Nothing is found: an empty array."""
    return Reply.json({"memories": []})


@shelf("ok")
def extra_fields(stage: Stage) -> Reply:
    """The answer and its memories have fields that the contract does not know."""
    more = {"score": 12.5, "tags": ["a", "b"], "embedding_model": None, "nested": {"deep": [1, {}]}}
    memories = [{**memory, **more} for memory in stage.memories]
    return Reply.json({"request_id": "r-1", "memories": memories, "took_ms": 3, "debug": {"cache": False}})


@shelf("ok")
def has_more(stage: Stage) -> Reply:
    """The provider says that it has more memories; there is no second page to ask for."""
    return Reply.json({"memories": stage.memories, "has_more": True})


@shelf("ok")
def no_optional_fields(stage: Stage) -> Reply:
    """Every memory has a summary and nothing else."""
    return Reply.json({"memories": [{"summary": memory["summary"]} for memory in stage.memories]})


@shelf("ok")
def odd_fields(stage: Stage) -> Reply:
    """Optional fields have the wrong type or an odd value, which is no reason to drop a memory."""
    odd: list[dict[str, Any]] = [
        {"id": 7, "type": "mood", "confidence": "0.9", "updated_at": "yesterday", "source": ["chat"]},
        {"id": None, "type": None, "confidence": None, "updated_at": None, "source": None},
        {"id": "", "type": "", "confidence": 0, "updated_at": 1764500000, "source": ""},
        {"id": {"n": 7}, "type": ["other"], "confidence": 90, "updated_at": "", "source": True},
    ]
    memories = [{**memory, **odd[n % len(odd)]} for n, memory in enumerate(stage.memories)]
    return Reply.json({"memories": memories})


@shelf("ok")
def mixed_memories(stage: Stage) -> Reply:
    """Unusable memories stand between usable ones, which are kept in their order."""
    unusable: list[Any] = [
        None,
        {"id": "no-summary"},
        "用户喜欢喝茶。",
        {"summary": ""},
        {"summary": 42},
        [],
        3.5,
    ]
    mixed: list[Any] = [*unusable[:3], *stage.memories[:1], *unusable[3:]]
    for memory in stage.memories[1:]:
        mixed += [memory, None]
    return Reply.json({"memories": mixed})


@shelf("ok")
def low_confidence(stage: Stage, *, confidence: float = 0.2) -> Reply:
    """The provider is not sure of anything; the user is to be asked rather than told."""
    return Reply.json({"memories": [{**memory, "confidence": confidence} for memory in stage.memories]})


@shelf("ok")
def conflicting(stage: Stage) -> Reply:
    """Two memories contradict each other; the newer one is to be preferred."""
    memories = stage.fixed("用户已经搬到杭州。", "用户住在北京。")
    for memory, updated_at in zip(
        memories, ("2026-10-18T21:30:00+08:00", "2024-05-01T09:00:00+08:00"), strict=False
    ):
        memory["updated_at"] = updated_at
    return Reply.json({"memories": memories})


@shelf("ok")
def over_max_results(stage: Stage, *, extra: int = 3) -> Reply:
    """More memories come than were asked for."""
    count = min(stage.max_results, 1000) + min(extra, 1000)
    return Reply.json(
        {"memories": [{"id": f"m{n}", "summary": "用户喜欢喝茶。"} for n in range(1, count + 1)]}
    )


@shelf("ok")
def unicode(stage: Stage) -> Reply:
    """Summaries hold emoji, astral and rare characters, combining marks, right-to-left text and U+2028."""
    return Reply.json({"memories": stage.fixed(
        "👩🏽‍🚀 用户姓𠮷 e\u0301 مرحبا\u2028下一行\ufeff。",
        "用户家里有四口人 👨‍👩‍👧‍👦，爱养猫 🐈‍⬛，常发 🏳️‍🌈 和 👍🏽。",
        "用户姓𠮷，住在𪚥村，喜欢 𝒜𝓁𝑔𝑒𝒷𝓇𝒶 和 𓂀。",
        "المستخدم يحب القهوة ☕ و‎100‎ كتاب, והוא גר בתל אביב.",
        "Cafe\u0301, Zoe\u0308, नमस्ते, ก็, e\u0301\u0327\u0308 und ﬁ.",
        "first line\u2028second line\u2029new paragraph\u00a0\u200b\ufeff\u00ad.",
    )})  # fmt: skip


@shelf("ok")
def escaped_json(stage: Stage) -> Reply:
    """Every character that may be written as an escape is."""
    text = json.dumps({"memories": stage.memories}, ensure_ascii=True).replace("/", "\\/")
    return _json(text.replace("summary", "s\\u0075mmary").encode())


@shelf("ok")
def whitespace_json(stage: Stage) -> Reply:
    """The JSON is written with white space wherever it may stand."""
    text = json.dumps(
        {"memories": stage.memories}, ensure_ascii=False, indent="\t", separators=(" ,\r\n", " : ")
    )
    return _json(f"\r\n \t{text}\n\n  \r\n".encode())


@shelf("ok")
def markup(stage: Stage) -> Reply:
    """Summaries hold quotes, backslashes, HTML, templates and a NUL, which are text like any other."""
    return Reply.json({"memories": stage.fixed(
        'a "quote", a \\backslash, <b>&amp;</b>, {{ x }}, %s, a NUL \u0000 and\na line break',
        'He said "no" to C:\\temp\\new and it\'s fine',
        "<script>alert('x')</script> &amp; <b>茶</b>",
        "{{ 7*7 }} ${HOME} %s %(name)s {0} #{1+1}",
        "before\u0000after\u0007\u001b[31mred",
        "line one\nline two\ttab\r\n'; DROP TABLE memories; --",
    )})  # fmt: skip


@shelf("ok")
def chunked(stage: Stage, *, chunk_bytes: int = 100) -> Reply:
    """The body is chunked, and chunks end within characters."""
    return stage.answer().chunked(max(1, chunk_bytes))


@shelf("ok")
def chunk_extensions_and_trailers(stage: Stage) -> Reply:
    """The chunks have extensions, and trailers follow them."""
    body = stage.answer().body
    half = len(body) // 2
    chunks = b'%x;a=1\r\n%s\r\n%X;b="2;3";c\r\n%s\r\n0;last\r\nX-Checksum: abc\r\nX-Took: 3\r\n\r\n' % (
        half, body[:half], len(body) - half, body[half:],
    )  # fmt: skip
    return framed("Transfer-Encoding: chunked", body=chunks)


@shelf("ok", end="close")
def http10_close(stage: Stage) -> Reply:
    """The provider speaks HTTP/1.0 and closes."""
    body = stage.answer().body
    return framed(f"Content-Length: {len(body)}", line="HTTP/1.0 200 OK", body=body).closed()


@shelf("ok", end="close")
def close_delimited(stage: Stage) -> Reply:
    """The body has no length; its end is the end of the connection."""
    return stage.answer().until_close()


@shelf("ok")
def compressed(stage: Stage) -> Reply:
    """The body is gzip, but only for a client that accepts it."""
    reply = stage.answer()
    if not _accepts_gzip(stage.request.header("Accept-Encoding") or ""):
        return reply
    headers = (*reply.headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
    return reply._replace(headers=headers, body=gzip.compress(reply.body, mtime=0))


@shelf("ok", name="created-201", aliases=("201",), status=201)
def created(stage: Stage) -> Reply:
    """The status is 201, which is a success too."""
    return stage.answer()._replace(status=201)


@shelf("ok")
def charset_parameter(stage: Stage) -> Reply:
    """The Content-Type has a charset."""
    return _json(stage.answer().body, "application/json; charset=utf-8")


@shelf("ok")
def odd_headers(stage: Stage) -> Reply:
    """Headers are in odd cases, empty, without a space or not ASCII; the status line has no reason."""
    body = stage.answer().body
    return framed(
        f"content-LENGTH:{len(body)}",
        "content-type:application/json;charset=UTF8MB4",
        "X-Empty:",
        "x-name: 茶".encode().decode("latin-1"),
        line="HTTP/1.1 200 ",
        body=body,
        content_type="",
    )


@shelf("ok")
def lower_case_headers(stage: Stage) -> Reply:
    """All header names are in lower case, that of the framing too."""
    body = stage.answer().body
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    return framed(
        "content-type: application/json", "transfer-encoding: chunked", body=chunks, content_type=""
    )


@shelf("ok", "connection_failed")
def no_reason_phrase(stage: Stage) -> Reply:
    """The status line ends behind the number, without the space that belongs there."""
    body = stage.answer().body
    return framed(f"Content-Length: {len(body)}", line="HTTP/1.1 200", body=body)


@shelf("ok")
def stays_open(stage: Stage) -> Reply:
    """The answer is complete, and the connection stays open even when the client asked to close it."""
    asked = (stage.request.header("Connection") or "").lower()
    return stage.answer().hanging() if "close" in asked else stage.answer()


@shelf("ok")
def early_hints(stage: Stage) -> Reply:
    """A 103 comes before the answer."""
    return stage.answer().after(103, (("Link", "</style.css>; rel=preload"),))


@shelf("ok", name="continue-100")
def continue_(stage: Stage) -> Reply:
    """A 100 that nobody asked for comes before the answer."""
    return stage.answer().after(100)


@shelf("ok")
def many_headers(stage: Stage, *, count: int = 64) -> Reply:
    """The head has many headers."""
    reply = stage.answer()
    more = tuple((f"X-Trace-{n:03}", f"{n:040}") for n in range(min(count, 10_000)))
    return reply._replace(headers=(*reply.headers, *more))


@shelf("ok")
def exact_limit(stage: Stage) -> Reply:
    """The body is exactly as large as the consumer allows; it has fewer characters than bytes."""
    return padded(stage, stage.max_response_bytes)


@shelf("ok")
def just_in_time(stage: Stage, *, factor: float = 0.8) -> Reply:
    """The answer comes shortly before the consumer's time is over: `factor` times `timeout_ms`."""
    return stage.answer().delayed(factor * stage.timeout_s)


@shelf("ok", end="close", needs="a kept connection")
def stale_keep_alive(stage: Stage, *, after_ms: float = 50.0) -> Reply:
    """The connection is kept, and closed between this call and the next without a word."""
    return stage.answer().closed(after_ms / 1000)


def _json(body: bytes, content_type: str = JSON_TYPE) -> Reply:
    return Reply(200, (("Content-Type", content_type),), body)


def _accepts_gzip(header: str) -> bool:
    for entry in header.lower().split(","):
        coding, *parameters = (part.strip() for part in entry.split(";"))
        if coding in ("gzip", "*"):
            return not any(parameter.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000")
                           for parameter in parameters)  # fmt: skip
    return False
