import threading
import time

import pytest

from memmock.http import Reply, Request, Sent
from memmock.journal import Journal, retries

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


# ---- how calls end

PLAYED = Reply.json({}).delayed(0.1)


def play(journal, reply=PLAYED, body=b'{"query": "a"}', **told):
    request = Request("POST", "/", (), body)
    return journal.add(request, reply, time.time(), 0.001, 200, "late", **told)


def test_call_that_is_answered_at_once_is_over():
    call = add(Journal())
    assert (call.sent, call.over, call.ending, call.failed) == (None, True, "completed", False)
    assert call.elapsed_s == call.duration_s == 0.001


def test_call_with_a_delivery_is_over_when_that_has_ended():
    journal = Journal()
    call = play(journal)
    assert (call.over, call.ending, call.failed, call.elapsed_s) == (False, "under way", False, 0.001)
    sent = Sent("completed", 72, 0.15)
    journal.end(call, sent)
    assert (call.over, call.sent, call.elapsed_s) == (True, sent, 0.15)


@pytest.mark.parametrize(
    ("how", "ending"),
    [
        ("completed", "completed, 1,072 bytes, 150 of 200 ms"),
        ("closed", "closed after 1,072 bytes, 150 of 200 ms"),
        ("reset", "reset after 1,072 bytes, 150 of 200 ms"),
        ("client closed", "the client closed after 1,072 bytes, 150 of 200 ms"),
        ("stopped", "the server stopped after 1,072 bytes, 150 of 200 ms"),
    ],
)
def test_ending_tells_how_far_the_reply_came_and_when(how, ending):
    journal = Journal()
    call = play(journal)
    journal.end(call, Sent(how, 1072, 0.15))
    assert call.ending == ending
    assert call.failed is (how != "completed")


@pytest.mark.parametrize(
    ("status", "fails", "sent", "failed"),
    [
        (200, False, None, False),
        (204, False, None, False),
        (299, False, None, False),
        (199, False, None, True),
        (300, False, None, True),
        (500, False, None, True),
        (0, False, None, True),
        (200, True, None, True),
        (200, False, Sent("completed", 9, 0.2), False),
        (200, False, Sent("completed", 9, 0.201), True),
        (500, False, Sent("completed", 9, 0.1), True),
        (200, False, Sent("client closed", 9, 0.1), True),
    ],
)
def test_call_has_failed_without_a_good_answer_in_time(status, fails, sent, failed):
    journal = Journal()
    call = play(journal, Reply(status), fails=fails)
    if sent is not None:
        journal.end(call, sent)
    assert call.failed is failed


def test_error_that_was_answered_can_be_asked_for():
    journal = Journal()
    call = play(journal, Reply.error(404, "not_found", "nothing is here"))
    assert (call.error_code, call.error_message) == ("not_found", "nothing is here")
    for body in (b"", b"[]", b'{"error": "text"}', b'{"error": {}}'):
        call = play(journal, Reply(500, body=body))
        assert (call.error_code, call.error_message) == ("", "")


def test_call_shows_what_was_played():
    call = play(Journal())
    assert repr(call) == "<Call 1: POST query='a' -> 200 (late)>"
    assert repr(add(Journal(), b"")) == "<Call 1: POST no retrieval -> 200>"


def test_wait_ends_when_the_delivery_does():
    journal = Journal()
    call = play(journal)
    threading.Timer(0.05, journal.end, [call, Sent("completed", 1, 0.1)]).start()
    assert journal.wait(lambda: call.over, 10)
    assert not journal.wait(lambda: journal.total == 2, 0.01)


def test_end_of_a_call_that_has_left_the_journal_does_no_harm():
    journal = Journal(max_calls=1)
    call = play(journal)
    add(journal)
    journal.end(call, Sent("reset", 1, 0.1))
    assert (call.ending, [each.number for each in journal.calls]) == (
        "reset after 1 bytes, 100 of 200 ms",
        [2],
    )


# ---- the same request again


def test_same_request_after_a_failure_is_a_retry():
    journal = Journal()
    bad = Reply(500)
    play(journal, bad, b"a")
    play(journal, bad, b"b")
    play(journal, bad, b"a")
    play(journal, OK, b"a")
    play(journal, OK, b"a")  # that one is not: it had worked
    play(journal, OK, b"b")
    assert retries(journal.calls) == {3: 1, 4: 1, 6: 2}


def test_same_request_to_another_path_is_no_retry():
    journal = Journal()
    for target in ("/a", "/b", "/a?b"):
        journal.add(Request("POST", target, (), b"a"), Reply(500), time.time(), 0.001)
    assert retries(journal.calls) == {}


def test_same_request_after_an_answer_is_no_retry():
    journal = Journal()
    for _ in range(3):
        play(journal, OK)
    assert retries(journal.calls) == {}
    assert retries([]) == {}


@pytest.mark.parametrize("how", ["reset", "client closed"])
def test_same_request_after_a_broken_delivery_is_a_retry(how):
    journal = Journal()
    journal.end(play(journal), Sent(how, 1, 0.1))
    play(journal)
    assert retries(journal.calls) == {2: 1}


def test_bytes_on_the_wire_count():
    journal = Journal()
    small = journal.add(Request("POST", "/"), Reply(), time.time(), 0.001)
    large = journal.add(Request("POST", "/"), Reply.raw(b"x" * 10_000), time.time(), 0.001)
    assert large.size - small.size == 10_000
