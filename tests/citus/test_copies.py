"""Tables that are whole on the coordinator: ordinary ones, reference tables, and those in the metadata of Citus."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg import Index, updater
from tests.citus.conftest import Cluster

TABLE = "CREATE TABLE products (id bigint PRIMARY KEY, embedding extensions.vector(8), price int DEFAULT 1)"
CREATE = "SELECT foh.create_index('products', 'products', 'embedding', options => '{\"exact_rows\": 0}')"
KINDS = {
    "ordinary": "SELECT 1",
    "reference": "SELECT create_reference_table('products')",
    "managed": "SELECT citus_add_local_table_to_metadata('products')",
}


def vectors(count: int) -> list[str]:
    drawn = np.random.default_rng(3).standard_normal((count, 8)).round(3)
    return [str(row) for row in drawn.tolist()]


def write(connection: psycopg.Connection[Any], first: int, rows: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO products (id, embedding) VALUES (%s, %s)",
            [(first + number, row) for number, row in enumerate(rows)],
        )


def nearest(connection: psycopg.Connection[Any], vector: str, **arguments: Any) -> Any:
    given = "".join(f", {name} => %({name})s" for name in arguments)
    text = f"SELECT id FROM foh.products_search(%(query)s, 1{given})"
    row = connection.execute(text, {"query": vector, **arguments}).fetchone()
    return row and row[0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_write_is_seen(cluster: Cluster, owner: psycopg.Connection[Any], kind: str) -> None:
    rows = vectors(60)
    owner.execute(TABLE)
    owner.execute(KINDS[kind])
    write(owner, 0, rows[:30])
    owner.execute(CREATE)
    assert owner.execute("SHOW citus.enable_ddl_propagation").fetchone() == ("on",)
    updater.build(cluster.dsn(), "products")
    elsewhere = owner if kind == "ordinary" else cluster.on_worker(0)
    write(owner, 30, rows[30:40])
    write(elsewhere, 40, rows[40:50])
    elsewhere.execute("UPDATE products SET embedding = %s WHERE id = 3", [rows[50]])
    elsewhere.execute("DELETE FROM products WHERE id = 4")
    for updated in (False, True):
        if updated:
            updater.update(cluster.dsn(), "products")
        for number in (0, 31, 44):
            assert nearest(owner, rows[number]) == number
        assert nearest(owner, rows[50]) == 3
        assert nearest(owner, rows[4]) != 4
        assert nearest(owner, rows[0], filter="id > 5") not in (0, None)
    assert owner.execute("SELECT status, stream FROM foh.index_stat").fetchone() == ("ready", 0)
    assert owner.execute("SELECT * FROM foh.check('products')").fetchall() == []
    assert owner.execute("SELECT * FROM foh.repair('products')").fetchone() == (0, 0, 0)
    index = Index.open(owner, "products")
    assert len(index.search_like(31, k=5)) == 5
    owner.execute("SELECT foh.rename_index('products', 'goods')")
    owner.execute("SELECT foh.rename_index('goods', 'products')")
    assert nearest(owner, rows[31]) == 31
    elsewhere.execute("TRUNCATE products")
    assert nearest(owner, rows[0]) is None
    updater.update(cluster.dsn(), "products")
    owner.execute("SELECT foh.drop_index('products')")
    write(elsewhere, 0, rows[:1])


@pytest.mark.parametrize("kind", ["reference", "managed"])
def test_rights_and_policies_of_the_table(
    cluster: Cluster, owner: psycopg.Connection[Any], kind: str
) -> None:
    rows = vectors(20)
    owner.execute(TABLE)
    owner.execute(KINDS[kind])
    write(owner, 0, rows)
    owner.execute("ALTER TABLE products ENABLE ROW LEVEL SECURITY")
    owner.execute("CREATE POLICY odd ON products USING (id % 2 = 1)")
    owner.execute(CREATE)
    updater.build(cluster.dsn(), "products")
    owner.execute("SELECT foh.grant('products', reader => 'app_reader')")
    reader = cluster.connect("app_reader")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        nearest(reader, rows[2])
    owner.execute("GRANT SELECT ON products TO app_reader")
    assert nearest(reader, rows[3]) == 3
    assert nearest(reader, rows[2]) % 2 == 1


def test_a_table_that_comes_into_the_metadata_later(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    """Citus then keeps the rows in a shard, which has the oid that the table had."""
    rows = vectors(30)
    owner.execute(TABLE)
    owner.execute(CREATE)
    write(owner, 0, rows[:10])
    owner.execute(KINDS["managed"])
    write(owner, 10, rows[10:20])
    assert (
        "renamed: run SELECT foh.refresh(" in owner.execute("SELECT status FROM foh.index_stat").fetchone()[0]
    )
    owner.execute("SELECT foh.refresh('products')")
    write(owner, 20, rows[20:])
    updater.update(cluster.dsn(), "products")
    assert [nearest(owner, rows[number]) for number in (1, 11, 21)] == [1, 11, 21]
    assert owner.execute("SELECT * FROM foh.check('products')").fetchall() == []
