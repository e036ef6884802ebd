"""Rows whose embeddings are so long that squares of them overflow: found by every search, part of no model."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg.rows import dict_row

from foh_pg.doctor import examine
from foh_pg.postgres.connect import connect
from foh_pg.updater import build, rebuild, update
from tests.support.digits import create_index, create_table, digits, insert, vector, waiting
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]

FAR = [10, 20, 30, 40, 50]
PROBLEM = "the embedding of a row is longer than 1e18: the row takes no part in models and lists, and every search reads it"


def far_vector(i: int, length: float = 1e38) -> str:
    direction = np.random.default_rng(i).choice([-1.0, 1.0], 64)
    return vector(length * direction)


def make_far(connection: Connection, keys: list[int], length: float = 1e38) -> None:
    for i in keys:
        connection.execute("UPDATE digit SET embedding = %s WHERE id = %s", [far_vector(i, length), i])


def check(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT problem, key FROM foh.check('digits') ORDER BY 1, key::int").fetchall()


def search(connection: Connection, query: str, k: int) -> list[int]:
    return [key for (key,) in connection.execute("SELECT id FROM foh.digits_search(%s, %s)", [query, k])]


def assert_found(connection: Connection, rows: int) -> None:
    """Every far row answers a query that equals it, an ordinary query is answered by ordinary rows, all rows come back."""
    for i in FAR:
        assert search(connection, far_vector(i), 1) == [i]
    assert not set(search(connection, vector(digits()[0][1]), 10)) & set(FAR)
    assert len(set(search(connection, vector(digits()[0][1]), rows))) == rows


@pytest.mark.parametrize("labels", ["label", None])
def test_build_update_and_rebuild(connection: Connection, database: Database, labels: str | None) -> None:
    create_table(connection)
    insert(connection, range(1200))
    make_far(connection, FAR[:3])
    create_index(connection, labels=labels, distance="l2", options='{"learn_rows": 300}')
    build(database.dsn(), "digits")
    make_far(connection, FAR[3:])
    assert_found(connection, 1200)
    insert(connection, range(1200, 1600))
    for run in (update, update, rebuild):
        run(database.dsn(), "digits")
        assert waiting(connection) == 0
        assert_found(connection, 1600)
        assert check(connection) == [(PROBLEM, str(i)) for i in FAR]
        assert connection.execute("SELECT * FROM foh.repair('digits')").fetchone() == (0, 0, 0)
    (longest,) = connection.execute(
        "SELECT max(extensions.vector_norm(mean)) FROM foh.model WHERE index > 0"
    ).fetchone() or (None,)
    assert longest < 1e3
    connection.execute("DELETE FROM digit WHERE id = 10")
    connection.execute("UPDATE digit SET embedding = %s WHERE id = 20", [vector(digits()[0][20])])
    assert search(connection, vector(digits()[0][20]), 1) == [20]
    update(database.dsn(), "digits")
    assert check(connection) == [(PROBLEM, str(i)) for i in FAR[2:]]
    assert search(connection, vector(digits()[0][20]), 1) == [20]
    assert 10 not in search(connection, far_vector(10), 1599)


def test_they_come_first_by_inner_product(connection: Connection, database: Database) -> None:
    """Every fiftieth row is far: each search ranks all of them exactly."""
    create_table(connection)
    insert(connection, range(1200))
    create_index(connection, distance="ip", labels=None, options='{"exact_rows": 0}')
    far = list(range(0, 1200, 50))
    make_far(connection, far, 1e30)
    build(database.dsn(), "digits")
    query = digits()[0][1600] - 8
    expected = connection.execute(
        "SELECT id FROM digit ORDER BY embedding OPERATOR(extensions.<#>) %s::extensions.vector LIMIT 5",
        [vector(query)],
    ).fetchall()
    assert set(expected) <= {(i,) for i in far}
    assert search(connection, vector(query), 5) == [i for (i,) in expected]
    insert(connection, range(1200, 1210))
    update(database.dsn(), "digits")
    assert search(connection, vector(query), 5) == [i for (i,) in expected]


@pytest.mark.parametrize("distance", ["l2", "ip", "cosine"])
def test_writes_and_searches_with_folded_dimensions(connection: Connection, distance: str) -> None:
    """Where several numbers share a bit they are added up, and the sum would be infinite."""
    connection.execute("CREATE TABLE wide (id int PRIMARY KEY, x extensions.vector(2100))")
    connection.execute(
        "SELECT foh.create_index('wide', source => 'wide', embedding => 'x', distance => %s, options => '{\"exact_rows\": 0}')",
        [distance],
    )
    fill = "INSERT INTO wide SELECT n, array_fill(%s::real, ARRAY[2100])::extensions.vector FROM generate_series(%s::int, %s) n"
    connection.execute(fill, [1.0, 1, 20])
    connection.execute(fill, [3e38, 21, 22])
    found = connection.execute(
        "SELECT id FROM foh.wide_search((SELECT x FROM wide WHERE id = 21), 22)"
    ).fetchall()
    assert len(found) == 22
    problems = connection.execute("SELECT key FROM foh.check('wide') ORDER BY key").fetchall()
    assert problems == [("21",), ("22",)]


def test_the_doctor_names_them(connection: Connection, database: Database) -> None:
    create_table(connection)
    insert(connection, range(300))
    create_index(connection, distance="l2")
    make_far(connection, FAR)
    build(database.dsn(), "digits")
    with connect(database.dsn()) as session:
        session.row_factory = dict_row
        (finding,) = [found for found in examine(session).findings if found.check == "rows"]
    assert finding.found.startswith("5 rows")
    assert "key 10, 20, 30, ..." in finding.found
