import threading
import time

from memmock.http import Reply, Request
from memmock.journal import Journal

OK = Reply()


def add(journal, body=b'{"query": "a"}', reply=OK, **headers):
    return journal.add(Request("POST", "/", tuple(headers.items()), body), reply, time.time(), 0.001)


def test_call_is_parsed_when_it_is_looked_at():
    reply = Reply.json({"memories": [{"summary": "s"}]})
    call = add(Journal(), '{"query": "暗号", "max_results": 2}'.encode(), reply)
    assert call.retrieval == {"query": "暗号", "max_results": 2}
    assert call.memories == [{"summary": "s"}]
    assert "REQ002" in [found.code for found in call.violations]
    assert repr(call) == "<Call 1: POST query='暗号', max_results=2 -> 200>"


def test_call_without_json_has_no_retrieval():
    for body in (b"", b"\xff", b"[1]", b'"text"'):
        call = add(Journal(), body, Reply(body=body))
        assert (call.retrieval, call.memories) == ({}, [])
    assert add(Journal(), b"", Reply.json({"memories": None})).memories == []


def test_oldest_calls_go_when_there_are_too_many():
    journal = Journal(max_calls=3)
    for _ in range(5):
        add(journal)
    assert [call.number for call in journal.calls] == [3, 4, 5]
    assert (journal.total, journal.dropped) == (5, 2)


def test_oldest_calls_go_when_they_are_too_large():
    journal = Journal(max_bytes=100_000)
    for _ in range(5):
        add(journal, b"x" * 20_000, Reply(body=b"y" * 20_000))
    assert [call.number for call in journal.calls] == [4, 5]
    add(journal, X="h" * 90_000)  # headers count too
    assert [call.number for call in journal.calls] == [6]


def test_many_small_headers_weigh_what_they_take():
    journal = Journal(max_bytes=100_000)
    for _ in range(3):
        journal.add(Request("POST", "/", (("A", "b"),) * 500), OK, time.time(), 0.001)
    assert [call.number for call in journal.calls] == [3]


def test_call_larger_than_the_journal_is_kept_until_the_next():
    journal = Journal(max_bytes=1000)
    add(journal, b"x" * 5000)
    assert [call.number for call in journal.calls] == [1]
    add(journal)
    assert [call.number for call in journal.calls] == [2]


def test_cleared_journal_counts_anew_and_numbers_on():
    journal = Journal(max_calls=2)
    for _ in range(3):
        add(journal)
    journal.clear()
    assert (journal.calls, journal.total, journal.dropped) == ([], 0, 0)
    assert add(journal).number == 4


def test_since_gives_the_calls_after_a_number():
    journal = Journal(max_calls=3)
    assert journal.since(0) == []
    for _ in range(5):
        add(journal)
    assert [call.number for call in journal.since(3)] == [4, 5]
    assert [call.number for call in journal.since(0)] == [3, 4, 5]
    assert journal.since(5) == []


def test_wait_ends_when_the_call_comes():
    journal = Journal()
    threading.Timer(0.05, add, [journal]).start()
    assert journal.wait(lambda: journal.total == 1, 10)


def test_wait_ends_without_the_call():
    assert not Journal().wait(lambda: False, 0.01)


def test_calls_from_many_threads_are_all_kept():
    journal = Journal(max_calls=10_000)
    threads = [threading.Thread(target=lambda: [add(journal) for _ in range(200)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [call.number for call in journal.calls] == list(range(1, 1601))
