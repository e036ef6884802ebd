"""A schema foh that somebody else made is refused before anything in it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from foh_pg.cli.app import app
from foh_pg.cli.watch import open_connection
from foh_pg.errors import SchemaError
from foh_pg.quality.evaluate import evaluate
from foh_pg.schema import migrations
from foh_pg.schema.migrations import migrate, offline
from foh_pg.updater.build import build, rebuild
from foh_pg.updater.update import update
from tests.support.postgres import Database, install_pgvector

Connection = psycopg.Connection[Any]

# The owner of a database, who is no superuser, waits for one.
EVIL = """
CREATE TABLE public.seen (who name);
CREATE FUNCTION public.evil() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.seen VALUES (current_user);
    RETURN '0001';
END $$;
CREATE SCHEMA foh;
"""
PLANTED = {
    "view": "CREATE VIEW foh.alembic_version AS SELECT public.evil()::varchar(32) AS version_num",
    "materialized view": "CREATE MATERIALIZED VIEW foh.alembic_version AS SELECT '0001'::varchar(32) AS version_num",
    "rule": "CREATE TABLE foh.alembic_version (version_num varchar(32)); INSERT INTO foh.alembic_version VALUES ('0001'); "
    "CREATE RULE r AS ON UPDATE TO foh.alembic_version DO ALSO SELECT public.evil()",
    "policy": "CREATE TABLE foh.alembic_version (version_num varchar(32)); INSERT INTO foh.alembic_version VALUES ('0001'); "
    "ALTER TABLE foh.alembic_version ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; "
    "CREATE POLICY p ON foh.alembic_version USING (public.evil() = '0001')",
    "a table as ours": "CREATE TABLE foh.alembic_version (version_num varchar(32)); "
    "INSERT INTO foh.alembic_version VALUES ('0001'); CREATE VIEW foh.index_stat AS SELECT public.evil() AS name; "
    "CREATE VIEW foh.index AS SELECT public.evil() AS name, 1 AS id",
    "partitioned": "CREATE TABLE foh.alembic_version (version_num varchar(32)) PARTITION BY LIST (version_num)",
}
COMMANDS = (
    ["migrate"],
    ["migrate", "--to", "base", "--yes"],
    ["status"],
    ["status", "idx"],
    ["create-index", "idx", "--source", "t", "--embedding", "e"],
    ["alter-index", "idx", "-o", "probes=3"],
    ["drop-index", "idx", "--yes"],
    ["build", "idx"],
    ["update", "idx"],
    ["build", "idx", "--again"],
    ["build", "idx", "--version", "1"],
    ["evaluate", "idx"],
    ["check", "idx"],
    ["check", "idx", "--repair"],
    ["alter-index", "idx", "--refresh"],
    ["grant", "idx", "--reader", "app_reader"],
    ["search", "idx", "--vector", "[1,2]"],
    ["status", "idx", "--check"],
)


@pytest.fixture
def planted(new_database: Callable[..., Database], request: pytest.FixtureRequest) -> Database:
    database = new_database()
    install_pgvector(database.connect(None))
    tenant = database.connect("installer")
    # In a database of its own a role may make objects in public.
    tenant.execute(EVIL)
    tenant.execute(PLANTED[request.param].encode())
    return database


def contents(connection: Connection) -> list[tuple[Any, ...]]:
    """All of schema foh, with the versions of its rows in the catalog: equal means untouched."""
    return connection.execute(
        """SELECT 'c', oid, relname::text, xmin::text, relowner FROM pg_class WHERE relnamespace = 'foh'::regnamespace
           UNION ALL SELECT 'p', oid, proname::text, xmin::text, proowner FROM pg_proc WHERE pronamespace = 'foh'::regnamespace
           UNION ALL SELECT 'n', oid, nspname::text, xmin::text, nspowner FROM pg_namespace WHERE nspname = 'foh' ORDER BY 1, 2"""
    ).fetchall()


def seen(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT who FROM public.seen").fetchall()


@pytest.mark.parametrize("planted", PLANTED, indirect=True)
class TestSuperuser:
    def test_migrations(self, planted: Database) -> None:
        superuser = planted.connect(None)
        before = contents(superuser)
        for to in ("head", "0001", "base"):
            with pytest.raises(SchemaError, match="schema foh"):
                migrate(superuser, to)
        with pytest.raises(SchemaError, match="schema foh"):
            migrations.revision(superuser)
        for script in (offline(), offline(start="0001"), offline(to="base", start="head")):
            with pytest.raises(psycopg.Error, match="schema foh") as caught:
                superuser.execute(script.encode())
            assert caught.value.sqlstate == migrations.SCHEMA_ERROR
            superuser.execute("ROLLBACK")
        assert (contents(superuser), seen(superuser)) == (before, [])

    @pytest.mark.one_version
    def test_commands(self, planted: Database) -> None:
        superuser = planted.connect(None)
        before = contents(superuser)
        for command in COMMANDS:
            result = CliRunner().invoke(app, [*command, "--dsn", planted.dsn(None)])
            assert result.exit_code != 0, command
            assert "schema foh" in result.output, (command, result.output)
        for act in (build, rebuild, update, evaluate):
            with pytest.raises(SchemaError, match="schema foh"):
                act(planted.dsn(None), "idx")
        # The watcher opens all of its connections so.
        with pytest.raises(SchemaError, match="schema foh"):
            open_connection(planted.dsn(None))
        assert (contents(superuser), seen(superuser)) == (before, [])


@pytest.mark.parametrize("planted", [each for each in PLANTED if each != "a table as ours"], indirect=True)
def test_a_plain_role_does_not_read_it_either(planted: Database) -> None:
    installer = planted.connect("installer")
    with pytest.raises(SchemaError, match="schema foh that foh_pg did not make"):
        migrations.revision(installer)
    with pytest.raises(SchemaError, match="schema foh that foh_pg did not make"):
        migrate(installer)
    assert seen(installer) == []


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE foh.label OWNER TO app_writer",
        "ALTER FUNCTION foh._owner() OWNER TO app_writer",
        "CREATE TRIGGER t BEFORE UPDATE ON foh.alembic_version FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "ALTER TABLE foh.alembic_version ADD COLUMN more text DEFAULT current_user",
    ],
)
@pytest.mark.parametrize("by", [None, "app_owner"])
def test_our_schema_changed_by_somebody(database: Database, statement: str, by: str | None) -> None:
    database.connect(None).execute(statement.encode())
    with pytest.raises(SchemaError, match=r"was changed since.*Nothing in it was read"):
        migrations.revision(database.connect(by), "app_owner")


def test_functions_of_indexes_are_no_offence(database: Database) -> None:
    owner = database.connect("app_owner")
    owner.execute("CREATE TABLE t (id int PRIMARY KEY, e extensions.vector(3), tags text[])")
    owner.execute("SELECT foh.create_index('idx', 't', 'e', labels => 'tags', bits => 16)")
    assert migrations.revision(owner) == migrations.head()
    assert migrations.revision(database.connect(None), "app_owner") == migrations.head()


def test_the_callers_settings_come_back(database: Database) -> None:
    with database.connect(autocommit=False) as owner:
        owner.execute("SET search_path = app, public")
        owner.execute("SET standard_conforming_strings = off")
        owner.execute("SET extra_float_digits = -3")
        settings = "SELECT current_setting('search_path'), current_setting('standard_conforming_strings'), current_setting('extra_float_digits')"
        before = owner.execute(settings).fetchone()
        assert migrations.revision(owner) == migrations.head()
        assert migrate(owner).end == migrations.head()
        assert owner.execute(settings).fetchone() == before


def test_a_superuser_does_not_run_what_a_plain_role_owns(database: Database) -> None:
    superuser = database.connect(None)
    for act in (migrations.revision, migrate, migrations.refuse_foreign):
        with pytest.raises(SchemaError, match=r"belongs to role app_owner.*superuser.*Connect as app_owner"):
            act(superuser)
    # SET ROLE is no protection: a function can reset the role.
    superuser.execute("SET ROLE app_owner")
    with pytest.raises(SchemaError, match="Connect as app_owner"):
        migrations.revision(superuser)
