"""The pool of the paper: besides the rows whose home it is, a center holds the rows nearest to it (Eq. 7)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.arrays.codes import CodeArray, nearest
from foh_pg.tables.centers import Centers
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.parts import Entries, no_entries

IntArray = npt.NDArray[np.int64]


class Neighbors:
    """The nearest rows of every center among all that were shown so far."""

    def __init__(self, index: IndexRow, centers: Centers) -> None:
        self.centers = centers
        self.keep = int(index.options["neighbors"])
        self.of: IntArray = np.zeros(0, dtype=np.int64)
        self.values = np.zeros(0, dtype=np.uint16)
        self.keys: KeyArray = index.keys.empty()
        none = no_entries(index)
        self.geometry: CodeArray = none.geometry
        self.marks: CodeArray = none.marks
        self.home = np.zeros(0, dtype=bool)

    def add(self, keys: KeyArray, geometry: CodeArray, marks: CodeArray, homes: IntArray) -> None:
        """Show some rows; `homes` are positions of centers (n, homes)."""
        if len(keys) == 0 or len(self.centers) == 0 or self.keep == 0:
            return
        found, distances = nearest(self.centers.bits, geometry, self.keep)
        of, row = np.repeat(np.arange(len(self.centers)), found.shape[1]), found.reshape(-1)
        of, values = np.concatenate([self.of, of]), np.concatenate([self.values, distances.reshape(-1)])
        kept = clustering.keep_nearest(of, values, self.keep)
        at_home = (homes[row] == of[len(self.of) :, None]).any(axis=1)
        self.home = np.concatenate([self.home, at_home])[kept]
        self.keys = np.concatenate([self.keys, keys[row]])[kept]
        self.geometry = np.concatenate([self.geometry, geometry[row]])[kept]
        self.marks = np.concatenate([self.marks, marks[row]])[kept]
        self.of, self.values = of[kept], values[kept]

    def entries(self) -> Entries:
        """What the lists hold besides the rows at home in them; the centers of the entries are positions."""
        more = ~self.home
        count = int(np.count_nonzero(more))
        parts = np.zeros(count, dtype=np.int64)
        return Entries(self.of[more], parts, self.keys[more], self.geometry[more], self.marks[more])
