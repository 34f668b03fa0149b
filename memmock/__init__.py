"""memmock: a mock server and testing toolkit for the memory-retrieval HTTP contract.

The names here are loaded when they are used: `import memmock` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from memmock.cassette import Cassette, Interaction
    from memmock.checking import check_consumer, check_provider, fuzz_consumer, fuzz_provider
    from memmock.consumer import Consumer, retrieve, retrieve_sync
    from memmock.contract import Memory, MemoryType, Retrieval, RetrievalConfig
    from memmock.errors import MemmockError, MemmockFailure
    from memmock.http import Delivery, Handler, Reply, Request, Sent
    from memmock.journal import Call
    from memmock.live import Live, Lives, LiveTwin, Retrieved
    from memmock.memories import Memories
    from memmock.mock import MemmockWarning, Mock, MockSettings
    from memmock.mock_server import MockServer
    from memmock.playbook import Playbook
    from memmock.provider import Provider
    from memmock.reply_check import CONCLUSION_THEN_REASONS, Flaw, check_reply
    from memmock.rules import RULES, Violation, reply_violations, request_violations
    from memmock.scenarios import CATALOGUE, Scenario
    from memmock.server import Server
    from memmock.tool_result import ToolError, ToolResult

_HOMES = {
    "cassette": ("Cassette", "Interaction"),
    "checking": ("check_consumer", "check_provider", "fuzz_consumer", "fuzz_provider"),
    "consumer": ("Consumer", "retrieve", "retrieve_sync"),
    "contract": ("Memory", "MemoryType", "Retrieval", "RetrievalConfig"),
    "errors": ("MemmockError", "MemmockFailure"),
    "http": ("Delivery", "Handler", "Reply", "Request", "Sent"),
    "journal": ("Call",),
    "live": ("Live", "LiveTwin", "Lives", "Retrieved"),
    "memories": ("Memories",),
    "mock": ("MemmockWarning", "Mock", "MockSettings"),
    "mock_server": ("MockServer",),
    "playbook": ("Playbook",),
    "provider": ("Provider",),
    "reply_check": ("CONCLUSION_THEN_REASONS", "Flaw", "check_reply"),
    "rules": ("RULES", "Violation", "reply_violations", "request_violations"),
    "scenarios": ("CATALOGUE", "Scenario"),
    "server": ("Server",),
    "tool_result": ("ToolError", "ToolResult"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [  # noqa: RUF022  # spelled out for type checkers, by home
    "CATALOGUE", "CONCLUSION_THEN_REASONS", "Call", "Cassette", "Consumer", "Delivery", "Flaw", "Handler",
    "Interaction",
    "Live", "LiveTwin", "Lives", "MemmockError", "MemmockFailure", "MemmockWarning",
    "Memories", "Memory", "MemoryType", "Mock", "MockServer", "MockSettings", "Playbook", "Provider",
    "RULES", "Reply", "Request", "Retrieval", "RetrievalConfig", "Retrieved", "Scenario",
    "Sent", "Server", "ToolError", "ToolResult", "Violation", "__version__",
    "check_consumer", "check_provider", "fuzz_consumer", "fuzz_provider", "check_reply", "reply_violations",
    "request_violations", "retrieve", "retrieve_sync",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'memmock' has no attribute {name!r}")
    return getattr(importlib.import_module(f"memmock.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
