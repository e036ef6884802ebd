"""The PostgreSQL servers that a test session runs on, and the databases in them.

One server for each version and session; whoever of the xdist workers asks first starts it. FOH_TEST_DSN names
one that already runs (a superuser's connection string); else containers, where a Docker daemon answers; else
the embedded servers.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from foh_pg.postgres.connect import connect
from foh_pg.postgres.embedded import EmbeddedServer
from foh_pg.schema.migrations import migrate

VERSIONS = (18, 16)
PASSWORD = "foh_test"
ROLES = {"installer": "CREATEROLE", "app_owner": "", "app_writer": "", "app_reader": ""}

# What a crash would lose is a test database. Durable settings would make each of them slow. Statistics change when a
# test says so and at no other moment: plans, and with them what a search reads, would depend on the time otherwise.
SETTINGS = {
    "autovacuum_naptime": "1d",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "200",
    "max_prepared_transactions": "10",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
}


@cache
def docker_answers() -> bool:
    try:
        import docker

        return bool(docker.from_env(timeout=2).ping())
    except Exception:
        return False


class Database:
    """One database of one test, and the ways into it."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name
        self._connections: list[psycopg.Connection[Any]] = []

    def dsn(self, role: str | None = "app_owner") -> str:
        """The connection string of a role; of the superuser where `role` is None."""
        if role is None:
            return make_conninfo(self.server.superuser_dsn, dbname=self.name)
        return make_conninfo(self.server.superuser_dsn, dbname=self.name, user=role, password=PASSWORD)

    def connect(
        self, role: str | None = "app_owner", *, autocommit: bool = True, **parameters: Any
    ) -> psycopg.Connection[Any]:
        """A connection that is closed with the test, if not before."""
        connection = psycopg.connect(self.dsn(role), autocommit=autocommit, **parameters)
        self._connections.append(connection)
        return connection

    def environment(self, role: str = "app_owner") -> dict[str, str]:
        """The environment of a process that is to find this database the way libpq does."""
        names = {
            "host": "PGHOST",
            "port": "PGPORT",
            "user": "PGUSER",
            "dbname": "PGDATABASE",
            "password": "PGPASSWORD",
        }
        parts = conninfo_to_dict(self.dsn(role))
        return {**os.environ, **{names[part]: str(parts[part]) for part in names if part in parts}}

    def disconnect(self) -> None:
        for connection in self._connections:
            connection.close()
        self._connections.clear()

    def drop(self) -> None:
        self.disconnect()
        self.server.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(self.name))
        )


class Server:
    """A running server; its superuser makes the roles and databases."""

    def __init__(self, superuser_dsn: str, template: str, binaries: Path | None = None) -> None:
        self.superuser_dsn = superuser_dsn
        self.template = template
        self.bin = binaries

    @cached_property
    def _superuser(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.superuser_dsn, autocommit=True)

    def execute(self, statement: sql.Composable) -> psycopg.Cursor[Any]:
        return self._superuser.execute(statement)

    @property
    def version(self) -> int:
        return self._superuser.info.server_version // 10000

    def create_roles(self) -> None:
        present = {name for (name,) in self.execute(sql.SQL("SELECT rolname FROM pg_roles"))}
        for role, attributes in ROLES.items():
            if role not in present:
                self.execute(
                    sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} {}").format(
                        sql.Identifier(role), sql.Literal(PASSWORD), sql.SQL(attributes)
                    )
                )

    def create_database(self, *, template: str = "template1", name: str | None = None) -> Database:
        database = Database(self, name or f"foh_test_{uuid4().hex[:12]}")
        # As files, which are in memory: through the write-ahead log a copy takes twice the time, and to drop it too.
        self.execute(
            sql.SQL("CREATE DATABASE {} OWNER installer TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(database.name), sql.Identifier(template)
            )
        )
        return database

    def create_template(self) -> None:
        """A database as an application has it: pgvector apart, our schema installed for the owner of the tables."""
        database = self.create_database(name=self.template)
        with psycopg.connect(database.dsn(None), autocommit=True) as superuser:
            install_pgvector(superuser)
            superuser.execute("GRANT CREATE ON SCHEMA public TO app_owner")
        with connect(database.dsn(None)) as superuser:
            migrate(superuser, owner="app_owner")

    def close(self) -> None:
        self._superuser.close()


@contextmanager
def own_server(version: int, settings: Mapping[str, str] = SETTINGS) -> Iterator[EmbeddedServer]:
    """A server of a test's own. Not below pytest's directory: the path of a Unix socket is short."""
    with (
        tempfile.TemporaryDirectory(prefix="foh-test-", ignore_cleanup_errors=True) as directory,
        EmbeddedServer(Path(directory) / "data", version, settings) as embedded,
    ):
        yield embedded


@contextmanager
def following(primary: Server) -> Iterator[Server]:
    """A hot standby of a server, which tells the primary what its searches still read."""
    with tempfile.TemporaryDirectory(prefix="foh-test-", ignore_cleanup_errors=True) as directory:
        settings = {**SETTINGS, "hot_standby_feedback": "on", "wal_receiver_status_interval": "1"}
        replica = EmbeddedServer(Path(directory) / "data", primary.version, settings)
        replica._prepare_directories()
        replica._run("pg_basebackup", f"--dbname={primary.superuser_dsn}", "--write-recovery-conf", "--checkpoint=fast")  # fmt: skip
        (replica.directory / ".s.PGSQL.5432.lock").unlink()  # the primary's, copied along
        with replica:
            server = Server(replica.dsn(), "template1", replica.bin)
            yield server
            server.close()


class Originals:
    """Databases that are made once and copied for every test that wants one like that."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._made: dict[Callable[[Database], object], Database] = {}

    def get(self, make: Callable[[Database], object], template: str) -> Database:
        """The database as `make` leaves it, and nobody connected to it."""
        if make not in self._made:
            database = self.server.create_database(template=template)
            make(database)
            database.disconnect()
            self._made[make] = database
        return self._made[make]

    def drop(self) -> None:
        for database in self._made.values():
            database.drop()


def install_pgvector(superuser: psycopg.Connection[Any], schema: str = "extensions") -> None:
    name = sql.Identifier(schema)
    superuser.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name))
    superuser.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO PUBLIC").format(name))
    superuser.execute(sql.SQL("CREATE EXTENSION vector SCHEMA {}").format(name))


class Servers:
    """The servers of a session, known to all its processes through a directory of theirs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._known: dict[int, Server] = {}

    def get(self, version: int) -> Server:
        if version not in self._known:
            with self._lock(version):
                self._known[version] = self._attach(version)
        return self._known[version]

    def stop(self) -> None:
        """End what `get` started in any process; the last process of the session calls it."""
        for server in self._known.values():
            server.close()
        for note in self.directory.glob("*.json"):
            started = json.loads(note.read_text())
            if started["kind"] == "embedded":
                EmbeddedServer(started["directory"], started["version"]).stop()
            elif started["kind"] == "container":
                stop_container(started["container"])
            else:
                with psycopg.connect(started["dsn"], autocommit=True) as superuser:
                    statement = sql.SQL("DROP DATABASE IF EXISTS {}").format(
                        sql.Identifier(started["template"])
                    )
                    superuser.execute(statement)
        shutil.rmtree(self.directory, ignore_errors=True)

    @contextmanager
    def _lock(self, version: int) -> Iterator[None]:
        with (self.directory / f"{version}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _attach(self, version: int) -> Server:
        note = self.directory / f"{version}.json"
        if note.exists():
            return as_server(json.loads(note.read_text()))
        started = start(self.directory, version)
        note.write_text(json.dumps(started))
        server = as_server(started)
        server.create_roles()
        server.create_template()
        return server


def as_server(started: dict[str, Any]) -> Server:
    binaries = Path(started["bin"]) if started.get("bin") else None
    return Server(started["dsn"], started["template"], binaries)


def start(directory: Path, version: int) -> dict[str, Any]:
    template = f"foh_template_{uuid4().hex[:12]}"
    given = os.environ.get("FOH_TEST_DSN")
    if given:
        return {"kind": "given", "dsn": given, "template": template}
    if docker_answers():
        return {"kind": "container", "template": template, **start_container(version)}
    server = EmbeddedServer(directory / str(version), version, SETTINGS).start()
    return {
        "kind": "embedded",
        "template": template,
        "dsn": server.dsn(),
        "directory": str(server.directory),
        "version": version,
        "bin": str(server.bin),
    }


def start_container(version: int) -> dict[str, Any]:
    # The reaper would end the container with the worker that started it, under the other workers.
    os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"
    from testcontainers.postgres import PostgresContainer

    options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    container = PostgresContainer(f"pgvector/pgvector:pg{version}", driver=None).with_command(
        f"postgres {options}"
    )
    container.start()
    return {"dsn": container.get_connection_url(), "container": container.get_wrapped_container().id}


def stop_container(identifier: str) -> None:
    import docker

    docker.from_env().containers.get(identifier).remove(force=True, v=True)
