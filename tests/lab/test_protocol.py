"""Queries, base and stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foh_pg.arrays.labels import LabelSets
from foh_pg.errors import InputError
from foh_pg.learners import FOH
from lab.accuracy.experiments import by_label
from lab.protocol import Protocol, Split


def test_queries_are_never_rows_of_the_base(single):
    split = Split.draw(single, Protocol(queries=50, stream=200), seed=3)
    assert len(split.queries) == 50
    assert not np.isin(split.queries, split.base).any()
    assert len(split.base) == 550
    assert np.array_equal(split.stream, split.base[:200])


def test_a_seed_gives_one_split(single):
    first, again, other = (Split.draw(single, Protocol(), seed) for seed in (1, 1, 2))
    assert np.array_equal(first.base, again.base)
    assert not np.array_equal(first.base, other.base)


def test_rows_without_labels_are_no_queries(single):
    few = LabelSets.of([list(single.sets.row(i)) if i % 10 == 0 else [] for i in range(600)])
    split = Split.draw(replace(single, sets=few), Protocol(), seed=0)
    assert (split.queries % 10 == 0).all()
    assert (len(split.queries), len(split.base)) == (6, 594)
    learner = FOH(8, warmup=0)
    for rows, labels in split.batches():
        learner.partial_fit(rows, labels)
    # Batches with and without unlabelled rows call labels by the same names.
    assert set(learner.label_names_) == set(single.label_names)
    assert learner.rows_skipped_ == np.count_nonzero(split.stream % 10)


def test_batches_make_up_the_stream(single):
    split = Split.draw(single, Protocol(stream=205, batch=50), seed=0)
    batches = list(split.batches())
    assert [len(rows) for rows, _ in batches] == [21] * 9 + [16]
    assert np.array_equal(np.concatenate([rows for rows, _ in batches]), single.X[split.stream])


def test_labels_in_order(single, multi):
    ordered = by_label(Split.draw(single, Protocol(), seed=0))
    labels = single.labels(ordered.stream)
    assert np.count_nonzero(labels[1:] != labels[:-1]) == 4
    assert sorted(ordered.stream) == sorted(Split.draw(single, Protocol(), seed=0).stream)
    assert len(by_label(Split.draw(multi, Protocol(), seed=0)).stream) == 540


def test_hidden_labels(single):
    split = Split.draw(single, Protocol(), seed=0)
    known = split.hide_labels(0.5)
    hidden = known.data.sets.counts == 0
    assert 250 < np.count_nonzero(hidden) < 350
    assert np.array_equal(known.base, split.base)
    shown = np.flatnonzero(~hidden)
    assert known.data.sets.take(shown) == single.sets.take(shown)


def test_at_most_so_many_rows(single):
    split = Split.draw(single, Protocol(rows=100), seed=0)
    assert len(split.queries) + len(split.base) == 100
    with pytest.raises(InputError, match="too few rows"):
        Split.draw(single, Protocol(rows=2), seed=0)
