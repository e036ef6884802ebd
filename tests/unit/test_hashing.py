"""Marks, and how a model keeps what makes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foh_pg.arrays.codes import unpack
from foh_pg.arrays.flat import flatten, unflatten, values_of
from foh_pg.geometry import Geometry
from foh_pg.model.model import Model
from foh_pg.model.ranking import Ranking
from foh_pg.postgres.binary_copy import Ragged


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
    again = Model.restored(unflatten(flatten(values_of(made))), 1.0, True)
    assert again.ranking == made.ranking
    assert np.array_equal(again.geometry_bits(X), made.geometry.encode(X))
    assert np.array_equal(again.marks(X, labels), made.marks(X, labels))
