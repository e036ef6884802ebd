"""Searches as parts of a SQLAlchemy statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Mapper
from sqlalchemy.orm.util import AliasedInsp
from sqlalchemy.sql import FromClause
from sqlalchemy.sql.functions import Function
from sqlalchemy.sql.util import find_tables
from sqlalchemy.types import UserDefinedType

from foh_pg.errors import InputError
from foh_pg.index.calls import HowToSearch
from foh_pg.postgres.vectors import PackedVector
from foh_pg.sqlalchemy.filter import pushed
from foh_pg.sqlalchemy.index import FOHIndex, declared
from foh_pg.sqlalchemy.matching import matched, told

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class QueryVector(UserDefinedType[Any]):
    """The vector of a query, sent as text: the server takes the type from the function that is called."""

    cache_ok = True

    def get_col_spec(self, **kw: Any) -> str:
        return "VECTOR"

    def bind_processor(self, dialect: sa.Dialect) -> Callable[[Any], str | None]:
        return lambda value: None if value is None else PackedVector(value).text()

    def literal_processor(self, dialect: sa.Dialect) -> Callable[[Any], str]:
        return lambda value: f"'{PackedVector(value).text()}'"


# Shared: SQLAlchemy computes the part of a type in a statement's cache key once for each instance.
QUERY = QueryVector()
INTEGER = sa.Integer()
DOUBLE: sa.Double[float] = sa.Double()


def foh_search(
    entity: Any,
    query: Any,
    *,
    k: int = 10,
    filter: Any = None,
    match: Mapping[str, Any] | None = None,
    index: str | FOHIndex | None = None,
    **how: Unpack[HowToSearch],
) -> sa.TableValuedAlias:
    """The k rows nearest to `query`, as something to select from and to join.

    Its columns are the key of the entity's table under its own names, `distance` (from the query,
    by the index's distance; NULL with shortlist 0) and `score` (what the rows are ranked by, the smaller the
    nearer).

    `probes`, `shortlist`, `labels`, `recall` and `max_distance` are those of `foh_pg.index.Index.search`.

    >>> s = foh_search(Product, vector, k=10, probes=8, filter=Product.price < 10)
    >>> select(Product, s.c.score).join(s, s.c.id == Product.id).order_by(s.c.score)

    Parameters
    ----------
    entity
        A mapped class, `aliased()` of one, or a Table, with a FOHIndex declared on it.
    query
        A list or array of numbers, or an SQL expression of type vector.
    filter
        A condition over the entity's columns. It is part of the search: k rows come back if k rows match,
        where a `.where()` would be applied to the k rows that were found. Other tables go into `exists()`.
        Comparisons of included columns with values are answered in the lists.
    match
        A condition on included columns and labels as data, as `foh_pg.index.Index.search` takes it.
    index
        The name of the FOHIndex, where there are several.
    """
    chosen = _index(entity, index)
    keys = chosen.key_columns
    taken = {key.name for key in keys}
    data, condition, params = _conditions(chosen, entity, filter, match)
    probes, shortlist, *rest = _bound(how)
    function = _call(chosen, "search", query, k, probes, shortlist, condition, params, *rest, data)
    return function.table_valued(
        *(sa.column(key.name, key.type) for key in keys),
        # As foh.create_index names them: another name where the key has ours.
        sa.column("foh_distance" if "distance" in taken else "distance", DOUBLE),
        sa.column("foh_score" if "score" in taken else "score", DOUBLE),
    )


def select_nearest(entity: type[T], query: Any, **arguments: Any) -> sa.Select[tuple[T, float]]:
    """Select the entities nearest to `query`, nearest first, each with its score.

    Takes the arguments of `foh_search`. `session.scalars()` of it gives the entities alone.

    >>> session.scalars(select_nearest(Product, vector, k=10).options(joinedload(Product.brand)))
    """
    search = foh_search(entity, query, **arguments)
    *_, score = search.c
    keys = _index(entity, arguments.get("index")).key_columns
    same = sa.and_(*(equal(_own(entity, key), search.c[key.name]) for key in keys))
    return sa.select(entity, score).join_from(entity, search, same).order_by(score)


def foh_explain(
    connection: sa.Connection,
    entity: Any,
    query: Any,
    *,
    k: int = 10,
    filter: Any = None,
    index: str | FOHIndex | None = None,
    **how: Any,
) -> dict[str, str]:
    """How a search with these arguments of `foh_search` is answered, step by step.

    `match` and `filter` are what the search is told of its filter: the first as data, answered in the lists;
    the second as SQL over a row `s`, with its values in `params`.
    """
    chosen = _index(entity, index)
    data, condition, params = _conditions(chosen, entity, filter, how.pop("match", None))
    *asked, _max_distance = _bound(how)
    function = _call(chosen, "explain", query, k, *asked, data, condition, params)
    steps = function.table_valued(sa.column("step", sa.Text), sa.column("value", sa.Text))
    sent = connection.execute(
        sa.select(*(sa.cast(each, sa.Text) for each in (data, condition, params)))
    ).one()
    given = {name: value for name, value in zip(("match", "filter", "params"), sent, strict=True) if value}
    rows = connection.execute(sa.select(steps.c.step, steps.c.value))
    return {**given, **{row.step: row.value for row in rows}}


def _call(index: FOHIndex, suffix: str, query: Any, k: int, *arguments: Any) -> Function[Any]:
    """A call of a function of the index."""
    return Function(
        # The compiler formats the names of functions once more with %.
        sa.sql.quoted_name(f"{index.name}_{suffix}".replace("%", "%%"), quote=True),
        query if isinstance(query, sa.ClauseElement) else sa.bindparam(None, query, QUERY, unique=True),
        sa.bindparam(None, k, INTEGER, unique=True),
        *arguments,
        packagenames=("foh",),
    )


def _bound(how: Mapping[str, Any]) -> list[sa.BindParameter[Any]]:
    """What says how to search, each argument as a parameter: probes, shortlist, labels, ..."""
    unknown = how.keys() - HowToSearch.__annotations__.keys()
    if unknown:
        raise InputError(f"a search takes no argument {min(unknown)!r}")
    types = {"probes": INTEGER, "shortlist": INTEGER}
    return [
        sa.bindparam(None, how.get(name), types.get(name, DOUBLE), unique=True)
        for name in HowToSearch.__annotations__
    ]


def _conditions(
    index: FOHIndex, entity: Any, filter: Any, match: Mapping[str, Any] | None
) -> tuple[Any, Any, Any]:
    """The arguments `match`, `filter` and `params` of a search."""
    data, rest = (told(match), filter) if match is not None else matched(filter, _included(index, entity))
    return data, *pushed(rest, index.table, _selectable(entity))


def _included(index: FOHIndex, entity: Any) -> dict[Any, str]:
    """The included columns, of the table and of what the entity is an alias of, each with its name."""
    tables = (index.table, _selectable(entity))
    return {table.c[name]: name for name in index.included for table in tables if name in table.c}


def _own(entity: Any, column: sa.Column[Any]) -> Any:
    """A column of the indexed table, as the entity has it."""
    mapper = _mapper(entity)
    if mapper is None:
        return _selectable(entity).c[column.key]
    # The attribute, and not the column: it follows an alias.
    return getattr(entity, mapper.get_property_by_column(column).key)


def equal(one: Any, other: Any) -> sa.ColumnElement[bool]:
    """Equality by PostgreSQL's own operator, whatever stands before it in the search_path."""
    compared: sa.ColumnElement[bool] = one.op("OPERATOR(pg_catalog.=)", is_comparison=True)(other)
    return compared


def _mapper(entity: Any) -> Mapper[Any] | None:
    inspected = sa.inspect(entity, raiseerr=False)
    if isinstance(inspected, AliasedInsp):
        return inspected.mapper
    return inspected if isinstance(inspected, Mapper) else None


def _selectable(entity: Any) -> FromClause:
    inspected = sa.inspect(entity, raiseerr=False)
    selectable = getattr(inspected, "selectable", None)
    if not isinstance(selectable, FromClause):
        raise InputError(f"foh_search: expected a mapped class or a Table, got {entity!r}")
    return selectable


def _index(entity: Any, wanted: str | FOHIndex | None) -> FOHIndex:
    if isinstance(wanted, FOHIndex):
        return wanted
    tables = {table for table in find_tables(_selectable(entity)) if isinstance(table, sa.Table)}
    found = [index for table in tables for index in declared(table.metadata) if index.table is table]
    names = ", ".join(sorted(repr(index.name) for index in found))
    if wanted is not None:
        for index in found:
            if index.name == wanted:
                return index
        raise InputError(f"{entity!r} has no FOHIndex {wanted!r}; it has {names or 'none'}")
    if not found:
        raise InputError(f"{entity!r} has no FOHIndex: declare one in __table_args__")
    if len(found) > 1:
        raise InputError(f"{entity!r} has the indexes {names}: choose one with the argument index")
    return found[0]
