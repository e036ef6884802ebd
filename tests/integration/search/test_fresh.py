"""Entries of the stream that are the first of their key: a search need not look for a newer one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.support.postgres import Database
from tests.support.shop import Shop, text, vectors

QUERY = vectors(1, seed=5)[0]
NEW = vectors(40, seed=3)


def fresh(shop: Shop) -> list[tuple[int, str, bool]]:
    return shop.run("SELECT key, op, fresh FROM {stream} ORDER BY seq").fetchall()


def found(shop: Shop) -> Counter[int]:
    """Every key that a search of all lists returns, and how often: for as many as there are, so that lists answer."""
    count = shop.run("SELECT count(embedding) FROM {source}").fetchone()[0]
    rows = shop.search(QUERY, count, probes=100, shortlist=0)
    # Of what the lists answered by bits there is no distance.
    assert any(row[1] is None for row in rows)
    return Counter(row[0] for row in rows)


def once(keys: object) -> Counter[int]:
    return Counter(list(keys))  # type: ignore[call-overload]


def test_rows_with_new_keys(shop: Shop) -> None:
    shop.fill([200, 201], NEW[:2])
    assert fresh(shop) == [(200, "u", True), (201, "u", True)]
    assert found(shop) == once(range(202))
    # The nearest of all is in the stream.
    shop.fill([202], [QUERY])
    assert shop.found(QUERY, 3, shortlist=0)[0] == shop.found(QUERY, 3)[0] == 202


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {source} SET embedding = %(x)s WHERE {key} = 7",
        "DELETE FROM {source} WHERE {key} = 7",
        "INSERT INTO {source} ({key}, embedding) VALUES (7, %(x)s) ON CONFLICT ({key}) DO UPDATE SET embedding = excluded.embedding",
        "UPDATE {source} SET {key} = 300 WHERE {key} = 7",
        "WITH gone AS (DELETE FROM {source} WHERE {key} = 7 RETURNING {key}) INSERT INTO {source} ({key}, embedding) SELECT 301, %(x)s FROM gone",
    ],
)
def test_what_replaces_something_is_not(shop: Shop, change: str) -> None:
    shop.fill([200], NEW[:1])
    shop.run(change, {"x": text(NEW[1])})
    assert not all(entry[2] for entry in fresh(shop))
    present = [row[0] for row in shop.run("SELECT {key} FROM {source}")]
    assert found(shop) == once(present)


def test_a_key_that_comes_again(shop: Shop) -> None:
    """Whether the lists had it, or only the stream."""
    shop.fill([200], NEW[:1])
    for key in (7, 200):
        shop.run("DELETE FROM {source} WHERE {key} = %s", [key])
        shop.fill([key], [QUERY])
    assert fresh(shop) == [
        (200, "u", True),
        (7, "d", False),
        (7, "u", False),
        (200, "d", False),
        (200, "u", False),
    ]
    assert found(shop) == once(range(201))


def test_rows_that_a_switch_reads_while_their_entries_stay(shop: Shop) -> None:
    """As a build does, whose rows were written while it went on: lists and stream then have the same keys."""
    shop.fill([200, 201], NEW[:2])
    shop.install(centers=8, consume=False)
    assert all(entry[2] for entry in fresh(shop))
    assert found(shop) == once(range(202))
    # So does what is written after it, beside what was written before.
    shop.fill([202], NEW[2:3])
    assert found(shop) == once(range(203))


def test_a_writer_in_flight_across_a_switch(shop: Shop, database: Database) -> None:
    writer = shop.seen_by(database.connect("app_owner", autocommit=False))
    writer.fill([200], NEW[:1])
    shop.install(centers=8)
    writer.connection.commit()
    assert found(shop) == once(range(201))


def test_a_writer_whose_snapshot_is_old(shop: Shop, database: Database) -> None:
    """It cannot see that its key was there and went, so it says nothing of it."""
    writer = shop.seen_by(database.connect("app_owner", autocommit=False))
    writer.execute_text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    writer.execute_text("SELECT 1")
    shop.fill([200], NEW[:1])
    shop.run("DELETE FROM {source} WHERE {key} = 200")
    writer.fill([200], [QUERY])
    writer.connection.commit()
    assert [entry[2] for entry in fresh(shop)] == [True, False, False]
    assert found(shop) == once(range(201))
    # And whether lists have it since.
    late = shop.seen_by(database.connect("app_owner", autocommit=False))
    late.execute_text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    late.execute_text("SELECT 1")
    shop.fill([201], NEW[1:2])
    shop.install(centers=8)
    shop.run("DELETE FROM {source} WHERE {key} = 201")
    late.fill([201], [QUERY])
    late.connection.commit()
    assert found(shop) == once(range(202))


def test_a_rolled_back_savepoint(shop: Shop) -> None:
    with shop.connection.transaction():
        shop.execute_text("SAVEPOINT one")
        shop.fill([200], NEW[:1])
        shop.execute_text("ROLLBACK TO SAVEPOINT one")
        shop.fill([200], NEW[1:2])
    assert fresh(shop) == [(200, "u", True)]
    assert found(shop) == once(range(201))


def test_text_keys_of_another_collation(new_shop) -> None:
    shop = new_shop(key_type='text COLLATE "C"')
    base = vectors(20)
    shop.fill([f"k{n}" for n in range(20)], base)
    assert all(entry[2] for entry in fresh(shop))
    shop.run("UPDATE {source} SET embedding = %s WHERE {key} = 'k3'", [text(QUERY)])
    assert fresh(shop)[-1] == ("k3", "u", False)


def test_the_order_of_lists_and_stream(shop: Shop) -> None:
    """Distances of both are compared: the answer is that of a search that looks for newer entries."""
    shop.fill(range(200, 240), NEW)
    plain = shop.search(QUERY, 30, probes=100, shortlist=0)
    # A row that is far from the query, written again as it was, makes the stream an ordinary one.
    far = max(shop.search(QUERY, 240, probes=100, shortlist=0), key=lambda row: row[2])[0]
    shop.run("UPDATE {source} SET embedding = embedding WHERE {key} = %s", [far])
    shop.run("UPDATE {stream} SET fresh = false")
    again = shop.search(QUERY, 30, probes=100, shortlist=0)
    assert [row[2] for row in plain] == [row[2] for row in again]
    assert np.all(np.diff([row[2] for row in plain]) >= 0)


@pytest.mark.parametrize("key", [7, 200])
def test_check_finds_a_wrong_mark(shop: Shop, key: int) -> None:
    """Of a key that a list has, and of one that only the stream has."""
    shop.fill([200], NEW[:1])
    shop.run("UPDATE {source} SET embedding = %s WHERE {key} = %s", [text(NEW[1]), key])
    assert shop.violations() == []
    shop.run("UPDATE {stream} SET fresh = true WHERE key = %s", [key])
    found = [row[1:3] for row in shop.violations()]
    assert found == [("an entry of the stream is marked as the first of its key, and is not", str(key))]
