"""What all learners have in common: input, warm-up, encoding, saved state.

A learner turns rows into codes and gets better with every batch. A subclass stores its hyper-parameters
verbatim in `__init__` (without calling `super().__init__`), and implements

- `_restart()`: set every learned attribute to its beginning, drawing from `self.rng_` only;
- `_learn(rows, sets, keys)`: one stage on prepared (centered, scaled) rows, ending with `self._serve(W)`.

Learned attributes end with an underscore. Arrays, numbers, strings, None, generators and the classes named in
`_parts` are saved and restored without further code. `foh_pg.learners.checks` tests every learner alike.
"""

from __future__ import annotations

import inspect
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from foh_pg import hashing
from foh_pg.arrays import codes
from foh_pg.arrays.labels import LabelSets
from foh_pg.arrays.vocabulary import Labels, Vocabulary
from foh_pg.errors import InputError, StateError
from foh_pg.learners import registry
from foh_pg.learners.rows import FloatArray, KeyArray, WarmRows, check_keys, check_rows, join_keys
from foh_pg.learners.state import (
    Part,
    State,
    load_state,
    rng_from_array,
    rng_to_array,
    save_state,
    seal,
    unseal,
)

if TYPE_CHECKING:
    from typing_extensions import Self


class Learner(ABC):
    """Base of all learners.

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

    name: ClassVar[str] = ""
    supervised: ClassVar[bool] = True
    # Whether codes are signs of a linear function of the row, as an index stores it.
    linear: ClassVar[bool] = True
    _parts: ClassVar[Mapping[str, type[Part]]] = {"vocabulary_": Vocabulary, "warm_rows_": WarmRows}
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
        """Learn from a batch.

        Parameters
        ----------
        X : array (n, d)
            The rows. NaN or infinity is an error and leaves the learner as it was.
        Y : label sets, names, a multi-hot array (n, c) or None
            The labels, see `foh_pg.arrays.vocabulary.Vocabulary`. Rows without any are counted and take no
            part.
        keys : 1-d array of integers or strings, optional
            What the caller knows the rows by; see `forget_keys`.
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
        if self.started and self.warm_rows_ is not None:
            join_keys(self.warm_rows_.keys, keys)

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
        """Drop deleted or relabelled rows from what is kept of past rows; return how many were there."""
        if not self.started or self.warm_rows_ is None:
            return 0
        before = len(self.warm_rows_)
        self.warm_rows_ = self.warm_rows_.without(np.asarray(keys))
        return before - len(self.warm_rows_)

    def stand_for(self, rows: int) -> bool:
        """Take what was learned so far as a sample of `rows` rows; return whether the learner can."""
        return False

    # -- encoding ------------------------------------------------------------------------------------------

    def encode(self, X: npt.ArrayLike, Y: Labels = None) -> codes.CodeArray:
        """Encode rows.

        Parameters
        ----------
        X : array (n, d)
            The rows.
        Y : label sets, names, a multi-hot array or None
            Given for stored rows: where the learner has a label projection their codes lean on their labels.
            Names it never met are ignored.

        Returns
        -------
        array (n, ceil(bits / 8)) of uint8
            Packed codes.
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

    # -- saved state ---------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        """Hyper-parameters as given."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def set_parameters(self, **changed: Any) -> Self:
        """Change hyper-parameters of a learner that goes on; what it has learned stays.

        A value that makes no sense is an InputError and leaves the learner as it was.
        """
        before = self.parameters()
        unknown = sorted(changed.keys() - before.keys())
        if unknown:
            raise InputError(f"{type(self).__name__} has no parameter {unknown[0]!r}")
        vars(self).update(changed)
        try:
            self._check_parameters()
        except InputError:
            vars(self).update(before)
            raise
        return self

    def state(self, without: Collection[str] = ()) -> State:
        """Give everything as a flat dict of plain arrays with a format version.

        Parameters
        ----------
        without : names of attributes
            Parts that the caller keeps elsewhere and hands back to `from_state`.

        Examples
        --------
        >>> from foh_pg.learners import RandomHyperplanes
        >>> learner = RandomHyperplanes(bits=8).start(4)
        >>> restored = RandomHyperplanes.from_state(learner.state())
        >>> bool((restored.projection_ == learner.projection_).all())
        True
        """
        arrays: State = {"learner": np.array(self.name)}
        plain = {}
        for name, value in self.parameters().items():
            if isinstance(value, (np.ndarray, list, tuple)):
                arrays[f"parameter/{name}"] = np.asarray(value)
            else:
                plain[name] = value.item() if isinstance(value, np.generic) else value
        arrays["parameters"] = np.array(json.dumps(plain))
        learned = {name: value for name, value in vars(self).items() if name.endswith("_")}
        arrays["elsewhere"] = np.array(json.dumps(sorted(without)))
        for name in without:
            del learned[name]
        arrays["absent"] = np.array(json.dumps([name for name, value in learned.items() if value is None]))
        for name, value in learned.items():
            if value is not None:
                arrays.update(self._pack_attribute(name, value))
        return seal(arrays)

    def _pack_attribute(self, name: str, value: Any) -> State:
        if name in self._parts:
            return {f"part/{name}/{key}": array for key, array in value.to_arrays().items()}
        if isinstance(value, np.random.Generator):
            return {f"rng/{name}": rng_to_array(value)}
        return {f"learned/{name}": np.asarray(value)}

    @classmethod
    def from_state(cls, saved: Mapping[str, Any], **parts: Any) -> Self:
        """Restore a learner, bit for bit: its next stage is the one the saved learner would have made.

        `parts` are the attributes that the state was taken without.
        """
        arrays = unseal(saved)
        try:
            found = registry.get(str(arrays.pop("learner")))
            if not issubclass(found, cls):
                raise StateError(f"this is the state of a {found.__name__}, not of a {cls.__name__}")
            parameters = json.loads(str(arrays.pop("parameters")))
            for key in [key for key in arrays if key.startswith("parameter/")]:
                parameters[key.removeprefix("parameter/")] = arrays.pop(key)
            elsewhere = json.loads(str(arrays.pop("elsewhere")))
            if sorted(parts) != elsewhere:
                raise StateError(f"the state was taken without {elsewhere}, it was given {sorted(parts)}")
            learner = found(**parameters)
            learner._unpack(arrays)
            vars(learner).update(parts)
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the state does not fit this version of foh_pg: {error}") from error
        return learner

    def _unpack(self, arrays: State) -> None:
        for name in json.loads(str(arrays.pop("absent"))):
            setattr(self, name, None)
        parts: dict[str, State] = {}
        for key, array in arrays.items():
            kind, name, *rest = key.split("/")
            if kind == "part":
                parts.setdefault(name, {})[rest[0]] = array.copy()
            elif kind == "rng":
                setattr(self, name, rng_from_array(array))
            else:
                setattr(self, name, array.item() if array.shape == () else array.copy())
        for name, part in parts.items():
            setattr(self, name, self._parts[name].from_arrays(part))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one npz file, without pickle."""
        save_state(path, self.state())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        return cls.from_state(load_state(path))
