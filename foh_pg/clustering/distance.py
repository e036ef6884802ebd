"""What "nearest" means to k-means: the cosine for cosine, else the Euclidean distance.

The mean with the largest inner product says little about where a row belongs, for long means attract every
row. So an index for inner products gives its rows one more number, and compares them by the cosine (see
foh_pg/geometry.py).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Metric = Literal["cosine", "l2", "ip"]
Rows = npt.NDArray[np.floating[Any]]
Values = npt.NDArray[np.float32]


def unit(rows: Values) -> Values:
    """Scale to length one; a row of zeros has no direction and stays as it is."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0))


def nearness(rows: Values, centers: Values, metric: Metric) -> Values:
    """A number that is larger the nearer a center is to a row; it compares only centers of the same row.

    For cosine the inner product with the center as it is stored, at length one; else minus half of the
    squared distance, less the row's part of it.
    """
    products: Values = rows @ centers.T
    if metric != "cosine":
        products -= 0.5 * np.einsum("ij,ij->i", centers, centers)
    return products
