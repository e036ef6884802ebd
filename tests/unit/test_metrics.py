"""Metrics against plain loops, and against the authors' own evaluation."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foh_pg.arrays import metrics
from foh_pg.arrays.codes import pack
from foh_pg.arrays.metrics import evaluate, mean_average_precision, precision_at
from foh_pg.errors import InputError


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_the_authors_figures(kind):
    with np.load(Path(__file__).parents[1] / "data" / "golden_foh.npz") as file:
        labels, base, queries = file[f"{kind}_labels"], file[f"{kind}_Htrain"], file[f"{kind}_Htest"]
        expected = file[f"{kind}_metrics"]
    n = len(base)
    scores = evaluate(queries, base, labels[n:], labels[:n], at=(100,), map_at=(100,), radius=2)
    found = [
        scores.mean_average_precision,
        scores.mean_average_precision_at[100],
        scores.precision_at[100],
        scores.precision_within,
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def plain(queries, base, relevant, at, radius):
    """The definitions, one query at a time."""
    ap, ap_cut, precision, recall, within = [], [], [], [], []
    for q, hits in zip(queries, relevant, strict=True):
        distance = (q != base).sum(axis=1)
        order = np.argsort(distance, kind="stable")
        ranked = hits[order]
        for target, part in ((ap, ranked), (ap_cut, ranked[:at])):
            if part.any():
                target.append(np.mean([part[: i + 1].mean() for i in np.flatnonzero(part)]))
        precision.append(ranked[:at].mean())
        if hits.any():
            recall.append(ranked[:at].sum() / hits.sum())
        near = distance <= radius
        within.append(hits[near].mean() if near.any() else 0)
    return [np.mean(values) if values else np.nan for values in (ap, ap_cut, precision, recall, within)]


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 15), st.booleans(), st.integers(0, 2**32 - 1))
def test_plain_loops_agree(n, at, multi, seed):
    rng = np.random.default_rng(seed)
    base, queries = rng.random((n, 6)) < 0.5, rng.random((7, 6)) < 0.5
    if multi:
        yb, yq = rng.random((n, 70)) < 0.02, rng.random((7, 70)) < 0.02
        relevant = (yq.astype(int) @ yb.T.astype(int)) > 0
    else:
        yb, yq = rng.integers(4, size=n), rng.integers(5, size=7)
        relevant = yq[:, None] == yb[None]
    scores = evaluate(pack(queries), pack(base), yq, yb, at=(at,), map_at=(at,), radius=1)
    found = [
        scores.mean_average_precision,
        scores.mean_average_precision_at[at],
        scores.precision_at[at],
        scores.recall_at[at],
        scores.precision_within,
    ]
    np.testing.assert_allclose(found, plain(queries, base, relevant, at, 1), atol=1e-12)


def test_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(0)
    codes, labels = pack(rng.random((50, 9)) < 0.5), rng.integers(3, size=50)
    whole = evaluate(codes[:20], codes[20:], labels[:20], labels[20:])
    monkeypatch.setattr(metrics, "BLOCK_PAIRS", 1)
    parts = evaluate(codes[:20], codes[20:], labels[:20], labels[20:])
    assert whole.mean_average_precision == pytest.approx(parts.mean_average_precision, abs=1e-15)
    assert np.array_equal(whole.curve_recall, parts.curve_recall)


def test_memory_does_not_grow_with_queries():
    rng = np.random.default_rng(0)
    base, labels = rng.integers(256, size=(40_000, 8), dtype=np.uint8), rng.integers(9, size=40_000)
    peaks = []
    for queries in (105, 315):
        tracemalloc.start()
        evaluate(base[:queries], base, labels[:queries], labels)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # 1 000 queries against 700 000 rows are blocks of the same size.
    assert max(peaks) < 400e6
    assert peaks[1] < 1.1 * peaks[0]


def test_curve_ends_with_everything():
    rng = np.random.default_rng(0)
    codes, labels = pack(rng.random((60, 16)) < 0.5), rng.integers(3, size=60)
    scores = evaluate(codes[:10], codes[10:], labels[:10], labels[10:])
    assert scores.curve_recall[-1] == 1
    assert (np.diff(scores.curve_recall) >= 0).all()
    share = (labels[:10, None] == labels[10:]).mean()
    assert scores.curve_precision[-1] == pytest.approx(share)


def test_ties_keep_the_order_of_the_base():
    same = pack(np.zeros((4, 8)))
    assert mean_average_precision(same[:1], same, ["a"], ["a", "b", "b", "b"]) == 1
    assert mean_average_precision(same[:1], same, ["a"], ["b", "b", "b", "a"]) == 0.25


def test_queries_without_relevant_rows_are_left_out():
    codes = pack(np.eye(2, 8))
    assert mean_average_precision(codes, codes, ["a", "nowhere"], ["a", "a"]) == 1
    assert np.isnan(mean_average_precision(codes, codes, ["x", "y"], ["a", "a"]))


def test_precision_of_any_ranking():
    found = np.array([[0, 1], [2, 0]])
    assert precision_at(found, [{"a"}, {"a", "b"}], [{"a"}, {"c"}, {"b"}], 2) == 0.75
    with pytest.raises(InputError, match="needs 3 rows"):
        precision_at(found, ["a", "b"], ["a", "b", "c"], 3)


def test_bad_input():
    codes = pack(np.eye(3))
    with pytest.raises(InputError, match="have labels for"):
        evaluate(codes, codes, ["a"] * 3, ["a"] * 2)
    with pytest.raises(InputError, match="at least 1"):
        evaluate(codes, codes, ["a"] * 3, ["a"] * 3, at=(0,))
    with pytest.raises(InputError, match="nothing to measure"):
        evaluate(codes[:0], codes, [], ["a"] * 3)
