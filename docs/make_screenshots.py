"""Make the pictures of inspector.md: a mock provider is asked, and its page is looked at in Chromium.

    python docs/make_screenshots.py

It needs Playwright's Python package and Debian's Chromium. The times in the pictures are those of the run.
"""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from memmock.admin import Admin
from memmock.http import JSON_TYPE
from memmock.inspector import Inspector, Subject
from memmock.memories import builtin
from memmock.playbook import EVERYTHING, Playbook
from memmock.provider import Provider
from memmock.server import Server

IMAGES = Path(__file__).parent / "images"
HEADERS = {"Content-Type": JSON_TYPE, "Accept": JSON_TYPE, "Authorization": "Bearer memmock"}
QUERIES = (
    ("用户喜欢灵绯怎么称呼自己", ["preference"]),
    ("用户和灵绯之前约定的暗号", ["history"]),
    ("用户喜欢灵绯用什么格式给建议", ["style", "preference"]),
    ("用户的猫叫什么", ["relationship"]),
    ("what the user is allergic to", ["constraint"]),
    ("用户最近在忙的项目", ["project"]),
)


def ask(port: int, number: int, **fields: object) -> None:
    """Make a retrieval, and wait for the answer as long as a consumer does."""
    query, types = QUERIES[number % len(QUERIES)]
    asked = {"live_id": "7483920174650001", "query": query, "memory_types": types, "max_results": 3, **fields}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    try:
        body = json.dumps(asked, ensure_ascii=False).encode()
        connection.request("POST", "/memory_retrieval", body, HEADERS)
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        pass  # what is played may end in anything
    finally:
        connection.close()
    time.sleep(0.03)


def calls(provider: Provider, port: int) -> None:
    """Make calls of all kinds."""
    for number in range(12):
        ask(port, number)
    for name in ("server-error", "reset-mid-body", "rate-limited", "plain-text", "oversized", "late"):
        provider.playbook.use(name, times=1)
        ask(port, 3)
    provider.playbook.use("drip(factor=0.3)", times=2)
    ask(port, 2)
    ask(port, 5)
    ask(port, 0, max_results=0, user_id="42", memory_types=["preference", "mood"])
    for number in range(6):
        ask(port, number)


def pictures(browser: Browser, url: str, provider: Provider) -> None:
    """Make all pictures."""
    page = opened(browser, url, 1280, 800, "light")
    page.screenshot(path=IMAGES / "inspector-calls.png")
    page.click("#tab-memories")
    page.click("[data-demo='1']")
    page.wait_for_selector(".ranked")
    page.screenshot(path=IMAGES / "inspector-memories.png")
    page.click("#tab-times")
    page.wait_for_selector("#by-scenario td")
    page.screenshot(
        path=IMAGES / "inspector-durations.png", clip={"x": 0, "y": 0, "width": 1280, "height": 440}
    )

    page = opened(browser, url, 1280, 800, "dark")
    page.locator(".line:visible", has_text="mood").click()
    page.wait_for_selector(".json .place")
    page.mouse.move(0, 0)
    page.screenshot(path=IMAGES / "inspector-call.png")
    page.keyboard.press("Escape")
    provider.playbook.use("late(factor=2)", when={"query": "用户的猫叫什么"})
    provider.playbook.plan("server-error*2, success", must_finish=False)
    page.click("#tab-play")
    page.locator("details[data-family=answers] summary").click()
    page.locator("details[data-family=timing] summary").click()
    page.click("[data-scenario=drip]")
    page.screenshot(path=IMAGES / "inspector-scenario.png")

    page = opened(browser, url, 360, 740, "light")
    page.click("#language")
    page.screenshot(path=IMAGES / "inspector-phone.png")


def opened(browser: Browser, url: str, width: int, height: int, scheme: str) -> Page:
    """Open the page and wait for its calls."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(url)
    page.wait_for_selector(".line")
    page.wait_for_timeout(300)
    return page


def main() -> None:
    """Make the pictures."""
    IMAGES.mkdir(exist_ok=True)
    playbook = Playbook(abilities=EVERYTHING)
    provider = Provider(builtin(), playbook=playbook)
    subject = Subject.of_provider(provider, lambda: "http://127.0.0.1:8765/memory_retrieval")
    admin = Admin(provider, pages=Inspector(subject).answer)
    with Server(admin, door=playbook) as server, sync_playwright() as playwright:
        calls(provider, server.port)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        pictures(browser, f"{server.url}/__memmock__/", provider)
        browser.close()


if __name__ == "__main__":
    main()
