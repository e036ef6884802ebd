"""Searches as querysets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import ProgrammingError, connections
from django.db.models import Manager, QuerySet, Subquery

from foh_pg.django import statements
from foh_pg.django.definition import dimensions_of, included
from foh_pg.django.index import index_of
from foh_pg.django.query import NearestQuery, SearchJoin
from foh_pg.errors import IndexNotFound, InputError
from foh_pg.index.calls import HowToSearch
from foh_pg.index.results import Suggestion
from foh_pg.postgres.vectors import PackedVector

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

# No such function, no such schema.
MISSING = ("42883", "3F000")


class FohQuerySet(QuerySet):
    """A queryset that can be searched; `FohManager` has its methods, and so has `as_manager()` of it."""

    def nearest(
        self,
        query: Any,
        k: int = 10,
        *,
        index: str | None = None,
        score: str = "score",
        distance: str | None = None,
        **how: Unpack[HowToSearch],
    ) -> Self:
        """The k instances nearest to `query`, nearest first, each with its score.

        The result is a queryset as any other. What it is filtered by, before this call or after it, is part
        of the search: k instances come back whenever k match. A condition on the score alone is applied to
        the k instances that were found.

        >>> Product.objects.filter(brand__name="Acme").nearest(vector, k=10).select_related("brand")
        >>> [product.score async for product in Product.objects.nearest(vector, labels=0)]

        Parameters
        ----------
        query
            A list or an array of numbers, or an expression of type vector, such as a Subquery.
        labels
            How much the labels count, from 0 (nearest vectors and nothing else) over 0.5 (as learned) to 1
            (instances likeliest to share a label); None: the index's option `dial`.
        probes, shortlist
            Lists to read and rows to rank with the exact distance; None: the index's own choice.
        recall
            The share of the ten nearest rows to find; 1 reads the table itself. None: the index's own choice.
        max_distance
            No instance farther than that: fewer than k where there are fewer.
        index
            The name of the FohIndex, where the model has several.
        score
            How the attribute with the score is called: smaller is nearer.
        distance
            How to call an attribute with the distance from the query; None: there is none.
        """
        for name in (score, distance):
            if name is not None:
                self._refuse_to_search(name)
        chosen, declaring = index_of(self.model, index)
        _refuse_arguments(k, how)
        if not hasattr(query, "resolve_expression"):
            query = _packed(query, dimensions_of(chosen, declaring), chosen.name)
        search = SearchJoin(chosen.name, declaring, query, k, how, included(chosen, declaring))
        found = self._chain()
        found.query = found.query.chain(NearestQuery)
        ranked, far = found.query.add_search(search)
        columns = {score: ranked} if distance is None else {score: ranked, distance: far}
        return found.annotate(**columns).order_by(score, "pk")  # type: ignore[no-any-return]

    def similar_to(self, instance: Any, k: int = 10, *, index: str | None = None, **arguments: Any) -> Self:
        """The k instances nearest to one of them, without that one.

        Takes an instance, or the key of one, and the other arguments of `nearest`.

        >>> Product.objects.filter(in_stock=True).similar_to(product, k=5)
        """
        chosen, declaring = index_of(self.model, index)
        if isinstance(instance, declaring._meta.concrete_model):
            key = instance.pk
            query = getattr(instance, chosen.embedding)
            if query is None:
                raise InputError(f"{instance!r} has no {chosen.embedding}: nothing can be similar to it")
        else:
            key = instance
            rows = declaring._base_manager.using(self.db).filter(pk=key)
            query = Subquery(rows.values(chosen.embedding))
        found = self.nearest(query, k, index=chosen.name, **arguments)
        return found if key is None else found.exclude(pk=key)

    def suggest_labels(self, query: Any, k: int = 3, *, index: str | None = None) -> list[Suggestion]:
        """The k likeliest labels of a vector or of an instance, by its neighbors and by what was learned.

        An instance has no vote itself, whatever labels it has.

        >>> [label, *others] = Product.objects.suggest_labels(product)
        >>> label.label, label.chance, label.neighbors
        """
        chosen, declaring = index_of(self.model, index)
        _refuse_arguments(k, {})
        key = None
        if isinstance(query, declaring._meta.concrete_model):
            key, query = query.pk, getattr(query, chosen.embedding)
            if query is None:
                raise InputError(f"the instance with the key {key!r} has no {chosen.embedding}")
        vector = _packed(query, dimensions_of(chosen, declaring), chosen.name)
        with connections[self.db].cursor() as cursor:
            cursor.execute(statements.labels(chosen.name), [vector, k, key])
            return [Suggestion(*row) for row in cursor.fetchall()]

    def __and__(self, other: Any) -> Any:
        _refuse_to_combine(self, other, "&")
        return super().__and__(other)

    def __or__(self, other: Any) -> Any:
        _refuse_to_combine(self, other, "|")
        return super().__or__(other)

    def __xor__(self, other: Any) -> Any:
        _refuse_to_combine(self, other, "^")
        return super().__xor__(other)

    def _fetch_all(self) -> None:
        try:
            super()._fetch_all()
        except ProgrammingError as error:
            state = getattr(error.__cause__, "sqlstate", None)
            if not _is_search(self) or state not in MISSING or "foh" not in str(error):
                raise
            raise IndexNotFound(
                f"database {self.db!r} has no index for {self.model._meta.label}: run manage.py migrate; "
                "manage.py foh doctor says what is missing"
            ) from error

    def _refuse_to_search(self, score: str) -> None:
        label = self.model._meta.label
        if self.query.combinator:
            raise InputError(f"{label}: search first, then {self.query.combinator}()")
        if self.query.is_sliced:
            raise InputError(f"{label}: search first, then slice: nearest(vector, k=10)[:5]")
        if self._fields is not None:
            raise InputError(f"{label}: search first, then values(): nearest(vector).values('pk', 'score')")
        if _is_search(self):
            raise InputError(f"{label}: this queryset is the answer to a search already")
        if score in {name for field in self.model._meta.get_fields() for name in _names(field)}:
            raise InputError(
                f"{label} has a field named {score!r}: name the score otherwise, "
                "as in nearest(vector, score='nearness')"
            )


class FohManager(Manager.from_queryset(FohQuerySet)):  # type: ignore[misc]
    """A manager with `nearest`, `similar_to` and `suggest_labels`."""


def _names(field: Any) -> set[str]:
    return {field.name, getattr(field, "attname", field.name)}


def _packed(query: Any, expected: int | None, index: str) -> str:
    vector = PackedVector(query)
    if expected is not None and len(vector.values) != expected:
        raise InputError(f"index {index!r} has {expected} dimensions, the query has {len(vector.values)}")
    return vector.text()


def _refuse_arguments(k: int, how: HowToSearch) -> None:
    unknown, labels = how.keys() - HowToSearch.__annotations__.keys(), how.get("labels")
    if unknown:
        raise InputError(f"nearest() takes no argument {min(unknown)!r}")
    if not isinstance(k, int) or k < 1:
        raise InputError(f"k is {k!r}, it must be a number of rows, 1 or more")
    if labels is not None and not 0 <= labels <= 1:
        raise InputError(
            f"labels is {labels!r}, it must be between 0 (nearest vectors only) and 1 (likeliest to share a "
            "label)"
        )


def _is_search(queryset: Any) -> bool:
    return isinstance(queryset.query, NearestQuery) and queryset.query.search_alias is not None


def _refuse_to_combine(one: Any, other: Any, operator: str) -> None:
    if _is_search(one) or (isinstance(other, QuerySet) and _is_search(other)):
        raise InputError(
            f"the answer to a search cannot be combined with {operator}: filter() it, or take "
            "Model.objects.filter(pk__in=...) of its keys"
        )
