"""Many writers, and an updater beside them: nobody waits because of us, and nothing is lost or mixed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Condition, Event
from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg.updater import update
from tests.support.postgres import Database
from tests.support.recorded import (
    Connection,
    add_centers,
    codes,
    create_index,
    create_table,
    entries,
    expected_code,
    expected_codes,
    insert,
    newest,
    problems,
    projection,
    text,
    vectors,
)
from tests.support.waiting import PATIENCE

X = vectors(400)

# Locks that somebody waits for. Relation extension is the heap's own affair, not ours.
WAITING = """SELECT locktype, relation::regclass::text, mode FROM pg_locks
             WHERE NOT granted AND locktype <> 'extend'
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""


@pytest.fixture
def items(connection: Connection) -> Connection:
    create_table(connection)
    create_index(connection, labels="tags")
    return connection


class TestFortyWriters:
    def test_everything_is_recorded_and_nobody_waits(self, items: Connection, database: Database) -> None:
        add_centers(items, X[:5])
        sessions = [database.connect() for _ in range(40)]
        done = Event()

        def write(number: int) -> None:
            mine = range(number * 1000, number * 1000 + 6)
            session = sessions[number]
            for key in mine:
                insert(session, key, X[key % 400])
            session.execute("UPDATE items SET embedding = %s WHERE id = %s", [text(X[number]), mine[1]])
            session.execute("DELETE FROM items WHERE id = %s", [mine[2]])
            with session.transaction(force_rollback=True):
                session.execute("UPDATE items SET id = -id WHERE id >= %s AND id < %s", [mine[0], mine[-1]])

        def watch() -> list[Any]:
            watcher = database.connect()
            found: list[Any] = []
            while not done.wait(0.002):
                found += watcher.execute(WAITING).fetchall()
            return found

        with ThreadPoolExecutor(41) as pool:
            watching = pool.submit(watch)
            for writing in [pool.submit(write, number) for number in range(40)]:
                writing.result()
            done.set()
            assert watching.result() == []
        rows = {
            number * 1000 + at: X[number if at == 1 else (number * 1000 + at) % 400]
            for number in range(40)
            for at in (0, 1, 3, 4, 5)
        }
        assert codes(items) == expected_codes(items, rows)
        assert problems(items) == []

    def test_on_the_same_rows(self, items: Connection, database: Database) -> None:
        """Their order is that of the table's row locks; the last entry of a key is the row that stayed."""
        for key in range(4):
            insert(items, key, X[key])

        def write(number: int) -> None:
            session = database.connect()
            for step in range(15):
                key, at = (number + step) % 4, (number * 31 + step * 7) % 400
                if step % 5 == 4:
                    session.execute("DELETE FROM items WHERE id = %s", [key])
                else:
                    session.execute(
                        """INSERT INTO items (id, embedding) VALUES (%s, %s)
                           ON CONFLICT (id) DO UPDATE SET embedding = excluded.embedding""",
                        [key, text(X[at])],
                    )

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(8)))
        stored = items.execute("SELECT id, embedding::text FROM items").fetchall()
        rows = {key: np.fromstring(value.strip("[]"), sep=",") for key, value in stored}
        assert codes(items) == expected_codes(items, rows)
        assert problems(items) == []


class TestNobodyWaits:
    def impatient(self, database: Database, **arguments: Any) -> Connection:
        session = database.connect(**arguments)
        session.execute("SET lock_timeout = '1ms'")
        return session

    def test_for_a_writer_that_stays_open(self, items: Connection, database: Database) -> None:
        add_centers(items, X[:3])
        insert(items, 1, X[1])
        insert(items, 2, X[2])
        first = database.connect(autocommit=False)
        insert(first, 10, X[10])
        first.execute("UPDATE items SET embedding = %s WHERE id = 1", [text(X[5])])
        second = self.impatient(database)
        insert(second, 11, X[11])
        second.execute("UPDATE items SET embedding = %s WHERE id = 2", [text(X[6])])
        second.execute("DELETE FROM items WHERE id = 2")
        assert items.execute(WAITING).fetchall() == []
        first.commit()
        assert codes(items) == expected_codes(items, {1: X[5], 10: X[10], 11: X[11]})

    def test_for_an_updater_that_stays_open(self, items: Connection, database: Database) -> None:
        add_centers(items, X[:3])
        insert(items, 1, X[1])
        updater = database.connect(autocommit=False)
        install_version(updater, 2, X[10:12])
        updater.execute("DELETE FROM foh.idx_stream")
        updater.execute(
            "INSERT INTO foh.idx_list SELECT 200, 0, '{1}', geometry[:1], ARRAY[repeat('0', 96)::bit(96)]"
            " FROM foh.idx_area WHERE area = 1"
        )
        updater.execute("INSERT INTO foh.idx_item VALUES (1, 1)")
        for writer in (self.impatient(database), self.impatient(database, autocommit=False)):
            key = 20 + int(writer.autocommit)
            insert(writer, key, X[key])
            writer.execute("UPDATE items SET embedding = %s WHERE id = %s", [text(X[7]), key])
            writer.execute("DELETE FROM items WHERE id = %s", [key])
            insert(writer, key, X[key])
            writer.execute("UPDATE items SET note = 1 WHERE id = 1")
            assert items.execute(WAITING).fetchall() == []
            # And the updater does not wait for writers.
            updater.execute("SET LOCAL lock_timeout = '1ms'")
            updater.execute("UPDATE foh.idx_center SET stale = 0")
            updater.execute("INSERT INTO foh.run (index, kind) SELECT id, 'update' FROM foh.index")
            if not writer.autocommit:
                writer.commit()
        updater.commit()
        assert {entry.version for entry in entries(items)} == {1}

    def test_truncate_is_the_only_one_that_locks_the_table(
        self, items: Connection, database: Database
    ) -> None:
        """What a trigger locks in foh is what an INSERT locks."""
        writer = database.connect(autocommit=False)
        insert(writer, 1, X[1])
        modes = """SELECT DISTINCT mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                   WHERE pid = %s AND c.relnamespace = 'foh'::regnamespace"""
        held = {mode for (mode,) in items.execute(modes, [writer.info.backend_pid])}
        assert held == {"AccessShareLock", "RowExclusiveLock"}
        writer.rollback()


def install_version(connection: Connection, version: int, centers: np.ndarray) -> None:
    """What an updater writes that concerns writers: a version with other hash functions and centers."""
    moved = connection.execute("UPDATE foh.index SET version = %s WHERE version = %s", [version, version - 1])
    assert moved.rowcount == 1
    connection.execute(
        """INSERT INTO foh.model (index, version, mean, placed, first_center)
           SELECT index, %s, mean, %s, %s FROM foh.model WHERE version = %s""",
        [version, version, version * 100, version - 1],
    )
    # Mirrored hash functions: every bit of every code flips.
    connection.execute(
        """UPDATE foh.idx_projection
           SET weights = (ARRAY(SELECT -w FROM unnest(weights::real[]) w))::extensions.vector"""
    )
    connection.execute("UPDATE foh.idx_projection SET bias = -bias - 1e-9")
    connection.execute("DELETE FROM foh.idx_center")
    add_centers(connection, centers, version=version, first=version * 100)


class TestVersions:
    def test_a_writer_in_flight_keeps_its_version(self, items: Connection, database: Database) -> None:
        add_centers(items, X[:3])
        before = projection(items)
        writer = database.connect(autocommit=False)
        insert(writer, 1, X[1])
        with items.transaction():
            install_version(items, 2, X[10:12])
        # Its next statement sees the new version, the first entry is of the old one.
        insert(writer, 2, X[2])
        writer.commit()
        found = newest(items)
        assert (found[1].version, found[1].code) == (1, expected_code(before, X[1]))
        assert found[1].center in (1, 2, 3)
        assert (found[2].version, found[2].code) == (2, expected_code(projection(items), X[2]))
        assert found[2].center in (200, 201)
        assert problems(items) == []

    def test_a_repeatable_read_writer_may_be_hours_behind(
        self, items: Connection, database: Database
    ) -> None:
        add_centers(items, X[:3])
        before = projection(items)
        writer = database.connect(autocommit=False)
        writer.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        writer.execute("SELECT 1")
        with items.transaction():
            install_version(items, 2, X[10:12])
        insert(writer, 1, X[1])
        writer.commit()
        [entry] = entries(items)
        assert (entry.version, entry.code) == (1, expected_code(before, X[1]))
        assert entry.center in (1, 2, 3)

    def test_code_home_and_version_are_of_one_snapshot(self, items: Connection, database: Database) -> None:
        """While versions come and go, no entry mixes the hash functions of one with centers of another."""
        add_centers(items, X[:3])
        stop, switched, version = Event(), Condition(), 1

        def update() -> None:
            nonlocal version
            updater = database.connect(autocommit=False)
            while not stop.is_set():
                install_version(updater, version + 1, X[10:12])
                updater.commit()
                with switched:
                    version += 1
                    switched.notify_all()

        def write(number: int) -> None:
            session = database.connect()
            for at in range(60):
                # However the machine shares its time: the rows before may have seen the next version, those after see a newer one.
                if at % 20 == 10:
                    with switched:
                        newer = version + 2
                        assert switched.wait_for(lambda newer=newer: version >= newer, PATIENCE)
                insert(session, number * 60 + at, X[number * 60 + at])

        original = projection(items)
        with ThreadPoolExecutor(5) as pool:
            updating = pool.submit(update)
            list(pool.map(write, range(4)))
            stop.set()
            updating.result()
        mirrored = -original[0], -original[1] - 1e-9
        found = newest(items)
        assert len({entry.version for entry in found.values()}) > 2
        for key, entry in found.items():
            hash_functions = original if entry.version % 2 else mirrored
            assert entry.code == expected_code(hash_functions, X[key]), entry
            assert entry.center in (
                (1, 2, 3) if entry.version == 1 else (entry.version * 100, entry.version * 100 + 1)
            )


def test_a_transaction_older_than_the_index(connection: Connection, database: Database) -> None:
    """Its snapshot does not have the index whose trigger it fires."""
    create_table(connection)
    old = database.connect(autocommit=False)
    old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    old.execute("SELECT 1")
    create_index(connection)
    insert(connection, 1, X[1])
    insert(old, 2, X[2])
    old.commit()
    found = connection.execute("SELECT id FROM foh.idx_search(%s, 10) ORDER BY id", [text(X[2])]).fetchall()
    assert found == [(1,), (2,)]
    update(connection, "idx")
    assert problems(connection) == []
    assert connection.execute("SELECT key FROM foh.idx_item ORDER BY key").fetchall() == [(1,), (2,)]


@pytest.mark.parametrize("triggers", ["statement", "row"])
class TestLabelsBesideTheirRow:
    """A label comes while its row is written by a transaction that the label's does not see."""

    @pytest.fixture
    def tagged(self, connection: Connection, triggers: str) -> Connection:
        create_table(connection)
        connection.execute("CREATE TABLE tags (item int, tag text)")
        create_index(
            connection, labels="tag", labels_from="tags", labels_key="item", options={"triggers": triggers}
        )
        return connection

    @pytest.mark.parametrize("there", [True, False])
    def test_the_row_is_not_hidden(self, tagged: Connection, database: Database, there: bool) -> None:
        if there:
            insert(tagged, 1, None)
        writer, labeller = (database.connect(autocommit=False) for _ in range(2))
        if there:
            writer.execute("UPDATE items SET embedding = %s WHERE id = 1", [text(X[1])])
        else:
            insert(writer, 1, X[1])
        labeller.execute("INSERT INTO tags VALUES (1, 'a')")
        labeller.execute("UPDATE tags SET tag = 'b'")
        labeller.execute("DELETE FROM tags")
        writer.commit()
        labeller.commit()
        assert codes(tagged) == expected_codes(tagged, {1: X[1]})
        assert problems(tagged) == []
