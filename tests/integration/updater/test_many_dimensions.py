"""An index with labels of as many dimensions as a vector can have."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql

from foh_pg.postgres.binary_copy import INT4, Vector, copy_in
from foh_pg.updater import build, update
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]

DIMENSIONS = 16_000


@contextmanager
def bounded_memory(most: float) -> Iterator[None]:
    """Fail where the arrays of this process take more than `most` bytes at any moment."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most


def insert(connection: Connection, first: int, rows: int) -> None:
    rng = np.random.default_rng(first)
    label = rng.integers(3, size=rows)
    directions = np.random.default_rng(7).standard_normal((3, DIMENSIONS))
    vectors = (directions[label] + 3 * rng.standard_normal((rows, DIMENSIONS))).astype(np.float32)
    columns = [INT4, INT4, Vector(DIMENSIONS)]
    values = [np.arange(first, first + rows), label, vectors]
    copy_in(connection, sql.Identifier("wide"), ["id", "kind", "x"], columns, values)


@pytest.mark.one_version
def test_build_and_update(connection: Connection, database: Database) -> None:
    """The sums of the learner would have 2 GB, and its Cholesky ended the process."""
    connection.execute(
        f"CREATE TABLE wide (id int PRIMARY KEY, kind int, x extensions.vector({DIMENSIONS}), label text GENERATED ALWAYS AS ('k' || kind) STORED)"
    )
    insert(connection, 0, 100)
    connection.execute(
        """SELECT foh.create_index('wide', source => 'wide', embedding => 'x', labels => 'label', bits => 16,
                                   options => '{"learn_rows": 100, "held_out": 0}')"""
    )
    with bounded_memory(1e9):
        build(database.dsn(), "wide")
        insert(connection, 100, 100)
        update(database.dsn(), "wide")
    learned = connection.execute("SELECT learned FROM foh.model WHERE trained ORDER BY version").fetchall()
    assert learned == [(2,), (3,)]
    assert connection.execute("SELECT * FROM foh.check('wide')").fetchall() == []
    found = connection.execute(
        "SELECT id FROM foh.wide_search((SELECT x FROM wide WHERE id = 150), 3)"
    ).fetchall()
    assert found[0] == (150,)
    assert len(found) == 3
