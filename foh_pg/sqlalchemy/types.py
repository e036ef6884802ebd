"""The type of the vector of a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.adapt import PyFormat
from sqlalchemy import Dialect
from sqlalchemy.types import String, TypeEngine, UserDefinedType

from foh_pg.postgres.vectors import PackedVector, PackedVectorBinaryDumper, PackedVectorDumper

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
