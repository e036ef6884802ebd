"""Who may do what: readers, writers, updaters and owners, each with no more than it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

from foh_pg.errors import FohError
from foh_pg.updater import rebuild, update
from tests.integration.search.shop import Shop, text, vectors
from tests.support.postgres import Database, Server

QUERY = vectors(1, seed=5)[0]
TABLES = ("projection", "center", "list", "item", "stream")


@pytest.fixture
def shop(database: Database) -> Shop:
    shop = Shop(database.connect("app_owner"))
    shop.fill(range(100), vectors(100))
    shop.install(centers=5)
    return shop


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
        assert row[5] == "SELECT (id, embedding) ON public.item"
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
            "SELECT * FROM foh.search('items', %s)",
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
            "_identity", "_refuse_changed", "_refuse_search", "search",
            "items_search", "items_candidates", "items_explain",
            "items_near", "items_exact", "items_exact_score", "items_bit_score", "items_dial_factor",
            "items_describe",
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
        assert reader.run("SELECT * FROM foh.search('others', %s)", [text(QUERY)]).fetchall() == []
        grant(shop.connection, None, reader="app_reader", revoke=True)
        left = reader.run(
            """SELECT count(*) FROM pg_proc WHERE pronamespace = 'foh'::regnamespace
               AND has_function_privilege(oid, 'EXECUTE')"""
        )
        assert left.fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="schema foh"):
            reader.run("SELECT * FROM foh.search('others', %s)", [text(QUERY)])

    def test_go_with_the_last_index(self, shop: Shop, database: Database) -> None:
        Shop(database.connect("app_owner"), index="others", source="public.other")
        grant(shop.connection, None, reader="app_reader", updater="app_writer")
        usage = """SELECT has_schema_privilege('app_reader', 'foh', 'USAGE'),
                          has_schema_privilege('app_writer', 'foh', 'USAGE')"""
        shop.run("SELECT foh.drop_index('others')")
        assert shop.run(usage).fetchone() == (True, True)
        # Also where the table is dropped first.
        shop.run("DROP TABLE {source}")
        shop.run("SELECT foh.drop_index('items')")
        assert database.connect(None).execute(usage).fetchone() == (False, False)

    def test_the_inner_step_shows_hidden_keys_as_the_grant_says(self, shop: Shop, database: Database) -> None:
        shop.run("GRANT SELECT ON {source} TO app_reader")
        shop.run("ALTER TABLE {source} ENABLE ROW LEVEL SECURITY")
        shop.run("CREATE POLICY few ON {source} TO app_reader USING ({key} < 5)")
        [row] = grant(shop.connection, reader="app_reader")
        reader = shop.seen_by(database.connect("app_reader"))
        assert set(reader.found(QUERY, 100)) == set(range(5))
        keys = reader.run("SELECT keys FROM {near}(%s, 100, 100, 0, 0, 1, false)", [text(QUERY)]).fetchone()[
            0
        ]
        assert set(keys) == set(range(100))
        assert "_near" in row[4]


def test_writers_need_nothing(shop: Shop, database: Database) -> None:
    shop.run("GRANT INSERT, SELECT, UPDATE, DELETE, TRUNCATE ON {source} TO app_writer")
    [row] = grant(shop.connection, writer="app_writer")
    assert row[:3] == ("app_writer", "writer", "items")
    assert row[4:] == ("nothing", None)
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
    assert grant(shop.connection, writer="app_reader")[0][5] == "INSERT, UPDATE or DELETE ON public.item"


def refused(connection: psycopg.Connection, statement: str) -> None:
    """Not allowed, or not there for this role: the same."""
    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedObject)):
        connection.execute(statement)


# What nobody but foh's owner may do, whatever was granted.
FORBIDDEN = (
    "CREATE TABLE foh.mine (id int)",
    "CREATE FUNCTION foh.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE OR REPLACE FUNCTION foh._owner() RETURNS name LANGUAGE sql AS $$ SELECT current_user $$",
    "CREATE OR REPLACE FUNCTION foh.items_rows() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "ALTER TABLE foh.index DISABLE ROW LEVEL SECURITY",
    "CREATE TRIGGER t AFTER INSERT ON foh.run EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE POLICY p ON foh.model USING (true)",
    "INSERT INTO foh.template VALUES ('capture', 'x')",
    "UPDATE foh.template SET body = ''",
    "UPDATE foh.alembic_version SET version_num = '0001'",
    "UPDATE foh.index SET source = 'pg_class'",
    "UPDATE foh.index SET name = 'x'",
    "UPDATE foh.index SET stream = 'foh.index'",
    "INSERT INTO foh.index (name) VALUES ('x')",
    "DELETE FROM foh.index",
    "INSERT INTO foh.updating VALUES (99)",
    "INSERT INTO foh.claim (source, role) VALUES (1, 'app_owner')",
    "SELECT * FROM foh.claim",
    "TRUNCATE foh.run",
    "GRANT foh_owner TO CURRENT_USER",
    "SET ROLE foh_owner",
)


class TestUpdaters:
    @pytest.fixture
    def updater(self, shop: Shop, database: Database) -> Iterator[psycopg.Connection]:
        [row] = grant(shop.connection, updater="app_writer")
        assert row[:3] == ("app_writer", "updater", "items")
        assert "nothing of other indexes" in row[4]
        yield database.connect("app_writer")
        grant(shop.connection, updater="app_writer", revoke=True)

    def test_update_without_reading_the_table_themselves(
        self, shop: Shop, updater: psycopg.Connection, database: Database
    ) -> None:
        plain, dsn = Shop(shop.connection, index="plain", source="public.plain"), database.dsn("app_writer")
        grant(shop.connection, "plain", updater="app_writer")
        plain.fill(range(60), vectors(60, seed=3))
        assert update(dsn, "plain").rows == 60
        rebuild(dsn, "plain")
        assert updater.execute("SELECT * FROM foh.check('plain')").fetchall() == []
        assert updater.execute("SELECT * FROM foh.repair('plain')").fetchone() == (0, 0, 0)
        assert updater.execute("SELECT name FROM foh.index_stat").fetchall() == [("items",), ("plain",)]
        assert updater.execute("SELECT name FROM foh.health()").fetchall() == [("items",), ("plain",)]
        assert len(plain.found(QUERY, 20)) == 20
        refused(updater, "SELECT FROM public.plain")
        grant(shop.connection, "plain", updater="app_writer", revoke=True)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="table item"):
            updater.execute("SELECT FROM public.item")

    def test_nothing_else(self, shop: Shop, updater: psycopg.Connection, database: Database) -> None:
        Shop(database.connect("app_owner"), index="others", source="public.other")
        for statement in FORBIDDEN:
            refused(updater, statement)
        for call in (
            "refresh('items')",
            "alter_index('items', '{}')",
            "drop_index('items')",
            "grant('items', reader => 'app_reader')",
            "create_index('more', 'public.item', 'embedding')",
            "_drop_objects(1)",
            "_lock_own(1, 'foh.items_list'::regclass, true)",
            "_functions_as_owner(1)",
            "_replace_index(NULL)",
            "_grant_as_owner(1, 'app_writer', 'reader', false)",
        ):
            refused(updater, f"SELECT foh.{call}")
        # The other index is not there for it.
        for table in ("index", "label", "model", "model_state", "run", "updating"):
            column = "id" if table == "index" else "index"
            others = "SELECT id FROM foh.index WHERE name = 'others'"
            (number,) = shop.connection.execute(others).fetchone()
            seen = f"SELECT count(*) FROM foh.{table} WHERE {column} = {number}"
            assert updater.execute(seen).fetchone() == (0,), table
        for table in TABLES:
            refused(updater, f"SELECT FROM foh.others_{table}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            updater.execute(f"INSERT INTO foh.label (index, label, name) VALUES ({number}, 1, 'x')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            updater.execute(f"INSERT INTO foh.run (index, kind) VALUES ({number}, 'update')")
        assert updater.execute(f"UPDATE foh.index SET version = 9 WHERE id = {number}").rowcount == 0
        refused(updater, "SELECT * FROM foh.others_rows(wanted => 1)")
        refused(updater, "SELECT * FROM foh.check('others')")
        with pytest.raises(FohError):
            update(database.dsn("app_writer"), "others")

    def test_go_with_revoke(self, shop: Shop, updater: psycopg.Connection, database: Database) -> None:
        grant(shop.connection, updater="app_writer", revoke=True)
        with pytest.raises(psycopg.Error):
            update(database.dsn("app_writer"), "items")
        left = """SELECT count(*) FROM pg_proc WHERE pronamespace = 'foh'::regnamespace
                  AND has_function_privilege(oid, 'EXECUTE')"""
        assert updater.execute(left).fetchone() == (0,)
        assert updater.execute("SELECT has_schema_privilege('foh', 'USAGE')").fetchone() == (False,)

    def test_survive_refresh(self, shop: Shop, updater: psycopg.Connection, database: Database) -> None:
        shop.run("SELECT foh.refresh('items')")
        shop.run("SELECT foh.alter_index('items', %s)", ['{"probes": 2}'])
        assert updater.execute("SELECT * FROM foh.items_rows(wanted => 1)").fetchall()
        updater.execute("UPDATE foh.items_sample SET tried = tried")


class TestOwners:
    @pytest.fixture
    def owner(self, shop: Shop, database: Database, new_role: Callable[[], str]) -> psycopg.Connection:
        role, superuser = new_role(), database.connect(None)
        [row] = grant(superuser, None, owner=role)
        assert row[:3] == (role, "owner", None)
        superuser.execute(sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(sql.Identifier(role)))
        return database.connect(role)

    def test_taken_back_whoever_gave_it(
        self, shop: Shop, database: Database, new_role: Callable[[], str]
    ) -> None:
        """From PostgreSQL 16 on a REVOKE takes back what one role has granted, and only warns of the others."""
        role, superuser, installer = new_role(), database.connect(None), database.connect("installer")
        superuser.execute(sql.SQL("GRANT {} TO installer WITH ADMIN OPTION").format(sql.Identifier(role)))
        lent = "SELECT count(*) FROM pg_auth_members WHERE roleid = %s::regrole AND member = 'foh_owner'::regrole"
        for givers in ([installer], [superuser], [installer, superuser]):
            for giver in givers:
                grant(giver, None, owner=role)
            assert superuser.execute(lent, [role]).fetchone() == (
                len(givers) if superuser.info.server_version >= 160000 else 1,
            )
            grant(superuser, None, owner=role, revoke=True)
            assert superuser.execute(lent, [role]).fetchone() == (0,)
        grant(superuser, None, owner=role)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not let foh_owner act for role"):
            grant(installer, None, owner=role, revoke=True)
        grant(superuser, None, owner=role, revoke=True)

    def test_all_of_their_own(self, owner: psycopg.Connection, database: Database) -> None:
        theirs = Shop(owner, index="theirs", source="public.theirs")
        theirs.fill(range(30), vectors(30))
        assert theirs.found(vectors(30)[7], 1) == [7]
        update(database.dsn(owner.info.user), "theirs")
        assert owner.execute("SELECT name FROM foh.index_stat").fetchall() == [("theirs",)]
        theirs.run("SELECT foh.refresh('theirs')")
        theirs.run("SELECT foh.alter_index('theirs', %s)", ['{"probes": 2}'])
        assert owner.execute("SELECT * FROM foh.check('theirs')").fetchall() == []
        grant(owner, "theirs", reader="app_reader")
        with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="owns indexes: theirs"):
            grant(database.connect(None), None, owner=owner.info.user, revoke=True)
        theirs.run("SELECT foh.drop_index('theirs')")
        grant(database.connect(None), None, owner=owner.info.user, revoke=True)
        refused(owner, "SELECT FROM foh.index")

    def test_nothing_of_others(self, shop: Shop, owner: psycopg.Connection, database: Database) -> None:
        for statement in FORBIDDEN:
            refused(owner, statement)
        assert owner.execute("SELECT count(*) FROM foh.index").fetchone() == (0,)
        number, source = shop.connection.execute("SELECT id, source::oid FROM foh.index").fetchone()
        for call in (
            "refresh('items')", "alter_index('items', '{}')", "drop_index('items')", "check('items')", "repair('items')",
            "grant('items', reader => 'app_reader')", "create_index('more', 'public.item', 'embedding')",
        ):  # fmt: skip
            refused(owner, f"SELECT foh.{call}")
        # The inner steps, which run as foh's owner, believe no argument.
        for call in (
            f"_drop_objects({number})",
            f"_lock_own({number}, 'foh.items_list'::regclass, true)",
            f"_functions_as_owner({number})",
            f"_grant_as_owner({number}, current_user, 'reader', false)",
        ):
            refused(owner, f"SELECT foh._claim({source}), foh.{call}")
            refused(owner, f"SELECT foh.{call}")
        for table in TABLES:
            refused(owner, f"SELECT FROM foh.items_{table}")
        for suffix in ("rows(wanted => 1)", "check()", "repair()", "unchanged(true)"):
            refused(owner, f"SELECT foh.items_{suffix}")
        # A claim of one transaction is of no use in another, nor that of another role.
        shop.connection.execute("BEGIN")
        shop.connection.execute(f"SELECT foh._claim({source})")
        refused(owner, f"SELECT foh._drop_objects({number})")
        shop.connection.execute("ROLLBACK")
        assert len(shop.found(QUERY, 5)) == 5

    def test_the_table_of_another(self, shop: Shop, owner: psycopg.Connection) -> None:
        """May be read, even written, and still not be indexed, nor be a table of labels."""
        shop.run("GRANT ALL ON {source} TO PUBLIC")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="belongs to role app_owner"):
            owner.execute("SELECT foh.create_index('mine', 'public.item', 'embedding')")
        owner.execute("CREATE TABLE public.mine (id int PRIMARY KEY, embedding extensions.vector(8))")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be one role"):
            owner.execute(
                "SELECT foh.create_index('mine', 'public.mine', 'embedding', labels => 'id', labels_from => 'public.item',"
                " labels_key => 'id')"
            )

    def test_who_may_hand_it_out(self, shop: Shop, database: Database, new_role: Callable[[], str]) -> None:
        """A role is lent to foh's owner by who has it to lend; never a superuser."""
        role = new_role()
        for giver in ("app_owner", "installer"):
            with pytest.raises(
                psycopg.errors.InsufficientPrivilege, match="may not let foh_owner act for role"
            ):
                grant(database.connect(giver), None, owner=role)
        (superuser,) = database.connect(None).execute("SELECT current_user").fetchone()
        with pytest.raises(psycopg.errors.InvalidGrantOperation, match="is a superuser"):
            grant(database.connect(None), None, owner=superuser)


def test_no_table_of_ours_can_carry_code_of_others(
    shop: Shop, database: Database, new_role: Callable[[], str]
) -> None:
    """A trigger, a foreign key or a rule on a table of foh would run as whoever writes there."""
    role = new_role()
    grant(database.connect(None), updater=role, reader=role, owner=role)
    rights = """SELECT c.relname, r.rolname FROM pg_class c, pg_roles r
                WHERE c.relnamespace = 'foh'::regnamespace AND c.relkind IN ('r', 'v', 'p') AND r.rolname IN (%s, 'app_owner')
                  AND (has_table_privilege(r.oid, c.oid, 'TRIGGER') OR has_table_privilege(r.oid, c.oid, 'TRUNCATE')
                       OR has_any_column_privilege(r.oid, c.oid, 'REFERENCES') OR pg_has_role(r.oid, c.relowner, 'USAGE'))"""
    assert database.connect(None).execute(rights, [role]).fetchall() == []
    grant(database.connect(None), updater=role, reader=role, owner=role, revoke=True)


def test_only_those_who_may(shop: Shop, database: Database, new_role: Callable[[], str]) -> None:
    role = new_role()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        grant(database.connect("app_writer"), reader="app_writer")
    with pytest.raises(psycopg.errors.UndefinedObject, match="there is no role nobody_here"):
        grant(shop.connection, reader="nobody_here")
    with pytest.raises(psycopg.errors.UndefinedObject, match="there is no index 'other'"):
        grant(shop.connection, "other", reader="app_reader")
    # A reader cannot pass its right on, nor hand itself more; nor can an updater.
    grant(shop.connection, reader="app_reader", updater="app_writer")
    for connection in (database.connect("app_reader"), database.connect("app_writer")):
        for kind in ("reader", "updater", "owner"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                grant(connection, **{kind: role})
    grant(shop.connection, updater="app_writer", revoke=True)


def test_a_grant_in_one_database_opens_no_other(
    shop: Shop,
    database: Database,
    new_database: Callable[..., Database],
    server: Server,
    new_role: Callable[[], str],
) -> None:
    """Roles belong to the cluster, rights to the database: a reader, updater or owner here is nobody there."""
    role, there = new_role(), new_database(template=server.template)
    grant(database.connect(None), reader=role, updater=role, owner=role)
    other = Shop(there.connect("app_owner"))
    stranger = there.connect(role)
    assert stranger.execute("SELECT has_schema_privilege('foh', 'USAGE')").fetchone() == (False,)
    refused(stranger, "SELECT FROM foh.index")
    refused(stranger, "SELECT foh.drop_index('items')")
    assert other.search(QUERY) == []
    grant(database.connect(None), reader=role, updater=role, owner=role, revoke=True)
