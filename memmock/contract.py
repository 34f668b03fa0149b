"""The contract as data: what the consumer is configured with, what it sends, what it gets.

The classes here are the typed form, and the JSON Schema and the OpenAPI document are generated from their
fields, so there is one place to change. Each field carries its meaning and where that was said:
[seed] the protocol page, [ref] the vendor's API reference, [ours] a decision where both are silent.
What the contract asks beyond shapes is in `rules`.
"""

from __future__ import annotations

import re
import types
import typing
from dataclasses import KW_ONLY, MISSING, Field, dataclass, field, fields
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from memmock.errors import MemmockError
from memmock.strictjson import shortened

DEFAULT_PATH = "/memory_retrieval"
"""Where the provider answers; a gateway prefix may stand before it [ours]."""
DEFAULT_AUTHORIZATION = "Bearer memmock"
"""What memmock's own consumer sends, and its mock in a test accepts, when nothing else is said [ours]."""
DEFAULT_TIMEOUT_MS = 3000
"""How long one whole exchange may take: connect, send, headers and body together [ours]."""
MAX_TIMEOUT_MS = 86_400_000
"""The longest time that is taken for `timeout_ms`, one day [ours]."""
MAX_ENDPOINT_BYTES = 8192
MAX_AUTHORIZATION_BYTES = 8192
"""The longest `endpoint` and `authorization` that are taken, in UTF-8: servers refuse longer heads [ours]."""
DEFAULT_MAX_RESULTS = 5
"""How many memories are wanted when the request does not say [ours]."""
DEFAULT_MAX_RESPONSE_BYTES = 65_536
"""How large the body of a response may be, as received and as decoded [ours]."""


class MemoryType(StrEnum):
    """The kinds of memory [seed]."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> MemoryType:
        """Make a member of a value and its meaning."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    PREFERENCE = "preference", "what the user prefers: food, language, tools, style of answers"
    PROFILE = "profile", "basic facts: job, place, role"
    HISTORY = "history", "facts and choices from past conversations"
    PROJECT = "project", "what the user is working on, long-running tasks"
    CONSTRAINT = "constraint", "explicit limits: no Python, a small budget"
    RELATIONSHIP = "relationship", "people: family, team, contacts"
    STYLE = "style", "preferred output style, tone, format"
    OTHER = "other", "anything else"


MEMORY_TYPES: tuple[str, ...] = tuple(str(kind) for kind in MemoryType)

FORBIDDEN_FIELDS: dict[str, tuple[str, ...]] = {
    "user": ("user_id",),
    "character": ("character_id",),
    "filter": ("filter", "filters", "db_filter", "db_filters", "database_filter", "database_filters",
               "metadata_filter", "query_filter", "sql"),
    "embedding": ("embedding", "embeddings", "query_embedding", "vector", "vectors", "query_vector"),
    "sensitivity": ("sensitive", "sensitivity", "include_sensitive", "exclude_sensitive", "allow_sensitive",
                    "with_sensitive", "sensitive_info", "include_sensitive_info", "include_pii",
                    "allow_pii"),
}  # fmt: skip
"""Names that a request never holds, at any depth, whatever their case and separators [seed for the five
kinds, ours for the spellings]: a provider finds its scope without them."""


def _spec(meaning: str, source: str, default: Any = None, **schema: Any) -> Any:
    return field(default=default, metadata={"meaning": meaning, "source": source, "schema": schema})


def _required(meaning: str, source: str, *, shown: bool = True, **schema: Any) -> Any:
    return field(repr=shown, metadata={"meaning": meaning, "source": source, "schema": schema})


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What the consumer asks: the JSON body of `POST <endpoint>`.

    An optional field that is None is absent on the wire.
    """

    query: str = _required("what to look up, in natural language", "[ref]", minLength=1)
    _: KW_ONLY
    live_id: str | None = _spec("the live session; a 64-bit number carried as a string", "[ref]")
    reason: str | None = _spec("why the model looks it up", "[ref]")
    memory_types: tuple[str, ...] | None = _spec(
        "which kinds are wanted; absent or empty means all kinds", "[ref]", items={"enum": list(MEMORY_TYPES)}
    )
    time_hint: str | None = _spec("a time in natural language; may be empty", "[ref]")
    max_results: int | None = _spec(
        f"at most this many memories; {DEFAULT_MAX_RESULTS} when absent", "[ref]", minimum=1
    )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that goes on the wire, absent fields left out."""
        return _present(self)


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory of a response. Only `summary` is required; the other fields are recommended."""

    summary: str = _required(
        "what the model reads: a short natural sentence, not a raw chat log", "[seed]", pattern=r"\S"
    )
    _: KW_ONLY
    id: str | None = _spec("unique within a response", "[ref]")
    type: str | None = _spec(
        "one of the kinds, and one of those requested", "[seed]", enum=list(MEMORY_TYPES)
    )
    confidence: float | None = _spec("how sure the provider is", "[seed]", minimum=0, maximum=1)
    updated_at: str | None = _spec("when the memory last changed, RFC 3339", "[seed]", format="date-time")
    source: str | None = _spec("where it is from, as `explicit_user_statement`", "[seed]")

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that goes on the wire, absent fields left out, `id` first."""
        values = _present(self)
        return {"id": values.pop("id"), **values} if "id" in values else values


@dataclass(frozen=True, slots=True)
class MemoriesResponse:
    """The body of a `200`; nothing found is an empty array."""

    memories: tuple[Memory, ...] = _required("what was found, the best first", "[seed]")

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that goes on the wire."""
        return {"memories": [memory.to_json() for memory in self.memories]}


@dataclass(frozen=True, slots=True)
class RetrievalConfig:
    """How the consumer reaches the provider: the `memory_retrieval` block of CreateLive.

    `max_response_bytes` is a setting of the consumer that CreateLive does not carry [ours]. The
    authorization is never part of the repr.

    Raises:
        MemmockError: a value with which no live session could be created; the message names all of them.
    """

    endpoint: str = _required("absolute http or https URL of the provider", "[seed]", format="uri")
    authorization: str = _required(
        "sent verbatim as the Authorization header; never empty", "[seed]", shown=False, minLength=1
    )
    _: KW_ONLY
    enabled: bool = _spec("whether the live session looks memories up", "[ref]", True)
    timeout_ms: int = _spec(
        "how long one whole exchange may take, in milliseconds", "[ref]", DEFAULT_TIMEOUT_MS, minimum=1
    )
    max_response_bytes: int = field(default=DEFAULT_MAX_RESPONSE_BYTES)

    def __post_init__(self) -> None:
        """Refuse what CreateLive refuses."""
        if mistakes := list(_config_mistakes(self)):
            raise MemmockError(f"memory_retrieval: {'; '.join(mistakes)}")

    def to_json(self) -> dict[str, Any]:
        """Return the `memory_retrieval` block as CreateLive takes it."""
        return {name: getattr(self, name) for name in ("enabled", "endpoint", "authorization", "timeout_ms")}


def _config_mistakes(config: RetrievalConfig) -> typing.Iterator[str]:
    if mistake := url_mistake(config.endpoint):
        yield f"endpoint {mistake}"
    if mistake := _authorization_mistake(config.authorization):
        yield f"authorization {mistake}"
    for name in ("timeout_ms", "max_response_bytes"):
        if type(value := getattr(config, name)) is not int or value < 1:
            yield f"{name} must be a positive integer, not {value!r}"


_NOT_IN_URLS = re.compile(r"[\s\x00-\x20\x7f-\x9f]")
"""Spaces and control characters, some of which `urlsplit` leaves out without a word."""


def url_mistake(endpoint: str) -> str | None:
    """Return what is wrong with the URL of an endpoint, to be read after its name; None when nothing is."""
    try:
        url = urlsplit(endpoint)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable or _NOT_IN_URLS.search(endpoint):
        return "must be an absolute http or https URL"
    if _is_longer(endpoint, MAX_ENDPOINT_BYTES):
        return f"must not be longer than {MAX_ENDPOINT_BYTES:,} bytes"
    if url.username is not None:
        return "must not hold a user name or password; credentials go into authorization"
    return None


def _authorization_mistake(authorization: str) -> str | None:
    if not authorization.strip():
        return "must not be empty, even for a provider that ignores it"
    if any(ord(char) < 32 or ord(char) == 127 for char in authorization):
        return "must not hold control characters"
    if _is_longer(authorization, MAX_AUTHORIZATION_BYTES):
        return f"must not be longer than {MAX_AUTHORIZATION_BYTES:,} bytes"
    return None


def _is_longer(text: str, most: int) -> bool:
    return len(text) > most or len(text.encode("utf-8", "surrogatepass")) > most


def _surrogate_mistake(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return "must not hold half of a surrogate pair"
    return None


def block_mistakes(block: object) -> dict[str, str]:
    """Return what CreateLive refuses in its `memory_retrieval` block, a JSON value as it was sent.

    A message for each field with a mistake, to be read after the field's name; that of the block as a whole
    is under "". Empty when there is none. Of a block with `enabled` false, only what is there is looked at
    [ours]. Endpoint and authorization are never quoted. Unknown fields pass.
    """
    if not isinstance(block, dict):
        return {"": "must be an object"}
    mistakes = {}
    enabled = block.get("enabled", True)
    if not isinstance(enabled, bool):
        mistakes["enabled"] = f"must be true or false, not {shortened(enabled)}"
    texts = {"endpoint": url_mistake, "authorization": _authorization_mistake}
    for name, mistake_of in texts.items():
        if name not in block:
            mistake = None if enabled is False else "is missing"
        elif isinstance(value := block[name], str):
            mistake = mistake_of(value) or _surrogate_mistake(value)
        else:
            mistake = "must be a string"
        if mistake:
            mistakes[name] = mistake
    timeout_ms = block.get("timeout_ms", DEFAULT_TIMEOUT_MS)
    if type(timeout_ms) is not int or timeout_ms < 1:
        mistakes["timeout_ms"] = f"must be a positive integer, not {shortened(timeout_ms)}"
    elif timeout_ms > MAX_TIMEOUT_MS:
        mistakes["timeout_ms"] = f"must be at most {MAX_TIMEOUT_MS:,}, which is one day"
    return mistakes


def _present(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that are there, as JSON values."""
    pairs = ((spec.name, getattr(value, spec.name)) for spec in fields(value))
    return {name: list(item) if isinstance(item, tuple) else item for name, item in pairs if item is not None}


# ---- JSON Schema and OpenAPI

_PYTHON_TO_JSON = {str: "string", int: "integer", float: "number", bool: "boolean"}


def json_schema() -> dict[str, Any]:
    """Return the contract's shapes as one JSON Schema document (2020-12), one definition a class."""
    definitions = _definitions("#/$defs/")
    # At the top only: at any depth would take a recursive schema, which tools choke on; `rules` goes deeper.
    # And not in the OpenAPI document: a consumer must not send these names, but a provider may ignore them.
    forbidden = [name for names in FORBIDDEN_FIELDS.values() for name in names]
    definitions["Retrieval"]["propertyNames"] = {"not": {"enum": forbidden}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:memmock:memory-retrieval",
        "title": "Memory retrieval",
        "$defs": definitions,
    }


def openapi() -> dict[str, Any]:
    """Return the contract of a provider as an OpenAPI 3.1 document."""
    from memmock import __version__

    refs = "#/components/schemas/"
    definitions = _definitions(refs)
    error = _json_content(f"{refs}ErrorResponse")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Memory retrieval",
            "version": __version__,
            "summary": "What a live service asks of an external memory provider.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": "http://127.0.0.1:8765", "description": "memmock serve"}],
        # [seed] the consumer always sends the header; a provider may ignore it
        "security": [{"authorization": []}, {}],
        "paths": {
            DEFAULT_PATH: {
                "post": {
                    "operationId": "retrieveMemories",
                    "summary": "Look memories up",
                    "requestBody": {"required": True, **_json_content(f"{refs}Retrieval")},
                    "responses": {
                        "200": {"description": "What was found", **_json_content(f"{refs}MemoriesResponse")},
                        "4XX": {"description": "The request is refused", **error},
                        "5XX": {"description": "The provider failed", **error},
                    },
                }
            }
        },
        "components": {
            "schemas": definitions,
            "securitySchemes": {
                "authorization": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "The `authorization` of `memory_retrieval`, verbatim [seed].",
                }
            },
        },
    }


def _json_content(ref: str) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": {"$ref": ref}}}}


def _definitions(refs: str) -> dict[str, Any]:
    """Return the schemas of all classes; they refer to each other under `refs`."""
    definitions = {cls.__name__: _object_schema(cls, refs) for cls in (
        Retrieval, Memory, MemoriesResponse, RetrievalConfig
    )}  # fmt: skip
    definitions["MemoriesResponse"]["properties"]["has_more"] = {
        "type": "boolean", "deprecated": True, "description": "Not needed [seed]."
    }  # fmt: skip
    definitions["ErrorResponse"] = {
        "description": "Structured JSON with an error; any object is accepted [ours].",
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            }
        },
    }
    return definitions


def _object_schema(cls: type[Any], refs: str) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    specs: list[Field[Any]] = [spec for spec in fields(cls) if spec.metadata]
    assert cls.__doc__ is not None
    return {
        "description": cls.__doc__.partition("\n")[0],
        "type": "object",
        "required": [spec.name for spec in specs if _is_required(spec)],
        "properties": {spec.name: _field_schema(spec, hints[spec.name], refs) for spec in specs},
    }


def _is_required(spec: Field[Any]) -> bool:
    return spec.default is MISSING


def _field_schema(spec: Field[Any], hint: Any, refs: str) -> dict[str, Any]:
    described: dict[str, Any] = {"description": f"{spec.metadata['meaning']} {spec.metadata['source']}"}
    if not _is_required(spec) and spec.default is not None:
        described["default"] = spec.default
    return {**_type_schema(hint, refs), **described, **spec.metadata["schema"]}


def _type_schema(hint: Any, refs: str) -> dict[str, Any]:
    if isinstance(hint, types.UnionType):  # X | None: an optional field is absent, never null
        hint = next(part for part in typing.get_args(hint) if part is not types.NoneType)
    if typing.get_origin(hint) is tuple:
        return {"type": "array", "items": _type_schema(typing.get_args(hint)[0], refs)}
    if hint in _PYTHON_TO_JSON:
        return {"type": _PYTHON_TO_JSON[hint]}
    return {"$ref": f"{refs}{hint.__name__}"}
