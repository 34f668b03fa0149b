"""The rules for what a consumer makes of a provider's replies, as a table like that of `book`.

This module holds no check. The first digit says what the rule is about: CON0 whether a call is answered, and
in which form; CON1 the outcome; CON2 the memories that are passed on; CON3 time and size; CON4 what is sent
to whom, and how often; CON5 what must not get to the model; CON6 whether the request is what was configured
and asked.
"""

from __future__ import annotations

from memmock.rules.book import Rule, Severity

CONSUMER_RULES = (
    # ---- CON0: whether a call is answered, and in which form
    Rule(
        code="CON001",
        severity=Severity.ERROR,
        title="Every call is answered.",
        reason="A consumer that crashes takes the conversation with it, and one that hangs keeps the user "
        "waiting, whatever the provider has sent. Each fault has an error for the model.",
        source="[ours]",
        wrong='{"memories": null}  →  TypeError: object of type NoneType has no len()',
        right='{"memories": null}  →  {"ok": false, "error": {"code": "invalid_response", "message": "…"}}',
    ),
    Rule(
        code="CON002",
        severity=Severity.ERROR,
        title="An answer is a tool result.",
        reason="The model goes by ok, by memories, and by one of the six codes. With another form or a "
        "code that nobody knows, it cannot tell what has happened.",
        source="[ours]",
        wrong='{"ok": false, "error": {"code": "rate_limited", "message": "too many requests"}}',
        right='{"ok": false, "error": {"code": "http_error", "message": "…", "status": 429}}',
    ),
    Rule(
        code="CON003",
        severity=Severity.ERROR,
        title="An error has a message for the model.",
        reason="The model explains to the user what has gone wrong, and the message is what it has to go "
        "by. It is a string that is not empty.",
        source="[ours]",
        wrong='{"ok": false, "error": {"code": "timeout"}}',
        right='{"ok": false, "error": {"code": "timeout", "message": "the provider took too long"}}',
    ),
    Rule(
        code="CON004",
        severity=Severity.ERROR,
        title="An http_error has the status that came.",
        reason="401, 429 and 503 call for different things: another credential, patience, or another day. "
        "The code alone does not tell them apart.",
        source="[ours]",
        wrong='503  →  {"code": "http_error", "message": "…"}',
        right='503  →  {"code": "http_error", "message": "…", "status": 503}',
    ),
    # ---- CON1: the outcome
    Rule(
        code="CON101",
        severity=Severity.ERROR,
        title="The outcome is the one that the contract gives.",
        reason="Whether there are memories, and if not why, decides what the model says next. An error "
        "that is taken for an empty answer becomes “you never told me”.",
        source="[ours]",
        wrong='404  →  {"ok": true, "memories": []}',
        right='404  →  {"ok": false, "error": {"code": "http_error", "message": "…", "status": 404}}',
    ),
    # ---- CON2: the memories that are passed on
    Rule(
        code="CON201",
        severity=Severity.ERROR,
        title="All usable memories are passed on, in their order, and nothing else.",
        reason="The provider sends the best first, and knows why. A memory that is lost is one that the "
        "character has forgotten; an unusable one does not spoil the others.",
        source="[ours]",
        wrong='[{"summary": "Likes tea."}, {"summary": null}]  →  invalid_response',
        right='[{"summary": "Likes tea."}, {"summary": null}]  →  [{"summary": "Likes tea."}]',
    ),
    Rule(
        code="CON202",
        severity=Severity.ERROR,
        title="The text of a summary arrives as it was sent.",
        reason="The summary is what the model reads. Text that was cut, escaped or decoded wrongly means "
        "something else, or nothing.",
        source="[ours]",
        wrong='{"summary": "R&D in 杭州"}  →  "R&amp;D in 杭州"',
        right='{"summary": "R&D in 杭州"}  →  "R&D in 杭州"',
    ),
    Rule(
        code="CON203",
        severity=Severity.ERROR,
        title="Optional fields are passed on as they came.",
        reason="The model treats a memory by its confidence, and of two that conflict it prefers the "
        "newer. Only a field that is not of the contract's form may be left out.",
        source="[ours]",
        wrong='{"summary": "Likes tea.", "confidence": 0}  →  {"summary": "Likes tea."}',
        right='{"summary": "Likes tea.", "confidence": 0}  →  the same',
    ),
    # ---- CON3: time and size
    Rule(
        code="CON301",
        severity=Severity.ERROR,
        title="timeout_ms bounds the whole exchange.",
        reason="Connecting, sending, headers and body together: a provider that sends one byte after the "
        "other must not keep the user waiting for longer than was configured.",
        source="[ours]",
        wrong="timeout_ms 3000, a byte every second  →  an answer after 40 s",
        right="timeout_ms 3000, a byte every second  →  timeout after 3 s",
    ),
    Rule(
        code="CON302",
        severity=Severity.ERROR,
        title="A call is not given up before timeout_ms.",
        reason="Whoever configures the time counts on it: an answer that comes within it is to be used.",
        source="[ours]",
        wrong="timeout_ms 3000  →  timeout after 1 s",
        right="timeout_ms 3000  →  timeout after 3 s",
    ),
    Rule(
        code="CON303",
        severity=Severity.ERROR,
        title="Reading stops at max_response_bytes.",
        reason="The limit is there to save memory and time. One that is looked at when everything has been "
        "read saves neither, and an answer that never ends is never refused.",
        source="[seed]",
        wrong="max_response_bytes 65536  →  8 MB are read, then response_too_large",
        right="max_response_bytes 65536  →  response_too_large, and the connection is closed",
    ),
    # ---- CON4: what is sent to whom, and how often
    Rule(
        code="CON401",
        severity=Severity.ERROR,
        title="One call is one request.",
        reason="A second try takes time that the user waits, and load from a provider that has just "
        "failed. Whether to try again is for the caller to say.",
        source="[ours]",
        wrong="503  →  the same request again, three times",
        right="503  →  http_error",
    ),
    Rule(
        code="CON402",
        severity=Severity.ERROR,
        title="Redirects are not followed.",
        reason="A redirect is an answer outside 2xx, so it is an http_error. The endpoint is what was "
        "agreed on; where a redirect leads is not.",
        source="[ours]",
        wrong="307, Location: https://other.example/memory  →  POST https://other.example/memory",
        right='307  →  {"code": "http_error", "message": "…", "status": 307}',
    ),
    Rule(
        code="CON403",
        severity=Severity.ERROR,
        title="The authorization goes nowhere but to the endpoint.",
        reason="Whoever has it can read the memories of the user. A host that was not configured must not "
        "get it, wherever its address came from.",
        source="[ours]",
        wrong="POST https://other.example/memory with Authorization: Bearer …",
        right="no request to other.example",
    ),
    Rule(
        code="CON404",
        severity=Severity.ERROR,
        title="The provider's certificate is verified.",
        reason="Without that anybody on the way can be the provider: get the authorization, and make up "
        "memories.",
        source="[ours]",
        wrong="https, a certificate that nobody trusts  →  the request is sent",
        right="https, a certificate that nobody trusts  →  connection_failed",
    ),
    Rule(
        code="CON405",
        severity=Severity.ERROR,
        title="A call does not depend on the calls before it.",
        reason="A connection that was left dirty, a late answer that is taken for the next one: the user "
        "gets an error without a cause, or the answer to another question.",
        source="[ours]",
        wrong="a timeout, and the next call gets the late answer of the first",
        right="a timeout, and the next call gets its own answer",
    ),
    Rule(
        code="CON406",
        severity=Severity.ERROR,
        title="Every call asks the provider.",
        reason="Memories change while a session lives. An answer that is kept hides what the user has just "
        "said, and one that is made up without asking says nothing of the provider.",
        source="[ours]",
        wrong="the same query again  →  the memories of the first time, and no request",
        right="the same query again  →  another request",
    ),
    # ---- CON5: what must not get to the model
    Rule(
        code="CON501",
        severity=Severity.ERROR,
        title="No authorization is in what the model is given.",
        reason="What the model reads it may say, and logs of conversations are read by many.",
        source="[ours]",
        wrong='{"code": "http_error", "message": "401 for Bearer s3cr3t-t0ken", "status": 401}',
        right='{"code": "http_error", "message": "the provider refused the request", "status": 401}',
    ),
    Rule(
        code="CON502",
        severity=Severity.ERROR,
        title="An error message holds no raw text of the provider.",
        reason="A page of HTML or a stack trace is noise to a model, and a text that was written to be "
        "obeyed is obeyed. The message says in the consumer's own words what has gone wrong.",
        source="[ours]",
        wrong='{"code": "invalid_json", "message": "not JSON: <html><head><title>502 Bad …"}',
        right='{"code": "invalid_json", "message": "the answer is not JSON"}',
    ),
    # ---- CON6: whether the request is what was configured and asked
    Rule(
        code="CON601",
        severity=Severity.ERROR,
        title="The request asks for what was asked.",
        reason="A query that is cut, a number that is replaced, a field that is dropped: the provider "
        "answers another question, and nobody notices.",
        source="[ours]",
        wrong='max_results 1  →  {"query": "tea", "max_results": 5}',
        right='max_results 1  →  {"query": "tea", "max_results": 1}',
    ),
    Rule(
        code="CON602",
        severity=Severity.ERROR,
        title="The request goes to the endpoint as it is configured.",
        reason="The path and the query string may say whose memories these are. Without them another "
        "provider answers, or none.",
        source="[seed]",
        wrong="https://provider.example/memory?tenant=a  →  POST /memory",
        right="https://provider.example/memory?tenant=a  →  POST /memory?tenant=a",
    ),
    Rule(
        code="CON603",
        severity=Severity.ERROR,
        title="The authorization is sent as it is configured.",
        reason="The provider finds whose memories are asked for by this value. With a scheme put before "
        "it, or trimmed, it is another one.",
        source="[seed]",
        wrong="authorization k-17  →  Authorization: Bearer k-17",
        right="authorization k-17  →  Authorization: k-17",
    ),
)
"""Every rule for consumers, in the order in which they are documented."""
