"""A real pgbouncer between: applications search through pooled transactions, foh-pg takes the direct way."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from foh_pg import Index
from foh_pg.cli import app
from foh_pg.errors import SessionError
from foh_pg.postgres.embedded import server_user
from foh_pg.updater import update
from tests.support.postgres import PASSWORD, Database

pytestmark = pytest.mark.one_version

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
ROLES = ("app_owner", "app_reader")
PATIENCE = 30.0

SETTINGS = """
[databases]
shop = {server} pool_mode=transaction
calls = {server} pool_mode=session
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
logfile = {directory}/log
auth_type = plain
auth_file = {directory}/users
default_pool_size = 2
"""


@pytest.fixture
def pooler(database: Database) -> Iterator[dict[str, str]]:
    """What a connection string needs to go through pgbouncer; shop pools transactions, calls sessions."""
    if PROGRAM is None:
        pytest.skip("pgbouncer is not installed (Debian: apt-get install pgbouncer)")
    parts = conninfo_to_dict(database.dsn())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    server = f"host={parts['host']} port={parts.get('port', 5432)} dbname={parts['dbname']}"
    # Not below pytest's own directory, which is closed to the user that pgbouncer runs as.
    with tempfile.TemporaryDirectory(prefix="foh-test-") as name:
        directory = Path(name)
        (directory / "pgbouncer.ini").write_text(
            SETTINGS.format(server=server, port=port, directory=directory)
        )
        (directory / "users").write_text("".join(f'"{role}" "{PASSWORD}"\n' for role in ROLES))
        process = subprocess.Popen([PROGRAM, "-q", str(directory / "pgbouncer.ini")], **identity(directory))
        try:
            wait_for(port, process, directory / "log")
            yield {"host": "127.0.0.1", "port": port, "password": PASSWORD}
        finally:
            process.terminate()
            process.wait(PATIENCE)


def identity(directory: Path) -> dict[str, Any]:
    """Who pgbouncer runs as: it refuses root, and only the server's own user may enter its socket's directory."""
    if os.geteuid() != 0:
        return {}
    user, group = server_user()
    for path in (directory, *directory.iterdir()):
        os.chown(path, user, group)
    return {"user": user, "group": group, "extra_groups": []}


def wait_for(port: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", int(port))).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"pgbouncer does not listen: {log.read_text() if log.exists() else 'no log'}")


@pytest.fixture
def shop(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    connection.execute(
        "CREATE TABLE product (id int PRIMARY KEY, embedding extensions.vector(3), price int, tenant int)"
    )
    # At most exact_rows rows would be answered by the table itself.
    connection.execute(
        """SELECT foh.create_index('products', source => 'product', embedding => 'embedding', bits => 16,
                                   options => '{"exact_rows": 0}')"""
    )
    connection.execute(
        "INSERT INTO product SELECT n, ARRAY[n % 17, n % 5, 1]::extensions.vector, n, n % 2 FROM generate_series(1, 300) n"
    )
    return connection


def through(pooler: dict[str, str], name: str = "shop", role: str = "app_owner") -> psycopg.Connection[Any]:
    # Before 1.21 pgbouncer does not carry prepared statements from one server process to another.
    return psycopg.connect(
        make_conninfo(dbname=name, user=role, **pooler), autocommit=True, prepare_threshold=None
    )


def test_applications_search_through_pooled_transactions(
    shop: psycopg.Connection[Any], pooler: dict[str, str], database: Database
) -> None:
    update(database.dsn(), "products")
    direct = Index.open(shop, "products")
    with through(pooler) as first, through(pooler) as second:
        # More transactions than server processes, in turns: each may end in another one.
        both = [Index.open(first, "products"), Index.open(second, "products")]
        for number in range(12):
            query = [number, 1, 1]
            pooled = both[number % 2]
            assert pooled.search(query, k=5) == direct.search(query, k=5)
            assert pooled.search(query, k=5, filter="price < 100") == direct.search(
                query, k=5, filter="price < 100"
            )
        assert both[0].search_many([[1, 2, 1], [3, 4, 1]], k=3) == direct.search_many(
            [[1, 2, 1], [3, 4, 1]], k=3
        )
        # What is written through the proxy is captured, and found by the next transaction of another client.
        first.execute("INSERT INTO product VALUES (1000, '[-5, -4, -1]'::extensions.vector, 1, 1)")
        assert both[1].search([-5, -4, -1], k=1)[0].key == 1000


def test_policies_hold_with_settings_of_the_transaction(
    shop: psycopg.Connection[Any], pooler: dict[str, str]
) -> None:
    shop.execute("ALTER TABLE product ENABLE ROW LEVEL SECURITY")
    shop.execute("CREATE POLICY own ON product USING (tenant = current_setting('app.tenant')::int)")
    shop.execute("GRANT SELECT ON product TO app_reader")
    shop.execute("SELECT foh.grant('products', reader => 'app_reader')")
    with through(pooler, role="app_reader") as client:
        for tenant in (0, 1, 0):
            with client.transaction():
                client.execute(sql.SQL("SET LOCAL app.tenant = {}").format(sql.Literal(str(tenant))))
                found = client.execute("SELECT id FROM foh.products_search('[1, 2, 1]', 10)").fetchall()
            assert len(found) == 10
            assert {key % 2 for (key,) in found} == {tenant}


def test_foh_pg_refuses_pooled_transactions_and_leaves_no_setting(
    shop: psycopg.Connection[Any], pooler: dict[str, str], database: Database
) -> None:
    dsn = make_conninfo(dbname="shop", user="app_owner", **pooler)
    with through(pooler) as client:
        path = client.execute("SHOW search_path").fetchone()
        for command in ("update products", "search products --vector=[1,2,1]", "status", "doctor"):
            result = CliRunner().invoke(app, [*command.split(), f"--dsn={dsn}"])
            assert result.exit_code == 1
            assert "a proxy that pools transactions is between" in result.stderr
        with pytest.raises(SessionError, match="pools transactions"):
            update(client, "products")
        for _ in range(4):
            assert client.execute("SHOW search_path").fetchone() == path
    assert update(database.dsn(), "products").rows == 300


def test_a_pool_of_sessions_will_do(shop: psycopg.Connection[Any], pooler: dict[str, str]) -> None:
    dsn = make_conninfo(dbname="calls", user="app_owner", **pooler)
    assert update(dsn, "products").rows == 300
    # The pool resets a session before it is given to somebody else.
    with through(pooler, "calls") as client:
        assert client.execute("SHOW search_path").fetchone() != ("pg_catalog, pg_temp",)
