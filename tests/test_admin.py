"""The control API: who may use it, what it does, and what it shows."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from unittest.mock import ANY

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

import memmock
from memmock.admin import PREFIX, ROUTES, Admin, openapi
from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Reply, Request, Sent
from memmock.journal import Journal
from memmock.memories import Memories, builtin
from memmock.playbook import EVERYTHING, Playbook
from memmock.provider import Provider
from memmock.scenarios import CATALOGUE, Scenario
from memmock.server import Server

AUTHORIZATION = 'Bearer s3cret/长 "1"'
RESOURCES = sorted({name for name, _ in ROUTES})
WRITES = [(name, method) for name, method in ROUTES if method != "GET"]


def provider(**how) -> Provider:
    return Provider(builtin(), playbook=Playbook(abilities=EVERYTHING), **how)


@pytest.fixture
def admin():
    return Admin(provider())


def send(admin, method, name, body=None, *headers, host="127.0.0.1:8765", client="127.0.0.1"):
    """Return what is answered to a control request that is as it should be, but for what is given."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    given = {key.lower() for key, _ in headers}
    usual = [("Host", host)] if host is not None else []
    if method in ("PUT", "POST"):
        usual.append(("Content-Type", JSON_TYPE))
    kept = tuple((key, value) for key, value in usual if key.lower() not in given)
    added = tuple((key, value) for key, value in headers if value is not None)
    answer = admin(Request(method, PREFIX + name, (*kept, *added), data, client=client))
    return answer if isinstance(answer, Reply) else asyncio.run(_awaited(answer))


async def _awaited(answer):
    return await answer


def ok(admin, method, name, body=None, *headers):
    """Return the JSON of an answer, which is as the document says."""
    reply = send(admin, method, name, body, *headers)
    value = json.loads(reply.body)
    assert reply.status == 200, value
    resource = name.partition("?")[0]
    schema = openapi()["components"]["schemas"][ROUTES[resource, method].gives]
    Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(value)
    return value


def refused(admin, method, name, body=None, *headers, **how):
    """Return the status and the message of a refusal, which has the usual form."""
    reply = send(admin, method, name, body, *headers, **how)
    error = json.loads(reply.body)["error"]
    assert sorted(error) == ["code", "message"]
    assert error["code"]
    return reply.status, error["message"]


def ask(admin, query="用户喜欢喝什么", *headers, target="/memory_retrieval", body=None, **fields):
    """Return the reply to a retrieval."""
    data = json.dumps({"query": query, **fields}, ensure_ascii=False).encode() if body is None else body
    usual = (("Content-Type", JSON_TYPE), ("Accept", JSON_TYPE), ("Authorization", AUTHORIZATION))
    latin = tuple((name, value.encode().decode("latin-1")) for name, value in (*usual, *headers))
    return admin(Request("POST", target, latin, data, client="127.0.0.1", connection=3))


# ---- what it answers, and what it passes on


def test_retrieval_is_passed_on_to_the_provider_from_anywhere(admin):
    request = Request("POST", "/memory_retrieval", (), b'{"query": "a"}', client="203.0.113.9")
    assert admin(request).status == 200
    assert admin.provider.journal.total == 1


@pytest.mark.parametrize("path", ["/__memmock__/x/memory_retrieval", "/__memmock__/memory_retrieval"])
def test_retrieval_below_the_prefix_is_not_passed_on(admin, path):
    reply = admin(
        Request("POST", path, (("Host", "localhost"), ("Content-Type", JSON_TYPE)), b"{}", client="::1")
    )
    assert reply.status == 404
    assert admin.provider.journal.total == 0


def test_path_that_only_begins_like_the_prefix_is_passed_on(admin):
    assert ask(admin, target="/__memmock__x/memory_retrieval").status == 200


@pytest.mark.parametrize("target", ["/__memmock__", "/__memmock__?a=1", "/__memmock__/", "/__memmock__/?a=1"])
def test_bare_prefix_names_the_resources(admin, target):
    reply = admin(Request("GET", target, (("Host", "localhost"),), client="127.0.0.1"))
    assert reply.status == 404
    assert all(name in reply.body.decode() for name in RESOURCES)


def test_unknown_resource_is_named_with_those_that_are_there(admin):
    assert refused(admin, "GET", "scenari") == (
        404,
        'the control API has no resource "scenari"; it has health, scenarios, scenario, plan, chaos, '
        "memories, persona, rank, calls, reset, openapi.json",
    )


def test_control_requests_are_not_in_the_journal(admin):
    for name in RESOURCES:
        send(admin, "GET", name)
    assert admin.provider.journal.total == 0


@pytest.mark.parametrize("name", RESOURCES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"])
def test_wrong_method_is_refused_with_those_that_are_right(admin, name, method):
    if (name, method) in ROUTES:
        return
    reply = send(admin, method, name)
    right = [other for resource, other in ROUTES if resource == name]
    assert (reply.status, reply.header("Allow")) == (405, ", ".join(right))


@pytest.mark.parametrize("name", [*RESOURCES, "nothing"])
@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE", "OPTIONS"])
def test_every_answer_is_kept_private_and_shared_with_no_other_origin(admin, name, method):
    for reply in (send(admin, method, name), send(admin, method, name, client="203.0.113.9")):
        assert reply.header("Cache-Control") == "no-store"
        assert reply.header("X-Content-Type-Options") == "nosniff"
        assert not [key for key, _ in reply.headers if key.lower().startswith("access-control")]


# ---- who may


@pytest.mark.parametrize(
    "client", ["203.0.113.9", "10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "", "localhost"]
)
def test_client_of_another_machine_is_refused(admin, client):
    for name, method in ROUTES:
        status, message = refused(admin, method, name, {}, client=client)
        assert status == 403
        assert "clients on this machine" in message


def test_client_of_another_machine_is_refused_with_the_token_too():
    admin = Admin(provider(), host="0.0.0.0", token="t")
    assert refused(admin, "GET", "health", None, ("Authorization", "Bearer t"), client="10.0.0.1")[0] == 403


@pytest.mark.parametrize("client", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_client_of_this_machine_is_answered(admin, client):
    assert send(admin, "GET", "health", client=client).status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.5", "mock.example", "127.1"])
def test_server_that_others_may_reach_needs_a_token(host):
    admin = Admin(provider(), host=host)
    for name, method in ROUTES:
        status, message = refused(admin, method, name, {})
        assert status == 403
        assert message == (
            f"the server listens on {host}, where others may reach it, so its control API needs a token: "
            f"start it with --control-token"
        )


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "LOCALHOST.", "127.3.2.1"])
def test_server_that_only_this_machine_can_reach_needs_none(host):
    assert send(Admin(provider(), host=host), "GET", "health").status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
@pytest.mark.parametrize(
    "sent",
    [None, "", "Bearer", "Bearer ", "Bearer tok", "Bearer tokenx", "Basic token", "token", "Bearer ŧoken"],
)
def test_wrong_token_is_refused(host, sent):
    admin = Admin(provider(), host=host, token="token")
    reply = send(admin, "GET", "health", None, ("Authorization", sent))
    assert (reply.status, reply.header("WWW-Authenticate")) == (401, 'Bearer realm="memmock"')
    assert send(admin, "PUT", "scenario", {"use": "late"}, ("Authorization", sent)).status == 401
    assert not admin.provider.playbook.rules


def test_token_that_is_sent_twice_is_refused():
    admin = Admin(provider(), token="token")
    twice = [("Authorization", "Bearer token")] * 2
    assert refused(admin, "GET", "health", None, *twice)[0] == 401


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
@pytest.mark.parametrize("sent", ["Bearer token", "bearer token", "Bearer  token"])
def test_right_token_is_taken(host, sent):
    admin = Admin(provider(), host=host, token="token")
    assert send(admin, "GET", "health", None, ("Authorization", sent)).status == 200


def test_token_is_not_needed_for_a_retrieval():
    assert ask(Admin(provider(), host="0.0.0.0", token="token")).status == 200


@pytest.mark.parametrize("token", ["", " ", "a b", "a\n", "é"])
def test_token_that_no_header_could_carry_is_an_error(token):
    with pytest.raises(MemmockError, match="the control token must be printable ASCII without spaces"):
        Admin(provider(), token=token)


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "localhost:8765", "LocalHost:1", "localhost.", "localhost.:80", "localhost:",
        "127.0.0.1", "127.0.0.1:9", "127.7.7.7", "[::1]", "[::1]:80", "[::ffff:127.0.0.1]:1",
    ],
)  # fmt: skip
def test_host_that_is_this_machine_is_taken(admin, host):
    assert send(admin, "GET", "health", host=host).status == 200
    assert send(admin, "DELETE", "calls", host=host).status == 200


FOREIGN_HOSTS = [
    "evil.example", "evil.example:8765", "localhost.evil.example", "evil@localhost", "localhost@evil",
    "127.0.0.1.nip.io", "10.0.0.1", "0.0.0.0", "[::]", "[::2]:80", "", " ", ":80", "localhost:80:80",
    "localhost:x", "localhost..", "[localhost]x", "2130706433", "127.1", "localhost/", "localhost, evil",
    "foo.localhost", "[::1", "::1]", "::1",
]  # fmt: skip


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_name_that_a_foreign_page_may_make_lead_here_is_refused(admin, host):
    status, message = refused(admin, "GET", "calls", host=host)
    assert status == 403
    assert "must name this server" in message
    assert (
        refused(admin, "PUT", "scenario", {"use": "late"}, ("Origin", f"http://{host}"), host=host)[0] == 403
    )
    assert not admin.provider.playbook.rules


def test_host_must_be_there_once(admin):
    assert refused(admin, "GET", "health", host=None) == (
        403,
        "the Host header must be there once, not 0 times",
    )
    twice = [("Host", "localhost"), ("host", "localhost")]
    assert refused(admin, "GET", "health", None, *twice) == (
        403,
        "the Host header must be there once, not 2 times",
    )


@pytest.mark.parametrize(
    ("configured", "sent"),
    [("mock.example", "MOCK.example.:80"), ("fd00::5", "[fd00::5]:80"), ("0.0.0.0", "0.0.0.0:8765")],
)
def test_host_that_the_server_listens_on_is_taken(configured, sent):
    admin = Admin(provider(), host=configured, token="t")
    assert send(admin, "GET", "health", None, ("Authorization", "Bearer t"), host=sent).status == 200
    assert refused(admin, "GET", "health", None, ("Authorization", "Bearer t"), host="evil.example")[0] == 403


FOREIGN_ORIGINS = [
    "null", "", "https://evil.example", "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:3000",
    "https://127.0.0.1:8765", "http://localhost:8765", "http://127.0.0.1:8765.evil.example", "file://",
    "http://127.0.0.1:8765/", "http://127.0.0.1:8765, http://127.0.0.1:8765", "http://x@127.0.0.1:8765",
]  # fmt: skip


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
@pytest.mark.parametrize(("name", "method"), WRITES)
def test_page_of_another_origin_cannot_change_anything(admin, name, method, origin):
    admin.provider.playbook.use("late")
    ask(admin)
    status, message = refused(admin, method, name, {"use": "success", "plan": "late"}, ("Origin", origin))
    assert status == 403
    assert "cannot change the mock at http://127.0.0.1:8765" in message
    assert [str(rule) for rule in admin.provider.playbook.rules] == ["late"]
    assert admin.provider.journal.total == 1


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "same-origin, none"])
@pytest.mark.parametrize(("name", "method"), WRITES)
def test_page_of_another_site_cannot_change_anything(admin, name, method, site):
    assert refused(admin, method, name, {"use": "late"}, ("Sec-Fetch-Site", site))[0] == 403
    assert not admin.provider.playbook.rules


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "application/x-www-form-urlencoded", "text/plain; application/json",
     "multipart/form-data; boundary=application/json", "application/jsonx", "application/json, text/plain"],
)  # fmt: skip
def test_request_that_needs_no_preflight_is_refused(admin, content_type):
    ask(admin)
    for name, method in WRITES:
        if method != "DELETE":  # never goes without one
            for body in (b"", {"use": "late"}):
                assert refused(admin, method, name, body, ("Content-Type", content_type)) == (
                    415,
                    f"a {method} to the control API needs the header `Content-Type: application/json`",
                )
    assert not admin.provider.playbook.rules
    assert admin.provider.journal.total == 1


def test_preflight_of_another_origin_is_not_granted(admin):
    asks = (("Origin", "http://evil.example"), ("Access-Control-Request-Method", "PUT"))
    assert send(admin, "OPTIONS", "scenario", None, *asks).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost", "[::1]:8765"])
def test_page_of_the_server_itself_may_change_the_mock(admin, host):
    own = (("Origin", f"http://{host}"), ("Sec-Fetch-Site", "same-origin"))
    reply = send(admin, "PUT", "scenario", {"use": "late"}, *own, host=host)
    assert reply.status == 200


def test_content_type_may_have_parameters(admin):
    json_in_utf8 = ("Content-Type", "Application/JSON; charset=utf-8")
    assert send(admin, "PUT", "scenario", {"use": "late"}, json_in_utf8).status == 200


def test_request_that_was_typed_into_the_browser_may_be_cross_site_only_to_read(admin):
    assert send(admin, "GET", "health", None, ("Sec-Fetch-Site", "cross-site")).status == 200


def test_who_asks_is_looked_at_before_what_is_asked():
    admin = Admin(provider(), token="t")
    evil = ("Origin", "http://evil.example")
    assert refused(admin, "PUT", "nothing", b"{", evil, host="evil", client="10.0.0.1")[0] == 403
    assert refused(admin, "PUT", "nothing", b"{", evil, host="evil")[0] == 401
    token = ("Authorization", "Bearer t")
    assert "Host header" in refused(admin, "PUT", "nothing", b"{", token, evil, host="evil")[1]
    assert "cannot change" in refused(admin, "PUT", "nothing", b"{", token, evil)[1]
    assert refused(admin, "PUT", "nothing", b"{", token)[0] == 404


# ---- what the mock plays


def test_health_counts_calls_and_memories(admin):
    ask(admin)
    expected = {"status": "ok", "version": memmock.__version__, "calls": 1, "memories": len(builtin())}
    assert ok(admin, "GET", "health") == expected


def test_scenarios_are_those_of_the_catalogue_and_your_own():
    mine = Scenario.own("mine", lambda stage: Reply())
    admin = Admin(Provider(builtin(), playbook=Playbook({"mine": mine})))
    names = [scenario["name"] for scenario in ok(admin, "GET", "scenarios")["scenarios"]]
    assert names == [*CATALOGUE, "mine"]


def test_scenario_is_played_from_now_on(admin):
    rules = ok(admin, "PUT", "scenario", {"use": "server-error"})
    assert rules == {
        "rules": [{"use": "server-error", "steps": [{"play": "server-error", "times": None, "played": 0}]}]
    }
    assert ask(admin).status == 500
    assert ok(admin, "GET", "scenario")["rules"][0]["steps"][0]["played"] == 1


def test_scenario_has_parameters_and_limits(admin):
    given = {"use": "late", "times": 2, "when": {"query": "a"}, "for_s": 3, "with": {"factor": 2.5}}
    (rule,) = ok(admin, "PUT", "scenario", given)["rules"]
    assert rule["when"] == {"query": "a"}
    assert 2 < rule["for_s"] <= 3
    assert rule["steps"] == [{"play": "late(factor=2.5)", "times": 2, "played": 0}]


def test_null_is_as_absent(admin):
    given = {"use": "late", "times": None, "when": None, "for_s": None, "with": None}
    assert "when" not in ok(admin, "PUT", "scenario", given)["rules"][0]


def test_newest_rule_comes_first(admin):
    ok(admin, "PUT", "scenario", {"use": "late"})
    rules = ok(admin, "PUT", "scenario", {"use": "unavailable", "times": 1})["rules"]
    assert [rule["use"] for rule in rules] == ["unavailable", "late"]


def test_delete_of_the_scenario_clears_all_rules(admin):
    ok(admin, "PUT", "scenario", {"use": "late"})
    ok(admin, "PUT", "plan", {"plan": "server-error*2, success"})
    assert ok(admin, "DELETE", "scenario") == {"rules": []}
    assert not admin.provider.playbook.rules


@pytest.mark.parametrize(("name", "left"), [("plan", ["null=0.5", "late"]), ("chaos", ["500*2", "late"])])
def test_delete_of_plan_or_chaos_leaves_the_rest(admin, name, left):
    ok(admin, "PUT", "scenario", {"use": "late"})
    ok(admin, "PUT", "chaos", {"chaos": "null=0.5", "seed": 1})
    ok(admin, "PUT", "plan", {"plan": "500*2"})
    ok(admin, "DELETE", name)
    rules = [str(rule) for rule in admin.provider.playbook.rules]
    assert rules == [text.replace("500", "server-error") for text in left]


def test_calls_are_waited_for(admin):
    threading.Timer(0.05, lambda: ask(admin)).start()
    reply = send(admin, "GET", "calls?since=0&wait_s=20")
    assert [call["number"] for call in json.loads(reply.body)["calls"]] == [1]


def test_calls_that_do_not_come_are_waited_for_no_longer_than_was_asked(admin):
    reply = send(admin, "GET", "calls?since=7&wait_s=0.05")
    assert json.loads(reply.body)["calls"] == []


def test_door_that_is_shut_closes_the_control_connection(admin):
    ok(admin, "PUT", "scenario", {"use": "reset-on-connect", "times": 1})
    assert send(admin, "GET", "health").header("Connection") == "close"
    ok(admin, "DELETE", "scenario")
    assert send(admin, "GET", "health").header("Connection") is None


@pytest.mark.parametrize("plan", ["server-error*2, success", "server-error*2"])
def test_plan_is_played_and_need_not_finish(admin, plan):
    (shown,) = ok(admin, "PUT", "plan", {"plan": plan})["plans"]
    assert shown["plan"] == plan
    assert ok(admin, "GET", "plan") == {"plans": [shown]}
    assert [ask(admin).status for _ in range(3)] == [500, 500, 200]
    assert ok(admin, "GET", "plan") == {"plans": []}
    ok(admin, "PUT", "plan", {"plan": plan})
    assert admin.provider.playbook.unfinished == []


def test_plans_are_only_those_rules_that_are_plans(admin):
    ok(admin, "PUT", "scenario", {"use": "late", "times": 2})
    ok(admin, "PUT", "chaos", {"chaos": "late=0.5", "seed": 1})
    assert ok(admin, "GET", "plan") == {"plans": []}
    assert len(ok(admin, "GET", "scenario")["rules"]) == 2


def test_chaos_is_drawn_as_the_seed_says(admin):
    (rule,) = ok(admin, "PUT", "chaos", {"chaos": "server-error=0.5", "seed": 7})["rules"]
    assert (rule["chaos"], rule["seed"]) == ("server-error=0.5", 7)
    first = [ask(admin).status for _ in range(20)]
    ok(admin, "DELETE", "scenario")
    ok(admin, "PUT", "chaos", {"chaos": "server-error=0.5", "seed": 7})
    assert [ask(admin).status for _ in range(20)] == first
    assert set(first) == {200, 500}


def test_rules_of_a_test_are_shown_whatever_they_hold(admin):
    playbook = admin.provider.playbook
    playbook.use("late", when=lambda request: True)
    playbook.use("late", when={"query": ANY, "memory_types": {"profile"}, "max_results": ANY})
    rules = ok(admin, "GET", "scenario")["rules"]
    assert rules[0]["when"] == {"query": "<ANY>", "memory_types": ["profile"], "max_results": "<ANY>"}
    assert rules[1]["when"] == "a function"


def test_change_is_told_to_the_server(admin):
    changes = []
    admin.provider.playbook.changed = lambda: changes.append(threading.current_thread())
    ok(admin, "PUT", "scenario", {"use": "refused", "for_s": 1})
    ok(admin, "DELETE", "scenario")
    assert len(changes) == 2


DOOR = "holds for connections to the control API too, so nothing sent to it could end it"


@pytest.mark.parametrize(
    ("given", "limits"),
    [
        ({"use": "refused"}, "for_s"),
        ({"use": "refused", "times": 2}, "for_s"),
        ({"use": " Refused"}, "for_s"),
        ({"use": "reset-on-connect"}, "times or for_s"),
        ({"use": "reset_on_connect()"}, "times or for_s"),
    ],
)
def test_scenario_that_would_shut_the_control_api_out_needs_an_end(admin, given, limits):
    status, message = refused(admin, "PUT", "scenario", given)
    assert status == 400
    assert message.endswith(f"{DOOR}: give {limits}")
    assert not admin.provider.playbook.rules


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("scenario", {"use": "refused", "for_s": 0.2}),
        ("scenario", {"use": "reset-on-connect", "times": 2}),
        ("scenario", {"use": "reset-on-connect", "for_s": 0.2}),
        ("plan", {"plan": "reset-on-connect*2, success"}),
    ],
)
def test_scenario_that_lets_the_control_api_in_again_is_played(admin, name, given):
    ok(admin, "PUT", name, given)
    assert not admin.provider.playbook.is_open()


BAD = [
    ("scenario", b"", "the body is not JSON: "),
    ("scenario", b"{", "the body is not JSON: "),
    ("scenario", b"\xff", "the body is not JSON: "),
    ("scenario", b'{"use": "late", "use": "late"}', "the body is not JSON: a name occurs more than once"),
    ("scenario", b"[" * 60_000, "the body is not JSON: nested too deeply"),
    ("scenario", b" " * 70_000, "the body must have at most 65,536 bytes"),
    ("scenario", [], "the body must be an object with the fields use, times, when, "
     "for_s, with, not an array of 0"),
    ("scenario", {"use": "late", "time": 2}, 'the body has no field "time"; its fields are use, times,'),
    ("scenario", {}, "the body needs the field use; its fields are use, times"),
    ("scenario", {"use": None}, "the body needs the field use"),
    ("scenario", {"use": 5}, "use must be text, not 5"),
    ("scenario", {"use": "x" * 10_001}, "use must have at most 10,000 characters, not 10,001"),
    ("scenario", {"use": "server-eror"}, "there is no scenario 'server-eror'; near it are server-error"),
    ("scenario", {"use": "late", "times": True}, "times must be an integer, not true"),
    ("scenario", {"use": "late", "times": 1.5}, "times must be an integer, not 1.5"),
    ("scenario", {"use": "late", "times": 0}, "times must be an integer from 1 to 1,000,000, not 0"),
    ("scenario", {"use": "late", "for_s": True}, "for_s must be a number, not true"),
    ("scenario", {"use": "late", "for_s": -1}, "for_s must be a number of seconds above 0, not -1"),
    ("scenario", b'{"use": "late", "for_s": 1e999}', "for_s must be a number of seconds above 0, not inf"),
    ("scenario", {"use": "late", "when": ["query"]}, "when must be an object, not an array of 1"),
    ("scenario", {"use": "late", "when": {"quer": "a"}}, "when: a retrieval has no field 'quer'; its fields"),
    ("scenario", {"use": "late", "with": 2}, "with must be an object, not 2"),
    ("scenario", {"use": "late", "with": {"facto": 2}}, "scenario late has no parameter 'facto'; it has"),
    ("scenario", {"use": "late", "with": {"factor": [2]}}, "scenario late: factor must be a number"),
    ("scenario", {"use": "reset-on-connect", "times": 1, "when": {"query": ""}}, "reset-on-connect comes"),
    ("plan", {"plan": ["late"]}, "plan must be text, not an array of 1"),
    ("plan", {"plan": ""}, "plan: it is empty"),
    ("plan", {"plan": "late, nothing"}, "there is no scenario 'nothing'"),
    ("plan", {"plan": "refused*2"}, "plan: refused cannot be counted"),
    ("plan", {"plan": "late", "must_finish": True}, 'the body has no field "must_finish"; its fields'),
    ("chaos", {"chaos": "late=0.1"}, "the body needs the field seed; its fields are chaos, seed"),
    ("chaos", {"chaos": "late=2", "seed": 1}, "chaos: the chances must be above 0 and at most 1"),
    ("chaos", {"chaos": "late=0.1", "seed": "1"}, 'seed must be an integer, not "1"'),
    ("chaos", {"chaos": "refused=0.1", "seed": 1}, "chaos: refused comes before the request"),
    ("memories", {"memories": {}}, "memories must be an array, not an object with 0 fields"),
    ("memories", {"memories": [{"summary": "a"}, {"summary": " "}]}, "memories[1].summary is blank"),
    ("memories", {"memories": ["a"]}, "memories[0] must be a mapping with a summary"),
    ("reset", {"all": True}, 'the body has no field "all"; its fields are none'),
    ("reset", b"[]", "the body must be an object with the fields none, not an array of 0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "message"), BAD)
def test_bad_body_is_refused_and_changes_nothing(admin, name, body, message):
    admin.provider.playbook.use("success")
    ask(admin)
    method = "POST" if name == "reset" else "PUT"
    status, found = refused(admin, method, name, body)
    assert (status, found[: len(message)]) == (400, message)
    assert [str(rule) for rule in admin.provider.playbook.rules] == ["success"]
    assert admin.provider.memories is builtin()
    assert admin.provider.journal.total == 1


def test_scenario_that_the_server_cannot_play_is_refused():
    admin = Admin(Provider(builtin()))
    status, message = refused(admin, "PUT", "scenario", {"use": "refused", "for_s": 1})
    assert (status, "cannot be played here" in message) == (400, True)


def test_counted_scenario_is_played_to_exactly_so_many_calls_of_many_threads(admin):
    ok(admin, "PUT", "scenario", {"use": "server-error", "times": 50})
    start = threading.Barrier(16)
    statuses: list[int] = []

    def client() -> None:
        start.wait()
        for _ in range(25):
            statuses.append(ask(admin).status)
            send(admin, "GET", "scenario")

    threads = [threading.Thread(target=client) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (statuses.count(500), statuses.count(200)) == (50, 350)
    assert ok(admin, "GET", "scenario") == {"rules": []}


# ---- what it remembers


def test_memories_are_shown_with_their_keywords(admin):
    memories = ok(admin, "GET", "memories")["memories"]
    assert [memory["summary"] for memory in memories] == [memory.summary for memory in builtin()]
    assert [memory["keywords"] for memory in memories] == [list(memory.keywords) for memory in builtin()]


def test_memories_are_replaced(admin):
    given = {"memories": [{"summary": "用户养了一只猫。", "keywords": ["猫"], "type": "profile"}]}
    assert ok(admin, "PUT", "memories", given) == given
    assert [memory["summary"] for memory in json.loads(ask(admin, "猫").body)["memories"]] == [
        "用户养了一只猫。"
    ]


def test_memories_can_be_sent_back_as_they_are_shown(admin):
    ok(admin, "PUT", "memories", ok(admin, "GET", "memories"))
    assert admin.provider.memories == builtin()


def test_memories_that_the_contract_forbids_are_shown(admin):
    admin.provider.memories = Memories([memmock.Memory("a", confidence=float("inf"), id=7)])  # type: ignore[arg-type]
    reply = send(admin, "GET", "memories")
    expected = {"id": 7, "summary": "a", "confidence": "Infinity", "keywords": []}
    assert json.loads(reply.body) == {"memories": [expected]}


# ---- what it was asked


def test_call_is_shown_with_all_that_is_known_of_it(admin):
    ok(admin, "PUT", "scenario", {"use": "close-mid-body"})
    reply = ask(admin, "a", ("X-Trace", "7"), target="/gateway/memory_retrieval?tenant=7")
    reply.on_sent(Sent("closed", 72, 0.25))
    answer = ok(admin, "GET", "calls")
    (call,) = answer["calls"]
    assert call == {
        "number": 1,
        "time": ANY,
        "method": "POST",
        "target": "/gateway/memory_retrieval?tenant=7",
        "headers": [
            ["Content-Type", JSON_TYPE],
            ["Accept", JSON_TYPE],
            ["Authorization", "***"],
            ["X-Trace", "7"],
        ],
        "retrieval": {"query": "a"},
        "status": 200,
        "played": "close-mid-body",
        "ending": "closed after 72 bytes, 250 of 3,000 ms",
        "sent_bytes": 72,
        "elapsed_ms": 250.0,
        "timeout_ms": 3000,
        "connection": 3,
        "over": True,
        "retry_of": None,
        "violations": [],
        "results": 5,
    }
    assert (answer["last"], answer["total"], answer["dropped"]) == (1, 1, 0)


def test_call_whose_answer_is_under_way_is_not_over(admin):
    ok(admin, "PUT", "scenario", {"use": "late"})
    ask(admin)
    (call,) = ok(admin, "GET", "calls")["calls"]
    assert (call["over"], call["ending"], call["sent_bytes"]) == (False, "under way", None)


def test_violations_of_a_call_are_shown(admin):
    ask(admin, user_id="7")
    ((found,),) = [call["violations"] for call in ok(admin, "GET", "calls")["calls"]]
    assert found["pointer"] == "/user_id"


def test_call_that_is_made_again_after_a_failure_is_shown_as_such(admin):
    ok(admin, "PUT", "scenario", {"use": "server-error", "times": 1})
    ask(admin)
    ask(admin)
    assert [call["retry_of"] for call in ok(admin, "GET", "calls")["calls"]] == [None, 1]
    assert [call["retry_of"] for call in ok(admin, "GET", "calls?since=1")["calls"]] == [1]


def test_calls_are_shown_in_pages(admin):
    for n in range(3):
        ask(admin, str(n))
    first = ok(admin, "GET", "calls?since=0")
    assert [call["number"] for call in first["calls"]] == [1, 2, 3]
    ask(admin)
    page = ok(admin, "GET", f"calls?since={first['last']}")
    assert ([call["number"] for call in page["calls"]], page["last"], page["total"]) == ([4], 4, 4)
    page = ok(admin, "GET", "calls?since=4")
    assert (page["calls"], page["last"], page["total"]) == ([], 4, 4)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("since=-1", 'since must be the number of a call, not "-1"'),
        ("since=x", 'since must be the number of a call, not "x"'),
        ("since=", 'since must be the number of a call, not ""'),
        ("since=٣", 'since must be the number of a call, not "٣"'),
        ("since=" + "9" * 30, "since must be the number of a call"),
        ("sinc=1", 'calls has no parameter "sinc"; it has since and wait_s'),
    ],
)
def test_bad_page_is_refused(admin, query, message):
    status, found = refused(admin, "GET", f"calls?{query}")
    assert (status, found[: len(message)]) == (400, message)


def test_calls_that_had_to_go_are_counted(admin):
    admin.provider.journal = Journal(max_calls=2)
    for n in range(5):
        ask(admin, str(n))
    page = ok(admin, "GET", "calls")
    assert ([call["number"] for call in page["calls"]], page["total"], page["dropped"]) == ([4, 5], 5, 3)


def test_calls_are_forgotten_and_their_numbers_go_on(admin):
    ask(admin)
    assert ok(admin, "DELETE", "calls") == {"calls": [], "last": 0, "total": 0, "dropped": 0}
    ask(admin)
    assert [call["number"] for call in ok(admin, "GET", "calls")["calls"]] == [2]


@pytest.mark.parametrize(
    "name", ["authorization", "Proxy-Authorization", "Cookie", "X-API-Key", "x-api-key", "X-Auth-Token"]
)
def test_header_that_may_hold_a_secret_is_masked(admin, name):
    ask(admin, "a", (name, "hush"))
    reply = send(admin, "GET", "calls")
    assert "hush" not in reply.body.decode()
    assert [name, "***"] in json.loads(reply.body)["calls"][0]["headers"]


def test_configured_authorization_is_masked_wherever_it_is():
    admin = Admin(provider(authorization=AUTHORIZATION), token="c0ntrol-token")
    wrong = {AUTHORIZATION: AUTHORIZATION, "deep": [{"a/b": f"x {AUTHORIZATION} y"}], "own": "c0ntrol-token"}
    in_url = "Bearer%20s3cret%2f%E9%95%BF+%221%22"
    ask(
        admin,
        AUTHORIZATION,
        ("X-Copy", f"<{AUTHORIZATION}>"),
        ("X-Part", AUTHORIZATION.partition(" ")[2]),
        target=f"/memory_retrieval?key={in_url}",
        max_results=AUTHORIZATION,
        memory_types=[f"{'x' * 50}{AUTHORIZATION}", AUTHORIZATION],
        **wrong,
    )
    token = ("Authorization", "Bearer c0ntrol-token")
    reply = send(admin, "GET", "calls", None, token)
    (call,) = ok(admin, "GET", "calls", None, token)["calls"]
    assert "s3cret" not in reply.body.decode()
    assert "c0ntrol" not in reply.body.decode()
    assert call["target"] == "/memory_retrieval?key=***"
    assert ["X-Copy", "<***>"] in call["headers"]
    assert ["X-Part", "***"] in call["headers"]
    assert call["retrieval"]["query"] == "***"
    assert call["retrieval"]["***"] == "***"
    assert call["retrieval"]["deep"] == [{"a/b": "x *** y"}]
    assert any("***…" in found["value"] for found in call["violations"])


@pytest.mark.parametrize("authorization", [None, "", "  ", "x", "Bearer memmock"])
def test_other_text_is_not_masked(authorization):
    admin = Admin(provider())
    ask(admin, "memmock Bearer")
    admin.provider.authorization = authorization
    assert ok(admin, "GET", "calls")["calls"][0]["retrieval"]["query"] == "memmock Bearer"


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", b"[1]", b'{"query": NaN, "a": -Infinity, "b": 1e999}', b'{"query": "\\ud800"}',
     b'{"query": ' + b"9" * 5000 + b"}", b'{"a": ' * 200 + b"1" + b"}" * 200, b"[" * 100_000],
)  # fmt: skip
def test_body_is_shown_whatever_it_holds(admin, body):
    ask(admin, body=body)
    reply = send(admin, "GET", "calls")
    json.loads(reply.body, parse_constant=pytest.fail)
    assert reply.status == 200


def test_what_json_cannot_carry_is_shown_as_text(admin):
    ask(admin, body=b'{"query": NaN, "a": -Infinity, "b": 1e999}')
    (call,) = ok(admin, "GET", "calls")["calls"]
    assert call["retrieval"] == {"query": "NaN", "a": "-Infinity", "b": "Infinity"}


# ---- reset


@pytest.mark.parametrize("body", [None, {}])
def test_reset_brings_everything_back(body):
    made = provider()
    admin = Admin(made, restore=lambda: made.playbook.use("late", when={"query": "slow"}))
    ok(admin, "PUT", "memories", {"memories": []})
    ok(admin, "PUT", "plan", {"plan": "server-error*2, success"})
    ask(admin)
    health = ok(admin, "POST", "reset", body)
    assert (health["calls"], health["memories"]) == (0, len(builtin()))
    assert made.memories is builtin()
    assert [rule["when"] for rule in ok(admin, "GET", "scenario")["rules"]] == [{"query": "slow"}]


def test_delete_leaves_no_rule_to_be_played_from_the_start():
    made = provider()
    made.playbook.use("late")
    admin = Admin(made, restore=lambda: made.playbook.use("late"))
    assert ok(admin, "DELETE", "scenario") == {"rules": []}


def test_reset_without_a_plan_to_restore_leaves_no_rule(admin):
    ok(admin, "PUT", "scenario", {"use": "late"})
    ok(admin, "POST", "reset")
    assert not admin.provider.playbook.rules


# ---- the document


def test_document_is_valid_openapi(admin):
    document = ok(admin, "GET", "openapi.json")
    validate(document)
    assert document == openapi()
    assert document["info"]["version"] == memmock.__version__


def test_document_has_every_route_and_no_other():
    paths = openapi()["paths"]
    there = {
        (path.removeprefix(PREFIX), method.upper()) for path, methods in paths.items() for method in methods
    }
    assert there == set(ROUTES)


def test_document_is_made_anew_each_time():
    openapi()["components"]["schemas"].clear()
    assert openapi()["components"]["schemas"]


@pytest.mark.parametrize(("name", "body", "message"), [case for case in BAD if isinstance(case[1], dict)])
def test_document_and_messages_agree_on_the_fields_of_a_body(name, body, message):
    method = "POST" if name == "reset" else "PUT"
    schema = openapi()["components"]["schemas"][ROUTES[name, method].takes]
    fits = Draft202012Validator(schema).is_valid(body)
    by_kind = ("the body", "use must", "times must be an integer,", "for_s must be a number,", "when must",
               "with must", "plan must", "seed must", "memories must", "memories[")  # fmt: skip
    assert fits is not message.startswith(by_kind)


# ---- over a real server


@pytest.fixture
def served():
    made = provider()
    server = Server(Admin(made, settle=lambda: server.follow_door()), door=made.playbook)
    made.playbook.changed = server.look
    with server:
        yield server, made
        server.check()


def call(server, method, path, body=None, **headers):
    """Return the status and the JSON of an answer over a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        data = None if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, data, named)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def test_mock_is_controlled_over_http(served):
    server, made = served
    put = {"Content_Type": JSON_TYPE, "Origin": server.url, "Sec_Fetch_Site": "same-origin"}
    assert call(server, "PUT", f"{PREFIX}scenario", {"use": "server-error", "times": 1}, **put)[0] == 200
    assert call(server, "POST", "/memory_retrieval", {"query": "a"})[0] == 500
    assert call(server, "POST", "/memory_retrieval", {"query": "a"})[0] == 200
    status, answer = call(server, "GET", f"{PREFIX}calls?since=1")
    assert (status, [entry["retry_of"] for entry in answer["calls"]]) == (200, [1])
    assert call(server, "POST", f"{PREFIX}reset", Content_Type=JSON_TYPE)[1]["calls"] == 0
    assert made.journal.total == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"Content_Type": JSON_TYPE, "Origin": "http://evil.example"},
        {"Content_Type": JSON_TYPE, "Origin": "null"},
        {"Content_Type": JSON_TYPE, "Origin": "http://127.0.0.1"},
        {"Content_Type": JSON_TYPE, "Sec_Fetch_Site": "cross-site"},
        {"Content_Type": JSON_TYPE, "Host": "evil.example"},
        {"Content_Type": "text/plain"},
        {},
    ],
)
def test_foreign_page_cannot_change_the_scenario_over_http(served, headers):
    server, made = served
    made.playbook.use("success")
    for method, name in (("PUT", "scenario"), ("POST", "scenario"), ("POST", "reset"), ("PUT", "plan")):
        body = (
            {"use": "server-error"}
            if name == "scenario"
            else {"plan": "server-error"}
            if name == "plan"
            else {}
        )
        status, answer = call(server, method, PREFIX + name, body, **headers)
        assert status in (403, 415), answer
    assert [str(rule) for rule in made.playbook.rules] == ["success"]


def test_name_that_was_made_to_lead_here_cannot_read_over_http(served):
    server, _ = served
    status, answer = call(server, "GET", f"{PREFIX}calls", Host=f"evil.example:{server.port}")
    assert (status, answer["error"]["code"]) == (403, "forbidden")


def test_refused_connections_are_taken_again_and_the_control_api_with_them(served):
    server, made = served
    put = {"Content_Type": JSON_TYPE}
    assert call(server, "PUT", f"{PREFIX}scenario", {"use": "refused", "for_s": 0.3}, **put)[0] == 200
    with pytest.raises(ConnectionRefusedError):
        call(server, "GET", f"{PREFIX}health")
    deadline = time.monotonic() + 10
    while True:
        try:
            assert call(server, "GET", f"{PREFIX}health")[0] == 200
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert not made.playbook.rules


def test_reset_connections_are_counted_and_the_control_api_is_back_after_them(served):
    server, _ = served
    put = {"Content_Type": JSON_TYPE}
    assert call(server, "PUT", f"{PREFIX}plan", {"plan": "reset-on-connect*2, server-error"}, **put)[0] == 200
    for _ in range(2):
        with pytest.raises((ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected)):
            call(server, "GET", f"{PREFIX}health")
    assert call(server, "GET", f"{PREFIX}health")[0] == 200
    assert call(server, "POST", "/memory_retrieval", {"query": "a"})[0] == 500


def test_test_thread_and_control_api_change_the_rules_at_the_same_time(served):
    server, made = served
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            made.playbook.use("server-error", times=3)
            made.playbook.clear()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(50):
            answer = call(
                server, "PUT", f"{PREFIX}scenario", {"use": "late", "times": 1}, Content_Type=JSON_TYPE
            )
            assert answer[0] == 200
    finally:
        stop.set()
        thread.join()
