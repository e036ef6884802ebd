"""The whole life of an index as managed clouds allow it: no superuser, and a role that can create no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from psycopg import sql

from foh_pg.cli import app
from tests.support.postgres import PASSWORD, Database, Server, install_pgvector

# Everything that a database holds, and what its roles are members of: what an installation may add to.
LEFT_OVER = """
SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp_'
UNION ALL SELECT 'relation ' || oid::regclass FROM pg_class WHERE relnamespace::regnamespace::text !~ '^pg_'
UNION ALL SELECT 'function ' || oid::regprocedure FROM pg_proc
UNION ALL SELECT 'type ' || format_type(oid, NULL) FROM pg_type WHERE typnamespace::regnamespace::text !~ '^pg_'
UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger
UNION ALL SELECT 'policy ' || polname FROM pg_policy
UNION ALL SELECT 'role ' || rolname FROM pg_roles
UNION ALL SELECT format('member %s of %s', member::regrole, roleid::regrole) FROM pg_auth_members
UNION ALL SELECT format('default right %s', defaclacl) FROM pg_default_acl
UNION ALL SELECT format('right on schema %s: %s', nspname, nspacl) FROM pg_namespace WHERE nspname !~ '^pg_'
UNION ALL SELECT format('right on table %s: %s', oid::regclass, relacl) FROM pg_class WHERE relname = 'product'
ORDER BY 1
"""


class Role:
    """One role of a managed database: its connection, and foh-pg on its behalf."""

    def __init__(self, database: Database, name: str) -> None:
        self.dsn = database.dsn(name)
        self.connection = database.connect(name)

    def run(self, *arguments: str) -> str:
        result = CliRunner().invoke(app, [*arguments, f"--dsn={self.dsn}"])
        assert result.exit_code == 0, result.output
        return result.stdout

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def found(self) -> list[int]:
        return [key for (key,) in self.execute("SELECT id FROM foh.products_search('[1, 2, 3, 4]', 10)")]


def everything(database: Database) -> list[str]:
    return [name for (name,) in database.connect(None).execute(LEFT_OVER)]


@pytest.fixture
def cloud(private_server: Server) -> Iterator[Database]:
    """A database as a provider hands it out: pgvector is there, the superuser is not for the customer.

    A server of its own: what an installation leaves is compared for the whole cluster.
    """
    database = private_server.create_database()
    install_pgvector(database.connect(None))
    yield database
    database.disconnect()


def customer(cloud: Database, attributes: str = "") -> Role:
    """The role that the provider gives: it owns the database, and is no superuser."""
    superuser = cloud.connect(None)
    superuser.execute(
        sql.SQL("CREATE ROLE customer LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD {} {}").format(
            sql.Literal(PASSWORD), sql.SQL(attributes)
        )
    )
    superuser.execute(sql.SQL("ALTER DATABASE {} OWNER TO customer").format(sql.Identifier(cloud.name)))
    return Role(cloud, "customer")


def make_table(role: Role) -> None:
    role.execute("CREATE TABLE product (id int PRIMARY KEY, embedding extensions.vector(4), tags text[])")
    write(role, 1, 400)


def write(role: Role, first: int, last: int) -> None:
    role.execute(
        f"""INSERT INTO product SELECT n, ARRAY[n % 17, n % 5, n % 3, 1 + n % 7]::extensions.vector,
                                     ARRAY[CASE WHEN n % 17 > 8 THEN 'high' ELSE 'low' END]
            FROM generate_series({first}, {last}) n"""
    )


def live(owner: Role) -> None:
    """Build, write, update, search, check, repair, rebuild and roll back one index."""
    owner.run(
        "create-index", "products", "--source=product", "--embedding=embedding", "--labels=tags", "--bits=16"
    )
    owner.run("build", "products")
    write(owner, 401, 500)
    owner.execute("DELETE FROM product WHERE id <= 20")
    owner.execute("UPDATE product SET embedding = '[9, 9, 9, 9]' WHERE id = 21")
    assert len(owner.found()) == 10
    [run] = json.loads(owner.run("update", "products", "--json"))
    assert (run["rows"], run["error"]) == (121, None)
    owner.execute("ALTER TABLE product DISABLE TRIGGER USER")
    write(owner, 501, 510)
    owner.execute("ALTER TABLE product ENABLE TRIGGER USER")
    owner.run("check", "products", "--repair")
    owner.run("update", "products")
    assert json.loads(owner.run("check", "products", "--json")) == []
    owner.run("build", "products", "--again")
    owner.run("build", "products", f"--version={run['to_version']}")
    owner.run("evaluate", "products", "--queries=5")
    assert json.loads(owner.run("check", "products", "--json")) == []
    [status] = json.loads(owner.run("status", "--json"))
    assert (status["rows"], status["stream"], status["status"]) == (490, 0, "ready")
    assert len(owner.found()) == 10


def test_a_role_that_can_create_no_role(cloud: Database) -> None:
    role = customer(cloud)
    make_table(role)
    before = everything(cloud)
    role.run("migrate")
    [(owner,)] = role.execute("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'foh'")
    assert owner == "customer"
    live(role)
    assert json.loads(role.run("doctor", "--json"))["findings"] == []
    role.run("drop-index", "products", "--yes")
    role.run("migrate", "--to=base", "--yes")
    assert everything(cloud) == before


def test_an_administrator_installs_for_the_application(cloud: Database) -> None:
    """Since PostgreSQL 16 CREATEROLE counts for roles that one has made, or was given with ADMIN OPTION."""
    admin = customer(cloud, "CREATEROLE")
    for role in ("shop", "app"):
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    # Who makes a role may give itself its rights.
    admin.execute("GRANT shop TO customer WITH INHERIT TRUE, SET TRUE")
    admin.execute("GRANT CREATE ON SCHEMA public TO shop")
    shop = Role(cloud, "shop")
    make_table(shop)
    before = everything(cloud)
    admin.run("migrate", "--owner=shop")
    [(owner,)] = admin.execute("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'foh'")
    assert owner == "shop"
    live(shop)
    shop.run("grant", "products", "--reader=app")
    shop.execute("GRANT SELECT ON product TO app")
    assert Role(cloud, "app").found() == shop.found()
    # A new version of the package: installed by either.
    for role in (shop, admin):
        shop.execute("UPDATE foh.code SET digest = 'of another version'")
        role.run("migrate", "--owner=shop")
        assert Role(cloud, "app").found() == shop.found()
    shop.execute("REVOKE ALL ON product FROM app")
    admin.run("migrate", "--owner=shop", "--to=base", "--yes")
    left = set(everything(cloud)) - set(before)
    # ACLs of the table were written out once a right on it was given and taken back.
    assert {name for name in left if not name.startswith("right on table product")} == set()


@pytest.mark.one_version
def test_uninstall_leaves_nothing(cloud: Database) -> None:
    """`foh-pg migrate --to base` alone: with an index at work, rows in its stream, and roles that were granted it."""
    admin = customer(cloud, "CREATEROLE")
    for role in ("app", "job"):
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    make_table(admin)
    before = everything(cloud)
    admin.run("migrate")
    admin.run("create-index", "products", "--source=product", "--embedding=embedding", "--labels=tags")
    admin.run("grant", "products", "--reader=app")
    admin.run("grant", "--updater=job")
    Role(cloud, "job").run("build", "products")
    write(admin, 401, 410)
    assert everything(cloud) != before
    admin.run("migrate", "--to=base", "--yes")
    assert everything(cloud) == before
    # Whoever writes or drops now meets nothing of ours.
    write(admin, 411, 420)
    admin.execute("DROP TABLE product")


@pytest.mark.one_version
def test_statement_timeouts_of_the_role_do_not_end_a_run(cloud: Database) -> None:
    role = customer(cloud)
    make_table(role)
    role.run("migrate")
    for setting in ("statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout"):
        cloud.connect(None).execute(f"ALTER ROLE customer SET {setting} = '50ms'".encode())
    role.run("create-index", "products", "--source=product", "--embedding=embedding", "--bits=16")
    run = json.loads(role.run("build", "products", "--json"))
    assert (run["rows"], run["error"]) == (400, None)
