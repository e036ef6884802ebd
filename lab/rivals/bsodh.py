"""BSODH: Towards Optimal Discrete Online Hashing with Balanced Similarity (Lin et al.; AAAI 2019)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import linalg  # type: ignore[import-untyped]

from foh_pg.arrays.codes import pack, unpack
from foh_pg.arrays.labels import Groups, LabelSets
from foh_pg.errors import InputError
from foh_pg.learners.base import Learner
from foh_pg.learners.reservoir import Reservoir, draw_priorities
from foh_pg.learners.rows import FloatArray, KeyArray
from lab.rivals.rival import ProjectionRival

Floats = npt.NDArray[np.float64]


@dataclass(eq=False, repr=False)
class BSODH(ProjectionRival):
    """Codes of new rows are fitted to those of all earlier ones by label, then W to the codes of the batch.

    Parameters
    ----------
    lam, sigma : float
        Weight of `|W|^2`, and of the distance between codes and `W'x`.
    eta_s, eta_d : float
        Similarity of rows that share a label, and dissimilarity of those that do not.
    memory : int, optional
        How many past rows are kept as labels and codes, a uniform sample; None for all. The default holds all
        of the streams of the paper.
    bits, initial_projection, center, warmup, seed :
        As for all learners, see `Learner`.

    Attributes
    ----------
    reservoir_ : Reservoir
        Past rows with the codes they have in the objective, which are not those of `encode`.

    Notes
    -----
    The first batch only sets codes, and learning begins with the second. The authors' program is followed
    where it differs from the paper: one sweep per batch, codes first and W last, and the number of bits
    enters the similarity twice.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(4), 10, axis=0)
    >>> learner = BSODH(bits=8, warmup=0)
    >>> for _ in range(2):
    ...     learner = learner.partial_fit(X, np.repeat(list("abcd"), 10))
    >>> len(learner.reservoir_)
    80
    """

    name = "bsodh"
    _parts: ClassVar = {**Learner._parts, "reservoir_": Reservoir}
    _kept = ("reservoir_",)

    _: KW_ONLY
    lam: float = 0.6
    sigma: float = 0.5
    eta_s: float = 1.2
    eta_d: float = 0.2
    memory: int | None = 20_000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("lam", "sigma"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive, not {getattr(self, name)}")
        if self.memory is not None and self.memory < 1:
            raise InputError(f"memory must be at least 1 row or None, not {self.memory}")

    def _restart(self) -> None:
        self.reservoir_ = Reservoir.none(self.bits)
        self._serve(self._first_projection())

    def _learn(self, rows: FloatArray, sets: LabelSets, keys: KeyArray) -> None:
        scores = rows @ self.projection_
        codes = _signs(scores)
        if len(self.reservoir_):
            self._fit_codes(codes, scores, sets)
            self._serve(self._regress(rows, codes))
        self.reservoir_ = self.reservoir_.add(
            keys, sets, pack(codes > 0), draw_priorities(self.rng_, len(rows)), self.memory
        )

    def _fit_codes(self, new: Floats, scores: Floats, sets: LabelSets) -> None:
        """Set the codes of new rows in place, then those of the past rows."""
        old = np.where(unpack(self.reservoir_.codes, self.bits), 1.0, -1.0)
        old_groups, new_groups = self.reservoir_.sets.group(), sets.group()
        shared = _share(new_groups.sets, old_groups.sets, len(self.vocabulary_))
        similar: npt.NDArray[np.bool_] = np.asarray(shared.any(axis=1))
        first = old_groups.first[shared.argmax(axis=1)]
        inherits = similar[new_groups.of_row]
        new[inherits] = old[first[new_groups.of_row[inherits]]]

        target = self.bits**2 * self._weigh(shared, old, old_groups)[new_groups.of_row] + scores
        coupling = old.T @ old
        np.fill_diagonal(coupling, 0)
        for r in range(self.bits):
            new[:, r] = _signs(target[:, r] - new @ coupling[:, r])

        fitted = _signs(self._weigh(shared.T, new, new_groups))
        self.reservoir_ = replace(self.reservoir_, codes=pack(fitted > 0)[old_groups.of_row])

    def _weigh(self, shared: npt.NDArray[np.bool_], codes: Floats, groups: Groups) -> Floats:
        """Sum codes times similarity, for each label set on the other side."""
        sums = np.zeros((len(groups), self.bits))
        np.add.at(sums, groups.of_row, codes)
        alike = shared.astype(np.float64) @ sums
        weighed: Floats = self.eta_s * alike - self.eta_d * (sums.sum(axis=0) - alike)
        return weighed

    def _regress(self, rows: FloatArray, codes: Floats) -> Floats:
        gram = self.sigma * (rows.T @ rows)
        gram[np.diag_indices_from(gram)] += self.lam
        solution: Floats = linalg.solve(
            gram, self.sigma * (rows.T @ codes), assume_a="pos", check_finite=False
        )
        return solution


def _signs(scores: Floats) -> Floats:
    return np.where(scores >= 0, 1.0, -1.0)


def _share(a: LabelSets, b: LabelSets, labels: int) -> npt.NDArray[np.bool_]:
    """Whether each set of `a` and each set of `b` have a label in common."""
    common = a.multi_hot(labels, np.float32) @ b.multi_hot(labels, np.float32).T
    return np.asarray(common > 0)
