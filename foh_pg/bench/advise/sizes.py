"""What an index on the whole table would take."""

from __future__ import annotations

from foh_pg.bench.advise.sampling import Sample

# Bytes of a row besides its code: its entry in a list and its item, with headers and keys. Measured.
FOH_ROW = 100
# Of a row besides its vector: headers, ten heap pointers, and 2 m = 32 neighbors of 6 bytes each.
HNSW_ROW = 300
PAGE = 8192
SIZES = (
    f"MB is an estimate for the whole table: rows x (bits / 8 + {FOH_ROW}) bytes for this index with one "
    f"home per row; for pgvector's HNSW with m = 16, whole rows of 4 x dimensions + {HNSW_ROW} bytes "
    f"(halfvec: 2 x) on pages of {PAGE}."
)


def foh_megabytes(sample: Sample, bits: int) -> float:
    """Estimate the size of our index on the whole table."""
    return round(sample.rows * (bits / 8 + FOH_ROW) / 1e6, 2)


def hnsw_megabytes(sample: Sample) -> float:
    """Estimate the size of an HNSW index of pgvector on the whole table."""
    width = 2 if sample.table.embedding_type == "halfvec" else 4
    per_page = max(1, PAGE // (width * int(sample.X.shape[1]) + HNSW_ROW))
    return round(sample.rows * PAGE / per_page / 1e6, 2)
