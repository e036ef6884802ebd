"""Homes stay true: a search by the vector of a row reads the list that the row is in, however the index came to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg.updater import build, maintain, refill, update
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]
DIMENSIONS = 16

INSERT = "INSERT INTO items SELECT unnest(%s::int[]), unnest(%s::text[])::extensions.vector"
UPDATE = """UPDATE items SET embedding = n.embedding::extensions.vector
            FROM unnest(%s::int[], %s::text[]) AS n (id, embedding) WHERE items.id = n.id"""
# How many rows are not in any of the lists that a search by their own vector reads.
ASTRAY = """
SELECT count(*) FROM items s JOIN foh.idx_item i ON i.key = s.id
WHERE i.home <> ALL (ARRAY(SELECT n.center FROM foh.idx_readby(s.embedding, %s) n))
"""


def some(rng: np.random.Generator, count: int, drift: float) -> list[str]:
    """Rows around forty places, which wander as `drift` grows."""
    places = np.random.default_rng(7).normal(size=(40, DIMENSIONS)) * 2
    places = places + drift * np.random.default_rng(8).normal(size=places.shape)
    rows = places[rng.integers(40, size=count)] + rng.normal(size=(count, DIMENSIONS))
    return ["[" + ",".join(f"{x:.5f}" for x in row) + "]" for row in rows]


@pytest.fixture
def table(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Connection:
    # A young index would be filled again as it grows; this one is to grow by splits, of lists and of areas.
    monkeypatch.setattr(refill, "YOUNG_ROWS", 0)
    monkeypatch.setattr(maintain, "SHORT_LIST", 8)
    monkeypatch.setattr(maintain, "LONG_LIST", 2.0)
    monkeypatch.setattr(maintain, "SHORT_AREA", 4)
    connection.execute(f"CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector({DIMENSIONS}))")
    connection.execute(
        """SELECT foh.create_index('idx', 'items', 'embedding', bits => 16,
                                   options => '{"geometry": 320, "exact_rows": 0, "learn_rows": 100000}')"""
    )
    return connection


def astray(connection: Connection, probes: int) -> int:
    found = connection.execute(ASTRAY, [probes]).fetchone()
    assert found is not None
    return int(found[0])


def counted(connection: Connection) -> tuple[int, int]:
    found = connection.execute(
        "SELECT (SELECT count(*) FROM foh.idx_center), (SELECT count(*) FROM foh.idx_area WHERE area > 0 AND part = 0)"
    ).fetchone()
    assert found is not None
    return found[0], found[1]


@pytest.mark.one_version
def test_after_growth_and_churn(table: Connection, database: Database) -> None:
    rng = np.random.default_rng(0)
    table.execute(INSERT, [list(range(400)), some(rng, 400, 0)])
    build(database.dsn(), "idx")
    # After a build the home of a row is one of the first lists that a search by its vector reads.
    assert astray(table, 4) == 0
    built = counted(table)
    for start in range(400, 4000, 600):
        table.execute(INSERT, [list(range(start, start + 600)), some(rng, 600, start / 4000)])
        update(database.dsn(), "idx")
    grown = counted(table)
    assert grown[0] > 3 * built[0]
    assert grown[1] > built[1]
    for n in range(8):
        changed = rng.choice(4000, 200, replace=False)
        table.execute(UPDATE, [changed.tolist(), some(rng, 200, 1 + n / 8)])
        update(database.dsn(), "idx")
    assert table.execute("SELECT count(*) FROM foh.idx_stream").fetchone() == (0,)
    # Lists are looked through one after the other, so a few rows may be off, by little.
    assert astray(table, 7) < 4
    assert astray(table, 16) == 0
    assert table.execute("SELECT * FROM foh.check('idx')").fetchall() == []
    for key, vector in table.execute("SELECT id, embedding::text FROM items WHERE id % 40 = 0").fetchall():
        found = table.execute("SELECT id FROM foh.idx_search(%s, 1, labels => 0)", [vector]).fetchone()
        assert found == (key,)


def test_check_counts_rows_that_a_search_by_their_vector_would_not_find(
    table: Connection, database: Database, superuser: Connection
) -> None:
    table.execute(INSERT, [list(range(1500)), some(np.random.default_rng(0), 1500, 0)])
    build(database.dsn(), "idx")
    assert table.execute("SELECT * FROM foh.check('idx')").fetchall() == []
    # Two lists that lie far apart change their centers.
    superuser.execute(
        """CREATE TEMP TABLE far AS
               SELECT c.center, c.geometry FROM (SELECT unnest(ids) AS center, unnest(geometry) AS geometry FROM foh.idx_area WHERE area > 0) c;
           CREATE TEMP TABLE pair AS
               SELECT a.center AS one, b.center AS other FROM far a, far b, foh.idx_center x, foh.idx_center y
               WHERE x.center = a.center AND y.center = b.center AND x.length > 0 AND y.length > 0
               ORDER BY bit_count(a.geometry # b.geometry) DESC LIMIT 1;
           UPDATE foh.idx_area SET ids = ARRAY(
               SELECT CASE u.center WHEN p.one THEN p.other WHEN p.other THEN p.one ELSE u.center END
               FROM unnest(ids) WITH ORDINALITY AS u (center, place), pair p ORDER BY u.place) WHERE area > 0"""
    )
    ((lengths,),) = superuser.execute(
        "SELECT sum(length) FROM foh.idx_center c, pair p WHERE c.center IN (p.one, p.other)"
    ).fetchall()
    [(promise, problem, key, _, detail)] = table.execute("SELECT * FROM foh.check('idx')").fetchall()
    assert (promise, problem) == (1, "a search by the vector of a row would not read its list")
    assert detail == f"{lengths} of 1500 rows"
    assert int(key) in range(1500)
