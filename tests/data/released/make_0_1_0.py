"""Makes 0.1.0.sql.gz: a database as version 0.1.0 left it. To be run with the code of that version.

    git worktree add /tmp/old 55b2658
    PYTHONPATH=/tmp/old .venv/bin/python tests/data/released/make_0_1_0.py tests/data/released/0.1.0.sql.gz

PostgreSQL 16 dumps it, and so any later version can load it. INSERT in place of COPY: no psql is needed.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from foh_pg.updater import build, update

try:
    from foh_pg.database.connection import connect
    from foh_pg.database.migrations import head, migrate
    from foh_pg.embedded import EmbeddedServer
except ModuleNotFoundError:  # a test of the present version imports the names of the tables from here
    from foh_pg.postgres.connect import connect
    from foh_pg.postgres.embedded import EmbeddedServer
    from foh_pg.schema.migrations import head, migrate

ROLES = {"installer": "CREATEROLE", "app_owner": "", "app_writer": "", "app_reader": ""}

TABLES = """
CREATE TABLE product (id int PRIMARY KEY, title text NOT NULL, tags text[], embedding extensions.vector(16));
CREATE TABLE paper (id bigint PRIMARY KEY, embedding extensions.vector(8));
CREATE TABLE paper_tag (paper bigint NOT NULL, tag text NOT NULL, PRIMARY KEY (paper, tag));
CREATE TABLE photo (id bigint PRIMARY KEY, embedding extensions.halfvec(12));
CREATE TABLE document (id uuid PRIMARY KEY, kind text, embedding extensions.vector(8));
CREATE TABLE event (id int PRIMARY KEY, kind text, embedding extensions.vector(8)) PARTITION BY RANGE (id);
CREATE TABLE event_1 PARTITION OF event FOR VALUES FROM (0) TO (150);
CREATE TABLE event_2 PARTITION OF event FOR VALUES FROM (150) TO (10000);
CREATE TABLE song (id text PRIMARY KEY, embedding real[]);
CREATE TABLE "Odd ""table" ("Key %" int PRIMARY KEY, "a vector" extensions.vector(8));
"""

INDEXES = """
SELECT foh.create_index('products', 'product', 'embedding', labels => 'tags', bits => 32, probes => 5,
                        options => '{"learn_rows": 100, "blend": 0.5, "exact_rows": 50}');
SELECT foh.create_index('papers', 'paper', 'embedding', labels => 'tag', labels_from => 'paper_tag',
                        labels_key => 'paper', bits => 32, options => '{"learn_rows": 100, "exact_rows": 50}');
SELECT foh.create_index('photos', 'photo', 'embedding', bits => 24, options => '{"exact_rows": 50}');
SELECT foh.create_index('documents', 'document', 'embedding', labels => 'kind', bits => 64, distance => 'l2',
                        homes => 2, options => '{"learn_rows": 100, "exact_rows": 50, "shortlist": 80}');
SELECT foh.create_index('events', 'event', 'embedding', labels => 'kind', bits => 16,
                        options => '{"learn_rows": 100, "exact_rows": 50}');
SELECT foh.create_index('songs', 'song', 'embedding', bits => 16, dimensions => 8, distance => 'ip');
SELECT foh.create_index('odd', '"Odd ""table"', 'a vector', bits => 16);
"""

random = np.random.default_rng(7)
KINDS = ["red", "green", "blue", "it's", "ünïcode"]


def vectors(classes: np.ndarray[Any, Any], dimensions: int) -> list[str]:
    """Rows around a middle of their class, short enough as text."""
    middles = random.standard_normal((len(KINDS), dimensions))
    rows = middles[classes] + 0.7 * random.standard_normal((len(classes), dimensions))
    return ["[" + ",".join(f"{value:.2f}" for value in row) + "]" for row in rows]


def rows_of(table: str, first: int, count: int) -> list[tuple[Any, ...]]:
    classes = random.integers(0, len(KINDS), count)
    ids = range(first, first + count)
    if table == "product":
        tags = [[KINDS[c], f"extra {i % 7}"] if i % 9 else None for i, c in enumerate(classes)]
        return list(zip(ids, [f"product {i}" for i in ids], tags, vectors(classes, 16), strict=True))
    if table in ("paper", "photo"):
        return list(zip(ids, vectors(classes, 8 if table == "paper" else 12), strict=True))
    kinds = [KINDS[c] for c in classes]
    if table == "document":
        keys = [str(uuid.UUID(int=int(i) * 2**64 + 12345)) for i in ids]
        return list(zip(keys, kinds, vectors(classes, 8), strict=True))
    if table == "event":
        return list(zip(ids, kinds, vectors(classes, 8), strict=True))
    if table == "song":
        keys = [f"song {i}" for i in ids]
        return [(k, "{" + v[1:-1] + "}") for k, v in zip(keys, vectors(classes, 8), strict=True)]
    return list(zip(ids, vectors(classes, 8), strict=True))


def insert(owner: psycopg.Connection[Any], table: str, first: int, count: int) -> None:
    rows = rows_of(table, first, count)
    name = 'Odd "table' if table == "odd" else table
    statement = sql.SQL("INSERT INTO {} VALUES ({})").format(
        sql.Identifier(name), sql.SQL(", ").join(sql.Placeholder() * len(rows[0]))
    )
    with owner.cursor() as cursor:
        cursor.executemany(statement, rows)
        if table == "paper":
            tags = [(row[0], KINDS[int(n)]) for row in rows for n in set(random.integers(0, len(KINDS), 2))]
            cursor.executemany("INSERT INTO paper_tag VALUES (%s, %s)", tags)


def fill(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(TABLES)
        for table in ("product", "paper", "photo", "document", "event", "odd"):
            insert(owner, table, 1, 240)
        owner.execute(INDEXES)
        # Two are never built: one on a table with rows, one that was empty when the index was made.
        for index in ("products", "papers", "photos", "documents", "events"):
            build(dsn, index)
        insert(owner, "song", 1, 60)
        for table in ("product", "paper", "document", "event"):
            insert(owner, table, 241, 120)
        for index in ("products", "papers", "documents"):
            update(dsn, index)
        # What waits in the stream.
        for table in ("product", "paper", "photo", "document", "event", "song"):
            insert(owner, table, 1001, 20)
        owner.execute(
            "UPDATE product SET embedding = '[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]' WHERE id = 5"
        )
        owner.execute("UPDATE product SET tags = '{late}' WHERE id = 6")
        owner.execute("DELETE FROM product WHERE id BETWEEN 10 AND 15")
        owner.execute("DELETE FROM photo WHERE id = 7")
        owner.execute("UPDATE photo SET embedding = NULL WHERE id = 8")
        owner.execute("INSERT INTO paper_tag VALUES (9, 'late')")
        owner.execute("UPDATE event SET id = id + 5000 WHERE id = 20")


def main(target: Path) -> None:
    assert head() == "0002", "run this with the code of version 0.1.0"
    with (
        tempfile.TemporaryDirectory(prefix="foh-") as directory,
        EmbeddedServer(Path(directory) / "data", 16, {"fsync": "off"}) as server,
    ):
        with psycopg.connect(server.dsn(), autocommit=True) as superuser:
            for role, attributes in ROLES.items():
                superuser.execute(f"CREATE ROLE {role} LOGIN {attributes}")
            superuser.execute("CREATE DATABASE released OWNER installer")
        with psycopg.connect(server.dsn("released"), autocommit=True) as superuser:
            superuser.execute("CREATE SCHEMA extensions")
            superuser.execute("GRANT USAGE ON SCHEMA extensions TO PUBLIC")
            superuser.execute("CREATE EXTENSION vector SCHEMA extensions")
            superuser.execute("GRANT CREATE ON SCHEMA public TO app_owner")
        with connect(server.dsn("released", "installer")) as installer:
            migrate(installer)
            installer.execute("SELECT foh.grant(owner => 'app_owner')")
            installer.commit()
        fill(server.dsn("released", "app_owner"))
        with psycopg.connect(server.dsn("released", "app_owner"), autocommit=True) as owner:
            owner.execute("SELECT foh.grant('products', reader => 'app_reader')")
            owner.execute("GRANT SELECT ON product TO app_reader")
            owner.execute(
                "GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON product, paper_tag TO app_writer"
            )
        command = [server.bin / "pg_dump", "--rows-per-insert=50", server.dsn("released")]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Commands of psql, which newer versions of pg_dump write.
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("\\")]
    with gzip.GzipFile(target, "wb", mtime=0) as file:
        file.write("".join(lines).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
