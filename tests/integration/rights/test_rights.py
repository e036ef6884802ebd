"""Who may do what: readers, writers and updaters, each with no more than it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

from foh_pg.updater import rebuild, update
from tests.support.postgres import Database, Server
from tests.support.shop import Shop, text, vectors

QUERY = vectors(1, seed=5)[0]
TABLES = ("projection", "center", "list", "item", "stream")


def stock(database: Database) -> None:
    shop = Shop(database.connect("app_owner"))
    shop.fill(range(100), vectors(100))
    shop.install(centers=5)


pytestmark = pytest.mark.prepared(by=stock)


def grant(connection: psycopg.Connection, name: str | None = "items", **roles) -> list[tuple]:
    passed = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(kind), sql.Literal(role)) for kind, role in roles.items()
    )
    return connection.execute(
        sql.SQL("SELECT role, kind, index, may, exposes, missing FROM foh.grant({}, {})").format(
            sql.Literal(name), passed
        )
    ).fetchall()


class TestReaders:
    def test_before_and_after(self, shop: Shop, database: Database) -> None:
        reader = shop.seen_by(database.connect("app_reader"))
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="schema foh"):
            reader.search(QUERY)
        [row] = grant(shop.connection, reader="app_reader")
        assert row[:3] == ("app_reader", "reader", "items")
        assert "row-level security hides" in row[4]
        assert row[5] == "GRANT SELECT (id, embedding) ON public.item TO app_reader;"
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="table item"):
            reader.search(QUERY)
        shop.run("GRANT SELECT ON {source} TO app_reader")
        assert grant(shop.connection, reader="app_reader")[0][5] is None
        assert reader.search(QUERY, 20) == shop.search(QUERY, 20)

    def test_every_form_of_search_in_every_state(self, shop: Shop, database: Database) -> None:
        shop.run("GRANT SELECT ON {source} TO app_reader")
        grant(shop.connection, reader="app_reader")
        reader = shop.seen_by(database.connect("app_reader"))
        calls = (
            "SELECT * FROM {search}(%s, 20)",
            "SELECT * FROM {search}(%s, 200)",
            "SELECT * FROM {search}(%s, 20, shortlist => 0, filter => 'id < 50')",
            "SELECT * FROM {candidates}(%s)",
            "SELECT * FROM {explain}(%s)",
        )
        for status in ("ready", "building"):
            shop.run("UPDATE foh.index SET status = %s", [status])
            for call in calls:
                assert reader.run(call, [text(QUERY)]).fetchall() == shop.run(call, [text(QUERY)]).fetchall()
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="k is 0"):
            reader.search(QUERY, 0)
        shop.run("ALTER TABLE {source} RENAME COLUMN embedding TO other")
        shop.run("UPDATE foh.index SET status = 'ready'")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has changed"):
            reader.search(QUERY)

    def test_nothing_else(self, shop: Shop, database: Database) -> None:
        """EXECUTE on what a search needs; no table, no other function, no other index."""
        other = Shop(database.connect("app_owner"), index="others", source="public.other")
        grant(shop.connection, reader="app_reader")
        reader = database.connect("app_reader")
        allowed = reader.execute(
            """SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace
               AND has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1"""
        ).fetchall()
        assert {name for (name,) in allowed} == {
            "_intact_in_plan", "_match_column", "_match_enum", "_match_labels", "_match_value", "_matched",
            "_planned", "_refuse_changed", "_refuse_if_changed", "_refuse_renamed", "_refuse_search", "_rows_of", "_way",
            "items_search", "items_candidates", "items_explain",
            "items_explained",
            "items_near", "items_nearmatching", "items_rankmatching", "items_exact", "items_exactfew", "items_exactdistance", "items_score", "items_bitscore", "items_dialfactor",
            "items_describe", "items_labels", "items_suggest", "items_chances",
        }  # fmt: skip
        tables = reader.execute(
            """SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'foh'::regnamespace AND c.relkind IN ('r', 'v')
               AND (has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE')
                    OR has_table_privilege(c.oid, 'DELETE, TRUNCATE, TRIGGER'))"""
        ).fetchall()
        assert tables == []
        for table in TABLES:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(f"SELECT * FROM foh.items_{table}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("SELECT * FROM foh.others_search('[1,1,1,1,1,1,1,1]')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("CREATE TABLE foh.mine (id int)")
        assert other.search(QUERY) == []

    def test_survive_another_name_of_the_key(self, shop: Shop, database: Database) -> None:
        """The results get other columns then, and every function that returns them is made again."""
        shop.run("GRANT SELECT ON {source} TO app_reader")
        grant(shop.connection, reader="app_reader")
        shop.run("ALTER TABLE {source} RENAME COLUMN id TO number")
        shop.run("SELECT foh.refresh(%s)", [shop.index])
        reader = shop.seen_by(database.connect("app_reader"))
        for call in ("SELECT * FROM {search}(%s, 20)", "SELECT * FROM {candidates}(%s)"):
            assert reader.run(call, [text(QUERY)]).fetchall() == shop.run(call, [text(QUERY)]).fetchall()

    def test_survive_refresh_and_alter_and_go_with_revoke(self, shop: Shop, database: Database) -> None:
        shop.run("GRANT SELECT ON {source} TO app_reader")
        other = Shop(database.connect("app_owner"), index="others", source="public.other")
        other.run("GRANT SELECT ON {source} TO app_reader")
        assert [row[2] for row in grant(shop.connection, None, reader="app_reader")] == ["items", "others"]
        reader = shop.seen_by(database.connect("app_reader"))
        shop.run("SELECT foh.refresh('items')")
        assert len(reader.search(QUERY)) == 10
        shop.run("ALTER TABLE {source} RENAME COLUMN embedding TO emb")
        shop.run("SELECT foh.refresh('items')")
        assert len(reader.search(QUERY)) == 10
        shop.run("SELECT foh.alter_index('items', %s)", ['{"probes": 2, "dial": 0.2}'])
        assert len(reader.search(QUERY)) == 10

        grant(shop.connection, "items", reader="app_reader", revoke=True)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.search(QUERY)
        assert reader.run("SELECT * FROM foh.others_search(%s)", [text(QUERY)]).fetchall() == []
        grant(shop.connection, None, reader="app_reader", revoke=True)
        left = reader.run(
            """SELECT count(*) FROM pg_proc WHERE pronamespace = 'foh'::regnamespace
               AND has_function_privilege(oid, 'EXECUTE')"""
        )
        assert left.fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="schema foh"):
            reader.run("SELECT * FROM foh.others_search(%s)", [text(QUERY)])

    def test_go_with_the_last_index(self, shop: Shop, database: Database) -> None:
        Shop(database.connect("app_owner"), index="others", source="public.other")
        grant(shop.connection, None, reader="app_reader")
        usage = "SELECT has_schema_privilege('app_reader', 'foh', 'USAGE')"
        shop.run("SELECT foh.drop_index('others')")
        assert shop.run(usage).fetchone() == (True,)
        # Also where the table is dropped first.
        shop.run("DROP TABLE {source}")
        shop.run("SELECT foh.drop_index('items')")
        assert shop.run(usage).fetchone() == (False,)

    def test_the_inner_step_shows_hidden_keys_as_the_grant_says(self, shop: Shop, database: Database) -> None:
        shop.run("GRANT SELECT ON {source} TO app_reader")
        shop.run("ALTER TABLE {source} ENABLE ROW LEVEL SECURITY")
        shop.run("CREATE POLICY few ON {source} TO app_reader USING ({key} < 5)")
        [row] = grant(shop.connection, reader="app_reader")
        reader = shop.seen_by(database.connect("app_reader"))
        assert set(reader.found(QUERY, 100)) == set(range(5))
        keys = reader.run(
            "SELECT keys FROM {near}(%s, 100, 100, 0, NULL, 0, 1, false)", [text(QUERY)]
        ).fetchone()[0]
        assert set(keys) == set(range(100))
        assert "_near" in row[4]


def test_writers_need_nothing(shop: Shop, database: Database) -> None:
    shop.run("GRANT INSERT, SELECT, UPDATE, DELETE, TRUNCATE ON {source} TO app_writer")
    writer = shop.seen_by(database.connect("app_writer"))
    assert writer.run("SELECT has_schema_privilege('foh', 'USAGE')").fetchone() == (False,)
    writer.fill([500], [QUERY])
    assert shop.found(QUERY, 1) == [500]
    writer.run("UPDATE {source} SET embedding = %s WHERE {key} = 7", [text(-QUERY)])
    assert shop.found(-QUERY, 1) == [7]
    writer.run("DELETE FROM {source} WHERE {key} = 500")
    assert shop.found(QUERY, 1) != [500]
    writer.run("TRUNCATE {source}")
    assert shop.search(QUERY) == []
    for statement in (*FORBIDDEN, *(f"SELECT FROM foh.items_{table}" for table in TABLES)):
        refused(writer.connection, statement)


def refused(connection: psycopg.Connection, statement: str) -> None:
    """Not allowed, or not there for this role: the same."""
    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedObject)):
        connection.execute(statement)


# What nobody but the owner of the schema may do, whatever was granted.
FORBIDDEN = (
    "CREATE TABLE foh.mine (id int)",
    "CREATE FUNCTION foh.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE OR REPLACE FUNCTION foh._owner() RETURNS name LANGUAGE sql AS $$ SELECT current_user $$",
    "CREATE OR REPLACE FUNCTION foh.items_rows() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TRIGGER t AFTER INSERT ON foh.run EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE TRIGGER t AFTER INSERT ON foh.items_stream EXECUTE FUNCTION foh.items_capture()",
    "CREATE POLICY p ON foh.model USING (true)",
    "CREATE RULE r AS ON INSERT TO foh.items_stream DO ALSO SELECT 1",
    "CREATE INDEX ON foh.items_stream (key)",
    "ALTER TABLE foh.items_item ALTER home SET DEFAULT 1",
    "ALTER TYPE foh.items_result ADD ATTRIBUTE more int",
    "CREATE OR REPLACE VIEW foh.index_stat AS SELECT 1",
    "INSERT INTO foh.template SELECT * FROM foh.template",
    "UPDATE foh.template SET body = ''",
    "UPDATE foh.alembic_version SET version_num = '0001'",
    "UPDATE foh.code SET version = '0'",
    "INSERT INTO foh.index (name) VALUES ('x')",
    "DELETE FROM foh.index",
    "INSERT INTO foh.updating VALUES (99)",
    "TRUNCATE foh.run",
    "SET ROLE app_owner",
    "GRANT app_owner TO CURRENT_USER",
    "SELECT foh.refresh('items')",
    "SELECT foh.alter_index('items', '{}')",
    "SELECT foh.drop_index('items')",
    "SELECT foh.grant('items', reader => 'app_reader')",
    "SELECT foh.create_index('more', 'public.item', 'embedding')",
)


class TestUpdaters:
    @pytest.fixture
    def updater(self, shop: Shop, database: Database) -> Iterator[psycopg.Connection]:
        [row] = grant(shop.connection, None, updater="app_writer")
        assert row[:3] == ("app_writer", "updater", None)
        assert "all indexes" in row[4]
        yield database.connect("app_writer")
        grant(shop.connection, None, updater="app_writer", revoke=True)

    def test_update_without_reading_the_table_themselves(
        self, shop: Shop, updater: psycopg.Connection, database: Database
    ) -> None:
        """Also an index that was made after the right was given."""
        plain, dsn = Shop(shop.connection, index="plain", source="public.plain"), database.dsn("app_writer")
        plain.fill(range(60), vectors(60, seed=3))
        assert update(dsn, "plain").rows == 60
        rebuild(dsn, "plain")
        assert updater.execute("SELECT * FROM foh.check('plain')").fetchall() == []
        assert updater.execute("SELECT * FROM foh.repair('plain')").fetchone() == (0, 0, 0)
        assert updater.execute("SELECT name FROM foh.index_stat").fetchall() == [("items",), ("plain",)]
        assert updater.execute("SELECT name FROM foh.health()").fetchall() == [("items",), ("plain",)]
        assert len(plain.found(QUERY, 20)) == 20
        refused(updater, "SELECT FROM public.plain")
        refused(updater, "SELECT FROM public.item")

    def test_nothing_else(self, shop: Shop, updater: psycopg.Connection, database: Database) -> None:
        for statement in FORBIDDEN:
            refused(updater, statement)
        # Shared steps that write run as their caller, and so do nothing here.
        for call in (
            "_drop_objects(i)",
            "_make_tables(i)",
            "_make_functions(i)",
            "_remove_triggers(i)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                updater.execute(f"SELECT foh.{call} FROM foh.index i")
        for call in ("_grant_reading(i, 'app_writer', false)", "_replace_index(i, i)"):
            refused(updater, f"SELECT foh.{call} FROM foh.index i")
        assert len(shop.found(QUERY, 5)) == 5

    def test_write_to_nothing_that_becomes_part_of_a_function(
        self, shop: Shop, updater: psycopg.Connection, database: Database
    ) -> None:
        [(may_write,)] = updater.execute(
            "SELECT array_agg(attname::text ORDER BY attname) FROM pg_attribute WHERE attrelid = 'foh.index'::regclass"
            " AND attnum > 0 AND has_column_privilege(attrelid, attnum, 'INSERT, UPDATE')"
        ).fetchall()
        assert may_write == ["next_center", "status", "version"]
        # An updater says by a function that columns are filled in.
        shop.connection.execute("SELECT foh.alter_index('items', include => '{price}')")
        rebuild(database.dsn("app_writer"), "items")
        filled = "SELECT included @> '[{\"filled\": true}]' FROM foh.index WHERE name = 'items'"
        assert shop.connection.execute(filled).fetchone() == (True,)

    def test_go_with_revoke(self, shop: Shop, updater: psycopg.Connection, database: Database) -> None:
        grant(shop.connection, None, updater="app_writer", revoke=True)
        with pytest.raises(psycopg.Error):
            update(database.dsn("app_writer"), "items")
        left = """SELECT count(*) FROM pg_proc WHERE pronamespace = 'foh'::regnamespace
                  AND has_function_privilege(oid, 'EXECUTE')"""
        assert updater.execute(left).fetchone() == (0,)
        assert updater.execute("SELECT has_schema_privilege('foh', 'USAGE')").fetchone() == (False,)

    def test_leave_a_reader_what_it_has(
        self, shop: Shop, updater: psycopg.Connection, database: Database
    ) -> None:
        shop.run("GRANT SELECT ON {source} TO app_writer")
        grant(shop.connection, reader="app_writer")
        grant(shop.connection, None, updater="app_writer", revoke=True)
        assert len(shop.seen_by(updater).search(QUERY)) == 10
        refused(updater, "SELECT FROM foh.items_list")
        grant(shop.connection, None, updater="app_writer")
        grant(shop.connection, reader="app_writer", revoke=True)
        assert update(database.dsn("app_writer"), "items") is not None

    def test_survive_refresh(self, shop: Shop, updater: psycopg.Connection, database: Database) -> None:
        shop.run("SELECT foh.refresh('items')")
        shop.run("SELECT foh.alter_index('items', %s)", ['{"probes": 2}'])
        assert updater.execute("SELECT * FROM foh.items_rows(wanted => 1)").fetchall()
        updater.execute("UPDATE foh.items_sample SET tried = tried")

    def test_of_all_indexes_or_of_none(self, shop: Shop) -> None:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="leave out the name 'items'"):
            grant(shop.connection, updater="app_writer")


def test_no_table_of_ours_can_carry_code_of_others(
    shop: Shop, database: Database, new_role: Callable[[], str]
) -> None:
    """A trigger, a foreign key or a rule on a table of foh would run as whoever writes there."""
    role = new_role()
    grant(shop.connection, None, updater=role, reader=role)
    rights = """SELECT c.relname FROM pg_class c, pg_roles r
                WHERE c.relnamespace = 'foh'::regnamespace AND c.relkind IN ('r', 'v', 'p') AND r.rolname = %s
                  AND (has_table_privilege(r.oid, c.oid, 'TRIGGER') OR has_table_privilege(r.oid, c.oid, 'TRUNCATE')
                       OR has_any_column_privilege(r.oid, c.oid, 'REFERENCES') OR pg_has_role(r.oid, c.relowner, 'USAGE'))"""
    assert database.connect(None).execute(rights, [role]).fetchall() == []
    grant(shop.connection, None, updater=role, reader=role, revoke=True)


def test_only_those_who_may(shop: Shop, database: Database, new_role: Callable[[], str]) -> None:
    role = new_role()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        grant(database.connect("app_writer"), reader="app_writer")
    with pytest.raises(psycopg.errors.UndefinedObject, match="there is no role nobody_here"):
        grant(shop.connection, reader="nobody_here")
    with pytest.raises(psycopg.errors.UndefinedObject, match="there is no index 'other'"):
        grant(shop.connection, "other", reader="app_reader")
    with pytest.raises(psycopg.errors.InvalidGrantOperation, match="app_owner owns schema foh"):
        grant(shop.connection, reader="app_owner")
    # A reader cannot pass its right on, nor hand itself more; nor can an updater.
    grant(shop.connection, reader="app_reader")
    grant(shop.connection, None, updater="app_writer")
    for connection in (database.connect("app_reader"), database.connect("app_writer")):
        for kind in ("reader", "updater"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                grant(connection, None, **{kind: role})
    grant(shop.connection, None, updater="app_writer", revoke=True)


def test_a_grant_in_one_database_opens_no_other(
    shop: Shop,
    database: Database,
    new_database: Callable[..., Database],
    server: Server,
    new_role: Callable[[], str],
) -> None:
    """Roles belong to the cluster, rights to the database: a reader or updater here is nobody there."""
    role, there = new_role(), new_database(template=server.template)
    grant(shop.connection, None, reader=role, updater=role)
    other = Shop(there.connect("app_owner"))
    stranger = there.connect(role)
    assert stranger.execute("SELECT has_schema_privilege('foh', 'USAGE')").fetchone() == (False,)
    refused(stranger, "SELECT FROM foh.index")
    refused(stranger, "SELECT foh.drop_index('items')")
    assert other.search(QUERY) == []
    grant(shop.connection, None, reader=role, updater=role, revoke=True)
