"""What is in the metadata of all documents: fields, their types, their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from foh_pg.haystack.filters import FilterError, condition
from foh_pg.stores.documents import Documents
from foh_pg.stores.filter_parts import comparing

# What Haystack's stores call the types of JSON.
TYPES = {"string": "text", "boolean": "boolean", "array": "array", "object": "object"}


def entries(table: Documents, filters: Mapping[str, Any] | None) -> sa.Subquery:
    """All metadata as rows of (name, value), the value as JSON."""
    if isinstance(table.metadata, sa.Column):
        whole: Any = table.metadata
    else:
        pairs = [each for name, column in table.metadata.items() for each in (sa.literal(name), column)]
        whole = sa.func.jsonb_build_object(*pairs)
    statement = sa.select(whole.label("meta")).select_from(table.table)
    wanted = condition(table, filters)
    documents = (statement if wanted is None else statement.where(wanted)).subquery()
    each = sa.func.jsonb_each(documents.c.meta).table_valued(
        sa.column("key", sa.Text), sa.column("value", JSONB), name="entry"
    )
    found = sa.select(each.c.key.label("name"), each.c.value.label("value")).select_from(
        documents.join(each, sa.true())
    )
    return found.where(sa.func.jsonb_typeof(each.c.value) != "null").subquery()


def plain(name: str) -> str:
    return name.removeprefix("meta.")


def fields_info(connection: sa.Connection, table: Documents) -> dict[str, dict[str, str]]:
    every = entries(table, None)
    kind = sa.func.jsonb_typeof(every.c.value)
    whole = sa.func.bool_and(sa.cast(every.c.value, sa.Text).regexp_match(r"^-?\d+$"))
    statement = sa.select(every.c.name, sa.func.array_agg(kind.distinct()), whole).group_by(every.c.name)
    return {
        name: {"type": _type(kinds, whole)}
        for name, kinds, whole in connection.execute(statement.order_by(every.c.name))
    }


def _type(kinds: Sequence[str], whole: bool) -> str:
    if len(kinds) > 1:
        return "mixed"
    if kinds[0] == "number":
        return "integer" if whole else "real"
    return TYPES[kinds[0]]


def min_max(connection: sa.Connection, table: Documents, name: str) -> dict[str, Any]:
    """Of the numbers in a field; where it has none, of its texts, such as times in ISO format."""
    every = entries(table, None)
    for kind in ("number", "string"):
        values = (
            sa.select(every.c.value)
            .where(every.c.name == plain(name), sa.func.jsonb_typeof(every.c.value) == kind)
            .limit(1)
        )
        low = connection.execute(values.order_by(every.c.value)).first()
        if low is not None:
            high = connection.execute(values.order_by(every.c.value.desc())).one()
            return {"min": low[0], "max": high[0]}
    return {"min": None, "max": None}


def unique_values(
    connection: sa.Connection,
    table: Documents,
    name: str,
    search_term: str | None,
    start: int,
    size: int,
    filters: Mapping[str, Any] | None,
) -> tuple[list[Any], int]:
    """A page of the values of a field, and how many there are. By their text: 1 and 1.0 are two."""
    every = entries(table, filters)
    text = sa.cast(every.c.value, sa.Text)
    wanted = sa.select(sa.func.min(text).label("text")).where(every.c.name == plain(name)).group_by(text)
    if search_term:
        shown = every.c.value.op("#>>", return_type=sa.Text())(sa.cast([], sa.ARRAY(sa.Text)))
        wanted = wanted.where(sa.func.strpos(sa.func.lower(shown), search_term.lower()) > 0)
    found = wanted.subquery()
    page = sa.select(sa.cast(found.c.text, JSONB)).order_by(found.c.text).offset(start).limit(size)
    with comparing(filters, FilterError):
        total = connection.scalar(sa.select(sa.func.count()).select_from(found)) or 0
        return list(connection.scalars(page)), int(total)


def count_unique(
    connection: sa.Connection, table: Documents, filters: Mapping[str, Any] | None, names: Sequence[str]
) -> dict[str, int]:
    every = entries(table, filters)
    statement = sa.select(every.c.name, sa.func.count(sa.cast(every.c.value, sa.Text).distinct()))
    wanted = {plain(name): name for name in names}
    with comparing(filters, FilterError):
        found = connection.execute(statement.where(every.c.name.in_(list(wanted))).group_by(every.c.name))
    counts = {name: number for name, number in found}
    return {plain(name): counts.get(plain(name), 0) for name in names}
