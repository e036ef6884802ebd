"""Encoding in the client, as the server's `encode` does: for vectors too long to be sent with every query."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foh_pg import hashing
from foh_pg.arrays.codes import unpack
from foh_pg.errors import InputError
from foh_pg.hashing import Geometry
from foh_pg.postgres.code import Code
from foh_pg.postgres.vectors import as_float32, parse_vector


class HashFunctions(NamedTuple):
    """What makes the bits of a query in one version of an index.

    `geometry` makes the geometry bits; None where the index has none. Bit n of the learned code is 1 where
    ``weights[n] @ query >= bias[n]``.
    """

    version: int
    weights: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float64]
    geometry: Geometry | None

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[Any, ...]], distance: str) -> HashFunctions:
        """From (version, weights, bias, bits, threshold, signs) in binary, a row for each bit of the code.

        The last three describe the geometry bits and stand in the first row alone.
        """
        versions, weights, bias, bits, threshold, signs = zip(*rows, strict=True)
        geometry = None
        if bits[0]:
            unit = distance == "cosine"
            geometry = Geometry(parse_vector(threshold[0]), parse_vector(signs[0]), bits[0], unit)
        return cls(versions[0], np.stack([parse_vector(row) for row in weights]), np.array(bias), geometry)

    def encode(self, query: npt.ArrayLike) -> Code:
        """The bits of a query: geometry bits, then the learned code."""
        vector = as_float32(query, 1)
        if len(vector) != self.weights.shape[1]:
            raise InputError(f"the index has {self.weights.shape[1]} dimensions, the query has {len(vector)}")
        [bits] = unpack(hashing.encode(vector[None], self.weights.T, self.bias), len(self.bias))
        if self.geometry is not None:
            [near] = unpack(self.geometry.encode(vector[None]), self.geometry.bits)
            bits = np.concatenate([near, bits])
        return Code(np.packbits(bits), len(bits))
