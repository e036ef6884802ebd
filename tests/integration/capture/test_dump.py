"""A dump restored elsewhere goes on indexing, though every oid and some attribute numbers are others."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.integration.capture.test_create_index import everything
from tests.support.postgres import Database, Server
from tests.support.recorded import (
    Connection,
    codes,
    create_index,
    entries,
    expected_codes,
    insert,
    problems,
    text,
    vectors,
)

X = vectors(20)


@pytest.fixture
def restore(new_database: Callable[..., Database], server: Server) -> Callable[[Database], Database]:
    if server.bin is None:
        pytest.skip("this server brings no pg_dump")
    programs = server.bin

    def dump_and_restore(database: Database) -> Database:
        target = new_database(template="template0")
        dump = subprocess.run(
            [programs / "pg_dump", database.dsn(None)], check=True, capture_output=True, text=True
        )
        psql = [programs / "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", target.dsn(None)]
        subprocess.run(psql, input=dump.stdout, check=True, capture_output=True, text=True)
        return target

    return dump_and_restore


@pytest.mark.parametrize("form", ["statement", "partitioned"])
def test_restored(
    connection: Connection, database: Database, restore: Callable[[Database], Database], form: str
) -> None:
    connection.execute(
        f"""CREATE TABLE "It ems" (gone int, id int PRIMARY KEY, also_gone text,
                                   embedding extensions.vector(8))
            {"PARTITION BY RANGE (id)" if form == "partitioned" else ""}"""
    )
    if form == "partitioned":
        connection.execute('CREATE TABLE part PARTITION OF "It ems" DEFAULT')
    connection.execute('ALTER TABLE "It ems" DROP COLUMN gone, DROP COLUMN also_gone')
    connection.execute('ALTER TABLE "It ems" ENABLE ROW LEVEL SECURITY')
    connection.execute("CREATE TABLE marks (gone int, item int, tag text)")
    connection.execute("ALTER TABLE marks DROP COLUMN gone")
    create_index(connection, "in_dex", '"It ems"', labels="tag", labels_from="marks", labels_key="item")
    insert(connection, 1, X[1], table="It ems")
    connection.execute("INSERT INTO marks VALUES (1, 'a')")
    before = entries(connection, "in_dex")

    restored = restore(database)
    there = restored.connect()
    assert entries(there, "in_dex") == before
    moved = """SELECT i.source <> i.source_oid, a.attnum <> i.embedding_attnum FROM foh.index i
               JOIN pg_attribute a ON a.attrelid = i.source AND a.attname = i.embedding"""
    assert there.execute(moved).fetchone() == (True, True)
    assert problems(there, "in_dex") == []
    insert(there, 2, X[2], table="It ems")
    there.execute('UPDATE "It ems" SET embedding = %s WHERE id = 1', [text(X[3])])
    there.execute("UPDATE marks SET tag = 'b'")
    assert codes(there, "in_dex") == expected_codes(there, {1: X[3], 2: X[2]}, "in_dex")
    assert [entry.seq for entry in entries(there, "in_dex")] == sorted(
        {entry.seq for entry in entries(there, "in_dex")}
    )
    assert there.execute("""SELECT * FROM foh.repair('in_dex')""").fetchone() == (0, 0, 0)
    assert problems(there, "in_dex") == []
    # A renamed column cannot be followed by its number here, and must not be followed to another column.
    there.execute('ALTER TABLE "It ems" RENAME COLUMN embedding TO vec')
    there.execute('INSERT INTO "It ems" (id, vec) VALUES (4, %s)', [text(X[4])])
    assert codes(there, "in_dex")[4] is None
    there.execute("SELECT foh.refresh('in_dex', embedding => 'vec')")
    there.execute('INSERT INTO "It ems" (id, vec) VALUES (5, %s)', [text(X[5])])
    assert codes(there, "in_dex")[5] == expected_codes(there, {5: X[5]}, "in_dex")[5]
    there.execute("SELECT foh.drop_index('in_dex')")
    left = everything(restored.connect(None))
    assert [row for row in left if row[0] in ("trigger", "policy") or "in_dex" in str(row)] == []
    there.execute('INSERT INTO "It ems" (id, vec) VALUES (6, %s)', [text(X[6])])


def test_refresh_records_the_new_numbers(
    connection: Connection, database: Database, restore: Callable[[Database], Database]
) -> None:
    connection.execute("CREATE TABLE items (gone int, id int PRIMARY KEY, embedding extensions.vector(8))")
    connection.execute("ALTER TABLE items DROP COLUMN gone")
    create_index(connection)
    there = restore(database).connect()
    there.execute("SELECT foh.refresh('idx')")
    assert there.execute("SELECT source = source_oid, embedding_attnum FROM foh.index").fetchone() == (
        True,
        2,
    )
    assert entries(there) == []
    there.execute("ALTER TABLE items RENAME COLUMN embedding TO vec")
    there.execute("SELECT foh.refresh('idx')")
    there.execute("INSERT INTO items VALUES (1, %s)", [text(X[1])])
    assert codes(there) == expected_codes(there, {1: X[1]})
