"""A small data set whose labels can be learned."""

from __future__ import annotations

import numpy as np
import pytest

from foh_pg.arrays.labels import LabelSets
from lab.dataset import Dataset
from lab.protocol import Protocol, Split


def clusters(rows=600, dimensions=16, labels=5, multi_label=False, noise=4.0):
    rng = np.random.default_rng(5)
    label = rng.integers(labels, size=rows)
    second = rng.integers(labels, size=rows) if multi_label else label
    centers = 2 * rng.standard_normal((labels, dimensions))
    X = centers[label] + centers[second] + noise * rng.standard_normal((rows, dimensions))
    sets = LabelSets.of([{int(a), int(b)} for a, b in zip(label, second, strict=True)])
    return Dataset("clusters", X.astype(np.float32), sets, tuple(f"label {i}" for i in range(labels)))


@pytest.fixture
def single():
    return clusters()


@pytest.fixture
def multi():
    return clusters(multi_label=True)


@pytest.fixture
def split(single):
    return Split.draw(single, Protocol(queries=40), seed=0)
