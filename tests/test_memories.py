from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from memmock import memories as memories_module
from memmock.contract import MEMORY_TYPES, Memory
from memmock.errors import MemmockError
from memmock.memories import Memories, PersonaError, PersonaMemory, builtin, load

FIXTURES = Path(__file__).parent.parent / "fixtures" / "persona"
BROKEN: list[dict[str, Any]] = yaml.safe_load((FIXTURES / "broken.yaml").read_text(encoding="utf-8"))
SMALL = (
    PersonaMemory(
        id="a1",
        summary="用户养了一只橘猫，叫豆包。",
        type="relationship",
        confidence=0.9,
        updated_at="2026-05-01T09:00:00+08:00",
        source="explicit_user_statement",
        keywords=("猫", "宠物"),
    ),
    PersonaMemory(
        id="a2",
        summary="用户用Python写小工具。",
        type="project",
        confidence=0.75,
        updated_at="2026-04-12T20:30:00+08:00",
        source="conversation_summary",
        keywords=("Python", "编程"),
    ),
    PersonaMemory(summary="用户最近在找新房子。"),
)

# ---- Files


@pytest.mark.parametrize("name", ["small.yaml", "small.json"])
def test_load_reads_the_memories_of_character_01(name: str) -> None:
    assert load(FIXTURES / name) == Memories(SMALL)
    assert load(str(FIXTURES / name)) == Memories(SMALL)


@pytest.mark.parametrize("case", BROKEN, ids=[case["name"] for case in BROKEN])
def test_broken_file_is_refused_with_its_place(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(case["file"]).write_text(case["text"] * case.get("repeat", 1), encoding="utf-8")
    with pytest.raises(PersonaError) as caught:
        load(case["file"])
    assert str(caught.value) == case["error"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("absent.yaml", "absent.yaml: No such file or directory"),
        ("folder.json", "folder.json: Is a directory"),
        ("latin.yaml", "latin.yaml: not UTF-8 (byte 0xe9 at offset 9)"),
    ],
)
def test_file_that_cannot_be_read_is_refused(
    name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.json").mkdir()
    Path("latin.yaml").write_bytes("live: cafés".encode("latin-1"))
    with pytest.raises(PersonaError) as caught:
        load(name)
    assert str(caught.value) == says


def test_yaml_too_deep_for_python_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("deep.yaml").write_text("- " * 900 + "a")
    monkeypatch.setattr(memories_module.persona, "_memories", _recurse)
    with pytest.raises(PersonaError, match=r"^deep\.yaml: nested too deeply$"):
        load("deep.yaml")


def _recurse(value: object) -> None:
    _recurse(value)


def test_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    for name in ("small.yaml", "small.json"):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + (FIXTURES / name).read_bytes())
        assert load(tmp_path / name) == Memories(SMALL)


def test_suffix_is_read_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "SMALL.YML").write_bytes((FIXTURES / "small.yaml").read_bytes())
    assert load(tmp_path / "SMALL.YML") == Memories(SMALL)


def test_aliases_are_read(tmp_path: Path) -> None:
    path = tmp_path / "persona.yaml"
    path.write_text(
        "words: &words [猫, 宠物]\n"
        "live: {builtin_avatars: {'01': {memories: [{summary: 用户养猫。, keywords: *words}]}}}\n",
        encoding="utf-8",
    )
    assert load(path)[0].keywords == ("猫", "宠物")


def test_mistake_is_found_after_a_surrogate_that_may_pass(tmp_path: Path) -> None:
    path = tmp_path / "persona.json"
    path.write_text('{"a": "\\ud800", "b": NaN}')
    with pytest.raises(PersonaError, match=r"/b: NaN is not JSON$"):
        load(path)


@pytest.mark.parametrize("on", [True, False])
def test_load_leaves_garbage_collection_as_it_was(on: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        load(FIXTURES / "small.json")
        assert gc.isenabled() is on
    finally:
        (gc.enable if before else gc.disable)()


def test_import_loads_no_yaml() -> None:
    code = "import sys, memmock.memories; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_persona_error_is_an_error_of_memmock() -> None:
    assert issubclass(PersonaError, MemmockError)


# ---- The collection


def test_memories_are_a_sequence() -> None:
    memories = Memories(SMALL)
    assert len(memories) == 3
    assert list(memories) == list(SMALL)
    assert memories[-1] is SMALL[2]
    assert memories[:2] == Memories(SMALL[:2])
    assert SMALL[1] in memories
    assert memories == Memories(memories)
    assert hash(memories) == hash(Memories(SMALL))
    assert memories != Memories(SMALL[::-1])
    assert memories != list(SMALL)
    assert repr(memories) == "<Memories: 3>"
    assert not Memories()


def test_memories_are_made_of_memories_and_mappings() -> None:
    memories = Memories(
        [
            Memory("Likes tea.", id="1", type="preference"),
            {"summary": "Has a cat.", "keywords": ["cat"], "confidence": 1, "type": None, "more": 1},
            {"summary": "Has a dog.", "keywords": ("dog",)},
        ]
    )
    assert list(memories) == [
        PersonaMemory(summary="Likes tea.", id="1", type="preference"),
        PersonaMemory(summary="Has a cat.", confidence=1, keywords=("cat",)),
        PersonaMemory(summary="Has a dog.", keywords=("dog",)),
    ]


@pytest.mark.parametrize(
    ("memory", "says"),
    [
        ({}, "memories[1] has no summary"),
        ({"summary": "a", "id": 7}, "memories[1].id must be text, not 7; write it in quotes"),
        ({"summary": "a", "keywords": {"b"}}, "memories[1].keywords must be a list of texts, not set"),
        ("Has a cat.", 'memories[1] must be a mapping with a summary, not "Has a cat."'),
    ],
)
def test_wrong_mapping_is_refused(memory: Any, says: str) -> None:
    with pytest.raises(PersonaError) as caught:
        Memories([SMALL[0], memory])
    assert str(caught.value) == says


def test_memory_that_breaks_the_contract_is_taken_as_it_is() -> None:
    memories = Memories([Memory("", type="hobby", confidence=7), Memory("", id="1"), Memory("", id="1")])
    assert [memory.type for memory in memories.retrieve("", memory_types=["hobby"])] == ["hobby"]


def test_plus_makes_another() -> None:
    memories = Memories(SMALL[:1])
    more = memories.plus(SMALL[1], {"summary": "Has a dog."})
    assert len(memories) == 1
    assert [memory.summary for memory in more][1:] == [SMALL[1].summary, "Has a dog."]
    assert memories.plus() == memories


def test_encoded_is_what_goes_on_the_wire() -> None:
    encoded = Memories(SMALL).encoded
    assert encoded[0].decode() == (
        '{"id":"a1","summary":"用户养了一只橘猫，叫豆包。","type":"relationship","confidence":0.9,'
        '"updated_at":"2026-05-01T09:00:00+08:00","source":"explicit_user_statement"}'
    )
    assert encoded[2].decode() == '{"summary":"用户最近在找新房子。"}'


def test_keywords_are_never_sent() -> None:
    assert all("keywords" not in memory.to_json() for memory in SMALL)


# ---- Retrieval


def test_retrieve_and_find_agree() -> None:
    memories = Memories(SMALL)
    found = memories.find("猫 Python", ["project", "relationship"], "最近", 2)
    assert [memories[number] for number in found] == memories.retrieve(
        "猫 Python", memory_types=["project", "relationship"], time_hint="最近", max_results=2
    )
    assert found == [0, 1]


def test_retrieve_gives_five_unless_told() -> None:
    assert len(builtin().retrieve("猫")) == 5


def test_memory_without_a_type_is_other() -> None:
    assert Memories(SMALL).retrieve("", memory_types=["other"]) == [SMALL[2]]


def test_large_collection_is_searched() -> None:
    memories = Memories(Memory(f"用户提到第{number}件事。", id=str(number)) for number in range(1000))
    assert memories.find("第777件", max_results=1) == [777]


# ---- The built-in persona

DEMO = [
    ("用户喜欢灵绯怎么称呼自己", "阿澈"),
    ("用户和灵绯之前约定的暗号", "月亮醒了"),
    ("用户喜欢灵绯用什么格式给建议", "先给结论，再补充两三条理由"),
]


@pytest.mark.parametrize("max_results", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("query", "point"), DEMO)
def test_demo_point_is_found_first(query: str, point: str, max_results: int) -> None:
    found = builtin().retrieve(query, max_results=max_results)
    assert len(found) == max_results
    assert point in found[0].summary
    own = found[0].type
    assert own is not None
    assert builtin().retrieve(query, memory_types=[own], max_results=max_results)[0] == found[0]


@pytest.mark.parametrize(("query", "point"), DEMO)
def test_demo_point_is_in_one_memory_only(query: str, point: str) -> None:
    assert sum(point in memory.summary for memory in builtin()) == 1


def test_builtin_persona_is_read_once() -> None:
    assert builtin() is builtin()


def test_builtin_persona_keeps_the_contract() -> None:
    from memmock.http import Reply, Request
    from memmock.rules import reply_violations

    memories = builtin()
    assert {memory.type for memory in memories} == set(MEMORY_TYPES)
    assert len({memory.id for memory in memories}) == len(memories) >= 24
    assert all(len(memory.summary) < 120 and memory.keywords for memory in memories)
    request = Request("POST", "/", body=json.dumps({"query": "a", "max_results": 99}).encode())
    body = b'{"memories":[' + b",".join(memories.encoded) + b"]}"
    assert reply_violations(Reply(200, (("Content-Type", "application/json"),), body), request) == []


def test_builtin_persona_has_memories_of_every_confidence() -> None:
    sure = [memory.confidence or 0 for memory in builtin()]
    assert any(value < 0.5 for value in sure)
    assert any(0.5 <= value < 0.8 for value in sure)
    assert any(value >= 0.8 for value in sure)
