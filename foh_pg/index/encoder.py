"""Encoding in the client, as the server's `encode` does: for vectors too long to be sent with every query."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foh_pg.database.code import Code
from foh_pg.errors import InputError
from foh_pg.index.vectors import as_float32, parse_vector

# Raised by the server where a code was made for another version than the present one.
OTHER_VERSION = "FH002"


class HashFunctions(NamedTuple):
    """The hash functions of one version of an index."""

    version: int
    weights: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float64]

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[Any, ...]]) -> HashFunctions:
        """From (version, number, weights, bias) in binary, one row per bit in the order of the bits."""
        versions, _, weights, bias = zip(*rows, strict=True)
        return cls(versions[0], np.stack([parse_vector(row) for row in weights]), np.array(bias))

    def encode(self, query: npt.ArrayLike) -> Code:
        vector = as_float32(query, 1)
        if len(vector) != self.weights.shape[1]:
            raise InputError(f"the index has {self.weights.shape[1]} dimensions, the query has {len(vector)}")
        return Code(np.packbits(self.weights @ vector >= self.bias), len(self.bias))
