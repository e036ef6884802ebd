from __future__ import annotations

from typing import Any

import psycopg
import pytest

from foh_pg.updater import build
from tests.support.digits import (
    HELD_OUT,
    create_index,
    create_table,
    digits,
    gain,
    insert,
    precisions,
    unlearned_precisions,
    vector,
    violations,
)
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]


@pytest.fixture
def table(connection: Connection) -> Connection:
    create_table(connection)
    insert(connection, range(1500))
    return connection


def status(connection: Connection) -> tuple[Any, ...]:
    row = connection.execute("SELECT status, version FROM foh.index WHERE name = 'digits'").fetchone()
    assert row is not None
    return row


def test_places_and_trains(table: Connection, database: Database) -> None:
    create_index(table)
    assert status(table) == ("building", 1)
    run = build(database.dsn(), "digits")
    assert (run.rows, run.to_version) == (1500, 2)
    assert status(table) == ("ready", 2)
    assert violations(table) == []
    # A classifier that is linear, as these hash functions are, finds the label of .87 of these rows.
    learned, error = gain(
        precisions(table, HELD_OUT, shortlist=0), unlearned_precisions(range(1500), HELD_OUT)
    )
    assert learned > 2 * error
    trained, fallback = table.execute(
        "SELECT m.trained, e.value FROM foh.model m, foh.digits_explain(%s::extensions.vector) e"
        " WHERE m.version = 2 AND e.step = 'fallback'",
        [vector(digits()[0][1600])],
    ).fetchone()
    assert (trained, fallback) == (True, "none")
