"""The inspector's page in Chromium, in front of a mock provider that is really served."""

from __future__ import annotations

import http.client
import json
import shutil
import time

import pytest
from playwright.sync_api import expect, sync_playwright

from memmock.admin import Admin
from memmock.http import JSON_TYPE, Reply, Request
from memmock.inspector import Inspected, Inspector, Subject
from memmock.journal import Journal
from memmock.memories import builtin
from memmock.playbook import EVERYTHING, Playbook
from memmock.provider import Provider
from memmock.rules import RULES
from memmock.scenarios import CATALOGUE
from memmock.server import Server

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
"""Where it is missing these tests fail, since nothing else tests the page."""
HEADERS = {"Content-Type": JSON_TYPE, "Accept": JSON_TYPE, "Authorization": "Bearer s3cret-value-4711"}
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def browser():
    assert CHROMIUM, "there is no Chromium: run tests/install_tools"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Served:
    """A mock provider that is served, with the inspector."""

    def __init__(self, token=None) -> None:
        playbook = Playbook(abilities=EVERYTHING)
        self.provider = Provider(builtin(), playbook=playbook, timeout_ms=400)
        subject = Subject.of_provider(self.provider, lambda: self.server.url + self.provider.path)
        inspector = Inspector(subject)
        admin = Admin(self.provider, pages=inspector.answer, token=token)
        self.server = Server(admin, door=playbook)
        playbook.changed = self.server.look

    def ask(self, query="用户的猫", headers=HEADERS, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=5)
        body = json.dumps({"query": query, **fields}, ensure_ascii=False).encode()
        connection.request("POST", "/memory_retrieval", body, headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status


@pytest.fixture
def served():
    served = Served()
    with served.server:
        yield served


@pytest.fixture
def open_page(browser):
    """Return a function that opens a page; the test fails for an error in it, or what its policy forbids."""
    contexts, wrong = [], []

    def opened(served, **how):
        how.setdefault("viewport", WIDE)
        context = browser.new_context(**how)
        context.set_default_timeout(5000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
        page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
        page.goto(f"{served.server.url}/__memmock__/")
        expect(page.locator("#state")).to_have_text("live")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def first_line(page):
    return page.locator(".line:visible").first


def test_call_appears_within_a_second(served, open_page):
    page = open_page(served)
    took = []
    for n in range(5):  # the quickest counts: the machine may be busy
        start = time.monotonic()
        served.ask(f"用户养了什么 {n}", memory_types=["relationship"])
        expect(first_line(page)).to_contain_text(f"用户养了什么 {n}")
        took.append(time.monotonic() - start)
    assert min(took) < 1
    expect(first_line(page).locator(".chip")).to_have_text("relationship")
    expect(first_line(page).locator(".pill")).to_have_text("ok · 4")


def test_scenario_that_is_set_changes_the_next_call(served, open_page):
    page = open_page(served)
    served.ask()
    page.click("#tab-play")
    page.fill("#scenario-search", "server-error")
    page.click("[data-scenario=server-error]")
    page.fill("#use-times", "1")
    page.click("#use")
    expect(page.locator("#rules-now")).to_contain_text("0 of 1")
    assert [served.ask(), served.ask()] == [500, 200]
    expect(page.locator("#rules-now")).to_have_text("Honest answers. No scenario is set.")
    page.click("#tab-calls")
    expect(page.locator(".line:visible").nth(1)).to_contain_text("server-error")
    expect(page.locator(".line:visible").nth(1)).to_contain_text("http_error 500")
    expect(first_line(page)).to_contain_text("ok")


def test_scenario_with_a_condition_and_a_parameter_is_set(served, open_page):
    page = open_page(served)
    page.click("#tab-play")
    page.fill("#scenario-search", "late")
    page.click("[data-scenario=late]")
    page.fill("[data-parameter=factor]", "3")
    page.click("#add-condition")
    page.locator("#conditions input").fill("用户的猫")
    page.click("#use")
    expect(page.locator("#rules-now")).to_contain_text("late(factor=3.0)")
    expect(page.locator("#rules-now")).to_contain_text('query = "用户的猫"')
    assert served.ask("something else") == 200


def test_plan_and_chaos_are_set_and_a_mistake_is_told(served, open_page):
    page = open_page(served)
    page.click("#tab-play")
    page.fill("#plan-text", "server-error*2, success")
    page.press("#plan-text", "Enter")
    expect(page.locator("#rules-now")).to_contain_text("server-error 0 of 2")
    page.fill("#chaos-text", "late=0.5")
    page.fill("#chaos-seed", "42")
    page.press("#chaos-text", "Enter")
    expect(page.locator("#rules-now")).to_contain_text("by chance, seed 42")
    page.fill("#plan-text", "no-such-thing")
    page.press("#plan-text", "Enter")
    expect(page.locator("#toast")).to_contain_text("there is no scenario 'no-such-thing'")


def test_memory_that_is_edited_changes_the_ranking(served, open_page):
    page = open_page(served)
    page.click("#tab-memories")
    page.click("[data-demo='1']")
    best = page.locator(".ranked").first
    expect(best).to_contain_text("月亮醒了")
    expect(best.locator("mark").first).to_be_visible()
    page.click(".memory[data-index='6']")
    page.fill("#m-summary", "用户和灵绯之前约定的暗号是“太阳睡了”。")
    page.fill("#m-keywords", "暗号, 约定")
    page.click("#memory-form button.main")
    expect(best).to_contain_text("太阳睡了")
    assert "太阳睡了" in served.provider.memories[6].summary
    assert served.provider.memories[6].keywords == ("暗号", "约定")
    assert served.provider.memories[6].updated_at == builtin()[6].updated_at


def test_memory_is_added_and_deleted(served, open_page):
    page = open_page(served)
    page.click("#tab-memories")
    page.click("#memory-add")
    page.fill("#m-summary", "用户会弹琴。")
    page.fill("#m-keywords", "琴， 音乐")
    page.click("#memory-form button.main")
    expect(page.locator("#memory-count")).to_have_text("29")
    assert served.provider.memories[28].keywords == ("琴", "音乐")
    page.click(".memory[data-index='28']")
    page.click("#memory-delete")
    expect(page.locator("#memory-count")).to_have_text("28")


def test_persona_is_exported_and_imported(served, open_page, tmp_path):
    page = open_page(served)
    page.click("#tab-memories")
    with page.expect_download() as download:
        page.click("#export")
    exported = tmp_path / "persona.json"
    download.value.save_as(exported)
    assert len(json.loads(exported.read_text())["live"]["builtin_avatars"]["01"]["memories"]) == 28
    own = tmp_path / "own.yaml"
    own.write_text('live:\n  builtin_avatars:\n    "01":\n      memories:\n        - summary: 用户会弹琴。\n')
    page.set_input_files("#import", own)
    expect(page.locator("#memory-count")).to_have_text("1")
    page.set_input_files("#import", exported)
    expect(page.locator("#memory-count")).to_have_text("28")
    assert served.provider.memories == builtin()


def test_violation_is_shown_at_its_place(served, open_page):
    page = open_page(served)
    served.ask("用户的猫", headers={**HEADERS, "Accept": "*/*"}, max_results=0)
    first_line(page).click()
    place = page.locator(".json .place").first
    expect(place).to_contain_text('"max_results": 0')
    note = page.locator(".json .place + .note").first
    expect(note).to_contain_text("REQ209")
    expect(note).to_contain_text("A provider cuts its answer there.")
    page.locator(".finding", has_text="REQ003").click()
    expect(page.locator("tr.place")).to_contain_text("REQ003")
    expect(page.locator("tr.place")).to_contain_text("Accept")


def test_call_is_shown_in_all_forms_without_its_authorization(served, open_page):
    page = open_page(served)
    served.ask("用户的猫", max_results=1)
    first_line(page).click()
    reply = page.locator("[data-side=reply]")
    expect(reply).to_contain_text('"id": "m007"')
    reply.get_by_role("tab", name="Raw").click()
    expect(reply).to_contain_text("HTTP/1.1 200 OK")
    reply.get_by_role("tab", name="Bytes").click()
    expect(reply).to_contain_text("000000  48 54 54 50 2f 31 2e 31")
    request = page.locator("[data-side=request]")
    request.get_by_role("tab", name="Headers").click()
    expect(request).to_contain_text("***")
    assert "s3cret" not in page.content()


def test_call_is_copied(served, open_page):
    page = open_page(served, permissions=["clipboard-read", "clipboard-write"])
    served.ask("用户的猫", max_results=1)
    first_line(page).click()
    for name, start in (("curl", "curl -sS"), ("pytest", "from memmock"), ("cassette", "interactions:")):
        page.click(f"[data-copy={name}]")
        expect(page.locator("#toast")).to_have_text("Copied.")
        assert page.evaluate("navigator.clipboard.readText()").startswith(start)


def test_copy_is_made_by_hand_where_the_browser_does_not_allow_it(served, open_page):
    page = open_page(served)
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
    served.ask("用户的猫")
    first_line(page).click()
    page.click("[data-copy=curl]")
    box = page.locator("#copybox textarea")
    expect(box).to_be_focused()
    assert box.input_value().startswith("curl -sS")
    page.keyboard.press("Tab")
    expect(page.locator("#copybox-close")).to_be_focused()
    page.keyboard.press("Tab")
    expect(box).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#copybox")).to_be_hidden()
    expect(page.locator("[data-copy=curl]")).to_be_focused()


def test_markup_in_a_call_stays_text(served, open_page):
    page = open_page(served)
    attack = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    served.provider.memories = builtin().plus({"summary": attack, "keywords": ["attack"], "id": "<b>x</b>"})
    served.ask(f"attack {attack}", memory_types=["<b>bold</b>"], **{"<i>field</i>": attack})
    expect(first_line(page)).to_contain_text(attack)
    first_line(page).click()
    expect(page.locator("[data-side=request]")).to_contain_text("<i>field</i>")
    page.click("#tab-memories")
    page.fill("#try-query", "attack")
    expect(page.locator(".ranked").first).to_contain_text(attack)
    assert (
        page.locator("main img, main script, main b:has-text('bold'), main i:has-text('field')").count() == 0
    )


def test_ten_thousand_calls_are_scrolled_through(served, open_page):
    journal = served.provider.journal
    journal.max_calls, journal.max_bytes = 20_000, 1 << 30
    for n in range(10_000):
        request = Request("POST", "/memory_retrieval", tuple(HEADERS.items()), b'{"query": "q%d"}' % (n % 50))
        journal.add(request, Reply.json({"memories": []}), 1e9 + n, 0.001)
    page = open_page(served)
    expect(page.locator("#counts")).to_contain_text("10,000 calls", timeout=15_000)
    assert page.locator(".line").count() < 80
    took = page.evaluate(
        """async () => {
            const list = document.getElementById("list"), times = [];
            for (let n = 0; n <= 40; n += 1) {
                const start = performance.now();
                list.scrollTop = (list.scrollHeight * n) / 40;
                await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
                times.push(performance.now() - start);
            }
            return times.sort((a, b) => a - b)[20];
        }"""
    )
    assert took < 100
    expect(page.locator(".line:visible").last).to_contain_text("q0")
    page.fill("#search", "q7")
    expect(page.locator("#counts")).to_have_text("200 of 10,000 calls")


def test_what_is_read_stays_in_its_place_when_calls_come(served, open_page):
    page = open_page(served)
    for n in range(60):
        served.ask(f"query {n}")
    expect(page.locator("#counts")).to_contain_text("60 calls")
    page.evaluate("document.getElementById('list').scrollTop = 640")
    served.ask("one more")
    expect(page.locator("#counts")).to_contain_text("61 calls")
    assert page.evaluate("document.getElementById('list').scrollTop") == 672


def test_calls_are_filtered_paused_and_cleared(served, open_page):
    page = open_page(served)
    served.ask("good")
    served.ask("bad", max_results=0)
    expect(page.locator(".line:visible")).to_have_count(2)
    page.get_by_role("button", name="Failed").click()
    expect(page.locator(".line:visible")).to_have_count(1)
    expect(first_line(page)).to_contain_text("bad")
    page.get_by_role("button", name="All", exact=True).click()
    page.click("#pause")
    served.ask("while paused")
    expect(page.locator("#pause")).to_have_text("Resume (1)")
    expect(page.locator(".line:visible")).to_have_count(2)
    page.click("#pause")
    expect(first_line(page)).to_contain_text("while paused")
    page.click("#clear")
    expect(page.locator(".line:visible")).to_have_count(0)
    page.reload()
    served.ask("after that")
    expect(first_line(page)).to_contain_text("after that")
    expect(page.locator(".line:visible")).to_have_count(1)


def test_everything_is_there_in_chinese(served, open_page):
    page = open_page(served)
    served.ask(max_results=0)
    page.click("#language")
    expect(page.locator("#tab-calls")).to_have_text("调用")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(first_line(page)).to_contain_text("HTTP 错误 400")
    first_line(page).click()
    expect(page.locator("#detail")).to_contain_text("交给模型的内容")
    page.reload()
    expect(page.locator("#tab-play")).to_have_text("场景")
    missing = page.evaluate("Object.keys(WORDS.en).filter((key) => !(key in WORDS.zh))")
    assert missing == []
    page.click("#language")
    expect(page.locator("#tab-calls")).to_have_text("Calls")


def test_scenarios_and_reasons_are_told_in_chinese(served, open_page):
    page = open_page(served)
    page.click("#language")
    codes = {code for code in RULES if code.startswith(("REQ", "RES")) and code < "RES6"}
    assert set(page.evaluate("Object.keys(SENTENCES.zh)")) == {*CATALOGUE, *codes}
    page.click("#tab-play")
    page.fill("#scenario-search", "出错，并用")
    page.click("[data-scenario=server-error]")
    expect(page.locator("#chosen")).to_contain_text("500：提供方出错，并用 JSON 说明。")
    page.click("#use")
    expect(page.locator("#rules-now")).to_contain_text("server-error")
    served.ask()
    page.click("#tab-calls")
    first_line(page).click()
    expect(page.locator("#detail")).to_contain_text("500：提供方出错，并用 JSON 说明。")
    served.ask("another", max_results=0)
    page.click(".line:has-text('another')")
    expect(page.locator("[data-side=request] .note")).to_contain_text("提供方在此截断响应。")


def test_page_is_dark_when_the_system_is_and_can_be_switched(served, open_page):
    page = open_page(served, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(15, 19, 24)"
    page.click("#theme")
    assert page.evaluate(background) == "rgb(245, 246, 248)"
    page.reload()
    assert page.evaluate(background) == "rgb(245, 246, 248)"


def test_everything_can_be_done_with_the_keyboard(served, open_page):
    page = open_page(served)
    for n in range(5):
        served.ask(f"query {n}")
    expect(page.locator(".line:visible")).to_have_count(5)
    keys = page.keyboard
    keys.press("ArrowDown")
    expect(page.locator(".line[aria-selected=true]")).to_contain_text("query 4")
    keys.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    keys.type("query")
    keys.press("ArrowDown")
    assert page.evaluate("document.activeElement.id") == "list"
    keys.press("ArrowDown")
    expect(page.locator(".line[aria-selected=true]")).to_contain_text("query 3")
    keys.press("Enter")
    expect(page.locator("#detail strong").first).to_have_text("query 3")
    keys.press("End")
    expect(page.locator("#detail strong").first).to_have_text("query 0")
    keys.press("Escape")
    expect(page.locator("#detail")).to_be_hidden()
    assert page.evaluate("document.activeElement.id") == "list"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    keys.press("2")
    expect(page.locator("#play")).to_be_visible()
    keys.press("ArrowRight")
    expect(page.locator("#memories")).to_be_visible()
    keys.press("/")
    keys.type("芝麻")
    keys.press("Tab")
    keys.press("Tab")
    keys.press("Tab")
    keys.press("Tab")
    keys.press("Enter")
    expect(page.locator("#m-summary")).to_be_focused()


def test_page_fits_a_phone(served, open_page):
    page = open_page(served, viewport=PHONE, has_touch=True)
    served.ask("用户喜欢灵绯用什么格式给建议" * 4, memory_types=["style", "preference"])
    expect(first_line(page)).to_be_visible()
    width = "document.documentElement.scrollWidth"
    for tab in ("play", "memories", "times", "calls"):
        page.click(f"#tab-{tab}")
        assert (tab, page.evaluate(width)) == (tab, 360)
    first_line(page).click()
    expect(page.locator("#pane")).to_be_hidden()
    assert page.evaluate(width) == 360
    page.click("#close-detail")
    expect(page.locator("#pane")).to_be_visible()


def test_durations_are_drawn(served, open_page):
    page = open_page(served)
    served.provider.playbook.use("server-error", times=1)
    served.ask()
    served.ask()
    page.click("#tab-times")
    expect(page.locator("#plot-note")).to_contain_text("2 calls")
    expect(page.locator("#by-scenario")).to_contain_text("server-error")
    drawn = """() => {
        const plot = document.getElementById("plot"), pixels = plot.getContext("2d")
            .getImageData(0, 0, plot.width, plot.height).data;
        return pixels.some((value) => value > 0);
    }"""
    assert page.evaluate(drawn)


def test_page_asks_for_the_token(browser, open_page):
    served = Served(token="t0ken")
    with served.server:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{served.server.url}/__memmock__/")
        page.fill("#token", "t0ken")
        page.press("#token", "Enter")
        expect(page.locator("#state")).to_have_text("live")
        served.ask("用户的猫")
        expect(first_line(page)).to_contain_text("用户的猫")
        context.close()


def test_page_comes_back_to_a_server_that_was_started_again(served, open_page):
    page = open_page(served)
    served.ask("before")
    expect(first_line(page)).to_contain_text("before")
    served.server.stop()
    expect(page.locator("#state")).to_contain_text("server gone")
    served.server.start()
    expect(page.locator("#state")).to_have_text("live", timeout=10_000)
    served.ask("after")
    expect(first_line(page)).to_contain_text("after")


class Other:
    """A handler without memories, that is served with the inspector."""

    def __init__(self, kind, journal, endpoint) -> None:
        inspector = Inspector(Subject(kind=kind, journal=journal, endpoint=lambda: endpoint))
        self.server = Server(Inspected(lambda request: Reply(204), inspector, host="127.0.0.1"))


def test_page_of_the_live_twin_says_how_a_live_session_is_asked(open_page):
    other = Other("live", Journal(), "http://127.0.0.1:1/live/v1/lives")
    with other.server:
        page = open_page(other)
        expect(page.locator("#nothing")).to_contain_text(
            "memmock ask --live http://127.0.0.1:1/live/v1/lives --live-id ID"
        )


def test_page_of_another_handler_has_no_scenarios_and_memories(open_page):
    journal = Journal()
    other = Other("record", journal, "http://127.0.0.1:1/m")
    with other.server:
        page = open_page(other)
        journal.add(
            Request("POST", "/m", (), b'{"query": "a"}'),
            Reply(200),
            time.time(),
            0.1,
            recording="interaction 1",
        )
        expect(first_line(page)).to_contain_text("interaction 1")
        expect(page.locator("nav button:visible")).to_have_text(["Calls", "Durations"])
