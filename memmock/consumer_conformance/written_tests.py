"""Findings as a pytest file: each test fails as long as the consumer does what was found.

The file needs memmock and pytest. It holds no secret: a command with one is read from the environment.
"""

from __future__ import annotations

import pprint
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from memmock import documents
from memmock.conformance.written_tests import TIMES_FOR_FLAKY
from memmock.consumer_conformance.act import DEFAULT_TIMEOUT_MS, PLAIN, Act
from memmock.consumer_conformance.finding import Finding, Result
from memmock.consumer_conformance.secrets import Hide, hiding
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES
from memmock.strictjson import printable

FILE_NAME = "test_memmock_consumer_findings.py"
_MARK = documents.marked("tests")
_WIDTH = 100
_HEAD = '''{mark}"""What memmock found, as tests that pass once the consumer is fixed.

    {run}

They are run where the command of the consumer works.
"""

{imports}import pytest

from memmock.consumer_conformance.bench import Bench
from memmock.consumer_conformance.process import Process
from memmock.consumer_conformance.reproduction import {used}

{command}


@pytest.fixture(scope="module")
def bench():
    with Bench(Process(COMMAND), timeout_ms={timeout_ms}) as bench:
        yield bench
'''
_VARIABLE = "MEMMOCK_CONSUMER"


def write_tests(result: Result, directory: str | PathLike[str], command: Sequence[str]) -> Path | None:
    """Write a test for each finding into a file of the directory, and return its path.

    The file that was written there before is replaced. Without findings nothing is written, and that file
    stays: None is returned.

    Args:
        result: has the findings.
        directory: where the file is.
        command: runs the consumer.

    Raises:
        MemmockError: there is a file of this name that memmock did not write, or it cannot be written.
    """
    if not result.findings:
        return None
    path = Path(directory) / FILE_NAME
    documents.write_own(path, source(result, command).encode())
    return path


def source(result: Result, command: Sequence[str]) -> str:
    """Return the text of the file; the same for the same findings."""
    hide = hiding(result.name, result.findings)
    names = _names(result.findings)
    tests = [_test(finding, name, hide) for finding, name in zip(result.findings, names, strict=True)]
    return "\n\n".join([_head(result.findings, command, hide), *tests])


def _head(findings: Sequence[Finding], command: Sequence[str], hide: Hide) -> str:
    """Return everything before the first test."""
    played = [seen.act for finding in findings for seen in finding.seen]
    used = ["act"] if any(each.case is None for each in played) else []
    used += ["assert_fixed"]
    used += ["generated"] if any(each.case is not None for each in played) else []
    secret = any(hide(word) != word for word in command) or hide(" ".join(command)) != " ".join(command)
    run = f"{_VARIABLE}='…' pytest {FILE_NAME}" if secret else f"pytest {FILE_NAME}"
    return _HEAD.format(
        mark=_MARK,
        run=run,
        imports="import os\nimport shlex\n\n" if secret else "",
        used=", ".join(used),
        command=f'COMMAND = shlex.split(os.environ["{_VARIABLE}"])  # it holds a secret'
        if secret
        else f"COMMAND = [{', '.join(map(_quoted, command))}]",
        timeout_ms=_timeout_ms(findings),
    )


def _timeout_ms(findings: Iterable[Finding]) -> int:
    """Return what the consumer was told in the run, unless an act said otherwise."""
    for finding in findings:
        for seen in finding.seen:
            if seen.act.timeout_ms is None:
                return round(seen.timeout_ms / seen.act.time_factor)
    return DEFAULT_TIMEOUT_MS


def _names(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a name for each test: the rule and the scenario, with a number from the second on."""
    seen: Counter[str] = Counter()
    for finding in findings:
        words = re.findall("[a-z0-9]+", finding.scenario.lower())
        name = "_".join([f"test_{finding.rule.code.lower()}", *words])[:70].rstrip("_")
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}_{seen[name]}"


def _test(finding: Finding, name: str, hide: Hide) -> str:
    rows = [f"def {name}(bench):", f'    """{finding.rule.title}"""']
    rows += _comments("Found", hide(finding.message))
    rows += _comments("Expected", hide(finding.expected))
    rows.append("    played = [")
    for seen in finding.seen:
        rows.append(textwrap.indent(f"{_act(seen.act)},", " " * 8))
    rows.append("    ]")
    more = f", times={TIMES_FOR_FLAKY}" if finding.flaky else ""
    rows.append(f'    assert_fixed("{finding.rule.code}", played, bench{more})')
    return "\n".join([*rows, ""])


def _comments(label: str, text: str) -> list[str]:
    text = printable(f"{label}: {text}")
    return textwrap.wrap(text, _WIDTH, initial_indent="    # ", subsequent_indent="    #   ")


def _act(act: Act) -> str:
    """Return the call that makes an act."""
    if act.case is None:
        return f"act({_quoted(act.name)})"
    arguments = [_assigned("", act.case.to_json(), ",")]
    if act.retrieval != PLAIN:
        arguments.append(_assigned("retrieval=", dict(act.retrieval), ","))
    if act.timeout_ms is not None:
        arguments.append(f"timeout_ms={act.timeout_ms},")
    if act.max_response_bytes != DEFAULT_MAX_RESPONSE_BYTES:
        arguments.append(f"max_response_bytes={act.max_response_bytes},")
    return "\n".join(["generated(", *(textwrap.indent(each, "    ") for each in arguments), ")"])


def _assigned(before: str, value: Any, after: str) -> str:
    """Return a literal with what stands before and after it; its further lines are indented as far."""
    lines = pprint.pformat(value, width=_WIDTH - 20 - len(before), sort_dicts=False).split("\n")
    return ("\n" + " " * len(before)).join([f"{before}{lines[0]}", *lines[1:]]) + after


def _quoted(text: str) -> str:
    """Return a literal, in double quotes when it holds none."""
    literal = repr(text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in text else literal
