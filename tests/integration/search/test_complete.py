"""Row-level security, deletions and everything else that hides rows: k rows come back whenever k rows match."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest
from psycopg import sql

from tests.support.postgres import Database
from tests.support.shop import Shop, exact_distance, text, vectors

QUERY = vectors(1, seed=5)[0]
READ = """
SELECT foh.grant('items', reader => 'app_reader');
GRANT SELECT ON public.item TO app_reader;
"""
POLICY = """
ALTER TABLE public.item ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON public.item TO app_reader USING (tenant = current_setting('shop.tenant')::int);
"""


def become(shop: Shop, tenant: int) -> None:
    shop.run("SELECT set_config('shop.tenant', %s, false)", [str(tenant)])


def with_tenants(new_shop, database: Database, tenants: int, rows: int, **options) -> tuple[Shop, Shop]:
    shop = new_shop(options=options)
    shop.fill(range(rows), vectors(rows), tenant=[number % tenants for number in range(rows)])
    shop.install(centers=16)
    shop.run(READ)
    shop.run(POLICY)
    return shop, shop.seen_by(database.connect("app_reader"))


def test_two_tenants_in_every_form_of_search(new_shop, database: Database) -> None:
    shop, tenant = with_tenants(new_shop, database, 2, 400)
    shop.fill([1000, 1001], [QUERY, QUERY], tenant=[0, 1])  # one each in the stream
    forms = {
        "search": "SELECT {key} FROM {search}(%(query)s, %(k)s)",
        "hamming": "SELECT {key} FROM {search}(%(query)s, %(k)s, shortlist => 0)",
        "filter": "SELECT {key} FROM {search}(%(query)s, %(k)s, filter => 'true')",
        "candidates": "SELECT {key} FROM {candidates}(%(query)s, 1000) WHERE %(k)s > 0",
    }
    for state in ("ready", "building"):
        shop.run("UPDATE foh.index SET status = %s", [state])
        for number in (0, 1):
            become(tenant, number)
            mine = {*range(number, 400, 2), 1000 + number}
            for name, form in forms.items():
                for k in (5, 202, 1000):
                    rows = tenant.run(form, {"query": text(QUERY), "k": k}).fetchall()
                    keys = [row[0] for row in rows]
                    assert set(keys) <= mine, (state, name)
                    assert len(keys) == len(set(keys))
                    assert len(keys) == (len(mine) if name == "candidates" else min(k, len(mine))), (
                        state,
                        name,
                    )
    assert tenant.found(QUERY, 1) == [1001]


def test_a_hundred_tenants(new_shop, database: Database) -> None:
    shop, tenant = with_tenants(new_shop, database, 100, 3000, probes=2)
    base = vectors(3000)
    for number in (0, 57, 99):
        become(tenant, number)
        mine = list(range(number, 3000, 100))
        nearest = [mine[at] for at in np.argsort(exact_distance(base[mine], QUERY))]
        assert tenant.found(QUERY, 30) == nearest  # 30 of 3 000 are in most lists: the exact answer
        assert len(tenant.found(QUERY, 10)) == 10
        assert set(tenant.found(QUERY, 10, shortlist=0)) <= set(mine)
        assert len(tenant.found(QUERY, 10, shortlist=0, filter="id > 1500")) == 10
    become(tenant, 100)
    assert tenant.found(QUERY, 10) == []


def test_a_policy_that_leaks_learns_nothing(new_shop, database: Database) -> None:
    shop, tenant = with_tenants(new_shop, database, 2, 100)
    become(tenant, 0)
    seen: list[str] = []
    tenant.connection.add_notice_handler(lambda notice: seen.append(notice.message_primary))
    tenant.run(
        """CREATE FUNCTION pg_temp.tell(id int) RETURNS boolean LANGUAGE plpgsql COST 0.0001
           AS $$ BEGIN RAISE NOTICE '%', id; RETURN true; END $$"""
    )
    assert len(tenant.found(QUERY, 50, filter="pg_temp.tell(id)")) == 50
    assert len(tenant.found(QUERY, 60, filter="pg_temp.tell(id)")) == 50
    assert seen
    assert {int(key) % 2 for key in seen} == {0}


def test_columns_that_the_caller_may_not_read(new_shop, database: Database) -> None:
    shop = new_shop()
    shop.fill(range(50), vectors(50))
    shop.install()
    shop.run(READ)
    shop.run("REVOKE SELECT ON public.item FROM app_reader")
    reader = shop.seen_by(database.connect("app_reader"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="table item"):
        reader.search(QUERY)
    shop.run("GRANT SELECT (id, embedding) ON public.item TO app_reader")
    assert len(reader.found(QUERY)) == 10
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="table item"):
        reader.search(QUERY, filter="price > 1")


@pytest.mark.parametrize("shortlist", [0, 100])
def test_deleted_rows(shop: Shop, shortlist: int) -> None:
    # The nearest hundred go: of the first probes nearly nothing is left.
    gone = shop.found(QUERY, 100, probes=100, shortlist=1000)
    shop.run("DELETE FROM {source} WHERE {key} = ANY (%s)", [gone])
    left = set(range(200)) - set(gone)
    assert len(shop.found(QUERY, 100, probes=1, shortlist=shortlist)) == 100
    assert set(shop.found(QUERY, 1000, shortlist=shortlist)) == left
    # Without the tombstones (a replica that lags, a trigger that was disabled): the source has the last word.
    shop.run("DELETE FROM {stream}")
    assert set(shop.found(QUERY, 100, probes=1, shortlist=shortlist)) == left
    shop.run("DELETE FROM {source}")
    assert shop.found(QUERY, 5, shortlist=shortlist) == []


def test_more_than_there_are(shop: Shop) -> None:
    assert set(shop.found(QUERY, 2_000_000_000)) == set(range(200))
    assert set(shop.found(QUERY, 200, probes=2_000_000_000, shortlist=2_000_000_000)) == set(range(200))
    assert set(shop.found(QUERY, 201, probes=2_000_000_000, shortlist=0)) == set(range(200))


def test_no_row_twice(new_shop) -> None:
    shop = new_shop()
    base = vectors(200)
    shop.fill(range(200), base)
    shop.install(centers=8)
    # Again in the stream, some several times and with another vector.
    for seed in (3, 4):
        for key, vector in zip(range(0, 200, 3), vectors(67, seed=seed), strict=True):
            shop.run("UPDATE {source} SET embedding = %s WHERE {key} = %s", [text(vector), key])
    for shortlist in (0, 1000):
        for probes in (1, 100):
            keys = shop.found(QUERY, 200, probes=probes, shortlist=shortlist)
            assert sorted(keys) == list(range(200))
            some = shop.found(QUERY, 50, probes=probes, shortlist=shortlist)
            assert len(some) == len(set(some)) == 50
    candidates = [row[0] for row in shop.run("SELECT {key} FROM {candidates}(%s, 100)", [text(QUERY)])]
    assert sorted(candidates) == list(range(200))


def test_partitions_and_other_schemas(database: Database) -> None:
    connection = database.connect("app_owner")
    connection.execute(
        "CREATE TABLE parted (id int PRIMARY KEY, embedding extensions.vector(8)) PARTITION BY RANGE (id)"
    )
    for start in (0, 100):
        connection.execute(
            sql.SQL("CREATE TABLE {} PARTITION OF parted FOR VALUES FROM ({}) TO ({})").format(
                sql.Identifier(f"part{start}"), sql.Literal(start), sql.Literal(start + 100)
            )
        )
    connection.execute(
        """SELECT foh.create_index('parted', 'parted', 'embedding', options => '{"exact_rows": 0}')"""
    )
    base = vectors(200)
    connection.cursor().executemany(
        "INSERT INTO parted VALUES (%s, %s)", [(key, text(row)) for key, row in enumerate(base)]
    )
    rows = connection.execute("SELECT id FROM foh.parted_search(%s, 200)", [text(QUERY)]).fetchall()
    assert {row[0] for row in rows} == set(range(200))
    connection.execute("DROP TABLE part100")
    rows = connection.execute("SELECT id FROM foh.parted_search(%s, 200)", [text(QUERY)]).fetchall()
    assert {row[0] for row in rows} == set(range(100))
