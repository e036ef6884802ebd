"""A watcher that is started, asked to stop, left without its server, and not alone."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from foh_pg.postgres.embedded import EmbeddedServer
from foh_pg.runs.session import Session
from foh_pg.updater import update
from tests.support.digits import create_index, create_table, insert, violations, waiting
from tests.support.postgres import SETTINGS, Database, Server
from tests.support.watching import Watch

Connection = psycopg.Connection[Any]


@pytest.fixture
def watch() -> Iterator[Callable[..., Watch]]:
    started: list[Watch] = []

    def start(dsn: str, *arguments: str) -> Watch:
        started.append(Watch(dsn, *arguments))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def streamed(connection: Connection) -> Connection:
    create_table(connection)
    create_index(connection, options='{"learn_rows": 300}')
    return connection


def start_blocked(
    streamed: Connection, database: Database, watch: Callable[..., Watch], *arguments: str
) -> tuple[Watch, Connection]:
    """A watcher that in the middle of a run waits for a lock, and the session that holds it."""
    insert(streamed, range(600))
    blocker = database.connect("app_owner", autocommit=False)
    blocker.execute("LOCK TABLE foh.digits_item IN ACCESS EXCLUSIVE MODE")
    watcher = watch(database.dsn(), "digits", *arguments)
    locked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'foh.digits_item'::regclass"
    watcher.wait(lambda: streamed.execute(locked).fetchone() == (1,))
    return watcher, blocker


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_drains_the_stream_and_stops_when_asked(
    streamed: Connection, database: Database, watch: Callable[..., Watch], number: int
) -> None:
    insert(streamed, range(600))
    watcher = watch(database.dsn(), "digits")
    # Only when the run has ended: before, it would take what comes next with it.
    watcher.wait_for_line(r"rows=600 ")
    insert(streamed, range(600, 900))
    watcher.wait_for_line(r"rows=300 ")
    assert watcher.metric('foh_rows_total{index="digits"}') == 900
    assert watcher.metric('foh_runs_total{index="digits"}') == len(
        [line for line in watcher.lines if "rows=" in line]
    )
    assert watcher.metric('foh_phase_seconds_total{index="digits",phase="learn"}') > 0
    assert watcher.metric("foh_connected") == 1
    status, body = watcher.get("/healthz")
    assert (status, json.loads(body)["status"]) == (200, "ok")
    assert watcher.end(number) == 0
    assert violations(streamed) == []
    assert streamed.execute("SELECT count(*) FROM foh.run WHERE error IS NOT NULL").fetchone() == (0,)


def test_evaluates_now_and_then_if_told_to(
    streamed: Connection, database: Database, watch: Callable[..., Watch]
) -> None:
    """Once when nothing waits any more, and not again before the hours are over, whoever asked last."""
    insert(streamed, range(600))
    evaluations = "SELECT count(*) FROM foh.run WHERE kind = 'evaluate' AND error IS NULL"
    watcher = watch(database.dsn(), "digits", "--evaluate-every", "1")
    watcher.wait_for_line(r"rows=600 ")
    watcher.wait_for_line(r"index 'digits': evaluated version \d+, p10=0\.\d+ .*recall10=0\.\d+")
    watcher.wait(lambda: watcher.metric('foh_evaluated_timestamp_seconds{index="digits"}') > 0)
    insert(streamed, range(600, 900))
    watcher.wait_for_line(r"rows=300 ")
    assert watcher.end(signal.SIGTERM) == 0
    assert streamed.execute(evaluations).fetchone() == (1,)
    # Another watcher sees in the database that the evaluation is not due; an hour later it is.
    again = watch(database.dsn(), "digits", "--evaluate-every", "1")
    insert(streamed, range(900, 1000))
    again.wait_for_line(r"rows=100 ")
    assert streamed.execute(evaluations).fetchone() == (1,)
    with database.connect("app_owner") as owner:
        owner.execute(
            "UPDATE foh.run SET finished_at = finished_at - interval '1 hour' WHERE kind = 'evaluate'"
        )
    again.wait_for_line(r"evaluated version")
    assert streamed.execute(evaluations).fetchone() == (2,)


def test_never_evaluates_unless_told_to(
    streamed: Connection, database: Database, watch: Callable[..., Watch]
) -> None:
    insert(streamed, range(600))
    watcher = watch(database.dsn(), "digits")
    watcher.wait_for_line(r"rows=600 ")
    insert(streamed, range(600, 700))
    watcher.wait_for_line(r"rows=100 ")
    found = streamed.execute("SELECT count(*) FROM foh.run WHERE kind = 'evaluate'").fetchone()
    assert found == (0,)


def test_gives_up_a_run_when_asked_to_stop(
    streamed: Connection, database: Database, watch: Callable[..., Watch]
) -> None:
    """Asked to stop in the middle, a run rolls back, and nothing is lost."""
    watcher, blocker = start_blocked(streamed, database, watch, "--grace=600")
    watcher.process.send_signal(signal.SIGTERM)
    blocker.rollback()
    assert watcher.join() == 0, watcher.said
    before = streamed.execute("SELECT version FROM foh.index").fetchone()
    assert (before == (1,)) == (waiting(streamed) == 600)
    assert violations(streamed) == []
    errors = streamed.execute("SELECT error FROM foh.run WHERE error IS NOT NULL").fetchall()
    assert errors == []
    update(database.dsn(), "digits")
    assert waiting(streamed) == 0
    assert violations(streamed) == []


def test_cancels_a_statement_that_takes_too_long_to_end(
    streamed: Connection, database: Database, watch: Callable[..., Watch]
) -> None:
    watcher, blocker = start_blocked(streamed, database, watch, "--grace=0.5")
    assert watcher.end() == 0, watcher.said
    assert "rolled back; nothing is lost" in watcher.said
    blocker.rollback()
    assert waiting(streamed) == 600
    assert violations(streamed) == []


def test_asked_twice_it_ends_at_once(
    streamed: Connection, database: Database, watch: Callable[..., Watch]
) -> None:
    watcher, blocker = start_blocked(streamed, database, watch, "--grace=600")
    watcher.process.send_signal(signal.SIGTERM)
    watcher.wait(lambda: watcher.get("/healthz")[1].find('"stopping": true') > 0)
    assert watcher.end() == 128 + signal.SIGTERM
    blocker.rollback()
    assert waiting(streamed) == 600
    assert violations(streamed) == []


def test_two_watchers_share_the_work(
    streamed: Connection, database: Database, watch: Callable[..., Watch]
) -> None:
    watchers = [watch(database.dsn(), "--all", "--batch-size=50") for _ in range(2)]
    for start in range(0, 1200, 100):
        insert(streamed, range(start, start + 100))
    # A run counts its rows when it has ended, a moment after the stream is empty.
    watchers[0].wait(lambda: sum(w.metric('foh_rows_total{index="digits"}') for w in watchers) >= 1200)
    assert sum(w.metric('foh_rows_total{index="digits"}') for w in watchers) == 1200
    assert waiting(streamed) == 0
    assert [w.end() for w in watchers] == [0, 0]
    assert violations(streamed) == []
    assert streamed.execute("SELECT count(*) FROM foh.run WHERE error IS NOT NULL").fetchone() == (0,)


def test_skips_an_index_that_is_locked_and_takes_it_afterwards(
    streamed: Connection, database: Database, watch: Callable[..., Watch]
) -> None:
    insert(streamed, range(100))
    other = database.connect("app_owner")
    session = Session(other)
    session.lock(*session.one("SELECT id, name FROM foh.index"))
    watcher = watch(database.dsn(), "digits")
    watcher.wait_for_line("skipped: .*another updater")
    watcher.wait(lambda: watcher.metric('foh_runs_skipped_total{index="digits"}') >= 2)
    assert watcher.said.count("skipped") == 1, "said once, not at every look"
    assert waiting(streamed) == 100
    other.close()
    watcher.wait(lambda: waiting(streamed) == 0)
    assert watcher.end() == 0


def test_an_index_in_trouble_does_not_hold_up_the_others(
    streamed: Connection, database: Database, watch: Callable[..., Watch]
) -> None:
    streamed.execute("CREATE TABLE other (id int PRIMARY KEY, embedding extensions.vector(64), label text)")
    streamed.execute("SELECT foh.create_index('aaa', 'other', 'embedding', 'label')")
    insert(streamed, range(50))
    streamed.execute("INSERT INTO other SELECT id, embedding, label FROM digit")
    streamed.execute("ALTER TABLE other RENAME COLUMN embedding TO moved")
    watcher = watch(database.dsn(), "--all")
    watcher.wait_for_line("index 'aaa': .*foh.refresh.*trying again")
    watcher.wait(lambda: waiting(streamed) == 0)
    assert watcher.metric('foh_run_errors_total{index="aaa"}') >= 1
    status, body = watcher.get("/healthz")
    assert status == 200
    assert "refresh" in json.loads(body)["indexes"]["aaa"]
    streamed.execute("SELECT foh.refresh('aaa')")
    watcher.wait_for_line("index 'aaa': version")
    assert watcher.end() == 0


def test_an_index_created_later_and_one_dropped(
    streamed: Connection, database: Database, watch: Callable[..., Watch]
) -> None:
    watcher = watch(database.dsn(), "--all")
    watcher.wait(lambda: 'index="digits"' in watcher.get("/metrics")[1])
    streamed.execute("CREATE TABLE other (id int PRIMARY KEY, embedding extensions.vector(2), label text)")
    streamed.execute("SELECT foh.create_index('later', 'other', 'embedding', 'label')")
    streamed.execute("INSERT INTO other VALUES (1, '[1,2]', 'a')")
    watcher.wait_for_line("index 'later': version 2, rows=1")
    streamed.execute("SELECT foh.drop_index('later')")
    watcher.wait(lambda: 'index="later"' not in watcher.get("/metrics")[1])
    assert watcher.end() == 0


def test_bad_names_are_refused_at_once(
    streamed: Connection, database: Database, watch: Callable[..., Watch]
) -> None:
    watcher = watch(database.dsn(), "digitz")
    assert watcher.join() == 1
    assert "there is no index 'digitz'" in watcher.said
    for arguments in ((), ("digits", "--all")):
        watcher = watch(database.dsn(), *arguments)
        assert watcher.join() == 2


def test_the_server_restarts_under_a_watcher(private_server: Server, watch: Callable[..., Watch]) -> None:
    data = private_server.execute(sql.SQL("SHOW data_directory")).fetchone()
    assert data is not None
    embedded = EmbeddedServer(data[0], private_server.version, SETTINGS)
    watched = Server(private_server.superuser_dsn, "watched")
    watched.create_template()
    watched.close()
    dsn = Database(watched, "watched").dsn("app_owner")
    with psycopg.connect(dsn, autocommit=True) as connection:
        create_table(connection)
        create_index(connection, options='{"learn_rows": 300}')
        insert(connection, range(300))
    watcher = watch(dsn, "--all")
    watcher.wait_for_line(r"rows=300 ")
    private_server.close()
    embedded.stop()
    watcher.wait(lambda: watcher.metric("foh_connection_errors_total") >= 2)
    assert watcher.metric("foh_connected") == 0
    embedded.start()
    watcher.wait_for_line("connected again")
    with psycopg.connect(dsn, autocommit=True) as connection:
        insert(connection, range(300, 700))
        watcher.wait(lambda: waiting(connection) == 0)
        assert violations(connection) == []
    assert watcher.end() == 0
    assert re_tries(watcher) >= 2


def re_tries(watcher: Watch) -> int:
    return sum("trying again in" in line for line in watcher.lines)
