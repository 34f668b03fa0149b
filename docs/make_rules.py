"""Write `rules.md` from the table of rules: `python docs/make_rules.py`."""

from pathlib import Path

from memmock.rules import RULES, Rule

PAGE = Path(__file__).with_name("rules.md")

INTRODUCTION = """\
# Rules

<!-- Made by docs/make_rules.py from the tables in memmock/rules. Do not edit. -->

What the contract asks, rule by rule. A rule that is broken is an *error* when the contract says must, and a
*warning* when it recommends. An error fails a test, a warning is shown. The source is `[seed]` (the protocol
page), `[ref]` (the vendor's API reference) or `[ours]` (memmock's decision where both are silent). A code
never changes its meaning.
"""

GROUPS = {
    "REQ0": "Requests: method and headers",
    "REQ1": "Requests: the body as JSON",
    "REQ2": "Requests: the fields",
    "REQ3": "Requests: what they never hold",
    "RES0": "Replies: the exchange and the headers",
    "RES1": "Replies: the body as JSON",
    "RES2": "Replies: the memories",
    "RES3": "Replies: whether they are what was asked for",
    "RES4": "Replies: the text of a summary",
    "RES5": "Replies: errors",
    "RES6": "Replies: what only several calls show",
    "CON0": "Consumers: whether a call is answered, and in which form",
    "CON1": "Consumers: the outcome",
    "CON2": "Consumers: the memories that are passed on",
    "CON3": "Consumers: time and size",
    "CON4": "Consumers: what is sent to whom, and how often",
    "CON5": "Consumers: what must not get to the model",
    "CON6": "Consumers: whether the request is what was configured and asked",
}


def page() -> str:
    """Return the page; each rule is in the group that its code starts with."""
    parts = [INTRODUCTION]
    for start, title in GROUPS.items():
        rules = [rule for rule in RULES.values() if rule.code.startswith(start)]
        parts += [f"## {title}\n", *(_section(rule) for rule in rules)]
    return "\n".join(parts)


def _section(rule: Rule) -> str:
    wrong, right = (text.replace("\n", "\n           ") for text in (rule.wrong, rule.right))
    reason = rule.reason.replace("*", r"\*")
    return f"""\
### {rule.code} {rule.title}

{rule.severity.capitalize()}, {rule.source}. {reason}

    wrong: {wrong}
    right: {right}
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
