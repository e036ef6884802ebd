"""Nothing that a search reads comes from TOAST: what is longer than a page stands in parts that fit one."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg.tables.page_parts import PAGE_BYTES, ROW_BYTES, filling_order, page_of
from foh_pg.updater import build, update
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]

KEYS = {
    "int": "n",
    "bigint": "n + 5000000000",
    "uuid": "md5(n::text)::uuid",
    "text": "left(repeat(md5(n::text), 3), 1 + n %% 90) || n",
}
READ_BY_SEARCHES = ("list", "area", "center", "quantizer", "projection")


def bytes_outside(connection: Connection) -> int:
    """How many bytes of the tables that a search reads are in TOAST."""
    found = connection.execute(
        """SELECT coalesce(sum(pg_relation_size(c.reltoastrelid)), 0)::bigint FROM pg_class c
           WHERE c.relnamespace = 'foh'::regnamespace AND c.reltoastrelid <> 0 AND c.relname = ANY (%s)""",
        [[f"idx_{name}" for name in READ_BY_SEARCHES]],
    ).fetchone()
    assert found is not None
    return int(found[0])


def full(connection: Connection) -> float:
    """Which share of the pages of lists is used."""
    found = connection.execute(
        "SELECT sum(pg_column_size(l.*) + 4)::float8 / pg_relation_size('foh.idx_list') FROM foh.idx_list l"
    ).fetchone()
    assert found is not None
    return float(found[0])


@pytest.mark.one_version(but={"kind": ["text"], "geometry": [2000]})
@pytest.mark.parametrize(
    ("kind", "geometry"),
    [
        ("int", 8),
        ("int", 2000),
        ("bigint", 640),
        ("uuid", 1536),
        ("text", 96),
        ("text", 2000),
    ],
)
def test_nothing_is_in_toast(connection: Connection, database: Database, kind: str, geometry: int) -> None:
    connection.execute(
        f"CREATE TABLE items (id {kind} PRIMARY KEY, embedding extensions.vector(8), tags text[])"
    )
    connection.execute(
        """SELECT foh.create_index('idx', 'items', 'embedding', labels => 'tags', bits => 64,
                                   options => jsonb_build_object('geometry', %s::int, 'centers', 40, 'exact_rows', 0))""",
        [geometry],
    )
    rows = f"""INSERT INTO items SELECT {KEYS[kind]}, ARRAY[sin(n), cos(n), sin(2 * n), cos(3 * n), sin(5 * n), cos(7 * n), sin(n / 9.0), n %% 3]
              ::extensions.vector, ARRAY['t' || n %% 5] FROM generate_series(%s::int, %s::int) n"""
    connection.execute(rows, [1, 2500])
    build(database.dsn(), "idx")
    assert bytes_outside(connection) == 0
    # Where a list has little more than one part of long entries, no other part fits beside either.
    assert full(connection) > (0.85 if kind in ("int", "bigint") else 0.6)
    connection.execute(rows, [2501, 4000])
    connection.execute("DELETE FROM items WHERE hashtext(id::text) % 7 = 0")
    connection.execute("UPDATE items SET embedding = '[1,2,3,4,5,6,7,8]' WHERE hashtext(id::text) % 3 = 0")
    update(database.dsn(), "idx")
    assert bytes_outside(connection) == 0
    assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []
    parts, longest = connection.execute(
        "SELECT max(part), max(pg_column_size(l.*)) FROM foh.idx_list l"
    ).fetchone() or (0, 0)
    # Rows that are all alike make one list, and its parts are full.
    assert parts > 0
    assert longest > 7500


def test_entries_stay_together_and_fit_a_page() -> None:
    rng = np.random.default_rng(0)
    for most in (50, 900, 5000, 9000):
        groups = np.sort(rng.integers(0, 5, 400))
        sizes = rng.integers(1, most, 400)
        pages = page_of(groups, sizes)
        for group in range(5):
            mine, found = sizes[groups == group], pages[groups == group]
            assert found[0] == 0
            assert set(np.diff(found).tolist()) <= {0, 1}
            for page in range(int(found[-1]) + 1):
                inside = mine[found == page]
                assert inside.sum() <= PAGE_BYTES or len(inside) == 1
                some = inside[rng.random(len(inside)) < 0.7]
                assert len(some) < 2 or page_of(np.zeros(len(some)), some).max() == 0


def test_parts_in_filling_order_leave_little_room() -> None:
    rng = np.random.default_rng(0)
    for most in (300, 3000, PAGE_BYTES):
        sizes = rng.integers(1, most, 3000)
        order = filling_order(sizes)
        assert np.array_equal(np.sort(order), np.arange(3000))
        pages, free = 0, 0
        for size in sizes[order].tolist():
            needed = size + ROW_BYTES
            if needed > free:
                pages, free = pages + 1, PAGE_BYTES + ROW_BYTES
            free -= needed
        used = int(sizes.sum()) + 3000 * ROW_BYTES
        assert used > 0.95 * pages * (PAGE_BYTES + ROW_BYTES)
    assert len(filling_order(np.zeros(0, dtype=np.int64))) == 0
