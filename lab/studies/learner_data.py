"""Labelled data for the figures of the learner: files, splits and a synthetic set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.errors import InputError

BATCH = 2000


@dataclass(frozen=True)
class Data:
    """Rows and labels: class numbers (n,) or multi-hot (n, c)."""

    name: str
    X: npt.NDArray[Any]
    Y: npt.NDArray[Any]

    @property
    def multi_label(self) -> bool:
        """Whether rows have several labels."""
        return self.Y.ndim == 2


@dataclass(frozen=True)
class Split:
    """Positions of queries, base and stream; queries are in neither of the others."""

    queries: npt.NDArray[np.int64]
    base: npt.NDArray[np.int64]
    stream: npt.NDArray[np.int64]


def read(path: Path) -> Data:
    """Read an npz with `X` and `Y` (class numbers or multi-hot), or `Y_packed` and `labels`."""
    with np.load(path, allow_pickle=False) as file:
        if "X" not in file or ("Y" not in file and "Y_packed" not in file):
            raise InputError(f"{path} has no arrays X and Y")
        X = file["X"]
        if "Y" in file:
            return Data(path.stem, X, file["Y"])
        packed = file["Y_packed"]
        return Data(path.stem, X, np.unpackbits(packed, axis=1, count=int(file["labels"])))


def split(data: Data, seed: int) -> Split:
    """Split as the paper does.

    Single-label: 1 000 queries, 20 000 rows of the rest are the stream. Multi-label: 2 000 queries, the rest
    is base and stream.
    """
    order = np.random.default_rng(seed).permutation(len(data.X))
    queries = 2000 if data.multi_label else 1000
    base = order[queries:]
    return Split(order[:queries], base, base if data.multi_label else base[:20_000])


def synthetic(labels: int, rows: int = 21_000, dimensions: int = 128, seed: int = 0) -> Data:
    """Draw clusters around one center per label, more spread in some directions than in others."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((labels, dimensions)) * rng.standard_normal(dimensions) ** 2
    Y = rng.integers(labels, size=rows)
    X = centers[Y] + 2 * rng.standard_normal((rows, dimensions))
    return Data(f"{labels} labels", X.astype(np.float32), Y)
