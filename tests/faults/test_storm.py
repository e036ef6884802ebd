"""The test that stays: everything at once, killed at random moments, and nothing is lost, doubled or wrong.

A minute on PostgreSQL 18 and a quarter of it on others; `--long MINUTES` makes it that long on each. `--seed`
repeats what every actor tries, though not the moments at which the machine lets them.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import IsolationLevel

from foh_pg import updater
from foh_pg.errors import BusyError
from foh_pg.postgres.embedded import EmbeddedServer
from tests.support import storm
from tests.support.oracle import differences
from tests.support.postgres import Database, Server, own_server
from tests.support.storm import FORMS, SEARCHERS, UPDATERS, WRITERS, Form, Storm, Tally
from tests.support.victim import is_lost
from tests.support.waiting import until

Connection = psycopg.Connection[Any]

SECONDS = {18: 60}
FEWER_SECONDS = 15
ROUND_SECONDS = 6.0

# Durable, as in production: what was committed must be there after a crash. Vacuum takes part.
SETTINGS = {"max_connections": "60", "autovacuum_naptime": "1s", "shared_buffers": "64MB"}


@pytest.fixture
def embedded(embedded_version: int) -> Iterator[EmbeddedServer]:
    with own_server(embedded_version, SETTINGS) as embedded:
        yield embedded


@pytest.fixture
def stormy(embedded: EmbeddedServer) -> Database:
    private = Server(embedded.dsn(), "storm", embedded.bin)
    private.create_roles()
    private.create_template()
    private.close()
    return Database(private, "storm")


@pytest.mark.first
def test_storm(
    embedded: EmbeddedServer,
    stormy: Database,
    pytestconfig: pytest.Config,
    record_property: Any,
) -> None:
    seed = pytestconfig.getoption("--seed")
    seed = secrets.randbits(32) if seed is None else seed
    minutes = pytestconfig.getoption("--long")
    seconds = minutes * 60 if minutes else SECONDS.get(embedded.version, FEWER_SECONDS)
    tally = Tally()
    rng = np.random.default_rng(seed)
    with psycopg.connect(stormy.dsn(), autocommit=True) as connection:
        for form in FORMS:
            form.create_tables(connection)
            form.create_index(connection)
    end, number = time.monotonic() + seconds, 0
    try:
        # One round on each form at least, whatever the time; the first has a stop of the server.
        while number < len(FORMS) or time.monotonic() < end:
            play_round(embedded, stormy, tally, FORMS[number % len(FORMS)], (seed, number), rng)
            number += 1
            assert not tally.differences
            assert not tally.errors
    finally:
        record_property("storm", f"PostgreSQL {embedded.version}, seed {seed}, rounds {number}: {tally}")
        # Shown where the test fails.
        print(f"seed {seed}: {tally}", *tally.differences, *tally.errors, sep="\n")
    assert tally.kills > 0
    assert tally.stops > 0
    assert tally.snapshots > 0


def play_round(
    embedded: EmbeddedServer,
    database: Database,
    tally: Tally,
    form: Form,
    seed: tuple[int, int],
    rng: np.random.Generator,
) -> None:
    round_ = Storm(database.dsn(), form, seed, tally)
    try:
        round_.start((round_.write, WRITERS))
        if rng.random() < 0.3:
            # Built anew, from a table that is being written to.
            with psycopg.connect(database.dsn(), autocommit=True) as connection:
                until_free(lambda: connection.execute("SELECT foh.drop_index(%s)", [form.index]))
                form.create_index(connection)
        round_.start((round_.search, SEARCHERS), (round_.audit, 1), (round_.update, UPDATERS))
        stops = seed[1] == 0 or rng.random() < 0.5
        round_.calm.wait(ROUND_SECONDS * (0.5 + rng.random() / 2))
        if stops:
            stop_server(embedded, database, rng)
            tally.stops += 1
            round_.calm.wait(ROUND_SECONDS / 2)
    finally:
        round_.end()
    settle(database, form, tally)


def settle(database: Database, form: Form, tally: Tally) -> None:
    """Compare what the round has left, bring the index up to date, and compare again."""
    with psycopg.connect(database.dsn(), autocommit=True) as connection:
        inspect(connection, form, tally)
        (status,) = connection.execute(
            "SELECT status FROM foh.index WHERE name = %s", [form.index]
        ).fetchone() or ("gone",)
        # The server may still be at work for an updater that was killed.
        verb = updater.build if status == "building" else updater.update
        until_free(lambda: verb(connection, form.index))
        inspect(connection, form, tally)
        left = connection.execute(f"SELECT count(*) FROM foh.{form.index}_stream").fetchone()
        assert left == (0,)


def inspect(connection: Connection, form: Form, tally: Tally) -> None:
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    with connection.transaction():
        form.lock(connection)
        storm.compare(connection, form, tally)
        lost = storm.unfound(connection, form)
    connection.isolation_level = None
    if lost:
        tally.differences.append(f"{form.name}: a search does not find {lost[:5]} ({len(lost)} in all)")


def until_free(act: Callable[[], Any]) -> None:
    """Act as soon as nobody else is at work on the index."""

    def done() -> bool:
        try:
            act()
        except (BusyError, psycopg.errors.LockNotAvailable):
            return False
        return True

    until(done, "nobody is at work on the index")


def stop_server(embedded: EmbeddedServer, database: Database, rng: np.random.Generator) -> None:
    """Stop the server at once, or kill one of its processes; wait until it answers again."""
    if rng.random() < 0.5:
        embedded._run("pg_ctl", "--wait", "--mode=immediate", "stop")
        embedded.start()
    else:
        with psycopg.connect(embedded.dsn(), autocommit=True) as superuser:
            # The server has noticed when it ends this connection too. The process that was chosen may have ended by itself
            # a moment before, which harms nobody: so another one is killed while the server still answers.
            until(lambda: not answers(lambda: storm.kill_backend(superuser, rng)), "the server notices")
    until(lambda: answers(lambda: psycopg.connect(database.dsn()).close()), "the server is back")


def answers(ask: Callable[[], Any]) -> bool:
    try:
        ask()
    except psycopg.OperationalError as error:
        if not is_lost(error):
            raise
        return False
    return True


DAMAGE = {
    "a list loses a row": "UPDATE foh.INDEX_list SET ids = ids[2:], geometry = geometry[2:], marks = marks[2:]"
    " WHERE (center, part) = (SELECT center, part FROM foh.INDEX_list ORDER BY 1, 2 LIMIT 1)",
    "a row comes twice": "UPDATE foh.INDEX_list SET ids = ids || ids[1], geometry = geometry || geometry[1],"
    " marks = marks || marks[1] WHERE (center, part) = (SELECT center, part FROM foh.INDEX_list ORDER BY 1, 2 LIMIT 1)",
    "a deleted row stays": "ALTER TABLE SOURCE DISABLE TRIGGER USER; DELETE FROM SOURCE WHERE id = 3",
    "a row is not captured": "ALTER TABLE SOURCE DISABLE TRIGGER USER;"
    " INSERT INTO SOURCE SELECT 9999, embedding FROM SOURCE LIMIT 1",
    "a vector changes unseen": "ALTER TABLE SOURCE DISABLE TRIGGER USER;"
    " UPDATE SOURCE SET embedding = (SELECT embedding FROM SOURCE WHERE id = 4) WHERE id = 3",
    "an entry of the stream is lost": "DELETE FROM foh.INDEX_stream WHERE key = 9000",
    "a center is lost": "DELETE FROM foh.INDEX_center"
    " WHERE center = (SELECT center FROM foh.INDEX_center WHERE length > 0 LIMIT 1)",
}


@pytest.mark.one_version
@pytest.mark.parametrize("damage", DAMAGE)
def test_oracle_and_check_see_damage(connection: Connection, superuser: Connection, damage: str) -> None:
    """A storm proves nothing if those who judge it are blind."""
    form, rng = FORMS[0], np.random.default_rng(0)
    form.create_tables(connection)
    form.create_index(connection)
    insert = f"INSERT INTO {form.name} VALUES (%s, %s::extensions.vector, %s)"
    connection.cursor().executemany(insert, [(key, *storm.drawn(rng)) for key in range(300)])
    updater.update(connection, form.index)
    connection.cursor().executemany(insert, [(key, *storm.drawn(rng)) for key in range(9000, 9010)])
    tally = Tally()
    storm.compare(connection, form, tally)
    assert tally.differences == []
    with superuser.transaction(force_rollback=True):
        superuser.execute(
            DAMAGE[damage].replace("INDEX", form.index).replace("SOURCE", f"public.{form.name}")
        )
        assert differences(superuser, f"public.{form.name}", form.index) != []
        # Triggers that are disabled would be all that it speaks of.
        superuser.execute(f"ALTER TABLE public.{form.name} ENABLE TRIGGER USER")
        assert superuser.execute("SELECT * FROM foh.check(%s)", [form.index]).fetchall() != []
    storm.compare(connection, form, tally)
    assert tally.differences == []
