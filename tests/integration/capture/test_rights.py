"""Who may do what: writers need no rights in foh, and nobody gains any through it."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from psycopg import errors, sql

from foh_pg.errors import FohError
from foh_pg.updater.update import update
from tests.support.postgres import Database
from tests.support.recorded import (
    Connection,
    codes,
    create_index,
    create_table,
    entries,
    expected_codes,
    insert,
    problems,
    text,
    vectors,
)

X = vectors(20)


@pytest.fixture(params=["statement", "partitioned"])
def items(connection: Connection, request: pytest.FixtureRequest) -> Connection:
    create_table(connection, partitioned=request.param == "partitioned")
    create_index(
        connection,
        labels="tags",
        options={} if request.param == "partitioned" else {"triggers": request.param},
    )
    connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON items TO app_writer")
    return connection


@pytest.fixture
def writer(database: Database) -> Connection:
    return database.connect("app_writer")


class TestWriters:
    def test_need_no_rights_in_foh(self, items: Connection, writer: Connection) -> None:
        assert writer.execute("SELECT has_schema_privilege('foh', 'USAGE')").fetchone() == (False,)
        insert(writer, 1, X[1])
        insert(writer, 2, X[2])
        writer.execute("UPDATE items SET embedding = %s WHERE id = 1", [text(X[3])])
        writer.execute("DELETE FROM items WHERE id = 2")
        assert codes(items) == expected_codes(items, {1: X[3]})
        writer.execute("TRUNCATE items")
        assert codes(items) == {}

    def test_need_not_read_the_table(self, items: Connection, writer: Connection) -> None:
        items.execute("REVOKE SELECT ON items FROM app_writer")
        insert(writer, 1, X[1])
        assert codes(items) == expected_codes(items, {1: X[1]})

    @pytest.mark.parametrize("table", ["stream", "list", "center", "item", "projection"])
    def test_do_not_see_our_tables(self, items: Connection, writer: Connection, table: str) -> None:
        # Even with the schema open to them, as it is to readers.
        items.execute("GRANT USAGE ON SCHEMA foh TO app_writer")
        try:
            for statement in ("SELECT FROM foh.{}", "DELETE FROM foh.{}"):
                with pytest.raises(errors.InsufficientPrivilege):
                    writer.execute(sql.SQL(statement).format(sql.Identifier(f"idx_{table}")))
        finally:
            items.execute("REVOKE USAGE ON SCHEMA foh FROM app_writer")

    def test_may_execute_nothing_of_ours(self, items: Connection, writer: Connection) -> None:
        allowed = """SELECT p.oid::regprocedure::text FROM pg_proc p WHERE pronamespace = 'foh'::regnamespace
                     AND has_function_privilege('app_writer', p.oid, 'EXECUTE')"""
        assert items.execute(allowed).fetchall() == []


class TestDefiners:
    def test_run_with_a_fixed_search_path_as_the_owner_of_the_schema(self, items: Connection) -> None:
        definers = items.execute(
            """SELECT p.proname, p.proconfig, pg_get_userbyid(p.proowner) FROM pg_proc p
               WHERE pronamespace = 'foh'::regnamespace AND prosecdef"""
        ).fetchall()
        reading = {
            "idx_capture",
            "idx_check",
            "idx_repair",
            "idx_follow",
            "idx_rows",
            "idx_unchanged",
            "idx_answer",
        }
        assert reading <= {name for name, _, _ in definers}
        for name, settings, owner in definers:
            assert "search_path=pg_catalog, pg_temp" in (settings or []), name
            assert owner == "app_owner", name

    def test_look_at_the_table_before_they_read_it(self, items: Connection) -> None:
        """What reads the table with the rights of foh's owner first asks to whom the table belongs."""
        bodies = items.execute(
            """SELECT p.proname, p.prosrc FROM pg_proc p WHERE pronamespace = 'foh'::regnamespace AND prosecdef
               AND p.proname LIKE 'idx\\_%' AND p.prosrc LIKE '%FROM public.items%'"""
        ).fetchall()
        assert len(bodies) >= 6
        for name, body in bodies:
            assert "foh._open('public.items')" in body or "foh.idx_intact(" in body, name

    def test_refuse_another_table(self, items: Connection, superuser: Connection, database: Database) -> None:
        """Whoever attaches a capture function to a table of his own could write tombstones with it."""
        superuser.execute("GRANT CREATE ON SCHEMA public TO app_writer")
        superuser.execute("GRANT USAGE ON SCHEMA foh TO app_writer")
        thief = database.connect("app_writer")
        create_table(thief, "fake")
        create = """CREATE TRIGGER t AFTER DELETE ON fake REFERENCING OLD TABLE AS old_rows
                    FOR EACH STATEMENT EXECUTE FUNCTION foh.idx_capture()"""
        try:
            with pytest.raises(errors.InsufficientPrivilege):
                thief.execute(create)
            # And if he may execute it, it does not work on his table.
            superuser.execute("GRANT EXECUTE ON FUNCTION foh.idx_capture() TO app_writer")
            thief.execute(create)
            insert(items, 1, X[1])
            insert(thief, 1, X[1], table="fake")
            with pytest.raises(
                errors.InsufficientPrivilege, match=r"public\.fake is not a table of index 'idx'"
            ):
                thief.execute("DELETE FROM fake")
            assert [entry.op for entry in entries(items)] == ["u"]
        finally:
            superuser.execute("REVOKE ALL ON SCHEMA public, foh FROM app_writer")

    def test_refuse_a_table_that_took_the_name(self, connection: Connection, database: Database) -> None:
        """The oid decides: a table of the same name, made after the first was dropped, is another table."""
        create_table(connection)
        create_index(connection)
        connection.execute("DROP TABLE items")
        create_table(connection)
        connection.execute("CREATE TRIGGER t AFTER TRUNCATE ON items EXECUTE FUNCTION foh.idx_capture()")
        with pytest.raises(errors.InsufficientPrivilege, match="is not a table of index"):
            connection.execute("TRUNCATE items")


class TestSearchPath:
    TRAPS = """
        CREATE SCHEMA trap;
        CREATE FUNCTION trap.hit(anyelement, anyelement) RETURNS boolean @;
        CREATE FUNCTION trap.hit_int(int, int) RETURNS boolean @;
        CREATE OPERATOR trap.= (LEFTARG = int, RIGHTARG = int, FUNCTION = trap.hit_int);
        CREATE OPERATOR trap.<> (LEFTARG = int, RIGHTARG = int, FUNCTION = trap.hit_int);
        CREATE OPERATOR trap.= (LEFTARG = anyelement, RIGHTARG = anyelement, FUNCTION = trap.hit);
        CREATE FUNCTION trap.lower(text) RETURNS text @;
        CREATE FUNCTION trap.current_setting(text, boolean) RETURNS text @;
        CREATE FUNCTION trap.subvector(extensions.vector, int, int) RETURNS extensions.vector @;
        CREATE FUNCTION trap.has_column_privilege(oid, int2, text) RETURNS boolean @;
        CREATE VIEW trap.pg_attribute AS SELECT 1 / 0 AS attrelid;
        GRANT USAGE ON SCHEMA trap TO PUBLIC;
    """.replace("@", "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$")

    @pytest.mark.parametrize(
        "path", ["trap, pg_catalog, public", "trap, public, foh, extensions", "", "pg_temp, trap"]
    )
    def test_hostile(self, items: Connection, superuser: Connection, writer: Connection, path: str) -> None:
        superuser.execute(self.TRAPS)
        try:
            writer.execute("CREATE TEMP TABLE pg_class (oid int)")
            # Whoever writes need not know of it, and neither need his role's or his database's settings.
            writer.execute("SELECT pg_catalog.set_config('search_path', %s, false)", [path])
            writer.execute(
                "INSERT INTO public.items (id, embedding) VALUES (1, %s), (2, %s)", [text(X[1]), text(X[2])]
            )
            writer.execute("UPDATE public.items SET id = 5 WHERE id OPERATOR(pg_catalog.<) 2")
            writer.execute("DELETE FROM public.items WHERE id OPERATOR(pg_catalog.=) 2")
            assert codes(items) == expected_codes(items, {5: X[1]})
            items.execute("SELECT pg_catalog.set_config('search_path', %s, false)", [path])
            checked = items.execute("SELECT problem FROM foh.check('idx')").fetchall()
            assert checked == []
            items.execute("SELECT foh.refresh('idx')")
            assert items.execute("SELECT * FROM foh.repair('idx')").fetchone() == (0, 0, 0)
            items.execute("SELECT foh.drop_index('idx')")
        finally:
            superuser.execute("DROP SCHEMA trap CASCADE")

    def test_create_index(self, connection: Connection, superuser: Connection) -> None:
        superuser.execute(self.TRAPS)
        try:
            create_table(connection)
            connection.execute("SET search_path = trap, pg_catalog, public")
            create_index(connection, source="public.items")
            connection.execute("RESET search_path")
            insert(connection, 1, X[1])
            assert problems(connection) == []
        finally:
            superuser.execute("DROP SCHEMA trap CASCADE")

    def test_the_writers_settings_are_left_alone(self, items: Connection, writer: Connection) -> None:
        writer.execute(
            "SET enable_seqscan = on; SET jit = on; SET row_security = off; SET search_path = public"
        )
        insert(writer, 1, X[1])
        for name, value in (
            ("enable_seqscan", "on"),
            ("jit", "on"),
            ("row_security", "off"),
            ("search_path", "public"),
        ):
            assert writer.execute("SELECT current_setting(%s)", [name]).fetchone() == (value,)


class TestRowLevelSecurity:
    @pytest.fixture
    def secured(self, items: Connection) -> Connection:
        items.execute("ALTER TABLE items ADD COLUMN tenant text DEFAULT current_user")
        items.execute("ALTER TABLE items ENABLE ROW LEVEL SECURITY")
        items.execute("CREATE POLICY own ON items USING (tenant = current_user)")
        return items

    def test_rows_of_all_tenants_are_indexed(self, secured: Connection, writer: Connection) -> None:
        insert(writer, 1, X[1])
        insert(secured, 2, X[2])
        writer.execute("UPDATE items SET embedding = %s", [text(X[3])])
        assert codes(secured) == expected_codes(secured, {1: X[3], 2: X[2]})
        writer.execute("DELETE FROM items")
        assert codes(secured) == expected_codes(secured, {2: X[2]})
        assert problems(secured) == []

    def test_forced_on_the_owner(self, secured: Connection, writer: Connection, database: Database) -> None:
        """An index reads as the owner of the table: what is hidden from it is refused, or noticed, never lost."""
        insert(writer, 1, X[1])
        secured.execute("ALTER TABLE items FORCE ROW LEVEL SECURITY")
        insert(writer, 2, X[2])
        assert set(codes(secured)) == {1, 2}
        assert [problem.split(":")[0] for problem, _, _ in problems(secured)] == [
            "row-level security is forced on the owner, as whom the index reads"
        ]
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match="row-level security is forced"):
            secured.execute("SELECT foh.repair('idx')")
        with pytest.raises(FohError, match="cannot be used: row-level security is forced"):
            update(database.dsn(), "idx")
        with pytest.raises(
            errors.WrongObjectType, match=r"row-level security of public\.items applies to app_owner"
        ):
            create_index(secured, "second")
        secured.execute("ALTER TABLE items NO FORCE ROW LEVEL SECURITY")
        assert problems(secured) == []

    def test_a_row_handed_over_to_another_tenant(self, secured: Connection, writer: Connection) -> None:
        secured.execute("CREATE POLICY hand_over ON items FOR UPDATE USING (true) WITH CHECK (true)")
        insert(writer, 1, X[1])
        writer.execute("UPDATE items SET tenant = 'somebody', embedding = %s", [text(X[2])])
        assert codes(secured) == expected_codes(secured, {1: X[2]})

    def test_we_add_no_policy(self, secured: Connection, writer: Connection, database: Database) -> None:
        insert(secured, 1, X[1])
        assert writer.execute("SELECT id FROM items").fetchall() == []
        policies = "SELECT polname FROM pg_policy WHERE polrelid = 'items'::regclass"
        assert secured.execute(policies).fetchall() == [("own",)]
        secured.execute("GRANT SELECT ON items TO app_reader")
        assert database.connect("app_reader").execute("SELECT id FROM items").fetchall() == []

    def test_off_in_the_session(self, secured: Connection, database: Database) -> None:
        """row_security = off turns a filtered read into an error; the owner's own reads are not filtered."""
        session = database.connect()
        session.execute("SET row_security = off")
        insert(session, 1, X[1])
        assert codes(secured) == expected_codes(secured, {1: X[1]})
        assert problems(session) == []
        session.execute("SELECT foh.refresh('idx')")
        create_index(session, "second")
        session.execute("SELECT foh.drop_index('second')")

    def test_a_restrictive_policy_hides_nothing(self, secured: Connection, writer: Connection) -> None:
        """The owner of a table is not bound by its policies, and an index is the owner's."""
        secured.execute(
            "CREATE POLICY narrow ON items AS RESTRICTIVE USING (id < 10 OR current_user = 'app_writer')"
        )
        insert(writer, 5, X[5])
        insert(writer, 15, X[15])
        assert codes(secured) == expected_codes(secured, {5: X[5], 15: X[15]})
        assert problems(secured) == []


def test_only_the_owner_of_the_schema_may_change_an_index(
    items: Connection, superuser: Connection, database: Database, new_role: Callable[[], str]
) -> None:
    """Neither an updater nor a superuser; both are told who may."""
    role = new_role()
    items.execute(sql.SQL("SELECT foh.grant(updater => {})").format(sql.Literal(role)))
    calls = (
        "drop_index('idx')",
        "refresh('idx')",
        "alter_index('idx', '{}')",
        "grant('idx', reader => 'app_reader')",
        "create_index('second', 'public.items', 'embedding')",
    )
    for call in calls:
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied"):
            database.connect(role).execute(f"SELECT foh.{call}")
        with pytest.raises(errors.InsufficientPrivilege, match="belongs to role app_owner") as caught:
            superuser.execute(f"SELECT foh.{call}")
        assert caught.value.diag.message_hint == "Connect as app_owner, or SET ROLE app_owner first."
    assert problems(items) == []


def test_a_definer_cannot_be_reached_through_a_default(items: Connection, writer: Connection) -> None:
    """A new index made after the grants of others is as closed as the first."""
    create_index(items, "second")
    granted = """SELECT count(*) FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                 WHERE pronamespace = 'foh'::regnamespace AND a.grantee = 0"""
    assert items.execute(granted).fetchone() == (0,)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        writer.execute("SELECT foh.second_check()")
