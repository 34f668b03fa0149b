"""The rules of the contract, and who breaks them.

`RULES` is the table, in `book`. `request_violations` and `reply_violations` check a message against it, in
`requests` and `replies`; both list everything that is wrong, and never raise. What they share is in
`judgement`; what makes a summary bad prose is in `summaries`, what a date-time is in `timestamps`.
"""

from memmock.rules.book import RULES, Rule, Severity, Source, Violation, Where
from memmock.rules.replies import reply_violations
from memmock.rules.requests import body_violations, request_violations

__all__ = [
    "RULES",
    "Rule",
    "Severity",
    "Source",
    "Violation",
    "Where",
    "body_violations",
    "reply_violations",
    "request_violations",
]
