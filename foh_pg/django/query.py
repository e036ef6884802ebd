"""A search inside a statement of Django's: a join with the rows that foh.<index>_search returns.

Django makes statements from a Query. Ours has one more table in its FROM clause, which is the search. When a
statement is made, the conditions of the query move into that search as its argument `filter`; see pushing.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db.models import FloatField
from django.db.models.expressions import Col
from django.db.models.sql import Query
from django.db.models.sql.constants import INNER
from psycopg import sql

from foh_pg.django.pushing import Pushed, split
from foh_pg.index.calls import HowToSearch, as_json, function, given

ALIAS = "foh_search"


def _column(name: str) -> Any:
    """A field that belongs to no model: it has a column, and no name by which a model would know it."""
    field = FloatField(null=True)
    field.column = name
    return field


SCORE, DISTANCE = _column("score"), _column("distance")


# Equal to itself alone: Django merges joins that are equal.
@dataclass(frozen=True, eq=False)
class SearchJoin:
    """What Django expects of an entry in Query.alias_map, for a function in place of a table."""

    index: str
    # The model that declares the index: the one that is searched, or a parent of it.
    source: Any
    # The text of a vector, or an expression.
    query: Any
    k: int
    how: HowToSearch
    # The columns that the index includes.
    included: Sequence[str]
    parent_alias: str = ""
    table_alias: str = ALIAS
    # None until a statement is made, or where Django has made an UPDATE or a DELETE of the query.
    pushed: Pushed | None = None

    join_type = INNER
    join_field = None
    join_cols = ()
    nullable = False
    filtered_relation = None

    @property
    def table_name(self) -> str:
        return f"foh.{self.index}_search"

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        query, parameters = self._query(compiler)
        arguments = given({"k": self.k, **self.how})
        named = [f"query => {query}", *(f"{name} => %s" for name in arguments)]
        parameters += arguments.values()
        pushed = self.pushed or split(compiler.query, self)[0]
        if (condition := self._condition(pushed, compiler, connection)) is not None:
            named.append("filter => %s")
            parameters.append(condition)
        if pushed.match:
            named.append("match => %s::pg_catalog.jsonb")
            parameters.append(as_json(pushed.match))
        quote = getattr(compiler, "quote_name", None) or compiler.quote_name_unless_alias
        alias = quote(self.table_alias)
        call = f"{function(self.index, 'search').as_string(None)}({', '.join(named)})"
        conditions = []
        for number, field in enumerate(compiler.query.model._meta.pk_fields, 1):
            key, key_parameters = compiler.compile(field.get_col(self.parent_alias))
            # PostgreSQL's own operator, whatever stands before it in the search_path.
            conditions.append(f"{key} OPERATOR(pg_catalog.=) {alias}.key{number}")
            parameters += key_parameters
        return f"INNER JOIN {self._found(call, alias)} ON ({' AND '.join(conditions)})", parameters

    def _found(self, call: str, alias: str) -> str:
        """What the search returns, its key as key1, key2, ..."""
        fields = self.source._meta.pk_fields
        if len(fields) == 1:
            return f"{call} AS {alias} (key1, distance, score)"
        # By their names, since the table may have the columns of its key in another order than the model.
        names = [sql.Identifier(field.column).as_string(None).replace("%", "%%") for field in fields]
        keys = [f"{name} AS key{number}" for number, name in enumerate(names, 1)]
        columns = {field.column for field in fields}
        ours = [f"{f'foh_{name}' if name in columns else name} AS {name}" for name in ("distance", "score")]
        return f"(SELECT {', '.join([*keys, *ours])} FROM {call} found) AS {alias}"  # noqa: S608

    def _query(self, compiler: Any) -> tuple[str, list[Any]]:
        if isinstance(self.query, str):
            return "%s", [self.query]
        query, parameters = compiler.compile(self.query)
        return query, list(parameters)

    def _condition(self, pushed: Pushed, compiler: Any, connection: Any) -> str | None:
        try:
            return pushed.text(compiler, connection, self.source)
        except EmptyResultSet:
            if compiler.elide_empty:
                raise
            return "false"

    def relabeled_clone(self, change_map: dict[str, str]) -> SearchJoin:
        is_expression = hasattr(self.query, "relabeled_clone")
        return replace(
            self,
            query=self.query.relabeled_clone(change_map) if is_expression else self.query,
            parent_alias=change_map.get(self.parent_alias, self.parent_alias),
            table_alias=change_map.get(self.table_alias, self.table_alias),
        )

    # Django turns inner joins into outer ones, which may not happen to a search.
    def promote(self) -> SearchJoin:
        return self

    def demote(self) -> SearchJoin:
        return self


class NearestQuery(Query):
    """A Query with a search in it."""

    @property
    def search_alias(self) -> str | None:
        for alias, table in self.alias_map.items():
            if isinstance(table, SearchJoin):
                return str(alias)
        return None

    def add_search(self, join: SearchJoin) -> tuple[Any, Any]:
        """Join the search; the columns with the score and the distance."""
        if not isinstance(join.query, str):
            join = replace(join, query=join.query.resolve_expression(self))
        join = replace(join, parent_alias=self.get_initial_alias())
        self.alias_map[ALIAS] = join
        self.alias_refcount[ALIAS] = 1
        self.table_map[join.table_name] = [ALIAS]
        return Col(ALIAS, SCORE), Col(ALIAS, DISTANCE)

    def get_compiler(self, using: Any = None, connection: Any = None, elide_empty: bool = True) -> Any:
        alias = self.search_alias
        statement = self if alias is None else self._with_pushed_conditions(alias)
        return Query.get_compiler(statement, using, connection, elide_empty)

    def resolve_expression(self, query: Any, *args: Any, **kwargs: Any) -> Any:
        """As a subquery: the vector may come from the statement around it (OuterRef)."""
        clone = super().resolve_expression(query, *args, **kwargs)
        for alias, table in list(clone.alias_map.items()):
            if isinstance(table, SearchJoin) and not isinstance(table.query, str):
                resolved = table.query.resolve_expression(query, *args, **kwargs)
                clone.alias_map[alias] = replace(table, query=resolved)
        return clone

    def _with_pushed_conditions(self, alias: str) -> Query:
        statement = self.clone()
        join = statement.alias_map[alias]
        pushed, rest = split(statement, join)
        statement.where = rest
        statement.alias_map[alias] = replace(join, pushed=pushed)
        _leave_out_unused_joins(statement)
        return statement


def _leave_out_unused_joins(query: Any) -> None:
    """Remove what was joined for conditions alone: rows that match twice would be found twice.

    Joins for select_related and for order_by are made, or taken up again, when the statement is compiled.
    """
    if query.extra or query.extra_tables or query.distinct_fields:
        return
    grouped = query.group_by if isinstance(query.group_by, tuple) else ()
    used = [*query.select, *query.annotations.values(), *grouped, query.where]
    kept = {query.base_table, *Query._gen_col_aliases(used)}
    for alias in list(kept):
        while alias in query.alias_map and (alias := query.alias_map[alias].parent_alias) is not None:
            kept.add(alias)
    for alias, table in query.alias_map.items():
        if alias not in kept and not isinstance(table, SearchJoin):
            query.alias_refcount[alias] = 0
