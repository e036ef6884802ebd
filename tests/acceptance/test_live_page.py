"""The page that a watcher shows to people: what it says, to whom, and that it stays fresh in a browser."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from foh_pg.quality.evaluate import evaluate
from foh_pg.updater import update
from tests.support.digits import create_index, create_table, insert
from tests.support.html import Page
from tests.support.postgres import Database, Server
from tests.support.scene import make_scene
from tests.support.watching import Watch

Connection = psycopg.Connection[Any]
DOCS = Path(__file__).resolve().parents[2] / "docs"
HOSTILE = "<script>alert('x')</script>/&%41"


@pytest.fixture
def watch(database: Database) -> Iterator[Callable[..., Watch]]:
    started: list[Watch] = []

    def start(*arguments: str) -> Watch:
        started.append(Watch(database.dsn(), *arguments))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def evaluated(connection: Connection, database: Database) -> Connection:
    create_table(connection)
    create_index(connection, options='{"learn_rows": 300, "held_out": 0.2}')
    insert(connection, range(600))
    update(database.dsn(), "digits")
    evaluate(database.dsn(), "digits", queries=40)
    return connection


class TestHtml:
    def test_all_indexes_and_the_page_of_one(
        self, evaluated: Connection, watch: Callable[..., Watch]
    ) -> None:
        watcher = watch("--all")
        status, headers, text = watcher.ask("/")
        page = Page(text)
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert page.loads == ["data:,", "/index/digits"]
        assert re.search(r"digits well on (public\.)?digit; last update \d+ s ago", page.text), page.text
        assert "evaluate 2 40 0 0" in page.text
        assert page.counts["svg"] == 1
        status, _, text = watcher.ask("/index/digits")
        report = Page(text)
        assert status == 200
        assert report.loads == ["data:,", "/"]
        assert report.counts["svg"] == 11
        status, _, text = watcher.ask("/index/%3Cb%3E")
        assert (status, Page(text).counts.get("b")) == (404, None)
        assert watcher.ask("/favicon.ico")[0] == 404
        assert watcher.end() == 0

    def test_nothing_but_our_script_may_run_whatever_names_say(
        self, connection: Connection, watch: Callable[..., Watch]
    ) -> None:
        table = sql.Identifier(HOSTILE)
        for statement in (
            'CREATE TABLE {} (id int PRIMARY KEY, embedding extensions.vector(2), "<i>" text)',
            "SELECT foh.create_index('hostile', {text}::regclass, 'embedding', '<i>')",
            """INSERT INTO {} VALUES (1, '[1,2]', '<u>"&')""",
            'ALTER TABLE {} RENAME COLUMN embedding TO "</main><em>"',
        ):
            text = sql.Literal(table.as_string(connection))
            connection.execute(sql.SQL(statement).format(table, text=text))
        watcher = watch("--all")
        watcher.wait_for_line("trying again")
        for path in ("/", *Page(watcher.get("/")[1]).loads[1:]):
            status, headers, text = watcher.ask(path)
            page = Page(text)
            assert status == 200
            assert page.counts["script"] == 1
            assert not {"b", "i", "u", "em"} & set(page.counts)
            assert HOSTILE in page.text
            [script] = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            assert f"script-src 'sha256-{digest}';" in headers["Content-Security-Policy"]
            assert headers["Content-Security-Policy"].startswith("default-src 'none';")
            assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == ("nosniff", "DENY")
        assert "not well" in page_text(watcher)
        assert watcher.end() == 0

    def test_only_what_is_watched_and_to_no_name_of_strangers(
        self, connection: Connection, watch: Callable[..., Watch]
    ) -> None:
        create_table(connection)
        create_index(connection)
        connection.execute("SELECT foh.create_index('other', 'digit', 'embedding')")
        watcher = watch("digits", "--metrics-allow-host=foh.example.com")
        assert "run foh-pg evaluate digits." in page_text(watcher)
        assert "other" not in page_text(watcher)
        assert watcher.ask("/index/other")[0] == 404
        for path in ("/", "/metrics", "/healthz", "/index/digits"):
            status, _, text = watcher.ask(path, Host="rebound.example.org")
            assert (status, "digits" in text) == (421, False)
            assert watcher.ask(path, Host="foh.example.com")[0] == 200
            assert watcher.ask(path, Host=f"localhost:{watcher.port}")[0] == 200
        assert watcher.end() == 0


def page_text(watcher: Watch) -> str:
    return Page(watcher.get("/")[1]).text


# -- a browser -----------------------------------------------------------------------------------------------


@pytest.fixture
def browser() -> Iterator[Any]:
    """A headless browser, which neither the suite nor a user needs."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("there is no browser: Debian's packages chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--window-size=1180,1480",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield browser
    finally:
        browser.quit()


def test_in_a_browser(browser: Any, evaluated: Connection, watch: Callable[..., Watch]) -> None:
    watcher = watch("--all")
    browser.get(f"http://127.0.0.1:{watcher.port}/")
    main = "return document.querySelector('main').innerText"
    assert "well" in browser.execute_script(main)
    assert re.search(r"\b300\b", browser.execute_script(main)) is None
    # What is set in the page is lost when it is loaded anew; it renews itself without that.
    browser.execute_script("window.same = true")
    insert(evaluated, range(600, 900))
    watcher.wait(lambda: re.search(r"\b300\b", browser.execute_script(main)) is not None)
    assert browser.execute_script("return window.same") is True
    # In one step: the link that was found might be replaced before it is clicked.
    browser.execute_script("document.querySelector('main a').click()")
    watcher.wait(lambda: browser.title == "Index digits")
    drawn = "return [...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().height > 50).length"
    assert browser.execute_script(drawn) == 11
    silent = "return !document.getElementById('silent').hidden"
    assert browser.execute_script(silent) is False
    complaints = [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"]
    assert complaints == [], "the policy of the page refuses something of its own"
    assert watcher.end() == 0
    support = pytest.importorskip("selenium.webdriver.support.ui")
    support.WebDriverWait(browser, 60).until(lambda b: b.execute_script(silent))


@pytest.mark.skipif(
    "FOH_RENDER" not in os.environ, reason="makes the pictures of the docs again: FOH_RENDER=1"
)
def test_pictures_for_the_docs(server: Server, browser: Any) -> None:
    database = server.create_database(name="shop", template=server.template)
    watcher = None
    try:
        make_scene(database)
        watcher = Watch(database.dsn(), "--all")
        for path, name in (("/", "live-page.png"), ("/index/packages", "live-index.png")):
            browser.get(f"http://127.0.0.1:{watcher.port}{path}")
            browser.save_screenshot(str(DOCS / "pictures" / name))
    finally:
        if watcher is not None:
            watcher.kill()
        database.drop()
