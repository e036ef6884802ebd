"""mAP against plain loops, and against the authors' own evaluation."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foh_pg.arrays import metrics
from foh_pg.arrays.codes import pack
from foh_pg.arrays.metrics import judge, mean_average_precision, mean_of, standard_error
from tests.support.golden_arrays import label_sets


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_the_authors_figures(kind):
    with np.load(Path(__file__).parents[1] / "data" / "golden_foh.npz") as file:
        labels, base, queries = file[f"{kind}_labels"], file[f"{kind}_Htrain"], file[f"{kind}_Htest"]
        expected = file[f"{kind}_metrics"][0]
    n = len(base)
    assert mean_average_precision(queries, base, *label_sets(labels[n:], labels[:n])) == pytest.approx(
        expected, abs=1e-8
    )


def plain(queries, base, relevant):
    """The definition, one query at a time."""
    found = []
    for q, hits in zip(queries, relevant, strict=True):
        ranked = hits[np.argsort((q != base).sum(axis=1), kind="stable")]
        if ranked.any():
            found.append(np.mean([ranked[: i + 1].mean() for i in np.flatnonzero(ranked)]))
    return np.mean(found) if found else np.nan


@settings(max_examples=60)
@given(st.integers(1, 40), st.booleans(), st.integers(0, 2**32 - 1))
def test_plain_loops_agree(n, multi, seed):
    rng = np.random.default_rng(seed)
    base, queries = rng.random((n, 6)) < 0.5, rng.random((7, 6)) < 0.5
    if multi:
        yb, yq = rng.random((n, 70)) < 0.02, rng.random((7, 70)) < 0.02
        relevant = (yq.astype(int) @ yb.T.astype(int)) > 0
    else:
        yb, yq = rng.integers(4, size=n), rng.integers(5, size=7)
        relevant = yq[:, None] == yb[None]
    found = mean_average_precision(pack(queries), pack(base), *label_sets(yq, yb))
    np.testing.assert_allclose(found, plain(queries, base, relevant), atol=1e-12)


def test_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(0)
    codes, labels = pack(rng.random((50, 9)) < 0.5), rng.integers(3, size=50)
    whole = mean_average_precision(codes[:20], codes[20:], *label_sets(labels[:20], labels[20:]))
    monkeypatch.setattr(metrics, "BLOCK_PAIRS", 1)
    parts = mean_average_precision(codes[:20], codes[20:], *label_sets(labels[:20], labels[20:]))
    assert whole == pytest.approx(parts, abs=1e-15)


def test_memory_does_not_grow_with_queries():
    rng = np.random.default_rng(0)
    base, labels = rng.integers(256, size=(40_000, 8), dtype=np.uint8), rng.integers(9, size=40_000)
    peaks = []
    for queries in (105, 315):
        tracemalloc.start()
        mean_average_precision(base[:queries], base, *label_sets(labels[:queries], labels))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # 1 000 queries against 700 000 rows are blocks of the same size.
    assert max(peaks) < 400e6
    assert peaks[1] < 1.1 * peaks[0]


def test_ties_keep_the_order_of_the_base():
    same = pack(np.zeros((4, 8)))
    assert mean_average_precision(same[:1], same, *label_sets(["a"], ["a", "b", "b", "b"])) == 1
    assert mean_average_precision(same[:1], same, *label_sets(["a"], ["b", "b", "b", "a"])) == 0.25


def test_queries_without_relevant_rows_are_left_out():
    codes = pack(np.eye(2, 8))
    assert mean_average_precision(codes, codes, *label_sets(["a", "nowhere"], ["a", "a"])) == 1
    assert np.isnan(mean_average_precision(codes, codes, *label_sets(["x", "y"], ["a", "a"])))


def test_both_asks_for_the_nearest_of_the_right_kind():
    """Random rows of the right label have precision, the nearest of any label recall: neither has both."""
    nearest, alike = ["a", "b", "x", "y"], ["a", "b", "c", "d"]
    assert judge(["c", "d", "e", "f"], 4, 4, nearest, alike) == (1.0, 0.0, 0.5)
    assert judge(nearest, 2, 4, nearest, alike) == (0.5, 1.0, 0.5)
    assert judge(alike, 4, 4, nearest, alike).both == 1.0


def test_few_rows_of_a_kind_can_all_be_found():
    assert judge(["a", "x", "y"], 1, 3, ["x", "y", "z"], ["a"]).both == 1.0
    assert np.isnan(judge(["x", "y", "z"], 0, 3, ["x", "y", "z"], []).both)
    assert mean_of([1.0, float("nan")]) == 1.0
    assert np.isnan(mean_of([]))
    assert np.isnan(standard_error([1.0]))
