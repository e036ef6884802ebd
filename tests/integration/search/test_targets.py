"""A search that is asked for a recall, or for rows within a distance."""

from __future__ import annotations

import numpy as np
import pytest
from psycopg import sql

from tests.support.shop import Shop, exact_distance, text, vectors

QUERY = vectors(1, seed=6)[0]
BASE = vectors(200)
EXACT = exact_distance(BASE, QUERY)
REACH = """UPDATE foh.model SET reach_recall = '{0.3, 0.6, 0.9}', reach_probes = '{1, 3, 6}', reach_shortlist = '{10, 20, 40}',
                                nearest_probes = 3, nearest_shortlist = 20"""


@pytest.mark.one_version
class TestRecall:
    @pytest.mark.parametrize(
        ("recall", "probes", "shortlist"),
        [(0.1, 1, 10), (0.29, 1, 10), (0.5, 3, 20), (0.85, 6, 40), (0.95, 6, 40)],
    )
    def test_takes_the_cheapest_search_that_reached_it(
        self, shop: Shop, recall: float, probes: int, shortlist: int
    ) -> None:
        shop.execute_text(REACH)
        given = {"query": text(QUERY), "recall": recall}
        explained = dict(
            shop.run("SELECT * FROM {explain}(%(query)s, recall => %(recall)s)", given).fetchall()
        )
        assert (explained["centers probed"], explained["shortlist"]) == (str(probes), str(shortlist))
        assert explained["recall"].startswith(f"{recall} wanted; ")
        assert ("more would cost too much" in explained["recall"]) == (recall == 0.95)
        assert shop.search(QUERY, recall=recall) == shop.search(QUERY, probes=probes, shortlist=shortlist)
        # What is said of probes or shortlist counts.
        assert shop.search(QUERY, recall=recall, probes=8) == shop.search(
            QUERY, probes=8, shortlist=shortlist
        )

    def test_is_an_option_of_the_index(self, shop: Shop) -> None:
        shop.execute_text(REACH)
        assert shop.explain(QUERY)["centers probed"] == "3"
        assert shop.explain(QUERY)["recall"].startswith("0.95 wanted; 0.600 of the ten nearest expected")
        shop.execute(sql.SQL("SELECT foh.alter_index('items', {})").format('{"recall": 0.7, "probes": 2}'))
        assert shop.explain(QUERY)["centers probed"] == "6"
        assert shop.search(QUERY) == shop.search(QUERY, probes=6, shortlist=40)

    def test_that_is_not_wanted_is_not_named(self, shop: Shop) -> None:
        shop.execute_text(REACH)
        explained = dict(shop.run("SELECT * FROM {explain}(%s, probes => 3)", [text(QUERY)]).fetchall())
        assert explained["recall"].startswith("0.600 of the ten nearest expected")

    def test_that_nobody_has_measured(self, shop: Shop) -> None:
        assert "not measured yet" in shop.explain(QUERY)["recall"]
        assert len(shop.search(QUERY, recall=0.9)) == 10

    @pytest.mark.parametrize("arguments", [{}, {"filter": "id % 2 = 0"}, {"labels": 1}, {"probes": 1}])
    def test_of_1_is_the_exact_answer(self, shop: Shop, arguments: dict[str, object]) -> None:
        keys = [int(key) for key in np.argsort(EXACT) if key % 2 == 0 or "filter" not in arguments]
        assert shop.found(QUERY, 20, recall=1, **arguments) == keys[:20]
        explained = dict(shop.run("SELECT * FROM {explain}(%s, recall => 1)", [text(QUERY)]).fetchall())
        assert explained["fallback"] == "recall 1 asks for the exact answer"


class TestMaxDistance:
    @pytest.fixture
    def near(self) -> float:
        """A distance within which seven rows are."""
        return float(np.sort(EXACT)[6:8].mean())

    @pytest.mark.one_version
    @pytest.mark.parametrize(
        "arguments",
        [{}, {"shortlist": 0}, {"probes": 1}, {"labels": 0}, {"recall": 1}, {"probes": 100, "shortlist": 1}],
    )
    def test_only_rows_within_it(self, shop: Shop, near: float, arguments: dict[str, object]) -> None:
        rows = shop.search(QUERY, 10, max_distance=near, **arguments)
        assert all(distance <= near for _, distance, _ in rows)
        assert [row[0] for row in rows] == [int(key) for key in np.argsort(EXACT)[:7]]
        assert len(shop.search(QUERY, 5, max_distance=near, **arguments)) == 5
        assert shop.search(QUERY, 10, max_distance=0, **arguments) == []

    def test_with_a_filter(self, shop: Shop, near: float) -> None:
        for key in np.argsort(EXACT)[:7].tolist():
            assert shop.found(QUERY, 10, max_distance=near, filter=f"id = {key}") == [key]
        far = int(np.argmax(EXACT))
        assert shop.found(QUERY, 10, max_distance=near, filter=f"id = {far}") == []

    def test_where_the_table_answers(self, shop: Shop, near: float) -> None:
        shop.run("UPDATE foh.index SET status = 'building'")
        assert shop.found(QUERY, 10, max_distance=near) == [int(key) for key in np.argsort(EXACT)[:7]]
