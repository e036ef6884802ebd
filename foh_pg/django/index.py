"""An index as part of a model's declaration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.db.models import Index

from foh_pg.django import statements
from foh_pg.django.definition import MissingField, arguments
from foh_pg.errors import InputError

# Arguments of Django's own indexes that this one does not take, and why.
NOT_OURS = {
    "condition": "every row with an embedding is indexed; searches are filtered by the queryset",
    "opclasses": "the argument distance is cosine, l2 or ip",
    "db_tablespace": "the tables of an index are in schema foh",
}


class FohIndex(Index):
    """A FOH index, in `Meta.indexes`.

    >>> FohIndex("embedding", labels="tags", name="products", bits=64)

    Parameters
    ----------
    embedding
        The field with the vectors: pgvector's VectorField or HalfVectorField, or an ArrayField of floats. It
        may be given as ``fields=["embedding"]`` too, as other indexes have it.
    labels
        What codes learn to keep together: a field with text, numbers or an array of them; a ForeignKey or a
        ManyToManyField, whose targets are the labels; or ``"topics__name"``, a field of rows that refer to
        this model.
    name
        How the index is called in `foh`, at most 40 bytes. Names are unique in a database.
    bits, dimensions, distance
        As `foh.create_index` has them.
    include
        Fields by which searches are filtered: the index keeps them beside its rows, and answers conditions on
        them without a look at the table.
    options
        All others, such as `probes` and `dial`: see docs/reference/options.md.
    """

    suffix = "foh"
    max_name_length = 40

    def __init__(
        self,
        *expressions: Any,
        fields: Any = (),
        name: str | None = None,
        labels: str | None = None,
        include: Sequence[str] = (),
        **options: Any,
    ) -> None:
        given = [*expressions, *fields]
        if len(given) != 1 or not isinstance(given[0], str) or given[0].startswith("-"):
            shown = ", ".join(map(repr, given)) or "nothing"
            raise InputError(f"FohIndex takes the name of one field, the one with the vectors; got {shown}")
        for argument, reason in NOT_OURS.items():
            if argument in options:
                raise InputError(f"FohIndex takes no {argument}: {reason}")
        super().__init__(fields=given, name=name)
        self.include = tuple(include)
        self.labels = labels
        self.bits: int = options.pop("bits", 64)
        self.dimensions: int | None = options.pop("dimensions", None)
        self.distance: str = options.pop("distance", "cosine")
        self.options = options

    @property
    def embedding(self) -> str:
        return str(self.fields[0])

    def deconstruct(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        _, arguments, keywords = super().deconstruct()
        keywords["fields"] = FieldsOfIndex(self.fields, self.name)
        # bits are written even where they are the default: they decide what the index is.
        keywords["bits"] = self.bits
        for name, default in (("labels", None), ("dimensions", None), ("distance", "cosine")):
            if getattr(self, name) != default:
                keywords[name] = getattr(self, name)
        return "foh_pg.django.FohIndex", arguments, {**keywords, **self.options}

    def create_sql(self, model: Any, schema_editor: Any, using: str = "", **kwargs: Any) -> Any:
        try:
            return statements.create(schema_editor, arguments(self, model))
        except MissingField:
            if "__" not in (self.labels or ""):
                raise
        # The rows with the labels refer to this model, so makemigrations creates their model after it and,
        # not knowing better, after this index too. The index then waits for the end of the migration.
        whole = apps.get_model(model._meta.label)
        schema_editor.deferred_sql.append(statements.create(schema_editor, arguments(self, whole)))
        return f"SELECT 1 /* index {self.name} is created at the end of this migration */"

    def remove_sql(self, model: Any, schema_editor: Any, **kwargs: Any) -> Any:
        # The schema editor takes this text for one with parameters.
        return statements.drop(schema_editor, self.name).replace("%", "%%")


class FieldsOfIndex(list[str]):
    """The fields of one index, equal only to those of an index of the same name.

    If nothing but the name of an index differs, makemigrations writes RenameIndex, which is ALTER INDEX, and
    PostgreSQL knows no such index. With these it sees two indexes, and writes RemoveIndex and AddIndex.
    """

    def __init__(self, fields: list[str], index: str) -> None:
        super().__init__(fields)
        self.owner = index

    def __eq__(self, other: object) -> bool:
        mine = not isinstance(other, FieldsOfIndex) or other.owner == self.owner
        return mine and list.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def index_of(model: Any, wanted: str | None) -> tuple[FohIndex, Any]:
    """The index to search, with the model that declares it: the model itself or a parent."""
    concrete = model._meta.concrete_model
    found = [
        (index, declaring)
        for declaring in (concrete, *concrete._meta.get_parent_list())
        for index in declaring._meta.indexes
        if isinstance(index, FohIndex)
    ]
    names = ", ".join(repr(index.name) for index, _ in found)
    label = model._meta.label
    if wanted is not None:
        for index, declaring in found:
            if index.name == wanted:
                return index, declaring
        raise InputError(f"{label} has no FohIndex {wanted!r}; it has {names or 'none'}")
    if not found:
        raise InputError(
            f"{label} has no FohIndex: put FohIndex('embedding', name=...) into its Meta.indexes, "
            "then run makemigrations and migrate"
        )
    if len(found) > 1:
        raise InputError(f"{label} has the indexes {names}: choose one with the argument index")
    return found[0]
