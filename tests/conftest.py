"""Shared by all tests."""

import os
from pathlib import Path

pytest_plugins = ["pytester"]

# curl, where the machine has none
os.environ["PATH"] += f"{os.pathsep}{Path(__file__).parent / 'fallback'}"
