"""What the owner of an indexed table attaches to it never runs with rights that the owner does not have.

Every kind of object that can carry code is attached to the table, or to the functions of the index that belong to its owner; then
everybody else does all there is to do. The code complains when it runs as anybody but the owner, or who writes and reads the
table directly, as with any table.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from foh_pg.errors import FohError
from foh_pg.quality.evaluate import evaluate
from foh_pg.schema import files, migrations, script
from foh_pg.updater.build import rebuild
from foh_pg.updater.update import update
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]

TABLE = """
CREATE FUNCTION evil(anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    -- Where a session has only put on the role of the owner, the code takes it off.
    BEGIN PERFORM set_config('role', 'none', true); EXCEPTION WHEN OTHERS THEN NULL; END;
    IF current_user NOT IN ('app_owner', 'app_writer', 'app_reader') THEN RAISE EXCEPTION 'evil ran as %', current_user; END IF;
    RETURN true;
END $$;
CREATE FUNCTION evil_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM evil(1); RETURN NEW; END $$;
CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(4), tags text[], note int DEFAULT 0);
"""

PLANTED = {
    "restrictive policy": "ALTER TABLE items ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON items USING (true); "
    "CREATE POLICY r ON items AS RESTRICTIVE USING (evil(id))",
    "index predicate": "CREATE INDEX ON items (id) WHERE evil(1)",
    "expression index": "CREATE INDEX ON items (evil(id))",
    "statistics": "CREATE STATISTICS s ON (evil(id)), id FROM items; ANALYZE items",
    "check constraint": "ALTER TABLE items ADD CHECK (evil(id))",
    "generated column": "ALTER TABLE items ADD COLUMN g boolean GENERATED ALWAYS AS (evil(id)) STORED",
    "default": "ALTER TABLE items ADD COLUMN d boolean DEFAULT evil(2)",
    "domain": "CREATE DOMAIN checked AS int CHECK (evil(VALUE)); ALTER TABLE items ADD COLUMN e checked DEFAULT 1",
    "row trigger": "CREATE TRIGGER a BEFORE INSERT OR UPDATE ON items FOR EACH ROW EXECUTE FUNCTION evil_trigger()",
    "statement trigger": "CREATE TRIGGER z AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON items EXECUTE FUNCTION evil_trigger()",
    "constraint trigger": "CREATE CONSTRAINT TRIGGER y AFTER INSERT ON items DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
    "EXECUTE FUNCTION evil_trigger()",
    "rule": "CREATE RULE r AS ON INSERT TO items DO ALSO SELECT evil(1)",
    "operators": "CREATE FUNCTION evil_2(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT evil($1) AND $1 OPERATOR(pg_catalog.=) $2'; "
    "CREATE OPERATOR public.= (LEFTARG = int, RIGHTARG = int, FUNCTION = evil_2, HASHES, MERGES); "
    "CREATE OPERATOR public.<> (LEFTARG = int, RIGHTARG = int, FUNCTION = evil_2)",
    "cast": "CREATE TYPE mine AS (x int); CREATE FUNCTION shown(mine) RETURNS text LANGUAGE sql AS 'SELECT evil(1)::text'; "
    "CREATE CAST (mine AS text) WITH FUNCTION shown(mine) AS IMPLICIT; ALTER TABLE items ADD COLUMN m mine DEFAULT ROW(1)::mine",
    "invoker": "ALTER FUNCTION {} SECURITY INVOKER; CREATE INDEX IF NOT EXISTS planted ON items (id) WHERE evil(1)",
    "invoker with a role": "ALTER FUNCTION {} SECURITY INVOKER SET role = app_owner; "
    "CREATE INDEX IF NOT EXISTS planted ON items (id) WHERE evil(1)",
    "search_path": "ALTER FUNCTION {} SET search_path = public, pg_catalog; "
    "CREATE INDEX IF NOT EXISTS planted ON items (id) WHERE evil(1)",
    "no function": "DROP FUNCTION {} CASCADE",
    "function moved": "ALTER FUNCTION {} SET SCHEMA public",
}
# Planted together: none of them hides another, as each complains by itself.
TOGETHER = {
    "on the table": [
        "restrictive policy",
        "index predicate",
        "expression index",
        "statistics",
        "check constraint",
        "generated column",
        "default",
        "domain",
        "cast",
    ],
    "around writes": ["row trigger", "statement trigger", "constraint trigger", "rule"],
}
GROUPED = {what for group in TOGETHER.values() for what in group}
# The functions of the index are not what they were, and are refused before they read anything.
ALTERED = {"invoker", "invoker with a role", "no function", "function moved"}
REFUSED = (
    "CREATE FUNCTION foh.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE OR REPLACE FUNCTION foh.idx_unchanged(counted boolean DEFAULT false, caller text DEFAULT foh._identity()) RETURNS bigint "
    "LANGUAGE sql AS 'SELECT 1::bigint'",
    "ALTER FUNCTION foh.idx_unchanged(boolean, text) RENAME TO idx_other",
    "ALTER FUNCTION foh.idx_unchanged(boolean, text) OWNER TO foh_owner",
    "ALTER FUNCTION foh.idx_describe() SECURITY INVOKER",
    "CREATE OPERATOR CLASS mine FOR TYPE int USING btree AS OPERATOR 1 <",
    "CREATE CAST (int AS text) WITHOUT FUNCTION",
    "CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION evil_trigger()",
    "CREATE TRIGGER t AFTER INSERT ON foh.idx_stream EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE RULE r AS ON INSERT TO foh.idx_stream DO ALSO SELECT evil(1)",
    "CREATE INDEX ON foh.idx_stream (evil(key))",
    "ALTER TABLE foh.idx_stream ADD CHECK (evil(key))",
    "ALTER TABLE foh.idx_item ALTER home SET DEFAULT 1",
    "CREATE STATISTICS foh.s ON home, key FROM foh.idx_item",
    "CREATE POLICY p ON foh.index USING (true)",
    "CREATE POLICY p ON foh.label USING (true)",
    "CREATE POLICY p ON foh.model USING (true)",
    "ALTER TABLE foh.updating DISABLE ROW LEVEL SECURITY",
    "ALTER TYPE foh.idx_result ADD ATTRIBUTE more int",
    "CREATE OR REPLACE VIEW foh.index_stat AS SELECT 1",
)


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
    connection.execute("GRANT ALL ON items TO app_writer; GRANT SELECT ON items TO app_reader")
    connection.execute("SELECT foh.grant('idx', reader => 'app_reader')")
    return connection


def plant(tenant: Connection, what: str) -> None:
    functions = tenant.execute(
        """SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'foh'::regnamespace
           AND proowner = 'app_owner'::regrole AND proname <> 'idx_capture'"""
    ).fetchall()
    assert len(functions) >= 7
    for statement in [PLANTED[each] for each in TOGETHER.get(what, [what])]:
        for one in [statement.format(name) for (name,) in functions] if "{}" in statement else [statement]:
            tenant.execute(one.encode())


def call(connection: Connection, *statements: str) -> list[Callable[[], Any]]:
    return [lambda each=each: connection.execute(each.encode()) for each in statements]  # type: ignore[misc]


def walk(what: str, acts: list[Callable[[], Any]]) -> None:
    for act in acts:
        try:
            act()
        except (psycopg.Error, FohError) as error:
            if "evil ran as" in str(error) or what not in ALTERED:
                raise


def release(superuser: Connection) -> None:
    """Make all functions anew, as the migration to another release does."""
    around = ["install/lock.sql", "install/trust.sql", "install/become_owner.sql"]
    after = ["install/leave.sql", "install/restore_path.sql"]
    with superuser.transaction():
        for statement in [*map(files.sql, around), *script.code(), *map(files.sql, after)]:
            superuser.execute(statement.encode())


@pytest.mark.parametrize("what", [*TOGETHER, *(what for what in PLANTED if what not in GROUPED)])
def test_every_object_and_everybody(
    tenant: Connection, database: Database, what: str, new_role: Callable[[], str]
) -> None:
    plant(tenant, what)
    superuser, writer, reader = (
        database.connect(None),
        database.connect("app_writer"),
        database.connect("app_reader"),
    )
    if what == "operators":
        for connection in (superuser, tenant, writer, reader):
            connection.execute("SET search_path = public, pg_catalog")
    if what == "on the table":
        # What the walk would meet if anything read the table as somebody else.
        with pytest.raises(errors.RaiseException, match="evil ran as"):
            superuser.execute("SELECT FROM public.items WHERE id = 1")
    updating = new_role()
    superuser.execute(sql.SQL("SELECT foh.grant('idx', updater => {})").format(updating))
    updater = database.connect(updating)
    writes = (
        "INSERT INTO public.items (id, embedding, tags) SELECT n, ARRAY[n % 7, n % 3, 1, 1]::extensions.vector, '{t1}' "
        "FROM generate_series(100, 120) n",
        "UPDATE public.items SET embedding = '[1,2,3,4]' WHERE id OPERATOR(pg_catalog.>) 110",
        "UPDATE public.items SET id = -id WHERE id OPERATOR(pg_catalog.=) 119",
        "DELETE FROM public.items WHERE id OPERATOR(pg_catalog.=) 118",
    )
    asks = (
        "SELECT * FROM foh.check('idx')",
        "SELECT * FROM foh.repair('idx')",
        "SELECT * FROM foh.index_stat",
    )
    searches = (
        "SELECT * FROM foh.idx_search('[1,2,3,4]', 5)",
        "SELECT * FROM foh.search('idx', '[1,2,3,4]')",
    )
    walk(what, call(writer, *writes))
    walk(what, call(reader, *searches))
    for connection, role in ((superuser, None), (updater, updating)):
        walk(what, call(connection, *asks))
        dsn = database.dsn(role)
        walk(what, [lambda d=dsn, f=f: f(d, "idx") for f in (update, rebuild, evaluate)])  # type: ignore[misc]
    # What changes the index brings its functions back.
    walk(
        "",
        call(
            superuser,
            "SELECT foh.refresh('idx')",
            """SELECT foh.alter_index('idx', '{"probes": 3}')""",
            """SELECT foh.alter_index('idx', '{"triggers": "row"}')""",
            *asks,
            "SELECT foh.create_index('second', 'public.items', 'embedding', labels => 'tags', bits => 16)",
            "SELECT foh.drop_index('second')",
        ),
    )
    walk("", [lambda: release(superuser)])
    walk(
        "",
        [
            *call(writer, "DELETE FROM public.items WHERE id OPERATOR(pg_catalog.<) 20"),
            lambda: update(database.dsn(None), "idx"),
        ],
    )
    walk("", call(writer, "TRUNCATE public.items"))
    walk("", [lambda: update(database.dsn(updating), "idx")])
    assert superuser.execute("SELECT count(*) FROM foh.check('idx')").fetchone() == (0,)
    if what == "function moved":
        # They depend on ours, as a view of the tenant's could; nothing of a tenant's is dropped unasked.
        with pytest.raises(errors.DependentObjectsStillExist):
            migrations.migrate(superuser, "base")
        return
    walk("", [lambda: migrations.migrate(superuser, "base")])


@pytest.mark.parametrize("statement", REFUSED)
def test_what_a_tenant_cannot_attach(tenant: Connection, statement: str) -> None:
    with pytest.raises(
        (errors.InsufficientPrivilege, errors.InvalidObjectDefinition, errors.WrongObjectType)
    ):
        tenant.execute(statement.encode())


def test_triggers_of_ours_on_other_tables(tenant: Connection, database: Database) -> None:
    """The owner may put our trigger functions where they do not belong: they refuse, and write nothing."""
    tenant.execute("CREATE TABLE other (LIKE items)")
    tenant.execute(
        """CREATE TRIGGER t AFTER DELETE ON other REFERENCING OLD TABLE AS old_rows
           FOR EACH STATEMENT EXECUTE FUNCTION foh.idx_capture()"""
    )
    before = tenant.execute("SELECT count(*) FROM foh.idx_stream").fetchone()
    with pytest.raises(errors.InsufficientPrivilege, match="is not a table of index 'idx'"):
        tenant.execute("DELETE FROM other")
    assert tenant.execute("SELECT count(*) FROM foh.idx_stream").fetchone() == before


def test_another_tenant(tenant: Connection, database: Database, new_role: Callable[[], str]) -> None:
    role, superuser = new_role(), database.connect(None)
    superuser.execute(sql.SQL("SELECT foh.grant(owner => {})").format(role))
    other = database.connect(role)
    assert other.execute("SELECT count(*) FROM foh.index").fetchone() == (0,)
    assert other.execute("SELECT count(*) FROM foh.model").fetchone() == (0,)
    for what in ("drop_index('idx')", "refresh('idx')", "check('idx')"):
        with pytest.raises(errors.UndefinedObject, match="no index"):
            other.execute(f"SELECT foh.{what}".encode())
    number = tenant.execute("SELECT id, source::oid FROM foh.index").fetchone() or (0, 0)
    for what in (
        f"_drop_objects({number[0]})",
        f"_functions_as_owner({number[0]})",
        f"_lock_own({number[0]}, 'foh.idx_list'::pg_catalog.regclass, true)",
    ):
        with pytest.raises(errors.InsufficientPrivilege, match="belongs to role app_owner"):
            other.execute(f"SELECT foh._claim({number[1]}), foh.{what}".encode())
    with pytest.raises(errors.InsufficientPrivilege):
        other.execute(f"INSERT INTO foh.claim (source, role) VALUES ({number[1]}, 'app_owner')".encode())


def test_the_first_attack(tenant: Connection, database: Database) -> None:
    """As it was found: a policy on the table that makes foh's owner hand out all of foh, and then a superuser's rights."""
    tenant.execute(
        """CREATE FUNCTION take(int) RETURNS boolean LANGUAGE plpgsql AS $$
           BEGIN
               BEGIN
                   GRANT ALL ON ALL TABLES IN SCHEMA foh TO app_writer;
                   EXECUTE 'ALTER ROLE app_writer SUPERUSER';
               EXCEPTION WHEN OTHERS THEN NULL;
               END;
               RETURN true;
           END $$"""
    )
    tenant.execute("ALTER TABLE items ENABLE ROW LEVEL SECURITY")
    tenant.execute("CREATE POLICY p ON items USING (true)")
    tenant.execute("CREATE POLICY r ON items AS RESTRICTIVE FOR SELECT USING (take(id))")
    superuser = database.connect(None)
    tenant.execute("UPDATE items SET embedding = '[4,3,2,1]' WHERE id < 10")
    for statement in (
        "SELECT * FROM foh.check('idx')",
        "SELECT * FROM foh.repair('idx')",
        "SELECT foh.refresh('idx')",
    ):
        superuser.execute(statement.encode())
    for dsn in (database.dsn(None), database.dsn()):
        with suppress(FohError):
            update(dsn, "idx")
    attacker = "SELECT rolsuper, has_table_privilege('app_writer', 'foh.index', 'SELECT') FROM pg_roles WHERE rolname = 'app_writer'"
    assert superuser.execute(attacker).fetchone() == (False, False)
