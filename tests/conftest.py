"""Shared by all tests."""

import os
import signal
from pathlib import Path

pytest_plugins = ["pytester"]

# curl, where the machine has none
os.environ["PATH"] += f"{os.pathsep}{Path(__file__).parent / 'fallback'}"

# a shell lets what it runs in the background ignore Ctrl-C, which tests of it would inherit
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
