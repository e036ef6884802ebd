"""Geometry bits and marks, and how a model keeps what makes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foh_pg.arrays.codes import unpack
from foh_pg.errors import InputError
from foh_pg.hashing import Geometry
from foh_pg.postgres.binary_copy import Ragged
from foh_pg.tables.model import Model
from foh_pg.tables.ranking import Ranking


def rows(n=300, d=12, seed=0):
    return (np.random.default_rng(seed).standard_normal((n, d)) + 0.3).astype(np.float32)


def by_definition(geometry, x, metric):
    """One row, one bit after the other, as sql/index/write/place.sql does it."""
    u = x / np.linalg.norm(x) if metric == "cosine" else x
    d, g = len(x), geometry.bits
    if g >= d:
        return np.concatenate([u - geometry.threshold[i : i + d] for i in range(0, g, d)]) > 0
    w = (u - geometry.threshold) * geometry.signs
    fold = -(-d // g)
    return np.pad(w, (0, fold * g - d)).reshape(fold, g).sum(axis=0) > 0


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
@pytest.mark.parametrize("bits", [4, 5, 11, 12, 36])
def test_bits_are_the_definition(metric, bits):
    X = rows()
    geometry = Geometry.fit(X, bits, metric, seed=0)
    found = unpack(geometry.encode(X), bits)
    expected = np.array([by_definition(geometry, x, metric) for x in X.astype(np.float64)])
    assert (found != expected).mean() < 0.001
    assert (geometry.copies, geometry.fold) == (max(1, bits // 12), -(-12 // bits))
    again = Geometry.from_arrays(geometry.to_arrays())
    assert np.array_equal(again.encode(X), geometry.encode(X))
    assert np.array_equal(Geometry.fit(X, bits, metric, seed=0).signs, geometry.signs)


def test_every_bit_says_something():
    """Thresholds are where the rows are: no bit is the same for nearly all of them."""
    X = np.abs(rows(2000)) + 5
    for bits in (6, 12, 48):
        share = unpack(Geometry.fit(X, bits, "cosine", seed=0).encode(X), bits).mean(axis=0)
        assert 0.05 < share.min() < share.max() < 0.95
    plain = Geometry.plain(12, 12, "cosine")
    assert unpack(plain.encode(X), 12).all()


def test_near_rows_have_near_bits():
    X = rows(200, d=64)
    near = X + 0.1 * rows(200, d=64, seed=1)
    geometry = Geometry.fit(X, 64, "cosine", seed=0)
    same, near = unpack(geometry.encode(X), 64), unpack(geometry.encode(near), 64)
    assert (same != near).mean() < 0.15 < (same != np.roll(same, 1, axis=0)).mean()


def test_a_row_of_zeros_has_bits():
    geometry = Geometry.fit(rows(), 12, "cosine", seed=0)
    assert geometry.encode(np.zeros((1, 12))).shape == (1, 2)


def test_bad_geometry():
    with pytest.raises(InputError, match="multiple"):
        Geometry.fit(rows(), 18, "cosine", seed=0)
    with pytest.raises(InputError, match="at least 1"):
        Geometry.fit(rows(), 0, "cosine", seed=0)
    with pytest.raises(InputError, match="shape"):
        Geometry.fit(rows()[:0], 12, "cosine", seed=0)


def labelled(n=600, seed=0):
    """Rows of three groups, each with a label; every tenth has none, some have one more."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    X = (2 * np.eye(3, 12)[group] + 0.5 * rng.standard_normal((n, 12))).astype(np.float32)
    names = [
        [] if i % 10 == 0 else [f"group {g}", *(["odd"] if i % 7 == 0 else [])] for i, g in enumerate(group)
    ]
    return X, Ragged.of([np.array(each, dtype=object) for each in names], dtype=object), group


def model(X):
    made = Model.random(X.mean(axis=0), 16, seed=0)
    labels = ("group 0", "group 1", "group 2", *(f"other {i}" for i in range(61)), "group 64")
    projection = np.zeros((len(labels), 16), dtype=np.float32)
    return replace(made, labels=labels, label_projection=projection, signed=True)


def test_marks_are_signature_and_code():
    X, labels, group = labelled()
    made = model(X)
    marks = made.marks(X, labels)
    assert marks.shape == (600, 8 + 2)
    assert np.array_equal(made.codes_of(marks), made.encode(X, labels))
    signed = unpack(marks[:, :8], 64)
    assert not signed[::10].any()
    assert (signed[1::10].argmax(axis=1) == group[1::10]).all()
    assert (signed.sum(axis=1) <= 1).all()  # "odd" is not in the dictionary
    many = made.signatures(Ragged.of([["group 64", "group 1"], ["group 0"]], dtype=object))
    assert np.flatnonzero(unpack(many, 64)[0]).tolist() == [0, 1]
    assert np.flatnonzero(unpack(many, 64)[1]).tolist() == [0]
    plain = replace(made, signed=False)
    assert np.array_equal(plain.marks(X, labels), plain.encode(X, labels))


def test_a_model_is_saved_with_all_of_it():
    X, labels, _ = labelled()
    made = replace(
        model(X),
        geometry=Geometry.fit(X, 24, "cosine", seed=0),
        ranking=Ranking(code=0, votes=1.5, probes=12),
    )
    again = Model.from_arrays(made.to_arrays(), 1.0, True)
    assert again.ranking == made.ranking
    assert np.array_equal(again.geometry_bits(X), made.geometry.encode(X))
    assert np.array_equal(again.marks(X, labels), made.marks(X, labels))
