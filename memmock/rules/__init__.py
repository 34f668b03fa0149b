"""The rules of the contract, and who breaks them.

`RULES` is the table: the rules of messages, from `book`, and those for what a consumer makes of replies, from
`consumers`. `request_violations` and `reply_violations` check a message, in `requests` and `replies`; both
list everything that is wrong, and never raise. What they share is in `judgement`; what makes a summary bad
prose is in `summaries`, what a date-time is in `timestamps`. `memmock.consumer_conformance` judges consumers.
"""

from memmock.rules.book import RULES as _MESSAGE_RULES
from memmock.rules.book import Rule, Severity, Source, Violation, Where
from memmock.rules.consumers import CONSUMER_RULES
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

RULES: dict[str, Rule] = {**_MESSAGE_RULES, **{rule.code: rule for rule in CONSUMER_RULES}}
"""Every rule by its code, in the order in which they are documented."""
