"""drop_index and create_index among transactions that lock tables in another order: no deadlock aborts anybody."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.support.postgres import Database
from tests.support.recorded import Connection, create_index, create_table, insert, problems, vectors
from tests.support.waiting import until

X = vectors(200)

# Either order of the two statements is the application's right.
ORDERS = {
    "partitions, the last first": ("UPDATE items_high SET note = 1", "UPDATE items_low SET note = 1"),
    "partitions, the first first": ("UPDATE items_low SET note = 1", "UPDATE items_high SET note = 1"),
    "a partition before the table": ("UPDATE items_high SET note = 1", "UPDATE items SET note = 1"),
    "the table, then another partition": ("UPDATE items SET note = 1 WHERE id = 1", "DELETE FROM items WHERE id > 100"),
    "labels before their rows": ("INSERT INTO tags VALUES (1, 'a')", "UPDATE items SET note = 1"),
    "rows before their labels": ("UPDATE items SET note = 1", "INSERT INTO tags VALUES (1, 'a')"),
    "lists before the table, as a search": ("SELECT FROM foh.idx_list", "SELECT FROM items"),
    "the stream before the lists": ("SELECT FROM foh.idx_stream", "SELECT FROM foh.idx_list"),
}  # fmt: skip


CREATE = "foh.create_index('idx', 'items', 'embedding', labels => 'tag', labels_from => 'tags', labels_key => 'item')"


class Calling:
    """A function in a session of its own."""

    def __init__(self, database: Database, call: str) -> None:
        self.connection = database.connect()
        self.call = call
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.connection.execute(f"SELECT {self.call}".encode())
        except BaseException as error:
            self.error = error

    def wait_until_it_waits(self, observer: psycopg.Connection[Any]) -> None:
        waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = %s AND NOT granted)"

        def waits_now() -> bool:
            assert self._thread.is_alive(), self.error
            return observer.execute(waits, [self.connection.info.backend_pid]).fetchone() == (True,)

        until(waits_now, self.call)

    def join(self) -> None:
        self._thread.join()


@pytest.fixture
def items(connection: Connection) -> Connection:
    create_table(connection, partitioned=True)
    connection.execute("CREATE TABLE tags (item int, tag text)")
    create_index(connection, labels="tag", labels_from="tags", labels_key="item")
    for key in (1, 150):
        insert(connection, key, X[key])
    return connection


@pytest.mark.parametrize("order", ORDERS)
def test_drop(items: Connection, database: Database, superuser: Connection, order: str) -> None:
    assert_no_deadlock(database, superuser, "foh.drop_index('idx')", *ORDERS[order])
    assert items.execute("SELECT count(*) FROM foh.index").fetchone() == (0,)
    insert(items, 2, X[2])


@pytest.mark.parametrize("order", [order for order, (first, _) in ORDERS.items() if "foh." not in first])
def test_create(items: Connection, database: Database, superuser: Connection, order: str) -> None:
    items.execute("SELECT foh.drop_index('idx')")
    assert_no_deadlock(database, superuser, CREATE, *ORDERS[order])
    insert(items, 2, X[2])
    assert problems(items) == []


def assert_no_deadlock(database: Database, superuser: Connection, call: str, first: str, second: str) -> None:
    application = database.connect(autocommit=False)
    application.execute(first.encode())
    calling = Calling(database, call)
    try:
        calling.wait_until_it_waits(superuser)
        # Would be the deadlock, if anything that this asks for were held.
        application.execute(second.encode())
        application.commit()
    finally:
        application.close()
        calling.join()
    assert calling.error is None


@pytest.mark.parametrize("call", ["foh.drop_index('idx')", CREATE])
def test_nothing_is_locked_before_the_wait(
    items: Connection, database: Database, superuser: Connection, call: str
) -> None:
    if call == CREATE:
        items.execute("SELECT foh.drop_index('idx')")
    application = database.connect(autocommit=False)
    application.execute("LOCK TABLE ONLY items IN ACCESS EXCLUSIVE MODE")
    calling = Calling(database, call)
    try:
        calling.wait_until_it_waits(superuser)
        held = """SELECT relation::regclass::text, mode FROM pg_locks WHERE pid = %s AND granted
                  AND relation IN (SELECT oid FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace)"""
        assert superuser.execute(held, [calling.connection.info.backend_pid]).fetchall() == []
        application.execute("TRUNCATE items")
        application.commit()
    finally:
        application.close()
        calling.join()
    assert calling.error is None


def test_a_table_in_use_is_named(items: Connection, database: Database, superuser: Connection) -> None:
    application = database.connect(autocommit=False)
    application.execute("UPDATE items_high SET note = 1")
    superuser.execute("ALTER FUNCTION foh.drop_index SET lock_timeout = '100ms'")
    try:
        with pytest.raises(errors.LockNotAvailable, match=r"foh: public.items is in use"):
            items.execute("SELECT foh.drop_index('idx')")
    finally:
        superuser.execute("ALTER FUNCTION foh.drop_index SET lock_timeout = '10s'")
    application.rollback()
    assert problems(items) == []
    items.execute("SELECT foh.drop_index('idx')")
