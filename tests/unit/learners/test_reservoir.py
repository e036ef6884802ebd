"""The sample of existing rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from foh_pg.arrays.flat import flatten, unflatten, values_of
from foh_pg.arrays.labels import LabelSets
from foh_pg.errors import InputError
from foh_pg.learners.reservoir import Reservoir, draw_priorities


def offer(reservoir, rng, keys, size, stage=0, forget=1.0):
    n = len(keys)
    codes = np.asarray(keys, dtype=np.int64).astype(np.uint8)[:, None]
    priorities = draw_priorities(rng, n, stage, forget)
    return reservoir.add(np.asarray(keys), LabelSets.single(np.asarray(keys) % 3), codes, priorities, size)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 30), max_size=8), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_size_order_and_belonging(batches, size, seed):
    rng = np.random.default_rng(seed)
    reservoir, seen = Reservoir.none(8), 0
    for batch in batches:
        reservoir = offer(reservoir, rng, np.arange(seen, seen + batch), size)
        seen += batch
        assert len(reservoir) == min(seen, size)
    assert (np.diff(reservoir.keys) > 0).all()
    assert np.array_equal(reservoir.codes[:, 0], reservoir.keys.astype(np.uint8))
    assert reservoir.sets == LabelSets.single(reservoir.keys % 3)


def test_uniform_over_the_stream():
    """Chi-square over twenty parts of a stream in uneven batches, with deletions in between."""
    hits = np.zeros(20)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        reservoir, seen = Reservoir.none(8), 0
        for batch in (10, 300, 7, 283, 400):
            reservoir = offer(reservoir, rng, np.arange(seen, seen + batch), 60)
            seen += batch
            if seen == 317:
                reservoir = reservoir.without(np.arange(0, 317, 2))
        kept = reservoir.keys[(reservoir.keys >= 317) | (reservoir.keys % 2 == 1)]
        assert len(kept) == len(reservoir)
        # The deleted rows count half of the first parts: compare only parts after them, and odd keys before.
        hits += np.bincount(np.where(kept < 317, kept // 2, kept) // 50, minlength=20)
    early, late = hits[:3], hits[7:]
    assert stats.chisquare(late).pvalue > 0.001
    # 150 odd keys below 300 are as likely as any 150 later ones.
    assert early.sum() == pytest.approx(late.mean() * 3, rel=0.1)


def test_newest_first_would_be_noticed():
    hits = np.zeros(10)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        reservoir = Reservoir.none(8)
        for start in range(0, 1000, 100):
            reservoir = offer(
                reservoir, rng, np.arange(start, start + 100), 50, stage=start // 100, forget=0.9
            )
        hits += np.bincount(reservoir.keys // 100, minlength=10)
    assert stats.chisquare(hits).pvalue < 1e-6


def test_recency_follows_forget():
    """With forget = f, a row of the stage before is in the sample f times as often."""
    hits = np.zeros(8)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        reservoir = Reservoir.none(8)
        for stage in range(8):
            reservoir = offer(reservoir, rng, np.arange(stage * 500, stage * 500 + 500), 40, stage, 0.7)
        hits += np.bincount(reservoir.keys // 500, minlength=8)
    np.testing.assert_allclose(hits[:-1] / hits[1:], 0.7, atol=0.12)


def test_priorities_stay_finite_over_many_stages():
    rng = np.random.default_rng(0)
    assert np.isfinite(draw_priorities(rng, 1000, 10**9, 0.5)).all()


def test_none_keeps_everything():
    rng = np.random.default_rng(0)
    reservoir = offer(offer(Reservoir.none(8), rng, np.arange(100), None), rng, np.arange(100, 300), None)
    assert np.array_equal(reservoir.keys, np.arange(300))


def test_keys_of_two_kinds_are_refused():
    rng = np.random.default_rng(0)
    reservoir = offer(Reservoir.none(8), rng, np.arange(3), None)
    with pytest.raises(InputError, match="one kind"):
        reservoir.add(np.array(["a"]), LabelSets.single([0]), np.zeros((1, 1), np.uint8), np.zeros(1), None)


def test_saved_and_restored():
    reservoir = offer(Reservoir.none(8), np.random.default_rng(0), np.arange(100), 30)
    saved = unflatten(flatten(values_of(reservoir)))
    restored = Reservoir(**{**saved, "sets": LabelSets(**saved["sets"])})
    rng, same = np.random.default_rng(5), np.random.default_rng(5)
    a, b = offer(reservoir, rng, np.arange(100, 200), 30), offer(restored, same, np.arange(100, 200), 30)
    first, second = flatten(values_of(a)), flatten(values_of(b))
    assert all(np.array_equal(first[name], second[name]) for name in first.keys() | second.keys())
