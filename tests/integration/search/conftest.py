from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.postgres import Database
from tests.support.shop import Shop, vectors


def stock(database: Database) -> None:
    """200 rows in 8 lists, an empty stream."""
    shop = Shop(database.connect("app_owner"))
    shop.fill(range(200), vectors(200))
    shop.install(centers=8)


@pytest.fixture
def database(request: pytest.FixtureRequest, copy_of: Callable[..., Database]) -> Database:
    """Stocked for tests that ask for `shop` and make none of their own."""
    names = request.fixturenames
    if "shop" in names and "new_shop" not in names and not request.node.get_closest_marker("prepared"):
        return copy_of(stock)
    found: Database = request.getfixturevalue("database")  # that of all tests
    return found


@pytest.fixture
def new_shop(database: Database) -> Callable[..., Shop]:
    """Make a table with an index: `new_shop(key_type="uuid")`."""

    def make(**arguments) -> Shop:
        return Shop(database.connect("app_owner"), **arguments)

    return make
