"""Filters: what they may say, and what nobody gets past them."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest

from tests.support.postgres import Database
from tests.support.shop import Shop, exact_distance, vectors

QUERY = vectors(1, seed=5)[0]


def stock(database: Database) -> None:
    shop = Shop(database.connect("app_owner"))
    numbers = range(200)
    shop.fill(
        numbers,
        vectors(200),
        tenant=[number % 2 for number in numbers],
        price=[float(number) for number in numbers],
        label=[f"label {number % 10}" for number in numbers],
    )
    shop.install(centers=8)


pytestmark = pytest.mark.prepared(by=stock)


def test_any_condition_over_the_columns(shop: Shop) -> None:
    def keys(condition: str, k: int = 1000, **arguments) -> set[int]:
        return set(shop.found(QUERY, k, filter=condition, **arguments))

    assert keys("tenant = 1") == set(range(1, 200, 2))
    assert keys("s.price < 3 OR s.price > 197.5") == {0, 1, 2, 198, 199}
    assert keys("label IN ('label 3', 'label 4') AND id < 20") == {3, 4, 13, 14}
    assert keys("price BETWEEN 5 AND 7 -- a comment") == {5, 6, 7}
    assert keys("/* this */ price = 5") == {5}
    assert keys("label = $$label 3$$ and id < 5") == {3}
    assert keys("id IN (SELECT x.id FROM public.item x WHERE x.price = 9)") == {9}
    assert keys("label ~ '[)]|3$' and id < 10") == {3}
    assert keys("(ARRAY[true, false])[id + 1]") == {0}
    assert keys("NULL") == set()
    assert keys("false") == set()


def test_values_come_in_through_params(shop: Shop) -> None:
    evil = "x' OR true --"
    assert shop.found(QUERY, 5, filter="label = params ->> 'label'", params={"label": evil}) == []
    rows = shop.found(
        QUERY, 100, filter="label = params ->> 'l' AND price < (params ->> 'p')::float8",
        params={"l": "label 3", "p": 50},
    )  # fmt: skip
    assert set(rows) == {3, 13, 23, 33, 43}
    rows = shop.found(
        QUERY, 100, filter="id = ANY (ARRAY(SELECT jsonb_array_elements_text(params -> 'ids')::int))",
        params={"ids": [4, 5]},
    )  # fmt: skip
    assert set(rows) == {4, 5}
    assert shop.found(QUERY, 5, filter="label = params ->> 'label'") == []


@pytest.mark.parametrize("state", ["ready", "building"])
def test_nothing_breaks_out(shop: Shop, state: str) -> None:
    shop.run("UPDATE foh.index SET status = %s", [state])
    shop.run("CREATE TABLE secret (word text)")
    attempts = [
        "false) or (true",
        "true) or (true) --",
        "false) OR true) OFFSET 0) s WHERE true UNION SELECT 1, 2, 3 --",
        "false) UNION SELECT 1 FROM secret WHERE (true",
        "true] || ARRAY[true",
        "false]::boolean[] FROM public.item s WHERE false) s UNION SELECT FROM secret s WHERE (true",
        "false]::boolean[] FROM public.item s) s --",
        "true /*",
        "true */ or /* true",
        "false --)\n) or (true",
        "'",
        "label = 'x",
        "$$",
        "$a$ true",
        "true; DROP TABLE secret",
        "true); DROP TABLE secret; SELECT (true",
        "E'\\'",
        '"',
        "U&'\\",
        "",
        " ",
        "--",
        "true,",
        "true, true",
        "SELECT true",
        "true ORDER BY 1",
        "true LIMIT 1",
        "true GROUP BY id",
        "id",
        "count(*) > 0",
        "row_number() OVER () > 0",
        "generate_series(1, 2) > 1",
        "$2 IS NULL",
        "nosuch = 1",
        "e.key = 1",
        "near.keys IS NULL",
        "k > 1",
        "FOUND",
    ]
    for attempt in attempts:
        with pytest.raises((psycopg.ProgrammingError, psycopg.NotSupportedError)):
            print(attempt, shop.search(QUERY, 5, filter=attempt))
    assert shop.run("SELECT count(*) FROM secret").fetchone() == (0,)


def test_functions_of_the_caller(shop: Shop, superuser) -> None:
    superuser.execute("CREATE SCHEMA mine AUTHORIZATION app_owner")
    shop.run("CREATE FUNCTION mine.cheap(price float8) RETURNS boolean LANGUAGE sql AS 'SELECT $1 < 4'")
    shop.run(
        """CREATE FUNCTION mine.cents(float8, int) RETURNS boolean LANGUAGE sql AS 'SELECT $1 * 100 = $2'"""
    )
    shop.run("CREATE OPERATOR mine.=%% (LEFTARG = float8, RIGHTARG = int, FUNCTION = mine.cents)", [])
    with pytest.raises(psycopg.errors.UndefinedFunction):
        shop.search(QUERY, filter="cheap(price)")
    shop.run("SET search_path = mine, public")
    assert set(shop.found(QUERY, filter="cheap(price)")) == {0, 1, 2, 3}
    assert set(shop.found(QUERY, filter="price =% 700")) == {7}
    assert shop.found(QUERY, filter="EXISTS (SELECT FROM item x WHERE x.id = s.id AND x.id = 9)") == [9]


@pytest.mark.prepared(by=None)
@pytest.mark.parametrize("shortlist", [0, 100])
def test_k_rows_whenever_k_rows_match(new_shop, shortlist: int) -> None:
    shop = new_shop(options={"shortlist": shortlist, "probes": 1})
    base = vectors(3000)
    shop.fill(range(3000), base, tenant=[number % 100 for number in range(3000)])
    shop.install(centers=30)
    distances = exact_distance(base, QUERY)
    for condition, matching in [
        ("tenant % 2 = 0", [n for n in range(3000) if n % 2 == 0]),
        ("tenant = 7", list(range(7, 3000, 100))),
        ("id IN (5, 2999)", [5, 2999]),
        ("false", []),
    ]:
        rows = shop.search(QUERY, 20, filter=condition)
        keys = [row[0] for row in rows]
        assert len(keys) == len(set(keys)) == min(20, len(matching))
        assert set(keys) <= set(matching)
        assert [row[2] for row in rows] == sorted(row[2] for row in rows)
        # All that match, however many probes it takes; then in the order of the exact distance.
        every = shop.search(QUERY, 1600, filter=condition)
        assert {row[0] for row in every} == set(matching)
        if len(matching) < 1600:
            expected = np.sort(distances[matching])
            assert [row[2] for row in every] == pytest.approx(expected, abs=1e-5)


def test_a_filter_that_keeps_half_is_answered_from_the_lists(shop: Shop) -> None:
    # So many lists that reading four times as many is still less than a third of them.
    shop.install(centers=100)
    rows = shop.search(QUERY, 10, filter="tenant = 1")
    assert len(rows) == 10
    assert all(row[1] is not None for row in rows)


@pytest.mark.prepared(by=None)
def test_a_column_named_params(new_shop) -> None:
    shop = new_shop(key="params")
    shop.fill(range(50), vectors(50))
    shop.install()
    assert shop.found(QUERY, 5, filter="s.params = 7") == [7]
