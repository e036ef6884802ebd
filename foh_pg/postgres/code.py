"""Codes as parameters and results of single queries: `bit(k)` between psycopg and packed numpy bytes.

A search registers them whether it has a code to send or not, so numpy is imported by what needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg import postgres
from psycopg.abc import AdaptContext
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format

from foh_pg.errors import InputError

if TYPE_CHECKING:
    import numpy as np

BIT = postgres.types["bit"].oid


class Code:
    """A code of `bits` bits, packed as `numpy.packbits` does: bit 0 is the first of the `bit(k)` string."""

    __slots__ = ("bits", "packed")

    def __init__(self, packed: np.ndarray[Any, np.dtype[np.uint8]], bits: int) -> None:
        if packed.dtype != "uint8" or packed.shape != ((bits + 7) // 8,):
            raise InputError(
                f"a code of {bits} bits is packed into {(bits + 7) // 8} uint8, "
                f"and got {packed.dtype} of shape {packed.shape}"
            )
        self.packed = packed
        self.bits = bits

    @classmethod
    def from_string(cls, digits: str) -> Code:
        """From the digits that PostgreSQL prints: ``Code.from_string("0110")``."""
        import numpy as np

        return cls(np.packbits(np.frombuffer(digits.encode(), dtype=np.uint8) == ord("1")), len(digits))

    def __str__(self) -> str:
        import numpy as np

        return "".join(map(str, np.unpackbits(self.packed, count=self.bits)))

    def __repr__(self) -> str:
        return f"Code.from_string('{self}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Code) and (self.bits, bytes(self.packed)) == (
            other.bits,
            bytes(other.packed),
        )

    def __hash__(self) -> int:
        return hash((self.bits, bytes(self.packed)))


class CodeDumper(Dumper):
    oid = BIT

    def dump(self, obj: Code) -> Buffer | None:
        return str(obj).encode()


class CodeBinaryDumper(Dumper):
    format = Format.BINARY
    oid = BIT

    def dump(self, obj: Code) -> Buffer | None:
        return obj.bits.to_bytes(4, "big") + obj.packed.tobytes()


class CodeLoader(Loader):
    def load(self, data: Buffer) -> Code:
        return Code.from_string(bytes(data).decode())


class CodeBinaryLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> Code:
        import numpy as np

        raw = bytes(data)
        return Code(np.frombuffer(raw, dtype=np.uint8, offset=4), int.from_bytes(raw[:4], "big"))


def register_code(context: AdaptContext) -> None:
    """Let the connection or cursor send Code as `bit(k)` and return `bit(k)` as Code."""
    adapters = context.adapters
    assert adapters is not None
    for dumper in (CodeDumper, CodeBinaryDumper):
        adapters.register_dumper(Code, dumper)
    for loader in (CodeLoader, CodeBinaryLoader):
        adapters.register_loader(BIT, loader)
