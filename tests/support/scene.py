"""A database in which something goes on: what pictures in the docs are taken of."""

from __future__ import annotations

from foh_pg.demo.packages import load
from foh_pg.quality.evaluate import evaluate
from foh_pg.updater import build, update
from tests.support.digits import create_index, create_table, insert, vector
from tests.support.postgres import Database

PACKAGES = """
CREATE TABLE package (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text, tags text[],
                      embedding extensions.vector(128))
"""


def make_scene(database: Database) -> None:
    """An index that has learned for a while, a small one, and one that needs attention."""
    connection, dsn = database.connect("app_owner"), database.dsn()
    connection.execute(PACKAGES)
    connection.execute(
        """SELECT foh.create_index('packages', 'package', 'embedding', 'tags', options => '{"held_out": 0.1}')"""
    )
    packages = load()
    for start in range(0, 4000, 400):
        batch = packages.part(start, start + 400)
        rows = list(zip(batch.names, batch.tags, map(vector, batch.vectors), strict=True))
        connection.cursor().executemany(
            "INSERT INTO package (name, tags, embedding) VALUES (%s, %s, %s)", rows
        )
        update(dsn, "packages")
        evaluate(dsn, "packages", queries=100)
    create_table(connection)
    create_index(connection, options='{"learn_rows": 300, "held_out": 0.1}')
    for start in range(0, 1200, 300):
        insert(connection, range(start, start + 300))
        update(dsn, "digits")
        evaluate(dsn, "digits", queries=60)
    connection.execute("SELECT foh.create_index('descriptions', 'package', 'embedding')")
    build(dsn, "descriptions")
    connection.execute(
        "CREATE TABLE review (id int PRIMARY KEY, embedding extensions.vector(64), label text)"
    )
    connection.execute("SELECT foh.create_index('reviews', 'review', 'embedding', 'label')")
    connection.execute("INSERT INTO review SELECT id, embedding, label FROM digit LIMIT 500")
    connection.execute("ALTER TABLE review RENAME COLUMN embedding TO vector")
    connection.execute("UPDATE foh.reviews_stream SET written_at = now() - interval '25 minutes'")
