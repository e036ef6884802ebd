"""Pools: what is lost by not ranking everything."""

from __future__ import annotations

import numpy as np
import pytest

from foh_pg.arrays.codes import hamming, pack
from foh_pg.learners import FOH
from lab import relevance
from lab.accuracy import pooling
from lab.protocol import Protocol, Split


@pytest.fixture
def learner(split):
    learner = FOH(16, warmup=0)
    for rows, labels in split.batches():
        learner.partial_fit(rows, labels)
    return learner


def test_lists_of_all_rows_give_the_full_ranking(learner, split, monkeypatch):
    monkeypatch.setattr(pooling, "sizes", lambda rows: (10, rows))
    X = split.data.X
    full = relevance.measure(
        relevance.by_codes(learner.encode(X[split.queries]), learner.encode(X[split.base])), split
    )
    pooled = pooling.paper_pool(learner, split)
    assert pooled.map_of_candidates == pytest.approx(full.mean_average_precision)
    assert pooled.precision_at[10] == pytest.approx(full.precision_at[10])
    assert pooled.candidates == len(split.base)


def test_short_lists_leave_rows_in_no_list_and_homes_do_not(learner, split, monkeypatch):
    monkeypatch.setattr(pooling, "sizes", lambda rows: (20, 20))
    assert pooling.paper_pool(learner, split).reachable < 1
    ours = pooling.homes_pool(learner, split)
    assert ours.reachable == 1
    assert ours.candidates < len(split.base)
    assert ours.precision_at[10] > 0.7


class TestStreamPool:
    def codes(self, rows):
        return pack(np.random.default_rng(0).random((rows, 24)) < 0.5)

    def test_lists_hold_the_nearest_rows(self):
        codes = self.codes(300)
        grown = pooling.StreamPool(every=1, centers=20, length=15, seed=0)
        for start in range(0, 300, 60):
            grown.update(np.arange(start, start + 60), codes[: start + 60])
        distances = hamming(codes[grown.centers], codes)
        for center, members in enumerate(grown.lists):
            # Members came batch by batch, with codes that stayed: nothing nearer was ever lost, except to
            # centers chosen later, which see what the other lists hold.
            nearest = np.sort(distances[center])[:15]
            assert distances[center, members].mean() <= nearest.mean() + 1.5
            assert grown.centers[center] in members

    def test_centers_stay_between_renewals(self):
        codes = self.codes(300)
        grown = pooling.StreamPool(every=3, centers=20, length=15, seed=0)
        history = []
        for start in range(0, 300, 60):
            grown.update(np.arange(start, start + 60), codes[: start + 60])
            history.append(grown.centers.tolist())
        assert history[0] == history[1] == history[2]
        assert history[2] != history[3] == history[4]
        assert max(history[3]) >= 60

    def test_updating_measures_each_frequency(self, split):
        found = pooling.updating(FOH(16, warmup=0), split, (1, 2))
        assert set(found) == {1, 2}
        assert all(0.5 < pooled.map_of_candidates <= 1 for pooled in found.values())


def test_sizes_follow_the_paper_and_shrink_with_the_data():
    assert pooling.sizes(59_000) == (500, 500)
    assert pooling.sizes(1600) == (160, 160)
    assert pooling.sizes(3) == (1, 1)


def test_describe_is_plain(learner, split):
    described = pooling.homes_pool(learner, Split.draw(split.data, Protocol(queries=10), 1)).describe()
    assert set(described) == {"map_of_candidates", "precision_at", "candidates", "reachable"}
