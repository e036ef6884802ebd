"""The pool of the paper: besides the rows whose home it is, a center holds the rows nearest to it (Eq. 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.arrays.codes import nearest
from foh_pg.tables.centers import Centers
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.parts import Entries, entries_of, no_entries

IntArray = npt.NDArray[np.int64]


class Neighbors:
    """The nearest rows of every center among all that were shown so far."""

    def __init__(self, index: IndexRow, centers: Centers) -> None:
        self.centers = centers
        self.keep = int(index.options["neighbors"])
        # found, values, home: entries of lists by the positions of their centers, how far each row is from
        # the center, and whether it is at home there.
        self.found = no_entries(index)
        self.values = np.zeros(0, dtype=np.uint16)
        self.home = np.zeros(0, dtype=bool)

    def add(self, keys: KeyArray, held: Mapping[str, npt.NDArray[Any]], homes: IntArray) -> None:
        """Show some rows with what lists hold of them; `homes` are positions of centers (n, homes)."""
        if len(keys) == 0 or len(self.centers) == 0 or self.keep == 0:
            return
        near, distances = nearest(self.centers.bits, held["geometry"], self.keep)
        of, row = np.repeat(np.arange(len(self.centers)), near.shape[1]), near.reshape(-1)
        held = {name: column[row] for name, column in held.items()}
        found = self.found.joined([entries_of(keys[row], held, of[:, None])])
        values = np.concatenate([self.values, distances.reshape(-1)])
        home = np.concatenate([self.home, (homes[row] == of[:, None]).any(axis=1)])
        kept = clustering.keep_nearest(found.centers, values, self.keep)
        self.found, self.values, self.home = found.take(kept), values[kept], home[kept]

    def entries(self) -> Entries:
        """What the lists hold besides the rows at home in them; the centers of the entries are positions."""
        return self.found.take(~self.home)
