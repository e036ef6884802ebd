"""Filters that few rows pass: read by the application's own indexes, and right where PostgreSQL is wrong."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest

from tests.integration.search.test_complete import become, with_tenants
from tests.integration.search.test_plans import touched
from tests.support.postgres import Database
from tests.support.shop import DIMENSIONS, Shop, exact_distance, text, vectors

ROWS = 3000
BASE = vectors(ROWS)
QUERY = vectors(1, seed=5)[0]
NEAREST = [int(key) for key in np.argsort(exact_distance(BASE, QUERY), kind="stable")]


def stock(database: Database) -> None:
    shop = Shop(database.connect("app_owner"))
    shop.fill(
        range(ROWS),
        BASE,
        tenant=[number % 300 for number in range(ROWS)],
        price=[float(number % 3) for number in range(ROWS)],
    )
    shop.install(centers=60)
    shop.execute_text("CREATE INDEX ON public.item (tenant)")
    shop.run("VACUUM ANALYZE {source}, {item}")


pytestmark = pytest.mark.prepared(by=stock)


def test_exact_where_few_rows_pass(shop: Shop) -> None:
    expected = [key for key in NEAREST if key % 300 == 7]
    assert len(expected) == 10
    assert shop.found(QUERY, 10, filter="tenant = 7", labels=0) == expected
    assert (
        shop.found(QUERY, 3, filter="tenant = (params ->> 't')::int", params={"t": 7}, labels=0)
        == expected[:3]
    )
    counts = touched(shop, "SELECT * FROM {search}(%(query)s, 5, filter => 'tenant = 7', labels => 0)")
    # Ten rows by the index on tenant, and no list.
    assert counts["item"][0] == 0
    assert counts["items_list"] == (0, 0, 0, 0)


@pytest.mark.parametrize("filter", ["tenant = 7", "price < 2"])
def test_a_changed_table_is_refused(shop: Shop, filter: str) -> None:
    """Few rows pass one of the filters: they would be read, and ranked by the column that has the name now."""
    shop.run(f"ALTER TABLE {{source}} ADD other extensions.vector({DIMENSIONS})")
    shop.run("ALTER TABLE {source} RENAME embedding TO old")
    shop.run("ALTER TABLE {source} RENAME other TO embedding")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has changed since"):
        shop.found(QUERY, 10, filter=filter, labels=0)


@pytest.mark.parametrize("share", [1.0, 0.9, 0.5])
def test_a_filter_that_most_rows_pass_reads_the_whole_shortlist(shop: Shop, share: float) -> None:
    """Also where all rows pass: half of the shortlist would find a seventh fewer of the nearest rows."""
    asked = "SELECT cardinality(keys) FROM {near}(%s, 10, 30, 30, NULL, 0, %s, false, %s::float8)"
    times = int(np.ceil(1 / share))
    assert shop.run(asked, [text(QUERY), times, share]).fetchone() == (30,)


def test_as_many_rows_as_a_number_can_say(shop: Shop) -> None:
    assert set(shop.found(QUERY, 2**31 - 1, filter="tenant = 7", labels=0)) == set(range(7, ROWS, 300))
    assert len(shop.found(QUERY, 2**31 - 1, filter="price < 2", labels=0)) == ROWS * 2 // 3


def test_no_row_passes(shop: Shop) -> None:
    assert shop.found(QUERY, 10, filter="tenant = 7000", labels=0) == []
    assert shop.found(QUERY, 10, filter="tenant = 7", labels=0, max_distance=-1) == []


def test_lists_where_many_rows_pass(shop: Shop) -> None:
    counts = touched(shop, "SELECT * FROM {search}(%(query)s, 10, filter => 'price < 2', labels => 0)")
    assert counts["item"][0] == 0
    assert counts["item"][3] < ROWS / 3
    assert counts["items_list"][3] > 0


@pytest.mark.parametrize(
    "condition",
    [
        # PostgreSQL expects one row in two hundred, and all pass.
        "id % 1 = 0",
        # PostgreSQL expects all rows, and ten pass.
        "coalesce(NOT (tenant = 7) IS TRUE, true) IS NOT TRUE OR tenant + 0 = 7",
    ],
)
def test_where_estimates_lie(shop: Shop, condition: str) -> None:
    passing = {
        row[0] for row in shop.execute_text(f"SELECT id FROM public.item WHERE {condition}").fetchall()
    }
    found = shop.found(QUERY, 10, filter=condition, labels=0)
    assert len(found) == 10
    assert set(found) <= passing
    expected = [key for key in NEAREST if key in passing][:10]
    assert len(set(found) & set(expected)) >= 7


@pytest.mark.prepared(by=None)
def test_rows_hidden_by_a_policy_stay_hidden(new_shop, database: Database) -> None:
    shop, tenant = with_tenants(new_shop, database, 300, ROWS)
    shop.execute_text("CREATE INDEX ON public.item (price)")
    shop.execute_text("UPDATE public.item SET price = tenant % 5")
    shop.run("VACUUM ANALYZE {source}, {item}")
    become(tenant, 7)
    mine = set(range(7, ROWS, 300))
    assert set(tenant.found(QUERY, 10, filter="price = 2", labels=0)) == mine
    assert tenant.found(QUERY, 10, filter="price = 1", labels=0) == []
