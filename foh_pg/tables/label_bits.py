"""The chance that a row has a label, by a linear model of the projections: one number for each signature bit.

Label number n sets bit `n % 64` of a row's signature. A ridge regression of these bits on
`z / |x - mean|`, with `z` the projections of a query, guesses them from the embedding alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

SIGNATURE_BITS = 64
SIGNATURE_BYTES = SIGNATURE_BITS // 8

# The share of earlier sums that a stage keeps: their projections were made by older hash functions.
DECAY = 0.9

# As a share of the mean square of the projections.
RIDGE = 1e-3

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LabelBits:
    """Chance of signature bit b = ``weights[b] . z / |x - mean| + bias[b]``.

    Attributes
    ----------
    weights : array (64, bits)
    bias : array (64,)
    squares, products : arrays (bits + 1, bits + 1) and (bits + 1, 64)
        Sums over the rows seen, of the inputs (a one at their end) with themselves and with the bits.
    """

    weights: npt.NDArray[np.float32]
    bias: Floats
    squares: Floats
    products: Floats

    @classmethod
    def fit(cls, inputs: npt.NDArray[np.float32], signatures: npt.NDArray[np.uint8]) -> LabelBits:
        """Learn from rows.

        Parameters
        ----------
        inputs : array (n, bits)
            `z / |x - mean|`.
        signatures : array (n, 8)
        """
        extended = _extended(inputs)
        wanted = np.unpackbits(signatures, axis=1).astype(np.float64)
        squares, products = extended.T @ extended, extended.T @ wanted
        return cls(*_solve(squares, products), squares, products)

    def refine(
        self,
        old_inputs: npt.NDArray[np.float32],
        inputs: npt.NDArray[np.float32],
        signatures: npt.NDArray[np.uint8],
    ) -> LabelBits:
        """Go on with the rows of another stage, whose hash functions are new.

        The sums are of projections by older hash functions. The rows at hand have both, and tell which linear
        map leads from the old ones to the new; the sums are taken through it.

        Parameters
        ----------
        old_inputs, inputs : arrays (n, bits)
            `z / |x - mean|` by the hash functions before, and by those from now on.
        signatures : array (n, 8)
        """
        new = LabelBits.fit(inputs, signatures)
        if self.squares.shape != new.squares.shape:
            return new
        old = _extended(old_inputs)
        # With few rows at hand, the projections are taken as unchanged.
        shrink = np.diag(np.full(len(self.squares), np.trace(old.T @ old) / len(old) + 1e-9))
        change = np.linalg.solve(old.T @ old + shrink, old.T @ (_extended(inputs) - old))
        step = np.eye(len(change)) + change
        squares = new.squares + DECAY * step.T @ self.squares @ step
        products = new.products + DECAY * step.T @ self.products
        return LabelBits(*_solve(squares, products), squares, products)

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """Signature bits that any row had."""
        return np.asarray(self.products.any(axis=0), dtype=bool)

    def chances(self, inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """(n, 64): the chance of each signature bit."""
        return np.asarray(inputs @ self.weights.T + self.bias.astype(np.float32))

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {
            "weights": self.weights,
            "bias": self.bias,
            "squares": self.squares.astype(np.float32),
            "products": self.products.astype(np.float32),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> LabelBits:
        return cls(
            arrays["weights"],
            arrays["bias"],
            arrays["squares"].astype(np.float64),
            arrays["products"].astype(np.float64),
        )


def _extended(inputs: npt.NDArray[np.float32]) -> Floats:
    """Inputs with a one at their end, for the constant."""
    extended = np.ones((len(inputs), inputs.shape[1] + 1))
    extended[:, :-1] = inputs
    return extended


def _solve(squares: Floats, products: Floats) -> tuple[npt.NDArray[np.float32], Floats]:
    """Ridge regression from sums; the constant at the end is not shrunk."""
    bits = len(squares) - 1
    shrink = RIDGE * max(float(np.trace(squares[:-1, :-1])) / max(bits, 1), 1e-9)
    penalty = np.full(bits + 1, shrink)
    penalty[-1] = 1e-9 * max(squares[-1, -1], 1.0)
    found = np.linalg.solve(squares + np.diag(penalty), products)
    return np.ascontiguousarray(found[:-1].T, dtype=np.float32), found[-1]
