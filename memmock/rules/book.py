"""The rules of messages as a table: what each asks, and why it matters to the other side.

This module holds no check. `requests` and `replies` find what is broken and refer to the table by
code; `memmock rules CODE` prints an entry. It is long because it is data.

A code never changes its meaning and is never used again. The first digit says what the rule is about:
REQ0 the request's head, REQ1 its body as JSON, REQ2 its fields, REQ3 what it never holds; RES0 the exchange
and the reply's head, RES1 its body as JSON, RES2 its memories, RES3 whether they are what was asked for,
RES4 the text of a summary, RES5 error replies, RES6 what only several calls show.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Literal

from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES, DEFAULT_MAX_RESULTS, DEFAULT_TIMEOUT_MS, MEMORY_TYPES
from memmock.strictjson import printable


class Severity(StrEnum):
    """How much a rule weighs: an error breaks a must of the contract, a warning a recommendation."""

    ERROR = "error"
    WARNING = "warning"


Source = Literal["[seed]", "[ref]", "[ours]"]
"""Who said so: the protocol page, the vendor's API reference, or memmock where both are silent."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Rule:
    """One thing that the contract asks.

    `title` is one sentence; `reason` says what goes wrong on the other side; `wrong` and `right` are a small
    example of each, as they look on the wire.
    """

    code: str
    severity: Severity
    title: str
    reason: str
    source: Source
    wrong: str
    right: str

    def __repr__(self) -> str:
        return f"<Rule {self.code}>"

    def to_json(self) -> dict[str, str]:
        """Return the rule as a JSON object."""
        return asdict(self)


Where = Literal["method", "header", "status", "body", "exchange"]
"""The part of a message that breaks a rule; "exchange" is the time it took."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One place in one message that breaks one rule.

    `pointer` leads to it: in a body it is a JSON pointer (RFC 6901; empty for the body as a whole), in the
    headers it is the header's name, elsewhere it is empty. `value` is what was found there as one short
    line, empty when there is nothing to show or when it is a credential. `message` holds it already.
    """

    rule: Rule
    where: Where
    pointer: str
    message: str
    value: str = ""

    @property
    def code(self) -> str:
        """The code of the rule."""
        return self.rule.code

    @property
    def severity(self) -> Severity:
        """The severity of the rule."""
        return self.rule.severity

    @property
    def place(self) -> str:
        """Where it is, for people: `method`, `header Accept`, `body`, `body /memories/0/summary`."""
        pointer = printable(self.pointer if len(self.pointer) <= 120 else f"{self.pointer[:120]}…")
        return f"{self.where} {pointer}" if pointer else self.where

    def to_json(self) -> dict[str, str]:
        """Return the violation as a JSON object; the rule is named by its code."""
        return {
            "code": self.code,
            "severity": self.severity,
            "where": self.where,
            "pointer": self.pointer,
            "message": self.message,
            "value": self.value,
        }

    def __str__(self) -> str:
        return f"{self.code} {self.severity} at {self.place}: {self.message}"


_KINDS = ", ".join(MEMORY_TYPES)

_TABLE = (
    # ---- REQ0: the method and the headers of a request
    Rule(
        code="REQ001",
        severity=Severity.ERROR,
        title="The method is POST.",
        reason="A provider offers the lookup under POST alone; the question travels in the body, which "
        "other methods do not carry, and stays out of access logs.",
        source="[seed]",
        wrong="GET /memory_retrieval?query=tea HTTP/1.1",
        right="POST /memory_retrieval HTTP/1.1",
    ),
    Rule(
        code="REQ002",
        severity=Severity.ERROR,
        title="Content-Type is application/json, in UTF-8.",
        reason="Web frameworks choose the parser by this header: with another type the provider sees an "
        "empty body or a form, and refuses a question that was right. JSON needs no charset; UTF-8"
        " may be named.",
        source="[seed]",
        wrong="Content-Type: text/plain",
        right="Content-Type: application/json",
    ),
    Rule(
        code="REQ003",
        severity=Severity.ERROR,
        title="Accept names application/json.",
        reason="A provider that offers several formats chooses by this header; without it, it may well "
        "send HTML. A list that holds application/json will do, */* alone does not.",
        source="[seed]",
        wrong="Accept: */*",
        right="Accept: application/json",
    ),
    Rule(
        code="REQ004",
        severity=Severity.ERROR,
        title="Authorization is there and not empty.",
        reason="A provider finds out from it whose memories to search. It is always sent, even to a "
        "provider that ignores it.",
        source="[seed]",
        wrong="(no Authorization header)",
        right="Authorization: Bearer …",
    ),
    Rule(
        code="REQ005",
        severity=Severity.ERROR,
        title="Authorization is sent once.",
        reason="Servers differ in which of two values counts, and some join them: the lookup fails, or "
        "worse, is made in the wrong scope.",
        source="[ours]",
        wrong="Authorization: Bearer a\nAuthorization: Bearer b",
        right="Authorization: Bearer a",
    ),
    Rule(
        code="REQ006",
        severity=Severity.ERROR,
        title="Authorization is what the live session was created with, verbatim.",
        reason="The scheme is part of the configured value. A consumer that adds `Bearer`, changes case "
        "or encodes it anew locks itself out.",
        source="[seed]",
        wrong='authorization = "key-1"  →  Authorization: Bearer key-1',
        right='authorization = "key-1"  →  Authorization: key-1',
    ),
    # ---- REQ1: the body of a request as JSON
    Rule(
        code="REQ101",
        severity=Severity.ERROR,
        title="The body is UTF-8.",
        reason="JSON on the wire is UTF-8. Text in GBK or Latin-1 is refused, or read as other words, and"
        " nothing is found.",
        source="[ref]",
        wrong='{"query": "茶"} encoded as GBK',
        right='{"query": "茶"} encoded as UTF-8',
    ),
    Rule(
        code="REQ102",
        severity=Severity.ERROR,
        title="The body is one JSON text and nothing else.",
        reason="A strict parser refuses the whole request for a byte-order mark, a trailing comma, a "
        "second value, NaN, or nesting without end; a lax one lets it pass, so the mistake shows "
        "in production only.",
        source="[ref]",
        wrong='{"query": "tea",}',
        right='{"query": "tea"}',
    ),
    Rule(
        code="REQ103",
        severity=Severity.ERROR,
        title="A name occurs once in an object.",
        reason="Parsers differ in which of two equal names wins, so two servers answer two different "
        "questions.",
        source="[ours]",
        wrong='{"query": "tea", "query": "coffee"}',
        right='{"query": "tea"}',
    ),
    Rule(
        code="REQ104",
        severity=Severity.WARNING,
        title="Text holds no half of a surrogate pair.",
        reason="It is not a character and has no UTF-8 form: many providers crash when they log or index "
        "it. It comes from cutting a string in the middle of an emoji.",
        source="[ours]",
        wrong='{"query": "\\ud83c"}',
        right='{"query": "\\ud83c\\udf75"}',
    ),
    Rule(
        code="REQ105",
        severity=Severity.WARNING,
        title="Numbers fit in a double.",
        reason="Most parsers read numbers as doubles; beyond 1.8e308 they get infinity or fail.",
        source="[ours]",
        wrong='{"query": "tea", "max_results": 1e400}',
        right='{"query": "tea", "max_results": 100}',
    ),
    # ---- REQ2: the fields of a request
    Rule(
        code="REQ201",
        severity=Severity.ERROR,
        title="The body is a JSON object.",
        reason="The question is in its fields. A bare string or an array has none.",
        source="[ref]",
        wrong='"tea"',
        right='{"query": "tea"}',
    ),
    Rule(
        code="REQ202",
        severity=Severity.ERROR,
        title="query is there, a string that is not empty.",
        reason="It is the one field that a provider cannot do without: what to look up.",
        source="[ours]",
        wrong='{"query": ""}',
        right='{"query": "what the user likes to drink"}',
    ),
    Rule(
        code="REQ203",
        severity=Severity.WARNING,
        title="query is more than white space.",
        reason="There is nothing in it to look up: a provider answers with memories at random, or none.",
        source="[ours]",
        wrong='{"query": "  "}',
        right='{"query": "what the user likes to drink"}',
    ),
    Rule(
        code="REQ204",
        severity=Severity.ERROR,
        title="live_id, when there, is a string.",
        reason="It is a 64-bit number carried as a string, because a JSON number of that size is rounded "
        "by every parser that reads doubles. Absent says that there is none; null does not.",
        source="[ref]",
        wrong='{"query": "tea", "live_id": 730184451629056}',
        right='{"query": "tea", "live_id": "730184451629056"}',
    ),
    Rule(
        code="REQ205",
        severity=Severity.ERROR,
        title="reason and time_hint, when there, are strings.",
        reason="A provider reads them as text; null or an object makes a typed one refuse the request. "
        "With nothing to say, leave the field out or send an empty string.",
        source="[ref]",
        wrong='{"query": "tea", "time_hint": null}',
        right='{"query": "tea", "time_hint": "last week"}',
    ),
    Rule(
        code="REQ206",
        severity=Severity.ERROR,
        title="memory_types, when there, is an array.",
        reason="One kind is an array of one. A provider that looks for a kind in a string finds parts of "
        "words.",
        source="[ref]",
        wrong='{"query": "tea", "memory_types": "preference"}',
        right='{"query": "tea", "memory_types": ["preference"]}',
    ),
    Rule(
        code="REQ207",
        severity=Severity.ERROR,
        title="Each of memory_types is one of the kinds.",
        reason="A provider filters by these words exactly; another word finds nothing. The kinds are "
        f"{_KINDS}.",
        source="[seed]",
        wrong='{"query": "tea", "memory_types": ["Preferences"]}',
        right='{"query": "tea", "memory_types": ["preference"]}',
    ),
    Rule(
        code="REQ208",
        severity=Severity.WARNING,
        title="memory_types names a kind once.",
        reason="The second mention says nothing, and a provider that asks its index once for each kind "
        "returns memories twice.",
        source="[ours]",
        wrong='{"query": "tea", "memory_types": ["style", "style"]}',
        right='{"query": "tea", "memory_types": ["style"]}',
    ),
    Rule(
        code="REQ209",
        severity=Severity.ERROR,
        title="max_results, when there, is an integer of at least 1.",
        reason=f'A provider cuts its answer there. Absent means {DEFAULT_MAX_RESULTS}; null, true or "3" '
        "make a typed provider refuse the request, and 0 asks for nothing.",
        source="[ref]",
        wrong='{"query": "tea", "max_results": "3"}',
        right='{"query": "tea", "max_results": 3}',
    ),
    Rule(
        code="REQ210",
        severity=Severity.WARNING,
        title="max_results is written without a decimal point.",
        reason="JSON Schema takes 2.0 for an integer, but decoders of typed languages refuse it for an "
        "integer field.",
        source="[ours]",
        wrong='{"query": "tea", "max_results": 2.0}',
        right='{"query": "tea", "max_results": 2}',
    ),
    # ---- REQ3: what a request never holds, at any depth
    Rule(
        code="REQ301",
        severity=Severity.ERROR,
        title="A request never holds a user id.",
        reason="The provider finds the user from the authorization, the endpoint or its own context. An "
        "id in the body would be one that a model can be talked into changing.",
        source="[seed]",
        wrong='{"query": "tea", "user_id": "42"}',
        right='{"query": "tea"}',
    ),
    Rule(
        code="REQ302",
        severity=Severity.ERROR,
        title="A request never holds a character id.",
        reason="The provider finds the character from the authorization, the endpoint or its own context,"
        " and never switches it on demand.",
        source="[seed]",
        wrong='{"query": "tea", "character_id": "01"}',
        right='{"query": "tea"}',
    ),
    Rule(
        code="REQ303",
        severity=Severity.ERROR,
        title="A request never holds a database filter.",
        reason="What is in the store is the provider's matter; a filter from outside ties both sides to "
        "one schema and is a way in for injection. The kinds wanted go into memory_types.",
        source="[seed]",
        wrong='{"query": "tea", "filter": {"owner": "42"}}',
        right='{"query": "tea", "memory_types": ["preference"]}',
    ),
    Rule(
        code="REQ304",
        severity=Severity.ERROR,
        title="A request never holds an embedding.",
        reason="A vector fits one model only, and which one the provider uses is its own matter. The "
        "question is sent as text.",
        source="[seed]",
        wrong='{"query": "tea", "embedding": [0.1, 0.7]}',
        right='{"query": "tea"}',
    ),
    Rule(
        code="REQ305",
        severity=Severity.ERROR,
        title="A request never holds a switch for sensitive information.",
        reason="Whether sensitive memories may leave is decided by the provider, not asked for by a model.",
        source="[seed]",
        wrong='{"query": "tea", "include_sensitive": true}',
        right='{"query": "tea"}',
    ),
    # ---- RES0: the exchange and the head of a reply
    Rule(
        code="RES001",
        severity=Severity.ERROR,
        title="A retrieval that keeps the contract is answered with 200.",
        reason="Any status outside 2xx becomes an error for the model, so the character says that it "
        "cannot remember. Redirects are not followed, and nothing found is a 200 too.",
        source="[seed]",
        wrong="HTTP/1.1 404 Not Found",
        right='HTTP/1.1 200 OK\n\n{"memories": []}',
    ),
    Rule(
        code="RES002",
        severity=Severity.WARNING,
        title="A request that breaks the contract is refused with 4xx.",
        reason="4xx tells the consumer's developers that the request is wrong. 5xx sends the provider's "
        "own people looking for a fault, and invites a retry that cannot succeed.",
        source="[ours]",
        wrong="HTTP/1.1 500 Internal Server Error",
        right='HTTP/1.1 400 Bad Request\n\n{"error": {"code": "bad_request", "message": "query is missing"}}',
    ),
    Rule(
        code="RES003",
        severity=Severity.ERROR,
        title="Content-Type is application/json, in UTF-8.",
        reason="HTTP clients and gateways choose how to read and to rewrite a body by this header: as "
        "text or HTML it is decoded otherwise, cached or changed on the way.",
        source="[seed]",
        wrong="Content-Type: text/html",
        right="Content-Type: application/json",
    ),
    Rule(
        code="RES004",
        severity=Severity.ERROR,
        title="Content-Encoding is one that the request accepts, and the body decodes.",
        reason="A consumer that did not ask for gzip does not undo it: it sees bytes that are not JSON.",
        source="[ours]",
        wrong="Content-Encoding: gzip  (no Accept-Encoding in the request)",
        right="(no Content-Encoding header)",
    ),
    Rule(
        code="RES005",
        severity=Severity.ERROR,
        title="A body is not larger than the consumer's limit.",
        reason="The consumer stops reading there and the model gets `response_too_large`. The limit, "
        f"{DEFAULT_MAX_RESPONSE_BYTES:,} bytes unless set otherwise, counts on the body as received"
        " and as decoded.",
        source="[seed]",
        wrong="200 memories with whole conversations as summaries",
        right="at most max_results memories, one short sentence each",
    ),
    Rule(
        code="RES006",
        severity=Severity.ERROR,
        title="The whole exchange is done within timeout_ms.",
        reason="The character is in the middle of a sentence. The consumer gives up, and the model gets "
        f"`timeout`. The limit, {DEFAULT_TIMEOUT_MS} ms unless set otherwise, includes connecting "
        "and the body.",
        source="[ref]",
        wrong="headers after 1 s, the last byte of the body after 4 s",
        right="everything within 3 s",
    ),
    Rule(
        code="RES007",
        severity=Severity.ERROR,
        title="A reply is whole HTTP, and nothing follows it on the connection.",
        reason="A consumer cannot tell a body that breaks off from one that is complete, and what follows a "
        "reply is taken for the answer to the next request.",
        source="[ours]",
        wrong="Content-Length: 120, and the connection is closed after 104 bytes",
        right="Content-Length: 104, and 104 bytes",
    ),
    # ---- RES1: the body of a reply as JSON
    Rule(
        code="RES101",
        severity=Severity.ERROR,
        title="The body is UTF-8.",
        reason="The consumer reads UTF-8 and nothing else; other bytes make `invalid_json`.",
        source="[ref]",
        wrong='{"memories": [{"summary": "喜欢喝茶"}]} encoded as GBK',
        right='{"memories": [{"summary": "喜欢喝茶"}]} encoded as UTF-8',
    ),
    Rule(
        code="RES102",
        severity=Severity.ERROR,
        title="The body is one JSON text and nothing else.",
        reason="The consumer hands no unparsed text to the model: plain text, HTML, a cut body, NaN or "
        "bytes after the end make `invalid_json`, and all memories are lost. Nothing found is an "
        "empty array.",
        source="[seed]",
        wrong="没查到",
        right='{"memories": []}',
    ),
    Rule(
        code="RES103",
        severity=Severity.ERROR,
        title="A name occurs once in an object.",
        reason="Parsers differ in which of two equal names wins, so the model may be told the other one.",
        source="[ours]",
        wrong='{"memories": [{"summary": "Likes tea.", "summary": "Likes coffee."}]}',
        right='{"memories": [{"summary": "Likes tea."}, {"summary": "Likes coffee."}]}',
    ),
    Rule(
        code="RES104",
        severity=Severity.WARNING,
        title="Text holds no half of a surrogate pair.",
        reason="It is not a character: the consumer passes it on escaped or replaces it, and either "
        "shows. It comes from cutting a string in the middle of an emoji.",
        source="[ours]",
        wrong='{"memories": [{"summary": "Likes tea \\ud83c"}]}',
        right='{"memories": [{"summary": "Likes tea \\ud83c\\udf75"}]}',
    ),
    Rule(
        code="RES105",
        severity=Severity.WARNING,
        title="Numbers fit in a double.",
        reason="Most parsers read numbers as doubles; beyond 1.8e308 they get infinity or fail.",
        source="[ours]",
        wrong='{"memories": [{"summary": "Likes tea.", "confidence": 1e400}]}',
        right='{"memories": [{"summary": "Likes tea.", "confidence": 0.9}]}',
    ),
    # ---- RES2: the memories of a reply
    Rule(
        code="RES201",
        severity=Severity.ERROR,
        title="The body is a JSON object with an array under memories.",
        reason="Anything else makes `invalid_response`. Nothing found is an empty array, not null and not"
        " a missing field; a failure is told by a status outside 2xx.",
        source="[seed]",
        wrong='{"memories": null}',
        right='{"memories": []}',
    ),
    Rule(
        code="RES202",
        severity=Severity.ERROR,
        title="Nothing found is an empty array, not a memory that says so.",
        reason="A summary is told to the model as something remembered: the character would remember that"
        " nothing was found.",
        source="[seed]",
        wrong='{"memories": [{"summary": "没查到"}]}',
        right='{"memories": []}',
    ),
    Rule(
        code="RES203",
        severity=Severity.ERROR,
        title="Each memory is an object.",
        reason="The consumer drops what is not one: the text of a bare string never reaches the model.",
        source="[seed]",
        wrong='{"memories": ["Likes tea."]}',
        right='{"memories": [{"summary": "Likes tea."}]}',
    ),
    Rule(
        code="RES204",
        severity=Severity.ERROR,
        title="Each memory has a summary, a string that is not blank.",
        reason="The summary is what the model reads; a memory without one is dropped.",
        source="[ours]",
        wrong='{"memories": [{"text": "Likes tea."}]}',
        right='{"memories": [{"summary": "Likes tea."}]}',
    ),
    Rule(
        code="RES205",
        severity=Severity.ERROR,
        title="id, type, updated_at and source are strings, confidence is a number.",
        reason="A consumer leaves a field of another type out, so the model does not learn how sure or "
        "how old a memory is. null is of another type: leave the field out instead.",
        source="[ref]",
        wrong='{"id": 7, "summary": "Likes tea.", "confidence": "0.9"}',
        right='{"id": "7", "summary": "Likes tea.", "confidence": 0.9}',
    ),
    Rule(
        code="RES206",
        severity=Severity.WARNING,
        title="type is one of the kinds.",
        reason=f"The model is told what the kinds mean, and knows no others. They are {_KINDS}.",
        source="[seed]",
        wrong='{"summary": "Likes tea.", "type": "food"}',
        right='{"summary": "Likes tea.", "type": "preference"}',
    ),
    Rule(
        code="RES207",
        severity=Severity.WARNING,
        title="confidence is in 0..1.",
        reason="The consumer sorts it into high (0.8 and up), medium and low (below 0.5); on another "
        "scale a guess passes for a fact.",
        source="[seed]",
        wrong='{"summary": "Likes tea.", "confidence": 90}',
        right='{"summary": "Likes tea.", "confidence": 0.9}',
    ),
    Rule(
        code="RES208",
        severity=Severity.WARNING,
        title="updated_at is an RFC 3339 date-time.",
        reason="When memories conflict the newer one is preferred. Without a zone, or in another form, "
        "which is newer cannot be told.",
        source="[seed]",
        wrong='{"summary": "Likes tea.", "updated_at": "2026-05-18 08:12"}',
        right='{"summary": "Likes tea.", "updated_at": "2026-05-18T08:12:40+08:00"}',
    ),
    Rule(
        code="RES209",
        severity=Severity.WARNING,
        title="A memory has id, type, confidence, updated_at and source.",
        reason="They tell the model what kind of memory it is, how far to trust it, and which of two that"
        " conflict is newer.",
        source="[seed]",
        wrong='{"summary": "Likes tea."}',
        right='{"id": "7", "summary": "Likes tea.", "type": "preference", "confidence": 0.9,\n'
        ' "updated_at": "2026-05-18T08:12:40+08:00", "source": "explicit_user_statement"}',
    ),
    Rule(
        code="RES210",
        severity=Severity.WARNING,
        title="has_more, when there, is true or false.",
        reason="The live service does not need it and asks no second time, so the best is to leave it out. "
        "A client that does read it reads a boolean, and a page token or a count there breaks it.",
        source="[seed]",
        wrong='{"memories": [], "has_more": "next-17"}',
        right='{"memories": []}',
    ),
    # ---- RES3: whether the memories are what was asked for
    Rule(
        code="RES301",
        severity=Severity.ERROR,
        title="An id occurs once in a response.",
        reason="The same memory told twice counts double for the model, and two memories under one id "
        "cannot be told apart.",
        source="[ours]",
        wrong='{"memories": [{"id": "7", "summary": "Likes tea."}, {"id": "7", "summary": "Likes tea."}]}',
        right='{"memories": [{"id": "7", "summary": "Likes tea."}]}',
    ),
    Rule(
        code="RES302",
        severity=Severity.ERROR,
        title="There are at most max_results memories.",
        reason="Every memory costs the model time and attention while the user waits. When the request "
        f"names no number it is {DEFAULT_MAX_RESULTS}.",
        source="[ref]",
        wrong='{"query": "tea", "max_results": 1}  →  3 memories',
        right='{"query": "tea", "max_results": 1}  →  1 memory',
    ),
    Rule(
        code="RES303",
        severity=Severity.ERROR,
        title="A type is one of those that the request asks for.",
        reason="The model asked for certain kinds and takes the answer to be of them. An empty "
        "memory_types asks for all.",
        source="[seed]",
        wrong='{"query": "tea", "memory_types": ["preference"]}  →  "type": "history"',
        right='{"query": "tea", "memory_types": ["preference"]}  →  "type": "preference"',
    ),
    # ---- RES4: the text of a summary; these look for signs, so they only warn
    Rule(
        code="RES401",
        severity=Severity.WARNING,
        title="A summary is short: one line of at most 300 characters.",
        reason="It is to be said by the way in a conversation. Long text costs time, and the model picks "
        "the wrong part.",
        source="[seed]",
        wrong='{"summary": "On Monday the user said …\\nOn Tuesday …"}',
        right='{"summary": "The user drinks tea in the morning, without sugar."}',
    ),
    Rule(
        code="RES402",
        severity=Severity.WARNING,
        title="A summary is not a raw chat log.",
        reason="A model takes lines with speakers for the conversation it is in, answers them, or follows"
        " what they say.",
        source="[seed]",
        wrong='{"summary": "user: tea please\\nassistant: with sugar?"}',
        right='{"summary": "The user asked for tea."}',
    ),
    Rule(
        code="RES403",
        severity=Severity.WARNING,
        title="A summary is plain text, without HTML, JSON or Markdown.",
        reason="The digital human speaks: marks are read aloud, or the model answers in the same form.",
        source="[ours]",
        wrong='{"summary": "<b>Likes</b> tea &amp; coffee"}',
        right='{"summary": "Likes tea and coffee."}',
    ),
    Rule(
        code="RES404",
        severity=Severity.WARNING,
        title="A summary is readable: its text was not decoded or escaped wrongly.",
        reason="Text that went through a wrong encoding means nothing to the model, or something else.",
        source="[ours]",
        wrong='{"summary": "Lives in MalmÃ¶."}',
        right='{"summary": "Lives in Malmö."}',
    ),
    # ---- RES5: replies with an error status
    Rule(
        code="RES501",
        severity=Severity.WARNING,
        title="An error is a JSON object, sent as application/json.",
        reason="The consumer goes by the status, but whoever reads its log learns more from a code and a "
        "message than from a page of HTML.",
        source="[seed]",
        wrong="HTTP/1.1 503 Service Unavailable\nContent-Type: text/html\n\n<h1>Oops</h1>",
        right="HTTP/1.1 503 Service Unavailable\nContent-Type: application/json\n\n"
        '{"error": {"code": "unavailable", "message": "the store is down"}}',
    ),
    Rule(
        code="RES502",
        severity=Severity.WARNING,
        title="An error shows neither the authorization nor a stack trace.",
        reason="Error bodies end up in logs and tickets, where neither belongs.",
        source="[ours]",
        wrong='{"error": {"code": "internal_error", "message": "Traceback (most recent call last): …"}}',
        right='{"error": {"code": "internal_error", "message": "the lookup failed"}}',
    ),
    # ---- RES6: what only several calls show
    Rule(
        code="RES601",
        severity=Severity.ERROR,
        title="Memories are given only for the authorization that was agreed on.",
        reason="The authorization is all that tells whose memories these are: whoever has none, or an "
        "altered one, must not read them.",
        source="[ours]",
        wrong="Authorization: bearer GOOD-TOKEN  →  200 and memories",
        right='Authorization: bearer GOOD-TOKEN  →  401 {"error": {"code": "unauthorized"}}',
    ),
    Rule(
        code="RES602",
        severity=Severity.WARNING,
        title="The same retrieval is answered the same again.",
        reason="The live service asks again whenever the model does. A memory that comes and goes makes the "
        "character forget what it has just said. A provider that learns between two calls may have reasons.",
        source="[ours]",
        wrong='{"query": "tea"}  →  2 memories, and again  →  none',
        right='{"query": "tea"}  →  2 memories, and again  →  the same 2',
    ),
    Rule(
        code="RES603",
        severity=Severity.WARNING,
        title="With a larger max_results the same memories come first.",
        reason="max_results says how many of the best are wanted, not which. A re-ranker may have reasons to "
        "order a longer list otherwise.",
        source="[ours]",
        wrong='{"query": "tea", "max_results": 1}  →  A;  2  →  B, C',
        right='{"query": "tea", "max_results": 1}  →  A;  2  →  A, B',
    ),
    Rule(
        code="RES604",
        severity=Severity.WARNING,
        title="With fewer memory_types the rest stays, in its order.",
        reason="Types filter; a memory of a wanted kind that was there with more kinds should be there with "
        "fewer, in the same order. A re-ranker may have reasons.",
        source="[ours]",
        wrong="types preference, history  →  A (preference), B (history);  preference  →  nothing",
        right="types preference, history  →  A (preference), B (history);  preference  →  A",
    ),
    Rule(
        code="RES605",
        severity=Severity.ERROR,
        title="What does not matter does not break the answer.",
        reason="The order of memory_types, how JSON is spaced and escaped, chunks, the case of header names: "
        "clients differ in them and mean the same.",
        source="[ours]",
        wrong='{"query" : "tea" , "max_results" : 2}  →  5 memories',
        right='{"query" : "tea" , "max_results" : 2}  →  the 2 of {"query":"tea","max_results":2}',
    ),
    Rule(
        code="RES606",
        severity=Severity.ERROR,
        title="Calls at the same time do not disturb each other.",
        reason="A provider serves many live sessions at once. An answer that holds what another call asked "
        "for tells one user what belongs to another.",
        source="[ours]",
        wrong="two calls at once: one gets 500, or the memories of the other",
        right="each call gets what it gets alone",
    ),
)

RULES: dict[str, Rule] = {rule.code: rule for rule in _TABLE}
"""Every rule of messages by its code, in the order in which they are documented."""
