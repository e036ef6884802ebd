"""Learners that learn from pairs of rows: two rows that follow each other in the stream."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.labels import LabelSets
from foh_pg.learners.base import Learner
from foh_pg.learners.rows import FloatArray, KeyArray, join_keys


class PairLearner(Learner):
    """Base of pairwise learners.

    Rows are paired in order, first with second, third with fourth. A last row without a partner waits for the
    next batch, so that it makes no difference how a stream is cut.
    """

    def _restart_pairs(self) -> None:
        self.waiting_row_ = np.zeros((0, self.dimensions_))
        self.waiting_labels_ = np.zeros(0, dtype=np.int64)
        self.waiting_key_: KeyArray = np.zeros(0, dtype=np.int64)

    @abstractmethod
    def _learn_pairs(self, left: FloatArray, right: FloatArray, similar: npt.NDArray[np.bool_]) -> None:
        """Learn from pairs of rows; two rows are similar if they share a label."""

    def _learn(self, rows: FloatArray, sets: LabelSets, keys: KeyArray) -> None:
        if len(self.waiting_row_):
            rows = np.concatenate([self.waiting_row_, rows])
            sets = LabelSets.of([self.waiting_labels_.tolist()]).append(sets)
            keys = join_keys(self.waiting_key_, keys)
        paired = len(rows) // 2 * 2
        left, right = np.arange(0, paired, 2), np.arange(1, paired, 2)
        self.waiting_row_ = rows[paired:].copy()
        self.waiting_key_ = keys[paired:].copy()
        self.waiting_labels_ = sets.ids[sets.offsets[paired] :].copy()
        if paired:
            similar = share_a_label(sets.take(left), sets.take(right))
            self._learn_pairs(rows[left], rows[right], similar)

    def _check_batch(self, keys: KeyArray) -> None:
        super()._check_batch(keys)
        if self.started:
            join_keys(self.waiting_key_, keys)

    def forget_keys(self, keys: npt.ArrayLike) -> int:
        """Drop deleted or relabelled rows; of past rows at most the one without a partner is kept."""
        dropped = super().forget_keys(keys)
        if self.started and np.isin(self.waiting_key_, np.asarray(keys)).any():
            self._restart_pairs()
            # While the learner warms up its rows are counted there already.
            dropped += self.warm_rows_ is None
        return dropped


def share_a_label(a: LabelSets, b: LabelSets) -> npt.NDArray[np.bool_]:
    """Whether row i of `a` and row i of `b` have a label in common.

    Examples
    --------
    >>> share_a_label(LabelSets.of([[0, 1], [2]]), LabelSets.of([[1], [0]]))
    array([ True, False])
    """
    columns = 1 + max(a.ids.max(initial=-1), b.ids.max(initial=-1))
    left = np.repeat(np.arange(len(a)), a.counts) * columns + a.ids
    right = np.repeat(np.arange(len(b)), b.counts) * columns + b.ids
    shared = np.zeros(len(a), dtype=bool)
    shared[np.intersect1d(left, right, assume_unique=True) // max(columns, 1)] = True
    return shared
