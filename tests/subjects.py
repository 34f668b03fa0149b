"""Consumers under test: those of `fixtures/consumers/buggy.py`, in this process and as processes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memmock.consumer_conformance.function import Function
from memmock.consumer_conformance.process import Process
from memmock.consumer_conformance.subject import Told

BUGGY_FILE = Path(__file__).parents[1] / "fixtures" / "consumers" / "buggy.py"


def _loaded() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("buggy_consumers", BUGGY_FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.ALL)


ALL = _loaded()
"""The consumers of `buggy.py` by their names: classes of callables, with `rule` and `shown_by`."""


def buggy_process(name: str) -> Process:
    """Return one of them as a process."""
    return Process([sys.executable, str(BUGGY_FILE), "run", name])


class Renewed(Function):
    """One of `buggy.py` in this process: to restart it is to make another one.

    Args:
        name: that of the consumer.
        change: makes something else of what came of a call; it is given that, and the number of the call.
    """

    def __init__(self, name: str, change: Callable[[Told, int], Told] = lambda told, _: told) -> None:
        super().__init__(lambda *arguments: self._consumer(*arguments), name=name)
        self._made = ALL[name]
        self._consumer = self._made()
        self._change = change
        self.count = 0

    def call(
        self, memory_retrieval: Mapping[str, Any], request: Mapping[str, Any], patience_s: float
    ) -> Told:
        """Call it; change what comes of that."""
        self.count += 1
        told = super().call(memory_retrieval, request, patience_s)
        if told.failure == "silent":
            self._consumer = self._made()  # the old one is still at work
        return self._change(told, self.count)

    def restart(self) -> None:
        """Make another one."""
        super().restart()
        self._end()
        self._consumer = self._made()

    def close(self) -> None:
        """End it, and what it keeps."""
        super().close()
        self._end()

    def _end(self) -> None:
        if self._consumer.sock is not None:
            self._consumer.sock.close()
