"""AdaptHash: Adaptive Hashing for Fast Similarity Search (Cakir, Sclaroff; ICCV 2015)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.errors import InputError
from foh_pg.learners.rows import FloatArray
from lab.rivals.pairs import PairLearner
from lab.rivals.rival import ProjectionRival


@dataclass(eq=False, repr=False)
class AdaptHash(PairLearner, ProjectionRival):
    """Gradient steps on pairs of rows, on as many bits as their Hamming distance is wrong by.

    Parameters
    ----------
    alpha : float
        Similar rows may differ in `(1 - alpha) * bits` bits, others must differ in `alpha * bits`.
    beta : float
        Pull towards orthogonal columns, `W <- W - beta W (W'W - I)`.
    learning_rate : float
        Step size. The authors' benchmark has 1; their later comparisons .1 and .2.
    bits, initial_projection, center, warmup, seed :
        As for all learners, see `Learner`.

    Notes
    -----
    The bits that move are those with the largest scores, which is what the authors' program does. With a
    large learning rate columns become equal, and bits are lost.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(4), 10, axis=0)
    >>> AdaptHash(bits=8).partial_fit(X, np.repeat(list("abcd"), 10)).version_
    1
    """

    name = "adapthash"

    _: KW_ONLY
    alpha: float = 0.9
    beta: float = 0.01
    learning_rate: float = 0.1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not 0 <= self.alpha <= 1:
            raise InputError(f"alpha must be between 0 and 1, not {self.alpha}")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate must be positive, not {self.learning_rate}")

    def _restart(self) -> None:
        self.weights_ = self._first_projection()
        self._restart_pairs()
        self._serve(self.weights_)

    def _learn_pairs(self, left: FloatArray, right: FloatArray, similar: npt.NDArray[np.bool_]) -> None:
        pairs = np.stack([left, right], axis=1)
        for pair, alike in zip(pairs, similar.tolist(), strict=True):
            self._step(pair, alike)
        self._serve(self.weights_)

    def _step(self, pair: FloatArray, alike: bool) -> None:
        scores = pair @ self.weights_
        moving = self._bits_to_move(scores, alike)
        if len(moving) == 0:
            return
        W, b = self.weights_, self.bits
        # f(t) = 2 sigmoid(t) - 1 = tanh(t / 2); the derivative of the sigmoid is (1 - f^2) / 4.
        soft = np.tanh(scores / 2)
        error = 2 * (soft[0] @ soft[1] - b * (1 if alike else -1))
        slopes = (1 - soft[:, moving] ** 2) / 4
        pull = W @ (W.T @ W) - W
        gradient = pair.T @ (2 * error * soft[::-1, moving] * slopes)
        W -= self.beta * pull
        W[:, moving] -= self.learning_rate * gradient
        W /= np.sqrt(np.einsum("ij,ij->j", W, W))

    def _bits_to_move(self, scores: FloatArray, alike: bool) -> npt.NDArray[np.int64]:
        differ = (scores[0] > 0) != (scores[1] > 0)
        distance = np.count_nonzero(differ)
        if alike:
            loss, candidates = distance - (1 - self.alpha) * self.bits, differ
        else:
            loss, candidates = self.alpha * self.bits - distance, ~differ
        if loss <= 0:
            return np.zeros(0, dtype=np.int64)
        by_confidence = np.argsort(-np.abs(scores).max(axis=0), kind="stable")
        moving: npt.NDArray[np.int64] = by_confidence[candidates[by_confidence]][: math.ceil(loss)]
        return moving
