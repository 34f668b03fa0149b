"""memmock: a mock server and testing toolkit for the memory-retrieval HTTP contract."""

__version__ = "0.1.0"
