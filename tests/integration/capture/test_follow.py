"""What happens to partitions without a trigger of ours firing: the next update follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from foh_pg.updater import update
from foh_pg.updater.follow import FOLLOW
from foh_pg.watcher.watch import Settings, Watcher
from tests.support.postgres import Database
from tests.support.recorded import (
    Connection,
    create_index,
    create_table,
    entries,
    insert,
    problems,
    text,
    vectors,
)

X = vectors(300)
LOW, HIGH = range(0, 40), range(100, 140)


@pytest.fixture
def items(connection: Connection, database: Database) -> Connection:
    create_table(connection, partitioned=True)
    create_index(connection, labels="tags", options={"exact_rows": 0, "learn_rows": 30})
    for key in (*LOW, *HIGH):
        insert(connection, key, X[key])
    update(database.dsn(), "idx")
    assert entries(connection) == []
    assert listed(connection) == {*LOW, *HIGH}
    return connection


def listed(connection: Connection) -> set[int]:
    return {key for (key,) in connection.execute("SELECT unnest(ids) FROM foh.idx_list")}


def found(connection: Connection, k: int = 200) -> set[int]:
    return {
        key for (key,) in connection.execute(f"SELECT id FROM foh.idx_search('{text(X[0])}', {k})").fetchall()
    }


def follow(connection: Connection) -> Any:
    (number,) = connection.execute("SELECT id FROM foh.index").fetchone() or (0,)
    return connection.execute(FOLLOW.replace("{id}", str(number))).fetchone()[0]


LOST = {
    "TRUNCATE": "TRUNCATE items_low",
    "DETACH": "ALTER TABLE items DETACH PARTITION items_low",
    "DROP": "DROP TABLE items_low",
}


@pytest.mark.parametrize("how", LOST)
def test_rows_that_went_with_a_partition(items: Connection, database: Database, how: str) -> None:
    items.execute(LOST[how].encode())
    # Searches read the table, and so are right before any update.
    assert found(items) == set(HIGH)
    run = update(database.dsn(), "idx")
    assert run.rows == len(LOW)
    assert "partitions were truncated" in run.notes[0]
    assert listed(items) == set(HIGH) == found(items)
    assert problems(items) == []
    # Once is enough.
    again = update(database.dsn(), "idx")
    assert (again.rows, again.notes) == (0, [])


@pytest.mark.parametrize("how", [*LOST.values(), "DELETE FROM items WHERE id < 100"])
def test_rows_that_are_gone_leave_all_lists_at_once(items: Connection, database: Database, how: str) -> None:
    items.execute(how.encode())
    # As many new rows as a batch takes, and one more, which waits for the next batch.
    for key in range(150, 161):
        insert(items, key, X[key])
    run = update(database.dsn(), "idx", batch_size=10)
    assert run.rows == len(LOW) + 11
    assert run.to_version == run.from_version + 2
    assert listed(items) == {*HIGH, *range(150, 161)}
    assert problems(items) == []


def test_labels_that_changed_are_read_in_batches_and_lost_rows_at_once(
    connection: Connection, database: Database
) -> None:
    """Where labels have a table of their own, both make entries of the same kind."""
    create_table(connection, partitioned=True)
    connection.execute("CREATE TABLE tag (id int, tag text)")
    labels = {"labels": "tag", "labels_from": "tag", "labels_key": "id"}
    create_index(connection, **labels, options={"exact_rows": 0, "learn_rows": 30})
    for key in (*LOW, *HIGH):
        insert(connection, key, X[key])
    update(database.dsn(), "idx")
    connection.execute("DROP TABLE items_low")
    run = update(database.dsn(), "idx", batch_size=10)
    assert (run.rows, run.to_version) == (len(LOW), run.from_version + 1)
    assert listed(connection) == set(HIGH) == found(connection)
    connection.execute("INSERT INTO tag SELECT n, 'a' FROM generate_series(100, 119) n")
    run = update(database.dsn(), "idx", batch_size=10)
    assert (run.rows, run.to_version) == (20, run.from_version + 2)
    assert problems(connection) == []


def test_a_row_that_came_again_after_it_was_deleted(items: Connection, database: Database) -> None:
    items.execute("DELETE FROM items WHERE id < 20")
    for key in range(20):
        insert(items, key, X[200 + key])
    # The deletions are taken in first, the rows in the batches after that.
    update(database.dsn(), "idx", batch_size=5)
    assert listed(items) == {*LOW, *HIGH} == found(items)
    assert problems(items) == []


def test_rows_that_waited_in_the_stream(items: Connection, database: Database) -> None:
    insert(items, 50, X[50])
    items.execute("UPDATE items SET embedding = %s WHERE id = 3", [text(X[200])])
    items.execute("TRUNCATE items_low")
    update(database.dsn(), "idx")
    assert listed(items) == set(HIGH) == found(items)
    assert problems(items) == []


def test_keys_that_come_again(items: Connection, database: Database) -> None:
    """Before the update, after it has looked, and in a transaction that is open meanwhile."""
    items.execute("TRUNCATE items_low")
    insert(items, 1, X[1])
    writer = database.connect(autocommit=False)
    insert(writer, 2, X[2])
    assert follow(items) == len(LOW) - 1
    writer.commit()
    insert(items, 3, X[3])
    assert found(items) == {1, 2, 3, *HIGH}
    update(database.dsn(), "idx")
    assert listed(items) == {1, 2, 3, *HIGH} == found(items)
    assert problems(items) == []


def test_rows_that_came_with_a_partition(items: Connection, database: Database) -> None:
    items.execute("ALTER TABLE items DETACH PARTITION items_high")
    update(database.dsn(), "idx")
    assert listed(items) == set(LOW)
    # Written while nobody watches.
    insert(items, 150, X[150], table="items_high")
    items.execute("UPDATE items_high SET embedding = %s WHERE id = 100", [text(X[250])])
    items.execute("ALTER TABLE items ATTACH PARTITION items_high FOR VALUES FROM (100) TO (MAXVALUE)")
    insert(items, 151, X[151])
    run = update(database.dsn(), "idx")
    assert run.rows == len(HIGH) + 2
    assert listed(items) == {*LOW, *HIGH, 150, 151} == found(items)
    assert problems(items) == []


def test_a_new_partition_costs_nothing(items: Connection, database: Database) -> None:
    """Empty when the update sees it, or filled through triggers: no row is looked at twice."""
    items.execute("DROP TABLE items_high")
    update(database.dsn(), "idx")
    items.execute("CREATE TABLE items_a PARTITION OF items FOR VALUES FROM (100) TO (120)")
    assert follow(items) == 0
    assert follow(items) is None
    items.execute("CREATE TABLE items_b PARTITION OF items FOR VALUES FROM (120) TO (140)")
    for key in HIGH:
        insert(items, key, X[key])
    assert follow(items) == 0
    assert update(database.dsn(), "idx").rows == len(HIGH)
    assert listed(items) == {*LOW, *HIGH}


def test_a_partition_of_a_partition(connection: Connection, database: Database) -> None:
    connection.execute(
        "CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(8)) PARTITION BY RANGE (id)"
    )
    connection.execute(
        "CREATE TABLE sub PARTITION OF items FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (id)"
    )
    connection.execute("CREATE TABLE s0 PARTITION OF sub FOR VALUES FROM (0) TO (50)")
    connection.execute("CREATE TABLE s1 PARTITION OF sub FOR VALUES FROM (50) TO (100)")
    create_index(connection, options={"exact_rows": 0})
    for key in range(30, 70):
        insert(connection, key, X[key])
    update(database.dsn(), "idx")
    connection.execute("TRUNCATE s1")
    update(database.dsn(), "idx")
    assert listed(connection) == set(range(30, 50))
    connection.execute("TRUNCATE sub")
    update(database.dsn(), "idx")
    assert listed(connection) == set()
    assert problems(connection) == []


def test_a_file_that_is_written_anew(items: Connection, database: Database) -> None:
    """VACUUM FULL looks like TRUNCATE from outside: nothing is missing."""
    items.execute("VACUUM FULL items_low")
    assert follow(items) == 0
    assert follow(items) is None
    assert update(database.dsn(), "idx").rows == 0


def test_text_keys_of_another_collation(connection: Connection, database: Database) -> None:
    connection.execute(
        'CREATE TABLE items (id text COLLATE "C" PRIMARY KEY, embedding extensions.vector(8)) PARTITION BY RANGE (id)'
    )
    connection.execute("CREATE TABLE items_a PARTITION OF items FOR VALUES FROM (MINVALUE) TO ('m')")
    connection.execute("CREATE TABLE items_z PARTITION OF items FOR VALUES FROM ('m') TO (MAXVALUE)")
    create_index(connection)
    for key in ("a", "b", "x", "y"):
        insert(connection, key, X[ord(key)])
    update(database.dsn(), "idx")
    connection.execute("TRUNCATE items_a")
    connection.execute("ALTER TABLE items DETACH PARTITION items_z")
    assert follow(connection) == 4
    connection.execute("ALTER TABLE items ATTACH PARTITION items_z FOR VALUES FROM ('m') TO (MAXVALUE)")
    assert follow(connection) == 2
    update(database.dsn(), "idx")
    assert {key for (key,) in connection.execute("SELECT unnest(ids) FROM foh.idx_list")} == {"x", "y"}
    assert problems(connection) == []


def test_labels_in_a_partitioned_table(connection: Connection, database: Database) -> None:
    create_table(connection)
    connection.execute("CREATE TABLE tag (id int, tag text) PARTITION BY LIST (tag)")
    connection.execute(
        "CREATE TABLE tag_a PARTITION OF tag FOR VALUES IN ('a'); CREATE TABLE tag_b PARTITION OF tag FOR VALUES IN ('b')"
    )
    create_index(
        connection,
        labels="tag",
        labels_from="tag",
        labels_key="id",
        options={"learn_rows": 20, "exact_rows": 0},
    )
    for key in range(40):
        insert(connection, key, X[key])
    connection.execute(
        "INSERT INTO tag SELECT n, CASE n % 2 WHEN 0 THEN 'a' ELSE 'b' END FROM generate_series(0, 39) n"
    )
    update(database.dsn(), "idx")
    before = marks(connection)
    connection.execute("TRUNCATE tag_a")
    update(database.dsn(), "idx")
    after = marks(connection)
    assert {key for key in before if before[key] != after[key]} == set(range(0, 40, 2))
    assert problems(connection) == []


def marks(connection: Connection) -> dict[int, str]:
    """The signatures of the labels in the lists, by key."""
    rows = connection.execute(
        "SELECT unnest(ids), substring(unnest(marks) FROM 1 FOR 64)::text FROM foh.idx_list"
    )
    return dict(rows.fetchall())


def test_an_index_without_a_record(items: Connection, superuser: Connection, database: Database) -> None:
    """Made by an earlier version, or restored from a dump, where all tables have other numbers."""
    for recorded in (None, '{"source": {"1": 0, "2": 2}, "labels": null}'):
        superuser.execute("UPDATE foh.updating SET partitions = %s", [recorded])
        assert update(database.dsn(), "idx").rows == 0
        items.execute("TRUNCATE items_low")
        assert update(database.dsn(), "idx").rows == len(LOW)
        for key in LOW:
            insert(items, key, X[key])
        update(database.dsn(), "idx")


def test_a_watcher_sees_it(items: Connection, database: Database) -> None:
    watcher = Watcher(lambda: database.connect(), Settings())
    assert [stream.waits for stream in watcher._poll()] == [False]
    items.execute("TRUNCATE items_low")
    assert [stream.waits for stream in watcher._poll()] == [True]
    watcher._round()
    assert [stream.waits for stream in watcher._poll()] == [False]
    assert listed(items) == set(HIGH)
    watcher._disconnect()


def test_an_updater_follows_too(items: Connection, database: Database, new_role: Callable[[], str]) -> None:
    role = new_role()
    items.execute(f"SELECT foh.grant(updater => '{role}')")
    items.execute("TRUNCATE items_low")
    assert update(database.dsn(role), "idx").rows == len(LOW)
    assert problems(items) == []


@pytest.mark.parametrize("arguments", ["filter => 'id < 100'", 'match => \'{"id": {"<": 100}}\''])
def test_a_condition_on_the_partition_key_reads_no_other_partition(items: Connection, arguments: str) -> None:
    items.execute("SELECT foh.alter_index('idx', include => '{id}')")
    update(items, "idx")
    query = f"SELECT id FROM foh.idx_search('{text(X[0])}', 10, {arguments})"
    with items.transaction():
        found = {key for (key,) in items.execute(query.encode()).fetchall()}
        read = dict(
            items.execute(
                "SELECT relname::text, coalesce(seq_scan, 0) + coalesce(idx_scan, 0) "
                "FROM pg_stat_xact_user_tables WHERE relname IN ('items_low', 'items_high')"
            ).fetchall()
        )
    assert len(found) == 10
    assert found <= set(LOW)
    assert read["items_low"] > 0
    assert read["items_high"] == 0
