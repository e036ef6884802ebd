"""Who may do what: readers, writers, updaters and owners, each with no more than it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from tests.integration.search.shop import Shop, text, vectors
from tests.postgres import PASSWORD, Database

QUERY = vectors(1, seed=5)[0]
TABLES = ("projection", "center", "list", "item", "stream")


@pytest.fixture
def shop(database: Database) -> Shop:
    shop = Shop(database.connect("app_owner"))
    shop.fill(range(100), vectors(100))
    shop.install(centers=5)
    return shop


@pytest.fixture
def new_role(database: Database) -> Iterator[Callable[[], str]]:
    """Roles of this test's own: membership belongs to the cluster, and other tests run in it."""
    made: list[str] = []
    superuser = database.connect(None)

    def make() -> str:
        made.append(f"foh_test_{uuid4().hex[:8]}")
        superuser.execute(
            sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
                sql.Identifier(made[-1]), sql.Literal(PASSWORD)
            )
        )
        return made[-1]

    yield make
    for role in made:
        superuser.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(role)))
        superuser.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


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
            "SELECT * FROM {search_code}({encode}(%s), 20, version => 2)",
            "SELECT * FROM {candidates}(%s)",
            "SELECT * FROM {explain}(%s)",
            "SELECT * FROM foh.search('items', %s)",
            "SELECT h.version, h.number FROM foh.items_hash_functions() h WHERE %s::text <> ''",
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
            "_refuse_changed", "_refuse_search", "search",
            "items_search", "items_search_code", "items_candidates", "items_encode", "items_explain",
            "items_near", "items_exact", "items_hamming", "items_check_code", "items_hash_functions", "items_describe",
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
        shop.run("SELECT foh.alter_index('items', %s)", ['{"probes": 2, "blend": 2}'])
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

    def test_the_inner_step_shows_hidden_keys_as_the_grant_says(self, shop: Shop, database: Database) -> None:
        shop.run("GRANT SELECT ON {source} TO app_reader")
        shop.run("ALTER TABLE {source} ENABLE ROW LEVEL SECURITY")
        shop.run("CREATE POLICY few ON {source} TO app_reader USING ({key} < 5)")
        [row] = grant(shop.connection, reader="app_reader")
        reader = shop.seen_by(database.connect("app_reader"))
        assert set(reader.found(QUERY, 100)) == set(range(5))
        keys = reader.run("SELECT keys FROM {near}(%s, NULL, 100, 100)", [text(QUERY)]).fetchone()[0]
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


def test_updaters_and_owners(shop: Shop, database: Database, new_role: Callable[[], str]) -> None:
    updater, owner = new_role(), new_role()
    installer = database.connect("installer")
    rows = grant(installer, None, updater=updater, owner=owner)
    assert [row[:3] for row in rows] == [(updater, "updater", None), (owner, "owner", None)]
    assert all("of every index" in row[4] for row in rows)
    helper = shop.seen_by(database.connect(updater))
    assert helper.run("SELECT count(*) FROM {list}").fetchone() == (5,)
    helper.install(centers=3)
    assert shop.explain(QUERY)["centers"] == "3"

    database.connect(None).execute(
        sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(sql.Identifier(owner))
    )
    theirs = Shop(database.connect(owner), index="theirs", source="public.theirs")
    theirs.fill([1], [QUERY])
    assert theirs.found(QUERY) == [1]
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="belongs to role app_owner"):
        theirs.run("SELECT foh.drop_index('items')")
    theirs.run("SELECT foh.drop_index('theirs')")

    grant(installer, None, updater=updater, owner=owner, revoke=True)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        helper.run("SELECT count(*) FROM {list}")


def test_only_those_who_may(shop: Shop, database: Database, new_role: Callable[[], str]) -> None:
    role = new_role()
    with pytest.raises(
        psycopg.errors.InsufficientPrivilege, match="may not hand out membership in foh_owner"
    ) as caught:
        grant(shop.connection, updater=role)
    assert "installed foh" in caught.value.diag.message_hint
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        grant(database.connect("app_writer"), reader="app_writer")
    with pytest.raises(psycopg.errors.UndefinedObject, match="there is no role nobody_here"):
        grant(shop.connection, reader="nobody_here")
    with pytest.raises(psycopg.errors.UndefinedObject, match="there is no index 'other'"):
        grant(shop.connection, "other", reader="app_reader")
    # A reader cannot pass its right on, nor hand itself more.
    grant(shop.connection, reader="app_reader")
    reader = database.connect("app_reader")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        grant(reader, reader=role)


def test_a_creator_who_is_no_member(database: Database, new_role: Callable[[], str]) -> None:
    """May create with EXECUTE alone, and then search what it created, and nothing of others."""
    role, superuser = new_role(), database.connect(None)
    shop = Shop(database.connect("app_owner"))
    name = sql.Identifier(role)
    for statement in (
        "GRANT CREATE ON SCHEMA public TO {}",
        "GRANT USAGE ON SCHEMA foh TO {}",
        "GRANT SELECT ON foh.index TO {}",
    ):
        superuser.execute(sql.SQL(statement).format(name))
    functions = superuser.execute(
        """SELECT oid::regprocedure::text FROM pg_proc
           WHERE pronamespace = 'foh'::regnamespace AND proname NOT LIKE 'items\\_%'"""
    ).fetchall()
    for (function,) in functions:
        superuser.execute(sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(sql.SQL(function), name))
    mine = Shop(database.connect(role), index="mine", source="public.mine")
    mine.fill(range(30), vectors(30))
    assert mine.found(vectors(30)[7], 1) == [7]
    assert len(mine.found(QUERY, 50, filter="id > 3", shortlist=0)) == 26
    mine.run("SELECT foh.refresh('mine')")
    assert len(mine.found(QUERY, 50)) == 30
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mine.run("SELECT * FROM foh.items_near(%s, NULL, 1, 1)", [text(QUERY)])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mine.run("SELECT * FROM {stream}")
    assert shop.search(QUERY) == []
