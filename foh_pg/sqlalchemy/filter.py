"""A SQLAlchemy condition as the `filter` and `params` of a search.

The condition becomes text over the source, which the search knows as `s`. Every value in it stays a bound
parameter of the statement: the statement puts it into `params`, and the text reads it from there. The text is
made when the statement is compiled, so SQLAlchemy's cache keeps it.
"""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import FromClause, visitors
from sqlalchemy.sql.elements import BindParameter, ColumnElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.util import _deep_deannotate
from sqlalchemy.types import ARRAY, JSON, NullType, TypeDecorator, TypeEngine

from foh_pg.errors import InputError
from foh_pg.sqlalchemy.definition import quoted


class FilterText(FunctionElement[str]):
    """The text of a condition, as a string constant."""

    inherit_cache = True
    name = "foh_filter"
    type = sa.Text()

    @property
    def _from_objects(self) -> list[FromClause]:
        # Its tables are named inside the string; the statement around it does not read them.
        return []


@compiles(FilterText)
def _compile_filter(element: FilterText, compiler: Any, **kw: Any) -> str:
    [condition] = element.clauses
    # A compiler of its own: subqueries must not take tables of the statement around the string for theirs.
    inner = condition.compile(dialect=compiler.dialect)
    if inner.bind_names:
        names = ", ".join(sorted(inner.bind_names.values()))
        raise InputError(f"filter: the value of {names} would be lost: write it with sqlalchemy.literal()")
    constant = inner.string.replace("'", "''")
    if compiler.dialect._backslash_escapes:
        constant = constant.replace("\\", "\\\\")
    return f"'{constant}'"


def pushed(
    condition: Any, source: sa.Table, *sources: FromClause
) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """The arguments `filter` and `params` for a condition over `source` (`sources`: its aliases)."""
    if condition is None:
        return sa.null(), sa.null()
    values: list[ColumnElement[Any]] = []
    mine = {column for each in (source, *sources) for column in each.c}

    def replace(element: Any, **kw: Any) -> Any:
        if isinstance(element, BindParameter):
            inner, outer = _parameter(f"p{len(values) + 1}", element)
            values.append(outer)
            return inner
        if isinstance(element, sa.Column) and element in mine:
            return sa.literal_column("s." + quoted(element.name), element.type)
        return None

    # The ORM marks what has() and any() make as not to be adapted; here the whole condition moves elsewhere.
    unmarked = _deep_deannotate(sa.and_(condition), values=["no_replacement_traverse"])
    inner = visitors.replacement_traverse(unmarked, {}, replace)
    _refuse_other_tables(inner, source)
    if not values:
        return FilterText(inner), sa.null()
    if "params" in {column.name for column in source.c}:
        raise InputError(
            f"filter: {source.key!r} has a column named params, which hides the values of a filter: "
            "write the values with sqlalchemy.literal_column(), or search without filter"
        )
    # Two arrays, since a function takes a hundred arguments at the most.
    names = [sa.literal_column(f"'p{number}'", sa.Text) for number in range(1, len(values) + 1)]
    params = sa.func.pg_catalog.jsonb_object(
        postgresql.array(names), postgresql.array(values), type_=postgresql.JSONB
    )
    return FilterText(inner), params


def _refuse_other_tables(condition: Any, source: sa.Table) -> None:
    others = [getattr(each, "name", str(each)) for each in condition._from_objects]
    if others:
        raise InputError(
            f"filter: reads {', '.join(sorted(others))} beside {source.key!r}: "
            "put other tables into exists() or in_(select(...))"
        )


def _parameter(name: str, bind: BindParameter[Any]) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """What stands for a value inside the text, and what puts it into `params`."""
    # As text and back: JSON has fewer types than SQL.
    read = sa.literal_column(f"(params ->> '{name}')", sa.Text)
    type_ = plain(bind.type)
    if not bind.expanding:
        inner = read if isinstance(type_, NullType) else sa.cast(read, type_)
        return inner, sa.cast(bind, sa.Text)
    if isinstance(type_, (ARRAY, NullType)) or type_._type_affinity is sa.types.TupleType:
        raise InputError(f"filter: in_() takes a list of plain values, not of type {bind.type!r}")
    values = sa.bindparam(
        bind.key, bind.value, type_=ARRAY(bind.type), unique=bind.unique, required=bind.required
    )
    unnested = sa.select(sa.func.unnest(sa.cast(read, ARRAY(type_)))).scalar_subquery()
    return unnested, sa.cast(values, sa.Text)


def plain(type_: TypeEngine[Any]) -> TypeEngine[Any]:
    """The type to read a value back as: without a length or precision, which would cut the value."""
    if isinstance(type_, TypeDecorator):
        return plain(type_.impl_instance)
    if isinstance(type_, sa.Enum):
        return type_
    if isinstance(type_, JSON.JSONPathType):
        return ARRAY(sa.Text())
    if isinstance(type_, JSON.JSONIntIndexType):
        return sa.Integer()
    if isinstance(type_, (JSON.JSONIndexType, JSON.JSONStrIndexType, sa.String)):
        return sa.Text()
    if isinstance(type_, ARRAY):
        return ARRAY(plain(type_.item_type))
    if isinstance(type_, sa.Float):
        return sa.Double()
    if isinstance(type_, sa.Numeric):
        return sa.Numeric()
    if isinstance(type_, (sa.DateTime, sa.Time)):
        return cast("TypeEngine[Any]", type(type_)(timezone=type_.timezone))
    if isinstance(type_, (sa.Interval, postgresql.INTERVAL)):
        return sa.Interval()
    return type_
