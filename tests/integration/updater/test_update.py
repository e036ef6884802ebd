from __future__ import annotations

from typing import Any

import psycopg
import pytest

from foh_pg.updater import build, update
from tests.digits import create_index, create_table, insert, precision, violations
from tests.postgres import Database

Connection = psycopg.Connection[Any]


@pytest.fixture
def streamed(connection: Connection) -> Connection:
    create_table(connection)
    create_index(connection, options='{"learn_rows": 300}')
    return connection


def waiting(connection: Connection) -> int:
    row = connection.execute("SELECT count(*) FROM foh.digits_stream").fetchone()
    assert row is not None
    return int(row[0])


def test_a_stream_from_nothing(streamed: Connection, database: Database) -> None:
    for start in range(0, 1500, 300):
        insert(streamed, range(start, start + 300))
        run = update(database.dsn(), "digits")
        assert run.rows == 300
        assert waiting(streamed) == 0
        assert violations(streamed) == []
    # Exact cosine has .89 on these 50 queries, the codes of this learner alone .81 to .85.
    assert precision(streamed, range(1600, 1650)) > 0.8


def test_deletes_updates_and_keys_that_come_again(streamed: Connection, database: Database) -> None:
    insert(streamed, range(900))
    update(database.dsn(), "digits")
    streamed.execute("DELETE FROM digit WHERE id % 3 = 0")
    streamed.execute("UPDATE digit SET id = id + 10000 WHERE id % 3 = 1")
    streamed.execute("UPDATE digit SET label = 'odd' WHERE id % 2 = 1 AND id < 1000")
    insert(streamed, range(0, 90, 3))
    streamed.execute("UPDATE digit SET embedding = NULL WHERE id = 3")
    assert violations(streamed) == []
    run = update(database.dsn(), "digits", batch_size=200)
    assert waiting(streamed) == 0
    assert not run.more
    assert violations(streamed) == []


def test_truncate(streamed: Connection, database: Database) -> None:
    insert(streamed, range(600))
    update(database.dsn(), "digits")
    streamed.execute("TRUNCATE digit")
    insert(streamed, range(100, 300))
    assert violations(streamed) == []
    update(database.dsn(), "digits")
    assert waiting(streamed) == 0
    assert violations(streamed) == []


def test_full(streamed: Connection, database: Database) -> None:
    insert(streamed, range(900))
    run = update(database.dsn(), "digits", full=True)
    assert run.rows_encoded == 900
    assert waiting(streamed) == 0
    assert violations(streamed) == []


def test_after_a_build(connection: Connection, database: Database) -> None:
    create_table(connection)
    insert(connection, range(1200))
    create_index(connection)
    build(database.dsn(), "digits")
    insert(connection, range(1200, 1500))
    connection.execute("DELETE FROM digit WHERE id < 100")
    run = update(database.dsn(), "digits")
    assert (run.from_version, run.to_version, run.rows) == (2, 3, 400)
    assert violations(connection) == []
    assert precision(connection, range(1600, 1650)) > 0.8
