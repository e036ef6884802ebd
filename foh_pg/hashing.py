"""The one encoder: learned codes and geometry bits of rows and queries, for learners, updater and client.

A learned code has a bit for each hyperplane. Geometry bits keep the direction of an embedding, by pgvector's
`binary_quantize` alone: a bit is 1 where a number of the embedding lies above its threshold. With few
dimensions each number has several thresholds (copies), with many several numbers share one bit (they are
folded). The thresholds stay while the centers stay, so these bits never change unless the row does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray, pack, width
from foh_pg.errors import InputError

Vectors = npt.NDArray[np.float32]

# Rows that are encoded at a time, so that scores of a large table never exist at once.
CHUNK_ROWS = 8192

# Adds what the labels of some rows (a slice of all) add to the scores of these rows, in place.
Lean = Callable[[slice, npt.NDArray[Any]], None]


def chunks(rows: int) -> Iterator[slice]:
    """Pieces of as many rows as are encoded at a time."""
    return (slice(start, start + CHUNK_ROWS) for start in range(0, rows, CHUNK_ROWS))


def encode(
    rows: npt.NDArray[Any], weights: npt.NDArray[Any], bias: npt.NDArray[Any], lean: Lean | None = None
) -> CodeArray:
    """Packed codes: bit j of a row x is 1 where ``x @ weights[:, j] - bias[j] + what the labels add >= 0``.

    Examples
    --------
    >>> rows = np.array([[1, 0], [0, 1]], dtype=np.float32)
    >>> encode(rows, np.eye(2, dtype=np.float32), np.array([0.5, 0])) >> 6
    array([[3],
           [1]], dtype=uint8)
    """
    packed = np.empty((len(rows), width(weights.shape[1])), dtype=np.uint8)
    for chunk in chunks(len(rows)):
        scores = rows[chunk] @ weights - bias
        if lean is not None:
            lean(chunk, scores)
        packed[chunk] = pack(scores >= 0)
    return packed


def lengths(rows: Vectors, mean: Vectors) -> Vectors:
    """The distances of rows from the mean, in single precision as the database has them."""
    centered = rows - mean
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", centered, centered)))


@dataclass(frozen=True)
class Geometry:
    """How geometry bits are made; the same arithmetic as sql/index/write/place.sql, in single precision."""

    # Shape (copies * d,).
    threshold: Vectors
    # Shape (d,). -1 or 1; matter only where dimensions are folded.
    signs: Vectors
    bits: int
    # Embeddings are scaled to length one first (cosine).
    unit: bool

    @property
    def dimensions(self) -> int:
        return len(self.signs)

    @property
    def copies(self) -> int:
        """Thresholds per dimension."""
        return copies_of(self.bits, self.dimensions)

    @property
    def fold(self) -> int:
        """Dimensions per bit; 1 where none are folded."""
        return -(-self.dimensions // self.bits) if self.bits < self.dimensions else 1

    @classmethod
    def plain(cls, dimensions: int, bits: int, metric: str) -> Geometry:
        """Thresholds of zero: what an index has before any row."""
        zeros = np.zeros(copies_of(bits, dimensions) * dimensions, dtype=np.float32)
        return cls(zeros, np.ones(dimensions, dtype=np.float32), bits, metric == "cosine")

    @classmethod
    def fit(cls, rows: npt.NDArray[Any], bits: int, metric: str, seed: int) -> Geometry:
        """Thresholds from a sample: its mean, or quantiles of each dimension where that has several.

        Examples
        --------
        >>> rows = np.array([[1, 2], [3, 2], [3, 2], [1, 8]], dtype=np.float32)
        >>> made = Geometry.fit(rows, 2, "l2", seed=0)
        >>> made.threshold
        array([2. , 3.5], dtype=float32)
        >>> made.encode(rows)[:, 0] >> 6
        array([0, 2, 2, 1], dtype=uint8)
        """
        given = np.asarray(rows, dtype=np.float32)
        if given.ndim != 2 or len(given) == 0:
            raise InputError(f"thresholds cannot be found in an array of shape {given.shape}")
        dimensions = given.shape[1]
        copies = copies_of(bits, dimensions)
        unit = metric == "cosine"
        if unit:
            given = _unit(given)
        if copies == 1:
            threshold = given.mean(axis=0, dtype=np.float64)
        else:
            at = (np.arange(copies) + 0.5) / copies
            threshold = np.quantile(given.astype(np.float64), at, axis=0).reshape(-1)
        signs = np.ones(dimensions, dtype=np.float32)
        if bits < dimensions:
            signs = np.random.default_rng([seed, bits]).choice(
                np.array([-1, 1], dtype=np.float32), dimensions
            )
        return cls(threshold.astype(np.float32), signs, bits, unit)

    def encode(self, rows: npt.NDArray[Any]) -> CodeArray:
        """Packed geometry bits of rows."""
        given = np.asarray(rows, dtype=np.float32)
        packed = np.empty((len(given), width(self.bits)), dtype=np.uint8)
        for chunk in chunks(len(given)):
            part = given[chunk]
            packed[chunk] = pack(self._bits(_unit(part) if self.unit else part))
        return packed

    def _bits(self, rows: Vectors) -> npt.NDArray[np.bool_]:
        fold = self.fold
        if fold == 1:
            above = rows[:, None, :] > self.threshold.reshape(self.copies, -1)
            return np.asarray(above.reshape(len(rows), -1))
        signed = (rows - self.threshold) * self.signs
        padded = np.zeros((len(rows), fold * self.bits), dtype=np.float32)
        padded[:, : self.dimensions] = signed
        # One piece after the other, in single precision, as pgvector adds vectors.
        total = padded[:, : self.bits].copy()
        for piece in range(1, fold):
            total += padded[:, piece * self.bits : (piece + 1) * self.bits]
        return np.asarray(total > 0)

    # -- saved form ----------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {
            "threshold": self.threshold,
            "signs": self.signs,
            "bits": np.array(self.bits),
            "unit": np.array(self.unit),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Geometry:
        return cls(arrays["threshold"], arrays["signs"], int(arrays["bits"]), bool(arrays["unit"]))


def copies_of(bits: int, dimensions: int) -> int:
    """Thresholds per dimension: as many as there are bits for."""
    if bits < 1:
        raise InputError(f"geometry needs at least 1 bit, not {bits}")
    if bits > dimensions and bits % dimensions:
        raise InputError(f"{bits} geometry bits are not a multiple of {dimensions} dimensions")
    return max(1, bits // dimensions)


def _unit(rows: Vectors) -> Vectors:
    """What pgvector's l2_normalize gives: the length in double precision, the quotients in single."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))[:, None]
    scaled = np.divide(rows, lengths, out=np.zeros(rows.shape), where=lengths > 0)
    return np.asarray(scaled, dtype=np.float32)
