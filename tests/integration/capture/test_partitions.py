"""Partitioned sources: written through the parent or directly, now and in partitions to come."""

from __future__ import annotations

import pytest

from tests.support.recorded import (
    Connection,
    codes,
    create_index,
    create_table,
    expected_codes,
    insert,
    newest,
    problems,
    text,
    vectors,
)

X = vectors(200)


@pytest.fixture
def items(connection: Connection) -> Connection:
    create_table(connection, partitioned=True)
    create_index(connection, labels="tags")
    return connection


def test_writes_to_a_partition(items: Connection) -> None:
    insert(items, 1, X[1], table="items_low")
    insert(items, 150, X[150], table="items_high")
    items.execute("UPDATE items_high SET embedding = %s", [text(X[2])])
    assert codes(items) == expected_codes(items, {1: X[1], 150: X[2]})
    items.execute("DELETE FROM items_low")
    assert codes(items) == expected_codes(items, {150: X[2]})
    assert problems(items) == []


def test_a_row_moves_to_another_partition(items: Connection) -> None:
    insert(items, 1, X[1])
    items.execute("UPDATE items SET id = 150")
    assert codes(items) == expected_codes(items, {150: X[1]})
    assert newest(items)[1].op == "d"


def test_partitions_to_come(items: Connection) -> None:
    items.execute("DROP TABLE items_high")
    items.execute("CREATE TABLE items_new PARTITION OF items FOR VALUES FROM (100) TO (150)")
    items.execute(
        "CREATE TABLE items_late (embedding extensions.vector(8), id int NOT NULL, note int, tags text[])"
    )
    items.execute("ALTER TABLE items ATTACH PARTITION items_late FOR VALUES FROM (150) TO (200)")
    insert(items, 100, X[100])
    insert(items, 160, X[160], table="items_late")
    assert codes(items) == expected_codes(items, {100: X[100], 160: X[160]})
    assert problems(items) == []


def test_partitions_of_partitions(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(8)) PARTITION BY RANGE (id)"
    )
    connection.execute(
        "CREATE TABLE sub PARTITION OF items FOR VALUES FROM (0) TO (100) PARTITION BY HASH (id)"
    )
    for remainder in (0, 1):
        connection.execute(
            f"CREATE TABLE s{remainder} PARTITION OF sub FOR VALUES WITH (MODULUS 2, REMAINDER {remainder})"
        )
    create_index(connection)
    insert(connection, 1, X[1])
    insert(connection, 2, X[2], table="sub")
    connection.execute("UPDATE sub SET id = id + 10")
    assert codes(connection) == expected_codes(connection, {11: X[1], 12: X[2]})
    connection.execute("TRUNCATE items")
    assert codes(connection) == {}


def test_what_triggers_do_not_see(items: Connection) -> None:
    """TRUNCATE of a partition, DETACH and ATTACH fire nothing of the parent's; repair finds out."""
    for key in (1, 2, 150, 151):
        insert(items, key, X[key])
    items.execute("TRUNCATE items_low")
    assert {problem for problem, _, _ in problems(items)} == {
        "the stream holds a row that is gone from the source"
    }
    assert items.execute("SELECT * FROM foh.repair('idx')").fetchone() == (0, 2, 0)
    assert problems(items) == []
    items.execute("ALTER TABLE items DETACH PARTITION items_high")
    assert items.execute(
        "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'items_high'::regclass"
    ).fetchone() == (0,)
    insert(items, 152, X[152], table="items_high")
    assert items.execute("SELECT * FROM foh.repair('idx')").fetchone() == (0, 2, 0)
    assert problems(items) == []
    items.execute("ALTER TABLE items ATTACH PARTITION items_high FOR VALUES FROM (100) TO (MAXVALUE)")
    assert items.execute("SELECT * FROM foh.repair('idx')").fetchone()[0] in (1, 3)
    assert problems(items) == []
    items.execute("UPDATE items SET embedding = %s WHERE id = 152", [text(X[3])])
    assert newest(items)[152].code == expected_codes(items, {1: X[3]})[1]
