"""What may happen to an updater in the middle of its work, short of being killed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg import updater
from foh_pg.errors import BusyError, FenceError, FohError, SessionError
from foh_pg.postgres.connect import connect
from foh_pg.postgres.embedded import EmbeddedServer
from foh_pg.runs.session import open_session
from foh_pg.schema.migrations import migrate
from tests.support.digits import create_index, create_table, digits, insert, vector, violations
from tests.support.postgres import SETTINGS, Database, install_pgvector
from tests.support.recorded_state import recorded_state

Connection = psycopg.Connection[Any]
Action = Callable[[], None]


def when(phase: str, action: Action, step: int = 0) -> updater.Progress:
    """Do something once, when a phase begins."""
    done = []

    def progress(name: str, step_done: int, total: int) -> None:
        if (name, step_done) == (phase, step) and not done:
            done.append(name)
            action()

    return progress


def prepare(database: Database) -> None:
    """An index with a model, and 400 rows in its stream."""
    connection = database.connect()
    create_table(connection)
    create_index(connection, options='{"learn_rows": 200}')
    insert(connection, range(600))
    updater.update(connection, "digits")
    insert(connection, range(600, 1000))


pytestmark = pytest.mark.prepared(by=prepare)


@pytest.fixture
def prepared(connection: Connection) -> Connection:
    return connection


def found(connection: Connection, row: int, k: int = 5) -> list[int]:
    query = "SELECT id FROM foh.digits_search(%s::extensions.vector, %s)"
    return [key for (key,) in connection.execute(query, [vector(digits()[0][row]), k])]


@pytest.mark.one_version
@pytest.mark.parametrize(("phase", "step"), [("read", 0), ("learn", 0), ("place", 0), ("switch", 4)])
def test_connection_cut(
    prepared: Connection, database: Database, superuser: Connection, phase: str, step: int
) -> None:
    before = recorded_state(prepared)

    def cut() -> None:
        superuser.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'victim' AND datname = current_database()"
        )

    with pytest.raises(psycopg.OperationalError):
        updater.update(
            psycopg.conninfo.make_conninfo(database.dsn(), application_name="victim"),
            "digits",
            progress=when(phase, cut, step),
        )
    assert recorded_state(prepared) == before
    assert violations(prepared) == []
    updater.update(prepared, "digits")
    assert violations(prepared) == []


def test_two_at_once(prepared: Connection, database: Database) -> None:
    def second() -> None:
        with pytest.raises(BusyError, match="another updater"):
            updater.update(database.dsn(), "digits")

    updater.update(prepared, "digits", progress=when("learn", second))
    assert violations(prepared) == []


def another_updater(holder: Connection, database: Database) -> Action:
    """The lock is lost, and somebody else takes it and is done."""

    def take_over() -> None:
        holder.execute("SELECT pg_advisory_unlock_all()")
        updater.update(database.dsn(), "digits")

    return take_over


@pytest.mark.one_version
def test_lock_taken_over(prepared: Connection, database: Database) -> None:
    with pytest.raises(SessionError, match="lost the lock"):
        updater.update(prepared, "digits", progress=when("learn", another_updater(prepared, database)))
    assert violations(prepared) == []


@pytest.mark.one_version
def test_the_fence_stands_without_the_lock(
    prepared: Connection, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foh_pg.runs.session.Session.check", lambda self: None)
    with pytest.raises(FenceError, match="another updater was faster"):
        updater.update(prepared, "digits", progress=when("place", another_updater(prepared, database)))
    assert violations(prepared) == []
    error = prepared.execute("SELECT error FROM foh.run WHERE error IS NOT NULL").fetchone()
    assert error is not None
    assert "faster" in error[0]


@pytest.mark.one_version
def test_connection_moved_by_a_proxy(prepared: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_session(prepared) as session:
        session.pid += 1
        with pytest.raises(SessionError, match="pools transactions"), session.snapshot():
            pass


def assert_found_before_and_after(connection: Connection, key: int, row: int) -> None:
    """Its code is of hash functions that were replaced: a search encodes it on the way, an update once more."""
    for _ in range(2):
        assert violations(connection) == []
        assert key in found(connection, row)
        updater.update(connection, "digits")
    assert key in found(connection, row)
    assert violations(connection) == []


def test_writer_in_flight_across_a_switch(prepared: Connection, database: Database) -> None:
    writer = database.connect(autocommit=False)
    with writer.cursor() as cursor:
        cursor.execute(
            "INSERT INTO digit VALUES (5000, %s::extensions.vector, NULL)", [vector(digits()[0][1500])]
        )
    prepared.execute("DELETE FROM digit WHERE id < 300")
    updater.update(prepared, "digits")
    writer.commit()
    assert_found_before_and_after(prepared, 5000, 1500)


def test_writer_older_than_two_versions(prepared: Connection, database: Database) -> None:
    writer = database.connect(autocommit=False)
    writer.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    writer.execute("SELECT count(*) FROM digit")
    updater.update(prepared, "digits")
    insert(prepared, range(1000, 1300))
    updater.update(prepared, "digits")
    writer.execute(
        "INSERT INTO digit VALUES (5000, %s::extensions.vector, NULL)", [vector(digits()[0][1500])]
    )
    writer.commit()
    assert_found_before_and_after(prepared, 5000, 1500)


@pytest.mark.one_version
def test_writer_older_than_65_versions(prepared: Connection, database: Database) -> None:
    """However late: its entry names a center of that time, and a search finds the row."""
    writer = database.connect(autocommit=False)
    writer.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    writer.execute("SELECT count(*) FROM digit")
    for at in range(65):
        insert(prepared, [1000 + at])
        updater.update(prepared, "digits")
    (version,) = prepared.execute("SELECT version FROM foh.index").fetchone() or (0,)
    assert version > 65
    place = "INSERT INTO digit VALUES (%s, %s::extensions.vector, NULL)"
    writer.execute(place, [5000, vector(digits()[0][1500])])
    writer.execute("DELETE FROM digit WHERE id = 1")
    writer.commit()
    assert violations(prepared) == []
    assert 5000 in found(prepared, 1500)
    assert 1 not in found(prepared, 1)
    # One whose centers are gone: all rows were placed anew since.
    writer.execute("SELECT count(*) FROM digit")
    updater.rebuild(prepared, "digits")
    writer.execute(place, [5001, vector(digits()[0][1501])])
    writer.commit()
    assert violations(prepared) == []
    assert 5001 in found(prepared, 1501)
    updater.update(prepared, "digits")
    assert {5000, 5001} <= {*found(prepared, 1500), *found(prepared, 1501)}
    assert violations(prepared) == []


@pytest.mark.one_version
@pytest.mark.parametrize("phase", ["learn", "encode again", "switch"])
def test_truncate_and_keys_again(prepared: Connection, database: Database, phase: str) -> None:
    other = database.connect()

    def refill() -> None:
        other.execute("TRUNCATE digit")
        insert(other, range(500, 700))

    updater.update(prepared, "digits", progress=when(phase, refill))
    assert violations(prepared) == []
    assert len(found(prepared, 1500, 200)) == 200
    updater.update(prepared, "digits")
    assert violations(prepared) == []
    assert prepared.execute("SELECT count(*) FROM foh.digits_item").fetchone() == (200,)


@pytest.mark.one_version
@pytest.mark.parametrize("phase", ["learn", "encode again", "place"])
def test_rows_changed_meanwhile(prepared: Connection, database: Database, phase: str) -> None:
    """Rows read already, members of opened lists, and rows of the batch itself."""
    other = database.connect()

    def change() -> None:
        other.execute("DELETE FROM digit WHERE id % 5 = 0")
        other.execute(
            "UPDATE digit SET embedding = (SELECT embedding FROM digit WHERE id = 1) WHERE id % 5 = 1"
        )
        other.execute("UPDATE digit SET label = 'new' WHERE id % 5 = 2")
        insert(other, range(0, 100, 5))

    updater.update(prepared, "digits", progress=when(phase, change))
    assert violations(prepared) == []
    updater.update(prepared, "digits")
    assert violations(prepared) == []
    assert prepared.execute("SELECT count(*) FROM foh.digits_stream").fetchone() == (0,)


# What an owner or an administrator may do to the table in the middle of a run, and how it is undone.
MEANWHILE = {
    "another owner": ("ALTER TABLE digit OWNER TO app_writer", "ALTER TABLE digit OWNER TO app_owner"),
    "an owner without rights": (
        "ALTER TABLE digit OWNER TO app_writer; REVOKE ALL ON digit FROM app_owner",
        "ALTER TABLE digit OWNER TO app_owner; GRANT ALL ON digit TO app_owner",
    ),
    "policies for the owner": (
        "ALTER TABLE digit ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY p ON digit USING (id < 5)",
        "DROP POLICY p ON digit; ALTER TABLE digit DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY",
    ),
    "a column renamed": (
        "ALTER TABLE digit RENAME COLUMN embedding TO other",
        "ALTER TABLE digit RENAME COLUMN other TO embedding",
    ),
    "the primary key dropped": (
        "ALTER TABLE digit DROP CONSTRAINT digit_pkey",
        "ALTER TABLE digit ADD PRIMARY KEY (id)",
    ),
    "triggers disabled": ("ALTER TABLE digit DISABLE TRIGGER USER", "ALTER TABLE digit ENABLE TRIGGER USER"),
}


@pytest.mark.one_version
@pytest.mark.parametrize("phase", ["learn", "encode again"])
@pytest.mark.parametrize("what", MEANWHILE)
def test_the_table_changes_meanwhile(
    prepared: Connection, database: Database, superuser: Connection, what: str, phase: str
) -> None:
    """The run ends well or with an error, and loses no row: once it is undone, everything is as it should be."""
    change, undo = MEANWHILE[what]
    superuser.execute("SET search_path = public")
    with suppress(FohError, psycopg.Error):
        updater.update(
            database.dsn(), "digits", progress=when(phase, lambda: superuser.execute(change.encode()))
        )
    superuser.execute(undo.encode())
    prepared.execute("SELECT foh.refresh('digits')")
    assert violations(prepared) == []
    updater.update(prepared, "digits")
    assert violations(prepared) == []
    assert prepared.execute("SELECT count(*) FROM foh.digits_item").fetchone() == (1000,)
    assert len(found(prepared, 1200, 1000)) == 1000


@pytest.mark.one_version
@pytest.mark.parametrize("table", ["digits_list", "digits_center", "digits_projection"])
def test_disk_full(prepared: Connection, superuser: Connection, table: str) -> None:
    before = recorded_state(prepared)
    superuser.execute(
        "CREATE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$"
    )
    superuser.execute(
        f"CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON foh.{table} FOR EACH ROW"
        " EXECUTE FUNCTION public.full_disk()"
    )
    with pytest.raises(psycopg.errors.DiskFull):
        updater.update(prepared, "digits")
    assert recorded_state(prepared) == before
    superuser.execute(f"DROP TRIGGER full_disk ON foh.{table}")
    updater.update(prepared, "digits")
    assert violations(prepared) == []


def test_reader_sees_one_version(prepared: Connection, database: Database) -> None:
    reader = database.connect(autocommit=False)
    reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    first = [found(reader, row, 20) for row in range(1500, 1520)]
    updater.update(prepared, "digits")
    assert [found(reader, row, 20) for row in range(1500, 1520)] == first
    reader.rollback()


@pytest.mark.one_version
def test_writers_throughout(prepared: Connection, database: Database) -> None:
    """Nothing is lost, and no search comes back with less than there is."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def write(seed: int) -> None:
        rng = np.random.default_rng(seed)
        data = digits()[0]
        try:
            with psycopg.connect(database.dsn(), autocommit=True) as own:
                while not stop.is_set():
                    row, kind = int(rng.integers(seed * 400, seed * 400 + 400)), rng.integers(4)
                    if kind == 0:
                        own.execute("DELETE FROM digit WHERE id = %s", [row])
                    elif kind == 1:
                        own.execute("UPDATE digit SET label = %s WHERE id = %s", [str(row % 3), row])
                    else:
                        own.execute(
                            "INSERT INTO digit VALUES (%s, %s::extensions.vector, 'x')"
                            " ON CONFLICT (id) DO UPDATE SET embedding = excluded.embedding",
                            [row, vector(data[int(rng.integers(len(data)))])],
                        )
                    assert len(found(own, row)) == 5
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(6):
            updater.update(prepared, "digits", batch_size=150, max_seconds=3)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert violations(prepared) == []
    updater.update(prepared, "digits")
    assert violations(prepared) == []
    counts = (
        "SELECT (SELECT count(*) FROM digit), (SELECT count(*) FROM foh.digits_item),"
        " (SELECT sum(length) FROM foh.digits_center)"
    )
    rows, items, entries = prepared.execute(counts).fetchone() or ()
    assert rows == items == entries


@pytest.mark.one_version
@pytest.mark.parametrize("step", [1, 5])
def test_server_stops_at_once(
    embedded_version: int, tmp_path_factory: pytest.TempPathFactory, step: int
) -> None:
    directory = Path(tmp_path_factory.mktemp("s")) / "data"
    embedded = EmbeddedServer(directory, embedded_version, {**SETTINGS, "synchronous_commit": "on"}).start()
    try:
        with psycopg.connect(embedded.dsn(), autocommit=True) as superuser:
            install_pgvector(superuser)
        with connect(embedded.dsn()) as installer:
            migrate(installer)
        with psycopg.connect(embedded.dsn(), autocommit=True) as own:
            create_table(own)
            create_index(own, options='{"learn_rows": 200}')
            insert(own, range(300))
            updater.update(own, "digits")
            insert(own, range(300, 600))
            before = recorded_state(own)

        def crash() -> None:
            embedded._run("pg_ctl", "--wait", "--mode=immediate", "stop")

        with pytest.raises(psycopg.OperationalError):
            updater.update(embedded.dsn(), "digits", progress=when("switch", crash, step))
        embedded.start()
        with psycopg.connect(embedded.dsn(), autocommit=True) as own:
            assert recorded_state(own) == before
            updater.update(own, "digits")
            assert violations(own) == []
            assert own.execute("SELECT count(*) FROM foh.digits_item").fetchone() == (600,)
    finally:
        embedded.stop()
