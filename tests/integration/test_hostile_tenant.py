"""What the owner of an indexed table attaches to it never runs with rights that the owner does not have."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from foh_pg.updater.build import build, rebuild
from foh_pg.updater.evaluate import evaluate
from foh_pg.updater.update import update
from tests.postgres import Database

Connection = psycopg.Connection[Any]

TABLE = """
CREATE TABLE seen (who name);
GRANT INSERT ON seen TO PUBLIC;
CREATE FUNCTION evil(anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    -- An IMMUTABLE function may not write, so what it saw travels in an error where it is too much.
    IF current_user NOT IN ('app_owner') THEN RAISE EXCEPTION 'evil ran as %', current_user; END IF;
    RETURN true;
END $$;
CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(4), tags text[], note int DEFAULT 0);
"""

PLANTED = {
    "restrictive policy": "ALTER TABLE items ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON items USING (true); "
    "CREATE POLICY r ON items AS RESTRICTIVE FOR SELECT USING (evil(id))",
    "index predicate": "CREATE INDEX ON items (id) WHERE evil(1)",
    "expression index": "CREATE INDEX ON items (evil(id))",
    "statistics": "CREATE STATISTICS s ON (evil(id)), id FROM items; ANALYZE items",
    "check constraint": "ALTER TABLE items ADD CHECK (evil(id))",
    "generated column": "ALTER TABLE items ADD COLUMN g boolean GENERATED ALWAYS AS (evil(id)) STORED",
    "invoker": "ALTER FUNCTION foh.idx_{} SECURITY INVOKER; CREATE INDEX ON items (id) WHERE evil(1)",
    "invoker with a role": "ALTER FUNCTION foh.idx_{} SECURITY INVOKER SET role = app_owner; CREATE INDEX ON items (id) WHERE evil(1)",
    "search_path": "ALTER FUNCTION foh.idx_{} SET search_path = public, pg_catalog; CREATE INDEX ON items (id) WHERE evil(1)",
}
READING = (
    "check(text)", "repair(text)", "rows(int[], int, int, bigint, bigint, text)", "unchanged(boolean, text)",
    "answer(extensions.vector, int, text, text)", "label_counts(float8, int, text)", "hamming(int[], bit)",
)  # fmt: skip


@pytest.fixture
def tenant(connection: Connection) -> Connection:
    connection.execute(TABLE)
    connection.execute(
        """SELECT foh.create_index('idx', 'items', 'embedding', labels => 'tags', bits => 16,
                                   options => '{"held_out": 0.3}')"""
    )
    connection.execute(
        """INSERT INTO items (id, embedding, tags)
           SELECT n, ARRAY[n % 7, n % 3, n % 5, 1]::extensions.vector, ARRAY['t' || n % 3] FROM generate_series(1, 60) n"""
    )
    return connection


@pytest.mark.parametrize("what", PLANTED)
def test_as_a_superuser(tenant: Connection, database: Database, what: str) -> None:
    statement = PLANTED[what]
    for one in [statement.format(name) for name in READING] if "{}" in statement else [statement]:
        tenant.execute(one)
    altered = what.startswith("invoker")
    dsn, superuser = database.dsn(None), database.connect(None)
    for act in (
        lambda: superuser.execute("SELECT * FROM foh.check('idx')"),
        lambda: superuser.execute("SELECT * FROM foh.repair('idx')"),
        lambda: superuser.execute("SELECT * FROM foh.index_stat"),
        lambda: build(dsn, "idx"),
        lambda: update(dsn, "idx"),
        lambda: rebuild(dsn, "idx"),
        lambda: evaluate(dsn, "idx"),
    ):
        try:
            act()
        except psycopg.errors.InsufficientPrivilege as error:
            # Functions that were altered are refused before they read anything.
            if not altered or "was altered" not in str(error):
                raise
    superuser.execute("SELECT foh.refresh('idx')")
    assert superuser.execute("SELECT count(*) FROM foh.check('idx')").fetchone() == (0,)


def test_the_old_way_in(tenant: Connection, database: Database) -> None:
    """No function that belongs to foh's owner reads the table, and none of the tenant's can be replaced by it."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="schema foh"):
        tenant.execute("CREATE FUNCTION foh.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        tenant.execute(
            "CREATE TRIGGER t AFTER INSERT ON foh.idx_stream EXECUTE FUNCTION suppress_redundant_updates_trigger()"
        )
    for table in ("index", "label", "model"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            tenant.execute(f"CREATE POLICY p ON foh.{table} USING (true)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        tenant.execute(
            "ALTER FUNCTION foh.idx_near(extensions.vector, bit, int, int, boolean) SECURITY INVOKER"
        )


def test_another_tenant(tenant: Connection, database: Database) -> None:
    superuser, other = database.connect(None), database.connect("app_writer")
    superuser.execute("SELECT foh.grant(owner => 'app_writer')")
    try:
        assert other.execute("SELECT count(*) FROM foh.index").fetchone() == (0,)
        assert other.execute("SELECT count(*) FROM foh.model").fetchone() == (0,)
        for call in ("drop_index('idx')", "refresh('idx')", "check('idx')"):
            with pytest.raises(psycopg.errors.UndefinedObject, match="no index"):
                other.execute(f"SELECT foh.{call}")
        number = tenant.execute("SELECT id, source::oid FROM foh.index").fetchone()
        for call in (f"_drop_objects({number[0]})", f"_functions_as_owner({number[0]})"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="belongs to role app_owner"):
                other.execute(f"SELECT foh._claim({number[1]}), foh.{call}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute(f"INSERT INTO foh.claim (source, role) VALUES ({number[1]}, 'app_owner')")
    finally:
        superuser.execute("SELECT foh.grant(owner => 'app_writer', revoke => true)")
