"""From the schema of a released version, as a database has it that was dumped then, to that of today."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from foh_pg.schema.migrations import head, migrate
from foh_pg.updater import build, update
from tests.support.catalog import dump
from tests.support.postgres import Database, Server, install_pgvector

# A dump is made by the oldest PostgreSQL of the tests, so that every newer one can restore it.
RENDER = "FOH_RENDER=1 pytest --pg=16 tests/integration/schema/test_released.py -k rendered"
DUMPS = sorted((Path(__file__).resolve().parents[2] / "data").glob("schema-*.sql.gz"))
NEWEST = Path(__file__).resolve().parents[2] / "data" / "schema-0.2.0.sql.gz"
SEARCH = "SELECT id FROM foh.{}_search('[1,2,3]', 5, labels => 0)"


def install(database: Database) -> Database:
    """Three indexes: one built, one with a few entries in its stream, one with labels of another table."""
    superuser = database.connect(None)
    install_pgvector(superuser)
    superuser.execute("GRANT CREATE ON SCHEMA public TO app_owner")
    migrate(superuser, owner="app_owner")
    owner = database.connect()
    owner.execute("CREATE TABLE tag (item int, name text)")
    for name, labels in (
        ("built", "labels => 'tags'"),
        ("waiting", "include => ARRAY['price']"),
        ("tagged", "labels => 'name', labels_from => 'tag', labels_key => 'item'"),
    ):
        owner.execute(
            f"""CREATE TABLE {name}_items (id int PRIMARY KEY, embedding extensions.vector(3), tags text[],
                                           price int)"""
        )
        owner.execute(
            f"SELECT foh.create_index('{name}', '{name}_items', 'embedding', {labels}, bits => 16)".encode()
        )
        owner.execute(f"SELECT foh.grant('{name}', reader => 'app_reader')")
        owner.execute(f"GRANT SELECT ON {name}_items TO app_reader")
        owner.execute(
            f"""INSERT INTO {name}_items SELECT n, ARRAY[n % 7, n % 5, 1]::extensions.vector,
                    ARRAY[(n % 3)::text], n FROM generate_series(1, 60) n"""
        )
    owner.execute("SELECT foh.grant(updater => 'app_writer')")
    build(database.dsn("app_writer"), "built")
    return database


def restore(path: Path, database: Database, server: Server) -> Database:
    assert server.bin is not None
    psql = [server.bin / "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", database.dsn(None)]
    subprocess.run(psql, input=gzip.decompress(path.read_bytes()), check=True, capture_output=True)
    return database


def schema(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    """All of schema foh; functions without the numbers of the application's tables."""
    return [
        tuple(re.sub(r"\b[1-9]\d{4,}\b", "an oid", f"{part}") for part in row) for row in dump(connection)
    ]


@pytest.mark.skipif("FOH_RENDER" not in os.environ, reason=f"makes the newest dump again: {RENDER}")
def test_rendered(new_database: Callable[..., Database], server: Server) -> None:
    assert server.bin is not None
    database = install(new_database())
    database.disconnect()
    made = subprocess.run(
        [server.bin / "pg_dump", database.dsn(None)], check=True, capture_output=True, text=True
    ).stdout
    # A random word that psql of earlier minor versions does not know.
    made = re.sub(r"(?m)^\\(un)?restrict .*\n", "", made)
    NEWEST.write_bytes(gzip.compress(made.encode(), mtime=0))


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.name)
def test_a_released_schema_becomes_that_of_a_fresh_install(
    path: Path, new_database: Callable[..., Database], server: Server
) -> None:
    """Tables by migrations, which are frozen; functions because their digest is another one."""
    if server.bin is None:
        pytest.skip("this server brings no psql")
    restored = restore(path, new_database(template="template0"), server)
    owner, reader = restored.connect(), restored.connect("app_reader")
    before = {name: reader.execute(SEARCH.format(name).encode()).fetchall() for name in ("built", "waiting")}
    # As if a later version had other functions, which is so from the first commit after a release on.
    owner.execute("UPDATE foh.code SET digest = 'that of the release'")
    assert migrate(owner)[1] == head()
    fresh = install(new_database())
    there, here = schema(owner), schema(fresh.connect())
    assert there == here, f"a change of the tables needs a migration; before a release: {RENDER}"
    for name, found in before.items():
        assert reader.execute(SEARCH.format(name).encode()).fetchall() == found
    owner.execute("UPDATE built_items SET embedding = '[9,9,9]' WHERE id < 20")
    for name in ("built", "waiting", "tagged"):
        (build if name != "built" else update)(restored.dsn("app_writer"), name)
        assert owner.execute("SELECT * FROM foh.check(%s)", [name]).fetchall() == []
