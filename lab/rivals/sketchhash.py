"""SketchHash: Online Sketching Hashing (Leng, Wu, Cheng, Bai, Lu; CVPR 2015). Unsupervised."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg  # type: ignore[import-untyped]

from foh_pg.arrays.labels import LabelSets
from foh_pg.errors import InputError
from foh_pg.learners.base import Learner
from foh_pg.learners.hyperplanes import initial_projection
from foh_pg.learners.rows import FloatArray, KeyArray

Floats = npt.NDArray[np.float64]


@dataclass(eq=False, repr=False)
class SketchHash(Learner):
    """Principal directions of a small sketch of the stream, rotated. Labels are not used.

    Parameters
    ----------
    sketch : int
        Rows of the sketch (Frequent Directions), an even number; no more than there are dimensions are used.
    batch : int
        Rows whose mean is taken at a time.
    initial_projection : array (d, bits), optional
        Where the rotation starts. Drawn by default.
    warmup : int
        The first rows are sketched afresh with every batch until there are this many.
    bits, seed :
        As for all learners, see `Learner`.

    Attributes
    ----------
    sketch_ : array (sketch, d)
        The sketch; its rows from `filled_` on are free.
    mean_ : array (d,)
        Mean of all rows so far. Rows are neither centered by a frozen mean nor scaled.

    Notes
    -----
    The authors draw a new random rotation with every batch, and then all codes change. Any rotation serves,
    so here it is the one that brings the new projection nearest to the one before. Where there are more bits
    than directions, the rotation spreads them over all bits.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((100, 8))
    >>> W = SketchHash(bits=4, sketch=8).partial_fit(X).projection_
    >>> bool(np.allclose(W.T @ W, np.eye(4)))
    True
    """

    name = "sketchhash"
    supervised = False
    center = False
    normalize = False

    bits: int = 64
    _: KW_ONLY
    sketch: int = 200
    batch: int = 50
    initial_projection: npt.ArrayLike | None = None
    warmup: int = 0
    seed: int = 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.sketch < 2 or self.sketch % 2:
            raise InputError(f"sketch must be an even number of rows, not {self.sketch}")
        if self.batch < 1:
            raise InputError(f"batch must be at least 1, not {self.batch}")

    def _restart(self) -> None:
        size = max(2, min(self.sketch, self.dimensions_) // 2 * 2)
        self.sketch_ = np.zeros((size, self.dimensions_))
        self.filled_ = 0
        self.sketched_ = 0
        self._serve(initial_projection(self.rng_, self.initial_projection, self.dimensions_, self.bits))

    def _learn(self, rows: FloatArray, sets: LabelSets, keys: KeyArray) -> None:
        for start in range(0, len(rows), self.batch):
            self._take(rows[start : start + self.batch])
        self._serve(self._rotated())

    def _take(self, rows: FloatArray) -> None:
        """Sketch the scatter of some rows around the mean of all rows so far."""
        n, t = self.sketched_, len(rows)
        mean = rows.mean(axis=0)
        fed = rows - mean
        if n:
            # The means of old and new rows differ: this row adds what both scatters miss of the pooled one.
            fed = np.vstack([fed, np.sqrt(n * t / (n + t)) * (mean - self.mean_)])
        self._feed_sketch(fed)
        self.mean_ = (n * self.mean_ + t * mean) / (n + t)
        self.sketched_ = n + t

    def _feed_sketch(self, rows: FloatArray) -> None:
        size = len(self.sketch_)
        # Once the sketch has been full, the authors' program shrinks it at the start of every batch.
        if self.filled_ >= size // 2 and self.sketched_ >= size:
            self._shrink()
        while len(rows):
            if self.filled_ == size:
                self._shrink()
            taken = rows[: size - self.filled_]
            self.sketch_[self.filled_ : self.filled_ + len(taken)] = taken
            self.filled_ += len(taken)
            rows = rows[len(taken) :]

    def _shrink(self) -> None:
        """Make the lower half of the sketch free, at the cost of its smallest directions."""
        half = len(self.sketch_) // 2
        # Squared singular values and left vectors: less exact for the smallest, which get weight zero.
        squares, left = linalg.eigh(self.sketch_ @ self.sketch_.T, check_finite=False)
        smallest, kept = squares[half - 1], squares[half:]
        weights = np.sqrt(np.maximum(1 - smallest / np.where(kept > 0, kept, np.inf), 0) * (kept > 0))
        upper = weights[:, None] * (left[:, half:].T @ self.sketch_)
        self.sketch_[:half], self.sketch_[half:] = upper[::-1], 0
        self.filled_ = half

    def _rotated(self) -> Floats:
        directions = linalg.svd(self.sketch_, full_matrices=False, check_finite=False)[2][: self.bits].T
        left, _, right = linalg.svd(directions.T @ self.projection_, full_matrices=False, check_finite=False)
        rotated: Floats = directions @ (left @ right)
        return rotated
