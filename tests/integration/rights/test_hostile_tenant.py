"""An installation serves the tables of one role: what any other role attaches to a table never runs with rights of that role.

A table of the index is handed to a tenant, who attaches to it every kind of object that can carry code. Then all others do all there
is to do. The code complains when it runs as anybody but the tenant, or those who write and read the table directly, as with any table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from foh_pg.errors import FohError
from foh_pg.quality.evaluate import evaluate
from foh_pg.updater.build import rebuild
from foh_pg.updater.update import update
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]

EVIL = """
CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
CREATE TABLE evil.ran (role name);
GRANT INSERT ON evil.ran TO PUBLIC;
CREATE FUNCTION evil.run(anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_user NOT IN ('{tenant}', 'app_writer', 'app_reader') THEN RAISE EXCEPTION 'evil ran as %', current_user; END IF;
    RETURN true;
END $$;
CREATE FUNCTION evil.trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM evil.run(1); RETURN NEW; END $$;
"""

PLANTED = {
    "on the table": """
        ALTER TABLE items ENABLE ROW LEVEL SECURITY;
        CREATE POLICY p ON items USING (true);
        CREATE POLICY r ON items AS RESTRICTIVE USING (evil.run(id) AND evil.run(1));
        CREATE INDEX ON items (id) WHERE evil.run(1);
        CREATE INDEX ON items (evil.run(id));
        CREATE STATISTICS s ON (evil.run(id)), id FROM items;
        ANALYZE items;
        ALTER TABLE items ADD CHECK (evil.run(id));
        ALTER TABLE items ADD COLUMN g boolean GENERATED ALWAYS AS (evil.run(id)) STORED;
        ALTER TABLE items ADD COLUMN d boolean DEFAULT evil.run(2);
        CREATE DOMAIN evil.checked AS int CHECK (evil.run(VALUE));
        ALTER TABLE items ADD COLUMN e evil.checked DEFAULT 1""",
    "a policy alone": """
        ALTER TABLE items ENABLE ROW LEVEL SECURITY;
        ALTER TABLE items FORCE ROW LEVEL SECURITY;
        CREATE POLICY p ON items USING (evil.run(1))""",
    "labels of a type with its own cast": """
        CREATE TYPE evil.word AS (x text);
        CREATE FUNCTION evil.shown(evil.word) RETURNS text LANGUAGE sql AS 'SELECT evil.run(1)::text';
        CREATE CAST (evil.word AS text) WITH FUNCTION evil.shown(evil.word) AS IMPLICIT;
        ALTER TABLE items ALTER tags TYPE evil.word[] USING ARRAY[ROW(tags[1])::evil.word]""",
    "around writes": """
        CREATE TRIGGER a BEFORE INSERT OR UPDATE ON items FOR EACH ROW EXECUTE FUNCTION evil.trigger();
        CREATE TRIGGER z AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON items EXECUTE FUNCTION evil.trigger();
        CREATE CONSTRAINT TRIGGER y AFTER INSERT ON items DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION evil.trigger();
        CREATE RULE r AS ON INSERT TO items DO ALSO SELECT evil.run(1)""",
    "another table of that name": """
        ALTER TABLE items RENAME TO items_before;
        CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(4), tags text[], note int DEFAULT 0);
        INSERT INTO items (id, embedding, tags) SELECT id, embedding, tags FROM items_before;
        GRANT ALL ON items TO PUBLIC;
        ALTER TABLE items ENABLE ROW LEVEL SECURITY;
        CREATE POLICY p ON items USING (evil.run(id))""",
    "a view of that name": """
        ALTER TABLE items RENAME TO items_before;
        CREATE VIEW items AS SELECT * FROM items_before WHERE evil.run(id);
        GRANT ALL ON items TO PUBLIC""",
}


@pytest.fixture
def owner(connection: Connection) -> Connection:
    connection.execute(
        "CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(4), tags text[], note int DEFAULT 0)"
    )
    connection.execute(
        "SELECT foh.create_index('idx', 'items', 'embedding', labels => 'tags', bits => 16, options => '{\"exact_rows\": 0}')"
    )
    connection.execute(
        """INSERT INTO items (id, embedding, tags)
           SELECT n, ARRAY[n % 7, n % 3, n % 5, 1]::extensions.vector, ARRAY['t' || n % 3] FROM generate_series(1, 60) n"""
    )
    connection.execute("GRANT ALL ON items TO app_writer; GRANT SELECT ON items TO app_reader")
    connection.execute("SELECT foh.grant('idx', reader => 'app_reader')")
    return connection


@pytest.fixture
def tenant(
    owner: Connection, superuser: Connection, database: Database, new_role: Callable[[], str]
) -> Connection:
    """A role to which the table now belongs; what app_owner may do there was granted to it."""
    role = new_role()
    superuser.execute(
        sql.SQL(
            "GRANT CREATE ON SCHEMA public TO {0}; GRANT CREATE ON DATABASE {1} TO {0}; GRANT ALL ON items TO app_owner; "
            "ALTER TABLE items OWNER TO {0}"
        ).format(sql.Identifier(role), sql.Identifier(database.name))
    )
    return database.connect(role)


def attempt(*acts: Callable[[], Any]) -> None:
    """Do each; it may be refused, as long as nothing of the tenant's ran in it."""
    for act in acts:
        try:
            act()
        except (psycopg.Error, FohError) as error:
            if "evil ran as" in str(error):
                raise


@pytest.mark.one_version(but={"what": ["on the table", "around writes"]})
@pytest.mark.parametrize("what", PLANTED)
def test_everything_by_everybody(
    owner: Connection, tenant: Connection, database: Database, what: str, new_role: Callable[[], str]
) -> None:
    updater = new_role()
    owner.execute(sql.SQL("SELECT foh.grant(updater => {})").format(sql.Literal(updater)))
    tenant.execute(EVIL.replace("{tenant}", tenant.info.user).encode())
    tenant.execute(PLANTED[what].encode())
    writer, reader = database.connect("app_writer"), database.connect("app_reader")
    statements = {
        tenant: ("INSERT INTO public.items (id, embedding, tags) VALUES (200, '[1,2,3,4]', NULL)",),
        writer: (
            "INSERT INTO public.items (id, embedding) SELECT n, '[1,2,3,4]' FROM generate_series(100, 120) n",
            "UPDATE public.items SET embedding = '[1,2,3,5]' WHERE id > 110",
            "UPDATE public.items SET id = -id WHERE id = 119",
            "DELETE FROM public.items WHERE id = 118",
        ),
        reader: (
            "SELECT * FROM foh.idx_search('[1,2,3,4]', 5)",
            "SELECT * FROM foh.idx_explain('[1,2,3,4]')",
        ),
    }
    administration = (
        "SELECT * FROM foh.check('idx')",
        "SELECT * FROM foh.repair('idx')",
        "SELECT * FROM foh.index_stat",
        "SELECT * FROM foh.health()",
        "SELECT * FROM foh.idx_rows(wanted => 1)",
        "SELECT foh.idx_unchanged(true)",
        "SELECT foh.idx_answer('[1,2,3,4]', 5)",
        "SELECT foh.idx_follow(true, '{}')",
        "SELECT * FROM foh.idx_labelcounts(100, 5)",
        "SELECT foh.refresh('idx')",
        "SELECT foh.alter_index('idx', '{\"probes\": 3}')",
        "SELECT foh.create_index('second', 'public.items', 'embedding', bits => 16)",
    )
    for connection, texts in statements.items():
        attempt(*(lambda c=connection, t=each: c.execute(t.encode()) for each in texts))  # type: ignore[misc]
    for role in ("app_owner", updater):
        connection, dsn = database.connect(role), database.dsn(role)
        attempt(*(lambda c=connection, t=each: c.execute(t.encode()) for each in administration))  # type: ignore[misc]
        attempt(*(lambda d=dsn, f=each: f(d, "idx") for each in (update, rebuild, evaluate)))  # type: ignore[misc]
    owner.execute(sql.SQL("SELECT foh.grant(updater => {}, revoke => true)").format(sql.Literal(updater)))
    attempt(lambda: owner.execute("SELECT foh.drop_index('idx')"))


def test_a_table_that_changed_hands_is_noticed(
    owner: Connection, tenant: Connection, superuser: Connection, database: Database
) -> None:
    """Writes go on and are queued; the table comes back, and so does everything."""
    tenant.execute("INSERT INTO items (id, embedding) VALUES (500, '[9,1,1,1]')")
    [problem] = [
        problem
        for (problem,) in owner.execute("SELECT problem FROM foh.check('idx')")
        if "without the rights" in problem
    ]
    assert "run ALTER TABLE public.items OWNER TO app_owner" in problem
    with pytest.raises(FohError, match="belongs to a role without the rights of app_owner"):
        update(database.dsn(), "idx")
    superuser.execute("ALTER TABLE items OWNER TO app_owner")
    update(database.dsn(), "idx")
    assert owner.execute("SELECT * FROM foh.check('idx')").fetchall() == []
    assert owner.execute("SELECT id FROM foh.idx_search('[9,1,1,1]', 1, labels => 0)").fetchone() == (500,)


class TestTablesOfOthers:
    def create(self, owner: Connection, table: str) -> None:
        owner.execute(
            sql.SQL("SELECT foh.create_index('mine', {}, 'embedding')").format(sql.Literal(table)).as_bytes()
        )

    def test_are_refused_with_the_cure(self, owner: Connection, tenant: Connection) -> None:
        with pytest.raises(errors.InsufficientPrivilege, match="items belongs to role") as caught:
            self.create(owner, "public.items")
        assert "ALTER TABLE public.items OWNER TO app_owner" in (caught.value.diag.message_hint or "")
        tenant.execute("CREATE TABLE mine (id int PRIMARY KEY, embedding extensions.vector(4))")
        with pytest.raises(errors.InsufficientPrivilege, match="schema foh"):
            self.create(tenant, "public.mine")

    def test_of_a_member_and_of_a_superuser(
        self, owner: Connection, superuser: Connection, database: Database, new_role: Callable[[], str]
    ) -> None:
        """Such roles have the rights of foh's owner anyway; it needs to be let at the table, and nothing more."""
        member = new_role()
        superuser.execute(sql.SQL("GRANT app_owner TO {}").format(sql.Identifier(member)))
        superuser.execute("CREATE SCHEMA closed")
        for role in (sql.Identifier(member), sql.SQL("CURRENT_USER")):
            superuser.execute(
                "CREATE TABLE closed.theirs (id int PRIMARY KEY, embedding extensions.vector(4), name text)"
            )
            superuser.execute(sql.SQL("ALTER TABLE closed.theirs OWNER TO {}").format(role))
            superuser.execute("REVOKE ALL ON SCHEMA closed FROM app_owner")
            with pytest.raises(errors.InsufficientPrivilege) as caught:
                self.create(
                    owner, str(superuser.execute("SELECT 'closed.theirs'::regclass::oid").fetchone()[0])
                )  # type: ignore[index]
            assert caught.value.diag.message_hint == (
                "GRANT USAGE ON SCHEMA closed TO app_owner; GRANT SELECT, TRIGGER ON closed.theirs TO app_owner;"
            )
            superuser.execute(caught.value.diag.message_hint.encode())
            self.create(owner, "closed.theirs")
            superuser.execute("INSERT INTO closed.theirs SELECT n, '[1,2,3,4]' FROM generate_series(1, 50) n")
            superuser.execute("DELETE FROM closed.theirs WHERE id > 40")
            update(database.dsn(), "mine")
            assert owner.execute("SELECT * FROM foh.check('mine')").fetchall() == []
            assert len(owner.execute("SELECT * FROM foh.mine_search('[1,2,3,4]', 100)").fetchall()) == 40
            superuser.execute("ALTER TABLE closed.theirs ENABLE ROW LEVEL SECURITY")
            [(problem,)] = owner.execute("SELECT problem FROM foh.check('mine')").fetchall()
            assert "row-level security hides rows from app_owner" in problem
            superuser.execute("INSERT INTO closed.theirs SELECT 100, '[1,2,3,4]'")
            with pytest.raises(FohError):
                update(database.dsn(), "mine")
            superuser.execute("ALTER TABLE closed.theirs DISABLE ROW LEVEL SECURITY")
            update(database.dsn(), "mine")
            assert len(owner.execute("SELECT * FROM foh.mine_search('[1,2,3,4]', 100)").fetchall()) == 41
            owner.execute("SELECT foh.drop_index('mine')")
            assert superuser.execute(
                "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'closed.theirs'::regclass"
            ).fetchone() == (0,)
            superuser.execute("DROP TABLE closed.theirs")


# What would be run, were a name text of SQL and not a name.
NASTY = (
    "x$body$;SELECT evil.call();SELECT $body$",
    "x$sql$;SELECT evil.call();SELECT $sql$",
    "$bodyx$ $sqlxx$ $body$ $sql$",
    "x\n;SELECT evil.call();--",
    "x';SELECT evil.call();--",
    "x\\';SELECT evil.call();--",
    'x";SELECT evil.call();--',
    "{source} {name} {key}",
    "%I %s %1$s",
)


class TestNames:
    @pytest.fixture
    def called(self, connection: Connection) -> Connection:
        connection.execute("CREATE TABLE called (n int)")
        connection.execute("CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(4))")
        return connection

    @pytest.mark.one_version
    @pytest.mark.parametrize("name", [*NASTY, "", "Items", "9lives", "_items", "a" * 41, "a.b", "é", "a b"])
    def test_of_an_index(self, called: Connection, name: str) -> None:
        with pytest.raises(errors.InvalidName, match="cannot be the name of an index") as caught:
            called.execute("SELECT foh.create_index(%s, 'items', 'embedding')", [name])
        assert "products, or shop_items_2" in (caught.value.diag.message_hint or "")
        assert called.execute("SELECT count(*) FROM foh.index").fetchone() == (0,)

    # How strings are read matters where a name has quotes or backslashes.
    @pytest.mark.one_version(but={"strings": ["on"]})
    @pytest.mark.parametrize(
        ("name", "strings"), [*((name, "off") for name in NASTY), *((name, "on") for name in NASTY[4:6])]
    )
    def test_of_columns_and_tables(
        self, connection: Connection, superuser: Connection, database: Database, name: str, strings: str
    ) -> None:
        """Free, whatever is in them and however the session reads strings; no part of them is ever run."""
        superuser.execute("CREATE SCHEMA evil")
        superuser.execute("CREATE TABLE evil.calls (n int)")
        superuser.execute(
            "CREATE FUNCTION evil.call() RETURNS int LANGUAGE sql AS 'INSERT INTO evil.calls VALUES (1) RETURNING n'"
        )
        superuser.execute("GRANT ALL ON SCHEMA evil TO PUBLIC; GRANT ALL ON evil.calls TO PUBLIC")
        connection.execute(f"SET standard_conforming_strings = {strings}".encode())
        connection.execute("SET extra_float_digits = -15; SET quote_all_identifiers = on")
        table, key, embedding, labels = (
            sql.Identifier(prefix + name) for prefix in ("table ", "key ", "embedding ", "labels ")
        )
        connection.execute(
            sql.SQL("CREATE TABLE {} ({} int PRIMARY KEY, {} extensions.vector(4), {} text[])").format(
                table, key, embedding, labels
            )
        )
        (oid,) = connection.execute(
            "SELECT oid FROM pg_class WHERE relname = %s", [("table " + name)]
        ).fetchone()  # type: ignore[misc]
        connection.execute(
            "SELECT foh.create_index('nasty', %s::oid::regclass, %s, labels => %s, bits => 16, options => '{\"exact_rows\": 0}')",
            [oid, "embedding " + name, "labels " + name],
        )
        connection.execute(
            sql.SQL(
                "INSERT INTO {} SELECT n, ARRAY[n, 1, n % 3, 2], '{{a}}' FROM generate_series(1, 50) n"
            ).format(table)
        )
        for _ in range(2):
            update(database.dsn(), "nasty")
            connection.execute("SELECT foh.refresh('nasty')")
            assert connection.execute("SELECT * FROM foh.check('nasty')").fetchall() == []
            found = connection.execute(
                "SELECT * FROM foh.nasty_search('[7,1,1,2]', 3, labels => 0)"
            ).fetchall()
            assert found[0][0] == 7
            connection.execute(sql.SQL("DELETE FROM {} WHERE {} = 50").format(table, key))
        connection.execute("SELECT foh.drop_index('nasty')")
        assert superuser.execute("SELECT count(*) FROM evil.calls").fetchone() == (0,)

    def test_of_two_indexes_never_meet(self, called: Connection) -> None:
        """The names of objects end in a word without an underscore."""
        for table, name in (
            ("items", "shop"),
            ("called", "shop_source"),
            ("more", "shop_inbox"),
        ):
            if table != "items":
                called.execute(
                    f"DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (LIKE items INCLUDING ALL)".encode()
                )
            called.execute("SELECT foh.create_index(%s, %s, 'embedding')", [name, table])
        suffixes = [
            name for (name,) in called.execute("SELECT suffix FROM foh._object_names('x')").fetchall()
        ]
        objects = [
            f"{index}_{suffix.replace('_', '')}"
            for index in ("shop", "shop_source", "shop_inbox")
            for suffix in suffixes
        ]
        assert len(set(objects)) == len(objects)
        called.execute("SELECT foh.drop_index('shop')")
        called.execute("INSERT INTO called SELECT n, '[1,2,3,4]' FROM generate_series(1, 9) n")
        assert len(called.execute("SELECT * FROM foh.shop_source_search('[1,2,3,4]')").fetchall()) == 9
        assert called.execute("SELECT * FROM foh.check('shop_source')").fetchall() == []

    def test_of_what_is_there_already(self, called: Connection) -> None:
        with pytest.raises(
            errors.DuplicateObject, match="'model' is not free: schema foh has model_state already"
        ):
            called.execute("SELECT foh.create_index('model', 'items', 'embedding')")


def test_a_migration_makes_no_role(superuser: Connection) -> None:
    """A role with CREATEROLE could have made it before."""
    assert superuser.execute("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'foh%owner'").fetchone() == (
        0,
    )
    owners = "SELECT DISTINCT pg_get_userbyid(proowner) FROM pg_proc WHERE pronamespace = 'foh'::regnamespace"
    assert superuser.execute(owners).fetchall() == [("app_owner",)]
