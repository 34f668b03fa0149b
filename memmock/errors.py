"""The two roots of everything that memmock raises on purpose.

A `MemmockError` says that memmock cannot work as asked: a bad setting, an unreadable file, a port in
use. The command line shows it as one line and exits with 2; the plugin shows it as a usage error.
A `MemmockFailure` says that a test should fail: the code under test broke an expectation.
"""


class MemmockError(Exception):
    """memmock cannot do what it was asked; the message is one line that names the thing and the way out."""


class MemmockFailure(AssertionError):
    """The code under test did not do what the test expects of it."""
