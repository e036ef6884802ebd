"""The sample of centers that the paper's pool is measured with."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from foh_pg.errors import InputError
from lab.accuracy.stream_centers import sample_centers


@pytest.mark.parametrize("fixed", [None, 40])
def test_centers_are_a_uniform_sample_of_the_whole_stream(fixed):
    """Chi-square over ten equal parts of the stream, which comes in uneven batches."""
    hits = np.zeros(10)
    sizes = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        where, priorities, seen = np.zeros(0, dtype=np.int64), np.zeros(0), 0
        for batch in (150, 50, 400, 100, 300):
            target = fixed or round((2 * (seen + batch)) ** 0.5)
            change = sample_centers(rng, priorities, batch, seen + batch, target)
            where = np.concatenate([np.delete(where, change.dropped), seen + change.chosen])
            priorities = np.concatenate([np.delete(priorities, change.dropped), change.priorities])
            seen += batch
        hits += np.bincount(where // 100, minlength=10)
        sizes.append(len(where))
    assert stats.chisquare(hits).pvalue > 0.001
    assert np.mean(sizes) == pytest.approx(fixed or 45, rel=0.05)


def test_a_restarted_counter_would_be_noticed():
    """The authors' reservoir restarts its counter every batch; the same test then fails."""
    hits = np.zeros(10)
    for seed in range(150):
        rng = np.random.default_rng(seed)
        where, priorities = np.zeros(0, dtype=np.int64), np.zeros(0)
        for start in range(0, 1000, 100):
            change = sample_centers(rng, priorities, 100, 140, 40)
            where = np.concatenate([np.delete(where, change.dropped), start + change.chosen])[-40:]
            priorities = np.zeros(len(where))
        hits += np.bincount(where // 100, minlength=10)
    assert stats.chisquare(hits).pvalue < 1e-6


def test_there_is_always_a_center():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        change = sample_centers(rng, np.zeros(0), 3, 3, 1)
        assert len(change.chosen) >= 1
        later = sample_centers(rng, change.priorities, 2, 1000, 1)
        assert len(change.priorities) - len(later.dropped) + len(later.chosen) >= 1


def test_a_batch_is_part_of_the_stream():
    with pytest.raises(InputError, match="cannot contain"):
        sample_centers(np.random.default_rng(0), np.zeros(0), 5, 4, 2)
