from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

import memmock
from memmock.contract import (
    FORBIDDEN_FIELDS,
    MEMORY_TYPES,
    MemoriesResponse,
    Memory,
    MemoryType,
    Retrieval,
    RetrievalConfig,
    json_schema,
    openapi,
)
from memmock.errors import MemmockError
from memmock.rules import body_violations, reply_violations
from memmock.strictjson import UNREADABLE, read
from tests.contract_cases import Case, reply_cases, request_cases

# what a schema can decide: the types, enums and limits of fields
REQUEST_SHAPES = {"REQ201", "REQ202", "REQ204", "REQ205", "REQ206", "REQ207", "REQ209"}
REPLY_SHAPES = {"RES201", "RES203", "RES204", "RES205", "RES206", "RES207", "RES208", "RES210"}
NAMES = {name for names in FORBIDDEN_FIELDS.values() for name in names}


def validator(name: str) -> Draft202012Validator:
    schema = {**json_schema(), "$ref": f"#/$defs/{name}"}
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


# ---- the generated documents


def test_json_schema_is_valid():
    Draft202012Validator.check_schema(json_schema())


def test_openapi_document_is_valid():
    document = openapi()

    validate(document)
    assert document["info"]["version"] == memmock.__version__


def test_every_field_is_described_with_its_source():
    for name, definition in json_schema()["$defs"].items():
        assert definition["description"]
        for field, schema in definition["properties"].items():
            if name != "ErrorResponse":
                assert schema["description"].rstrip(".").endswith(("[seed]", "[ref]")), field


def test_documents_are_made_anew_each_time():
    json_schema()["$defs"].clear()

    assert json_schema()["$defs"]


def holds_a_value(case: Case) -> bool:
    value, flaws = read(case.message.body)
    return value is not UNREADABLE and not flaws


def holds_memories(case: Case) -> bool:
    reply = case.message
    return holds_a_value(case) and reply.status < 300 and reply.header("Content-Encoding") is None


@pytest.mark.parametrize("case", [*filter(holds_a_value, request_cases())], ids=str)
def test_schema_and_rules_agree_on_the_shape_of_a_request(case: Case):
    value = read(case.message.body)[0]
    broken = {violation.code for violation in body_violations(case.message.body)}
    forbidden_at_the_top = isinstance(value, dict) and bool(NAMES & value.keys())

    assert validator("Retrieval").is_valid(value) is not bool(REQUEST_SHAPES & broken or forbidden_at_the_top)


@pytest.mark.parametrize("case", [*filter(holds_memories, reply_cases())], ids=str)
def test_schema_and_rules_agree_on_the_shape_of_a_reply(case: Case):
    value = read(case.message.body)[0]
    broken = {violation.code for violation in reply_violations(case.message)}

    assert validator("MemoriesResponse").is_valid(value) is not bool(REPLY_SHAPES & broken)


# ---- the classes


def test_kinds_are_strings_with_a_meaning():
    assert MEMORY_TYPES == (
        "preference", "profile", "history", "project", "constraint", "relationship", "style", "other",
    )  # fmt: skip
    assert MemoryType("style") == "style"
    assert all(kind.meaning for kind in MemoryType)


def test_absent_fields_stay_away_from_the_wire():
    assert Retrieval("tea").to_json() == {"query": "tea"}
    assert MemoriesResponse((Memory("Likes tea."),)).to_json() == {"memories": [{"summary": "Likes tea."}]}


def test_fields_that_are_empty_but_there_are_sent():
    retrieval = Retrieval("tea", time_hint="", memory_types=())

    assert retrieval.to_json() == {"query": "tea", "time_hint": "", "memory_types": []}


def test_memory_is_sent_with_its_id_first():
    memory = Memory("Likes tea.", id="1", confidence=0.0)

    assert list(memory.to_json().items()) == [("id", "1"), ("summary", "Likes tea."), ("confidence", 0.0)]


@given(
    st.builds(
        Retrieval,
        st.text(min_size=1),
        live_id=st.none() | st.text(),
        memory_types=st.none() | st.lists(st.sampled_from(MEMORY_TYPES)).map(tuple),
        max_results=st.none() | st.integers(1),
    )
)
def test_retrieval_on_the_wire_keeps_its_schema(retrieval):
    validator("Retrieval").validate(retrieval.to_json())


@pytest.mark.parametrize("value", [Retrieval("a"), Memory("a"), RetrievalConfig("http://a", "b")])
def test_values_do_not_change(value):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, dataclasses.fields(value)[0].name, "b")


# ---- the configuration of the consumer

ENDPOINT = "https://provider.example/memory"


def test_configuration_is_written_as_create_live_takes_it():
    config = RetrievalConfig(ENDPOINT, "Bearer test-key")

    assert config.to_json() == {
        "enabled": True,
        "endpoint": ENDPOINT,
        "authorization": "Bearer test-key",
        "timeout_ms": 3000,
    }
    validator("RetrievalConfig").validate(config.to_json())


def test_authorization_is_not_in_the_repr():
    config = RetrievalConfig(ENDPOINT, "Bearer test-key")

    assert "test-key" not in repr(config)
    assert ENDPOINT in repr(config)


@pytest.mark.parametrize(
    "endpoint",
    ["http://localhost", "HTTP://127.0.0.1:8765/x?y=1", "https://[::1]:443/memory", "http://记忆.example/"],
)
def test_http_endpoint_is_taken(endpoint):
    assert RetrievalConfig(endpoint, "key").endpoint == endpoint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"endpoint": ""}, "endpoint must be an absolute http or https URL"),
        ({"endpoint": "provider.example/memory"}, "endpoint must be an absolute http or https URL"),
        ({"endpoint": "ftp://provider.example"}, "endpoint must be an absolute http or https URL"),
        ({"endpoint": "http:///memory"}, "endpoint must be an absolute http or https URL"),
        ({"endpoint": "http://[::1"}, "endpoint must be an absolute http or https URL"),
        ({"endpoint": "http://a:99999"}, "endpoint must be an absolute http or https URL"),
        ({"endpoint": f" {ENDPOINT}"}, "endpoint must be an absolute http or https URL"),
        (
            {"endpoint": "https://me:pass@provider.example"},
            "endpoint must not hold a user name or password; credentials go into authorization",
        ),
        ({"authorization": ""}, "authorization must not be empty, even for a provider that ignores it"),
        ({"authorization": " \t"}, "authorization must not be empty, even for a provider that ignores it"),
        ({"authorization": "a\r\nb"}, "authorization must not hold control characters"),
        ({"authorization": "a\x7f"}, "authorization must not hold control characters"),
        ({"timeout_ms": 0}, "timeout_ms must be a positive integer, not 0"),
        ({"timeout_ms": True}, "timeout_ms must be a positive integer, not True"),
        ({"timeout_ms": 1.5}, "timeout_ms must be a positive integer, not 1.5"),
        ({"max_response_bytes": -1}, "max_response_bytes must be a positive integer, not -1"),
        (
            {"authorization": "", "timeout_ms": "3"},
            "authorization must not be empty, even for a provider that ignores it; "
            "timeout_ms must be a positive integer, not '3'",
        ),
    ],
)
def test_configuration_that_create_live_refuses_is_an_error(change, message):
    with pytest.raises(MemmockError) as raised:
        RetrievalConfig(**{"endpoint": ENDPOINT, "authorization": "Bearer test-key", **change})

    assert str(raised.value) == f"memory_retrieval: {message}"
