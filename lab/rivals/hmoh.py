"""HMOH: Hadamard Matrix Guided Online Hashing (Lin, Ji, Liu, Sun, Chen, Tian; IJCV 2020)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.labels import LabelSets
from foh_pg.errors import InputError
from foh_pg.learners.hyperplanes import random_projection
from foh_pg.learners.rows import FloatArray, KeyArray
from lab.rivals import rankone
from lab.rivals.hadamard import hadamard_order, hadamard_rows
from lab.rivals.rival import Rival


@dataclass(eq=False, repr=False)
class HMOH(Rival):
    """One averaged perceptron per bit, taught to give every label its own row of a Hadamard matrix.

    W starts at zero, so the learning rate of the authors' program only scales W and no code depends on it;
    it is left out. The averaged W is kept as W and the sum of each step times its number, which costs nothing
    per row that is classified right.

    Parameters
    ----------
    order : int, optional
        Order of the matrix, a power of two. By default the smallest that is neither less than `bits` nor than
        the number of labels in the first batch. Where it is not `bits`, rows are projected at random to
        `bits` signs.
    permute : bool
        Draw the matrix rows of the labels at random. The authors take them in order, and then with ten labels
        all codes from 16 bits on rank alike: the first 16 rows repeat their first 16 columns.
    folding : array (order, bits), optional
        The random projection of rows to signs, drawn by default.
    bits, center, warmup, seed :
        As for all learners, see `Learner`.

    Attributes
    ----------
    targets_ : array (labels, bits) of int8
        What each label's code should be. Labels beyond the order of the matrix get random signs.
    order_ : int
        The order in use, 0 before the first batch.

    Notes
    -----
    A row with several labels is taught the sign of the sum of their targets. Where the sum is zero, signs are
    chosen so that the whole target has as many +1 as -1, the bits in an order of that label set's own. (The
    authors' program replaces all of the target, or overshoots the balance.)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(4), 5, axis=0)
    >>> learner = HMOH(bits=8).partial_fit(X, np.repeat(["a", "b", "c", "d"], 5))
    >>> len(np.unique(learner.encode(X), axis=0))
    4
    """

    name = "hmoh"

    _: KW_ONLY
    order: int | None = None
    permute: bool = True
    folding: npt.ArrayLike | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.order is not None and self.order != hadamard_order(self.order):
            raise InputError(f"order must be a power of two, not {self.order}")
        if self.folding is not None:
            shape = np.shape(self.folding)
            order = self.order or hadamard_order(shape[0] if shape else 0)
            if shape != (order, self.bits):
                raise InputError(
                    f"folding must be order x {self.bits}, its order a power of two, not {shape}"
                )

    def _restart(self) -> None:
        self.weights_ = np.zeros((self.dimensions_, self.bits))
        self.late_ = np.zeros((self.dimensions_, self.bits))
        self.steps_ = 0
        self.order_ = 0
        self.rows_of_labels_ = np.zeros(0, dtype=np.int64)
        self.folding_ = np.zeros((0, self.bits))
        self.targets_ = np.zeros((0, self.bits), dtype=np.int8)
        self._serve(random_projection(self.rng_, self.dimensions_, self.bits))

    def _learn(self, rows: FloatArray, sets: LabelSets, keys: KeyArray) -> None:
        self._assign_targets(len(self.vocabulary_))
        groups = sets.group()
        wanted = self._set_targets(groups.sets)[groups.of_row].astype(np.float64)

        def step(i: int, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
            # A score of exactly zero counts as -1 here, as in the authors' program.
            wrong = (scores > 0) != (wanted[i] > 0)
            return np.where(wrong, wanted[i], 0.0)

        self._average(rows, step)

    def _average(self, rows: FloatArray, step: rankone.Step) -> None:
        """Run the perceptrons; W after every row enters the mean that is served."""
        taken = np.zeros((len(rows), self.bits))

        def keep(i: int, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
            moved = step(i, scores)
            if moved is not None:
                taken[i] = moved
            return moved

        rankone.run(self.weights_, rows, keep)
        numbers = self.steps_ + np.arange(len(rows))
        self.late_ += rows.T @ (taken * numbers[:, None])
        self.steps_ += len(rows)
        self._serve(self.weights_ - self.late_ / self.steps_)

    def _assign_targets(self, labels: int) -> None:
        if self.order_ == 0:
            self._choose_matrix(labels)
        have = len(self.targets_)
        if labels == have:
            return
        inside = self.rows_of_labels_[have:labels]
        new = hadamard_rows(inside, self.order_).astype(np.float64)
        new = new if len(self.folding_) == 0 else np.where(new @ self.folding_ > 0, 1.0, -1.0)
        beyond = self.rng_.choice([-1.0, 1.0], size=(labels - have - len(inside), self.bits))
        self.targets_ = np.concatenate([self.targets_, np.concatenate([new, beyond]).astype(np.int8)])

    def _choose_matrix(self, labels: int) -> None:
        given = self.order if self.folding is None else len(np.asarray(self.folding))
        self.order_ = given or hadamard_order(max(self.bits, labels))
        self.rows_of_labels_ = (
            self.rng_.permutation(self.order_) if self.permute else np.arange(self.order_, dtype=np.int64)
        )
        if self.folding is not None:
            self.folding_ = np.array(self.folding, dtype=np.float64)
        elif self.order_ != self.bits:
            self.folding_ = random_projection(self.rng_, self.order_, self.bits)

    def _set_targets(self, sets: LabelSets) -> npt.NDArray[np.int8]:
        """Give the target of each label set."""
        sums = np.zeros((len(sets), self.bits), dtype=np.int64)
        np.add.at(sums, np.repeat(np.arange(len(sets)), sets.counts), self.targets_[sets.ids])
        targets = np.sign(sums).astype(np.int8)
        for i in np.flatnonzero((targets == 0).any(axis=1)):
            _fill_ties(targets[i], sets.row(int(i)))
        return targets


def _fill_ties(target: npt.NDArray[np.int8], labels: npt.NDArray[np.int64]) -> None:
    """Set the zeros of a target so that it is as balanced as it can be, in an order drawn from its labels."""
    ties = np.flatnonzero(target == 0)
    missing = (len(ties) - int(target.sum())) // 2
    positive = min(max(missing, 0), len(ties))
    order = np.random.Generator(np.random.PCG64(labels.tolist())).permutation(ties)
    target[order[:positive]] = 1
    target[order[positive:]] = -1
