"""A report as JUnit XML, as CI servers read it: a test case a rule, or a finding when fuzzing."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from memmock.report.parts import Entry, Report, Verdict
from memmock.report.text import headline, rendered_finding
from memmock.rules import Severity
from memmock.strictjson import printable


def as_junit(report: Report) -> str:
    """Return a report as JUnit XML.

    Only what weighs enough to fail is a failure; what is lighter is the output of a test case that passed.
    """
    suite = ET.Element("testsuite", {"name": f"memmock {_command(report)}"})
    properties = ET.SubElement(suite, "properties")
    facts = {"target": report.target, f"{report.side.noun}s": report.calls, "seed": report.seed}
    for name, value in {**facts, "stopped": report.stopped or None}.items():
        if value is not None:
            ET.SubElement(properties, "property", {"name": name, "value": printable(str(value))})
    if report.rules:
        _add_rules(suite, report)
    else:
        _add_findings(suite, report)
    _sum_up(suite, report)
    suites = ET.Element("testsuites", {key: suite.attrib[key] for key in (*_COUNTED, "time")})
    suites.append(suite)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


_COUNTED = {"tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error",
            "skipped": "testcase/skipped"}  # fmt: skip


def _sum_up(suite: ET.Element, report: Report) -> None:
    for name, path in _COUNTED.items():
        suite.set(name, str(len(suite.findall(path))))
    suite.set("time", f"{report.seconds:.3f}")


def _add_rules(suite: ET.Element, report: Report) -> None:
    """Add a test case for each rule, and one for each that has findings without having been checked."""
    group = _group(report)
    for rule in report.rules:
        case = _case(suite, group, f"{rule.code} {rule.title}")
        entries = [entry for entry in report.entries if entry.code == rule.code]
        if entries:
            _add_result(case, entries, report.fail_on)
        elif rule.state != "passed":
            _add_state(case, rule, report)
    checked = {rule.code for rule in report.rules}
    for code in dict.fromkeys(entry.code for entry in report.entries if entry.code not in checked):
        entries = [entry for entry in report.entries if entry.code == code]
        case = _case(suite, group, f"{code} {entries[0].title}")
        _add_result(case, entries, report.fail_on)


def _add_state(case: ET.Element, rule: Verdict, report: Report) -> None:
    """Add what became of a rule that no finding tells of."""
    reason = rule.reason or rule.state
    if rule.state == "violated" and report.known is None:
        tag = "failure" if _fails(rule.severity, report.fail_on) else "skipped"
        ET.SubElement(case, tag, {"message": printable(reason)})
        return
    if rule.state == "violated":
        reason = f"only what the baseline has: {reason}"
    ET.SubElement(case, "skipped", {"message": printable(reason)})


def _add_findings(suite: ET.Element, report: Report) -> None:
    """Add a test case for each finding; one that passed when there is none, since CI wants some."""
    group = _group(report)
    for n, entry in enumerate(report.entries, 1):
        _add_result(_case(suite, group, f"{n}: {headline(entry)}"), [entry], report.fail_on)
    if not report.entries:
        _case(suite, group, report.summary)


def _command(report: Report) -> str:
    return report.side.check if report.rules else report.side.fuzz


def _group(report: Report) -> str:
    """Return what the names of the test cases begin with."""
    return f"memmock.{_command(report).replace('-', '_')}"


def _case(suite: ET.Element, group: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", {"classname": group, "name": printable(name), "time": "0"})


def _add_result(case: ET.Element, entries: list[Entry], fail_on: Severity) -> None:
    first = entries[0]
    text = "\n\n".join(map(rendered_finding, entries))
    if _fails(first.severity, fail_on):
        failure = ET.SubElement(case, "failure", {"type": first.code, "message": headline(first)})
        failure.text = text
    else:
        ET.SubElement(case, "system-out").text = text


def _fails(severity: Severity, fail_on: Severity) -> bool:
    return severity is Severity.ERROR or fail_on is Severity.WARNING
