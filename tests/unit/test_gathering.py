"""What is kept of rows that pass by page by page is what comparing all of them at once gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from foh_pg import clustering
from foh_pg.arrays.codes import hamming, unpack
from foh_pg.geometry import Geometry
from foh_pg.model.model import Model
from foh_pg.postgres.binary_copy import Ragged
from foh_pg.quality.advise.measuring import Form
from foh_pg.tables.source import Rows
from foh_pg.updater import gathering
from foh_pg.updater.gathering import Gathered, K
from foh_pg.updater.placing import held_of

ROWS, QUERIES, BITS, LABELS = 700, 30, 32, 6
PROBES = 8


class Made:
    """Random rows with up to three labels each; some of them ask."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(ROWS, 24)).astype(np.float32)
        names = [[f"l{n}" for n in set(rng.integers(LABELS, size=rng.integers(4)).tolist())] for _ in X]
        self.rows = Rows(np.arange(ROWS), X, Ragged.of(names, object))
        self.index = Form(BITS, 192)
        model = Model.random(X.mean(axis=0), BITS, 0)
        geometry = Geometry.fit(X, 192, "cosine", 0)
        self.model = replace(
            model,
            geometry=geometry,
            signed=True,
            labels=tuple(f"l{n}" for n in range(LABELS)),
            label_projection=np.zeros((LABELS, BITS), dtype=np.float32),
        )
        self.levels = self.model.levels(rng, X, 60)
        self.queries = self.rows.take(np.arange(0, ROWS, ROWS // QUERIES)[:QUERIES])

    def gathered(self, sizes: npt.NDArray[np.int64], most: int = 2000) -> Gathered:
        """All rows, the queries among them, in pages that end at these places."""
        found = Gathered(self.index, self.model, self.queries, self.levels, True, PROBES)
        found._by_bits.most = most
        for page in np.split(np.arange(ROWS), sizes):
            rows = self.rows.take(page)
            held = held_of(self.model, rows)
            homes = clustering.find_homes(held["geometry"], self.levels, self.model.layout)
            found.offer(rows, held, homes)
        return found


@pytest.fixture(scope="module")
def made() -> Made:
    return Made()


@pytest.mark.parametrize("most", [40, 2000])
@pytest.mark.parametrize("pages", [[1, 2, 3, 350], [100] * 3, list(range(10, ROWS, 10))])
def test_pages_give_what_the_whole_gives(
    made: Made, pages: list[int], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pages of any size, with an empty one among them, and compared few at a time."""
    whole = made.gathered(np.zeros(0, dtype=np.int64), most)
    monkeypatch.setattr(gathering, "OFFERED", 37)
    parts = made.gathered(np.array(pages), most)
    assert parts.rows == whole.rows == ROWS - QUERIES
    for name in ("nearest", "alike", "by_bits"):
        one, other = getattr(parts, name), getattr(whole, name)
        assert one.shape == other.shape
        for field in one.dtype.names:
            there = one["row"] >= 0
            assert one[field][there] == pytest.approx(other[field][there]), (name, field)
    assert np.array_equal(parts.named, whole.named)
    assert [row.tolist() for row in parts.labels.each()] == [row.tolist() for row in whole.labels.each()]


def test_what_is_kept_is_what_comparing_all_rows_gives(made: Made) -> None:
    found = made.gathered(np.array([250, 500]), most=40)
    others = made.rows.take(~np.isin(made.rows.keys, made.queries.keys))
    unit = [
        one.vectors / np.linalg.norm(one.vectors, axis=1, keepdims=True) for one in (made.queries, others)
    ]
    distances = 1 - unit[0].astype(np.float64) @ unit[1].T.astype(np.float64)
    held = held_of(made.model, others)
    homes = clustering.find_homes(held["geometry"], made.levels, made.model.layout)
    read = clustering.ListsRead(found.looks, made.levels).by(PROBES)
    far = hamming(found.looks[0], held["geometry"])
    sets = [[set(row.tolist()) for row in rows.labels.each()] for rows in (made.queries, others)]
    shared = np.array([[bool(mine & theirs) for theirs in sets[1]] for mine in sets[0]])
    signatures = unpack(held["marks"][:, :8], 64)
    for query in range(QUERIES):
        nearest = np.argsort(distances[query], kind="stable")
        assert found.nearest["row"][query].tolist() == nearest[: gathering.NEAREST].tolist()
        alike = nearest[shared[query, nearest]][:K]
        assert _there(found.alike[query])["row"].tolist() == alike.tolist()
        near = np.flatnonzero(read[query, homes])
        near = near[np.argsort(far[query, near], kind="stable")][:40]
        kept = _there(found.by_bits[query])
        assert kept["row"].tolist() == near.tolist()
        assert kept["far"].tolist() == far[query, near].tolist()
        assert kept["home"].tolist() == homes[near].tolist()
        assert kept["distance"] == pytest.approx(distances[query, near], abs=1e-6)
        assert kept["relevant"].tolist() == shared[query, near].tolist()
        looks = sum(
            hamming(look[query : query + 1], held["geometry"][near])[0].astype(int) for look in found.looks
        )
        apart = hamming(found.looks[1][query : query + 1], found.looks[2][query : query + 1])[0, 0]
        assert kept["bits"].tolist() == (looks - apart).tolist()
        assert np.array_equal(
            unpack(np.ascontiguousarray(kept["labels"])[:, None].view(np.uint8), 64), signatures[near]
        )
    named = [found.labels.row(at).tolist() for at in np.searchsorted(found.named, found.nearest["row"][0])]
    assert named == [others.labels.row(int(row)).tolist() for row in found.nearest["row"][0]]


def test_nothing_is_kept_without_rows_or_queries(made: Made) -> None:
    nobody = Gathered(made.index, made.model, made.queries.take(np.zeros(0, dtype=int)), made.levels, True)
    held = held_of(made.model, made.rows)
    nobody.offer(made.rows, held, np.zeros(ROWS, dtype=np.int64))
    assert nobody.nearest.shape == (0, 0)
    none = Gathered(made.index, made.model, made.queries, made.levels, True)
    assert none.rows == 0
    assert none.by_bits.shape == (QUERIES, 0)


def _there(records: Any) -> Any:
    return records[records["row"] >= 0]
