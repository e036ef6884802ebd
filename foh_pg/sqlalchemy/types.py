"""Column and parameter types: codes, and the vector of a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.adapt import PyFormat
from sqlalchemy import BigInteger, ColumnElement, Dialect, func
from sqlalchemy.types import String, TypeEngine, UserDefinedType

from foh_pg.errors import InputError
from foh_pg.postgres.code import Code as CodeValue
from foh_pg.postgres.vectors import PackedVector, PackedVectorBinaryDumper, PackedVectorDumper


class Code(UserDefinedType[CodeValue]):
    """A column of codes, `bit(bits)`; its values are `foh_pg.psycopg.Code`.

    >>> code: Mapped[Code] = mapped_column(Code(64))
    >>> select(Thing).order_by(Thing.code.hamming_distance(other)).limit(10)
    """

    cache_ok = True

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def get_col_spec(self, **kw: Any) -> str:
        return f"BIT({int(self.bits)})"

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        def process(value: Any) -> Any:
            if value is None:
                return None
            digits = str(value)
            if len(digits) != self.bits:
                raise InputError(f"the column has {self.bits} bits, the code has {len(digits)}: {digits}")
            if dialect.driver == "asyncpg":
                import asyncpg  # type: ignore[import-not-found,import-untyped,unused-ignore]

                return asyncpg.BitString(digits)
            return digits

        return process

    def literal_processor(self, dialect: Dialect) -> Callable[[Any], str]:
        return lambda value: f"B'{CodeValue.from_string(str(value))}'"

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], CodeValue | None]:
        def process(value: Any) -> CodeValue | None:
            if value is None or isinstance(value, CodeValue):
                return value
            digits = value if isinstance(value, str) else value.as_string().replace(" ", "")
            return CodeValue.from_string(digits)

        return process

    class Comparator(UserDefinedType.Comparator[CodeValue]):
        def hamming_distance(self, other: Any) -> ColumnElement[int]:
            """The number of bits that differ, computed without pgvector, whose schema may be out of reach."""
            return func.pg_catalog.bit_count(self.op("#", return_type=self.type)(other), type_=BigInteger)

    comparator_factory = Comparator


for _dumper in (PackedVectorDumper, PackedVectorBinaryDumper):
    psycopg.adapters.register_dumper(PackedVector, _dumper)


class QueryVector(UserDefinedType[Any]):
    """The type of a search's first argument. Binary with psycopg, text with other drivers."""

    cache_ok = True

    def get_col_spec(self, **kw: Any) -> str:
        return "VECTOR"

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        if _sends_binary(dialect):
            return lambda value: None if value is None else PackedVector(value)
        return lambda value: None if value is None else PackedVector(value).text()

    def literal_processor(self, dialect: Dialect) -> Callable[[Any], str]:
        return lambda value: "'" + PackedVector(value).text() + "'"

    def coerce_compared_value(self, op: Any, value: Any) -> TypeEngine[Any]:
        return String() if isinstance(value, str) else self


def _sends_binary(dialect: Dialect) -> bool:
    """Whether connections of this engine know our dumpers: an engine older than this module does not."""
    adapters = getattr(dialect, "_psycopg_adapters_map", None)
    if adapters is None:
        return False
    try:
        adapters.get_dumper(PackedVector, PyFormat.AUTO)
    except psycopg.ProgrammingError:
        return False
    return True
