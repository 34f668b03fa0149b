"""Write `scenarios.md` from the catalogue: `python docs/make_scenarios.py`."""

from pathlib import Path

from memmock.scenarios import FAMILIES, Scenario, family

PAGE = Path(__file__).with_name("scenarios.md")

INTRODUCTION = """\
# Scenarios

<!-- Made by docs/make_scenarios.py from memmock/scenarios/. Do not edit. -->

Everything that the mock can do to a client, by name. *Shows* is what a good consumer makes of it: `ok`, or
the code of the error that the model is given; where the contract leaves it open, there are two. How to play
scenarios in tests, on the command line and from other languages is in [faults](faults.md).

Limits are relative: `timeout_ms` and `max_response_bytes` are settings of the mock, and scenarios go by them.
A second name is another way to say the same, so `503` is `unavailable`.

`memmock scenarios --verify` plays each of them to a raw socket and compares what arrives, byte by byte, with
what is promised here.
"""

TITLES = {
    "answers": "Answers: unusual and good",
    "statuses": "Statuses: the answer is an error",
    "bodies": "Bodies: 200, and nothing usable in it",
    "sizes": "Sizes: more than the consumer allows",
    "timing": "Timing: too late",
    "connection": "Connection: refused, broken, not HTTP",
}
NOT_ON_HTTPSERVER = "¹"


def page() -> str:
    """Return the page; each scenario is in the table of its family."""
    parts = [INTRODUCTION]
    for name in FAMILIES:
        rows = [_row(scenario) for scenario in family(name)]
        parts.append(
            "\n".join([f"## {TITLES[name]}\n", "| scenario | shows | |", "|---|---|---|", *rows, ""])
        )
    parts.append(f"{NOT_ON_HTTPSERVER} Not on pytest-httpserver, which refuses it by name.\n")
    return "\n".join(parts)


def _row(scenario: Scenario) -> str:
    names = [f"`{name}`" for name in (scenario.name, *scenario.aliases)]
    mark = NOT_ON_HTTPSERVER if scenario.needs else ""
    outcomes = " or ".join(f"`{outcome}`" for outcome in scenario.outcomes)
    settings = ", ".join(f"`{parameter.name}={parameter.default}`" for parameter in scenario.parameters)
    about = f"{scenario.summary} {settings}".strip()
    return f"| {', '.join(names)}{mark} | {outcomes} | {about} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
