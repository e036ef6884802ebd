"""What the triggers read while they record a write: nothing that aborts another writer, and never a whole table."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from itertools import product
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest

from tests.support.postgres import Database
from tests.support.shop import Shop, text, vectors
from tests.support.waiting import PATIENCE

SESSIONS, EACH = 8, 40
# Scans of the indexes on the stream in this transaction, the entries that they returned, and the blocks looked at, by
# scans as by insertions.
SCANS = """
SELECT indexrelname, pg_stat_get_xact_numscans(indexrelid), pg_stat_get_xact_tuples_returned(indexrelid),
       pg_stat_get_xact_blocks_fetched(indexrelid)
FROM pg_stat_user_indexes WHERE schemaname = 'foh' AND relname = 'items_stream'
UNION ALL
SELECT 'the table from end to end', seq_scan, seq_tup_read, 0
FROM pg_stat_xact_user_tables WHERE schemaname = 'foh' AND relname = 'items_stream'
"""


@pytest.mark.one_version(but={"labels_from": [True]})
@pytest.mark.parametrize("triggers", ["statement", "row"])
@pytest.mark.parametrize("labels_from", [False, True])
def test_serializable_writers_of_ascending_keys(database: Database, triggers: str, labels_from: bool) -> None:
    """Each begins where the other ended: a lookup of a key that is not there would lock the page of its neighbours."""
    connection = database.connect("app_owner")
    connection.execute("CREATE TABLE item (id int PRIMARY KEY, embedding extensions.vector(8), label text)")
    connection.execute("CREATE TABLE tag (item int, label text)")
    connection.execute("CREATE INDEX ON tag (item)")
    more = ", labels => 'label'" + (", labels_from => 'tag', labels_key => 'item'" if labels_from else "")
    options = f'{{"exact_rows": 0, "triggers": "{triggers}"}}'
    connection.execute(
        f"SELECT foh.create_index('items', 'item', 'embedding', options => '{options}'{more})".encode()
    )
    rows = [text(row) for row in vectors(SESSIONS * EACH)]
    ready = threading.Barrier(SESSIONS)
    errors: list[BaseException] = []

    def write(session: int) -> None:
        try:
            with psycopg.connect(database.dsn("app_owner")) as own:
                own.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
                for at in range(session, SESSIONS * EACH, SESSIONS):
                    # All of a round are open at once.
                    with own.transaction():
                        own.execute("INSERT INTO item VALUES (%s, %s, 'a')", [at, rows[at]])
                        ready.wait(PATIENCE)
        except BaseException as error:
            ready.abort()
            errors.append(error)

    threads = [threading.Thread(target=write, args=(session,)) for session in range(SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [error for error in errors if not isinstance(error, threading.BrokenBarrierError)] == []
    counts = "SELECT (SELECT count(*) FROM item), (SELECT count(*) FROM foh.items_stream WHERE op = 'u')"
    assert connection.execute(counts).fetchone() == (SESSIONS * EACH, SESSIONS * EACH)
    assert connection.execute("SELECT * FROM foh.check('items')").fetchall() == []


@pytest.mark.parametrize(
    ("level", "aborted"),
    [(psycopg.IsolationLevel.SERIALIZABLE, True), (psycopg.IsolationLevel.REPEATABLE_READ, False)],
)
def test_two_who_search_and_then_insert(
    database: Database, level: psycopg.IsolationLevel, aborted: bool
) -> None:
    """Neither saw the row of the other, so no order explains both answers: docs/explained/search.md says what to do."""
    connection = database.connect("app_owner")
    connection.execute("CREATE TABLE item (id int PRIMARY KEY, embedding extensions.vector(8))")
    connection.execute("SELECT foh.create_index('items', 'item', 'embedding')")
    rows = [text(row) for row in vectors(20)]
    for key in range(10):
        connection.execute("INSERT INTO item VALUES (%s, %s)", [key, rows[key]])
    two = [psycopg.connect(database.dsn("app_owner")) for _ in range(2)]
    failures = 0
    for at, own in enumerate(two, 10):
        own.isolation_level = level
        assert len(own.execute("SELECT * FROM foh.items_search(%s, 5)", [rows[at]]).fetchall()) == 5
    for at, own in enumerate(two, 10):
        try:
            own.execute("INSERT INTO item VALUES (%s, %s)", [at, rows[at]])
            own.commit()
        except psycopg.errors.SerializationFailure:
            failures += 1
        own.close()
    assert failures == aborted


# Keys in no order, made of sixteen bytes.
KEYS: dict[str, Callable[[bytes], Any]] = {
    "uuid": lambda drawn: UUID(bytes=drawn),
    "bigint": lambda drawn: int.from_bytes(drawn[:8], "big", signed=True),
    # Of so few bytes some keys would be equal.
    "int": lambda drawn: int.from_bytes(hashlib.sha256(drawn).digest()[:4], "big", signed=True),
    "text": bytes.hex,
    "varchar": bytes.hex,
}


def insert(shop: Shop, kind: str, start: int, count: int) -> dict[str, tuple[int, ...]]:
    """Rows with keys in no order, in one statement; what that scanned."""
    keys = [KEYS[kind](np.random.default_rng(start + at).bytes(16)) for at in range(count)]
    assert len(set(keys)) == count
    base = [text(row) for row in vectors(count, seed=start)]

    def scans() -> dict[str, Any]:
        return {name: np.array(counts) for name, *counts in shop.run(SCANS)}

    with shop.connection.transaction():
        before = scans()
        shop.run(
            f"INSERT INTO {{source}} ({{key}}, embedding) SELECT * FROM unnest(%s::{kind}[], %s::extensions.vector[])",
            [keys, base],
        )
        return {name: tuple(counts - before[name]) for name, counts in scans().items()}


@pytest.mark.one_version(but={"kind": ["uuid", "text"], "planned": [True], "emptied": [True]})
@pytest.mark.parametrize(
    ("kind", "planned", "emptied"),
    [
        *product(["uuid"], [False, True], [False, True]),
        *((kind, True, True) for kind in KEYS if kind != "uuid"),
    ],
)
def test_bulk_inserts_look_each_key_up(
    new_shop, database: Database, kind: str, planned: bool, emptied: bool
) -> None:
    """With statistics of a full stream, an empty one, or both at odds."""
    shop = new_shop(key_type=kind)
    count = 3000 if kind == "uuid" else 1500
    writer = shop.seen_by(database.connect("app_owner"))
    if planned:
        insert(writer, kind, 10_000_000, 5)
    insert(shop, kind, 0, count)
    shop.run("ANALYZE {stream}")
    if emptied:
        shop.install(centers=8)
        shop.run("VACUUM {stream}")
    for analyzed in (False, True):
        if analyzed:
            shop.run("ANALYZE {stream}")
        scans = insert(writer, kind, count * (2 + analyzed), count)
        [by_key] = [name for name in scans if name.startswith("items_stream_key")]
        looked_up, _, blocks = scans.pop(by_key)
        assert looked_up == count
        # Twice from the root to a leaf for each key: once to look, once to insert. A scan would be of many leaves.
        assert blocks < 8 * count
        # Not one entry is read on another way, and none of these keys is there.
        assert {name: read for name, read in scans.items() if read[:2] != (0, 0)} == {}
