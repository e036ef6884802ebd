"""Rankings and their scores."""

from __future__ import annotations

import numpy as np
import pytest

from foh_pg.arrays.codes import nearest, pack
from foh_pg.arrays.metrics import mean_average_precision
from lab import relevance
from lab.accuracy.references import references
from lab.classifying import fit
from lab.protocol import Protocol, Split


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_agrees_with_the_metrics_of_the_package(kind, request):
    data = request.getfixturevalue(kind)
    split = Split.draw(data, Protocol(queries=30), seed=0)
    rng = np.random.default_rng(0)
    W = rng.standard_normal((16, 12))
    asked, stored = pack(data.X[split.queries] @ W > 0), pack(data.X[split.base] @ W > 0)
    quality = relevance.measure(relevance.by_codes(asked, stored), split)
    labels = data.sets.take(split.queries), data.sets.take(split.base)
    assert quality.mean_average_precision == pytest.approx(mean_average_precision(asked, stored, *labels))
    relevant = relevance.Relevance.of(data, split.queries, split.base).block(0, len(split.queries))
    found = nearest(asked, stored, 100)[0]
    for k in (1, 10, 100):
        assert quality.precision_at[k] == pytest.approx(np.take_along_axis(relevant, found[:, :k], 1).mean())


def test_a_perfect_ranking_and_the_worst_one(split):
    found = relevance.Relevance.of(split.data, split.queries, split.base)
    relevant = found.block(0, len(split.queries))
    best = relevance.measure([(0, np.where(relevant, 0, 1))], split)
    assert best.mean_average_precision == 1
    assert best.precision_at[10] == 1
    worst = relevance.measure([(0, np.where(relevant, 1, 0))], split)
    assert worst.precision_at[10] == 0
    assert worst.mean_average_precision < relevant.mean()


def test_blocks_do_not_matter(split, monkeypatch):
    X = split.data.X
    whole = relevance.measure(relevance.by_vectors(X[split.queries], X[split.base]), split)
    monkeypatch.setattr(relevance, "BLOCK_QUERIES", 7)
    parts = relevance.measure(relevance.by_vectors(X[split.queries], X[split.base]), split)
    assert whole.mean_average_precision < 0.99
    assert parts.mean_average_precision == pytest.approx(whole.mean_average_precision)
    assert parts.precision_at == pytest.approx(whole.precision_at)


class TestReferences:
    def test_supervision_helps(self, split):
        found = {r.name: r.quality.mean_average_precision for r in references(split)}
        assert list(found) == ["exact cosine", "supervised projection", "classify and filter"]
        assert found["supervised projection"] > found["exact cosine"]
        assert found["classify and filter"] > found["supervised projection"]

    def test_only_the_filter_reads_stored_labels(self, split):
        assert [r.stored_labels for r in references(split)] == [False, False, True]

    def test_classifier_learns_from_the_stream_only(self, single):
        split = Split.draw(single, Protocol(stream=100), seed=0)
        expected = fit(split)
        single.X[split.base[100:]] = 1e3
        assert np.array_equal(fit(split).weights, expected.weights)

    def test_several_labels(self, multi):
        split = Split.draw(multi, Protocol(queries=40), seed=0)
        found = {r.name: r.quality.mean_average_precision for r in references(split)}
        assert found["classify and filter"] > found["exact cosine"]
