"""Query vectors as parameters, as pgvector reads them: in binary, or as text for drivers that send text.

The one codec of the client and of all frameworks. pgvector's own needs the oid of its type, which
would cost a question to the server.

numpy takes longer to import than `foh-pg search --like` takes to run, so it is imported by what needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format
from psycopg.types.string import ByteaBinaryLoader

from foh_pg.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class PackedVector:
    """One vector; `values` is a row of float32."""

    __slots__ = ("values",)

    def __init__(self, query: Any) -> None:
        self.values = as_float32(query.to_numpy() if hasattr(query, "to_numpy") else query, 1)

    def binary(self) -> bytes:
        return len(self.values).to_bytes(2, "big") + bytes(2) + self.values.astype(">f4").tobytes()

    def text(self) -> str:
        # repr of a Python float: shortest digits that give the same real.
        return "[" + ",".join(map(str, self.values.tolist())) + "]"


class PackedVectors:
    """An array of vectors; `element` is the type's oid, which a binary array must name."""

    __slots__ = ("element", "values")

    def __init__(self, queries: npt.ArrayLike, element: int) -> None:
        self.values = as_float32(queries, 2)
        self.element = element


def as_float32(values: npt.ArrayLike, dimensions: int) -> npt.NDArray[np.float32]:
    import numpy as np

    shape = "a vector" if dimensions == 1 else "a matrix with a query in each row"
    try:
        with np.errstate(over="ignore"):
            array = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the query is not {shape}: {error}") from error
    if array.ndim != dimensions:
        raise InputError(f"the query must be {shape}, this one has {array.ndim} dimensions")
    if not np.isfinite(array).all():
        raise InputError("the query has NaN or infinity in it, or a number that a 32-bit float cannot hold")
    return array


class PackedVectorDumper(Dumper):
    """Type 0: the server takes it from the function that is called, in whatever schema pgvector is."""

    oid = 0

    def dump(self, obj: PackedVector) -> Buffer | None:
        return obj.text().encode()


class PackedVectorBinaryDumper(PackedVectorDumper):
    format = Format.BINARY

    def dump(self, obj: PackedVector) -> Buffer | None:
        return obj.binary()


class PackedVectorsDumper(Dumper):
    format = Format.BINARY
    oid = 0

    def dump(self, obj: PackedVectors) -> Buffer | None:
        import numpy as np

        count, width = obj.values.shape
        rows = np.zeros(
            count, dtype=[("length", ">i4"), ("width", ">i2"), ("unused", ">i2"), ("values", ">f4", (width,))]
        )
        rows["length"], rows["width"], rows["values"] = 4 + 4 * width, width, obj.values
        # Dimensions, no nulls, the type of an element, the length and where counting starts.
        header = np.array([1, 0, obj.element, count, 1], dtype=">i4")
        return header.tobytes() + rows.tobytes()


def parse_vector(data: bytes) -> npt.NDArray[np.float32]:
    """A vector as the server sends it in binary."""
    import numpy as np

    return np.frombuffer(data, dtype=">f4", offset=4).astype(np.float32)


def register(cursor: Any) -> None:
    """Let a cursor send query vectors; the connection it belongs to stays as it is."""
    cursor.adapters.register_dumper(PackedVector, PackedVectorBinaryDumper)
    cursor.adapters.register_dumper(PackedVectors, PackedVectorsDumper)
    # A connection may read vectors by pgvector's own loader; here they stay bytes.
    vector = cursor.adapters.types.get("vector")
    if vector is not None:
        cursor.adapters.register_loader(vector.oid, ByteaBinaryLoader)
