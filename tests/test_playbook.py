"""What is played when, without a server."""

from __future__ import annotations

import gc
import json
import re
import threading
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memmock import playbook as playbook_module
from memmock.errors import MemmockError
from memmock.http import Reply, Request
from memmock.playbook import EVERYTHING, HTTP_ONLY, Playbook
from memmock.scenarios import CATALOGUE, Scenario, Stage

REQUEST = Request("POST", "/memory_retrieval")
DOORS = ["refused", "reset-on-connect"]


@pytest.fixture
def book():
    return Playbook(abilities=EVERYTHING)


def played(book, calls=1, **retrieval):
    """What is played to so many calls; empty for the honest answer."""
    plays = [book.next(REQUEST, retrieval) for _ in range(calls)]
    return [play.spec if play else "" for play in plays]


@pytest.fixture
def clock(monkeypatch):
    """The time as the playbook sees it; `clock[0]` may be set."""
    now = [1000.0]

    class Clock:
        @staticmethod
        def monotonic():
            return now[0]

    monkeypatch.setattr(playbook_module, "time", Clock)
    return now


# ---- use


def test_playbook_without_rules_has_nothing_to_play(book):
    assert not book.active
    assert played(book) == [""]
    assert (book.rules, book.unfinished) == ([], [])


def test_scenario_is_played_until_another_one_is(book):
    book.use("late")
    assert played(book, 3) == ["late"] * 3
    book.use("success")
    assert played(book, 2) == ["success"] * 2


def test_scenario_takes_the_place_of_all_that_was_there_before(book):
    book.use("late", times=5)
    book.plan("empty, null")
    book.chaos("html=1", 1)
    book.use("hang", when={"query": "a"})
    book.use("server-error")
    assert [str(rule) for rule in book.rules] == ["server-error"]
    assert played(book, query="a") == ["server-error"]


def test_scenario_with_a_limit_comes_before_what_is_there(book):
    book.use("late")
    book.use("empty", times=2)
    book.use("null", times=1)
    assert [str(rule) for rule in book.rules] == ["null", "empty*2", "late"]
    assert played(book, 5) == ["null", "empty", "empty", "late", "late"]
    assert [str(rule) for rule in book.rules] == ["late"]


def test_scenario_is_played_so_many_times(book):
    book.use("late", times=2)
    assert played(book, 3) == ["late", "late", ""]
    assert not book.rules


def test_scenario_is_played_for_a_while(book, clock):
    book.use("empty")
    book.use("late", for_s=2)
    assert played(book) == ["late"]
    clock[0] += 1.999
    assert played(book) == ["late"]
    clock[0] += 0.001
    assert played(book) == ["empty"]
    assert [str(rule) for rule in book.rules] == ["empty"]


def test_limits_may_be_combined(book, clock):
    book.use("late", times=2, when={"query": "a"}, for_s=10)
    assert played(book, query="b") == [""]
    assert played(book, query="a") == ["late"]
    clock[0] += 10
    assert played(book, query="a") == [""]


def test_scenario_is_played_to_the_calls_it_is_for(book):
    book.use("late", when={"query": "暗号", "memory_types": ["style", "other"]})
    assert played(book, query="暗号", memory_types=["other", "style"], max_results=3) == ["late"]
    assert played(book, query="暗号") == [""]
    assert played(book, query="x", memory_types=["style", "other"]) == [""]


def test_scenario_may_be_for_calls_without_a_field(book):
    book.use("late", when={"time_hint": None})
    assert played(book, query="a") == ["late"]
    assert played(book, query="a", time_hint="今年") == [""]


def test_scenario_is_played_to_the_calls_that_a_function_chooses(book):
    book.use("late", when=lambda request: request.target.endswith("?b"))
    assert book.next(Request("POST", "/?a"), {}) is None
    assert book.next(Request("POST", "/?b"), {}).spec == "late"


def test_call_that_a_scenario_is_not_for_is_not_counted(book):
    book.use("late", times=1, when={"query": "a"})
    assert played(book, 3, query="b") == [""] * 3
    assert played(book, 2, query="a") == ["late", ""]


def test_function_that_chooses_calls_may_look_at_the_rules_and_change_them(book):
    def first(_):
        book.use("empty", times=1)
        return bool(book.rules)

    book.use("late", when=first)
    done = threading.Event()
    threading.Thread(target=lambda: (played(book), done.set()), daemon=True).start()
    assert done.wait(5)


def test_scenario_has_its_aliases_and_parameters(book):
    assert _spec(book, "500") == "server-error"
    assert _spec(book, " Server_Error ") == "server-error"
    assert _spec(book, "late") == "late"
    assert _spec(book, "late()") == "late"
    assert _spec(book, " late ( factor = 3.5 , ) ") == "late(factor=3.5)"
    assert _spec(book, "garbage(size=3, seed=7)") == "garbage(size=3, seed=7)"


def _spec(book, what, **parameters):
    book.use(what, parameters=parameters)
    return played(book)[0]


def test_parameters_win_over_those_in_the_text(book):
    assert _spec(book, "garbage(size=3, seed=7)", seed=8) == "garbage(size=3, seed=8)"
    assert _spec(book, CATALOGUE["garbage"], size=9) == "garbage(size=9)"


@pytest.mark.parametrize("name", [name for name, each in CATALOGUE.items() if each.parameters])
def test_parameters_are_written_so_that_they_can_be_read(book, name):
    for value in (1, 1_048_577, 999_999_999):
        for parameter in CATALOGUE[name].parameters:
            spec = _spec(book, name, **{parameter.name: value})
            assert _spec(book, spec) == spec
            assert book.rules[0].steps[0].play.parameters == {parameter.name: value}


def test_reply_and_function_are_played_by_what_they_are(book):
    def sleepy(request):
        return Reply(201)

    class Odd:
        def __call__(self, request):
            return Reply(202)

    for what, name, status in (
        (Reply(299), "a reply of your own", 299),
        (sleepy, "sleepy", 201),
        (lambda request: Reply(203), "a function of your own", 203),
        (Odd(), "Odd", 202),
    ):
        book.use(what)
        play = book.next(REQUEST, {})
        assert (play.spec, play.scenario.family) == (name, "own")
        stage = type("Stage", (), {"request": REQUEST})
        assert play.reply(stage).status == status


def test_scenario_of_ones_own_is_found_by_its_name():
    own = Scenario.own("My-9", lambda stage: Reply(299))
    book = Playbook({"My-9": own})
    book.use("My-9")
    assert book.next(REQUEST, {}).scenario is own
    book.plan("My-9*2, My-9")
    assert played(book, 3) == ["My-9"] * 3


@pytest.mark.parametrize(
    ("what", "limits", "message"),
    [
        (
            "sever-error",
            {},
            "there is no scenario 'sever-error'; near it are server-error, top-level-array, error-empty; "
            "`memmock scenarios` lists all",
        ),
        ("zzzzzz", {}, "there is no scenario 'zzzzzz'; `memmock scenarios` lists all"),
        ("", {}, "'' should be the name of a scenario, as late or late(factor=2)"),
        ("late(factor=2", {}, "'late(factor=2' should be the name of a scenario, as late or late(factor=2)"),
        ("late factor=2", {}, "'late factor=2' should be the name of a scenario, as late or late(factor=2)"),
        ("late(2)", {}, "'late(2)': '2' should be parameter=value"),
        ("late(factor=)", {}, "'late(factor=)': 'factor=' should be parameter=value"),
        ("late(delay=2)", {}, "scenario late has no parameter 'delay'; it has factor"),
        ("empty(n=2)", {}, "scenario empty has no parameter 'n'; it has none"),
        ("late(factor=x)", {}, "scenario late: factor must be a number from 0 to 1,000,000,000, not 'x'"),
        ("late(factor=-1)", {}, "scenario late: factor must be a number from 0 to 1,000,000,000, not '-1'"),
        ("late(factor=nan)", {}, "scenario late: factor must be a number from 0 to 1,000,000,000, not 'nan'"),
        (
            "garbage(size=1.5)",
            {},
            "scenario garbage: size must be an integer from 0 to 1,000,000,000, not '1.5'",
        ),
        (
            "garbage",
            {"parameters": {"size": True}},
            "scenario garbage: size must be an integer from 0 to 1,000,000,000, not True",
        ),
        ("late", {"times": 0}, "times must be an integer from 1 to 1,000,000, not 0"),
        ("late", {"times": True}, "times must be an integer from 1 to 1,000,000, not True"),
        ("late", {"times": 1.5}, "times must be an integer from 1 to 1,000,000, not 1.5"),
        ("late", {"for_s": 0}, "for_s must be a number of seconds above 0, not 0"),
        ("late", {"for_s": float("nan")}, "for_s must be a number of seconds above 0, not nan"),
        ("late", {"for_s": True}, "for_s must be a number of seconds above 0, not True"),
        ("late", {"for_s": "1"}, "for_s must be a number of seconds above 0, not '1'"),
        ("late", {"when": {}}, "when must be fields of a retrieval and their values, or a function, not {}"),
        (
            "late",
            {"when": "a"},
            "when must be fields of a retrieval and their values, or a function, not 'a'",
        ),
        (
            "late",
            {"when": {"quary": "a"}},
            "when: a retrieval has no field 'quary'; its fields are query, live_id, reason, "
            "memory_types, time_hint, max_results",
        ),
        (7, {}, "what to play is the name of a scenario, and a name is text: write '7'"),
        (Reply(), {"parameters": {"factor": 2}}, "a reply of your own has no parameter 'factor'"),
        (
            "refused",
            {"times": 2},
            "refused cannot be counted, as nobody sees who is refused: use for_s, not times",
        ),
        (
            "refused",
            {"when": {"query": "a"}},
            "refused comes before the request, so it cannot depend on one: leave `when` out",
        ),
        (
            "reset-on-connect",
            {"when": lambda request: True},
            "reset-on-connect comes before the request, so it cannot depend on one: leave `when` out",
        ),
    ],
)
def test_what_cannot_be_played_is_a_clear_error_and_changes_nothing(book, what, limits, message):
    book.use("success")
    with pytest.raises(MemmockError) as caught:
        book.use(what, **limits)
    assert str(caught.value) == message
    assert [str(rule) for rule in book.rules] == ["success"]


def test_more_rules_than_anyone_needs_are_a_clear_error(book, monkeypatch):
    monkeypatch.setattr(playbook_module, "MOST_RULES", 3)
    for _ in range(3):
        book.use("late", times=1)
    with pytest.raises(MemmockError) as caught:
        book.plan("late")
    assert str(caught.value) == "3 rules wait to be played already; reset the mock first"
    assert book.unfinished == []
    played(book)
    book.use("late", times=1)


# ---- plans


def test_plan_is_played_in_its_order_and_then_what_was_before(book):
    book.use("empty")
    book.plan("server-error*2, late(factor=3), success")
    assert played(book, 6) == [
        "server-error",
        "server-error",
        "late(factor=3.0)",
        "success",
        "empty",
        "empty",
    ]


@pytest.mark.parametrize("alias", ["500", "redirect-301", "created-201", "continue-100", "204"])
def test_plan_may_hold_names_that_end_with_digits(book, alias):
    book.plan(f"{alias}, {alias}*2,success")
    assert [step.times for step in book.rules[0].steps] == [1, 2, 1]
    name = played(book)[0]
    assert played(book, 3) == [name, name, "success"]


def test_spaces_do_not_matter_in_a_plan(book):
    book.plan("  late ( factor = 2 )*2 ,garbage(size=3,seed=4) , empty * 3")
    assert str(book.rules[0]) == "late(factor=2.0)*2, garbage(size=3, seed=4), empty*3"


def test_newest_plan_is_played_first(book):
    book.plan("late*2")
    book.plan("empty")
    assert played(book, 4) == ["empty", "late", "late", ""]


def test_plan_that_was_not_finished_says_how_far_it_came(book):
    book.plan("late")
    played(book)
    book.plan("server-error*2, success")
    book.plan("empty*3", must_finish=False)
    book.plan("null, html")
    assert book.unfinished == [
        '"server-error*2, success" was played 0 of 3 times; next would be server-error',
        '"null, html" was played 0 of 2 times; next would be null',
    ]
    played(book, 7)
    assert book.unfinished == ['"server-error*2, success" was played 2 of 3 times; next would be success']
    played(book)
    assert book.unfinished == []


def test_plan_that_was_replaced_is_not_finished_either(book):
    book.plan("late*2")
    book.use("success")
    assert book.unfinished == ['"late*2" was played 0 of 2 times; next would be late']


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "plan: it is empty"),
        (" , ", "plan: it is empty"),
        ("late,,empty", "plan: a part of 'late,,empty' is empty, is there a comma too many?"),
        ("late,", "plan: a part of 'late,' is empty, is there a comma too many?"),
        ("late*", "plan: 'late*' should be a scenario, or a scenario*N for N times"),
        ("late*x", "plan: 'late*x' should be a scenario, or a scenario*N for N times"),
        ("late*x3", "plan: 'late*x3' should be a scenario, or a scenario*N for N times"),
        ("late*1.5", "plan: 'late*1.5' should be a scenario, or a scenario*N for N times"),
        ("late*²", "plan: 'late*²' should be a scenario, or a scenario*N for N times"),
        ("late*2*3", "plan: 'late*2*3' should be a scenario, or a scenario*N for N times"),
        ("*3", "plan: '*3' should be a scenario, or a scenario*N for N times"),
        ("late*0", "plan: 'late*0' must be played 1 to 1,000,000 times"),
        ("late*-2", "plan: 'late*-2' should be a scenario, or a scenario*N for N times"),
        ("late*1000001", "plan: 'late*1000001' must be played 1 to 1,000,000 times"),
        ("late, refused", "plan: refused cannot be counted, as nobody sees who is refused"),
        ("late, empty(n=2)", "scenario empty has no parameter 'n'; it has none"),
        (
            "sucess*2",
            "there is no scenario 'sucess'; near it are success, unprocessable, compressed; "
            "`memmock scenarios` lists all",
        ),
        ("late(factor=2", "plan: a parenthesis is not closed in 'late(factor=2'"),
    ],
)
def test_plan_that_cannot_be_read_is_a_clear_error(book, text, message):
    with pytest.raises(MemmockError) as caught:
        book.plan(text)
    assert str(caught.value) == message
    assert not book.active


STEPS = st.one_of(
    st.sampled_from([name for name in CATALOGUE if name != "refused"]),
    st.builds("late(factor={})".format, st.floats(0, 1e9) | st.integers(0, 10**9)),
    st.builds("garbage(seed={}, size={})".format, st.integers(0, 10**9), st.integers(0, 10**9)),
    st.builds("huge-header(header_bytes={})".format, st.integers(0, 10**9)),
)


@settings(deadline=None)
@given(st.lists(st.tuples(STEPS, st.integers(1, 1_000_000)), min_size=1, max_size=6))
def test_plan_that_is_written_out_is_read_as_the_same(steps):
    first, second = Playbook(abilities=EVERYTHING), Playbook(abilities=EVERYTHING)
    first.plan(", ".join(f"{spec}*{times}" for spec, times in steps))
    second.plan(str(first.rules[0]))
    assert second.rules[0].steps == first.rules[0].steps
    assert [step.times for step in first.rules[0].steps] == [times for _, times in steps]


# ---- chaos


def test_same_seed_draws_the_same(book):
    def drawn(seed):
        book.clear()
        book.chaos("late=0.3, empty=0.2", seed)
        return played(book, 200)

    assert drawn(7) == drawn(7) != drawn(8)
    counts = Counter(drawn(7))
    assert counts.keys() == {"late", "empty", ""}
    assert 30 < counts["late"] < 90
    assert 15 < counts["empty"] < 70


def test_chance_of_one_is_always_drawn(book):
    book.chaos("late=0.5, empty=0.5", 1)
    assert set(played(book, 200)) == {"late", "empty"}
    book.chaos("null=1", 1)
    assert set(played(book, 200)) == {"null"}
    book.chaos("html=0, late=1.0", 1)
    assert set(played(book, 200)) == {"late"}


def test_call_that_chance_spares_gets_what_was_before(book):
    book.use("empty")
    book.chaos("late=1e-1", 3)
    assert set(played(book, 100)) == {"empty", "late"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "chaos: it is empty"),
        ("late=0.1,", "chaos: a part of 'late=0.1,' is empty, is there a comma too many?"),
        ("late", "chaos: 'late' should be a scenario=chance, as late=0.05"),
        ("=0.5", "chaos: '=0.5' should be a scenario=chance, as late=0.05"),
        ("late=", "chaos: 'late=' should be a scenario=chance, as late=0.05"),
        ("late=x", "chaos: 'late=x' should be a scenario=chance, as late=0.05"),
        ("late=-0.5", "chaos: 'late=-0.5' should be a scenario=chance, as late=0.05"),
        ("late=nan", "chaos: 'late=nan' should be a scenario=chance, as late=0.05"),
        ("late(factor=2)", "chaos: 'late(factor=2)' should be a scenario=chance, as late=0.05"),
        ("late=0.1.2", "chaos: 'late=0.1.2' should be a scenario=chance, as late=0.05"),
        ("late=0", "chaos: the chances must be above 0 and at most 1 together, not 0"),
        ("late=0.6, empty=0.5", "chaos: the chances must be above 0 and at most 1 together, not 1.1"),
        ("late=1e400", "chaos: the chances must be above 0 and at most 1 together, not inf"),
        (
            "lat=0.1",
            "there is no scenario 'lat'; near it are late, plain-text; `memmock scenarios` lists all",
        ),
        *(
            (f"{name}=0.1", f"chaos: {name} comes before the request, so it cannot be drawn for one")
            for name in DOORS
        ),
    ],
)
def test_chaos_that_cannot_be_read_is_a_clear_error(book, text, message):
    with pytest.raises(MemmockError) as caught:
        book.chaos(text, 1)
    assert str(caught.value) == message
    assert not book.active


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["late", "late(factor=2.5)", "garbage(seed=7)", "500"]), st.floats(0.001, 0.2)
        ),
        min_size=1,
        max_size=5,
    )
)
def test_chaos_that_is_written_out_is_read_as_the_same(chances):
    first, second = Playbook(), Playbook()
    first.chaos(", ".join(f"{spec}={chance}" for spec, chance in chances), 1)
    second.chaos(str(first.rules[0]), 1)
    assert second.rules[0].steps == first.rules[0].steps
    assert second.rules[0].odds == first.rules[0].odds == [chance for _, chance in chances]


# ---- threads


@pytest.mark.parametrize(
    "limited", [lambda book: book.use("late", times=100), lambda book: book.plan("late*50, late*50")]
)
def test_counts_are_exact_whatever_the_number_of_threads(book, limited):
    book.use("empty")
    limited(book)
    plays: list[str] = []
    start = threading.Barrier(32)

    def call() -> None:
        start.wait(10)
        plays.extend(played(book, 10))

    threads = [threading.Thread(target=call) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert Counter(plays) == {"late": 100, "empty": 220}
    assert book.unfinished == []


# ---- the door


def test_door_is_open_without_rules(book):
    assert (book.refuses(), book.greets(), book.is_open()) == (False, True, True)


def test_refused_shuts_the_door_until_something_else_is_played(book, clock):
    book.use("refused")
    assert (book.refuses(), book.greets(), book.is_open()) == (True, True, False)
    book.use("late", when={"query": "a"})  # nobody gets so far
    book.chaos("late=1", 1)
    assert book.refuses()
    book.use("success")
    assert (book.refuses(), book.is_open()) == (False, True)
    book.use("refused", for_s=2)
    assert book.refuses()
    clock[0] += 2
    assert (book.refuses(), book.is_open()) == (False, True)


def test_connections_are_reset_and_counted(book):
    book.use("success")
    book.use("reset-on-connect", times=2)
    assert not book.is_open()
    assert not book.is_open()  # that counts nothing
    assert [book.greets() for _ in range(4)] == [False, False, True, True]
    assert book.is_open()


def test_plan_goes_from_the_door_to_the_calls_and_back(book):
    book.plan("reset-on-connect, late, reset-on-connect*2")
    assert [book.greets(), book.greets()] == [False, True]
    assert played(book) == ["late"]
    assert [book.greets() for _ in range(3)] == [False, False, True]
    assert book.unfinished == []


def test_play_at_the_door_has_a_reply_for_who_is_in_already(book):
    for name in DOORS:
        book.use(name)
        reply = book.next(REQUEST, {}).reply(
            Stage(request=REQUEST, answer=lambda: Reply.json({"memories": []}))
        )
        assert (reply.delivery.cut_head, reply.delivery.ending) == (0, "reset")


# ---- what a server can do


@pytest.mark.parametrize("name", [name for name, each in CATALOGUE.items() if each.needs])
def test_what_a_server_cannot_do_is_a_clear_error(name):
    with pytest.raises(MemmockError) as caught:
        Playbook(abilities=frozenset()).use(name)
    assert str(caught.value) == (
        f"scenario {name} cannot be played here: it needs {CATALOGUE[name].needs}, which memmock's own "
        f"server has (the fixture memmock, `memmock serve`)"
    )
    Playbook(abilities=EVERYTHING).use(name)


def test_server_that_knows_only_http_can_keep_a_connection():
    book = Playbook(abilities=HTTP_ONLY)
    book.use("stale-keep-alive")
    for name in (*DOORS, "redirect-elsewhere"):
        with pytest.raises(MemmockError, match=f"scenario {name} cannot be played here"):
            book.use(name)
    assert played(book) == ["stale-keep-alive"]


# ---- telling


def test_rules_are_told_as_data(book, clock):
    book.use("late(factor=2)")
    book.chaos("empty=0.25, null=0.5", 7)
    book.plan("server-error*2, success")
    book.plan("html")
    book.use("nan", when={"query": "暗号"})
    book.use("gbk", when=lambda request: False, for_s=3, times=4)
    clock[0] += 1
    played(book, query="暗号")
    rules = json.loads(json.dumps([rule.to_json() for rule in book.rules]))
    steps = [rule.pop("steps") for rule in rules]
    assert rules == [
        {"use": "gbk", "when": "a function", "for_s": 2.0},
        {"use": "nan", "when": {"query": "暗号"}},
        {"plan": "html"},
        {"plan": "server-error*2, success"},
        {"chaos": "empty=0.25, null=0.5", "seed": 7},
        {"use": "late(factor=2.0)"},
    ]
    assert steps[0] == [{"play": "gbk", "times": 4, "played": 0}]
    assert steps[1] == [{"play": "nan", "times": None, "played": 1}]
    assert steps[3] == [
        {"play": "server-error", "times": 2, "played": 0},
        {"play": "success", "times": 1, "played": 0},
    ]


def test_change_of_the_rules_is_told(book):
    told = []
    book.changed = lambda: told.append([str(rule) for rule in book.rules])
    book.use("late")
    book.plan("empty, null")
    book.chaos("html=0.5", 1)
    book.clear()
    played(book)
    assert told == [
        ["late"],
        ["empty, null", "late"],
        ["html=0.5", "empty, null", "late"],
        [],
    ]


def test_cleared_playbook_has_no_plans_either(book):
    book.plan("late*2")
    book.clear()
    assert (book.active, book.rules, book.unfinished) == (False, [], [])


def test_asynchronous_function_that_chooses_calls_is_refused(book):
    async def never(_):
        return False

    def ask():
        with pytest.raises(MemmockError, match="when: the function is asynchronous"):
            book.next(REQUEST, {})
        gc.collect()

    book.use("late", when=never)
    with pytest.warns(RuntimeWarning, match="never awaited"):
        ask()


@pytest.mark.parametrize(
    "text", ["late=" + "1" * 9990 + "x", "late" + " " * 9990 + "(", "late*" + "9" * 9990, "(" * 9990]
)
def test_text_of_any_length_is_read_quickly(book, text):
    start = time.monotonic()
    for read in (book.use, book.plan, lambda text: book.chaos(text, 1)):
        with pytest.raises(MemmockError):
            read(text)
    assert time.monotonic() - start < 1  # what is quadratic takes several


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ({"query": 5}, "when: query is text, so it is never 5"),
        ({"memory_types": "profile"}, "when: memory_types is a list, so it is never 'profile'"),
        ({"max_results": "3"}, "when: max_results is an integer, so it is never '3'"),
        ({"max_results": True}, "when: max_results is an integer, so it is never True"),
    ],
)
def test_value_that_a_field_never_has_is_refused(book, when, message):
    with pytest.raises(MemmockError) as caught:
        book.use("late", when=when)
    assert str(caught.value) == message


def test_what_was_never_played_is_known(book):
    book.use("late")
    book.use("empty", times=2)
    book.use("success", times=1)
    book.use("refused", for_s=60)
    book.use("html", when={"query": "a"}, expected=False)
    assert book.unplayed == ["late", "empty"]
    book.clear()
    assert book.unplayed == []


def test_plans_and_chance_are_dropped_by_themselves(book):
    book.use("late")
    book.chaos("empty=0.5", 1)
    book.plan("html*2")
    book.drop(planned=True)
    assert [str(rule) for rule in book.rules] == ["empty=0.5", "late"]
    assert book.unfinished == []
    book.drop(drawn=True)
    assert [str(rule) for rule in book.rules] == ["late"]


def test_rule_is_described_in_words(book):
    book.use("late", when={"query": "a"}, for_s=60)
    book.use("empty", when=lambda request: True)
    book.chaos("html=0.5", -7)
    chance, function, fields = [rule.description for rule in book.rules]
    assert chance == "html=0.5 (seed -7)"
    assert function == "empty when a function says so"
    assert re.fullmatch(r"late when query is 'a' for (60.0|59.\d) s more", fields)
