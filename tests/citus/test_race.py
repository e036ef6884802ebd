"""Writers who search for what they wrote, an updater without rest, and shards that move, are split and rebalanced."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg import Index, updater
from foh_pg.errors import FohError
from tests.citus.conftest import Cluster
from tests.support.digits import vector

# Longer runs are for whoever changes something here.
SECONDS = float(os.environ.get("FOH_TEST_CITUS_SECONDS", "15"))
WRITERS = 3
PLACES = (
    "SELECT s.shardid, n.nodename, n.nodeport FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid)"
    " JOIN pg_dist_node n USING (groupid) WHERE s.logicalrelid = 'item'::regclass"
)


# Of the rows that writers write: those of one tenant are in one shard, and its ids are unique in it alone.
TENANTS = 5


class Race:
    def __init__(self, cluster: Cluster, *, tenants: bool) -> None:
        self.cluster = cluster
        self.tenants = tenants
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.ended = threading.Event()

    def run(self) -> None:
        parts = [self.move, self.update, *(lambda n=n: self.write(n) for n in range(WRITERS)), self.read]
        threads = [threading.Thread(target=self._guarded, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        self.ended.wait(SECONDS)
        self.ended.set()
        for thread in threads:
            thread.join()

    def _guarded(self, part: Any) -> None:
        try:
            part()
        except Exception as error:
            self.wrong.append(f"{getattr(part, '__name__', 'write')}: {type(error).__name__}: {error}")

    def key(self, number: int) -> Any:
        """The key of a row as a search returns it."""
        return (number % TENANTS, number // TENANTS) if self.tenants else number

    def write(self, number: int) -> None:
        """Insert, update and delete rows of its own; search for each right after it is committed."""
        drawn = random.Random(number)
        vectors = np.random.default_rng(number)
        connection = (
            self.cluster.on_worker(number % 2)
            if number % 2
            else psycopg.connect(self.cluster.dsn(), autocommit=True)
        )
        index = Index.open(psycopg.connect(self.cluster.dsn(), autocommit=True), "items")
        mine: dict[int, np.ndarray[Any, Any]] = {}
        key = 1_000_000 * (number + 1)
        while not self.ended.is_set():
            row, size = vectors.standard_normal(16).astype(np.float32), drawn.randrange(3)
            kind = drawn.choice(["insert", "insert", "update", "delete"]) if len(mine) > 5 else "insert"
            if kind == "insert":
                key += 1
                touched = key
                statement = "INSERT INTO item (tenant, id, embedding, size) VALUES (%(tenant)s, %(id)s, %(row)s, %(size)s)"
            else:
                touched = drawn.choice(list(mine))
                statement = (
                    "UPDATE item SET embedding = %(row)s, size = %(size)s WHERE tenant = %(tenant)s AND id = %(id)s"
                    if kind == "update"
                    else "DELETE FROM item WHERE tenant = %(tenant)s AND id = %(id)s"
                )
            try:
                tenant, id_ = self.key(touched) if self.tenants else (0, touched)
                done = connection.execute(
                    statement, {"tenant": tenant, "id": id_, "row": vector(row), "size": size}
                ).rowcount
            except psycopg.Error as error:
                # Citus cancels a statement now and then where a shard moves; it has changed nothing then.
                self.counts[f"{kind} refused: {type(error).__name__}"] += 1
                continue
            if done == 0:
                # The shard moved under the statement: so without any index too.
                self.counts[f"{kind} touched no row"] += 1
                continue
            self.counts[kind] += 1
            if kind == "delete":
                row = mine.pop(touched)
            else:
                mine[touched] = row
            # What was written passes a condition by its new value; a condition on the distribution column asks one node.
            match = drawn.choice(
                [None, {"size": size}, {"tenant": tenant} if self.tenants else {"id": touched}]
            )
            asked = f"tenant = {tenant}" if self.tenants and match is None and drawn.random() < 0.5 else None
            found = [m.key for m in index.search(row, 5, match=match, filter=asked)]
            if (self.key(touched) in found) == (kind == "delete"):
                self.wrong.append(
                    f"{kind} of {self.key(touched)}, match {match}, filter {asked}: found {found}"
                )
            if len(set(found)) != (kind != "delete" if match and "id" in match else 5):
                self.wrong.append(f"{len(found)} rows, match {match}: {found}")

    def read(self) -> None:
        """Rows that nobody changes are found all the time."""
        index = Index.open(psycopg.connect(self.cluster.dsn(), autocommit=True), "items")
        rows = base()
        number = 0
        while not self.ended.is_set():
            number = (number + 7) % len(rows)
            found = [m.key for m in index.search(rows[number], 5)]
            self.counts["search"] += 1
            if found[:1] != [self.key(number)] or len(set(found)) != 5:
                self.wrong.append(f"search for {number}: {found}")

    def update(self) -> None:
        while not self.ended.is_set():
            try:
                run = updater.update(self.cluster.dsn(), "items", batch_size=500)
                self.counts["runs"] += 1
                self.counts["versions"] += run.to_version - run.from_version
            except (FohError, psycopg.Error) as error:
                # A statement on a shard that has just moved: the next run does the work.
                self.counts[f"run refused: {type(error).__name__}"] += 1

    def move(self) -> None:
        """Move a shard to the other node, again and again; split one; rebalance at the end."""
        superuser = psycopg.connect(self.cluster.dsn(None), autocommit=True)
        nodes = {(name, port) for _, name, port in superuser.execute(PLACES)}
        split = False
        while not self.ended.is_set():
            shard, name, port = random.choice(superuser.execute(PLACES).fetchall())
            other = next(iter(nodes - {(name, port)}))
            try:
                superuser.execute(
                    "SELECT citus_move_shard_placement(%s, %s, %s, %s, %s, 'force_logical')",
                    [shard, name, port, *other],
                )
                self.counts["moves"] += 1
                if not split and self.counts["moves"] >= 2:
                    split = True
                    self.split(superuser)
            except psycopg.Error as error:
                self.counts[f"move refused: {type(error).__name__}"] += 1
        superuser.execute("SELECT rebalance_table_shards('item', shard_transfer_mode => 'force_logical')")

    def split(self, superuser: psycopg.Connection[Any]) -> None:
        shard, low, high, node = superuser.execute(
            "SELECT s.shardid, s.shardminvalue::int, s.shardmaxvalue::int, n.nodeid FROM pg_dist_shard s"
            " JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_node n USING (groupid)"
            " WHERE s.logicalrelid = 'item'::regclass ORDER BY s.shardid LIMIT 1"
        ).fetchone()
        middle = (low + high) // 2
        superuser.execute(
            "SELECT citus_split_shard_by_split_points(%s, ARRAY[%s], ARRAY[%s, %s]::int[], 'block_writes')",
            [shard, str(middle), node, node],
        )
        self.counts["splits"] += 1


def base() -> np.ndarray[Any, Any]:
    return np.random.default_rng(99).standard_normal((2000, 16)).astype(np.float32)


@pytest.mark.parametrize("key", ["id", "tenant, id"])
def test_race(cluster: Cluster, owner: psycopg.Connection[Any], key: str, record_property: Any) -> None:
    race = Race(cluster, tenants=key != "id")
    home = key.split(",")[0]
    owner.execute(
        "CREATE TABLE item (tenant int NOT NULL, id bigint NOT NULL, embedding extensions.vector(16), size int,"
        f" PRIMARY KEY ({key}))".encode()
    )
    owner.execute("SET citus.shard_count = 4")
    owner.execute("SELECT create_distributed_table('item', %s, colocate_with => 'none')", [home])
    with owner.cursor().copy("COPY item FROM STDIN") as copy:
        for number, row in enumerate(base()):
            copy.write_row((*(race.key(number) if race.tenants else (0, number)), vector(row), number % 3))
    owner.execute(
        "SELECT foh.create_index('items', 'item', 'embedding', include => %s, options => '{\"exact_rows\": 0}')",
        [["size", home]],
    )
    updater.build(cluster.dsn(), "items")
    started = time.monotonic()
    race.run()
    record_property("storm", f"{dict(race.counts)} in {time.monotonic() - started:.0f} s")
    assert race.wrong == []
    assert race.counts["insert"] > 10
    assert race.counts["moves"] > 0
    updater.update(cluster.dsn(), "items")
    assert owner.execute("SELECT * FROM foh.check('items')").fetchall() == []
    assert owner.execute("SELECT * FROM foh.repair('items')").fetchone() == (0, 0, 0)
