"""Deleting rows until lists are empty, and growing again."""

from __future__ import annotations

from foh_pg.updater import update
from tests.support.postgres import Database
from tests.support.shop import Shop, vectors

BASE = vectors(30)


def thirty_rows(database: Database) -> tuple[Shop, list[int], set[int]]:
    """An index, the keys in half of its lists, and the others."""
    shop = Shop(database.connect("app_owner"))
    shop.fill(range(30), BASE)
    update(shop.connection, "items")
    emptied = [row[0] for row in shop.run("SELECT key FROM foh.items_item WHERE home % 2 = 0")]
    return shop, emptied, set(range(30)) - set(emptied)


def test_lists_may_become_empty(database: Database) -> None:
    shop, emptied, left = thirty_rows(database)
    assert emptied
    assert left
    ((centers,),) = shop.run("SELECT count(*) FROM foh.items_center")
    shop.run("DELETE FROM {source} WHERE {key} = ANY (%s)", [emptied])
    update(shop.connection, "items")
    assert shop.violations() == []
    assert set(shop.found(BASE[0], 30, shortlist=0)) == left
    # A center without rows stays, for rows that come there later.
    ((stayed, empty),) = shop.run("SELECT count(*), count(*) FILTER (WHERE length = 0) FROM foh.items_center")
    assert stayed == centers
    assert empty > 0
    shop.fill(range(100, 130), vectors(30, seed=2))
    update(shop.connection, "items")
    assert set(shop.found(BASE[0], 100)) == left | set(range(100, 130))
    shop.run("DELETE FROM {source}")
    update(shop.connection, "items")
    assert shop.violations() == []
    assert shop.search(BASE[0]) == []


def test_rows_that_only_passed_through(database: Database) -> None:
    shop, emptied, left = thirty_rows(database)
    # More keys change than the lists ever had: that says nothing about how many rows are left in them.
    shop.fill(range(100, 200), vectors(100, seed=2))
    shop.run("DELETE FROM {source} WHERE {key} >= 100 OR {key} = ANY (%s)", [emptied])
    update(shop.connection, "items")
    assert shop.violations() == []
    assert set(shop.found(BASE[0], 30, shortlist=0)) == left
