"""What all learners have in common: input, warm-up, encoding, saved state.

A learner turns rows into codes and gets better with every batch. A subclass is a dataclass whose fields
are its hyper-parameters (`eq=False`: two learners are never equal), and implements

- `_restart()`: set every learned attribute to its beginning, drawing from `self.rng_` only;
- `_learn(rows, sets, keys)`: one stage on prepared (centered, scaled) rows, ending with `self._serve(W)`.

Learned attributes end with an underscore. Arrays, numbers, strings, None, generators and the dataclasses of
`_parts` are saved and restored without further code. `tests/support/learner_checks.py` tests every learner.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from foh_pg import hashing
from foh_pg.arrays import codes
from foh_pg.arrays.labels import LabelSets
from foh_pg.arrays.vocabulary import Labels, Vocabulary
from foh_pg.errors import InputError
from foh_pg.learners.rows import FloatArray, KeptRows, KeyArray, WarmRows, check_keys, check_rows, join_keys
from foh_pg.learners.saved import Saved

if TYPE_CHECKING:
    from typing_extensions import Self


class Learner(Saved):
    """Base of all learners.

    Parameters
    ----------
    bits : int
        Length of a code.
    center, warmup : bool and int
        Rows are centered by the mean of the first `warmup` rows, unless `center` is false, and scaled to
        length one.
    initial_projection : array (d, bits), optional
        Where W starts, in learners that move it. Drawn by default.
    seed : int
        Seed of all randomness.

    Attributes
    ----------
    dimensions_ : int
        Length of a row, known after `start` or the first batch.
    projection_, bias_ : arrays (d, bits) and (bits,)
        Bit j of a row without labels is 1 where `projection_[:, j] . x >= bias_[j]`.
    mean_ : array (d,)
        What rows are centered by; frozen once `warmup` rows have been learned from.
    vocabulary_ : Vocabulary
        Label names met so far.
    rows_seen_, rows_skipped_ : int
        Rows given to `partial_fit`, and those among them that had no label to learn from.
    version_ : int
        Number of stages learned.
    """

    supervised: ClassVar[bool] = True
    _parts: ClassVar[Mapping[str, type[Any]]] = {"vocabulary_": Vocabulary, "warm_rows_": WarmRows}
    # Attributes that hold past rows by their keys, beside those of the warm-up.
    _kept: ClassVar[tuple[str, ...]] = ()
    _dtype: npt.DTypeLike = np.float64

    bits: int
    center: bool
    normalize: bool = True
    warmup: int | None
    seed: int

    dimensions_: int
    projection_: npt.NDArray[np.float64]
    bias_: npt.NDArray[np.float64]
    mean_: npt.NDArray[np.float64]
    vocabulary_: Vocabulary
    warm_rows_: WarmRows | None
    rng_: np.random.Generator
    rows_seen_: int
    rows_skipped_: int
    version_: int

    # -- what a subclass says ------------------------------------------------------------------------------

    @abstractmethod
    def _restart(self) -> None:
        """Set the learned state to its beginning (after `rng_`, `dimensions_` and `mean_` are set)."""

    @abstractmethod
    def _learn(self, rows: FloatArray, sets: LabelSets, keys: KeyArray) -> None:
        """Learn from one batch of prepared rows, all of them labelled if the learner is supervised."""

    def _check_parameters(self) -> None:
        """Raise InputError for hyper-parameters that make no sense; subclasses add their own."""
        if self.bits < 1:
            raise InputError(f"bits must be at least 1, not {self.bits}")
        if self._warmup_rows() < 0:
            raise InputError(f"warmup must be 0 or more rows, not {self.warmup}")

    def _warmup_rows(self) -> int:
        return self.warmup or 0

    # -- learning ------------------------------------------------------------------------------------------

    @property
    def started(self) -> bool:
        """Whether the learner knows its dimensions, and so can encode."""
        return "dimensions_" in vars(self)

    def start(self, dimensions: int) -> Self:
        """Begin without data: codes are those of the initial projection until rows come."""
        if dimensions < 1:
            raise InputError(f"dimensions must be at least 1, not {dimensions}")
        self._check_parameters()
        self._begin(dimensions)
        self.vocabulary_ = Vocabulary()
        self.warm_rows_ = WarmRows.none(dimensions, self._dtype)
        self.rows_seen_ = self.rows_skipped_ = self.version_ = 0
        self.dimensions_ = dimensions
        return self

    def _begin(self, dimensions: int) -> None:
        self.rng_ = np.random.Generator(np.random.PCG64(self.seed))
        self.mean_ = np.zeros(dimensions)
        try:
            self.dimensions_ = dimensions
            self._restart()
        except BaseException:
            vars(self).pop("dimensions_", None)
            raise

    def partial_fit(self, X: npt.ArrayLike, Y: Labels = None, keys: npt.ArrayLike | None = None) -> Self:
        """Learn from a batch of rows (n, d); NaN or infinity is an error and leaves the learner as it was.

        `Y` is read by `foh_pg.arrays.vocabulary.Vocabulary`; rows without labels are counted, and take
        no part. `keys` are what the caller knows the rows by: see `forget_keys`.
        """
        rows = check_rows(X, self.dimensions_ if self.started else None, self._dtype)
        known = self.vocabulary_ if self.started else Vocabulary()
        sets, vocabulary = known.read(Y, len(rows))
        names = check_keys(keys, len(rows), self.rows_seen_ if self.started else 0)
        self._check_batch(names)
        if not self.started:
            self.start(rows.shape[1])
        self.vocabulary_ = vocabulary
        self.rows_seen_ += len(rows)
        if self.supervised and not sets.counts.all():
            labelled = np.flatnonzero(sets.counts)
            self.rows_skipped_ += len(rows) - len(labelled)
            rows, sets, names = rows[labelled], sets.take(labelled), names[labelled]
        if len(rows):
            self._feed(rows, sets, names)
        return self

    def _check_batch(self, keys: KeyArray) -> None:
        """Raise InputError for keys that cannot join those kept so far."""
        for kept in self._kept_rows().values():
            join_keys(kept.keys, keys)

    def _feed(self, rows: FloatArray, sets: LabelSets, keys: KeyArray) -> None:
        if self.warm_rows_ is None:
            self._learn(self._prepare(rows), sets, keys)
        else:
            # Until the mean is worth freezing, every batch starts afresh on all rows so far: the first stages
            # then do not depend on how the rows were cut into batches.
            warm = self.warm_rows_.append(rows, sets, keys)
            self._begin(self.dimensions_)
            if self.center:
                self.mean_ = warm.rows.mean(axis=0, dtype=np.float64)
            self._learn(self._prepare(warm.rows), warm.sets, warm.keys)
            self.warm_rows_ = warm if len(warm) < self._warmup_rows() else None
        self.version_ += 1

    def _prepare(self, rows: FloatArray) -> FloatArray:
        """Center rows and scale them to length one, as the learner was told."""
        prepared = rows - self.mean_.astype(rows.dtype) if self.center else rows
        if not self.normalize:
            return prepared
        lengths = np.sqrt(np.einsum("ij,ij->i", prepared, prepared))
        lengths[lengths == 0] = 1
        scaled: FloatArray = prepared / lengths[:, None]
        return scaled

    def _serve(self, projection: npt.NDArray[np.floating[Any]]) -> None:
        """Make `projection` what `encode` uses."""
        self.projection_ = np.asarray(projection, dtype=np.float64)
        # The bias belongs to the weights as they are stored, in single precision.
        self.bias_ = self.mean_ @ self.projection_.astype(np.float32).astype(np.float64)

    def forget_keys(self, keys: npt.ArrayLike) -> int:
        """Drop deleted or relabelled rows from what is kept of past rows; return how many were there.

        What was learned from them stays until the learner forgets it or is trained from the start.
        """
        dropped = 0
        for name, kept in self._kept_rows().items():
            left = kept.without(np.asarray(keys))
            setattr(self, name, left)
            # While the learner warms up, the same rows are in both places.
            dropped = max(dropped, len(kept) - len(left))
        return dropped

    def _kept_rows(self) -> dict[str, KeptRows]:
        """Past rows that the learner has, by the attribute that holds them."""
        found = {name: vars(self).get(name) for name in ("warm_rows_", *self._kept)}
        return {name: kept for name, kept in found.items() if kept is not None}

    def stand_for(self, rows: int) -> bool:
        """Take what was learned so far as a sample of `rows` rows; return whether the learner can."""
        return False

    # -- encoding ------------------------------------------------------------------------------------------

    def encode(self, X: npt.ArrayLike, Y: Labels = None) -> codes.CodeArray:
        """Encode rows (n, d) as packed codes.

        `Y` is given for stored rows: if the learner has a label projection, their codes lean on their labels.
        Names that the learner never met are ignored.
        """
        if not self.started:
            raise InputError("the learner has seen no row: call partial_fit or start first")
        rows = check_rows(X, self.dimensions_, np.float32)
        sets = None if Y is None else self.vocabulary_.find(Y, len(rows))
        return self._encode(rows, sets)

    def _encode(self, rows: npt.NDArray[np.float32], sets: LabelSets | None) -> codes.CodeArray:
        """Codes of checked rows, in single precision as in the database."""

        def lean(chunk: slice, scores: npt.NDArray[Any]) -> None:
            assert sets is not None
            anchor = self._anchor(rows[chunk], sets.take(np.arange(len(rows))[chunk]))
            if anchor is not None:
                scores += anchor

        weights, bias = self.projection_.astype(np.float32), self.bias_.astype(np.float32)
        return hashing.encode(rows, weights, bias, None if sets is None else lean)

    def _anchor(self, rows: npt.NDArray[np.float32], sets: LabelSets) -> npt.NDArray[np.float32] | None:
        """Return what the labels of stored rows add to their scores; None where labels play no part."""
        return None

    @property
    def label_names_(self) -> tuple[str, ...]:
        """Label names in the order of the columns of a label projection."""
        return self.vocabulary_.names
