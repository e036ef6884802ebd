"""A server with a table and an index on it, as the version of foh_pg that is imported makes them.

`benchmarks.versions` runs this text with the code of several checkouts, so it uses nothing that any of them
lacks. Prints the connection string, and serves until its input ends.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from foh_pg.updater import build

try:
    from foh_pg.postgres.embedded import EmbeddedServer
    from foh_pg.schema.migrations import migrate
except ModuleNotFoundError:  # version 0.1.0
    from foh_pg.database.migrations import migrate  # type: ignore[import-untyped, import-not-found, no-redef, unused-ignore]
    from foh_pg.embedded import EmbeddedServer  # type: ignore[import-untyped, import-not-found, no-redef, unused-ignore]

SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "autovacuum": "off"}


def rows(count: int, dimensions: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Gaussian clusters, a label for each ten of them."""
    generator = np.random.default_rng(0)
    middles = generator.normal(size=(200, dimensions))
    cluster = generator.integers(0, len(middles), count)
    return middles[cluster] + 0.7 * generator.normal(size=(count, dimensions)), cluster // 10


def fill(connection: psycopg.Connection[Any], count: int, dimensions: int) -> None:
    """The table, and a pool of other vectors from which rows are inserted."""
    for table in ("item", "pool"):
        connection.execute(
            f"CREATE TABLE {table} (id int PRIMARY KEY, embedding vector({dimensions}), label text)"
        )
    vectors, labels = rows(2 * count, dimensions)
    for table, start in (("item", 0), ("pool", count)):
        with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for at in range(start, start + count):
                vector = "[" + ",".join(f"{value:.6g}" for value in vectors[at]) + "]"
                copy.write_row((at - start, vector, str(labels[at])))


def main(version: int, count: int, dimensions: int, bits: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="foh-bench-", ignore_cleanup_errors=True) as directory,
        EmbeddedServer(Path(directory) / "data", version, SETTINGS) as server,
    ):
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
            migrate(connection)
            fill(connection, count, dimensions)
            connection.execute(
                "SELECT foh.create_index('items', 'item', 'embedding', labels => 'label', bits => %s)", [bits]
            )
        build(server.dsn(), "items")
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
        print(server.dsn(), flush=True)
        sys.stdin.read()


main(*map(int, sys.argv[1:]))
