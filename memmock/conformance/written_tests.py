"""Findings as a pytest file: each test fails as long as the provider does what was found.

The file needs memmock and pytest. It holds no secret: what is one is read from the environment.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

from memmock import documents, strictjson
from memmock.conformance.case import PLAIN, Case
from memmock.conformance.finding import Finding, Result
from memmock.conformance.reproduction import made_from, secrets_of
from memmock.conformance.session import Target
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES, DEFAULT_TIMEOUT_MS
from memmock.redaction import SECRET_NAME, Redactor, mask_of
from memmock.strictjson import printable

FILE_NAME = "test_memmock_findings.py"
TIMES_FOR_FLAKY = 20
"""So often is made again what did not show every time."""
_MARK = documents.marked("tests")
_WIDTH = 100
_DEEPEST = 20
"""What is nested deeper is written as JSON: Python reads only so many brackets in each other."""
_LONGEST_PERIOD = 64
_HEAD = '''{mark}"""What memmock found, as tests that pass once the provider is fixed.

    {command}
"""

{json}import os

import pytest

from memmock.conformance.case import Case{form}
from memmock.conformance.reproduction import assert_fixed
from memmock.conformance.session import Session, Target

{constants}


@pytest.fixture
def session():
{check}    session = Session({target})
    yield session
    session.close()
'''
_CHECK = """    if not AUTHORIZATION:
        pytest.fail("set MEMMOCK_AUTHORIZATION: without it nothing can be told")
"""


def write_tests(result: Result, directory: str | PathLike[str], target: Target) -> Path | None:
    """Write a test for each finding into a file of the directory, and return its path.

    The file that was written there before is replaced. Without findings nothing is written, and that file
    stays: None is returned.

    Raises:
        MemmockError: there is a file of this name that memmock did not write, or it cannot be written.
    """
    if not result.findings:
        return None
    path = Path(directory) / FILE_NAME
    documents.write_own(path, source(result.findings, target).encode())
    return path


def source(findings: Iterable[Finding], target: Target) -> str:
    """Return the text of the file; the same for the same findings."""
    findings = list(findings)
    cases = [answer.case for finding in findings for answer in finding.answers]
    writer = _Writer(target, mask_of(*secrets_of(target, cases)))
    names = _names(findings)
    tests = [writer.test(finding, name) for finding, name in zip(findings, names, strict=True)]
    return "\n\n".join([writer.head(cases), *tests])


def _names(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a name for each test: the rule and what it asks, with a number from the second on."""
    seen: Counter[str] = Counter()
    for finding in findings:
        words = re.findall("[a-z0-9]+", finding.rule.title.lower().replace("'s", "s"))
        name = f"test_{finding.rule.code.lower()}"
        for word in words:
            if len(name) + len(word) > 60:
                break
            name += f"_{word}"
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}_{seen[name]}"


class _Writer:
    """Writes for one target, and hides its secrets in what goes into literals and comments."""

    def __init__(self, target: Target, hide: Callable[[str], str]) -> None:
        self._target = target
        self._hide = hide

    # ---- the head

    def head(self, cases: list[Case]) -> str:
        """Return everything before the first test."""
        needs = "MEMMOCK_AUTHORIZATION=… " if self._target.authorization else ""
        return _HEAD.format(
            mark=_MARK,
            command=f"{needs}pytest {FILE_NAME}",
            json="import json\n" if any(_is_deep(case.fields) for case in cases) else "",
            form=", Form" if any(case.form != PLAIN for case in cases) else "",
            constants="\n".join(self._constants()),
            check=_CHECK if self._target.authorization else "",
            target=self._target_text(),
        )

    def _constants(self) -> Iterator[str]:
        url = self._target.url
        if self._hide(Redactor().uri(url)) == url:
            yield f'ENDPOINT = os.environ.get("MEMMOCK_ENDPOINT", {_quoted(url)})'
        else:
            yield 'ENDPOINT = os.environ["MEMMOCK_ENDPOINT"]  # it holds a secret'
        if self._target.authorization:
            yield 'AUTHORIZATION = os.environ.get("MEMMOCK_AUTHORIZATION", "")'
        if self._target.headers:
            yield "HEADERS = ("
            for name, value in self._target.headers:
                yield f"    ({_quoted(name)}, {self._header_value(name, value)}),"
            yield ")"

    def _header_value(self, name: str, value: str) -> str:
        """Return a literal, or where in the environment a secret is."""
        if not SECRET_NAME.search(name) and self._hide(value) == value:
            return _quoted(value)
        variable = f"MEMMOCK_HEADER_{re.sub('[^A-Za-z0-9]', '_', name).upper()}"
        return f'os.environ["{variable}"]'

    def _target_text(self) -> str:
        target = self._target
        parts = ["url=ENDPOINT"]
        if target.authorization:
            parts.append("authorization=AUTHORIZATION")
        if target.open:
            parts.append("open=True")
        if target.headers:
            parts.append("headers=HEADERS")
        if target.timeout_ms != DEFAULT_TIMEOUT_MS:
            parts.append(f"timeout_ms={target.timeout_ms}")
        if target.max_response_bytes != DEFAULT_MAX_RESPONSE_BYTES:
            parts.append(f"max_response_bytes={target.max_response_bytes}")
        return f"Target({', '.join(parts)})"

    # ---- a test

    def test(self, finding: Finding, name: str) -> str:
        """Return one test."""
        rows = [f"def {name}(session):", f'    """{finding.rule.title}"""']
        rows += self._comments("Found", finding.message)
        rows += self._comments("Expected", finding.expected)
        rows.append("    cases = [")
        for answer in finding.answers:
            rows += [f"        {row}" for row in self._case(answer.case)]
        rows.append("    ]")
        more = ", together=True" if finding.together else ""
        more += f", times={TIMES_FOR_FLAKY}" if finding.flaky else ""
        rows.append(f'    assert_fixed("{finding.rule.code}", cases, session{more})')
        return "\n".join([*rows, ""])

    def _comments(self, label: str, text: str) -> list[str]:
        text = printable(self._hide(f"{label}: {text}"))
        return textwrap.wrap(text, _WIDTH, initial_indent="    # ", subsequent_indent="    #   ")

    def _case(self, case: Case) -> list[str]:
        """Return the lines that make a case, and a comma."""
        arguments: list[list[str]] = []
        if case.fields or case.body is None:
            arguments.append(self._fields(case.fields))
        if case.form != PLAIN:
            changed = {name: v for name, v in case.form._asdict().items() if v != getattr(PLAIN, name)}
            form = _call("Form", [[f"{name}={_quoted(value)}"] for name, value in changed.items()])
            arguments.append(_prefixed("form=", form))
        if case.authorization is not None:
            right = self._target.authorization or ""
            arguments.append([f"authorization={made_from(right, case.authorization)}"])
        if case.body is not None:
            body = self._hide(case.body.decode("utf-8", "surrogateescape"))
            arguments.append(_prefixed("body=", _literal(body.encode("utf-8", "surrogateescape"))))
        if case.method != "POST":
            arguments.append([f"method={_quoted(case.method)}"])
        if case.headers:
            pairs = "".join(f"({_quoted(name)}, {_quoted(self._hide(v))}), " for name, v in case.headers)
            arguments.append([f"headers=({pairs.rstrip()})"])
        return _with_comma(_call("Case", arguments))

    def _fields(self, fields: Mapping[str, Any]) -> list[str]:
        if _is_deep(fields):
            text = self._hide(json.dumps(dict(fields)))
            return ["json.loads(", *_indented(_literal(text)), ")"]
        return _literal(_mapped(fields, self._hide))


# ---- literals


def _is_deep(value: Mapping[str, Any]) -> bool:
    return any(len(steps) > _DEEPEST for steps, _ in strictjson.walk(dict(value)))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with each of its texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(name): _mapped(child, change) for name, child in value.items()}
    return [_mapped(child, change) for child in value] if isinstance(value, list | tuple) else value


def _literal(value: Any) -> list[str]:
    """Return the lines of a literal; a long one is broken, and what repeats itself is written once."""
    if isinstance(value, dict) and not _fits(value):
        rows = (_prefixed(f"{_quoted(name)}: ", _literal(child)) for name, child in value.items())
        return ["{", *_indented(row for child in rows for row in _with_comma(child)), "}"]
    if isinstance(value, list) and not _fits(value):
        items = (_with_comma(_literal(child)) for child in value)
        return ["[", *_indented(row for child in items for row in child), "]"]
    if isinstance(value, str | bytes) and not _fits(value):
        return _long_literal(value)
    return [_quoted(value)]


def _fits(value: Any) -> bool:
    """Whether a literal is short enough for a line."""
    return len(_quoted(value)) <= _WIDTH - 20


def _long_literal(value: str | bytes) -> list[str]:
    for size in range(1, _LONGEST_PERIOD + 1):
        times, rest = divmod(len(value), size)
        if value[size:] == value[:-size]:
            more = f" + {_quoted(value[:rest])}" if rest else ""
            return [f"{_quoted(value[:size])} * {times}{more}"]
    return ["(", *_indented(_quoted(part) for part in _short_parts(value)), ")"]


def _short_parts(value: str | bytes) -> Iterator[str | bytes]:
    """Yield parts of a text, each short as a literal."""
    first = width = 0
    for at in range(len(value)):
        width += len(_quoted(value[at : at + 1])) - 2
        if width > _WIDTH - 30:
            yield value[first:at]
            first, width = at, 0
    yield value[first:]


def _quoted(value: Any) -> str:
    """Return a literal on one line; texts in double quotes when they hold none."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(name)}: {_quoted(child)}" for name, child in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_quoted, value)) + "]"
    if isinstance(value, float) and not isfinite(value):
        return f'float("{value}")'
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**40:
        return hex(value)  # Python reads and writes decimals of a limited length only
    text = repr(value)
    if isinstance(value, str) and text[0] == "'" and '"' not in value:
        return f'"{text[1:-1]}"'
    if isinstance(value, bytes) and text[1] == "'" and b'"' not in value:
        return f'b"{text[2:-1]}"'
    return text


# ---- lines


def _call(name: str, arguments: list[list[str]]) -> list[str]:
    """Return the lines of a call, one when that is short enough."""
    flat = ", ".join(row for rows in arguments for row in rows)
    if all(len(rows) == 1 for rows in arguments) and len(flat) <= _WIDTH - 20:
        return [f"{name}({flat})"]
    return [f"{name}(", *_indented(row for rows in arguments for row in _with_comma(rows)), ")"]


def _prefixed(prefix: str, rows: list[str]) -> list[str]:
    return [f"{prefix}{rows[0]}", *rows[1:]]


def _with_comma(rows: list[str]) -> list[str]:
    return [*rows[:-1], f"{rows[-1]},"]


def _indented(rows: Iterable[str]) -> list[str]:
    return [f"    {row}" for row in rows]
