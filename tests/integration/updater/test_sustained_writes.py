from __future__ import annotations

from typing import Any

import psycopg

from foh_pg.updater import update
from tests.support.digits import create_index, create_table, insert, violations
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]


def test_a_run_ends_although_rows_keep_coming(connection: Connection, database: Database) -> None:
    create_table(connection)
    create_index(connection, options='{"learn_rows": 100}')
    insert(connection, range(250))
    coming = iter(range(250, 1700))

    def write(phase: str, done: int, total: int) -> None:
        if phase == "switch" and done == 1:
            insert(connection, [next(coming) for _ in range(20)])

    run = update(database.dsn(), "digits", batch_size=100, progress=write)
    written = next(coming) - 250
    # The last batch of what was there is filled up with what came since.
    assert 250 <= run.rows <= 300
    assert connection.execute("SELECT count(*) FROM foh.digits_stream").fetchone() == (
        250 + written - run.rows,
    )
    assert violations(connection) == []
    assert update(database.dsn(), "digits").rows == 250 + written - run.rows
