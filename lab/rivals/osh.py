"""OSH: Online Supervised Hashing (Cakir, Bargal, Sclaroff; ICIP 2015, CVIU 2017)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.labels import LabelSets
from foh_pg.errors import InputError
from foh_pg.learners.rows import FloatArray, KeyArray
from lab.rivals import rankone
from lab.rivals.rival import ProjectionRival

# exp() of more than this means that the rows are far too long for the learning rate; the step stays finite.
LARGEST_EXPONENT = 50.0


@dataclass(eq=False, repr=False)
class OSH(ProjectionRival):
    """Every label has a random codeword, and one linear classifier per bit is taught to give it.

    Parameters
    ----------
    loss : "hinge" or "boosted"
        "hinge": a bit learns where its margin is below one. "boosted": exponential loss, and each bit weighs
        a row by how badly the bits before it, already corrected, do there.
    learning_rate : float
        Step size.
    codebook : array (n, bits), optional
        Codewords in zeros and ones (or signs) for labels in order of first appearance. Drawn by default.
    bits, initial_projection, center, warmup, seed :
        As for all learners, see `Learner`.

    Attributes
    ----------
    codewords_ : array (words, bits) of int8
        Codewords given out so far.
    word_of_ : array (labels,)
        The codeword of each label, -1 where no row of it was learned from.

    Notes
    -----
    A row with several labels makes one step for each, in the order of their ids. The authors' first release
    forgets which codeword belongs to which label between two rows, and so gives all labels the same one;
    tables that show OSH near chance show that.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(3), 9, axis=0)
    >>> learner = OSH(bits=16).partial_fit(X, np.repeat(["a", "b", "c"], 9))
    >>> learner.codewords_.shape
    (3, 16)
    """

    name = "osh"

    _: KW_ONLY
    loss: Literal["hinge", "boosted"] = "hinge"
    learning_rate: float = 0.1
    codebook: npt.ArrayLike | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.loss not in ("hinge", "boosted"):
            raise InputError(f"loss must be 'hinge' or 'boosted', not {self.loss!r}")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate must be positive, not {self.learning_rate}")
        if self.codebook is not None and np.shape(self.codebook)[1:] != (self.bits,):
            raise InputError(f"codebook must have {self.bits} columns, one per bit")

    def _restart(self) -> None:
        self.weights_ = self._first_projection()
        self.codewords_ = np.zeros((0, self.bits), dtype=np.int8)
        self.word_of_ = np.zeros(0, dtype=np.int64)
        self._serve(self.weights_)

    def _learn(self, rows: FloatArray, sets: LabelSets, keys: KeyArray) -> None:
        self._give_codewords(sets.ids)
        of_row = np.repeat(np.arange(len(rows)), sets.counts)
        wanted = self.codewords_[self.word_of_[sets.ids]].astype(np.float64)
        taught = rows if len(of_row) == len(rows) else rows[of_row]
        step = self._hinge(wanted) if self.loss == "hinge" else self._boosted(wanted, taught)
        rankone.run(self.weights_, taught, step)
        self._serve(self.weights_)

    def _give_codewords(self, ids: npt.NDArray[np.int64]) -> None:
        missing = len(self.vocabulary_) - len(self.word_of_)
        self.word_of_ = np.concatenate([self.word_of_, np.full(missing, -1, dtype=np.int64)])
        labels, first = np.unique(ids, return_index=True)
        in_order = labels[np.argsort(first)]
        new = in_order[self.word_of_[in_order] < 0]
        start = len(self.codewords_)
        self.word_of_[new] = np.arange(start, start + len(new))
        self.codewords_ = np.concatenate([self.codewords_, self._draw_codewords(start, len(new))])

    def _draw_codewords(self, start: int, count: int) -> npt.NDArray[np.int8]:
        given = np.zeros((0, self.bits)) if self.codebook is None else np.asarray(self.codebook)
        taken = np.where(given[start : start + count] > 0, 1, -1).astype(np.int8)
        drawn = self.rng_.integers(2, size=(count - len(taken), self.bits), dtype=np.int8) * 2 - 1
        return np.concatenate([taken, drawn.astype(np.int8)])

    def _hinge(self, wanted: npt.NDArray[np.float64]) -> rankone.Step:
        moves = self.learning_rate * wanted

        def step(i: int, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            moved: npt.NDArray[np.float64] = moves[i] * (wanted[i] * scores < 1)
            return moved

        return step

    def _boosted(self, wanted: npt.NDArray[np.float64], rows: FloatArray) -> rankone.Step:
        lengths = np.einsum("ij,ij->i", rows, rows)

        def step(i: int, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            # A step moves a margin by its size times the squared length: no need to project again.
            gain = self.learning_rate * float(lengths[i])
            margins = (wanted[i] * scores).tolist()
            weights = []
            before = 0.0
            for margin in margins:
                weight = math.exp(min(-before - margin, LARGEST_EXPONENT))
                weights.append(weight)
                before += margin + gain * weight
            moved: npt.NDArray[np.float64] = self.learning_rate * np.array(weights) * wanted[i]
            return moved

        return step
