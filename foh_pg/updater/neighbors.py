"""The pool of the paper: besides the rows whose home it is, a center holds the rows nearest to it (Eq. 7)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foh_pg import pool
from foh_pg.codes import CodeArray, width
from foh_pg.updater.centers import Centers
from foh_pg.updater.description import Index
from foh_pg.updater.keys import KeyArray
from foh_pg.updater.lists import Entries
from foh_pg.updater.model import Vectors

IntArray = npt.NDArray[np.int64]


class Neighbors:
    """The nearest rows of every center among all that were shown so far."""

    def __init__(self, index: Index, centers: Centers, scale: float) -> None:
        self.index = index
        self.centers = centers
        self.keep = int(index.options["neighbors"])
        self.blend = index.blend(scale)
        self.of: IntArray = np.zeros(0, dtype=np.int64)
        self.values = np.zeros(0, dtype=np.float32)
        self.keys: KeyArray = index.keys.empty()
        self.codes: CodeArray = np.zeros((0, width(index.bits)), dtype=np.uint8)
        self.home = np.zeros(0, dtype=bool)

    def add(self, keys: KeyArray, codes: CodeArray, rows: Vectors, homes: IntArray) -> None:
        """Show some rows; `homes` are positions of centers (n, homes)."""
        if len(keys) == 0 or len(self.centers) == 0 or self.keep == 0:
            return
        index, centers = self.index, self.centers
        found = pool.find_neighbors(
            centers.codes,
            centers.rows,
            codes,
            rows,
            bits=index.bits,
            neighbors=self.keep,
            metric=index.distance,
            blend=self.blend,
        )
        of, row = np.repeat(np.arange(len(centers)), found.shape[1]), found.reshape(-1)
        values = pool.blend_rows(
            codes[row],
            rows[row],
            centers.codes[of],
            centers.rows[of],
            bits=index.bits,
            metric=index.distance,
            blend=self.blend,
        )
        of, values = np.concatenate([self.of, of]), np.concatenate([self.values, values])
        kept = pool.keep_nearest(of, values, self.keep)
        at_home = (homes[row] == of[len(self.of) :, None]).any(axis=1)
        self.home = np.concatenate([self.home, at_home])[kept]
        self.keys = np.concatenate([self.keys, keys[row]])[kept]
        self.codes = np.concatenate([self.codes, codes[row]])[kept]
        self.of, self.values = of[kept], values[kept]

    def entries(self) -> Entries:
        """What the lists hold besides the rows at home in them; the centers of the entries are positions."""
        more = ~self.home
        count = int(np.count_nonzero(more))
        return Entries(self.of[more], np.zeros(count, dtype=np.int64), self.keys[more], self.codes[more])
