"""The second look in SQL against the same in Python, by which an updater chooses the weights."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from foh_pg.tables.ranking import Ranking
from foh_pg.updater.weighing import LOOKED, Looked
from tests.integration.search.shop import BITS, GEOMETRY, Shop, text, vectors

ROWS, SIGNATURE = 200, 64
CODE, VOTES = 1.6, 0.4

# All rows are in one list, with the marks that a test gives them.
MARK = "UPDATE {list} SET marks = (SELECT array_agg(m::bit(96) ORDER BY n) FROM unnest(%s::text[]) WITH ORDINALITY AS x (m, n))"
LISTED = "SELECT ids, geometry::text[] FROM {list}"
NEAR = "SELECT keys, distances, leans FROM {near}(%s, %s, 1, 0, %s, 1, false)"


def packed(rows: list[str]) -> np.ndarray[Any, Any]:
    return np.packbits(np.array([[bit == "1" for bit in row] for row in rows]), axis=1)


@pytest.fixture
def listed(new_shop) -> Shop:
    shop = new_shop(labels="label", options={"weight_code": CODE, "weight_votes": VOTES})
    shop.fill(range(ROWS), vectors(ROWS))
    shop.install(centers=1)
    return shop


@pytest.mark.parametrize("dial", [1, 50])
@pytest.mark.parametrize(
    ("share", "labels"),
    [(1, 1), (1, 5), (0.5, 1), (0.5, 20), (0.04, 3), (0.01, 64), (0, 1)],
    ids=["all, one each", "all, several", "half", "half, many", "few", "next to none, all labels", "none"],
)
def test_leans_are_those_of_python(listed: Shop, share: float, labels: int, dial: float) -> None:
    """However many rows have labels, and however many each of them has."""
    rng = np.random.default_rng(int(1000 * share) + labels)
    ids, geometry = listed.run(LISTED).fetchone() or ()
    order = np.argsort(ids)
    rows_geometry = packed([geometry[at] for at in order])
    for query in vectors(8, seed=3):
        signatures = np.zeros((ROWS, SIGNATURE), dtype=bool)
        for row in np.flatnonzero(rng.random(ROWS) < share):
            # Some labels are common: several voters have them.
            signatures[row, (rng.integers(SIGNATURE, size=labels) * rng.random() ** 2).astype(int)] = True
        codes = rng.random((ROWS, BITS)) < 0.5
        marks = np.concatenate([signatures, codes], axis=1)
        listed.run(MARK, [["".join("01"[int(bit)] for bit in marks[key]) for key in ids]])
        bits = listed.code(query)
        keys, distances, leans = (
            listed.run(NEAR, [text(query), LOOKED // 2, dial]).fetchone() or ()
        )  # half of those looked at are returned
        trial: Any = SimpleNamespace(
            query_geometry=packed([bits[:GEOMETRY]]),
            geometry=rows_geometry,
            signatures=signatures,
            query_codes=packed([bits[GEOMETRY:]]),
            codes=np.packbits(codes, axis=1),
            bits=GEOMETRY,
            index=SimpleNamespace(bits=BITS),
            distances=np.zeros((1, ROWS)),
            relevant=np.zeros((1, ROWS), dtype=bool),
        )
        # In the order in which the first look returns them: rows at the same distance have no order.
        first = listed.run(NEAR, [text(query), LOOKED, 0]).fetchone()
        assert first is not None
        assert len(first[0]) == LOOKED
        looked = Looked.of(trial, np.array([first[0]]))
        lean = looked.lean(Ranking(dial * CODE, dial * VOTES))[0]
        expected = dict(zip(first[0], lean, strict=True))
        assert len(keys) == LOOKED // 2
        assert leans == pytest.approx([expected[key] for key in keys], abs=1e-9)
        scores = looked.estimates[0] + lean
        assert np.sort(scores)[: len(keys)] == pytest.approx(
            2 * np.array(distances) / GEOMETRY + leans, abs=1e-9
        )
