"""The rivals compute what their authors' programs did, as exactly as that is meaningful."""

from __future__ import annotations

import numpy as np
import pytest

from foh_pg.arrays.vocabulary import Vocabulary
from lab.rivals import BSODH, HMOH, OSH, AdaptHash, MIHash, SketchHash
from tests.support.golden_arrays import digits, load

AS_GIVEN = {"center": False, "warmup": 0}


def follow(learner, golden, rows_per_step=1):
    """Feed the stream up to each recorded moment; yield it with the largest difference of W."""
    data, order, fed = digits(), golden["order"], 0
    for t, moment in enumerate(golden["trace_at"]):
        part = order[fed : int(moment) * rows_per_step]
        learner.partial_fit(data.train[part], data.labels[part])
        fed += len(part)
        yield int(moment), float(np.abs(learner.weights_ - golden["W_trace"][:, :, t]).max())
    rest = order[fed:]
    learner.partial_fit(data.train[rest], data.labels[rest])


def assert_same_codes(learner, golden):
    data = digits()
    assert np.array_equal(learner.encode(data.train), golden["Htrain"])
    assert np.array_equal(learner.encode(data.queries), golden["Htest"])


@pytest.mark.parametrize(("name", "loss"), [("osh_hinge", "hinge"), ("osh_boost", "boosted")])
def test_osh(name, loss):
    golden = load(name)
    learner = OSH(16, loss=loss, codebook=golden["codebook"], initial_projection=golden["W0"], **AS_GIVEN)
    assert max(difference for _, difference in follow(learner, golden)) < 1e-12
    assert np.abs(learner.weights_ - golden["W"]).max() < 1e-12
    assert_same_codes(learner, golden)
    assert digits().mean_average_precision(learner) == pytest.approx(float(golden["mAP"][0]), abs=1e-8)


def test_adapthash():
    golden = load("adapthash")
    learner = AdaptHash(16, learning_rate=1, initial_projection=golden["W0"], **AS_GIVEN)
    # Columns become equal later on, and then the order of bits is one of rounding.
    for pairs, difference in follow(learner, golden, rows_per_step=2):
        assert difference < (1e-9 if pairs <= 300 else 1e-6)
    assert digits().mean_average_precision(learner) == pytest.approx(float(golden["mAP"][0]), abs=0.02)


class Replay:
    """Numbers drawn once by the authors' run, in place of a generator."""

    def __init__(self, numbers):
        self.numbers = numbers

    def random(self, count):
        drawn, self.numbers = self.numbers[:count], self.numbers[count:]
        return drawn


def test_mihash():
    golden, data = load("mihash"), digits()
    learner = MIHash(16, initial_projection=golden["W0"], **AS_GIVEN).start(64)
    learner.warm_rows_ = None
    learner.rng_ = Replay(golden["U"])
    # The authors number labels beforehand and fill the reservoir from all training rows.
    learner.vocabulary_ = Vocabulary().grow(str(i) for i in range(1, 11))
    learner.recall_.add_labels(10)
    hot = np.eye(10, dtype=np.float32)[data.labels - 1]
    for row, draw in zip(golden["first"], learner.rng_.random(20), strict=True):
        learner.recall_.offer(200, data.train[row], hot[row], np.array([row]), draw)
    # Rounding grows a thousandfold every hundred rows.
    bounds = {1: 1e-14, 2: 1e-14, 10: 1e-13, 100: 1e-10, 200: 1e-6}
    for rows, difference in follow(learner, golden):
        assert difference < bounds.get(rows, 1)
    assert digits().mean_average_precision(learner) == pytest.approx(float(golden["mAP"][0]), abs=0.03)


def test_bsodh():
    golden, data = load("bsodh"), digits()
    learner = BSODH(16, initial_projection=golden["W0"], **AS_GIVEN)
    for stage in range(10):
        part = slice(140 * stage, 140 * (stage + 1))
        learner.partial_fit(data.train[part], data.labels[part])
        if stage:
            assert np.abs(learner.projection_ - golden["W_trace"][:, :, stage - 1]).max() < 1e-12
    assert np.array_equal(learner.reservoir_.codes, np.concatenate([golden["Be"], golden["Bs"]]))
    assert_same_codes(learner, golden)
    assert data.mean_average_precision(learner) == pytest.approx(float(golden["mAP"][0]), abs=1e-8)


def test_hmoh():
    golden, data = load("hmoh"), digits()
    learner = HMOH(16, permute=False, **AS_GIVEN).partial_fit(data.train, data.labels - 1)
    assert np.array_equal(learner.targets_[data.labels - 1], golden["targets"])
    # Their W is in single precision and divided by the number of mistakes.
    directions = golden["W"] / np.linalg.norm(golden["W"], axis=0)
    ours = learner.projection_ / np.linalg.norm(learner.projection_, axis=0)
    assert np.abs(ours - directions).max() < 1e-5
    assert_same_codes(learner, golden)
    assert data.mean_average_precision(learner) == pytest.approx(float(golden["mAP"][0]), abs=1e-8)


def test_sketchhash():
    golden, data = load("sketchhash"), digits()
    learner = SketchHash(16, sketch=64, initial_projection=golden["W0"])
    learner.partial_fit(data.train[golden["order"][:1550]])
    # The rotation is anyone's choice; the projector is not.
    assert np.abs(learner.projection_ @ learner.projection_.T - golden["projector"]).max() < 1e-12
    assert np.abs(learner.mean_ - golden["mean"]).max() < 1e-14
