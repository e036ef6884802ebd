"""Search on a streaming replica: it writes nothing, so a hot standby answers as the primary does."""

from __future__ import annotations

import tempfile
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from foh_pg.postgres.embedded import EmbeddedServer
from foh_pg.schema.migrations import migrate
from tests.support.postgres import SETTINGS, Server, install_pgvector
from tests.support.shop import Shop, vectors
from tests.support.waiting import until

QUERY = vectors(1, seed=5)[0]


@pytest.fixture
def primary(private_server: Server) -> psycopg.Connection:
    database = private_server.create_database()
    install_pgvector(database.connect(None))
    database.connect(None).execute("GRANT CREATE ON SCHEMA public TO app_owner")
    migrate(database.connect(None), owner="app_owner")
    return database.connect("app_owner")


def caught_up(primary: psycopg.Connection, standby: psycopg.Connection) -> None:
    position = primary.execute("SELECT pg_current_wal_insert_lsn()").fetchone()[0]
    replayed = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
    until(lambda: standby.execute(replayed, [position]).fetchone() == (True,), "the standby has caught up")


def test_a_standby_answers(primary: psycopg.Connection, private_server: Server) -> None:
    shop = Shop(primary)
    shop.fill(range(300), vectors(300))
    shop.install(centers=8)
    with tempfile.TemporaryDirectory(prefix="foh-test-", ignore_cleanup_errors=True) as directory:
        replica = EmbeddedServer(Path(directory) / "data", private_server.version, SETTINGS)
        replica._prepare_directories()
        replica._run("pg_basebackup", f"--dbname={private_server.superuser_dsn}", "--write-recovery-conf", "--checkpoint=fast")  # fmt: skip
        (replica.directory / ".s.PGSQL.5432.lock").unlink()  # the primary's, copied along
        with replica:
            parts = conninfo_to_dict(primary.info.dsn)
            dsn = make_conninfo(primary.info.dsn, host=conninfo_to_dict(replica.dsn())["host"])
            with psycopg.connect(
                dsn, password=parts.get("password", "foh_test"), autocommit=True
            ) as connection:
                check_standby(shop, shop.seen_by(connection))


def check_standby(shop: Shop, standby: Shop) -> None:
    assert standby.run("SELECT pg_is_in_recovery()").fetchone() == (True,)
    shop.fill([900], [QUERY])
    shop.run("DELETE FROM {source} WHERE {key} = 3")
    for installed in (False, True):
        if installed:
            shop.install(centers=5, seed=2)
        caught_up(shop.connection, standby.connection)
        for arguments in ({}, {"shortlist": 0}, {"filter": "id > 5"}):
            assert standby.search(QUERY, 20, **arguments) == shop.search(QUERY, 20, **arguments)
        assert set(standby.found(QUERY, 1000)) == {*range(300), 900} - {3}
        assert standby.explain(QUERY) == shop.explain(QUERY)
