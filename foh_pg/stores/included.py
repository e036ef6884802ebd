"""Entries of the metadata that an index includes: generated columns beside the JSON, which searches compare.

A generated column follows the JSON by itself, whatever program writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from reprlib import repr as shown
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateColumn

from foh_pg.errors import InputError

# The kinds of values, each as JSON and SQL call it.
KINDS: dict[str, tuple[str, sa.types.TypeEngine[Any]]] = {
    "text": ("string", sa.Text()),
    "number": ("number", sa.Numeric()),
    "boolean": ("boolean", sa.Boolean()),
}
# What PostgreSQL keeps of a name.
LONGEST = 63


def check_included(include: Any) -> None:
    if not isinstance(include, Mapping):
        raise InputError(
            f"include is {shown(include)}, it must name entries of the metadata, each with the kind of its "
            'values: {"price": "number"}'
        )
    for name, kind in include.items():
        if kind not in KINDS:
            raise InputError(
                f"include: {name!r} has values of kind {shown(kind)}; there are {', '.join(KINDS)}"
            )


def included_name(metadata: str, entry: str) -> str:
    """The column of an entry: no other column of the table has such a name."""
    name = f"{metadata}_{entry}"
    if len(name.encode()) > LONGEST:
        raise InputError(f"include: {entry!r} is too long: with {metadata}_ it has more than {LONGEST} bytes")
    return name


def included_columns(metadata: sa.Column[Any], include: Mapping[str, str]) -> dict[str, sa.Column[Any]]:
    """For each entry the column that holds its values; NULL where an entry has a value of another kind."""
    return {
        entry: sa.Column(
            included_name(metadata.name, entry),
            KINDS[kind][1],
            sa.Computed(_value(metadata, entry, kind), persisted=True),
        )
        for entry, kind in include.items()
    }


def defined(metadata: str, entry: str, kind: str) -> str:
    """The definition of the column of an entry, for a statement that adds it to a table."""
    column = included_columns(sa.Column(metadata, postgresql.JSONB), {entry: kind})[entry]
    sa.Table("t", sa.MetaData(), column)
    return str(CreateColumn(column).compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]


def comparable(column: sa.Column[Any], value: Any) -> Any:
    """The value as the column has it; None where the column cannot tell what compares with it."""
    if isinstance(column.type, sa.Numeric) and type(value) in (int, float, Decimal):
        # As JSON writes it: the server would read fewer digits of a float.
        return Decimal(repr(value)) if isinstance(value, float) else value
    kind = str if isinstance(column.type, sa.Text) else bool
    return value if type(value) is kind and not isinstance(column.type, sa.Numeric) else None


def _value(metadata: sa.Column[Any], entry: str, kind: str) -> sa.ColumnElement[Any]:
    json, type_ = KINDS[kind]
    value = metadata.op("->")(sa.literal(entry, sa.Text))
    text = metadata.op("->>", return_type=sa.Text())(sa.literal(entry, sa.Text))
    read = text if kind == "text" else sa.cast(text, type_)
    return sa.case((sa.func.pg_catalog.jsonb_typeof(value) == sa.literal(json, sa.Text), read))
