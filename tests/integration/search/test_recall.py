"""The tests of pgvector's own indexes: ten of 10 000 random rows of three dimensions, at each point of an index's life."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg.updater import build, update

ROWS = 10_000
OPERATORS = {"cosine": "<=>", "l2": "<->", "ip": "<#>"}
QUERIES = np.random.default_rng(1).random((40, 3)).round(4).tolist()
EXACT = "SELECT array_agg(i) FROM (SELECT i FROM tst ORDER BY v OPERATOR(extensions.{}) %s::extensions.vector LIMIT 10) t"
FOUND = "SELECT array_agg(r.i) FROM foh.tst_search(%s::extensions.vector, 10, labels => 0) r"


def write(connection: psycopg.Connection[Any], first: int, rows: np.ndarray[Any, Any]) -> None:
    with connection.cursor().copy("COPY tst (i, v) FROM STDIN") as copy:
        for number, row in enumerate(rows.round(4).tolist(), start=first):
            copy.write_row((number, str(row)))


def recall(connection: psycopg.Connection[Any], distance: str) -> float:
    exact = EXACT.format(OPERATORS[distance])
    hits = 0
    for query in map(str, QUERIES):
        (expected,) = connection.execute(exact, [query]).fetchone() or ([],)
        (found,) = connection.execute(FOUND, [query]).fetchone() or ([],)
        assert len(found) == len(set(found)) == 10
        hits += len(set(expected) & set(found))
    return hits / (10 * len(QUERIES))


@pytest.mark.one_version
@pytest.mark.parametrize("distance", ["cosine", "l2", "ip"])
def test_recall(connection: psycopg.Connection[Any], distance: str) -> None:
    rows = np.random.default_rng(0).random((ROWS, 3))
    connection.execute("CREATE TABLE tst (i int PRIMARY KEY, v extensions.vector(3))")
    options = json.dumps({"exact_rows": 0})
    connection.execute(
        "SELECT foh.create_index('tst', 'tst', 'v', distance => %s, options => %s)", [distance, options]
    )
    write(connection, 0, rows[: ROWS // 2])
    build(connection, "tst")
    assert recall(connection, distance) >= 0.95
    write(connection, ROWS // 2, rows[ROWS // 2 :])
    assert recall(connection, distance) >= 0.95
    update(connection, "tst")
    assert recall(connection, distance) >= 0.95
    assert connection.execute("SELECT count(*) FROM foh.check('tst')").fetchone() == (0,)
