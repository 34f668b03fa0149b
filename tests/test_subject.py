"""A consumer under test that is a process: JSON lines, and all the ways in which it goes wrong."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from memmock.consumer_conformance import process
from memmock.consumer_conformance.process import Process
from memmock.errors import MemmockError

PATIENCE_S = 20.0
SECRET = "k-5f0c1d9e77"
CONFIG = {
    "enabled": True,
    "endpoint": "http://127.0.0.1:1/memory",
    "authorization": f"Bearer {SECRET}",
    "timeout_ms": 1000,
    "max_response_bytes": 65_536,
}
GOOD = {"ok": True, "memories": []}


def asked(query="tea"):
    return {"query": query}


@contextlib.contextmanager
def consumer(body, **options):
    """A process that runs `body` for each `call`; `tell` writes a result, `write` a line."""
    program = textwrap.dedent("""
        import json, os, signal, subprocess, sys, time
        def write(text):
            sys.stdout.write(text + "\\n")
            sys.stdout.flush()
        def tell(**value):
            write(json.dumps({"id": call["id"], **value}))
        for line in sys.stdin:
            call = json.loads(line)
            BODY
        """).replace("    BODY", textwrap.indent(textwrap.dedent(body).strip(), "    "))
    subject = Process([sys.executable, "-I", "-S", "-c", program], **options)
    try:
        yield subject
    finally:
        subject.close()


def call(subject, query="tea", patience_s=PATIENCE_S):
    return subject.call(CONFIG, asked(query), patience_s)


def is_alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"  # an orphan that is dead and not yet reaped by init


def wait_until_gone(pid):
    deadline = time.monotonic() + PATIENCE_S
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} still runs"
        time.sleep(0.01)


def own_threads():
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("memmock-subject")}


# ---- a process that answers


def test_process_answers_call_after_call():
    with consumer("tell(ok=True, memories=[os.getpid()])") as subject:
        assert subject.fresh
        first = call(subject)
        assert not subject.fresh
        second = call(subject)
        assert first.value == second.value
        assert first.failure == first.message == first.errors == ""
        assert 0 < second.elapsed_s < PATIENCE_S


def test_process_is_given_the_call_and_nothing_else():
    with consumer("tell(ok=True, memories=[call])") as subject:
        call(subject)
        told = subject.call(CONFIG, {"query": "x", "max_results": 3}, PATIENCE_S).value["memories"][0]
    assert told == {"id": "2", "memory_retrieval": CONFIG, "request": {"query": "x", "max_results": 3}}


@pytest.mark.parametrize("query", ['用户 ☕ \u2028\n\x00"', "half \ud83d pair", "长" * 300_000])
def test_text_gets_to_a_process_and_back_unchanged(query):
    with consumer("tell(ok=True, memories=[call['request']['query']])") as subject:
        assert call(subject, query).value == {"ok": True, "memories": [query]}


def test_numbers_of_any_size_are_taken():
    with consumer("""write('{"id":"1","ok":true,"memories":[{"rank":' + '9' * 5000 + '}]}')""") as subject:
        assert call(subject).value["ok"]


def test_process_runs_where_and_with_what_it_is_told(tmp_path):
    options = {"cwd": tmp_path, "env": {"COLOUR": "green"}}
    with consumer("tell(ok=True, memories=[os.getcwd(), os.environ['COLOUR']])", **options) as subject:
        assert call(subject).value["memories"] == [str(tmp_path.resolve()), "green"]


def test_name_is_the_command_as_in_a_shell():
    assert Process(["node", "my consumer.mjs"]).name == "node 'my consumer.mjs'"


def test_flood_of_errors_holds_nobody_up_and_its_end_is_kept():
    body = "sys.stderr.write('x' * 1_000_000 + 'é the end'); sys.stderr.flush(); tell(ok=True, memories=[])"
    with consumer(body) as subject:
        call(subject)
        call(subject)
        subject.close()
    with consumer(body.replace("tell(ok=True, memories=[])", "sys.exit(1)")) as subject:
        errors = call(subject).errors
    assert len(errors) == process.KEPT_ERRORS
    assert errors.endswith("xxé the end")


def test_errors_that_are_no_text_are_kept_readable():
    with consumer(r"os.write(2, b'\xff\xfe oh'); sys.exit(1)") as subject:
        assert call(subject).errors == "\ufffd\ufffd oh"


# ---- a process that dies


def test_death_is_told_with_the_exit_code_and_the_errors():
    with consumer("raise SystemExit('no such key')") as subject:
        told = call(subject)
        assert (told.value, told.failure) == (None, "died")
        assert told.message == "the process ended with exit code 1 before it answered"
        assert told.errors == "no such key\n"
        assert subject.fresh


def test_process_is_started_anew_after_its_death():
    with consumer(
        "os._exit(3) if call['request']['query'] == 'die' else tell(ok=True, memories=[])"
    ) as subject:
        assert call(subject, "die").message == "the process ended with exit code 3 before it answered"
        assert call(subject).value == GOOD


def test_death_by_a_signal_is_told_by_its_name():
    with consumer("os.kill(os.getpid(), signal.SIGSEGV)") as subject:
        assert call(subject).message == "the process was ended by SIGSEGV before it answered"


def test_death_within_a_line_is_told():
    with consumer("sys.stdout.write('{'); sys.stdout.flush(); os._exit(0)") as subject:
        assert call(subject).message == "the process ended with exit code 0 within a line"


def test_process_that_never_reads_has_died():
    subject = Process(["sh", "-c", "echo not today >&2; exit 7"])
    told = call(subject, "x" * 1_000_000)
    assert told.failure == "died"
    assert told.message.startswith("the process ended with exit code 7 before it ")
    assert told.errors == "not today\n"


def test_process_that_answers_once_and_ends_has_died_before_the_next_call():
    with consumer("tell(ok=True, memories=[os.getpid()]); sys.exit(0)") as subject:
        pid = call(subject).value["memories"][0]
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert call(subject).message == (
            "the process ended with exit code 0 before it was called; "
            "a consumer reads one line after the other until its input ends"
        )


def test_death_is_seen_while_a_child_holds_the_pipes():
    with consumer("subprocess.Popen(['sleep', '60']); os._exit(2)") as subject:
        assert call(subject).message == "the process ended with exit code 2 before it answered"


def test_process_that_closes_its_output_has_died():
    with consumer("os.close(1); time.sleep(60)") as subject:
        told = call(subject)
        assert told.message == "the process closed its standard output before it answered"


def test_answer_of_a_process_that_ends_behind_it_counts():
    with consumer("tell(ok=True, memories=[]); os._exit(1)") as subject:
        assert call(subject).value == GOOD


# ---- a process that is silent


def test_silence_is_told_and_nothing_is_left_of_the_process():
    body = """
        if call['id'] == '1':
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            child = subprocess.Popen(['sleep', '60'])
            tell(ok=True, memories=[os.getpid(), child.pid])
        """
    with consumer(body) as subject:
        pids = call(subject).value["memories"]
        told = call(subject, patience_s=0.2)
        assert (told.value, told.failure) == (None, "silent")
        assert told.message == "the process did not answer within 0.2 s, and was killed"
        assert 0.2 <= told.elapsed_s < PATIENCE_S
        assert subject.fresh
        for pid in pids:
            wait_until_gone(pid)


def test_line_that_does_not_end_is_silence():
    body = """
        if call['id'] == '1':
            tell(ok=True, memories=[])
        else:
            sys.stdout.write('{"id":'); sys.stdout.flush()
        """
    with consumer(body) as subject:
        call(subject)
        told = call(subject, patience_s=0.5)
        assert told.failure == "silent"
        assert told.message == "the process did not end its line within 0.5 s, and was killed"


def test_process_is_started_anew_after_silence():
    body = "time.sleep(60 if call['request']['query'] == 'wait' else 0); tell(ok=True, memories=[])"
    with consumer(body) as subject:
        call(subject)
        assert call(subject, "wait", patience_s=0.2).failure == "silent"
        assert call(subject).value == GOOD


# ---- a process that writes something else

HINT = "only results belong on standard output, logs belong on standard error"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("INFO looking up tea", "is not JSON"),
        ("", "is not JSON"),
        ('{"id": "1"} {}', "is not JSON"),
        ('{"id": "1", "ok": true, "memories": [{"confidence": NaN}]}', "is not JSON (NaN is not JSON)"),
        ('{"id": "1", "ok": -Infinity}', "is not JSON (-Infinity is not JSON)"),
        ("[" * 200_000, "is not JSON (nested too deeply)"),
        ("\udcff", "is not UTF-8"),
        ("[]", "is not a JSON object"),
        ('{"ok": true, "memories": []}', 'has no id, and should have "1"'),
        ('{"id": 1, "ok": true, "memories": []}', 'has another id than the call, which has "1"'),
        ('{"id": "0", "ok": true, "memories": []}', 'answers the earlier call "0" instead of "1"'),
    ],
)
def test_line_that_is_no_result_is_told(line, what, tmp_path):
    (tmp_path / "line").write_bytes(line.encode(errors="surrogateescape") + b"\n")
    with consumer(f"os.write(1, open({str(tmp_path / 'line')!r}, 'rb').read())") as subject:
        told = call(subject)
        assert (told.value, told.failure) == (None, "garbled")
        shown = " ".join(line.encode(errors="surrogateescape").decode(errors="replace").split())
        shown = shown if len(shown) <= 160 else f"{shown[:160]}…"
        hint = "" if line.startswith('{"') else f"; {HINT}"
        assert told.message == f"the process wrote a line that {what}{hint}: {shown}"
        assert subject.fresh


def test_second_line_for_a_call_is_told_with_the_next_call():
    with consumer("write(json.dumps({'id': call['id'], 'ok': True, 'memories': []}) + '\\nbye')") as subject:
        assert call(subject).value == GOOD
        told = call(subject)
        assert told.failure == "garbled"
        assert told.message == f"the process wrote more than one line for a call; {HINT}: bye"


def test_line_without_end_is_given_up_at_the_limit(monkeypatch):
    monkeypatch.setattr(process, "MOST_LINE_BYTES", 2**21)
    with consumer("while True: sys.stdout.write('x' * 100_000)") as subject:
        told = call(subject)
        assert told.failure == "garbled"
        assert told.message == "the process wrote a line of more than 2 MiB"


def test_long_result_is_taken():
    with consumer("tell(ok=True, memories=['x' * 10_000_000])") as subject:
        assert len(call(subject).value["memories"][0]) == 10_000_000


def test_authorization_is_not_in_messages():
    with consumer("write('calling with ' + call['memory_retrieval']['authorization'])") as subject:
        told = call(subject)
        assert told.message.endswith("calling with [authorization]")
        assert SECRET not in f"{told}{subject!r}{subject.name}"
    with consumer(f"write('token={SECRET}')") as subject:
        assert call(subject).message.endswith("token=[authorization]")


# ---- the start and the end of a process


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        (
            ["no-such-program"],
            {},
            "the command 'no-such-program' cannot be started: No such file or directory",
        ),
        ([__file__], {}, f"the command {__file__!r} cannot be started: Permission denied"),
        (["a\0b"], {}, "the command 'a\\\\u0000b' cannot be started: embedded null byte"),
        (
            ["sh"],
            {"cwd": "/no/where"},
            "the command 'sh' cannot be started: there is no directory '/no/where'",
        ),
        ([], {}, "there is no command to start as the consumer"),
    ],
)
def test_command_that_cannot_be_started_is_refused(command, options, message):
    subject = Process(command, **options)
    with pytest.raises(MemmockError) as refused:
        call(subject)
    assert str(refused.value) == message
    assert subject.fresh


def test_process_ends_by_itself_when_its_input_does(tmp_path):
    body = "import atexit; atexit.register(lambda: open('ended', 'w').close()); tell(ok=True, memories=[])"
    with consumer(body, cwd=tmp_path) as subject:
        call(subject)
        subject.close()
        assert (tmp_path / "ended").exists()


def test_close_ends_a_process_that_does_not_want_to():
    body = (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); tell(ok=True, memories=[os.getpid()]); time.sleep(60)"
    )
    with consumer(body) as subject:
        pid = call(subject).value["memories"][0]
        subject.close()
        assert not is_alive(pid)
        assert subject.fresh
        assert own_threads() == set()
        subject.close()


def test_close_does_not_wait_for_what_has_left_the_group():
    body = """
        child = subprocess.Popen(['sleep', '60'], start_new_session=True)
        tell(ok=True, memories=[child.pid])
        """
    with consumer(body) as subject:
        escaped = call(subject).value["memories"][0]
        started = time.monotonic()
        subject.close()
        assert time.monotonic() - started < PATIENCE_S
        assert own_threads() == set()
        os.kill(escaped, signal.SIGKILL)


def test_restart_starts_another_process():
    with consumer("tell(ok=True, memories=[os.getpid()])") as subject:
        first = call(subject)
        subject.restart()
        assert subject.fresh
        assert call(subject).value != first.value


def test_interrupt_leaves_no_process(tmp_path):
    body = "open('pid', 'w').write(str(os.getpid())); os.kill(os.getppid(), signal.SIGINT); time.sleep(60)"
    with consumer(body, cwd=tmp_path) as subject:
        with pytest.raises(KeyboardInterrupt):
            call(subject)
        assert subject.fresh
        assert not is_alive(int((tmp_path / "pid").read_text()))
        assert own_threads() == set()
