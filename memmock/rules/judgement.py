"""What the checks of requests and replies share: a list of findings that stays bounded, JSON, media types."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from memmock.http import JSON_TYPE
from memmock.rules.book import RULES, Violation, Where
from memmock.strictjson import FlawKind, pointer, read, shortened

MOST_OF_A_RULE = 20
"""How many violations of one rule in one message are listed [ours]; one more says how many were left out."""

_MISSING = object()

# the rules about JSON have the same endings for requests (REQ) and replies (RES)
_FLAW_CODES: dict[FlawKind, str] = {
    "utf-8": "101", "bom": "102", "syntax": "102", "depth": "102", "nan": "102",
    "duplicate": "103", "surrogate": "104", "range": "105",
}  # fmt: skip


@dataclass(slots=True)
class Judgement:
    """The violations found in one message so far, in the order in which the checks found them."""

    _found: list[Violation] = field(default_factory=list)
    _counts: Counter[tuple[str, Where]] = field(default_factory=Counter)

    def broken(
        self, code: str, message: str, *steps: str | int, where: Where = "body", value: Any = _MISSING
    ) -> None:
        """Note a violation; `steps` lead to its place in the body, or name the header.

        `value` is what was found there: the message names it. A credential is never passed here.
        """
        self._counts[code, where] += 1
        if self._counts[code, where] > MOST_OF_A_RULE:
            return
        found = "" if value is _MISSING else shortened(value)
        place = "".join(map(str, steps)) if where == "header" else pointer(*steps)
        text = f"{message}, not {found}" if found else message
        self._found.append(Violation(RULES[code], where, place, text, found))

    def violations(self) -> list[Violation]:
        """Return what was found; for each rule broken too often, one more says how often."""
        return self._found + [
            Violation(RULES[code], where, "", f"and {times - MOST_OF_A_RULE} more like this")
            for (code, where), times in self._counts.items()
            if times > MOST_OF_A_RULE
        ]

    def json(self, body: bytes, group: str, hint: str = "") -> Any:
        """Return the value of `body`, or `UNREADABLE`, and note its flaws under `group` (REQ or RES).

        `hint` is added where the body holds no JSON at all.
        """
        value, flaws = read(body)
        for flaw in flaws:
            rule = RULES[group + _FLAW_CODES[flaw.kind]]
            message = flaw.detail + (hint if flaw.kind == "syntax" else "")
            self._found.append(Violation(rule, "body", flaw.pointer, message))
        return value

    def json_type(self, code: str, content_type: str | None) -> None:
        """Note a violation of `code` unless the value of a Content-Type says JSON in UTF-8."""
        media_type, *parameters = (content_type or "").split(";")
        if media_type.strip().lower() != JSON_TYPE:
            found = "is absent" if content_type is None else f"is {shortened(content_type)}"
            self.broken(code, f"{found}, should be {JSON_TYPE}", "Content-Type", where="header")
        for parameter in parameters:
            name, _, charset = parameter.partition("=")
            if name.strip().lower() == "charset" and charset.strip(' \t"').lower() not in ("utf-8", "utf8"):
                self.broken(code, "the charset must be utf-8", "Content-Type", where="header", value=charset)


def names(accept: str | None, *wanted: str) -> bool:
    """Return whether the value of Accept or Accept-Encoding allows what it lists under one of `wanted`.

    The first of `wanted` that is listed decides; a weight of 0 (`gzip;q=0`) says no.
    """
    listed = {}
    for entry in (accept or "").lower().split(","):
        name, *parameters = entry.split(";")
        listed[name.strip()] = not any(_ZERO_WEIGHT.fullmatch(parameter) for parameter in parameters)
    return next((listed[name] for name in wanted if name in listed), False)


_ZERO_WEIGHT = re.compile(r"\s*q\s*=\s*0(?:\.0*)?\s*")
