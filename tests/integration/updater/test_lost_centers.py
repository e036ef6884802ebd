"""Deleting the very rows that are centers."""

from __future__ import annotations

from foh_pg.updater import update
from tests.integration.search.shop import Shop, vectors
from tests.postgres import Database

BASE = vectors(30)


def thirty_rows(database: Database) -> tuple[Shop, list[int], set[int]]:
    """An index, the keys of its centers, and the others."""
    shop = Shop(database.connect("app_owner"))
    shop.fill(range(30), BASE)
    update(shop.connection, "items")
    centers = [row[0] for row in shop.run("SELECT key FROM foh.items_sample")]
    return shop, centers, set(range(30)) - set(centers)


def test_rows_whose_centers_are_all_deleted(database: Database) -> None:
    shop, centers, left = thirty_rows(database)
    assert centers
    assert left
    shop.run("DELETE FROM {source} WHERE {key} = ANY (%s)", [centers])
    update(shop.connection, "items")
    assert shop.violations() == []
    assert set(shop.found(BASE[0], 30, shortlist=0)) == left
    # With new rows the one that was kept goes the way of the others; with no rows at all too.
    shop.fill(range(100, 130), vectors(30, seed=2))
    update(shop.connection, "items")
    assert set(shop.found(BASE[0], 100)) == left | set(range(100, 130))
    shop.run("DELETE FROM {source}")
    update(shop.connection, "items")
    assert shop.violations() == []
    assert shop.search(BASE[0]) == []


def test_rows_whose_centers_are_deleted_among_rows_that_only_passed_through(database: Database) -> None:
    shop, centers, left = thirty_rows(database)
    # More keys change than the lists ever had: that says nothing about how many rows are left in them.
    shop.fill(range(100, 200), vectors(100, seed=2))
    shop.run("DELETE FROM {source} WHERE {key} >= 100 OR {key} = ANY (%s)", [centers])
    update(shop.connection, "items")
    assert shop.violations() == []
    assert set(shop.found(BASE[0], 30, shortlist=0)) == left
