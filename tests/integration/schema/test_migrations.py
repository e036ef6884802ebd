from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import alembic.op
import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

import foh_pg
from foh_pg.errors import InputError, SchemaError
from foh_pg.postgres.connect import connect
from foh_pg.schema import migrations, script
from foh_pg.schema.migrations import migrate, offline
from tests.support.catalog import dump
from tests.support.postgres import Database, Server, install_pgvector

OBJECTS = """
SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('foh')
UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = to_regnamespace('foh')
"""


@pytest.fixture
def empty(new_database: Callable[..., Database]) -> Database:
    """pgvector in schema extensions, nothing of ours."""
    return with_pgvector(new_database())


@pytest.fixture
def fresh(new_database: Callable[..., Database]) -> Database:
    """Ours, installed by `installer` for itself."""
    database = with_pgvector(new_database())
    migrate(database.connect("installer"))
    return database


def with_pgvector(database: Database, schema: str = "extensions") -> Database:
    install_pgvector(database.connect(None), schema)
    return database


def has_schema(connection: psycopg.Connection[Any]) -> bool:
    return connection.execute("SELECT to_regnamespace('foh') IS NOT NULL").fetchone() == (True,)


def belongs_to(connection: psycopg.Connection[Any]) -> str:
    owner = connection.execute("SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'foh'")
    ((name,),) = owner.fetchall()
    return str(name)


class TestInstall:
    def test_says_where_it_started_and_ended(self, empty: Database) -> None:
        with empty.connect("installer") as installer:
            assert migrations.revision(installer) == "base"
            assert migrate(installer) == ("base", migrations.head())
            assert migrations.revision(installer) == migrations.head()
            assert migrate(installer) == (migrations.head(), migrations.head())

    @pytest.mark.parametrize("by", [None, "installer"])
    def test_everything_belongs_to_the_owner(self, empty: Database, server: Server, by: str | None) -> None:
        """The role that installs, or the one that it installs for; and no role is made."""
        roles = sql.SQL(
            # Other tests make roles at the same time.
            "SELECT array_agg(rolname ORDER BY rolname) FROM pg_roles WHERE rolname ~ '^foh' AND rolname !~ '^foh_test'"
        )
        before = server.execute(roles).fetchone()
        migrate(empty.connect(by), owner=None if by else "app_owner")
        owners = (
            empty.connect(None)
            .execute(
                """SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'foh'::regnamespace
               UNION SELECT pg_get_userbyid(proowner) FROM pg_proc WHERE pronamespace = 'foh'::regnamespace
               UNION SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'foh'"""
            )
            .fetchall()
        )
        assert owners == [(by or "app_owner",)]
        assert server.execute(roles).fetchone() == before

    def test_for_another_role_it_is_the_same(
        self, empty: Database, new_database: Callable[..., Database]
    ) -> None:
        migrate(empty.connect(None), owner="installer")
        itself = with_pgvector(new_database())
        migrate(itself.connect("installer"))
        assert dump(empty.connect("installer")) == dump(itself.connect("installer"))

    def test_every_function_body_is_valid(self, superuser: psycopg.Connection[Any]) -> None:
        functions = superuser.execute(
            """SELECT p.oid, p.oid::regprocedure::text, l.lanname
               FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
               WHERE p.pronamespace = 'foh'::regnamespace AND l.lanname IN ('sql', 'plpgsql')"""
        ).fetchall()
        assert functions
        for oid, name, language in functions:
            validator = {"sql": "fmgr_sql_validator", "plpgsql": "plpgsql_validator"}[language]
            try:
                superuser.execute(f"SELECT {validator}(%s)", [oid])
            except psycopg.Error as error:
                pytest.fail(f"{name}: {error}")

    def test_public_has_no_rights_in_the_schema(self, database: Database) -> None:
        outsider = database.connect("app_writer")
        usage = "SELECT has_schema_privilege('foh', 'USAGE') OR has_schema_privilege('foh', 'CREATE')"
        assert outsider.execute(usage).fetchone() == (False,)

    def test_the_caller_keeps_role_and_search_path(self, empty: Database) -> None:
        with empty.connect("installer", autocommit=False) as installer:
            installer.execute("SET search_path = app, public")
            settings = """SELECT current_user, current_setting('role'), current_setting('search_path'),
                                 current_setting('check_function_bodies')"""
            before = installer.execute(settings).fetchone()
            migrate(installer)
            assert installer.execute(settings).fetchone() == before

    def test_the_applications_version_table_is_not_touched(self, empty: Database) -> None:
        with empty.connect("installer") as installer:
            installer.execute("CREATE TABLE public.alembic_version (version_num text)")
            installer.execute("INSERT INTO public.alembic_version VALUES ('theirs')")
            migrate(installer)
            assert installer.execute("TABLE public.alembic_version").fetchall() == [("theirs",)]
            assert installer.execute("TABLE foh.alembic_version").fetchall() == [(migrations.head(),)]

    def test_is_rolled_back_with_the_callers_transaction(self, empty: Database) -> None:
        installer = empty.connect("installer", autocommit=False)
        installer.execute("CREATE TABLE theirs (id int)")
        migrate(installer)
        assert has_schema(installer)
        installer.rollback()
        assert not has_schema(installer)

    def test_a_failure_leaves_nothing(self, empty: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        real = migrations._alembic_statements
        broken = lambda *arguments: [*real(*arguments), "SELECT 1/0"]  # noqa: E731
        monkeypatch.setattr(migrations, "_alembic_statements", broken)
        installer = empty.connect("installer")
        with pytest.raises(psycopg.errors.DivisionByZero):
            migrate(installer)
        assert not has_schema(installer)
        assert installer.execute("SELECT current_user").fetchone() == ("installer",)

    def test_twenty_at_once_end_in_one_install(self, empty: Database) -> None:
        def install(_: int) -> migrations.Migrated:
            with connect(empty.dsn("installer")) as installer:
                return migrate(installer)

        with ThreadPoolExecutor(20) as pool:
            results = list(pool.map(install, range(20)))
        installed = [result for result in results if result.start == "base"]
        assert len(installed) == 1
        assert {result.end for result in results} == {migrations.head()}
        assert empty.connect("installer").execute("TABLE foh.alembic_version").fetchall() == [
            (migrations.head(),)
        ]

    def test_many_databases_of_a_new_cluster_at_once(self, private_server: Server) -> None:
        databases = [with_pgvector(private_server.create_database()) for _ in range(6)]

        def install(database: Database) -> migrations.Migrated:
            with connect(database.dsn("installer")) as installer:
                return migrate(installer)

        with ThreadPoolExecutor(6) as pool:
            results = list(pool.map(install, databases))
        assert [result.start for result in results] == ["base"] * 6
        dumps = [dump(database.connect("installer")) for database in databases]
        assert all(each == dumps[0] for each in dumps)


class TestSQLAlchemy:
    @pytest.fixture
    def engine(self, empty: Database) -> Iterator[sa.Engine]:
        engine = sa.create_engine(
            "postgresql+psycopg://", creator=lambda: psycopg.connect(empty.dsn("installer"))
        )
        yield engine
        engine.dispose()

    def test_gives_the_same_schema(self, engine: sa.Engine, empty: Database, fresh: Database) -> None:
        with engine.connect() as connection:
            assert migrate(connection).end == migrations.head()
        assert dump(empty.connect("installer")) == dump(fresh.connect("installer"))

    def test_joins_the_transaction_of_the_caller(self, engine: sa.Engine, empty: Database) -> None:
        with engine.connect() as connection:
            connection.execute(sa.text("CREATE TABLE theirs (id int)"))
            migrate(connection)
            connection.rollback()
        assert not has_schema(empty.connect("installer"))

    def test_reports_what_does_not_fit(self, new_database: Callable[..., Database]) -> None:
        dsn = new_database().dsn("installer")
        engine = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
        with engine.connect() as connection, pytest.raises(SchemaError, match="pgvector is not installed"):
            migrate(connection)
        engine.dispose()

    def test_refuses_autocommit(self, engine: sa.Engine, empty: Database) -> None:
        autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
        with autocommit.connect() as connection, pytest.raises(InputError, match="AUTOCOMMIT"):
            migrate(connection)
        assert not has_schema(empty.connect("installer"))

    def test_leaves_the_proxies_of_alembic_alone(self, engine: sa.Engine) -> None:
        from alembic.operations import Operations
        from alembic.runtime.migration import MigrationContext

        with engine.begin() as connection, Operations.context(MigrationContext.configure(connection)):
            alembic.op.execute("CREATE TABLE before (id int)")
            migrate(alembic.op.get_bind())
            alembic.op.execute("CREATE TABLE after (id int)")
        with engine.connect() as connection:
            tables = sa.inspect(connection).get_table_names(schema="public")
            assert sorted(tables) == ["after", "before"]


class TestRefusals:
    def test_pgvector_missing(self, new_database: Callable[..., Database]) -> None:
        installer = new_database().connect("installer")
        with pytest.raises(SchemaError, match="CREATE EXTENSION vector"):
            migrate(installer)
        assert not has_schema(installer)

    @pytest.mark.parametrize(
        ("version", "fits"), [("0.6.2", False), ("0.7.0", True), ("0.10.0", True), ("1.0", True)]
    )
    def test_pgvector_too_old(self, empty: Database, version: str, fits: bool) -> None:
        empty.connect(None).execute(
            "UPDATE pg_extension SET extversion = %s WHERE extname = 'vector'", [version]
        )
        installer = empty.connect("installer")
        if fits:
            assert migrate(installer).end == migrations.head()
        else:
            with pytest.raises(SchemaError, match=r"pgvector 0\.6\.2 is too old.*ALTER EXTENSION"):
                migrate(installer)

    def test_a_schema_of_somebody_elses(self, empty: Database) -> None:
        installer = empty.connect("installer")
        installer.execute("CREATE SCHEMA foh")
        installer.execute("CREATE TABLE foh.theirs (id int)")
        with pytest.raises(SchemaError, match="schema foh that foh_pg did not make"):
            migrate(installer)
        assert installer.execute(OBJECTS).fetchall() == [("theirs",)]

    def test_a_domain_alone_is_somebody_elses_too(self, empty: Database) -> None:
        installer = empty.connect("installer")
        installer.execute("CREATE SCHEMA foh")
        installer.execute("CREATE DOMAIN foh.theirs AS int")
        with pytest.raises(SchemaError, match="did not make"):
            migrate(installer)

    def test_an_empty_schema_is_taken(self, empty: Database) -> None:
        installer = empty.connect("installer")
        installer.execute("CREATE SCHEMA foh")
        migrate(installer)
        assert belongs_to(installer) == "installer"

    def test_a_newer_schema(self, fresh: Database) -> None:
        installer = fresh.connect("installer")
        installer.execute("UPDATE foh.alembic_version SET version_num = '9999'")
        with pytest.raises(SchemaError, match=r"'9999'.*newer.*upgrade the package"):
            migrate(installer)
        with pytest.raises(SchemaError, match="9999"):
            migrate(installer, "base")
        assert has_schema(installer)

    def test_an_unknown_revision(self, empty: Database) -> None:
        installer = empty.connect("installer")
        with pytest.raises(InputError, match=r"no revision 'nonsense'.*0001"):
            migrate(installer, "nonsense")

    def test_a_stranger(self, fresh: Database) -> None:
        installer = fresh.connect("installer")
        installer.execute("GRANT USAGE ON SCHEMA foh TO app_writer")
        installer.execute("GRANT SELECT ON foh.alembic_version TO app_writer")
        with pytest.raises(
            SchemaError, match="belongs to role installer, and this migration is for app_writer"
        ):
            migrate(fresh.connect("app_writer"), "base")
        with pytest.raises(SchemaError, match="app_writer may not act for role installer"):
            migrate(fresh.connect("app_writer"), "base", "installer")

    def test_an_owner_that_it_does_not_belong_to(self, empty: Database) -> None:
        """There is nothing to do, which is no answer to whom the schema should belong to."""
        superuser = empty.connect(None)
        migrate(superuser)
        with pytest.raises(SchemaError, match=r"this migration is for app_writer.*foh-pg migrate --to base"):
            migrate(superuser, owner="app_writer")
        assert migrate(superuser, owner=superuser.info.user).end == migrate(superuser).end

    def test_a_role_that_may_not_create_schemas(self, empty: Database) -> None:
        with pytest.raises(SchemaError, match="GRANT CREATE ON DATABASE"):
            migrate(empty.connect("app_writer"))

    def test_a_connection_of_another_kind(self) -> None:
        with pytest.raises(InputError, match="got a str"):
            migrate("postgresql://")  # type: ignore[arg-type]


class TestPlaces:
    def test_pgvector_in_an_odd_schema(self, new_database: Callable[..., Database]) -> None:
        database = with_pgvector(new_database(), 'Ext "x"')
        installer = database.connect("installer")
        migrate(installer)
        types = """SELECT DISTINCT n.nspname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
                   JOIN pg_namespace n ON n.oid = t.typnamespace
                   WHERE attrelid = 'foh.label'::regclass AND attname = 'projection'"""
        assert installer.execute(types).fetchall() == [('Ext "x"',)]

    def test_pgvectors_schema_is_closed_to_us(self, new_database: Callable[..., Database]) -> None:
        database = with_pgvector(new_database())
        database.connect(None).execute("REVOKE ALL ON SCHEMA extensions FROM PUBLIC")
        with pytest.raises(SchemaError, match="GRANT USAGE ON SCHEMA extensions TO installer"):
            migrate(database.connect("installer"))

    def test_a_superuser_opens_pgvectors_schema(self, new_database: Callable[..., Database]) -> None:
        database = with_pgvector(new_database())
        superuser = database.connect(None)
        superuser.execute("REVOKE ALL ON SCHEMA extensions FROM PUBLIC")
        migrate(superuser, owner="app_owner")
        granted = "SELECT has_schema_privilege('app_owner', 'extensions', 'USAGE')"
        assert superuser.execute(granted).fetchone() == (True,)

    def test_a_superuser_owns_what_it_makes_for_itself(self, empty: Database) -> None:
        superuser = empty.connect(None)
        migrate(superuser)
        assert belongs_to(superuser) == superuser.info.user
        migrate(superuser, "base")
        assert not has_schema(superuser)


class TestCode:
    """Functions belong to no revision: they are made again whenever they are not those of this package."""

    RECORDED = "SELECT digest, version FROM foh.code"
    # What another version might have: this function does something else.
    OTHER = "CREATE OR REPLACE FUNCTION foh._learners() RETURNS text[] LANGUAGE sql AS $$ SELECT '{other}'::text[] $$"
    LEARNERS = "SELECT foh._learners()"

    def test_the_digest_and_our_version_are_recorded(self, database: Database) -> None:
        owner = database.connect()
        assert owner.execute(self.RECORDED).fetchall() == [(script.code_digest(), foh_pg.__version__)]

    def test_other_code_is_replaced_and_every_index_rendered_again(self, database: Database) -> None:
        owner = database.connect()
        owner.execute("CREATE TABLE product (id int PRIMARY KEY, embedding extensions.vector(3))")
        owner.execute("SELECT foh.create_index('products', 'product', 'embedding', bits => 16)")
        before = dump(owner)
        owner.execute(self.OTHER)
        owner.execute("DROP FUNCTION foh.products_nearestcenters")
        # A function of an index that the present version does not have.
        owner.execute("CREATE FUNCTION foh.products_nearest() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        owner.execute("UPDATE foh.code SET digest = 'that of another version', version = '0.0.1'")
        assert migrations.code_is_outdated(owner)
        assert migrate(owner) == (migrations.head(), migrations.head())
        assert dump(owner) == before
        assert owner.execute(self.RECORDED).fetchall() == [(script.code_digest(), foh_pg.__version__)]
        assert not migrations.code_is_outdated(owner)

    def test_a_function_that_returns_something_else_is_replaced_and_its_readers_stay(
        self, database: Database
    ) -> None:
        owner = database.connect()
        owner.execute("CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(2))")
        owner.execute("SELECT foh.create_index('things', 'items', 'embedding')")
        columns = "SELECT proargnames FROM pg_proc WHERE proname = 'things_describe'"
        present = owner.execute(columns).fetchall()
        owner.execute("DROP FUNCTION foh.things_describe")
        owner.execute("CREATE FUNCTION foh.things_describe(OUT source text) LANGUAGE sql AS 'SELECT 1::text'")
        owner.execute("REVOKE ALL ON FUNCTION foh.things_describe FROM PUBLIC")
        owner.execute("GRANT EXECUTE ON FUNCTION foh.things_describe TO app_reader")
        owner.execute("UPDATE foh.code SET digest = 'that of another version', version = '0.0.1'")
        migrate(owner)
        assert owner.execute(columns).fetchall() == present
        may = "SELECT has_function_privilege(role, 'foh.things_describe()', 'EXECUTE') FROM unnest('{app_reader,public}'::text[]) role"
        assert owner.execute(may).fetchall() == [(True,), (False,)]

    def test_nothing_runs_where_the_digest_is_the_same(self, database: Database) -> None:
        owner = database.connect()
        owner.execute(self.OTHER)
        migrate(owner)
        assert owner.execute(self.LEARNERS).fetchone() == (["other"],)

    def test_a_failure_leaves_the_code_that_was_there(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        owner = database.connect()
        before = owner.execute(self.RECORDED).fetchall()
        real = script._code()
        monkeypatch.setattr(script, "_code", lambda: [*real, "SELECT 1/0"])
        with pytest.raises(psycopg.errors.DivisionByZero):
            migrate(owner)
        assert owner.execute(self.RECORDED).fetchall() == before

    def test_who_may_not_read_the_digest_is_told_nothing_of_it(self, database: Database) -> None:
        database.connect().execute("GRANT USAGE ON SCHEMA foh TO app_writer")
        database.connect().execute("GRANT SELECT ON foh.alembic_version TO app_writer")
        assert not migrations.code_is_outdated(database.connect("app_writer"))


class TestDowngrade:
    def test_back_and_up_again(self, fresh: Database) -> None:
        installer = fresh.connect("installer")
        before = dump(installer)
        assert migrate(installer, "base") == (migrations.head(), "base")
        assert not has_schema(installer)
        assert migrate(installer) == ("base", migrations.head())
        assert dump(installer) == before

    @pytest.fixture
    def indexed(self, database: Database) -> Database:
        """A table of the application's with an index of ours on it."""
        owner = database.connect("app_owner")
        owner.execute("CREATE TABLE product (id int PRIMARY KEY, embedding extensions.vector(3))")
        owner.execute("SELECT foh.create_index('products', 'product', 'embedding', bits => 16)")
        return database

    @pytest.mark.parametrize("by", [None, "app_owner"])
    def test_drops_the_indexes(self, indexed: Database, by: str | None) -> None:
        owner = indexed.connect("app_owner")
        triggers = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'product'::regclass"
        assert owner.execute(triggers).fetchone() != (0,)
        migrate(indexed.connect(by), "base", "app_owner")
        assert owner.execute(triggers).fetchone() == (0,)
        assert not has_schema(owner)
        owner.execute("INSERT INTO product VALUES (1, '[1,2,3]')")

    def test_does_not_take_what_somebody_put_there(self, database: Database) -> None:
        installer = database.connect()
        database.connect(None).execute(
            "CREATE OPERATOR foh.=== (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq)"
        )
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            migrate(installer, "base")
        assert migrations.revision(installer) == migrations.head()


class TestOffline:
    def run(self, database: Database, script: str) -> None:
        with database.connect("installer") as installer:
            installer.execute(script.encode())

    def test_gives_the_same_schema(self, empty: Database, fresh: Database) -> None:
        self.run(empty, offline())
        assert dump(empty.connect("installer")) == dump(fresh.connect("installer"))
        assert migrate(empty.connect("installer")) == (migrations.head(), migrations.head())

    def test_runs_in_psql(self, empty: Database, fresh: Database, server: Server) -> None:
        if server.bin is None:
            pytest.skip("this server brings no psql")
        psql = [
            str(server.bin / "psql"),
            "--no-psqlrc",
            "--quiet",
            "--set=ON_ERROR_STOP=1",
            empty.dsn("installer"),
        ]
        result = subprocess.run(psql, input=offline(), text=True, capture_output=True)
        assert (result.returncode, result.stderr) == (0, "")
        assert dump(empty.connect("installer")) == dump(fresh.connect("installer"))

    def test_downgrade(self, fresh: Database) -> None:
        self.run(fresh, offline(to="base", start="head"))
        assert not has_schema(fresh.connect("installer"))

    def test_for_another_role(self, empty: Database, fresh: Database) -> None:
        empty.connect(None).execute(offline(owner="installer").encode())
        assert dump(empty.connect("installer")) == dump(fresh.connect("installer"))
        empty.connect(None).execute(offline(to="base", start="head", owner="installer").encode())
        assert not has_schema(empty.connect("installer"))

    def test_twice_changes_nothing(self, empty: Database) -> None:
        self.run(empty, offline())
        before = dump(empty.connect("installer"))
        with pytest.raises(psycopg.Error):
            self.run(empty, offline())
        assert dump(empty.connect("installer")) == before

    def test_needs_no_database(self) -> None:
        program = "from foh_pg.schema.migrations import offline; print(offline())"
        command = [sys.executable, "-c", program]
        printed = subprocess.run(
            command, check=True, env={"PGHOST": "/nowhere"}, capture_output=True, text=True
        )
        assert "CREATE TABLE foh.alembic_version" in printed.stdout
