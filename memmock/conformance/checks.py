"""A run of the catalogue: each rule exercised by a few requests, the same ones in the same order.

What is asked is in `catalogue` where one answer is judged alone, and a method of `_Run` where answers are
compared. What is wrong with one answer is for `rules`, what is wrong between answers for `relations`. A
provider is given the benefit of the doubt: what the contract leaves open (an upper limit for max_results,
unknown fields, what null means) may be answered with 200 or refused with 4xx.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import replace
from typing import Any

from memmock.conformance.case import PLAIN, Case, Form
from memmock.conformance.catalogue import (
    FIRST,
    FORMS,
    HUGE,
    LARGE,
    LIVE_ID,
    NONSENSE,
    QUERIES,
    REFUSED,
    Probe,
    simple_probes,
    wrong_authorizations,
    wrong_probes,
)
from memmock.conformance.finding import Finding, Outcome, Result
from memmock.conformance.relations import (
    begins_with,
    gives_away,
    matters_not,
    narrowed,
    same_again,
    undisturbed,
)
from memmock.conformance.session import Answer, Over, Session
from memmock.contract import MEMORY_TYPES
from memmock.errors import MemmockError
from memmock.rules import RULES, Severity, Violation

Progress = Callable[[int, int], None]
Relation = Callable[[Answer, Answer], str | None]

USUAL_REQUESTS = 108
"""About how many requests a healthy provider is sent."""
_ENOUGH = 10
"""With so many memories there is enough to compare."""
_MOST_TIMEOUTS = 6
_MOST_FAILURES = 8
_LONGEST_PAUSE_S = 2.0


def check(
    session: Session,
    *,
    rules: Collection[str] | None = None,
    ignore: Collection[str] = (),
    progress: Progress = lambda sent, of: None,
) -> Result:
    """Return what the catalogue shows of a provider, with an outcome for every rule of replies.

    What is found is asked again once before it is told; what took too long and then does not is no finding.

    Args:
        session: where to; it is not closed.
        rules: the codes that are looked at; None for all.
        ignore: codes that are not.
        progress: is told how many requests were sent, of about how many.

    Raises:
        MemmockError: nothing answers there.
    """
    looked_at = [code for code in RULES if code.startswith("RES") and (rules is None or code in rules)]
    run = _Run(session, frozenset(looked_at) - frozenset(ignore), progress)
    before, start = session.sent, time.monotonic()
    stopped = ""
    try:
        run.everything()
    except Over as over:
        stopped = str(over)
    result = Result(session.target.url, stopped=stopped)
    result.findings = sorted(run.findings, key=lambda each: each.rule.severity is not Severity.ERROR)
    result.outcomes = [run.outcome(code, stopped) for code in looked_at if code not in ignore]
    result.requests, result.seconds = session.sent - before, time.monotonic() - start
    progress(result.requests, result.requests)
    return result


class _Run:
    """One run: what was seen, and what is wrong."""

    def __init__(self, session: Session, codes: frozenset[str], progress: Progress) -> None:
        self.findings: list[Finding] = []
        self._session = session
        self._codes = codes
        self._progress = progress
        self._sent_before = session.sent
        self._causes: set[tuple[str, str]] = set()
        self._done: set[str] = set()
        """The rules of which several answers were compared."""
        self._why_not: dict[str, str] = {}
        self._summaries: dict[str, str] = {}
        self._before: Answer | None = None
        self._kept = True
        self._stable = True
        self._timeouts = self._failures = 0
        self._answered = self._told = self._typed = self._refused = self._invalid = False

    def everything(self) -> None:
        """Send the catalogue.

        Raises:
            MemmockError: nothing answers.
            Over: it ends early.
        """
        self._begin()
        wide = self._widest()
        self._stability(wide)
        kinds = self._kinds(wide)
        self._most(wide, kinds)
        for probe in simple_probes():
            self._judge(probe)
        self._nothing_left(wide)
        self._unknown_field(wide)
        self._forms(wide, kinds)
        self._authorization(wide)
        for probe in wrong_probes():
            self._judge(probe)
            self._invalid = True
        self._together(kinds)

    # ---- what is asked, in this order

    def _begin(self) -> None:
        """Ask the simplest retrieval, twice on one connection."""
        answer = self._ask(FIRST)
        _refuse_unreachable(answer, self._session)
        probe = Probe(FIRST, "plain")
        self._weigh(probe, answer)
        if answer.status in (401, 403) and self._ask(FIRST).status in (401, 403):
            known = self._session.target.authorization is not None
            given = "the authorization" if known else "a call without authorization"
            raise Over(f"the provider refuses {given} ({answer.status})")
        if answer.failure.startswith("timeout") and self._ask(FIRST).failure.startswith("timeout"):
            raise Over("the simplest retrieval is not answered in time")
        self._judge(probe)

    def _widest(self) -> Answer:
        """Return the first answer with enough memories, of a few broad questions, else that with the most."""
        answers: list[Answer] = []
        for query in (FIRST.fields["query"], *QUERIES):
            case = Case({"live_id": LIVE_ID, "query": query, "max_results": LARGE})
            answers.append(self._judge(Probe(case, "plain")))
            if _count(answers[-1]) >= _ENOUGH:
                return answers[-1]
        texts = list(_summaries(max(answers, key=_count)).values())[:4]
        if texts:  # a provider that filters: what it has said itself finds more
            case = answers[0].case.with_fields(query=" ".join(text[:100] for text in texts))
            answers.append(self._judge(Probe(case, "plain")))
        return max(answers, key=_count)

    def _stability(self, wide: Answer) -> None:
        again = self._ask(wide.case)
        found = self._compare("RES602", same_again, wide, again, fresh_live_id=True)
        if found or same_again(wide, again):
            self._stable = False

    def _kinds(self, wide: Answer) -> dict[str, Answer]:
        """Ask for each kind alone, for two, for all and for none; return the answers by kind."""
        alone = {}
        for kind in MEMORY_TYPES:
            answer = self._judge(Probe(wide.case.with_fields(memory_types=[kind]), "memory_types"))
            self._compare("RES604", narrowed, wide, answer)
            alone[kind] = answer
        first, second = self._two(alone)
        both = self._judge(Probe(wide.case.with_fields(memory_types=[first, second]), "memory_types"))
        self._compare("RES604", narrowed, wide, both)
        for kind in (first, second):
            self._compare("RES604", narrowed, both, alone[kind])
        whole = self._judge(Probe(wide.case.with_fields(memory_types=[*MEMORY_TYPES]), "memory_types"))
        self._compare("RES604", narrowed, wide, whole)
        self._same_meaning(both, both.case.with_fields(memory_types=[second, first]), "order of memory_types")
        turned = wide.case.with_fields(memory_types=[*reversed(MEMORY_TYPES)])
        self._same_meaning(whole, turned, "order of memory_types")
        self._same_meaning(wide, wide.case.with_fields(memory_types=[]), "empty memory_types")
        return alone

    def _most(self, wide: Answer, kinds: dict[str, Answer]) -> None:
        """Ask for one, two, the default, and more than a provider need give."""
        one, two = (
            self._judge(Probe(wide.case.with_fields(max_results=most), "max_results")) for most in (1, 2)
        )
        default = self._judge(Probe(wide.case.without("max_results"), "max_results"))
        for fewer, more in ((one, two), (two, wide), (default, wide)):
            self._compare("RES603", begins_with, fewer, more)
        for most in HUGE:
            case = wide.case.with_fields(max_results=most)
            more = self._judge(Probe(case, "large max_results", may_be=REFUSED))
            self._compare("RES603", begins_with, wide, more)
        # the kind that comes last is the one that is lost when a provider cuts before it filters
        order = dict.fromkeys(kind for kind in map(_kind, wide.memories or ()) if kind in kinds)
        last = next(reversed(order), None)
        if last is not None:
            case = kinds[last].case.with_fields(max_results=1)
            self._compare("RES603", begins_with, self._judge(Probe(case, "max_results")), kinds[last])

    def _nothing_left(self, wide: Answer) -> None:
        """Ask for what is there, but of another kind; and with the same words in two fields."""
        memory = next((each for each in wide.memories or () if isinstance(each, dict)), {})
        summary = memory.get("summary")
        if not isinstance(summary, str) or not summary.strip():
            return
        text = summary[:200]
        for kind in [kind for kind in ("other", "project") if kind != memory.get("type")]:
            self._judge(Probe(Case({"query": text, "memory_types": [kind]}), "nothing found"))
        self._judge(Probe(Case({"query": text, "time_hint": text, "reason": text}), "plain"))

    def _unknown_field(self, wide: Answer) -> None:
        case = wide.case.with_fields(memmock_unknown="x")
        answer = self._judge(Probe(case, "unknown field", may_be=REFUSED))
        if answer.memories is not None:
            self._compare("RES605", matters_not, wide, answer, "unknown field")

    def _forms(self, wide: Answer, kinds: dict[str, Answer]) -> None:
        """Ask the same in other forms of JSON and HTTP."""
        last = (wide.memories or [None])[-1]
        text = last.get("summary") if isinstance(last, dict) else None
        query = f"{text[:100] if isinstance(text, str) else ''} 用户喜欢什么".strip()
        first, second = self._two(kinds)
        wanted = [first, kind if (kind := _kind(last)) in kinds and kind != first else second]
        case = Case(
            {"live_id": LIVE_ID, "query": query, "reason": "用户问起 tea", "memory_types": wanted}
            | {"time_hint": "上周", "max_results": 2}
        )
        plain = self._judge(Probe(case, "plain"))
        for form in FORMS:
            may_be = (411,) if form.framing == "chunked" else ()
            self._same_meaning(plain, replace(case, form=form), "form", may_be)

    def _authorization(self, wide: Answer) -> None:
        target = self._session.target
        if target.open or not target.authorization:
            self._why_not["RES601"] = "the provider is open" if target.open else "no authorization is known"
            return
        self._done.add("RES601")
        for how, case in wrong_authorizations(target.authorization):
            answer = self._judge(Probe(case, "authorization"))
            if message := gives_away(answer):
                flaky = gives_away(self._ask(case)) is None
                once = "none" if not case.authorization else how
                self._add("RES601", f"{how}: {message}", (answer,), flaky=flaky, once=once)
            if how in ("an empty Authorization", "a wrong one"):
                self._judge(Probe(wide.case, "plain"))  # on the same connection
            if message and how == "a wrong one":
                return  # then the rest are no news

    def _together(self, kinds: dict[str, Answer]) -> None:
        """Ask for each kind, four at the same time."""
        alone = sorted(kinds.values(), key=_count, reverse=True)
        if not self._comparable("RES606", alone):
            return
        if any(finding.flaky and finding.rule.code == "RES001" for finding in self.findings):
            self._why_not["RES606"] = "calls fail at times, alone too (RES001)"
            return
        halves = (alone[::2], alone[1::2])
        found = next(((half, each) for half in halves if (each := self._disturbed(half))), None)
        if found is None or any(undisturbed(before, self._ask(before.case)) for before in alone):
            return  # or alone it is no better
        half, (message, answers) = found
        flaky = self._disturbed(half) is None
        self._add("RES606", message, answers, together=True, flaky=flaky)

    def _disturbed(self, alone: list[Answer]) -> tuple[str, tuple[Answer, ...]] | None:
        answers = self._session.ask_together([answer.case for answer in alone])
        self._tell_progress()
        for before, answer in zip(alone, answers, strict=True):
            if message := undisturbed(before, answer):
                return message, (*(each for each in answers if each is not answer), answer)
        return None

    def _two(self, kinds: dict[str, Answer]) -> tuple[str, str]:
        """Return two kinds, of which there are memories if there are any."""
        order = sorted(kinds, key=lambda kind: not kinds[kind].memories)
        return order[0], order[1]

    # ---- one request

    def _ask(self, case: Case) -> Answer:
        """Send a case, on the connection that is open unless that was found not to work."""
        if self._timeouts >= _MOST_TIMEOUTS:
            raise Over(f"too many calls took longer than {self._session.target.timeout_ms} ms")
        if self._failures >= _MOST_FAILURES:
            raise Over("the provider does not answer any more")
        if not self._kept:
            case = replace(case, form=case.form._replace(kept=False))
        answer = self._session.ask(case)
        if answer.status == 429:
            answer = self._ask_later(case, answer)
        self._tell_progress()
        self._notice(answer)
        return answer

    def _ask_later(self, case: Case, refused: Answer) -> Answer:
        after = (refused.reply.header("Retry-After") if refused.reply else None) or "1"
        time.sleep(min(float(after) if after.isdecimal() else 1.0, _LONGEST_PAUSE_S))
        answer = self._session.ask(case)
        if answer.status == 429:
            raise Over("the provider limits how many calls it takes (429)")
        return answer

    def _tell_progress(self) -> None:
        sent = self._session.sent - self._sent_before
        self._progress(sent, max(sent, USUAL_REQUESTS))

    def _notice(self, answer: Answer) -> None:
        """Take note of what an answer gives to judge."""
        self._failures = self._failures + 1 if _unreachable(answer) else 0
        self._timeouts += answer.failure.startswith("timeout")
        self._answered |= answer.status == 200
        self._refused |= answer.status >= 300
        self._told |= bool(answer.memories)
        kinds = answer.case.fields.get("memory_types")
        self._typed |= bool(kinds and any(_kind(memory) for memory in answer.memories or ()))
        if NONSENSE not in str(answer.case.fields.get("query")):
            self._summaries.update(_summaries(answer))

    def _judge(self, probe: Probe) -> Answer:
        """Ask, and report what is wrong with the answer."""
        answer = self._ask(probe.case)
        self._weigh(probe, answer)
        return answer

    def _weigh(self, probe: Probe, answer: Answer) -> None:
        """Report what is wrong with an answer; what it shares with a finding is not asked again."""
        before, self._before = self._before, answer
        first_of_each: dict[str, Violation] = {}
        for each in self._wrong(probe, answer):
            first_of_each.setdefault(_key(each, answer), each)
        found = [each for each in first_of_each.values() if not self._known(each, answer)]
        if not found:
            return
        try:
            again = self._ask(probe.case)
            shown = {each.code for each in self._wrong(probe, again)}
            if before is not None and self._is_of_the_connection(probe, before, answer, found):
                return
            for violation in found:
                if violation.code in shown:
                    self._tell(probe, *self._simplest(probe, violation, answer))
                elif violation.code != "RES006":  # once slow is not slow
                    self._tell(probe, violation, answer, flaky=True)
        except Over:
            for violation in found:
                if violation.code != "RES006":
                    self._tell(probe, violation, answer)
            raise

    def _wrong(self, probe: Probe, answer: Answer) -> list[Violation]:
        """Return what is wrong with the answer to a probe."""
        found = self._session.violations(answer)
        if answer.status in probe.may_be:
            found = [each for each in found if each.code not in ("RES001", "RES002")]
        if probe.aspect == "wrong fields":  # how these are read is not said
            found = [each for each in found if each.code not in ("RES302", "RES303")]
        places = {each.code for each in found if each.pointer}  # "and 6 more like this" has none
        found = [each for each in found if each.pointer or each.where != "body" or each.code not in places]
        if probe.case.authorization is not None and (answer.status >= 500 or 300 <= answer.status < 400):
            message = f"should be 4xx for a wrong authorization; this is {answer.status}"
            found.append(Violation(RULES["RES002"], "status", "", message, str(answer.status)))
        if probe.aspect == "nothing found" and (echo := self._echo(answer)):
            found.append(echo)
        return [each for each in found if not probe.only or each.code in probe.only]

    def _echo(self, answer: Answer) -> Violation | None:
        """Return that the query is repeated in the summary of a memory that is told otherwise elsewhere."""
        for number, (name, text) in enumerate(_summaries(answer).items()):
            if NONSENSE in text and NONSENSE not in self._summaries.get(name, NONSENSE):
                message = f'repeats the query, "{NONSENSE}", as if it were said there'
                return Violation(RULES["RES402"], "body", f"/memories/{number}/summary", message)
        return None

    def _known(self, violation: Violation, answer: Answer) -> bool:
        """Whether a violation is not asked for, or was found in the plainest requests."""
        return violation.code not in self._codes or (_key(violation, answer), "plain") in self._causes

    # ---- what is found

    def _tell(self, probe: Probe, violation: Violation, answer: Answer, *, flaky: bool = False) -> None:
        """Report a violation, unless its cause is known: the place, or for a status what was special."""
        key, cause = _key(violation, answer), probe.aspect
        special = sorted(set(answer.case.fields) - {"query"}) if answer.case.body is None else []
        if flaky:
            cause = "flaky"
        elif violation.code not in ("RES001", "RES002", "RES007"):
            cause = "plain"
        elif special and violation.code != "RES002":
            cause = ", ".join(special)
        if (key, cause) in self._causes or (key, "plain") in self._causes:
            return
        self._causes.add((key, cause))
        message = f"{violation.place}: {violation.message}"
        self._add(violation.code, message, (answer,), pointer=violation.pointer, flaky=flaky)

    def _add(
        self,
        code: str,
        message: str,
        answers: tuple[Answer, ...],
        *,
        pointer: str = "",
        together: bool = False,
        flaky: bool = False,
        once: str = "",
    ) -> None:
        """Report a finding; of those with the same word for `once`, the first."""
        if code not in self._codes or (once and (code, once) in self._causes):
            return
        if once:
            self._causes.add((code, once))
        expected = _EXPECTED.get(code) or RULES[code].title
        self.findings.append(Finding(RULES[code], message, pointer, answers, expected, together, flaky))

    def _is_of_the_connection(
        self, probe: Probe, before: Answer, answer: Answer, found: list[Violation]
    ) -> bool:
        """Whether an answer is wrong only because its connection was used before; if so, report it."""
        if not answer.kept:
            return False
        codes = {each.code for each in found}
        fresh = self._ask(replace(probe.case, form=probe.case.form._replace(kept=False)))
        if not codes.isdisjoint(each.code for each in self._wrong(probe, fresh)):
            return False
        first, second = self._ask(before.case), self._ask(probe.case)
        if codes.isdisjoint(each.code for each in self._wrong(probe, second)) or not second.kept:
            return False
        self._kept = False
        message = f"on a connection that was used before: {found[0].place}: {found[0].message}"
        self._add("RES605", message, (first, second), once="connection")
        return True

    def _simplest(self, probe: Probe, violation: Violation, answer: Answer) -> tuple[Violation, Answer]:
        """Return the simplest case that breaks the same rule at the same place: how, and its answer."""
        if violation.code == "RES006":  # each try takes long
            return violation, answer
        goal = _key(violation, answer)
        for simpler in _simpler(probe.case):
            tried = probe._replace(case=simpler(answer.case))
            other = self._ask(tried.case)
            same = (each for each in self._wrong(tried, other) if _key(each, other) == goal)
            if (found := next(same, None)) is not None:
                violation, answer = found, other
        return violation, answer

    # ---- what several answers show

    def _comparable(self, code: str, answers: Iterable[Answer]) -> bool:
        if not self._stable:
            self._why_not[code] = "the same retrieval is not answered the same (RES602)"
            return False
        if any(answer.memories for answer in answers):
            self._done.add(code)
        return code in self._codes

    def _compare(
        self,
        code: str,
        relation: Relation,
        first: Answer,
        last: Answer,
        once: str = "relation",
        *,
        fresh_live_id: bool = False,
    ) -> bool:
        """Report what a relation says of two answers; return whether it says something twice."""
        if not self._comparable(code, (first, last)):
            return False
        message = relation(first, last)
        if message is None:
            return False
        cases = [answer.case for answer in (first, last)]
        if fresh_live_id:  # what a live session has seen may be the reason
            cases = [case.with_fields(live_id=f"{LIVE_ID}1") for case in cases]
        again = self._ask(cases[0]), self._ask(cases[1])
        shown = relation(*again)
        answers = again if shown else (first, last)
        self._add(code, shown or message, answers, flaky=shown is None, once=once)
        return shown is not None

    def _same_meaning(self, plain: Answer, case: Case, once: str, may_be: Container[int] = ()) -> None:
        """Ask what means the same as before; report how the answer differs, else what is wrong with it."""
        answer = self._ask(case)
        if answer.memories:
            self._done.add("RES605")
        differs = answer.status not in may_be and matters_not(plain, answer)
        if differs and self._comparable("RES605", (plain, answer)):
            for form in _parts(case.form):
                alone = self._ask(replace(case, form=form))
                if matters_not(plain, alone):
                    answer, once = alone, _form_in_words(form)
                    break
            # an error that does not come again has another reason
            if answer.memories is not None or matters_not(plain, self._ask(answer.case)):
                self._compare("RES605", _by_form, plain, answer, once)
                return
        self._weigh(Probe(case, once, may_be), answer)

    # ---- what became of each rule

    def outcome(self, code: str, stopped: str) -> Outcome:
        """Return what became of a rule."""
        if any(finding.rule.code == code for finding in self.findings):
            return Outcome(RULES[code], "violated")
        reason = self._why_not.get(code) or self._nothing_to_judge(code)
        if reason:
            return Outcome(RULES[code], "not applicable", f"{reason}; {stopped}" if stopped else reason)
        return Outcome(RULES[code], "passed")

    def _nothing_to_judge(self, code: str) -> str:
        """Return why nothing is known about a rule; empty when something is."""
        if code == "RES002":
            return "" if self._invalid else "nothing wrong was asked"
        if code in ("RES501", "RES502"):
            return "" if self._refused else "no error was seen"
        if code.startswith("RES6"):
            return "" if code in self._done else "there were no answers with memories to compare"
        if code == "RES303":
            return "" if self._typed else "no memory of a kind that was asked for was seen"
        if code[3] in "34" or code in _OF_MEMORIES:
            return "" if self._told else "no memory was seen"
        return "" if self._answered else "no retrieval was answered with 200"


_OF_MEMORIES = ("RES203", "RES204", "RES205", "RES206", "RES207", "RES208", "RES209")
_EXPECTED = {
    "RES001": "200 with the memories that fit, or with an empty array",
    "RES002": "4xx, with a JSON object that says what is wrong",
    "RES006": "the whole answer within timeout_ms",
    "RES601": "401 or another 4xx, and no memories",
    "RES602": "the same memories in the same order",
    "RES603": "what a smaller max_results gives, and more behind it",
    "RES604": "the memories of the wanted kinds, in the order that they have among others",
    "RES605": "the answer to the plain request",
    "RES606": "the answer that each call gets alone",
}


def _key(violation: Violation, answer: Answer) -> str:
    """Return what is the same for violations with one cause: rule, place and status, as for a finding."""
    key = Finding(violation.rule, violation.message, violation.pointer, (answer,), "").key
    # two things at one place: an error that shows a trace, and the authorization
    return f"{key} {violation.message}" if violation.code == "RES502" else key


def _by_form(first: Answer, last: Answer) -> str | None:
    """Return how an answer differs, and in which form the request was written."""
    message = matters_not(first, last)
    words = _form_in_words(last.case.form)
    return f"{words}: {message}" if message and words else message


def _parts(form: Form) -> list[Form]:
    """Return the forms that are not plain in one thing only, when the form is not plain in several."""
    changes = {name: value for name, value in form._asdict().items() if value != getattr(PLAIN, name)}
    return [PLAIN._replace(**{name: value}) for name, value in changes.items()] if len(changes) > 1 else []


def _simpler(case: Case) -> Iterator[Callable[[Case], Case]]:
    """Yield ways to make a case simpler, to be tried one after the other."""
    if case.body is not None:
        return
    for name in [name for name in case.fields if name != "query"]:
        yield lambda case, name=name: case.without(name)  # type: ignore[misc]
    if isinstance(case.fields.get("query"), str) and case.fields["query"] not in ("tea", ""):
        yield lambda case: case.with_fields(query="tea")


def _form_in_words(form: Form) -> str:
    """Return what of a form is not plain."""
    changes = {name: value for name, value in form._asdict().items() if value != getattr(PLAIN, name)}
    return ", ".join(f"{name} {value}" for name, value in changes.items() if name != "kept")


def _count(answer: Answer) -> int:
    return len(answer.memories or ())


def reach(session: Session) -> None:
    """Make sure that somebody answers, with the simplest retrieval.

    Raises:
        MemmockError: nobody does.
    """
    _refuse_unreachable(session.ask(FIRST), session)


def _refuse_unreachable(answer: Answer, session: Session) -> None:
    if _unreachable(answer):
        raise MemmockError(f"{session.target.url}: {answer.failure.partition(': ')[2]}")


def _unreachable(answer: Answer) -> bool:
    """Whether a first call failed before anything was answered, as far as can be told."""
    kind, _, message = answer.failure.partition(": ")
    answered = ("the provider closed", "the answer is", "the connection was reset")
    return kind == "connection_failed" and not message.startswith(answered)


def _summaries(answer: Answer) -> dict[str, str]:
    """Return the summaries of an answer by their ids, as far as both are text."""
    found: dict[str, str] = {}
    for memory in answer.memories or ():
        if isinstance(memory, dict) and isinstance(text := memory.get("summary"), str):
            found.setdefault(str(memory.get("id", text)), text)
    return found


def _kind(memory: Any) -> str | None:
    kind = memory.get("type") if isinstance(memory, dict) else None
    return kind if isinstance(kind, str) else None
