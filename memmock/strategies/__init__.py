"""Hypothesis strategies: for requests that the contract allows, and for replies that it knows and does not.

For tests of a provider and of a consumer, and what fuzzing draws from. They shrink towards what is plain.
"""

from memmock.strategies.replies import memory_replies
from memmock.strategies.requests import MOST_CHARS, cases, forms, memory_requests, memory_types, queries

__all__ = ["MOST_CHARS", "cases", "forms", "memory_replies", "memory_requests", "memory_types", "queries"]
