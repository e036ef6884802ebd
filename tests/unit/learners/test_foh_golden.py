"""FOH against what the authors' own program computed (tests/data/README.md), as exact as it can be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from foh_pg.arrays.codes import unpack
from foh_pg.learners import FOH

BATCH = 140
TRAIN = 1597


@pytest.fixture(scope="module")
def golden():
    with np.load(Path(__file__).parents[2] / "data" / "golden_foh.npz") as file:
        arrays = dict(file)
    centered = arrays["pixels"] - arrays["pixels"].astype(np.float64).mean(axis=0)
    arrays["X"] = centered / np.linalg.norm(centered, axis=1, keepdims=True)
    return arrays


def learner(golden, kind, **options):
    return FOH(
        bits=16,
        preset="paper",
        center=False,
        initial_projection=golden["W0"],
        initial_label_projection=golden[f"{kind}_P0"],
        **options,
    )


def stages(golden, kind, model, stop=10 * BATCH):
    """Feed the stream as the authors did, yielding after every stage that learned."""
    X, Y = golden["X"], golden[f"{kind}_labels"]
    for start in range(0, stop, BATCH):
        model.partial_fit(X[start : start + BATCH], Y[start : start + BATCH])
        if start:
            yield start // BATCH - 1


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_hash_functions_of_every_stage(golden, kind):
    model = learner(golden, kind)
    for t in stages(golden, kind, model):
        expected = golden[f"{kind}_W"][:, :, t]
        np.testing.assert_allclose(
            model.stage_projection_, expected, rtol=0, atol=1e-9 * np.abs(expected).max()
        )
    assert t == 8


def test_label_projection_of_every_stage(golden):
    model = learner(golden, "single")
    for t in stages(golden, "single", model):
        # The authors hold S in single precision, and with it P.
        np.testing.assert_allclose(model.label_projection_, golden["single_P"][:, :, t], atol=1e-6)


def test_codes_of_the_last_stage(golden):
    model = learner(golden, "single")
    list(stages(golden, "single", model))
    assert np.array_equal(model.reservoir_.codes[: 9 * BATCH], golden["single_Be"])
    assert np.array_equal(model.reservoir_.codes[9 * BATCH :], golden["single_Bs"])


def test_served_codes(golden):
    model = learner(golden, "single")
    list(stages(golden, "single", model))
    assert np.array_equal(model.encode(golden["X"][:TRAIN]), golden["single_Htrain"])
    assert np.array_equal(model.encode(golden["X"][TRAIN:]), golden["single_Htest"])


def test_served_projection_is_the_mean_of_all(golden):
    model = learner(golden, "single")
    list(stages(golden, "single", model))
    mean = (golden["W0"] + golden["single_W"].sum(axis=2)) / 10
    np.testing.assert_allclose(model.projection_, mean, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_every_form_of_labels_gives_the_same(golden, kind):
    X, Y = golden["X"], golden[f"{kind}_labels"]
    as_sets = [{int(y)} for y in Y] if kind == "single" else [set(np.flatnonzero(row).tolist()) for row in Y]
    plain, named = learner(golden, kind), learner(golden, kind)
    for start in range(0, 3 * BATCH, BATCH):
        rows = slice(start, start + BATCH)
        plain.partial_fit(X[rows], Y[rows])
        named.partial_fit(X[rows], as_sets[rows])
    assert np.array_equal(plain.stage_projection_, named.stage_projection_)


def test_constants_are_the_authors_unless_given(golden):
    by_hand = learner(
        golden,
        "single",
        similarity="equal",
        lam=0.6,
        sigma=0.8,
        eta_s=1.6,
        eta_d=0.2,
        theta=1.2,
        mu=0.5,
        tau=0.6,
    )
    list(stages(golden, "single", by_hand, 4 * BATCH))
    by_default = learner(golden, "single")
    list(stages(golden, "single", by_default, 4 * BATCH))
    assert np.array_equal(by_hand.stage_projection_, by_default.stage_projection_)


@pytest.mark.parametrize("changed", [{"eta_d": 0.3}, {"mu": 5.0}, {"lam": 0.61}, {"sigma": 0.7}])
def test_the_comparison_can_fail(golden, changed):
    model = learner(golden, "single", **changed)
    last = list(stages(golden, "single", model, 3 * BATCH))[-1]
    difference = np.abs(model.stage_projection_ - golden["single_W"][:, :, last]).max()
    assert difference > 1e-6


def test_reached_precision_on_the_golden_set(golden):
    """The default preset is no worse than the authors' on the authors' own task."""
    X, Y = golden["X"], golden["single_labels"]
    model = FOH(bits=16, center=False)
    for start in range(0, 10 * BATCH, BATCH):
        model.partial_fit(X[start : start + BATCH], Y[start : start + BATCH])
    base = unpack(model.encode(X[:TRAIN]), 16).astype(np.int16)
    queries = unpack(model.encode(X[TRAIN:]), 16).astype(np.int16)
    nearest = np.argsort((queries[:, None] != base[None]).sum(axis=2), axis=1, kind="stable")[:, :100]
    precision = (Y[:TRAIN][nearest] == Y[TRAIN:, None]).mean()
    assert precision > golden["single_metrics"][2]
