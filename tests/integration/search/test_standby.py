"""Search on a streaming replica: it writes nothing, so a hot standby answers as the primary does."""

from __future__ import annotations

import psycopg

from tests.support.postgres import Database, Server, following
from tests.support.shop import Shop, vectors
from tests.support.waiting import until

QUERY = vectors(1, seed=5)[0]


def caught_up(primary: psycopg.Connection, standby: psycopg.Connection) -> None:
    position = primary.execute("SELECT pg_current_wal_insert_lsn()").fetchone()[0]
    replayed = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
    until(lambda: standby.execute(replayed, [position]).fetchone() == (True,), "the standby has caught up")


def test_a_standby_answers(private_server: Server) -> None:
    served = Server(private_server.superuser_dsn, "served")
    served.create_template()
    served.close()
    shop = Shop(Database(private_server, "served").connect("app_owner"))
    shop.fill(range(300), vectors(300))
    shop.install(centers=8)
    with following(private_server) as replica:
        standby = Database(replica, "served")
        check_standby(shop, shop.seen_by(standby.connect("app_owner")))
        standby.disconnect()
    shop.connection.close()


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
