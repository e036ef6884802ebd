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
    """Ours, installed by `installer`, and nothing granted since."""
    database = with_pgvector(new_database())
    migrate(database.connect("installer"))
    return database


def with_pgvector(database: Database, schema: str = "extensions") -> Database:
    install_pgvector(database.connect(None), schema)
    return database


def has_schema(connection: psycopg.Connection[Any]) -> bool:
    return connection.execute("SELECT to_regnamespace('foh') IS NOT NULL").fetchone() == (True,)


class TestInstall:
    def test_says_where_it_started_and_ended(self, empty: Database) -> None:
        with empty.connect("installer") as installer:
            assert migrations.revision(installer) == "base"
            assert migrate(installer) == ("base", migrations.head())
            assert migrations.revision(installer) == migrations.head()
            assert migrate(installer) == (migrations.head(), migrations.head())

    def test_everything_belongs_to_a_role_that_cannot_log_in(self, database: Database) -> None:
        connection = database.connect("installer")
        owners = connection.execute(
            """SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'foh'::regnamespace
               UNION SELECT pg_get_userbyid(proowner) FROM pg_proc WHERE pronamespace = 'foh'::regnamespace
               UNION SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'foh'"""
        ).fetchall()
        assert owners == [("foh_owner",)]
        role = "SELECT rolcanlogin, rolsuper, rolcreaterole FROM pg_roles WHERE rolname = 'foh_owner'"
        assert connection.execute(role).fetchone() == (False, False, False)

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
        owner = "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'foh'"
        assert installer.execute(owner).fetchone() == ("foh_owner",)

    def test_a_newer_schema(self, database: Database) -> None:
        installer = database.connect("installer")
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

    def test_a_stranger(self, database: Database) -> None:
        database.connect("installer").execute("GRANT USAGE ON SCHEMA foh TO app_writer")
        database.connect("installer").execute("GRANT SELECT ON foh.alembic_version TO app_writer")
        with pytest.raises(SchemaError, match="belongs to foh_owner, and app_writer is no member"):
            migrate(database.connect("app_writer"), "0001")

    def test_a_role_that_may_not_create_schemas(self, empty: Database) -> None:
        with pytest.raises(SchemaError, match="GRANT CREATE ON DATABASE"):
            migrate(empty.connect("app_writer"))

    def test_an_owner_that_can_log_in(self, private_server: Server) -> None:
        database = with_pgvector(private_server.create_database())
        private_server.execute(sql.SQL("CREATE ROLE foh_owner LOGIN"))
        with pytest.raises(SchemaError, match="ALTER ROLE foh_owner NOLOGIN"):
            migrate(database.connect(None))

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
        with pytest.raises(SchemaError, match="GRANT USAGE ON SCHEMA extensions TO foh_owner"):
            migrate(database.connect("installer"))

    def test_the_installer_opens_pgvectors_schema(self, new_database: Callable[..., Database]) -> None:
        database = with_pgvector(new_database())
        superuser = database.connect(None)
        superuser.execute("REVOKE ALL ON SCHEMA extensions FROM PUBLIC")
        superuser.execute("ALTER SCHEMA extensions OWNER TO installer")
        migrate(database.connect("installer"))
        granted = "SELECT has_schema_privilege('foh_owner', 'extensions', 'USAGE')"
        assert superuser.execute(granted).fetchone() == (True,)

    @pytest.mark.parametrize("role_exists", [False, True])
    def test_an_installer_that_may_not_create_roles(self, private_server: Server, role_exists: bool) -> None:
        database = with_pgvector(private_server.create_database())
        if role_exists:
            private_server.execute(sql.SQL("CREATE ROLE foh_owner NOLOGIN"))
        database.connect(None).execute(
            sql.SQL("GRANT CREATE ON DATABASE {} TO app_owner").format(sql.Identifier(database.name))
        )
        plain = database.connect("app_owner")
        migrate(plain)
        owner = "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'foh'"
        assert plain.execute(owner).fetchone() == ("app_owner",)
        migrate(plain, "base")
        assert not has_schema(plain)

    def test_a_superuser_does_not_own_it(self, empty: Database) -> None:
        superuser = empty.connect(None)
        migrate(superuser)
        owner = "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'foh'"
        assert superuser.execute(owner).fetchone() == ("foh_owner",)


class TestCode:
    """Functions belong to no revision: they are made again whenever they are not those of this package."""

    RECORDED = "SELECT digest, version FROM foh.code"
    # What another version might have: this function does something else.
    OTHER = "CREATE OR REPLACE FUNCTION foh._dial_factor(dial float8) RETURNS float8 LANGUAGE sql AS 'SELECT 7.0::float8'"
    FACTOR = "SELECT foh._dial_factor(0)"

    def test_the_digest_and_our_version_are_recorded(self, database: Database) -> None:
        installer = database.connect("installer")
        assert installer.execute(self.RECORDED).fetchall() == [(script.code_digest(), foh_pg.__version__)]

    def test_other_code_is_replaced_and_every_index_rendered_again(self, database: Database) -> None:
        owner, installer = database.connect("app_owner"), database.connect("installer")
        owner.execute("CREATE TABLE product (id int PRIMARY KEY, embedding extensions.vector(3))")
        owner.execute("SELECT foh.create_index('products', 'product', 'embedding', bits => 16)")
        before = dump(installer)
        installer.execute("SET ROLE foh_owner")
        installer.execute(self.OTHER)
        installer.execute("DROP FUNCTION foh.products_explain")
        # A function of an index that the present version does not have.
        installer.execute("CREATE FUNCTION foh.products_nearest() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        installer.execute("UPDATE foh.code SET digest = 'that of another version', version = '0.0.1'")
        installer.execute("RESET ROLE")
        assert migrations.code_is_outdated(installer)
        assert migrate(installer) == (migrations.head(), migrations.head())
        assert dump(installer) == before
        assert installer.execute(self.RECORDED).fetchall() == [(script.code_digest(), foh_pg.__version__)]
        assert not migrations.code_is_outdated(installer)

    def test_nothing_runs_where_the_digest_is_the_same(self, database: Database) -> None:
        installer = database.connect("installer")
        installer.execute("SET ROLE foh_owner")
        installer.execute(self.OTHER)
        installer.execute("RESET ROLE")
        migrate(installer)
        assert installer.execute(self.FACTOR).fetchone() == (7.0,)

    def test_a_failure_leaves_the_code_that_was_there(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        installer = database.connect("installer")
        before = installer.execute(self.RECORDED).fetchall()
        real = script._code()
        monkeypatch.setattr(script, "_code", lambda: [*real, "SELECT 1/0"])
        with pytest.raises(psycopg.errors.DivisionByZero):
            migrate(installer)
        assert installer.execute(self.RECORDED).fetchall() == before

    def test_who_may_not_read_the_digest_is_told_nothing_of_it(self, database: Database) -> None:
        database.connect("installer").execute("GRANT USAGE ON SCHEMA foh TO app_writer")
        database.connect("installer").execute("GRANT SELECT ON foh.alembic_version TO app_writer")
        assert not migrations.code_is_outdated(database.connect("app_writer"))


class TestDowngrade:
    def test_back_and_up_again(self, fresh: Database) -> None:
        installer = fresh.connect("installer")
        before = dump(installer)
        assert migrate(installer, "0002") == (migrations.head(), "0002")
        assert migrate(installer) == ("0002", migrations.head())
        assert dump(installer) == before
        assert migrate(installer, "0001") == (migrations.head(), "0001")
        assert dump(installer) != before
        assert installer.execute(
            "SELECT count(*) FROM pg_proc WHERE pronamespace = 'foh'::regnamespace"
        ).fetchone() == (0,)
        assert migrate(installer) == ("0001", migrations.head())
        assert dump(installer) == before

    def test_to_base_leaves_nothing(self, private_server: Server) -> None:
        database = with_pgvector(private_server.create_database())
        installer = database.connect("installer")
        migrate(installer)
        migrate(installer, "base")
        assert not has_schema(installer)
        assert installer.execute("SELECT count(*) FROM pg_roles WHERE rolname = 'foh_owner'").fetchone() == (
            0,
        )
        assert migrate(installer).start == "base"

    @pytest.fixture
    def indexed(self, database: Database) -> Database:
        """A table of the application's with an index of ours on it."""
        owner = database.connect("app_owner")
        owner.execute("CREATE TABLE product (id int PRIMARY KEY, embedding extensions.vector(3))")
        owner.execute("SELECT foh.create_index('products', 'product', 'embedding', bits => 16)")
        return database

    def test_drops_the_indexes(self, indexed: Database) -> None:
        """foh's owner can act for the owners of the tables, and who migrates is a member of it."""
        owner, installer = indexed.connect("app_owner"), indexed.connect("installer")
        triggers = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'product'::regclass"
        assert owner.execute(triggers).fetchone() != (0,)
        migrate(installer, "base")
        assert owner.execute(triggers).fetchone() == (0,)
        assert not has_schema(owner)
        owner.execute("INSERT INTO product VALUES (1, '[1,2,3]')")

    def test_the_owner_of_a_table_cannot_take_it_all_back(self, indexed: Database) -> None:
        owner = indexed.connect("app_owner")
        for to in ("base", "0001"):
            with pytest.raises(SchemaError, match="belongs to foh_owner, and app_owner is no member"):
                migrate(owner, to)
        assert migrations.revision(owner) == migrations.head()
        owner.execute("INSERT INTO product VALUES (1, '[1,2,3]')")
        assert owner.execute("SELECT count(*) FROM foh.products_stream").fetchone() == (1,)

    def test_the_role_stays_while_another_database_uses_it(self, database: Database, server: Server) -> None:
        installer = database.connect("installer")
        migrate(installer, "base")
        assert not has_schema(installer)
        assert installer.execute("SELECT count(*) FROM pg_roles WHERE rolname = 'foh_owner'").fetchone() == (
            1,
        )

    def test_does_not_take_what_somebody_put_there(self, database: Database) -> None:
        installer = database.connect("installer")
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

    def test_downgrade(self, database: Database) -> None:
        self.run(database, offline(to="base", start="head"))
        assert not has_schema(database.connect("installer"))

    def test_step_by_step(self, empty: Database, fresh: Database) -> None:
        self.run(empty, offline(to="0001"))
        assert migrations.revision(empty.connect("installer")) == "0001"
        self.run(empty, offline(start="0001"))
        assert dump(empty.connect("installer")) == dump(fresh.connect("installer"))

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


def test_functions_of_an_index_on_a_table_of_a_superuser(superuser: psycopg.Connection[Any]) -> None:
    """Functions that read such a table belong to a role whose grants foh's owner may not touch."""
    superuser.execute("CREATE TABLE theirs (id int PRIMARY KEY, embedding extensions.vector(3))")
    superuser.execute("SELECT foh.create_index('theirs', 'theirs', 'embedding')")
    superuser.execute("UPDATE foh.code SET digest = 'of an earlier version'")
    migrate(superuser)
    open_to_all = "SELECT count(*) FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND has_function_privilege('public', p.oid, 'EXECUTE')"
    assert superuser.execute(open_to_all).fetchone() == (0,)
