"""The served mock keeps the contract that `memmock schema` describes, as another tool reads it."""

import json
import subprocess
import sys

import pytest

from memmock.contract import openapi
from memmock.memories import builtin
from memmock.provider import Provider
from memmock.server import Server


@pytest.mark.parametrize("authorization", [None, "Bearer good"])
def test_schemathesis_finds_nothing(tmp_path, authorization):
    tmp_path.joinpath("openapi.json").write_text(json.dumps(openapi()), "utf-8")
    with Server(Provider(builtin(), authorization=authorization)) as server:
        command = [
            sys.executable, "-m", "schemathesis.cli", "run", "openapi.json", "--url", server.url,
            "--max-examples", "50", "--generation-database", "none", "--no-color",
            *(["--header", f"Authorization: {authorization}"] if authorization else []),
        ]  # fmt: skip
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout
