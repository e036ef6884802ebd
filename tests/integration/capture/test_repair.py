"""foh.repair finds what no trigger saw, and undoes nobody's write."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from tests.support.postgres import Database
from tests.support.recorded import (
    BITS,
    Connection,
    add_centers,
    codes,
    create_index,
    create_table,
    entries,
    expected_codes,
    insert,
    newest,
    problems,
    text,
    vectors,
)

X = vectors(100)


@pytest.fixture
def items(connection: Connection) -> Connection:
    create_table(connection)
    create_index(connection)
    for key in range(6):
        insert(connection, key, X[key])
    return connection


def repair(connection: Connection) -> tuple[int, ...]:
    found = connection.execute("SELECT missing, gone, changed FROM foh.repair('idx')").fetchone()
    assert found is not None
    return found


def as_lists(connection: Connection) -> None:
    """Move what the stream holds into one list, as an updater would."""
    add_centers(connection, X[:1])
    connection.execute(
        """INSERT INTO foh.idx_list SELECT 1, 0, array_agg(key), array_agg(geometry), array_agg(marks) FROM foh.idx_stream;
           INSERT INTO foh.idx_item SELECT key, 1 FROM foh.idx_stream;
           UPDATE foh.idx_center SET length = (SELECT count(*) FROM foh.idx_stream);
           DELETE FROM foh.idx_stream"""
    )


def test_nothing_to_do(items: Connection) -> None:
    before = entries(items)
    assert repair(items) == (0, 0, 0)
    assert entries(items) == before


@pytest.mark.parametrize("listed", [False, True])
def test_writes_without_triggers(items: Connection, superuser: Connection, listed: bool) -> None:
    if listed:
        as_lists(items)
    superuser.execute("SET session_replication_role = replica")
    insert(superuser, 10, X[10])
    insert(superuser, 11, None)
    superuser.execute("UPDATE items SET embedding = %s WHERE id = 1", [text(-X[1])])
    superuser.execute("UPDATE items SET embedding = NULL WHERE id = 2")
    superuser.execute("DELETE FROM items WHERE id = 3")
    superuser.execute("UPDATE items SET id = 14 WHERE id = 4")
    assert problems(items) != []
    assert repair(items) == (2, 3, 1)
    queued = {entry.key: entry[2:] for entry in entries(items) if entry.version == 0}
    assert queued == dict.fromkeys([10, 14, 2, 3, 4, 1], ("u", 0, 0, None))
    assert problems(items) == []
    assert repair(items) == (0, 0, 0)


def test_a_truncate_without_triggers(items: Connection, superuser: Connection) -> None:
    as_lists(items)
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("TRUNCATE items")
    assert repair(items) == (0, 6, 0)
    assert problems(items) == []


def test_after_a_truncate_that_was_seen(items: Connection, superuser: Connection) -> None:
    as_lists(items)
    items.execute("TRUNCATE items")
    superuser.execute("SET session_replication_role = replica")
    insert(superuser, 3, X[3])
    assert repair(items) == (1, 0, 0)
    assert codes(items) == {3: None}


def test_deferred_rows_are_left_to_the_updater(items: Connection) -> None:
    items.execute("SET foh.defer = on")
    insert(items, 10, X[10])
    items.execute("DELETE FROM items WHERE id = 1")
    assert repair(items) == (0, 0, 0)


def test_undoes_no_write_that_commits_meanwhile(
    items: Connection, superuser: Connection, database: Database
) -> None:
    """The writer's entry has the lower sequence number and is invisible when the tables are compared."""
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE items SET embedding = %s WHERE id IN (1, 2)", [text(-X[1])])
    superuser.execute("DELETE FROM items WHERE id = 3")
    writer = database.connect(autocommit=False)
    writer.execute("UPDATE items SET embedding = %s WHERE id = 1", [text(X[50])])
    writer.execute("DELETE FROM items WHERE id = 2")
    insert(writer, 3, X[51])
    assert repair(items) == (0, 1, 2)
    writer.commit()
    # Such an entry says: look at the row. It holds no code and no tombstone that could be wrong.
    assert {key: newest(items)[key][2:] for key in (1, 2, 3)} == dict.fromkeys((1, 2, 3), ("u", 0, 0, None))
    assert problems(items) == []


def test_always_needs_no_repair(connection: Connection, superuser: Connection) -> None:
    """Row triggers that are enabled ALWAYS fire on a replica as well."""
    create_table(connection)
    create_index(connection, options={"triggers": "always"})
    superuser.execute("SET session_replication_role = replica")
    insert(superuser, 1, X[1])
    superuser.execute("UPDATE items SET embedding = %s", [text(X[2])])
    assert codes(connection) == expected_codes(connection, {1: X[2]})
    superuser.execute("TRUNCATE items")
    assert codes(connection) == {}
    assert problems(connection) == []


def test_always_and_partitions(connection: Connection, superuser: Connection) -> None:
    """TRUNCATE of the table is seen. Of partitions it is not, and repair cures it."""
    create_table(connection, partitioned=True)
    create_index(connection, options={"triggers": "always"})
    superuser.execute("SET session_replication_role = replica")
    for key in (1, 150):
        insert(superuser, key, X[1])
    assert set(codes(connection)) == {1, 150}
    superuser.execute("TRUNCATE items")
    assert codes(connection) == {}
    assert problems(connection) == []
    for key in (1, 150):
        insert(superuser, key, X[1])
    # As it comes from a publication without publish_via_partition_root: both partitions, by their names.
    superuser.execute("TRUNCATE items_low, items_high")
    assert connection.execute(f"SELECT id FROM foh.idx_search('{text(X[1])}', 5)").fetchall() == []
    assert len(problems(connection)) == 2
    assert repair(connection) == (0, 2, 0)
    assert problems(connection) == []


def test_codes_that_are_stale_are_left_to_the_updater(items: Connection) -> None:
    """What foh.check allows, repair does not queue: searches would read the table for these rows."""
    as_lists(items)
    flipped = "1" * 6 + "0" * (BITS - 6)
    items.execute("UPDATE foh.idx_list SET marks[1] = marks[1] # %s::text::bit varying", [flipped])
    assert problems(items) == []
    assert repair(items) == (0, 0, 0)
    assert entries(items) == []


def test_of_several_homes(items: Connection, superuser: Connection) -> None:
    """A row that is in several lists is queued once."""
    as_lists(items)
    items.execute("INSERT INTO foh.idx_list SELECT 2, 0, ids, geometry, marks FROM foh.idx_list")
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("DELETE FROM items WHERE id = 1")
    assert repair(items) == (0, 1, 0)
    assert len(entries(items)) == 1


class TestRefusals:
    def test_before_the_build(self, connection: Connection) -> None:
        create_table(connection)
        insert(connection, 1, X[1])
        create_index(connection)
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match="index 'idx' has not been built"):
            repair(connection)

    def test_after_an_alter(self, items: Connection) -> None:
        items.execute("ALTER TABLE items RENAME COLUMN embedding TO vec")
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match=r"run SELECT foh\.refresh\('idx'\)"):
            repair(items)

    def test_an_unknown_index(self, connection: Connection) -> None:
        with pytest.raises(psycopg.errors.UndefinedObject, match="there is no index 'idx'"):
            repair(connection)
