"""The conditions of a query as the argument `filter` of a search, which knows the table of its index as `s`.

A condition on the columns of that table stands in the filter as it is. One that reads other tables, or counts
their rows, becomes EXISTS over Django's own query for it. Values are written into the text by psycopg, as
Django's cursor writes them into every statement it sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from django.core.exceptions import FullResultSet
from django.db.models.expressions import Col, RawSQL
from django.db.models.lookups import Exact
from django.db.models.sql import Query
from django.db.models.sql.where import AND, ExtraWhere, WhereNode

from foh_pg.errors import InputError

if TYPE_CHECKING:
    from foh_pg.django.query import SearchJoin

SOURCE = "s"

COMPARISONS = {"exact": "=", "in": "=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
# The values of a field that can be told as data; others compare in ways of their own, and stay in the filter.
INTEGERS = ("SmallIntegerField", "IntegerField", "BigIntegerField")
POSITIVE = ("PositiveSmallIntegerField", "PositiveIntegerField", "PositiveBigIntegerField")
ALIKE: dict[str, tuple[type[Any], ...]] = {
    **dict.fromkeys((*INTEGERS, *POSITIVE), (int,)),
    **dict.fromkeys(("CharField", "TextField", "SlugField"), (str,)),
    "FloatField": (float, int),
    "DecimalField": (Decimal, int),
    "BooleanField": (bool,),
    "UUIDField": (UUID,),
    "DateField": (date,),
    "DateTimeField": (datetime,),
}


class Pushed(NamedTuple):
    """What a search is filtered by."""

    # Over the columns of the base table alone; its alias in the query.
    plain: WhereNode
    base: str
    # Over other tables too: the query that has them.
    joined: Any | None
    # On included columns, as data: the argument match of the search.
    match: dict[str, dict[str, Any]]

    def text(self, compiler: Any, connection: Any, source: Any) -> str | None:
        """One condition as SQL, values and all; None where every row passes."""
        parts = []
        plain, joined = self.plain, self.joined
        try:
            text, parameters = compiler.compile(plain.relabeled_clone({self.base: SOURCE}))
            if text:
                parts.append((text, parameters))
        except FullResultSet:
            pass
        if joined is not None:
            text, parameters = _exists(joined, connection, source).as_sql()
            parts.append((f"EXISTS ({text})", parameters))
        if not parts:
            return None
        template = " AND ".join(f"({text})" for text, _ in parts)
        return str(connection.ops.compose_sql(template, [value for _, each in parts for value in each]))


def split(query: Any, join: SearchJoin) -> tuple[Pushed, WhereNode]:
    """What is pushed into the search, and the conditions on the score, which is known after it."""
    where = query.where
    together = where.connector == AND and not where.negated
    base = join.parent_alias
    on_source = query.alias_map[base].table_name == join.source._meta.db_table
    plain, joined, rest = WhereNode(), WhereNode(), WhereNode()
    match: dict[str, dict[str, Any]] = {}
    for child in where.children if together else [where]:
        aliases = set(_aliases([child]))
        if getattr(child, "contains_over_clause", False):
            raise InputError(
                "a condition on a window function cannot be part of a search: which rows it ranks would "
                "depend on what the search has found. Take the keys first, as in filter(pk__in=[...])"
            )
        if not aliases <= query.alias_map.keys():
            raise InputError(
                "a condition on the statement around (OuterRef) cannot be part of a search, whose filter "
                "is a text of its own. Ask for more rows than you need, and slice"
            )
        if join.table_alias in aliases:
            _refuse_mixed(aliases, join)
            rest.children.append(child)
        elif on_source and aliases <= {base} and _is_transparent(child):
            if not _told(child, join.included, match):
                plain.children.append(child)
        else:
            joined.children.append(child)
    # A search over the table of a parent also finds rows that the child does not have.
    inner = _without_search(query, join, joined) if joined.children or not on_source else None
    return Pushed(plain, base, inner, match), rest


def _told(lookup: Any, included: Iterable[str], match: dict[str, dict[str, Any]]) -> bool:
    """Put a comparison of an included column with values to the others, where it can be told as data."""
    operator = COMPARISONS.get(getattr(lookup, "lookup_name", None) or "")
    column = getattr(lookup, "lhs", None)
    if operator is None or not isinstance(column, Col) or column.target.column not in included:
        return False
    field, values = column.target, lookup.rhs if lookup.lookup_name == "in" else [lookup.rhs]
    if field.is_relation or not isinstance(values, (list, tuple, set, frozenset)) or not values:
        return False
    if not all(type(value) in ALIKE.get(field.get_internal_type(), ()) for value in values):
        return False
    known = match.setdefault(str(field.column), {})
    if operator in known:
        return False
    known[operator] = list(values) if lookup.lookup_name == "in" else lookup.rhs
    return True


def _refuse_mixed(aliases: set[str], join: SearchJoin) -> None:
    if aliases != {join.table_alias}:
        raise InputError(
            "a condition on the score stands in one OR, or one comparison, with conditions on fields: the "
            "score is known after the search, the others are part of it. Put the score into a filter() of "
            "its own"
        )


def _aliases(expressions: Iterable[Any]) -> Iterator[str]:
    """Tables whose columns are read, of the query itself and by subqueries from it."""
    for column in Query._gen_cols(expressions, include_external=True):
        yield column.alias


def _is_transparent(expression: Any) -> bool:
    """Whether its columns can be renamed: not in SQL that the application wrote, nor in an aggregate."""
    if isinstance(expression, (RawSQL, ExtraWhere)) or getattr(expression, "contains_aggregate", False):
        return False
    sources = expression.get_source_expressions() if hasattr(expression, "get_source_expressions") else ()
    return all(_is_transparent(source) for source in sources if source is not None)


def _without_search(query: Any, join: SearchJoin, where: WhereNode) -> Any:
    """The query as it would be without the search, and with these conditions alone."""
    inner = query.clone()
    inner.__class__ = Query
    for known in (inner.alias_map, inner.alias_refcount):
        del known[join.table_alias]
    inner.table_map.pop(join.table_name, None)
    inner.where = where
    needed = {name: each for name, each in inner.annotations.items() if not _reads(each, join)}
    inner.annotations = needed
    inner.set_annotation_mask(set(needed))
    if isinstance(inner.group_by, tuple):
        inner.group_by = tuple(each for each in inner.group_by if not _reads(each, join))
    inner.clear_limits()
    inner.clear_ordering(force=True)
    # A search locks nothing: its rows are locked by the statement around it.
    inner.select_for_update = inner.select_related = False
    return inner


def _reads(expression: Any, join: SearchJoin) -> bool:
    return join.table_alias in set(_aliases([expression]))


def _exists(inner: Any, connection: Any, source: Any) -> Any:
    """The compiler of the condition that the query has a row with the key of the search's row."""
    found = inner.exists()
    # A model that inherits from the one with the index has its key, under another name.
    same = Exact(found.model._meta.pk.get_col(found.base_table), Col(SOURCE, source._meta.pk))
    found.where = WhereNode([same, found.where], AND)
    return found.get_compiler(connection=connection)
