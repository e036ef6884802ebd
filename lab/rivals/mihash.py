"""MIHash: Online Hashing with Mutual Information (Cakir, He, Bargal, Sclaroff; ICCV 2017)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.labels import LabelSets
from foh_pg.errors import InputError
from foh_pg.learners.base import Learner
from foh_pg.learners.rows import FloatArray, KeyArray
from lab.rivals import information
from lab.rivals.rankone import BLOCK_ROWS
from lab.rivals.recall import Recall
from lab.rivals.rival import ProjectionRival

# The authors clip the argument of the sigmoid here.
LARGEST_ARGUMENT = 42.0

Floats = npt.NDArray[np.float64]


@dataclass(eq=False, repr=False)
class MIHash(ProjectionRival):
    """Gradient steps that raise the mutual information of Hamming distance and being a neighbor.

    Each row is compared with a reservoir of past rows; two rows are neighbors if they share a label.

    Parameters
    ----------
    reservoir : int
        How many past rows are kept, with their vectors. Cost per row is proportional to it.
    bins : int
        Number of bins of the histograms of distances.
    sharpness : float
        Scale of the sigmoid that stands in for the sign.
    learning_rate, decay : float
        The step of row t is `learning_rate / (1 + decay * t)`.
    exact : bool
        Follow the exact gradient. By default the authors' program is followed, whose gradient has another
        scale and an offset.
    bits, initial_projection, center, warmup, seed :
        As for all learners, see `Learner`.

    Attributes
    ----------
    recall_ : Recall
        The reservoir: a uniform sample of past rows.

    Notes
    -----
    The reservoir begins with a tenth of its rows, drawn from the first batch. W changes by one outer product
    per row, so scores inside a block of rows, and those of the reservoir, are corrected instead of computed
    anew. Training is chaotic: rounding grows by orders of magnitude every hundred rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(4), 10, axis=0)
    >>> learner = MIHash(bits=8, reservoir=20).partial_fit(X, np.repeat(list("abcd"), 10))
    >>> len(learner.recall_)
    20
    """

    name = "mihash"
    _parts: ClassVar = {**Learner._parts, "recall_": Recall}
    _kept = ("recall_",)

    _: KW_ONLY
    reservoir: int = 200
    bins: int = 16
    sharpness: float = 10.0
    learning_rate: float = 1.0
    decay: float = 0.0
    exact: bool = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("reservoir", "bins", "sharpness", "learning_rate"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive, not {getattr(self, name)}")
        if self.decay < 0:
            raise InputError(f"decay must be 0 or more, not {self.decay}")

    def _restart(self) -> None:
        self.weights_ = self._first_projection()
        self.recall_ = Recall.none(self.dimensions_)
        self.steps_ = 0
        self._serve(self.weights_)

    def _learn(self, rows: FloatArray, sets: LabelSets, keys: KeyArray) -> None:
        hot = sets.multi_hot(len(self.vocabulary_), np.float32)
        self.recall_.add_labels(hot.shape[1])
        if self.steps_ == 0 and len(self.recall_) == 0:
            first = self.rng_.permutation(len(rows))[: math.ceil(self.reservoir / 10)]
            for i, key in zip(first, self.rng_.random(len(first)), strict=True):
                self.recall_.offer(self.reservoir, rows[i], hot[i], keys[i : i + 1], key)
        for start in range(0, len(rows), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            self._run_block(rows[block], hot[block], keys[block])
        self._serve(self.weights_)

    def _run_block(self, rows: FloatArray, hot: npt.NDArray[np.float32], keys: KeyArray) -> None:
        """Pass over a few rows; W itself moves once, at the end."""
        recall = self.recall_
        scores, products = rows @ self.weights_, rows @ rows.T
        kept_scores, kept_products = recall.rows @ self.weights_, recall.rows @ rows.T
        alike, kept_alike = hot @ hot.T > 0, recall.hot @ hot.T > 0
        steps = np.zeros_like(scores)
        draws = self.rng_.random(len(rows))
        for i in range(len(rows)):
            scores[i] += products[i, :i] @ steps[:i]
            steps[i] = self._step(scores[i], kept_scores, kept_alike[:, i])
            kept_scores += np.multiply.outer(kept_products[:, i], steps[i])
            place = recall.offer(self.reservoir, rows[i], hot[i], keys[i : i + 1], draws[i])
            if place is None:
                continue
            score = scores[i] + products[i, i] * steps[i]
            kept_scores = _put(kept_scores, place, score)
            kept_products = _put(kept_products, place, products[i])
            kept_alike = _put(kept_alike, place, alike[i])
        self.weights_ += rows.T @ steps

    def _step(self, scores: Floats, kept_scores: Floats, alike: npt.NDArray[np.bool_]) -> Floats:
        rate = self.learning_rate / (1 + self.decay * self.steps_)
        self.steps_ += 1
        if len(kept_scores) == 0:
            return np.zeros_like(scores)
        soft, kept = self._soft_signs(scores), self._soft_signs(kept_scores)
        distances = np.clip((self.bits - kept @ soft) / 2, 0, self.bits)
        pull = information.pull_on_distances(distances, alike, self.bins, self.bits)
        slope = pull @ kept
        if not self.exact:
            # The authors have -sigmoid / 2 in place of the derivative of the distance, -(2 sigmoid - 1).
            slope = (slope + pull.sum()) / 4
        step: Floats = (rate * self.sharpness / 4) * (1 - soft**2) * slope
        return step

    def _soft_signs(self, scores: Floats) -> Floats:
        """Give 2 sigmoid(A t) - 1, by an exponential because numpy's tanh takes three times as long."""
        softened = -self.sharpness * scores
        np.clip(softened, -LARGEST_ARGUMENT, LARGEST_ARGUMENT, out=softened)
        np.exp(softened, out=softened)
        softened += 1
        np.divide(2, softened, out=softened)
        softened -= 1
        return softened


def _put(table: npt.NDArray, place: int, row: npt.NDArray) -> npt.NDArray:  # type: ignore[type-arg]
    """Write a row at a place, which may be one past the end."""
    if place == len(table):
        return np.concatenate([table, row[None]])
    table[place] = row
    return table
