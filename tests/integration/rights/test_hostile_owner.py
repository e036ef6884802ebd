"""`foh-pg migrate --owner` by a superuser, in a schema whose owner has left code there to become superuser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from psycopg import sql

from foh_pg.cli.app import app
from foh_pg.errors import SchemaError
from foh_pg.schema import migrations
from foh_pg.schema.migrations import migrate, offline
from foh_pg.updater import update
from tests.support.postgres import PASSWORD, Database, Server, install_pgvector

Connection = psycopg.Connection[Any]

# Code that takes what it can get, and goes on where it gets nothing. Each form of it ends in act().
EVIL = """
CREATE SCHEMA evil;
CREATE TABLE evil.seen (who name);
CREATE TABLE evil.note (x int);
CREATE FUNCTION evil.act() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    attempt text;
BEGIN
    INSERT INTO evil.seen VALUES (current_user);
    FOREACH attempt IN ARRAY ARRAY['RESET ROLE', 'SET SESSION AUTHORIZATION DEFAULT', 'SET ROLE NONE', 'ALTER FUNCTION foh._as_owner(text) SECURITY INVOKER',
                                   'ALTER ROLE ATTACKER SUPERUSER', 'GRANT pg_execute_server_program TO ATTACKER'] LOOP
        BEGIN
            EXECUTE attempt;
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END LOOP;
    INSERT INTO evil.seen VALUES (current_user);
    RETURN true;
END $$;
CREATE FUNCTION evil.act_as_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM evil.act(); RETURN coalesce(new, old); END';
CREATE FUNCTION evil.act_if_constant(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN evil.act(); END';
CREATE FUNCTION evil.quote_ident(name) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM evil.act(); RETURN $1; END';
CREATE VIEW evil.pg_publication AS SELECT 'x'::name AS pubname, evil.act() AS puballtables;
UPDATE foh.code SET digest = 'of another version';
"""
ON_TEMPLATE = (
    "CREATE TRIGGER t BEFORE INSERT OR DELETE ON foh.template FOR EACH ROW EXECUTE FUNCTION evil.{}()"
)


def statement_trigger(statement: str) -> str:
    """A statement that runs inside of the migration, as the owner of the schema."""
    return (
        f"CREATE FUNCTION evil.run() RETURNS trigger LANGUAGE plpgsql AS $evil$ BEGIN {statement}; RETURN NULL; END $evil$; "
        "CREATE TRIGGER t AFTER DELETE ON foh.template EXECUTE FUNCTION evil.run()"
    )


# What is planted: the migration comes to its end, and all of it ran as the owner of the schema.
HARMLESS = {
    "trigger on foh.template": ON_TEMPLATE.format("act_as_trigger"),
    "trigger on foh.index": "CREATE TRIGGER t BEFORE DELETE ON foh.index FOR EACH STATEMENT EXECUTE FUNCTION evil.act_as_trigger()",
    "constraint": "ALTER TABLE foh.template ADD CHECK (evil.act())",
    "default": "ALTER TABLE foh.template ADD COLUMN more boolean DEFAULT evil.act()",
    "generated column": "ALTER TABLE foh.template ADD COLUMN more boolean GENERATED ALWAYS AS (evil.act_if_constant(length(name))) STORED",
    "expression of an index": "CREATE INDEX ON foh.template ((evil.act_if_constant(length(name))))",
    "policy": "ALTER TABLE foh.template ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; "
    "CREATE POLICY p ON foh.template USING (evil.act()) WITH CHECK (evil.act())",
    "rule": "CREATE RULE r AS ON DELETE TO foh.template DO ALSO SELECT evil.act()",
    "replaced function": "CREATE OR REPLACE FUNCTION foh._owner() RETURNS name LANGUAGE plpgsql STABLE AS "
    "'BEGIN PERFORM evil.act(); RETURN current_user; END'; CREATE VIEW foh.mine AS SELECT foh._owner()",
    "overload for varchar": "CREATE FUNCTION foh._as_owner(varchar) RETURNS void LANGUAGE sql AS 'SELECT evil.act()'",
    "overload for anything": "CREATE FUNCTION foh._as_owner(anyelement) RETURNS void LANGUAGE sql AS 'SELECT evil.act()'",
    "overload for many": "CREATE FUNCTION foh._as_owner(VARIADIC text[]) RETURNS void LANGUAGE sql AS 'SELECT evil.act()'",
    "a function of our own name": "CREATE FUNCTION foh._as_owner(statement text) RETURNS void LANGUAGE plpgsql AS "
    "'BEGIN PERFORM evil.act(); EXECUTE statement; END'",
    "setting of the database": "ALTER DATABASE {database} SET search_path = evil, public; "
    "ALTER DATABASE {database} SET standard_conforming_strings = off; ALTER DATABASE {database} SET check_function_bodies = on; "
    "ALTER DATABASE {database} SET quote_all_identifiers = on; ALTER DATABASE {database} SET constraint_exclusion = on; "
    + ON_TEMPLATE.format("act_as_trigger"),
    "role of the database": "ALTER DATABASE {database} SET role = {attacker}; "
    + ON_TEMPLATE.format("act_as_trigger"),
}
# What would run later, with other rights than those of the owner: refused, in these words.
REFUSED = {
    "foh.code is a view": (
        "ALTER TABLE foh.code RENAME TO kept; "
        "CREATE VIEW foh.code AS SELECT digest, version FROM foh.kept WHERE evil.act()",
        "foh.code is not a table",
    ),
    "foh.code is gone": ("DROP TABLE foh.code", "foh.code is missing"),
    "foh.alembic_version is a view": (
        "ALTER TABLE foh.alembic_version RENAME TO kept; "
        "CREATE VIEW foh.alembic_version AS SELECT version_num FROM foh.kept WHERE evil.act()",
        "foh.alembic_version is not a table",
    ),
    "a type of its own": (
        "CREATE DOMAIN evil.text AS text CHECK (evil.act()); ALTER TABLE foh.code ALTER COLUMN digest TYPE evil.text",
        "foh.code has other columns",
    ),
    "a rule on foh.code": (
        "CREATE RULE r AS ON INSERT TO foh.code DO ALSO SELECT evil.act()",
        "foh.code has a rule",
    ),
    "a trigger on foh.code": (
        "CREATE TRIGGER t BEFORE INSERT ON foh.code FOR EACH ROW EXECUTE FUNCTION evil.act_as_trigger()",
        "foh.code has a trigger",
    ),
    "a policy on foh.alembic_version": (
        "ALTER TABLE foh.alembic_version ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON foh.alembic_version USING (evil.act())",
        "foh.alembic_version has row-level security",
    ),
    # The planner computes what is constant in these, whoever asks.
    "a condition of an index on foh.code": (
        "CREATE INDEX ON foh.code (digest) WHERE evil.act_if_constant(1)",
        "foh.code has an index with an expression",
    ),
    "an expression of an index on foh.alembic_version": (
        "CREATE INDEX ON foh.alembic_version ((evil.act_if_constant(1)))",
        "foh.alembic_version has an index with an expression",
    ),
    "a constraint of foh.code": (
        "ALTER TABLE foh.code ADD CHECK (evil.act_if_constant(1)); ALTER DATABASE {database} SET constraint_exclusion = on",
        "foh.code has a CHECK constraint",
    ),
    "statistics of foh.code": (
        "CREATE STATISTICS evil.s ON (evil.act_if_constant(1)), version FROM foh.code",
        "foh.code has statistics",
    ),
    # What stays in the session, for its role to run into.
    "search_path": (statement_trigger("SET search_path = evil, pg_catalog"), "setting search_path"),
    "search_path until the end": (
        statement_trigger("SET LOCAL client_encoding = 'SJIS'"),
        "setting client_encoding",
    ),
    "all settings": (statement_trigger("RESET ALL"), "setting "),
    "the settings that are put back": (
        statement_trigger("""SET foh.caller_settings = '{{"search_path": "evil"}}'"""),
        "setting foh.caller_settings",
    ),
    "a held cursor": (
        statement_trigger("EXECUTE 'DECLARE c CURSOR WITH HOLD FOR SELECT evil.act()'"),
        "cursor c",
    ),
    "a prepared statement": (
        statement_trigger("EXECUTE 'PREPARE _pg3_0 AS SELECT evil.act()'"),
        "prepared statement _pg3_0",
    ),
    "a temporary view": (
        statement_trigger("CREATE TEMP VIEW product AS SELECT evil.act()"),
        "temporary object",
    ),
    "a temporary type": (statement_trigger("CREATE DOMAIN pg_temp.text AS int"), "temporary object"),
}
# Run at COMMIT, as the role of the session before PostgreSQL 18 and since then as the role that wrote.
DEFERRED = {
    "constraint trigger of ours": "CREATE CONSTRAINT TRIGGER later AFTER INSERT ON foh.template DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION evil.act_as_trigger()",
    "constraint trigger elsewhere": "CREATE CONSTRAINT TRIGGER later AFTER INSERT ON evil.note DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION evil.act_as_trigger(); "
    + statement_trigger("INSERT INTO evil.note VALUES (1)"),
    "made on the way": statement_trigger(
        "CREATE TEMP TABLE note (x int); CREATE CONSTRAINT TRIGGER later AFTER INSERT ON pg_temp.note "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION evil.act_as_trigger(); INSERT INTO pg_temp.note VALUES (1)"
    ),
    "expression of an exclusion": "ALTER TABLE evil.note ADD CONSTRAINT later EXCLUDE USING btree ((evil.act_if_constant(x)) WITH =) "
    "DEFERRABLE INITIALLY DEFERRED; INSERT INTO evil.note VALUES (1); "
    + statement_trigger("INSERT INTO evil.note VALUES (2); DELETE FROM evil.note WHERE x = 1"),
    "condition of an exclusion": "ALTER TABLE evil.note ADD CONSTRAINT later EXCLUDE USING btree (x WITH =) "
    "WHERE (evil.act_if_constant(1)) DEFERRABLE INITIALLY DEFERRED; "
    + statement_trigger(
        "INSERT INTO evil.note VALUES (2); INSERT INTO evil.note VALUES (2); DELETE FROM evil.note"
    ),
}


class Attack:
    """A database whose schema foh belongs to a plain role that owns the database too and wants more."""

    def __init__(self, database: Database, attacker: str) -> None:
        self.database, self.attacker = database, attacker
        names = [sql.Identifier(database.name), sql.Identifier(attacker)]
        database.server.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(*names))

    def install(self) -> None:
        migrate(self.database.connect(self.attacker))
        self.plant(EVIL.replace("ATTACKER", self.attacker))

    def plant(self, statements: str) -> None:
        self.database.connect(self.attacker).execute(statements.encode())

    def fill(self, statements: str) -> str:
        return statements.format(database=self.database.name, attacker=self.attacker)

    def seen(self) -> set[str]:
        """As whom the planted code ran."""
        return {who for (who,) in self.database.connect(None).execute("SELECT who FROM evil.seen")}

    def gained(self) -> list[tuple[Any, ...]]:
        """What the attacker has and a plain role has not."""
        superuser = self.database.connect(None)
        return superuser.execute(
            """SELECT rolname FROM pg_roles WHERE rolname = %(attacker)s AND (rolsuper OR rolcreaterole OR rolbypassrls OR rolreplication)
               UNION ALL SELECT m.roleid::regrole::text FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member WHERE r.rolname = %(attacker)s""",
            {"attacker": self.attacker},
        ).fetchall()


@pytest.fixture(scope="module")
def attacker(server: Server) -> Iterator[str]:
    name = new_role(server)
    yield name
    server.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def prepared(server: Server, attacker: str) -> Iterator[tuple[Database, Database]]:
    """A database with pgvector alone, and one in which the attacker has installed foh and planted code."""
    empty = server.create_database()
    install_pgvector(empty.connect(None))
    empty.disconnect()
    planted = server.create_database(template=empty.name)
    Attack(planted, attacker).install()
    planted.disconnect()
    yield empty, planted
    planted.drop()
    empty.drop()


def attack_on(original: Database, attacker: str) -> Iterator[Attack]:
    """A copy of a database; it goes with the transactions that a failure left open in it."""
    database = original.server.create_database(template=original.name)
    yield Attack(database, attacker)
    database.drop()


@pytest.fixture
def attack(prepared: tuple[Database, Database], attacker: str) -> Iterator[Attack]:
    yield from attack_on(prepared[0], attacker)


@pytest.fixture
def other(server: Server, attack: Attack) -> Iterator[str]:
    """Another plain role."""
    name = new_role(server)
    yield name
    attack.database.drop()
    server.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def new_role(server: Server) -> str:
    name = f"foh_test_{uuid4().hex[:8]}"
    make = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(name), sql.Literal(PASSWORD))
    server.execute(make)
    return name


@pytest.fixture
def planted(prepared: tuple[Database, Database], attacker: str) -> Iterator[Attack]:
    yield from attack_on(prepared[1], attacker)


@pytest.mark.one_version(but={"to": ["head"]})
@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.parametrize("to", ["head", "base"])
def test_it_runs_as_the_owner(planted: Attack, name: str, to: str) -> None:
    planted.plant(planted.fill(HARMLESS[name]))
    if to == "base" and name in ("replaced function", "constraint"):
        pytest.skip("the owner is in the way of his own removal")
    superuser = planted.database.connect(None)
    before = superuser.execute("SELECT current_setting('role'), current_setting('search_path')").fetchone()
    assert migrate(superuser, to, planted.attacker) == (migrations.head(), migrations.resolve(to))
    after = superuser.execute("SELECT current_setting('role'), current_setting('search_path')").fetchone()
    assert after == before
    assert planted.gained() == []
    assert planted.seen() <= {planted.attacker}


@pytest.mark.parametrize("name", ["trigger on foh.template", "policy", "rule"])
def test_the_attempt_is_one(planted: Attack, name: str) -> None:
    """Run by the superuser herself, without the migration, the planted code does what it is for."""
    planted.plant(planted.fill(HARMLESS[name]))
    superuser = planted.database.connect(None)
    superuser.execute("SET row_security = on")
    with superuser.transaction(force_rollback=True):
        superuser.execute("DELETE FROM foh.template")
        rights = superuser.execute("SELECT rolsuper FROM pg_roles WHERE rolname = %s", [planted.attacker])
        assert rights.fetchone() == (name != "policy",)


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(planted: Attack, name: str) -> None:
    statements, reason = REFUSED[name]
    planted.plant(planted.fill(statements))
    planted.plant("TRUNCATE evil.seen")
    try:
        migrate(planted.database.connect(None), owner=planted.attacker)
        error = ""
    except SchemaError as caught:
        error = str(caught)
    assert (planted.gained(), planted.seen() - {planted.attacker}) == ([], set())
    assert reason in error


@pytest.mark.parametrize("name", DEFERRED)
def test_it_waits_for_the_commit(planted: Attack, name: str) -> None:
    planted.plant(planted.fill(DEFERRED[name]))
    planted.plant("TRUNCATE evil.seen")
    superuser = planted.database.connect(None)
    if superuser.info.server_version >= 180000 and name != "made on the way":
        migrate(superuser, owner=planted.attacker)
    else:
        with pytest.raises(SchemaError, match=r"can be deferred|temporary object"):
            migrate(superuser, owner=planted.attacker)
    assert planted.gained() == []
    assert planted.seen() <= {planted.attacker}


def test_nothing_is_left_for_the_transaction_to_run_into(planted: Attack) -> None:
    """An application goes on in the transaction, with statements and cursors that it has made before."""
    planted.plant(
        statement_trigger(
            "EXECUTE 'CLOSE mine'; EXECUTE 'DECLARE mine CURSOR FOR SELECT evil.act()'; "
            "EXECUTE 'DEALLOCATE ours'; EXECUTE 'PREPARE ours AS SELECT evil.act()'"
        )
    )
    superuser = planted.database.connect(None, autocommit=False)
    superuser.execute("DECLARE mine CURSOR FOR SELECT 1")
    superuser.execute("PREPARE ours AS SELECT 1")
    with pytest.raises(SchemaError, match=r"cursor mine|prepared statement ours"):
        migrate(superuser, owner=planted.attacker)
    for statement in ("FETCH mine", "EXECUTE ours"):
        with pytest.raises(psycopg.Error, match="does not exist"), superuser.transaction():
            superuser.execute(statement)
    superuser.commit()
    assert planted.gained() == []


def test_an_error_leaves_no_prepared_statement(planted: Attack) -> None:
    planted.plant(
        statement_trigger(
            "EXECUTE 'PREPARE ours AS SELECT evil.act()'; RAISE EXCEPTION USING ERRCODE = 'query_canceled'"
        )
    )
    superuser = planted.database.connect(None)
    with pytest.raises(psycopg.errors.QueryCanceled):
        migrate(superuser, owner=planted.attacker)
    assert superuser.execute("SELECT name FROM pg_prepared_statements").fetchall() == []


def test_an_overload_that_fits_as_well(planted: Attack) -> None:
    planted.plant(
        "CREATE FUNCTION foh._as_owner(text, boolean DEFAULT evil.act()) RETURNS void LANGUAGE sql AS 'SELECT evil.act()'"
    )
    with pytest.raises(psycopg.errors.AmbiguousFunction):
        migrate(planted.database.connect(None), owner=planted.attacker)
    assert (planted.gained(), planted.seen()) == ([], set())


def test_a_snapshot_that_is_older_than_the_attack(planted: Attack) -> None:
    superuser = planted.database.connect(None, autocommit=False)
    superuser.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    superuser.execute("SELECT 1")
    planted.plant(planted.fill(REFUSED["foh.code is a view"][0]))
    with pytest.raises(SchemaError, match="READ COMMITTED"):
        migrate(superuser, owner=planted.attacker)
    superuser.rollback()
    assert planted.gained() == []
    assert planted.seen() <= {planted.attacker}


def test_the_printed_script(planted: Attack) -> None:
    planted.plant(HARMLESS["trigger on foh.template"])
    superuser = planted.database.connect(None)
    superuser.execute(offline("base", "head", planted.attacker).encode())
    assert superuser.execute("SELECT to_regnamespace('foh')").fetchone() == (None,)
    assert (planted.gained(), planted.seen()) == ([], {planted.attacker})


def test_through_sqlalchemy(planted: Attack) -> None:
    planted.plant(HARMLESS["trigger on foh.template"])
    dsn = planted.database.dsn(None)
    engine = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    with engine.connect() as connection:
        migrate(connection, owner=planted.attacker)
    engine.dispose()
    assert (planted.gained(), planted.seen()) == ([], {planted.attacker})


class TestBeforeTheFirstMigration:
    def test_an_empty_schema_of_the_owner_is_taken(self, attack: Attack) -> None:
        attack.plant("CREATE SCHEMA foh")
        migrate(attack.database.connect(None), owner=attack.attacker)
        assert attack.gained() == []

    @pytest.mark.parametrize(
        "planted",
        [
            "CREATE FUNCTION foh._as_owner(statement text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE statement; END'",
            "CREATE TABLE foh.template (name text PRIMARY KEY, body text)",
            "CREATE DOMAIN foh.text AS text",
        ],
    )
    def test_a_schema_with_something_in_it_is_refused(self, attack: Attack, planted: str) -> None:
        attack.plant(f"CREATE SCHEMA foh; {planted}")
        with pytest.raises(SchemaError, match="schema foh that foh_pg did not make"):
            migrate(attack.database.connect(None), owner=attack.attacker)
        assert attack.gained() == []

    def test_a_schema_of_another_role_is_refused(self, attack: Attack, other: str) -> None:
        attack.plant("CREATE SCHEMA foh")
        superuser = attack.database.connect(None)
        with pytest.raises(SchemaError, match=f"belongs to role {attack.attacker}"):
            migrate(superuser, owner=other)
        with pytest.raises(SchemaError, match=f"belongs to role {attack.attacker}"):
            migrate(superuser)

    def test_default_rights(self, attack: Attack, other: str) -> None:
        """What the owner of the database lets others do by default ends at the schema of another."""
        attack.plant("ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO PUBLIC")
        superuser = attack.database.connect(None)
        migrate(superuser, owner=other)
        opened = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'foh'::regnamespace AND has_function_privilege(%s, oid, 'EXECUTE')"
        assert superuser.execute(opened, [attack.attacker]).fetchone() == (0,)


@pytest.mark.one_version
@pytest.mark.parametrize(
    "name",
    [
        "quo\"te quo'te back\\slash new\nline",
        "$foh$ $foh_file0$ {body} {owner} %s%(x)s:y",
        "$foh_do0$;SELECT 1;SELECT $foh_do0$",
        "Größe あ\\' a b;--",
    ],
)
def test_names_of_roles(new_database: Callable[..., Database], name: str) -> None:
    database = new_database()
    superuser = database.connect(None)
    install_pgvector(superuser)
    superuser.execute(
        sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(name), sql.Literal(PASSWORD))
    )
    try:
        migrate(superuser, owner=name)
        belongs = "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'foh'"
        assert superuser.execute(belongs).fetchone() == (name,)
        superuser.execute("UPDATE foh.code SET digest = 'of another version'")
        migrate(superuser, owner=name)
        owner = database.connect(name)
        owner.execute("CREATE TEMP TABLE t (id int PRIMARY KEY, e extensions.vector(3))")
        assert migrations.revision(owner) == migrations.head()
        owner.close()
        superuser.execute(offline("base", "head", name).encode())
        assert superuser.execute(belongs).fetchone() is None
    finally:
        superuser.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
        superuser.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


class TestWhoMayNot:
    def test_a_role_that_is_not_there(self, attack: Attack) -> None:
        with pytest.raises(SchemaError, match="there is no role nobody"):
            migrate(attack.database.connect(None), owner="nobody")

    @pytest.mark.parametrize("installed", [False, True])
    def test_a_stranger(self, attack: Attack, other: str, installed: bool) -> None:
        if installed:
            attack.install()
        with pytest.raises(SchemaError, match=f"{other} may not act for role {attack.attacker}"):
            migrate(attack.database.connect(other), owner=attack.attacker)


COMMANDS = (
    ["migrate"],
    ["migrate", "--to=base", "--yes"],
    ["status"],
    ["create-index", "idx", "--source=t", "--embedding=e"],
    ["alter-index", "idx", "-oprobes=3"],
    ["drop-index", "idx", "--yes"],
    ["build", "idx"],
    ["update", "idx"],
    ["build", "idx", "--again"],
    ["evaluate", "idx"],
    ["check", "idx"],
    ["check", "idx", "--repair"],
    ["alter-index", "idx", "--refresh"],
    ["grant", "idx", "--reader=app_reader"],
    ["search", "idx", "--vector=[1,2]"],
    ["status", "--check"],
)


@pytest.mark.one_version
class TestEveryOtherCommand:
    """A superuser does not work in a schema that belongs to another role."""

    @pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
    def test_says_as_whom_to_connect(self, database: Database, command: list[str]) -> None:
        result = CliRunner().invoke(app, [*command, "--dsn", database.dsn(None)])
        assert result.exit_code != 0
        [line] = result.output.strip().splitlines()
        assert "belongs to role app_owner" in line
        assert "Connect as app_owner" in line

    def test_python(self, database: Database) -> None:
        with pytest.raises(SchemaError, match="Connect as app_owner"):
            update(database.dsn(None), "idx")

    def test_sql(self, superuser: Connection) -> None:
        superuser.execute("CREATE TABLE t (id int PRIMARY KEY, e extensions.vector(3))")
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
            superuser.execute("SELECT foh.create_index('idx', 't', 'e')")
        assert "Connect as app_owner" in str(caught.value.diag.message_hint)
