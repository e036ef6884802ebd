"""kill -9 at every phase: nothing has happened, and running again ends as if nothing had."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from foh_pg import updater
from tests.support import victim
from tests.support.digits import create_index, create_table, insert, violations
from tests.support.postgres import Database
from tests.support.recorded_state import recorded_state

Copy = Callable[..., Database]

SWITCH = [("switch", step) for step in range(7)]
UPDATE = [(name, 0) for name in ("load", "read", "learn", "compare", "encode", "affected", "centers")]
UPDATE += [(name, 0) for name in ("encode again", "place")]
BUILD = [(name, 0) for name in ("sample", "learn", "centers", "plan", "place")]


def killed(database: Database, function: str, arguments: dict[str, Any], phase: str, step: int) -> None:
    process = victim.processes().Process(
        target=victim.die, args=(function, database.dsn(), arguments, phase, step), daemon=True
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"phase {phase!r} was not reached"


def prepare_update(database: Database) -> None:
    connection = database.connect()
    create_table(connection)
    create_index(connection, options='{"learn_rows": 200}')
    insert(connection, range(500))
    updater.update(connection, "digits")
    connection.execute("DELETE FROM digit WHERE id % 7 = 0")
    connection.execute("UPDATE digit SET label = 'other' WHERE id % 11 = 0")
    insert(connection, range(500, 900))


def prepare_build(database: Database) -> None:
    connection = database.connect()
    create_table(connection)
    insert(connection, range(900))
    create_index(connection)
    insert(connection, range(900, 1000))


def update_in_peace(database: Database) -> None:
    prepare_update(database)
    updater.update(database.dsn(), "digits")


def build_in_peace(database: Database) -> None:
    prepare_build(database)
    updater.build(database.dsn(), "digits")


@pytest.mark.one_version
@pytest.mark.parametrize(("phase", "step"), UPDATE + SWITCH)
def test_update(copy_of: Copy, phase: str, step: int) -> None:
    database, twin = copy_of(prepare_update), copy_of(update_in_peace)
    connection = database.connect()
    before = recorded_state(connection)
    killed(database, "update", {}, phase, step)
    assert recorded_state(connection) == before
    assert violations(connection) == []
    updater.update(connection, "digits")
    assert recorded_state(connection) == recorded_state(twin.connect())
    assert violations(connection) == []


@pytest.mark.one_version
@pytest.mark.parametrize(("phase", "step"), BUILD + SWITCH[::3])
def test_build(copy_of: Copy, phase: str, step: int) -> None:
    database, twin = copy_of(prepare_build), copy_of(build_in_peace)
    connection = database.connect()
    killed(database, "build", {}, phase, step)
    assert violations(connection) == []
    updater.build(connection, "digits")
    assert recorded_state(connection) == recorded_state(twin.connect())
    assert violations(connection) == []


@pytest.mark.one_version
def test_build_goes_on_where_it_was(copy_of: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = copy_of(prepare_build).connect()
    monkeypatch.setattr("foh_pg.updater.fill.PIECE_ROWS", 300)
    monkeypatch.setattr("foh_pg.updater.fill.PAGE_BYTES", 1)
    monkeypatch.setattr("foh_pg.updater.fill.PAGE_ROWS", 300)
    monkeypatch.setattr("foh_pg.updater.fill.LEAST_PAGE_ROWS", 300)

    class Stopped(BaseException):
        pass

    def stop(phase: str, done: int, total: int) -> None:
        if phase == "place" and done > 600:
            raise Stopped

    with pytest.raises(Stopped):
        updater.build(connection, "digits", progress=stop)
    written = connection.execute("SELECT sum(cardinality(ids)) FROM foh.digits_list").fetchone()
    assert written == (600,)
    # What was placed already changes, and something is new.
    connection.execute("DELETE FROM digit WHERE id < 10")
    insert(connection, range(1000, 1100))
    seen: list[int] = []
    run = updater.build(connection, "digits", progress=lambda phase, done, total: seen.append(done))
    assert violations(connection) == []
    # The queries have not seen the rows that were placed before: these are read again to choose a ranking.
    assert run.metrics["ranking"]["asked"] > 100
    assert connection.execute("SELECT probes > 0 FROM foh.model ORDER BY version DESC").fetchone() == (True,)
    rows = connection.execute("SELECT sum(length) FROM foh.digits_center").fetchone()
    # Rows that were deleted meanwhile leave the lists before the build ends.
    assert rows == (1090,)
    assert (
        "interrupted"
        in connection.execute("SELECT metrics::text FROM foh.run ORDER BY id DESC").fetchone()[0]
    )
    updater.update(connection, "digits")
    assert violations(connection) == []


@pytest.mark.one_version
@pytest.mark.parametrize("emptied", ["DELETE FROM digit", "TRUNCATE digit"])
def test_build_of_a_table_that_was_empty_when_it_began(copy_of: Copy, emptied: str) -> None:
    database = copy_of(prepare_build)
    connection = database.connect()
    connection.execute(emptied.encode())
    killed(database, "build", {}, "place", 0)
    insert(connection, range(300))
    updater.build(connection, "digits")
    assert violations(connection) == []
    assert connection.execute("SELECT count(*) FROM foh.digits_item").fetchone() == (300,)


@pytest.mark.one_version
def test_an_interrupted_rebuild_is_discarded_by_an_update(copy_of: Copy) -> None:
    database = copy_of(build_in_peace)
    connection = database.connect()
    killed(database, "rebuild", {}, "switch", 1)
    assert violations(connection) == []
    insert(connection, range(1000, 1010))
    run = updater.update(connection, "digits")
    assert "discarded" in run.notes[0]
    orphans = (
        "SELECT count(*) FROM foh.digits_list l WHERE center NOT IN (SELECT center FROM foh.digits_center)"
    )
    assert connection.execute(orphans).fetchone() == (0,)
    assert violations(connection) == []
