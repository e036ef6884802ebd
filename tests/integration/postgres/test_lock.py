"""One updater at a time; and nobody who may not update an index can hold it up."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from foh_pg.errors import BusyError
from foh_pg.runs.session import Session
from foh_pg.updater.update import update
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]


@pytest.fixture
def index(connection: Connection) -> int:
    connection.execute("CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(3))")
    connection.execute("SELECT foh.create_index('idx', 'items', 'embedding', bits => 16)")
    connection.execute(
        "INSERT INTO items SELECT n, ARRAY[n, 1, 2]::extensions.vector FROM generate_series(1, 50) n"
    )
    (number,) = connection.execute("SELECT id FROM foh.index").fetchone() or (0,)
    return int(number)


def calls(connection: Connection) -> None:
    connection.execute("SELECT foh.refresh('idx')")
    connection.execute("""SELECT foh.alter_index('idx', '{"probes": 2}')""")


@pytest.mark.parametrize("granted", ["nothing", "reader"])
def test_a_role_without_the_right_blocks_nobody(
    connection: Connection, index: int, database: Database, granted: str
) -> None:
    stranger = database.connect("app_reader")
    if granted == "reader":
        connection.execute("SELECT foh.grant('idx', reader => 'app_reader')")
    # The key of the lock as it was, for this index and many others, in both forms that PostgreSQL has.
    stranger.execute("SELECT pg_advisory_lock(1179602992, n) FROM generate_series(0, 100) n")
    stranger.execute("SELECT pg_advisory_lock((1179602992::bigint << 32) | n) FROM generate_series(0, 100) n")
    waiting = database.connect("app_reader", autocommit=False)
    for statement in (
        "SELECT FROM foh.updating FOR UPDATE",
        "UPDATE foh.updating SET pid = 1",
        "LOCK TABLE foh.updating IN ACCESS SHARE MODE",
        "LOCK TABLE foh.idx_stream IN ACCESS SHARE MODE",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            waiting.execute(statement.encode())
        waiting.rollback()
    assert update(database.dsn(), "idx").rows == 50
    calls(connection)
    # The key that an updater has is there for everybody to see, and of no use.
    session = Session(database.connect())
    session.lock(index, "idx")
    (key,) = connection.execute("SELECT key FROM foh.updating").fetchone() or (0,)
    stranger.execute("SET lock_timeout = '100ms'")
    with pytest.raises(errors.LockNotAvailable):
        stranger.execute("SELECT pg_advisory_lock(%s::bigint)", [key])
    session.unlock()
    stranger.execute("SELECT pg_advisory_lock(%s::bigint)", [key])
    update(database.dsn(), "idx")
    calls(connection)
    connection.execute("SELECT foh.drop_index('idx')")


def test_an_updater_at_work_on_another_index(connection: Connection, index: int, database: Database) -> None:
    connection.execute("CREATE TABLE others (id int PRIMARY KEY, embedding extensions.vector(3))")
    connection.execute("SELECT foh.create_index('others', 'others', 'embedding', bits => 16)")
    connection.execute("SELECT foh.grant(updater => 'app_writer')")
    updater = database.connect("app_writer", autocommit=False)
    held = "SELECT FROM foh.updating WHERE index <> %s FOR UPDATE"
    assert len(updater.execute(held, [index]).fetchall()) == 1
    with pytest.raises(BusyError):
        update(database.dsn(), "others")
    update(database.dsn(), "idx")
    updater.rollback()
    connection.execute("SELECT foh.grant(updater => 'app_writer', revoke => true)")


def test_who_may_update_excludes_the_others(connection: Connection, index: int, database: Database) -> None:
    first = Session(database.connect())
    first.lock(index, "idx")
    with pytest.raises(BusyError, match="another updater"):
        Session(database.connect()).lock(index, "idx")
    for call in ("refresh('idx')", "drop_index('idx')", "alter_index('idx', '{}')"):
        with pytest.raises(errors.LockNotAvailable, match="an updater is at work on index 'idx'"):
            connection.execute(sql.SQL("SELECT foh.{}").format(sql.SQL(call)))
    first.check()
    first.unlock()
    calls(connection)
    # A refresh that has not committed holds it too.
    pending = database.connect(autocommit=False)
    pending.execute("SELECT foh.refresh('idx')")
    with pytest.raises(BusyError, match="another updater"):
        Session(database.connect()).lock(index, "idx")
    pending.rollback()
    update(database.dsn(), "idx")


def test_a_dead_updater_holds_nothing(connection: Connection, index: int, database: Database) -> None:
    gone = database.connect()
    Session(gone).lock(index, "idx")
    (pid,) = connection.execute("SELECT pid FROM foh.updating").fetchone() or (0,)
    assert pid == gone.info.backend_pid
    gone.close()
    update(database.dsn(), "idx")
    assert connection.execute("SELECT pid FROM foh.updating").fetchone() != (pid,)


def test_a_process_number_that_came_again(connection: Connection, index: int, database: Database) -> None:
    """What a dead updater wrote down, with the number and the key of a stranger's live process."""
    stranger = database.connect("app_reader")
    stranger.execute("SELECT pg_advisory_lock(12345)")
    connection.execute(
        "UPDATE foh.updating SET pid = %s, key = 12345, role = 'app_owner'", [stranger.info.backend_pid]
    )
    update(database.dsn(), "idx")
