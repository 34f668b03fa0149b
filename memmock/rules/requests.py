"""What is wrong with a request: the checks behind the REQ rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memmock.contract import FORBIDDEN_FIELDS, MEMORY_TYPES
from memmock.http import JSON_TYPE
from memmock.rules.judgement import Judgement, names
from memmock.strictjson import UNREADABLE, shortened, walk

if TYPE_CHECKING:
    from memmock.http import Request
    from memmock.rules.book import Violation


def request_violations(request: Request, *, authorization: str | None = None) -> list[Violation]:
    """Return everything that is wrong with a request, the headers first; empty when it keeps the contract.

    Never raises, whatever the request holds. The path is not judged: a gateway may change it.

    Args:
        request: As it was received.
        authorization: What the live session was created with; without it only the presence of the header is
            judged. Neither value is ever shown.
    """
    judgement = Judgement()
    if request.method != "POST":
        judgement.broken("REQ001", "must be POST", where="method", value=request.method)
    judgement.json_type("REQ002", request.header("Content-Type"))
    _judge_accept(judgement, request.header("Accept"))
    _judge_authorization(judgement, request, authorization)
    _judge_body(judgement, request.body)
    return judgement.violations()


def body_violations(body: bytes) -> list[Violation]:
    """Return everything that is wrong with the body of a request, as `request_violations` does."""
    judgement = Judgement()
    _judge_body(judgement, body)
    return judgement.violations()


def _judge_accept(judgement: Judgement, accept: str | None) -> None:
    if not names(accept, JSON_TYPE):
        found = "is absent" if accept is None else f"is {shortened(accept)}"
        judgement.broken("REQ003", f"{found}, should name {JSON_TYPE}", "Accept", where="header")


def _judge_authorization(judgement: Judgement, request: Request, authorization: str | None) -> None:
    sent = [value.strip() for name, value in request.headers if name.lower() == "authorization"]
    if not any(sent):
        message = f"is {'empty' if sent else 'absent'}, should be the configured value"
        judgement.broken("REQ004", message, "Authorization", where="header")
    if len(sent) > 1:
        judgement.broken("REQ005", f"is sent {len(sent)} times", "Authorization", where="header")
    if authorization is not None and any(sent):
        expected = authorization.strip()
        # a value beyond Latin-1 goes out as UTF-8; headers here are the same bytes read as Latin-1
        as_bytes = expected.encode("utf-8", "surrogatepass").decode("latin-1")
        if any(value not in (expected, as_bytes) for value in sent):
            message = "differs from the configured value (neither is shown)"
            judgement.broken("REQ006", message, "Authorization", where="header")


def _judge_body(judgement: Judgement, body: bytes) -> None:
    asked = judgement.json(body, "REQ")
    if asked is UNREADABLE:
        return
    if isinstance(asked, dict):
        _judge_query(judgement, asked)
        _judge_texts(judgement, asked)
        _judge_memory_types(judgement, asked)
        _judge_max_results(judgement, asked)
    else:
        judgement.broken("REQ201", "must be an object", value=asked)
    _judge_names(judgement, asked)


def _judge_query(judgement: Judgement, asked: dict[str, Any]) -> None:
    if "query" not in asked:
        judgement.broken("REQ202", "is absent, must be a string that is not empty", "query")
    elif not isinstance(query := asked["query"], str):
        judgement.broken("REQ202", "must be a string", "query", value=query)
    elif not query:
        judgement.broken("REQ202", "must not be empty", "query")
    elif not query.strip():
        judgement.broken("REQ203", "is white space only", "query")


def _judge_texts(judgement: Judgement, asked: dict[str, Any]) -> None:
    for code, name in (("REQ204", "live_id"), ("REQ205", "reason"), ("REQ205", "time_hint")):
        if name in asked and not isinstance(asked[name], str):
            judgement.broken(code, "must be a string", name, value=asked[name])


def _judge_memory_types(judgement: Judgement, asked: dict[str, Any]) -> None:
    kinds = asked.get("memory_types", [])
    if not isinstance(kinds, list):
        judgement.broken("REQ206", "must be an array", "memory_types", value=kinds)
        return
    seen = set()
    for n, kind in enumerate(kinds):
        if not isinstance(kind, str) or kind not in MEMORY_TYPES:
            judgement.broken("REQ207", "must be one of the kinds", "memory_types", n, value=kind)
        elif kind in seen:
            judgement.broken("REQ208", f"repeats {shortened(kind)}", "memory_types", n)
        else:
            seen.add(kind)


def _judge_max_results(judgement: Judgement, asked: dict[str, Any]) -> None:
    most = asked.get("max_results", 1)
    # bool is an int to Python, not to JSON
    whole = isinstance(most, int) and not isinstance(most, bool)
    as_float = isinstance(most, float) and most.is_integer()
    if not (whole or as_float) or most < 1:
        judgement.broken("REQ209", "must be an integer of at least 1", "max_results", value=most)
    elif as_float:
        judgement.broken("REQ210", f"is written as a decimal, {shortened(most)}", "max_results")


_FORBIDDEN_CODES = {
    "user": "REQ301",
    "character": "REQ302",
    "filter": "REQ303",
    "embedding": "REQ304",
    "sensitivity": "REQ305",
}
_FORBIDDEN: Final = {
    name.replace("_", ""): _FORBIDDEN_CODES[kind]
    for kind, names in FORBIDDEN_FIELDS.items()
    for name in names
}


def _judge_names(judgement: Judgement, asked: Any) -> None:
    """Look for forbidden names in every object, however they are spelled: userId, user-id, USER_ID."""
    for steps, value in walk(asked):
        if isinstance(value, dict):
            for name in value:
                if code := _FORBIDDEN.get(name.lower().replace("_", "").replace("-", "")):
                    judgement.broken(code, "must not be in a request", *steps, name)
