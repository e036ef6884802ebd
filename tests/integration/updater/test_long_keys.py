"""One long key makes the state of an index longer by itself, and by no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg.tables.keys import Keys
from foh_pg.updater import update
from tests.postgres import Database


@pytest.mark.parametrize("labels", [None, "tags"])
def test_the_state_stays_small(
    connection: psycopg.Connection[Any], database: Database, labels: str | None
) -> None:
    connection.execute(
        "CREATE TABLE items (id text PRIMARY KEY, embedding extensions.vector(3), tags text[])"
    )
    connection.execute(
        "SELECT foh.create_index('idx', 'items', 'embedding', labels => %s, bits => 16)", [labels]
    )
    connection.execute(
        """INSERT INTO items SELECT 'k' || n, ARRAY[cos(n), sin(n), n % 17]::extensions.vector, ARRAY['a']
           FROM generate_series(1, 3000) n"""
    )
    update(database.dsn(), "idx")
    connection.execute("INSERT INTO items VALUES (repeat('x', 50000), '[1,2,3]', '{a}')")
    size = "SELECT sum(length(data)) FROM foh.model_state WHERE version = 0"
    for n in range(3):
        connection.execute("INSERT INTO items VALUES (%s, '[1,2,3]', '{a}')", [f"more {n}"])
        update(database.dsn(), "idx")
        stored = connection.execute(size).fetchone()
        assert stored is not None
        # 3 000 short keys, some of them twice, and the long one: in an array of one width they took 600 MB.
        assert stored[0] < 500_000
    if labels is None:
        # Nobody will learn from them: none waits.
        assert stored[0] < 100_000
    connection.execute("DELETE FROM items WHERE length(id) > 100")
    update(database.dsn(), "idx")
    assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("text", ["", "a", "ü" * 100, "k 1"]),
        ("character varying", []),
        ("bigint", [3, -(2**62), 0]),
    ],
)
def test_come_back_as_they_were(kind: str, keys: list[Any]) -> None:
    known = Keys(kind)
    packed = known.pack("some", known.read(keys) if keys else known.empty())
    assert all(array.dtype != object for array in packed.values())
    assert known.unpack("some", packed).tolist() == keys


def test_as_earlier_versions_saved_them() -> None:
    assert Keys("text").unpack("some", {"some": np.array(["a", "bc"])}).tolist() == ["a", "bc"]
