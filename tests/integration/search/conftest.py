from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.search.shop import Shop, vectors
from tests.support.postgres import Database


@pytest.fixture
def new_shop(database: Database) -> Callable[..., Shop]:
    """Make a table with an index: `new_shop(key_type="uuid")`."""

    def make(**arguments) -> Shop:
        return Shop(database.connect("app_owner"), **arguments)

    return make


@pytest.fixture
def shop(new_shop: Callable[..., Shop]) -> Shop:
    """200 rows in 8 lists, an empty stream."""
    shop = new_shop()
    shop.fill(range(200), vectors(200))
    shop.install(centers=8)
    return shop
