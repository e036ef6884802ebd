"""Rows between PostgreSQL and numpy in the binary form of COPY, without Python work per row."""

from __future__ import annotations

from foh_pg.arrays.ragged import Ragged
from foh_pg.postgres.binary_copy.column import Column, RowError
from foh_pg.postgres.binary_copy.fixed import (
    FLOAT4,
    FLOAT8,
    INT4,
    INT8,
    UUID,
    Bits,
    HalfVector,
    Vector,
)
from foh_pg.postgres.binary_copy.raw import Raw
from foh_pg.postgres.binary_copy.reader import copy_out
from foh_pg.postgres.binary_copy.record import Record, VaryingRecord
from foh_pg.postgres.binary_copy.varying import TEXT, Array, Nullable, Text
from foh_pg.postgres.binary_copy.writer import copy_in

__all__ = [
    "FLOAT4",
    "FLOAT8",
    "INT4",
    "INT8",
    "TEXT",
    "UUID",
    "Array",
    "Bits",
    "Column",
    "HalfVector",
    "Nullable",
    "Ragged",
    "Raw",
    "Record",
    "RowError",
    "Text",
    "VaryingRecord",
    "Vector",
    "copy_in",
    "copy_out",
]
