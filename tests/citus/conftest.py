"""A database on every node of a Citus cluster that runs already: FOH_TEST_CITUS_DSN names its coordinator.

`tests/citus/cluster.sh` starts such a cluster where Citus is installed. The tests run as ordinary roles, as all
others do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from foh_pg.postgres.connect import connect
from foh_pg.schema.migrations import migrate
from tests.support.postgres import Database, Server, install_pgvector

DSN = os.environ.get("FOH_TEST_CITUS_DSN")

WORKERS = 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if DSN is None:
        skip = pytest.mark.skip(
            reason="FOH_TEST_CITUS_DSN names no coordinator; tests/citus/cluster.sh starts one where Citus is"
        )
        for item in items:
            if "tests/citus/" in item.path.as_posix():
                item.add_marker(skip)


class Cluster(Database):
    """One database on each node; as a Database it is that of the coordinator."""

    def __init__(self, nodes: list[Server]) -> None:
        super().__init__(nodes[0], f"foh_test_{uuid4().hex[:12]}")
        self.nodes = nodes

    def create(self) -> None:
        for node in self.nodes:
            node.create_roles()
            node.create_database(name=self.name)
            with psycopg.connect(self.node_dsn(node, None), autocommit=True) as superuser:
                superuser.execute("CREATE EXTENSION citus")
                install_pgvector(superuser)
                superuser.execute("GRANT CREATE ON SCHEMA public TO app_owner")
        with psycopg.connect(self.dsn(None), autocommit=True) as superuser:
            for number, node in enumerate(self.nodes):
                parts = conninfo_to_dict(node.superuser_dsn)
                add = (
                    "SELECT citus_set_coordinator_host(%s, %s)"
                    if number == 0
                    else "SELECT citus_add_node(%s, %s)"
                )
                superuser.execute(add, [parts["host"], int(parts["port"])])
        with connect(self.dsn(None)) as superuser:
            migrate(superuser, owner="app_owner")

    def node_dsn(self, node: Server, role: str | None = "app_owner") -> str:
        there = Database(node, self.name)
        return there.dsn(role)

    def on_worker(self, number: int, role: str | None = "app_owner") -> psycopg.Connection[Any]:
        """A connection to a worker, closed with the test."""
        connection = psycopg.connect(self.node_dsn(self.nodes[1 + number], role), autocommit=True)
        self._connections.append(connection)
        return connection

    def drop(self) -> None:
        self.disconnect()
        for node in self.nodes:
            # Citus keeps processes and replication slots in a database that has it.
            node.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(self.name)))


@pytest.fixture(scope="session")
def session_cluster() -> Iterator[Cluster]:
    assert DSN is not None
    port = int(conninfo_to_dict(DSN)["port"])
    nodes = [
        Server(make_conninfo(DSN, port=str(port + number)), "template1") for number in range(1 + WORKERS)
    ]
    cluster = Cluster(nodes)
    cluster.create()
    yield cluster
    cluster.drop()
    for node in nodes:
        node.close()


@pytest.fixture
def cluster(session_cluster: Cluster) -> Iterator[Cluster]:
    yield session_cluster
    owner = session_cluster.connect()
    for (name,) in owner.execute("SELECT name FROM foh.index").fetchall():
        owner.execute("SELECT foh.drop_index(%s)", [name])
    for (name,) in owner.execute(
        "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')"
        " AND pg_get_userbyid(c.relowner) = current_user AND NOT c.relispartition"
    ).fetchall():
        owner.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(sql.Identifier(name)))
    session_cluster.disconnect()


@pytest.fixture
def owner(cluster: Cluster) -> psycopg.Connection[Any]:
    """The owner of the application's tables, on the coordinator. Autocommit."""
    return cluster.connect()
