"""`memmock record`: a proxy that writes what passes to a cassette."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from memmock.cli.listening import listen_options
from memmock.cli.redacting import redact_options, redactor
from memmock.cli.text import count
from memmock.errors import MemmockError
from memmock.http import check_path

if TYPE_CHECKING:
    from memmock.recorder import Recorder
    from memmock.upstream import Upstream


@click.command("record", short_help="Record a real provider into a cassette.")
@click.option(
    "--upstream",
    envvar="MEMMOCK_UPSTREAM",
    required=True,
    metavar="URL",
    help="The provider; everything is forwarded there, and nowhere else.  [env: MEMMOCK_UPSTREAM]",
)
@click.option("--cassette", required=True, metavar="FILE", help="Where to record, .yaml or .json; added to.")
@click.option(
    "--authorization",
    envvar="MEMMOCK_UPSTREAM_AUTHORIZATION",
    metavar="VALUE",
    help="Sent to the upstream in place of the client's Authorization; never written down.  "
    "[env: MEMMOCK_UPSTREAM_AUTHORIZATION]",
)
@redact_options
@click.option(
    "--record-errors", is_flag=True, help="Also record the 502 and 504 for a reply that never came."
)
@click.option(
    "--timeout-ms",
    type=click.IntRange(1, 86_400_000),
    metavar="MS",
    default=30_000,
    show_default=True,
    help="How long the upstream may take before 504 is answered.",
)
@click.option(
    "--tls", is_flag=True, help="The upstream speaks TLS; for an upstream without https:// in front."
)
@click.option("--ca-file", metavar="FILE", help="Certificates to trust for the upstream, in PEM.")
@listen_options(path_help="Where the proxy answers; any gateway prefix may stand before it.")
def command(
    upstream: str,
    cassette: str,
    authorization: str | None,
    redact_headers: tuple[str, ...],
    redact_fields: tuple[str, ...],
    redact_patterns: tuple[str, ...],
    record_errors: bool,
    timeout_ms: int,
    tls: bool,
    ca_file: str | None,
    host: str,
    port: int,
    path: str,
    form: str,
) -> None:
    """Record a provider until Ctrl-C: point the live service at this proxy.

    Each interaction is in the file before its reply is sent. Credentials are taken out first: those of the
    usual headers, and the value of --authorization wherever it occurs.

    Exits with 1 when something could not be recorded.
    """
    from memmock.admin import PREFIX, is_local
    from memmock.cassette_file import CassetteError, Recording
    from memmock.cli.call_log import CallLog, as_json, as_text
    from memmock.inspector import Inspected, Inspector, Subject
    from memmock.recorder import Recorder, leaks, settled
    from memmock.server import Server
    from memmock.upstream import Upstream

    check_path(path)
    hidden = redactor(redact_headers, redact_fields, redact_patterns, authorization)
    target = Upstream(
        _with_scheme(upstream, tls), authorization=authorization, timeout_ms=timeout_ms, ca_file=ca_file
    )
    _refuse_itself(target, host, port)
    server = Server(
        lambda request: inspected(request), host=host, port=port, at_stop=lambda: recorder.close()
    )
    server.bind()  # before the file is touched
    with ExitStack() as stack:
        stack.callback(server.stop)
        recording = stack.enter_context(Recording(cassette))
        before = len(recording.interactions)
        recorder = Recorder(
            target,
            recording.append,
            redactor=hidden,
            path=path,
            record_errors=record_errors,
            before=before,
        )
        endpoint = server.url + path
        subject = Subject(kind="record", journal=recorder.journal, endpoint=lambda: endpoint, redactor=hidden)
        inspected = Inspected(recorder, Inspector(subject), host=host)
        line = as_json if form == "json" else as_text
        watched = server.url + PREFIX if is_local(host) else ""
        welcome = _welcome(hidden.uri(target.url), endpoint, cassette, before, watched)
        ready = json.dumps({"endpoint": endpoint}) if form == "json" else welcome
        with CallLog(
            recorder.journal,
            lambda call, again: hidden.text(line(call, again)),
            lambda call, again: "",
            all_of_them=True,
        ):
            server.run(ready=lambda: click.echo(ready))
        kept, failures = settled(recording.interactions, hidden, before=before)
        try:
            recording.finish(kept)
        except CassetteError as error:
            failures.append(str(error))
    server.check()
    failures = [*recorder.failures, *failures, *leaks(cassette, hidden)]
    _report(recorder, cassette, len(kept), failures, form)


def _with_scheme(upstream: str, tls: bool) -> str:
    if "://" not in upstream:
        return f"{'https' if tls else 'http'}://{upstream}"
    if tls and not upstream.lower().startswith("https:"):
        raise click.UsageError("--tls is for an upstream that speaks TLS, not for one with another scheme")
    return upstream


def _refuse_itself(upstream: Upstream, host: str, port: int) -> None:
    local = {"localhost", "127.0.0.1", "::1", "0.0.0.0", "::", host}
    if upstream.port == port and upstream.host in local:
        where = f"{upstream.host}:{upstream.port}"
        raise MemmockError(f"the upstream at {where} is this proxy itself; choose another --port")


def _welcome(upstream: str, endpoint: str, cassette: str, before: int, watched: str) -> str:
    body = json.dumps({"query": "用户和灵绯之前约定的暗号", "max_results": 1}, ensure_ascii=False)
    there = f", after the {count(before, 'interaction')} that it has" if before else ""
    return "\n".join(
        [
            f"memmock records {upstream} into {cassette}{there}",
            "",
            f"Ask it through {endpoint}, or point a live session there:",
            "",
            f"curl -s {shlex.quote(endpoint)} \\",
            "  -H 'Content-Type: application/json' -H 'Accept: application/json' \\",
            f"  -d {shlex.quote(body)}",
            "",
            *(["Watch it in a browser:", "", watched, ""] if watched else []),
            "Calls (Ctrl-C to stop):",
        ]
    )


def _report(recorder: Recorder, cassette: str, total: int, reasons: list[str], form: str) -> None:
    failures = [why if n == 1 else f"{why} ({n} times)" for why, n in Counter(reasons).items()]
    facts = {"recorded": recorder.recorded, "cassette": cassette, "interactions": total, "failures": failures}
    if form == "json":
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        click.echo(f"\n{cassette}: {count(recorder.recorded, 'new interaction')}, {total} in all")
        for failure in failures:
            click.echo(f"memmock: {failure}", err=True)
    if failures:
        raise SystemExit(1)
