import json

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from memmock import strategies
from memmock.conformance.boundaries import CHANGES, EXTRAS, boundary_cases
from memmock.conformance.case import PLAIN, Case, Form
from memmock.contract import MEMORY_TYPES
from memmock.http import Request
from memmock.rules import body_violations, request_violations

quick = settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def sent(case: Case) -> Request:
    return case.request("/memory", "localhost", "Bearer x")


def drawn(strategy: st.SearchStrategy, count: int) -> list:
    values = []

    @settings(quick, max_examples=count, phases=[Phase.generate])
    @given(strategy)
    def draw(value):
        values.append(value)

    draw()
    return values


# ---- strategies


@quick
@given(strategies.cases())
def test_cases_keep_the_contract(case):
    assert request_violations(sent(case), authorization="Bearer x") == []


@quick
@given(strategies.memory_requests())
def test_memory_requests_are_json_that_can_be_sent(fields):
    assert json.loads(json.dumps(fields, ensure_ascii=False).encode()) == fields
    assert 1 <= fields.get("max_results", 1) <= 100


@quick
@given(strategies.memory_requests(valid=False))
def test_memory_requests_not_valid_break_the_contract(fields):
    assert body_violations(json.dumps(fields).encode())


@quick
@given(strategies.queries())
def test_queries_are_text_that_is_not_blank(query):
    assert query.strip()
    assert len(query) <= strategies.MOST_CHARS
    assert query.encode()


@quick
@given(st.integers(0, 8).flatmap(lambda size: st.tuples(st.just(size), strategies.memory_types(size))))
def test_memory_types_are_kinds_without_repetition(drawn_types):
    size, kinds = drawn_types
    assert len(set(kinds)) == len(kinds) >= size
    assert set(kinds) <= set(MEMORY_TYPES)


def test_forms_vary_every_attribute():
    forms = set(drawn(strategies.forms(), 300))
    assert PLAIN in forms
    for name in Form._fields:
        assert len({getattr(form, name) for form in forms}) > 1, name


def test_cases_use_every_field_and_form():
    cases = drawn(strategies.cases(), 250)
    names = {name for case in cases for name in case.fields}
    assert names >= {"query", "live_id", "reason", "memory_types", "time_hint", "max_results"}
    assert names & set(EXTRAS)
    assert any(case.form != PLAIN for case in cases)


@pytest.mark.parametrize(
    ("strategy", "condition", "smallest"),
    [
        (strategies.queries(), lambda query: True, "tea"),
        (strategies.memory_types(), lambda kinds: True, ["preference"]),
        (strategies.forms(), lambda form: form.framing == "chunked", Form(framing="chunked")),
        (strategies.memory_requests(), lambda fields: True, {"query": "tea"}),
        (strategies.memory_requests(), lambda fields: "live_id" in fields, {"query": "tea", "live_id": "1"}),
        (strategies.cases(), lambda case: case.form.escaped, Case({"query": "tea"}, Form(escaped=True))),
    ],
    ids=["query", "kinds", "form", "request", "request with a field", "case"],
)
def test_strategies_shrink_towards_what_is_plain(strategy, condition, smallest):
    found = find(strategy, condition, settings=settings(quick, max_examples=300))
    assert found == smallest


# ---- boundaries


def test_boundary_cases_keep_the_contract():
    broken = [(case, found) for case in boundary_cases() if (found := request_violations(sent(case)))]
    assert broken == []


def test_boundary_cases_are_the_same_each_time_and_no_two_alike():
    cases = boundary_cases()
    assert cases == boundary_cases()
    assert len({(case.content, case.form) for case in cases}) == len(cases)
    assert 250 <= len(cases) <= 450


def test_boundary_cases_begin_with_what_is_plain():
    assert all(list(case.fields) == ["query"] and case.form == PLAIN for case in boundary_cases()[:20])


def test_boundary_cases_cover_every_field_pair_of_kinds_and_change_of_form():
    cases = boundary_cases()
    asked = {tuple(case.fields.get("memory_types", ())) for case in cases}
    assert {(one, other) for one in MEMORY_TYPES for other in MEMORY_TYPES if one != other} <= asked
    assert {(name, getattr(case.form, name)) for case in cases for name in Form._fields} >= set(CHANGES)
    assert {name for case in cases for name in case.fields} >= set(EXTRAS) | {
        "live_id",
        "reason",
        "time_hint",
    }
