"""Geometry bits: how embeddings are turned, where the thresholds are, and how bits rank."""

from __future__ import annotations

import numpy as np
import pytest

from foh_pg.arrays.codes import hamming, unpack
from foh_pg.arrays.flat import flatten, unflatten, values_of
from foh_pg.errors import InputError
from foh_pg.geometry import Geometry, copies_of, default_bits


def rows(n=300, d=12, seed=0):
    return (np.random.default_rng(seed).standard_normal((n, d)) + 0.3).astype(np.float32)


def turned(geometry, x):
    """The numbers of one row whose thresholds are asked, one addition after the other."""
    signed = [sign * number for sign, number in zip(geometry.signs.tolist(), x.tolist(), strict=True)]
    numbers = signed + [0.0] * ({12: 48, 13: 56, 64: 256}[len(x)] - len(signed))
    half = len(numbers) // 2
    turn = 0
    while True:
        first, second = numbers[:half], numbers[half:]
        second = second[turn:] + second[:turn]
        pairs = list(zip(first, second, strict=True))
        numbers = [a + b for a, b in pairs] + [a - b for a, b in pairs]
        turn = turn // 2 if turn else half // 2
        if turn == 0:
            return np.array(numbers)


@pytest.mark.parametrize("metric", ["cosine", "l2"])
@pytest.mark.parametrize(("d", "bits"), [(12, 8), (12, 24), (12, 144), (13, 112), (64, 512)])
def test_bits_are_the_definition(metric, d, bits):
    X = rows(d=d)
    geometry = Geometry.fit(X, bits, metric, seed=0)
    found = unpack(geometry.encode(X), bits)
    units = X / np.linalg.norm(X, axis=1, keepdims=True) if metric == "cosine" else X
    numbers = np.array([turned(geometry, x)[: bits // geometry.copies] for x in units.astype(np.float64)])
    expected = np.tile(numbers, geometry.copies) > geometry.threshold
    assert (found != expected).mean() < 0.001
    again = Geometry(**unflatten(flatten(values_of(geometry))))
    assert np.array_equal(again.encode(X), geometry.encode(X))
    assert np.array_equal(Geometry.fit(X, bits, metric, seed=0).signs, geometry.signs)


def test_turning_keeps_distances():
    X = rows(d=64)
    geometry = Geometry.fit(X, 512, "l2", seed=0)
    found = np.array([turned(geometry, x) for x in X])
    assert np.allclose(
        np.linalg.norm(found[1:] - found[:-1], axis=1), 2**4 * np.linalg.norm(X[1:] - X[:-1], axis=1)
    )


def test_every_bit_says_something():
    """Thresholds are where the rows are: no bit is the same for nearly all of them."""
    X = np.abs(rows(2000)) + 5
    for bits in (6, 24, 48):
        share = unpack(Geometry.fit(X, bits, "cosine", seed=0).encode(X), bits).mean(axis=0)
        assert 0.02 < share.min() < share.max() < 0.98
    assert len(np.unique(Geometry.plain(12, 24, "cosine").threshold)) == 1


@pytest.mark.parametrize("d", [3, 10, 64, 200])
def test_bits_rank_like_the_distance(d):
    """Most of the ten nearest are among the best thirty by bits, though few dimensions vary much."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((4000, d)) / (1 + np.arange(d))).astype(np.float32)
    geometry = Geometry.fit(X, default_bits(d), "l2", seed=0)
    assert kept_by_bits(geometry, X, 50) > 0.95


def kept_by_bits(geometry, X, queries):
    """The share of the ten nearest rows of the first rows that is among their best thirty by bits."""
    packed = geometry.encode(X)
    best = np.argsort(hamming(packed[:queries], packed), axis=1, kind="stable")[:, :30]
    squares = np.einsum("ij,ij->i", X, X)
    nearest = np.argsort(squares - 2 * X[:queries] @ X.T, axis=1)[:, :10]
    return np.mean([np.isin(a, b).mean() for a, b in zip(nearest, best, strict=True)])


@pytest.mark.parametrize("longer", [1e4, 1e6])
def test_a_few_enormous_rows_do_not_take_the_thresholds(longer):
    """One row in a hundred is far away from all others; these are told apart as if it were not there."""
    X = np.random.default_rng(0).standard_normal((4000, 16)).astype(np.float32)
    X[99::100] *= longer
    assert kept_by_bits(Geometry.fit(X, default_bits(16), "l2", seed=0), X, 50) > 0.95


def test_odd_rows_have_bits():
    """Zeros, and rows of which single precision cannot hold the sums."""
    for metric in ("cosine", "l2"):
        geometry = Geometry.fit(rows(), 24, metric, seed=0)
        with np.errstate(all="raise"):
            long = geometry.encode(np.full((1, 12), 3e38, dtype=np.float32))
        assert np.array_equal(long, geometry.encode(np.full((1, 12), 12**-0.5, dtype=np.float32)))
        assert geometry.encode(np.zeros((1, 12))).shape == (1, 3)
        assert geometry.encode(np.zeros((0, 12))).shape == geometry.query_looks(rows()[:0])[0].shape == (0, 3)


def test_bad_geometry():
    assert [copies_of(bits, 12) for bits in (2, 96, 144)] == [2, 2, 3]
    for bits in (0, 1, 17, 97, 145):
        with pytest.raises(InputError, match=f"{bits} geometry bits"):
            Geometry.fit(rows(), bits, "cosine", seed=0)
    with pytest.raises(InputError, match="shape"):
        Geometry.fit(rows()[:0], 24, "cosine", seed=0)
