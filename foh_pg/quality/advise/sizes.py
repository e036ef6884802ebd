"""What an index on the whole table would take."""

from __future__ import annotations

from foh_pg.clustering import target_centers
from foh_pg.geometry import default_bits
from foh_pg.model.signature import SIGNATURE_BITS
from foh_pg.quality.advise.sampling import Sample

# Bytes of a row besides its bits: its entry in a list and its item, with headers and keys; and of a center
# besides its vector and bits, which are there twice: in its table and in the index that a search reads.
# Measured at 15 000 rows of 256 and of 512 dimensions.
FOH_ROW = 150
FOH_CENTER = 1450
# Of a row besides its vector: headers, ten heap pointers, and 2 m = 32 neighbors of 6 bytes each.
HNSW_ROW = 300
PAGE = 8192
SIZES = (
    f"MB is an estimate for the whole table: rows x ((geometry bits + {SIGNATURE_BITS} + bits) / 8 + "
    f"{FOH_ROW}) bytes for this index with one home per row, and rows ^ (2/3) centers of 4 x dimensions "
    f"+ {FOH_CENTER} bytes; for pgvector's HNSW with m = 16, whole rows of 4 x "
    f"dimensions + {HNSW_ROW} bytes (halfvec: 2 x) on pages of {PAGE}."
)


def foh_megabytes(sample: Sample, bits: int) -> float:
    """Estimate the size of our index on the whole table."""
    dimensions = int(sample.X.shape[1])
    rows = sample.rows * ((default_bits(dimensions) + SIGNATURE_BITS + bits) / 8 + FOH_ROW)
    centers = target_centers(max(1, sample.rows)) * (4 * dimensions + FOH_CENTER)
    return round((rows + centers) / 1e6, 2)


def hnsw_megabytes(sample: Sample) -> float:
    """Estimate the size of an HNSW index of pgvector on the whole table."""
    width = 2 if sample.table.embedding_type == "halfvec" else 4
    per_page = max(1, PAGE // (width * int(sample.X.shape[1]) + HNSW_ROW))
    return round(sample.rows * PAGE / per_page / 1e6, 2)
