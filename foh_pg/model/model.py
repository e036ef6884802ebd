"""The hash functions that an index serves: what the SQL of a trigger computes, for many rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse  # type: ignore[import-untyped]

from foh_pg import clustering, hashing
from foh_pg.arrays.codes import CodeArray, pack
from foh_pg.arrays.labels import LabelSets
from foh_pg.geometry import Geometry, Layout, Vectors
from foh_pg.learners import Learner
from foh_pg.model.ranking import Ranking
from foh_pg.model.signature import SIGNATURE_BITS, SIGNATURE_BYTES
from foh_pg.postgres.binary_copy import Ragged

__all__ = ["Model", "Vectors", "label_lists", "typical_distance"]


@dataclass(frozen=True)
class Model:
    """Bit j is 1 where ``weights[j] . x - bias[j] + label_weight |x - mean| (what labels add)[j] >= 0``."""

    # Shape (bits, d).
    weights: Vectors
    # Shape (bits,).
    bias: npt.NDArray[np.float64]
    # Shape (d,).
    mean: Vectors
    # A typical distance of a row from the mean; 1 for cosine.
    scale: float = 1.0
    # Whether the hash functions were learned from labels.
    trained: bool = False
    label_weight: float = 1.0
    # The dictionary; a label's position is its number.
    labels: tuple[str, ...] = ()
    # Shape (labels, bits). What a label adds; a row of zeros where it takes no part.
    label_projection: Vectors = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    # How geometry bits are made; None in a model that was just learned, until rows are placed by it.
    geometry: Geometry | None = None
    ranking: Ranking = field(default_factory=Ranking)
    # The index has labels: marks begin with a signature of them.
    signed: bool = False

    @property
    def bits(self) -> int:
        return len(self.weights)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of each label."""
        return {name: i for i, name in enumerate(self.labels)}

    @cached_property
    def takes_part(self) -> npt.NDArray[np.bool_]:
        """Which labels add anything."""
        return np.asarray(self.label_projection.any(axis=1), dtype=bool)

    @classmethod
    def of_learner(cls, learner: Learner, label_weight: float, scale: float) -> Model:
        """The model that a learner has learned."""
        names = learner.label_names_
        projection = np.zeros((len(names), learner.bits), dtype=np.float32)
        learned = getattr(learner, "anchor_projection_", None)
        if learned is not None:
            # Labels that no stage has learned from have no column yet.
            projection[: learned.shape[1]] = learned.T[: len(names)]
        return cls(
            weights=np.ascontiguousarray(learner.projection_.T, dtype=np.float32),
            bias=np.asarray(learner.bias_, dtype=np.float64),
            mean=learner.mean_.astype(np.float32),
            scale=scale,
            trained=learner.supervised,
            label_weight=label_weight,
            labels=names,
            label_projection=projection,
        )

    @classmethod
    def random(cls, mean: npt.NDArray[Any], bits: int, seed: int, scale: float = 1.0) -> Model:
        """Random hyperplanes through the mean: what to serve where there is nothing to learn from."""
        drawn = np.random.default_rng([seed, bits]).standard_normal((bits, len(mean)))
        weights = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
        return cls(weights, weights.astype(np.float64) @ mean, mean.astype(np.float32), scale)

    # -- encoding ------------------------------------------------------------------------------------------

    def encode(self, rows: Vectors, labels: Ragged | None = None) -> CodeArray:
        """Packed codes of rows; with their labels for rows that are stored, without for queries."""
        anchors: Any = None if labels is None else self._anchors(labels)

        def lean(chunk: slice, scores: Vectors) -> None:
            part = anchors[chunk]
            leaning = np.flatnonzero(np.diff(part.indptr))
            away = hashing.lengths(rows[chunk][leaning], self.mean)[:, None]
            scores[leaning] += np.float32(self.label_weight) * away * (part[leaning] @ self.label_projection)

        bias = self.bias.astype(np.float32)
        return hashing.encode(rows, self.weights.T, bias, None if anchors is None else lean)

    def geometry_bits(self, rows: Vectors) -> CodeArray:
        """Packed geometry bits of rows."""
        assert self.geometry is not None
        return self.geometry.encode(rows)

    def levels(self, rng: np.random.Generator, rows: Vectors, centers: int) -> clustering.BitLevels:
        """Areas and centers for rows, by their geometry bits."""
        assert self.geometry is not None
        compared = self.geometry.compared(rows)
        made = clustering.make_levels(
            rng, compared, centers, "l2" if self.geometry.metric == "l2" else "cosine"
        )
        return clustering.by_bits(made, compared, self.geometry)

    def query_looks(self, queries: Vectors) -> tuple[CodeArray, CodeArray, CodeArray]:
        """Packed geometry bits of queries, and those of the same numbers moved up and moved down."""
        assert self.geometry is not None
        return self.geometry.query_looks(queries)

    @property
    def layout(self) -> Layout:
        """How the geometry bits are shared out to numbers."""
        assert self.geometry is not None
        return self.geometry.layout

    def marks(self, rows: Vectors, labels: Ragged) -> CodeArray:
        """What a list holds of rows beside their geometry: the signature of their labels, then their code."""
        codes = self.encode(rows, labels)
        return np.concatenate([self.signatures(labels), codes], axis=1) if self.signed else codes

    def codes_of(self, marks: CodeArray) -> CodeArray:
        """The learned codes in marks."""
        return marks[:, SIGNATURE_BYTES:] if self.signed else marks

    def signatures(self, labels: Ragged) -> CodeArray:
        """Bit `number % 64` is 1 for each label of a row that the dictionary has."""
        bits = np.zeros((labels.rows, SIGNATURE_BITS), dtype=bool)
        rows, numbers = self._known(labels)
        bits[rows, numbers % SIGNATURE_BITS] = True
        return pack(bits)

    def _anchors(self, labels: Ragged) -> Any:
        """Which label each row has, as a sparse matrix of zeros and ones; None where labels add nothing."""
        if self.label_weight == 0 or not self.takes_part.any():
            return None
        rows, numbers = self._known(labels)
        used = self.takes_part[numbers]
        ones = np.ones(np.count_nonzero(used), dtype=np.float32)
        shape = (labels.rows, len(self.labels))
        matrix = sparse.csr_matrix((ones, (rows[used], numbers[used])), shape=shape)
        # A name that a row has twice counts once.
        matrix.sum_duplicates()
        matrix.data[:] = 1
        return matrix

    def _known(self, labels: Ragged) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The row and the number of each label that the dictionary has."""
        numbers, names = self.numbers, labels.values.tolist()
        found = np.fromiter((numbers.get(name, -1) for name in names), dtype=np.int64, count=len(names))
        return np.repeat(np.arange(labels.rows), labels.lengths)[found >= 0], found[found >= 0]

    # -- saved form ----------------------------------------------------------------------------------------

    @classmethod
    def restored(cls, saved: Mapping[str, Any], label_weight: float, signed: bool) -> Model:
        """A model as `flatten` saved it, with what the index says now."""
        geometry = saved["geometry"] and Geometry(**saved["geometry"])
        known = {"geometry": geometry, "ranking": Ranking.from_dict(saved["ranking"])}
        return cls(**{**saved, **known, "label_weight": label_weight, "signed": signed})


def typical_distance(rows: Vectors, mean: npt.NDArray[Any]) -> float:
    """The mean distance of rows from the mean; 1 where all are equal."""
    if len(rows) == 0:
        return 1.0
    distance = float(hashing.lengths(rows, mean.astype(np.float32)).mean())
    return distance if np.isfinite(distance) and distance > 0 else 1.0


def label_lists(labels: Ragged) -> Iterator[list[str]]:
    """The labels of each row, as learners take them."""
    return (row.tolist() for row in labels.each())


def label_sets(*several: Ragged) -> tuple[list[str], list[LabelSets]]:
    """The names of all labels, sorted, and the labels of each of several tables by their places there."""
    names = sorted({name for labels in several for name in labels.values.tolist()})
    numbers = {name: number for number, name in enumerate(names)}
    return names, [LabelSets.named(label_lists(labels), numbers) for labels in several]
