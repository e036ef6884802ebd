"""OKH: Online Kernel Hashing (Huang, Yang, Zheng; IJCAI 2013, TNNLS 2018)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from foh_pg import hashing
from foh_pg.arrays.codes import CodeArray, width
from foh_pg.arrays.labels import LabelSets
from foh_pg.errors import InputError
from foh_pg.learners.hyperplanes import random_projection
from foh_pg.learners.rows import FloatArray, KeyArray
from lab.rivals.pairs import PairLearner
from lab.rivals.rival import Rival

Floats = npt.NDArray[np.float64]


@dataclass(eq=False, repr=False)
class OKH(PairLearner, Rival):
    """Passive-aggressive steps on pairs of rows, seen through a kernel with a few anchor rows.

    A row x becomes `z = (exp(-gamma |x - a|^2 / m), ..., 1)` for all anchors a, where m is the mean of those
    squared distances over the first batch. Codes are then linear in z, not in x: an index would have to store
    the anchors too.

    Parameters
    ----------
    anchors : int
        Number of anchors, drawn from the first batch.
    gamma : float
        Narrowness of the kernel. The benchmark of MIHash's authors has `1 / (2 m)`, which on rows of length
        one is so flat that little can be learned.
    alpha : float
        Rows that share no label must differ in `alpha * bits` bits.
    aggressiveness : float
        Largest step size.
    bits, center, warmup, seed :
        As for all learners, see `Learner`.

    Attributes
    ----------
    anchors_ : array (anchors, d)
        The anchors; random directions until the first batch. They stay when their rows are deleted.
    spread_ : float
        The mean squared distance m.
    projection_ : array (anchors + 1, bits)
        W, which applies to z.

    Notes
    -----
    The authors published the step as compiled code only; this one follows the equations of the papers, and
    there are no results of theirs to compare it with.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(4), 10, axis=0)
    >>> learner = OKH(bits=8, anchors=4).partial_fit(X, np.repeat(list("abcd"), 10))
    >>> learner.linear, learner.projection_.shape
    (False, (5, 8))
    """

    name = "okh"
    # Its codes are no signs of a linear function of the row.
    linear: ClassVar[bool] = False

    _: KW_ONLY
    anchors: int = 300
    gamma: float = 3.0
    alpha: float = 0.5
    aggressiveness: float = 0.1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("anchors", "gamma", "aggressiveness"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive, not {getattr(self, name)}")
        if not 0 <= self.alpha <= 1:
            raise InputError(f"alpha must be between 0 and 1, not {self.alpha}")

    def _restart(self) -> None:
        self._restart_pairs()
        self.pairs_ = 0
        self._set_anchors(random_projection(self.rng_, self.dimensions_, self.anchors).T, 2.0)

    def _set_anchors(self, anchors: Floats, spread: float) -> None:
        self.anchors_ = anchors
        self.spread_ = spread
        self._serve(random_projection(self.rng_, len(anchors) + 1, self.bits))

    def _serve(self, projection: npt.NDArray[np.floating[Any]]) -> None:
        self.projection_ = np.asarray(projection, dtype=np.float64)
        # The constant feature takes the place of the bias.
        self.bias_ = np.zeros(self.bits)

    def _learn(self, rows: FloatArray, sets: LabelSets, keys: KeyArray) -> None:
        if self.pairs_ == 0:
            chosen = np.sort(self.rng_.permutation(len(rows))[: self.anchors])
            spread = float(_squared_distances(rows, rows[chosen]).mean())
            self._set_anchors(rows[chosen].copy(), spread or 1.0)
        super()._learn(rows, sets, keys)

    def _learn_pairs(self, left: FloatArray, right: FloatArray, similar: npt.NDArray[np.bool_]) -> None:
        features = np.stack([self._features(left), self._features(right)], axis=1)
        lengths = np.einsum("ijk,ijk->ij", features, features)
        W = self.projection_
        for pair, length, alike in zip(features, lengths, similar.tolist(), strict=True):
            scores = pair @ W
            violation = self._violation(scores, alike)
            if violation > 0:
                self._step(W, pair, length, scores, alike, violation)
        self.pairs_ += len(left)
        self._serve(W)

    def _violation(self, scores: Floats, alike: bool) -> float:
        distance = int(np.count_nonzero((scores[0] > 0) != (scores[1] > 0)))
        return distance if alike else self.alpha * self.bits - distance

    def _step(
        self, W: Floats, pair: Floats, lengths: Floats, scores: Floats, alike: bool, violation: float
    ) -> None:
        """Move W to where the pair's distance would be right, but no further than allowed."""
        signs = np.where(scores > 0, 1.0, -1.0)
        wrong = np.flatnonzero((signs[0] == signs[1]) != alike)
        sizes = np.abs(scores[:, wrong])
        cheapest = np.argsort(sizes.min(axis=0), kind="stable")[: math.ceil(violation)]
        flipped, side = wrong[cheapest], sizes[:, cheapest].argmin(axis=0)
        change = np.zeros_like(signs)
        change[side, flipped] = -2 * signs[side, flipped]
        loss = -float((change * scores).sum()) + math.sqrt(violation)
        # |G|_F^2 of G = z_1 change_1' + z_2 change_2', whose columns never have both terms.
        size = float(((change**2).sum(axis=1) * lengths).sum())
        W += min(self.aggressiveness, loss / size) * (pair.T @ change)

    def _features(self, rows: FloatArray) -> Floats:
        kernel = np.exp(-self.gamma / self.spread_ * _squared_distances(rows, self.anchors_))
        return np.hstack([kernel, np.ones((len(rows), 1))])

    def _encode(self, rows: npt.NDArray[np.float32], sets: LabelSets | None) -> CodeArray:
        packed = np.empty((len(rows), width(self.bits)), dtype=np.uint8)
        for chunk in hashing.chunks(len(rows)):
            features = self._features(self._prepare(rows[chunk]).astype(np.float64))
            packed[chunk] = hashing.encode(features, self.projection_, np.zeros(self.bits))
        return packed


def _squared_distances(rows: FloatArray, anchors: FloatArray) -> Floats:
    lengths = np.einsum("ij,ij->i", rows, rows)[:, None] + np.einsum("ij,ij->i", anchors, anchors)
    squared: Floats = np.maximum(lengths - 2 * rows @ anchors.T, 0)
    return squared
