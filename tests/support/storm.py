"""Everything at once on one index: writers, searchers, auditors and updaters, until they are told to stop."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

import numpy as np
import psycopg
from psycopg import IsolationLevel
from psycopg.types.json import Jsonb

from tests.support import victim
from tests.support.digits import digits, vector
from tests.support.oracle import differences

Connection = psycopg.Connection[Any]
Random = np.random.Generator

WRITERS, SEARCHERS, UPDATERS = 3, 1, 2
KEYS = 700
LEVELS = [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE]

# To start a process also asks what became of the others, and the answer can be read only once.
PROCESSES = threading.Lock()

# Each takes effect at once, with the next update, or makes that update a full one.
ALTERATIONS: list[dict[str, Any]] = [
    {"max_stale": 0.01},
    {"max_stale": 0.05},
    {"learn_rows": 150},
    {"learn_rows": 400},
    {"budget": 60},
    {"budget": None},
    {"probes": 3},
    {"probes": None},
    {"label_weight": 0.5},
]


@dataclass(frozen=True)
class Form:
    """One way to keep rows and their labels, with an index on it."""

    name: str
    partitioned: bool = False
    labels_table: bool = False

    @property
    def index(self) -> str:
        return f"{self.name}_index"

    def create_tables(self, connection: Connection) -> None:
        parts = "PARTITION BY HASH (id)" if self.partitioned else ""
        connection.execute(
            f"CREATE TABLE {self.name} (id int PRIMARY KEY, embedding extensions.vector(64), label text,"
            f" price int) {parts}"
        )
        for part in range(3 if self.partitioned else 0):
            connection.execute(
                f"CREATE TABLE {self.name}_{part} PARTITION OF {self.name}"
                f" FOR VALUES WITH (MODULUS 3, REMAINDER {part})"
            )
        if self.labels_table:
            connection.execute(
                f"CREATE TABLE {self.name}_tag (id int, tag text); CREATE INDEX ON {self.name}_tag (id)"
            )

    def create_index(self, connection: Connection) -> None:
        labels = "labels => 'label'"
        if self.labels_table:
            labels = f"labels => 'tag', labels_from => '{self.name}_tag', labels_key => 'id'"
        # However few rows there are, the lists answer.
        connection.execute(
            f"SELECT foh.create_index('{self.index}', source => '{self.name}', embedding => 'embedding', {labels},"
            """ bits => 32, include => '{price}', options => '{"learn_rows": 200, "exact_rows": 0}')"""
        )

    def lock(self, connection: Connection) -> None:
        """Before the snapshot is taken: TRUNCATE empties a table for older snapshots too."""
        connection.execute(f"LOCK TABLE {self.name} IN ACCESS SHARE MODE")


FORMS = [Form("plain"), Form("tagged", labels_table=True), Form("parted", partitioned=True)]


@dataclass
class Tally:
    """What a storm has seen."""

    kills: int = 0
    stops: int = 0
    snapshots: int = 0
    writes: int = 0
    searches: int = 0
    differences: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"kills {self.kills}, stops {self.stops}, snapshots compared {self.snapshots}, differences "
            f"{len(self.differences)}, writes {self.writes}, searches {self.searches}, errors {len(self.errors)}"
        )


@dataclass
class Storm:
    """One round on one index. Each actor has random numbers of its own, so that a seed says what each tries."""

    dsn: str
    form: Form
    seed: tuple[int, ...]
    tally: Tally
    calm: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self, *actors: tuple[Callable[[Random], None], int]) -> None:
        for actor, count in actors:
            for _ in range(count):
                number = len(self._threads)
                self._threads.append(threading.Thread(target=self._play, args=(actor, number), daemon=True))
                self._threads[-1].start()

    def end(self) -> None:
        self.calm.set()
        for thread in self._threads:
            thread.join()

    def _play(self, actor: Callable[[Random], None], number: int) -> None:
        """Play again after the server went away; keep any other error for the end."""
        rng = np.random.default_rng([*self.seed, number])
        while not self.calm.is_set():
            try:
                actor(rng)
            except Exception as error:
                if victim.is_lost(error):
                    self.calm.wait(0.05)
                else:
                    self.tally.errors.append(traceback.format_exc())
                    return

    def _connect(self) -> Connection:
        # A server that hangs would otherwise hang the test.
        return psycopg.connect(self.dsn, autocommit=True, options="-c statement_timeout=120s")

    # -- writers -------------------------------------------------------------------------------------------

    def write(self, rng: Random) -> None:
        """Transactions of the application: long and short, of every isolation level, some rolled back."""
        with self._connect() as connection:
            while not self.calm.is_set():
                connection.isolation_level = LEVELS[rng.choice(3, p=[0.7, 0.2, 0.1])]
                try:
                    with connection.transaction(force_rollback=bool(rng.random() < 0.1)):
                        self._transaction(connection, rng)
                # Under REPEATABLE READ and SERIALIZABLE two writers of one row cannot both have their way.
                except psycopg.errors.SerializationFailure:
                    continue
                self.tally.writes += 1

    def _transaction(self, connection: Connection, rng: Random) -> None:
        if rng.random() < 0.01:
            connection.execute(f"TRUNCATE {self.form.name}")
            self._load(connection, rng, rng.choice(KEYS, KEYS // 2, replace=False))
            return
        if rng.random() < 0.05:
            connection.execute("SET LOCAL foh.defer = on")
        # A transaction of several rows takes them in the order of their keys: no deadlock is the application's.
        for key in sorted(rng.choice(KEYS, int(rng.integers(1, 6)), replace=False)):
            self._statement(connection, rng, int(key))
        if rng.random() < 0.1:
            self.calm.wait(float(rng.random()))

    def _statement(self, connection: Connection, rng: Random, key: int) -> None:
        table = self.form.name
        kind = rng.choice(7, p=[0.35, 0.15, 0.15, 0.1, 0.05, 0.1, 0.1])
        if kind == 0:
            self._load(connection, rng, np.array([key]))
        elif kind == 1:
            connection.execute(f"DELETE FROM {table} WHERE id = %s", [key])
        elif kind == 2:
            connection.execute(
                f"UPDATE {table} SET embedding = %s::extensions.vector WHERE id = %s", [drawn(rng)[0], key]
            )
        elif kind == 3:
            connection.execute(f"UPDATE {table} SET label = %s WHERE id = %s", [str(rng.integers(10)), key])
        elif kind == 4:
            connection.execute(f"UPDATE {table} SET embedding = NULL WHERE id = %s", [key])
        elif kind == 5:
            connection.execute(f"UPDATE {table} SET price = %s WHERE id = %s", [int(rng.integers(100)), key])
        elif self.form.labels_table and rng.random() < 0.7:
            connection.execute(f"INSERT INTO {table}_tag SELECT %s, %s", [key, str(rng.integers(10))])
        elif self.form.labels_table:
            connection.execute(f"DELETE FROM {table}_tag WHERE id = %s", [key])

    def _load(self, connection: Connection, rng: Random, keys: Any) -> None:
        rows = [(int(key), *drawn(rng)) for key in keys]
        connection.cursor().executemany(
            f"INSERT INTO {self.form.name} (id, embedding, label) VALUES (%s, %s::extensions.vector, %s)"
            " ON CONFLICT (id) DO UPDATE SET embedding = excluded.embedding",
            rows,
        )

    # -- who looks on --------------------------------------------------------------------------------------

    def search(self, rng: Random) -> None:
        """One statement is one snapshot: what it finds must be there, once, and as many as were asked for."""
        # One call: alter_index may replace the function between two, even in one statement.
        query = (
            f"WITH found AS MATERIALIZED (SELECT id FROM foh.{self.form.index}_search(%(x)s::extensions.vector, %(k)s))"
            f" SELECT (SELECT count(*) FROM {self.form.name} WHERE embedding IS NOT NULL), ARRAY(SELECT id FROM found),"
            f" ARRAY(SELECT d.id FROM found JOIN {self.form.name} d USING (id) WHERE d.embedding IS NOT NULL)"
        )
        with self._connect() as connection:
            while not self.calm.is_set():
                k = int(rng.integers(1, 40))
                row = connection.execute(query, {"x": drawn(rng)[0], "k": k}).fetchone()
                assert row is not None
                rows, found, live = row
                self.tally.searches += 1
                if len(found) != min(k, rows) or sorted(set(found)) != sorted(live):
                    self.tally.differences.append(
                        f"a search for {k} of {rows} rows gave {len(found)}, {len(live)} of them live:"
                        f" {found}, live {live}"
                    )

    def audit(self, rng: Random) -> None:
        """Compare index and table while they change, each time in one snapshot."""
        with self._connect() as connection:
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            while not self.calm.is_set():
                with connection.transaction():
                    self.form.lock(connection)
                    compare(connection, self.form, self.tally)

    # -- updaters ------------------------------------------------------------------------------------------

    def update(self, rng: Random) -> None:
        """One updater after another, each a process; most of them are killed."""
        with self._connect() as connection:
            while not self.calm.is_set():
                row = connection.execute(
                    "SELECT status, version FROM foh.index WHERE name = %s", [self.form.index]
                ).fetchone()
                assert row is not None
                status, version = row
                kind = "build" if status == "building" else str(rng.choice(KINDS, p=CHANCES))
                if kind == "alter":
                    alter(connection, self.form.index, rng)
                    continue
                arguments: dict[str, Any] = {}
                if kind == "rollback":
                    arguments = {"to": int(rng.integers(max(1, version - 5), version + 1))}
                elif kind == "update":
                    arguments = {
                        "batch_size": int(rng.choice([7, 100, 2000])),
                        "full": bool(rng.random() < 0.1),
                    }
                self._run(kind, arguments, rng)

    def _run(self, kind: str, arguments: dict[str, Any], rng: Random) -> None:
        context = victim.processes()
        receiver, sender = context.Pipe(duplex=False)
        fate = rng.random()
        dies_at = int(rng.integers(1, 30)) if fate < 0.4 else None
        process = context.Process(
            target=victim.work,
            args=(kind, self.dsn, self.form.index, arguments, dies_at, sender),
            daemon=True,
        )
        with PROCESSES:
            process.start()
        sender.close()
        began = False
        # Killed from outside at any moment after the first step, or with the storm.
        deadline = float(rng.random()) if fate > 0.7 else None
        while self._is_alive(process):
            if self.calm.is_set() or (began and deadline is not None and deadline <= 0):
                process.kill()
                break
            before = time.monotonic()
            for ready in wait([process.sentinel, *([] if receiver.closed else [receiver])], 0.05):
                if ready is receiver:
                    began |= self._hear(receiver)
            if began and deadline is not None:
                deadline -= time.monotonic() - before
        wait([process.sentinel])
        with PROCESSES:
            process.join()
        while not receiver.closed:
            self._hear(receiver)
        if process.exitcode == -signal.SIGKILL:
            self.tally.kills += 1
        elif process.exitcode != 0:
            self.tally.errors.append(f"{kind} {arguments} ended with {process.exitcode}")

    def _is_alive(self, process: Any) -> bool:
        with PROCESSES:
            return bool(process.is_alive())

    def _hear(self, receiver: Any) -> bool:
        """Whether a process says that it has begun; an error that it reports is kept."""
        try:
            message = receiver.recv()
        except EOFError:
            receiver.close()
            return False
        if message is not True:
            self.tally.errors.append(message)
        return message is True


KINDS = ["update", "rebuild", "rollback", "alter"]
CHANCES = [0.65, 0.12, 0.13, 0.1]


def drawn(rng: Random) -> tuple[str, str]:
    """A vector that no other row has, and its label."""
    data, target = digits()
    row = int(rng.integers(len(data)))
    return vector(data[row] + rng.normal(0, 0.01, 64).astype(np.float32)), str(target[row])


def alter(connection: Connection, index: str, rng: Random) -> None:
    # An updater may be at work on the index.
    with suppress(psycopg.errors.LockNotAvailable):
        connection.execute(
            "SELECT foh.alter_index(%s, %s)", [index, Jsonb(ALTERATIONS[rng.integers(len(ALTERATIONS))])]
        )


def compare(connection: Connection, form: Form, tally: Tally) -> None:
    """The oracle and foh.check, in the snapshot of the caller; neither should find anything."""
    found = differences(connection, form.name, form.index)
    reported = [
        row
        for row in connection.execute("SELECT * FROM foh.check(%s)", [form.index]).fetchall()
        # How stale codes are is estimated from samples, and is no matter of rows.
        if row[1] != "codes are staler than max_stale"
    ]
    tally.snapshots += 1
    tally.differences += [f"{form.name}: {difference}" for difference in found]
    if reported:
        tally.differences.append(f"{form.name}: foh.check says {reported[:5]}, the oracle {found}")


def unfound(connection: Connection, form: Form) -> list[int]:
    """Live rows that a search with all lists and their own vector does not find."""
    rows = connection.execute(
        f"SELECT d.id FROM {form.name} d WHERE d.embedding IS NOT NULL AND d.id <> ALL (ARRAY("
        f" SELECT s.id FROM foh.{form.index}_search(d.embedding, 1, probes => 100000, shortlist => 100, labels => 0) s))"
    )
    return [key for (key,) in rows]


def kill_backend(connection: Connection, rng: Random) -> None:
    """SIGKILL of one server process: the server ends all others and recovers."""
    others = connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY pid"
    ).fetchall()
    own = connection.info.backend_pid
    try:
        os.kill(others[rng.integers(len(others))][0] if others else own, signal.SIGKILL)
    except ProcessLookupError:  # its client has gone meanwhile
        os.kill(own, signal.SIGKILL)
