"""A server with a table and an index on it, as the version of foh_pg that is imported makes them.

`lab.studies.versions` runs this text with the code of several checkouts, so it uses nothing that any of them
lacks. Prints the connection string, then does what each line of its input says, "build" or "update", and
prints "done" after each. It serves until its input ends.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from foh_pg.updater import build, update

try:
    from foh_pg.postgres.embedded import EmbeddedServer
    from foh_pg.schema.migrations import migrate
except ModuleNotFoundError:  # version 0.1.0
    from foh_pg.database.migrations import migrate  # type: ignore[import-untyped, import-not-found, no-redef, unused-ignore]
    from foh_pg.embedded import EmbeddedServer  # type: ignore[import-untyped, import-not-found, no-redef, unused-ignore]

SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "autovacuum": "off"}


def fill(connection: psycopg.Connection[Any], rows: Path, count: int) -> None:
    """The table, and a pool of other rows from which rows are inserted."""
    with np.load(rows) as given:
        vectors, labels = given["vectors"], given["labels"]
    for table in ("item", "pool"):
        connection.execute(
            f"CREATE TABLE {table} (id int PRIMARY KEY, embedding vector({vectors.shape[1]}), labels text[])"
        )
    for table, start, stop in (("item", 0, count), ("pool", count, len(vectors))):
        with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for at in range(start, stop):
                vector = "[" + ",".join(f"{value:.6g}" for value in vectors[at]) + "]"
                copy.write_row((at - start, vector, labels[at].split()))


def create(connection: psycopg.Connection[Any], bits: int) -> None:
    connection.execute(
        "SELECT foh.create_index('items', 'item', 'embedding', labels => 'labels', bits => %s)", [bits]
    )


def main(version: int, rows: Path, count: int, bits: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="foh-bench-", ignore_cleanup_errors=True) as directory,
        EmbeddedServer(Path(directory) / "data", version, SETTINGS) as server,
        psycopg.connect(server.dsn(), autocommit=True) as connection,
    ):
        connection.execute("CREATE EXTENSION vector")
        migrate(connection)
        fill(connection, rows, count)
        create(connection, bits)
        build(server.dsn(), "items")
        connection.execute("VACUUM ANALYZE")
        print(server.dsn(), flush=True)
        for line in sys.stdin:
            if line.strip() == "build":
                connection.execute("SELECT foh.drop_index('items')")
                create(connection, bits)
                build(server.dsn(), "items")
            else:
                update(server.dsn(), "items")
            print("done", flush=True)


main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
