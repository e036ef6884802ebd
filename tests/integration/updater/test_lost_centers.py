"""Deleting the very rows that are centers."""

from __future__ import annotations

from foh_pg.updater import update
from tests.integration.search.shop import Shop, vectors
from tests.postgres import Database


def test_rows_whose_centers_are_all_deleted(database: Database) -> None:
    shop = Shop(database.connect("app_owner"))
    base = vectors(30)
    shop.fill(range(30), base)
    update(shop.connection, "items")
    centers = [row[0] for row in shop.run("SELECT key FROM foh.items_sample")]
    left = set(range(30)) - set(centers)
    assert centers
    assert left
    shop.run("DELETE FROM {source} WHERE {key} = ANY (%s)", [centers])
    update(shop.connection, "items")
    assert shop.violations() == []
    assert set(shop.found(base[0], 30, shortlist=0)) == left
    # With new rows the one that was kept goes the way of the others; with no rows at all too.
    shop.fill(range(100, 130), vectors(30, seed=2))
    update(shop.connection, "items")
    assert set(shop.found(base[0], 100)) == left | set(range(100, 130))
    shop.run("DELETE FROM {source}")
    update(shop.connection, "items")
    assert shop.violations() == []
    assert shop.search(base[0]) == []
