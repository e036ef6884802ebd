"""What a search costs, so that lists can be weighed against rows, and both against a search of HNSW.

Prices are microseconds of a server's CPU, measured beside HNSW with `ef_search` 40 on 30 000 descriptions of
packages (256 dimensions), 59 500 images (512) and 699 000 commit messages (128). Another machine is faster or
slower, and so is HNSW on it: the ratios are what counts.
"""

from __future__ import annotations

from dataclasses import dataclass

# What every search pays: its state, the bits of the query, the nearest centers, and its plans.
FIXED = 200
# A list, and each of its entries. A list has about as many entries as the cube root of the rows.
LIST = 4.0
ENTRY = 0.2
# A row of the table that is ranked by the exact distance. PostgreSQL keeps a value of more than about two
# thousand bytes apart from its row (TOAST), and has to look for it there.
ROW = 5.5
ROW_KEPT_APART = 11.0
KEPT_APART_BYTES = 2000
# Less of a larger table is in the caches of the CPU: a row costs more, with this power of the rows.
ROW_GROWTH = 1 / 6

# What HNSW takes: more with the dimensions, and with the rows by this power of them.
GRAPH = 200
GRAPH_DIMENSION = 1.7
GRAPH_ROWS = 30_000
GRAPH_GROWTH = 0.38

# Which share of HNSW's price lists and rows may cost if labels count, where telling the kind of the query
# costs besides; and how much of it the whole search may cost if labels do not count.
SHARE_LABELS = 0.48
SHARE_NEAREST = 1.1
# What lists and rows may cost at least if labels count, and if they do not: HNSW costs next to nothing on a
# small table, and with few dimensions.
LEAST_LABELS = 300
LEAST_NEAREST = 430
# Bits tell rows of few dimensions apart badly, so that more of these must be read.
LEAST_NEAREST_FEW = 750
FEW_DIMENSIONS = 64
# How many times HNSW's price a search may cost where a cheaper one would be worse than the exact distance.
# Where labels say little, every near row that is missed counts; to find these in lists costs more than in a
# graph, and the more so the more rows there are.
SHARE_EXACT = 2.5
# A search for the nearest rows that finds fewer than this share of them may cost up to so many times as much
# as HNSW.
LEAST_RECALL = 0.8
SHARE_LEAST_RECALL = 2.0


@dataclass(frozen=True)
class Prices:
    """The prices of one table, and what its searches may cost beside the fixed part."""

    list: float
    row: float
    graph: float
    least_nearest: float = LEAST_NEAREST

    @classmethod
    def of(cls, rows: int, dimensions: int) -> Prices:
        """The prices of a table of so many rows.

        Examples
        --------
        >>> small, large = Prices.of(30_000, 256), Prices.of(30_000, 768)
        >>> large.row > small.row and large.nearest > small.nearest
        True
        """
        apart = 4 * dimensions > KEPT_APART_BYTES
        growth = max(rows, 1) / GRAPH_ROWS
        return cls(
            list=LIST + ENTRY * max(rows, 1) ** (1 / 3),
            row=(ROW_KEPT_APART if apart else ROW) * max(1.0, growth**ROW_GROWTH),
            graph=(GRAPH + GRAPH_DIMENSION * dimensions) * growth**GRAPH_GROWTH,
            least_nearest=LEAST_NEAREST_FEW if dimensions < FEW_DIMENSIONS else LEAST_NEAREST,
        )

    def cost(self, probes: int, shortlist: int) -> float:
        """What a search pays for so many lists and rows."""
        return self.list * probes + self.row * shortlist

    @property
    def labels(self) -> float:
        """What lists and rows may cost if labels count."""
        return max(LEAST_LABELS, SHARE_LABELS * self.graph)

    @property
    def nearest(self) -> float:
        """What lists and rows may cost if labels do not count."""
        return max(self.least_nearest, SHARE_NEAREST * self.graph - FIXED)

    @property
    def most(self) -> float:
        """What they may cost so that the answers are as good as those of the exact distance."""
        return max(self.least_nearest, SHARE_EXACT * self.graph - FIXED)

    @property
    def least_recall(self) -> float:
        """What they may cost if too few of the nearest rows are found for that."""
        return max(self.least_nearest, SHARE_LEAST_RECALL * self.graph - FIXED)
