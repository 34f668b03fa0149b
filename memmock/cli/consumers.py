"""What `check-consumer` and `fuzz-consumer` share: their options, and what becomes of a consumer's result."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from memmock.cli.conforming import Command, added, check_files, compared, result_options, tell
from memmock.consumer_conformance.act import DEFAULT_TIMEOUT_MS

if TYPE_CHECKING:
    from memmock.consumer_conformance.bench import Bench
    from memmock.consumer_conformance.finding import Result

_LEAST_MS = 50
"""In less time a good consumer in a slow language may not be able to answer."""
CONTEXT = {"allow_interspersed_args": False}
"""What follows the first word of the consumer's command belongs to it."""


def consumer_options(command: Command) -> Command:
    """Add the command of the consumer, and the options that say how the result is told."""
    return added(
        command,
        click.argument("consumer", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND..."),
        click.option(
            "--timeout-ms",
            type=click.IntRange(_LEAST_MS, 86_400_000),
            metavar="MS",
            default=DEFAULT_TIMEOUT_MS,
            show_default=True,
            help="The timeout_ms that the consumer is given; what takes time takes about that long.",
        ),
        result_options,
        click.option(
            "--scenarios",
            "scenarios_file",
            metavar="FILE",
            help="Write the replies that show the findings as scenarios, for `memmock serve --scenarios`.",
        ),
    )


@contextmanager
def bench(consumer: Sequence[str], timeout_ms: int) -> Iterator[Bench]:
    """Yield what plays to the consumer that the command line names; nothing of it is left at the end."""
    from memmock.consumer_conformance.bench import Bench
    from memmock.consumer_conformance.process import Process

    if not consumer:
        raise click.UsageError(
            "the command of the consumer is missing; put it behind --, as in `-- python3 consumer.py`"
        )
    # the consumer has a session of its own, so that nobody else would end it
    before = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with Bench(Process(consumer), timeout_ms=timeout_ms) as stand:
            yield stand
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def check_consumer_files(options: Mapping[str, Any]) -> None:
    """Raise for files that could not be written in the end, before anything is done.

    Raises:
        MemmockError: a file is somebody else's, or of another kind.
    """
    from memmock.consumer_conformance.scenario_export import check_path
    from memmock.consumer_conformance.written_tests import FILE_NAME

    check_files(options, FILE_NAME)
    if options["scenarios_file"] is not None:
        check_path(options["scenarios_file"])


def tell_of(result: Result, consumer: Sequence[str], options: Mapping[str, Any]) -> None:
    """Write a result as it was asked for; exit with 1 when something was found that weighs enough."""
    from memmock.consumer_conformance.scenario_export import names_of, write_scenarios
    from memmock.consumer_conformance.secrets import hiding
    from memmock.consumer_conformance.shown import report_of
    from memmock.consumer_conformance.written_tests import write_tests
    from memmock.rules import Severity

    tests, baseline, file = options["tests"], options["baseline"], options["scenarios_file"]
    written: list[str] = []
    if tests is not None and (path := write_tests(result, tests, consumer)) is not None:
        written.append(f"{path}: run it with pytest")
    known: int | None = None
    gone: list[str] = []
    if baseline is not None:
        known, gone = compared(result, hiding(result.name, result.findings), baseline)
        if result.matrix:  # what was not played may still be there
            played = tuple(row.scenario for row in result.matrix)
            gone = [key for key in gone if key.partition(" ")[2].startswith(played)]
    if file is not None and result.findings:
        write_scenarios(result, file)
        names = names_of(result.findings)
        left_out = f", {names.count('')} left out as no reply shows them" if "" in names else ""
        written.append(
            f"{file}: {len(names) - names.count('')} of {len(names)} findings as scenarios{left_out}"
        )
    elif file is not None:
        written.append(f"{file}: not written, as there is no finding to be told")
    report = report_of(
        result,
        fail_on=Severity(options["fail_on"]),
        known=known,
        gone=gone,
        scenarios_file=file,
    )
    tell(report, options, *written)
