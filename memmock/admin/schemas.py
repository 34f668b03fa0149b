"""What the control API is sent and answers, as JSON Schema, and the check of what is sent."""

from __future__ import annotations

from typing import Any

from memmock import strictjson
from memmock.contract import MEMORY_TYPES
from memmock.errors import MemmockError
from memmock.http import Request
from memmock.strictjson import shortened

_MOST_BYTES = 64 * 1024
_LARGE = ("Memories", "Persona")
"""What may be as large as the server takes."""
_MOST_TEXT = 10_000
"""How long a text may be that names scenarios: they are read on the server's loop."""


def _object(required: str | None = None, **kinds: Any) -> dict[str, Any]:
    """Return the schema of an object with these fields, all needed if it is not said which; ? is or null."""
    properties = {
        name: {"type": [kind[:-1], "null"] if kind.endswith("?") else kind} if isinstance(kind, str) else kind
        for name, kind in kinds.items()
    }
    needed = [*properties] if required is None else required.split()
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def _array(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


_ANY = {"type": "object"}
_NAMES = {"type": "string", "maxLength": _MOST_TEXT}
_RULE = _object(
    required="steps", use="string", plan="string", chaos="string", seed="integer",
    when={"type": ["object", "string"]}, for_s="number",
    steps=_array(_object(play="string", times="integer?", played="integer")),
)  # fmt: skip

_PART = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}]}

SCHEMAS: dict[str, dict[str, Any]] = {
    "Health": _object(status={"const": "ok"}, version="string", calls="integer", memories="integer"),
    "Scenarios": _object(
        scenarios=_array(
            _object(
                name="string", family="string", summary="string", outcomes=_array({"type": "string"}),
                parameters=_ANY, aliases=_array({"type": "string"}), needs="string",
            )
        )
    ),
    "Use": _object(
        required="use", use=_NAMES, times="integer?", when="object?", for_s="number?", **{"with": "object?"}
    ),
    "Plan": _object(plan=_NAMES),
    "Chaos": _object(chaos=_NAMES, seed="integer"),
    "Nothing": _object(),
    "Rules": _object(rules=_array(_RULE)),
    "Plans": _object(plans=_array(_RULE)),
    "Memories": _object(
        memories=_array(
            {
                "type": "object",
                "properties": {
                    **{name: {"type": ["string", "null"]} for name in ("id", "updated_at", "source")},
                    "summary": {"type": "string", "pattern": r"\S"},
                    "type": {"enum": [*MEMORY_TYPES, None]},
                    "confidence": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
                    "keywords": {"type": ["array", "null"], "items": {"type": "string"}},
                },
                "required": ["summary"],
            }
        )
    ),
    "Persona": _object(text="string", format={"type": "string", "enum": ["json", "yaml"]}),
    "PersonaFile": _object(live=_ANY),
    "Rank": _object(
        required="query", query=_NAMES, time_hint="string?", max_results="integer?",
        memory_types={"type": ["array", "null"], "items": {"enum": [*MEMORY_TYPES]}},
    ),
    "Ranking": _object(
        ranking=_array(
            _object(
                index="integer", sent="boolean", id="string?", type="string?", score="integer",
                summary=_array(_PART), keywords=_array(_array(_PART)),
            )
        ),
        found="integer", left_out="integer",
    ),
    "Calls": _object(
        calls=_array(
            _object(
                number="integer", time={"type": "string", "format": "date-time"}, method="string",
                target="string", headers=_array(_array({"type": "string"})), retrieval=_ANY,
                status="integer", played="string", ending="string", sent_bytes="integer?",
                elapsed_ms="number", timeout_ms="integer", connection="integer", over="boolean",
                retry_of="integer?", violations=_array(_ANY), results="integer",
            )
        ),
        last="integer", total="integer", dropped="integer",
    ),
    "Document": _ANY,
    "Error": _object(error={"type": "object", "required": ["code", "message"]}),
}  # fmt: skip
"""What is sent and answered, as JSON Schema; bodies that are sent are checked by it."""


def fields(request: Request, schema: str) -> dict[str, Any]:
    """Return the fields of a body, which are of the kinds that its schema says; null is as absent.

    Raises:
        MemmockError: the body is not one.
    """
    if schema not in _LARGE and len(request.body) > _MOST_BYTES:
        raise MemmockError(f"the body must have at most {_MOST_BYTES:,} bytes, not {len(request.body):,}")
    known, required = SCHEMAS[schema]["properties"], SCHEMAS[schema]["required"]
    names = ", ".join(known) or "none"
    try:
        given = strictjson.parse(request.body)
    except ValueError as error:
        raise MemmockError(f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise MemmockError(f"the body must be an object with the fields {names}, not {shortened(given)}")
    if unknown := [name for name in given if name not in known]:
        raise MemmockError(f"the body has no field {shortened(unknown[0])}; its fields are {names}")
    given = {name: value for name, value in given.items() if value is not None}
    if missing := [name for name in required if name not in given]:
        raise MemmockError(f"the body needs the field {missing[0]}; its fields are {names}")
    for name, value in given.items():
        kinds = known[name]["type"]
        kind = kinds if isinstance(kinds, str) else kinds[0]
        if not isinstance(value, _PYTHON[kind]) or isinstance(value, bool):
            raise MemmockError(f"{name} must be {_CALLED[kind]}, not {shortened(value)}")
        if isinstance(value, str) and len(value) > _MOST_TEXT and schema not in _LARGE:
            raise MemmockError(f"{name} must have at most {_MOST_TEXT:,} characters, not {len(value):,}")
    return given


_PYTHON: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "object": dict,
    "array": list,
}
_CALLED = {"string": "text", "integer": "an integer", "number": "a number", "object": "an object",
           "array": "an array"}  # fmt: skip
