"""FOH: Fast Online Hashing with Multi-Label Projection (Jia, Cao, Liu, Gui; AAAI 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from foh_pg import hashing
from foh_pg.arrays.codes import CodeArray
from foh_pg.arrays.labels import LabelSets
from foh_pg.learners import stage
from foh_pg.learners.base import Learner
from foh_pg.learners.foh_parameters import FOHParameters
from foh_pg.learners.folding import FOLDED, Folding
from foh_pg.learners.hyperplanes import initial_projection, random_projection
from foh_pg.learners.reservoir import Reservoir, draw_priorities
from foh_pg.learners.rows import FloatArray, KeyArray
from foh_pg.learners.similarity import balance, label_matrix

if TYPE_CHECKING:
    from typing_extensions import Self


class FOH(FOHParameters):
    """Fast Online Hashing, in the authors' form or accumulating over the whole stream.

    Minimises over codes B, hash functions W and a label projection P (Eq. 16 of the paper)

        |B_s' B_e - k S|^2 + sigma |W' X_s - B_s|^2 + theta |B_s - P L_s|^2 + mu |B_e - P L_e|^2
            + lambda |W|^2 + tau |P|^2,

    where s are the rows of a batch, e the existing rows, S the similarity of their labels, L the labels, k
    the bits.

    Parameters
    ----------
    bits : int
        Length k of a code.
    preset : "accumulated" or "paper"
        "paper" is stage for stage the authors' computation: W from the batch alone, served as the mean of
        all W so far; existing codes all bits at once; every row kept; a first batch that only initialises.
        "accumulated" takes W from sums over the whole stream, sets existing codes bit by bit with the sign
        that the objective gives, keeps a bounded sample of existing rows, balances similar against
        dissimilar pairs by their frequency, and learns from the first batch on.
    similarity : "auto", "equal", "graded" or "shared"
        S of two label sets: 1 where they are equal (Eq. 13), their mean share of common labels (Eq. 9-11),
        or 1 where any label is common (the ablation FOH-S). "auto" is "graded" for multi-label data, else
        "equal".
    multi_label : bool, optional
        Which of the authors' constants to use; without it the first batch decides.
    lam, sigma, theta, mu, tau : float, optional
        Weights of the objective. `theta = mu = 0` is the ablation FOH-L.
    eta_s, eta_d : float, optional
        Weights of similar and dissimilar pairs in S. In the preset "accumulated" they are balanced by
        frequency unless one of them is given.
    label_weight : float
        How far codes of stored rows lean on their labels in `encode(X, Y)`; 0 for the paper's symmetric
        codes.
    memory : int, None or "auto"
        How many existing rows to keep; None for all. "auto" is 20 000, and all with preset "paper".
    forget : float
        Factor in (0, 1] by which all sums shrink with every batch; below 1 the kept rows lean to recent ones.
    max_labels : int
        Only this many labels, the most frequent ones, take part in learning.
    center : bool
        Whether rows are centered by the mean of the first `warmup` rows.
    warmup : int, optional
        Until this many labelled rows have come, every batch learns afresh from all of them. Without it 1
        000, and 0 with preset "paper": there the first batch gives the mean.
    initial_projection, initial_label_projection : arrays (d, bits) and (bits, labels), optional
        W and P to begin with; without them Gaussian with columns of length one.
    seed : int
        Seed of all randomness.

    Attributes
    ----------
    projection_, bias_, mean_ : arrays (d, bits), (bits,) and (d,)
        What `encode` uses.
    stage_projection_ : array (d, bits)
        W of the last stage.
    label_projection_ : array (bits, labels)
        P; its columns are in the order of `label_names_`.
    anchor_projection_ : array (bits, labels)
        What codes of stored rows lean on: the mean of P over the rows of each label so far. P itself follows
        the last batch, and stored bits would flip with it however long the stream.
    reservoir_ : Reservoir
        Kept existing rows: keys, label ids and codes, never vectors.
    folding_ : Folding or None
        How rows of more than 4 096 dimensions are folded into as many before they are summed up. W is then
        the best among the hash functions of folded rows. Not in the preset "paper".
    eta_s_, eta_d_ : float
        The balance factors of the last stage.
    rows_untrained_ : int
        Rows that had labels, but none of the `max_labels` most frequent ones.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> label = rng.integers(3, size=600)
    >>> X = rng.standard_normal((3, 20))[label] + 0.5 * rng.standard_normal((600, 20))
    >>> learner = FOH(bits=16)
    >>> for start in range(0, 600, 200):
    ...     _ = learner.partial_fit(X[start : start + 200], label[start : start + 200])
    >>> stored = learner.encode(X, label)  # lean on their labels
    >>> query = learner.encode(X[:1])  # needs none
    >>> from foh_pg.arrays.codes import nearest
    >>> rows, _ = nearest(query, stored, 5)
    >>> bool((label[rows] == label[0]).all())
    True
    """

    name = "foh"
    _parts: ClassVar[Mapping[str, type[Any]]] = {
        **Learner._parts,
        "reservoir_": Reservoir,
        "folding_": Folding,
    }
    _kept = ("reservoir_",)

    label_projection_: npt.NDArray[np.float64]
    anchor_projection_: npt.NDArray[np.float64]
    stage_projection_: npt.NDArray[np.float64]
    projection_sum_: npt.NDArray[np.float64]
    gram_: npt.NDArray[np.float64]
    cross_: npt.NDArray[np.float64]
    label_counts_: npt.NDArray[np.float64]
    reservoir_: Reservoir
    folding_: Folding | None
    eta_s_: float | None
    eta_d_: float | None
    stages_: int
    rows_untrained_: int

    # -- learning ------------------------------------------------------------------------------------------

    def _restart(self) -> None:
        d, k = self.dimensions_, self.bits
        self.stage_projection_ = initial_projection(self.rng_, self.initial_projection, d, k)
        self.label_projection_ = self._initial_label_projection()
        self.anchor_projection_ = self.label_projection_.copy()
        self.folding_ = None
        if self.preset == "paper":
            self.projection_sum_ = self.stage_projection_.copy()
        else:
            if d > FOLDED:
                self.folding_ = Folding.draw(d, FOLDED, self.seed)
            summed = min(d, FOLDED)
            self.gram_ = np.zeros((summed, summed))
            self.cross_ = np.zeros((summed, k))
        self.reservoir_ = Reservoir.none(k)
        self.label_counts_ = np.zeros(self.label_projection_.shape[1])
        self.multi_label_ = self.multi_label
        self.eta_s_ = self.eta_d_ = None
        self.stages_ = self.rows_untrained_ = 0
        self._serve(self.stage_projection_)

    def _learn(self, rows: FloatArray, sets: LabelSets, keys: KeyArray) -> None:
        if self.multi_label_ is None:
            self.multi_label_ = bool((sets.counts > 1).any())
        self._meet_labels(sets)
        columns = self._columns()
        if columns is not None:
            trains = np.flatnonzero(sets.renumber(columns).counts)
            self.rows_untrained_ += len(rows) - len(trains)
            rows, sets, keys = rows[trains], sets.take(trains), keys[trains]
        if len(rows) == 0:
            return
        priorities = draw_priorities(self.rng_, len(rows), self.stages_, self.forget)
        codes = self._learn_codes(rows, sets, columns)
        self._set_anchors(sets)
        self.reservoir_ = self.reservoir_.add(
            keys, sets, stage.packed(codes), priorities, self._memory_rows()
        )
        self.stages_ += 1

    def _meet_labels(self, sets: LabelSets) -> None:
        """Give new names a column of P, and count."""
        missing = len(self.vocabulary_) - self.label_projection_.shape[1]
        if missing > 0:
            drawn = random_projection(self.rng_, self.bits, missing)
            self.label_projection_ = np.concatenate([self.label_projection_, drawn], axis=1)
            self.anchor_projection_ = np.concatenate([self.anchor_projection_, np.zeros_like(drawn)], axis=1)
            self.label_counts_ = np.concatenate([self.label_counts_, np.zeros(missing)])
        self.label_counts_ = self.forget * self.label_counts_ + sets.occurrences(len(self.label_counts_))

    def _columns(self) -> npt.NDArray[np.int64] | None:
        """Number the labels that take part, -1 for the others; None where all of them do."""
        labels = len(self.label_counts_)
        if labels <= self.max_labels:
            return None
        chosen = np.sort(np.argsort(-self.label_counts_, kind="stable")[: self.max_labels])
        columns = np.full(labels, -1, dtype=np.int64)
        columns[chosen] = np.arange(len(chosen))
        return columns

    def _learn_codes(
        self, rows: FloatArray, sets: LabelSets, columns: npt.NDArray[np.int64] | None
    ) -> FloatArray:
        """Do one stage; return the codes of the new rows (k, n)."""
        projected = np.ascontiguousarray((rows @ self.stage_projection_.astype(rows.dtype)).T)
        first = self.stages_ == 0
        if first and self.preset == "paper":
            return stage.signs(projected)
        if columns is not None:
            sets = sets.renumber(columns)
        # Without a past the first batch is its own: a table smaller than one batch must not stay random.
        kept, past_codes, past_sets = (
            (None, stage.packed(stage.signs(projected)), sets) if first else self._past(columns)
        )
        labels = int(columns.max()) + 1 if columns is not None else len(self.label_counts_)
        meeting = stage.meet(past_codes, past_sets, sets, labels, self.bits, rows.dtype)
        codes, changed = self._sweep(meeting, projected, columns)
        new = meeting.new_side(codes)
        if kept is not None:
            moved = self.reservoir_.codes.copy()
            moved[kept] = stage.packed(changed)[meeting.past_of_row]
            self.reservoir_ = replace(self.reservoir_, codes=moved)
            meeting.past.codes = changed
        past = None if first else meeting.past
        self._set_label_projection(
            stage.label_projection(meeting.groups.sets, labels, past, new, self._constants()), columns
        )
        self._set_projection(rows, codes)
        return codes

    def _past(
        self, columns: npt.NDArray[np.int64] | None
    ) -> tuple[npt.NDArray[np.int64], CodeArray, LabelSets]:
        """Give the kept rows that have a label to learn from."""
        sets = self.reservoir_.sets
        if columns is None:
            return np.arange(len(sets)), self.reservoir_.codes, sets
        sets = sets.renumber(columns)
        kept = np.flatnonzero(sets.counts)
        return kept, self.reservoir_.codes[kept], sets.take(kept)

    def _sweep(
        self, meeting: stage.Meeting, projected: FloatArray, columns: npt.NDArray[np.int64] | None
    ) -> tuple[FloatArray, FloatArray]:
        """Find codes of new rows, then of existing ones."""
        constants, kind = self._constants(), self._kind()
        if self.preset != "paper" and self.eta_s is None and self.eta_d is None:
            eta_s, eta_d = balance(kind, meeting.groups, meeting.labels, constants.eta_s, constants.eta_d)
            constants = replace(constants, eta_s=eta_s, eta_d=eta_d)
        self.eta_s_, self.eta_d_ = constants.eta_s, constants.eta_d
        P = self.label_projection_ if columns is None else self.label_projection_[:, columns >= 0]
        leaning = label_matrix(meeting.groups.sets, meeting.labels, np.float64) @ P.T
        codes = meeting.new_codes(
            constants.sigma * projected, meeting.weighted_by_past(kind, constants), constants.theta * leaning
        )
        paper = self.preset == "paper"
        new = meeting.new_side(codes) if paper else meeting.evidence(codes)
        # The objective gives plus; the paper and the authors' program have minus.
        changed = meeting.existing_codes(
            new,
            meeting.weighted_by_new(kind, constants, new),
            (-constants.mu if paper else constants.mu) * leaning,
            bit_by_bit=not paper,
        )
        return codes, changed

    def _set_label_projection(
        self, solved: npt.NDArray[np.float64], columns: npt.NDArray[np.int64] | None
    ) -> None:
        if columns is None:
            self.label_projection_ = solved
        else:
            self.label_projection_ = np.zeros_like(self.label_projection_)
            self.label_projection_[:, columns >= 0] = solved

    def _set_anchors(self, sets: LabelSets) -> None:
        """Move what stored codes lean on towards P, by the share of a label's rows that are new."""
        if self.preset == "paper":
            self.anchor_projection_ = self.label_projection_.copy()
            return
        share = sets.occurrences(len(self.label_counts_)) / np.maximum(self.label_counts_, 1)
        self.anchor_projection_ += share * (self.label_projection_ - self.anchor_projection_)

    def _set_projection(self, rows: FloatArray, codes: FloatArray) -> None:
        if self.preset == "paper":
            self.stage_projection_ = stage.projection_of_rows(rows, codes, self._constants())
            self.projection_sum_ += self.stage_projection_
            self._serve(self.projection_sum_ / (self.stages_ + 1))
            return
        if self.folding_ is not None:
            rows = self.folding_.fold(rows)
        # In place: these sums are the largest thing that a learner holds.
        for sums, other in ((self.gram_, rows), (self.cross_, codes.T)):
            sums *= self.forget
            sums += rows.T @ other
        solved = stage.projection(self.gram_, self.cross_, self._constants())
        self.stage_projection_ = solved if self.folding_ is None else self.folding_.unfold(solved)
        self._serve(self.stage_projection_)

    def stand_for(self, rows: int) -> bool:
        """Weigh all that was learned so far as a sample of `rows` rows; return whether that was done.

        Where a sample of a table was learned from, later batches then count for what they are beside the
        whole table. Nothing is done while the learner warms up, and where it forgets.
        """
        learned = self.rows_seen_ - self.rows_skipped_
        warm = self.warm_rows_ is not None
        if warm or self.preset == "paper" or self.forget < 1 or not 0 < learned < rows:
            return False
        weight = rows / learned
        for sums in (self.gram_, self.cross_, self.label_counts_):
            sums *= weight
        self.reservoir_ = self.reservoir_.stand_for(weight)
        return True

    def set_parameters(self, **changed: Any) -> Self:
        """Change hyper-parameters; another `forget` counts from the next stage on."""
        before = self.forget
        super().set_parameters(**changed)
        if self.started and self.forget != before:
            # Priorities include the stages so far: those of new rows must begin one step after the last ones.
            shift = max(0, self.stages_ - 1) * float(np.log(self.forget) - np.log(before))
            self.reservoir_ = self.reservoir_.shifted(shift)
        return self

    # -- saved form ----------------------------------------------------------------------------------------

    def _saved(self, name: str, value: Any) -> Any:
        # Symmetric, and by far the largest array of a state: one half of it is saved.
        return value[np.tri(len(value), dtype=bool)] if name == "gram_" else super()._saved(name, value)

    def _restored(self, name: str, value: Any) -> Any:
        if name != "gram_":
            return super()._restored(name, value)
        size = int(np.sqrt(2 * len(value)))
        whole = np.zeros((size, size))
        whole[np.tri(size, dtype=bool)] = value
        whole += np.tril(whole, -1).T
        return whole

    # -- encoding ------------------------------------------------------------------------------------------

    def _anchor(self, rows: npt.NDArray[np.float32], sets: LabelSets) -> npt.NDArray[np.float32] | None:
        """Give `label_weight |x - mean| P l`, what the labels of a stored row add to its scores."""
        labels = self.anchor_projection_.shape[1]
        if self.label_weight == 0 or labels == 0:
            return None
        known = np.arange(len(self.vocabulary_))
        if labels < len(known):
            # Labels that no stage has learned from have no column yet.
            sets = sets.renumber(np.where(known < labels, known, -1))
        away = hashing.lengths(rows, self.mean_.astype(np.float32))[:, None]
        leaning = label_matrix(sets, labels) @ self.anchor_projection_.T.astype(np.float32)
        anchor: npt.NDArray[np.float32] = np.float32(self.label_weight) * away * leaning
        return anchor
