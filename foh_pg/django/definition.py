"""What an index is made from: the names of tables and columns behind the fields of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import Field

from foh_pg.errors import InputError

if TYPE_CHECKING:
    from foh_pg.django.index import FohIndex


class MissingField(InputError):
    """A model has no such field."""


def arguments(index: FohIndex, model: Any) -> dict[str, Any]:
    """What foh.create_index is called with; tables by the names that Django has for them."""
    return {
        "name": index.name,
        "source": model._meta.db_table,
        "embedding": _own_column(index, model, "embedding", index.embedding),
        **({} if index.labels is None else _labels(index, model, index.labels)),
        "bits": index.bits,
        "dimensions": index.dimensions,
        "distance": index.distance,
        "options": index.options,
        "include": included(index, model),
    }


def included(index: FohIndex, model: Any) -> list[str]:
    """The columns that the index includes."""
    return [_own_column(index, model, "include", name) for name in index.include]


def dimensions_of(index: FohIndex, model: Any) -> int | None:
    """As the index or its field says; None where only the database knows."""
    if index.dimensions is not None:
        return index.dimensions
    declared = getattr(model._meta.get_field(index.embedding), "dimensions", None)
    return None if declared is None else int(declared)


def _labels(index: FohIndex, model: Any, path: str) -> dict[str, str]:
    """Where the labels are: a column of the model's table, or of a table with the key of the model."""
    name, _, rest = path.partition("__")
    field = _field(index, model, "labels", name)
    if field.many_to_many and not field.auto_created:
        if rest:
            raise InputError(
                f"FohIndex {index.name!r}: labels={path!r} asks for a field behind a ManyToManyField; "
                f"labels={name!r} takes the rows themselves as labels, which serves as well"
            )
        through = field.remote_field.through._meta
        column, table, key = field.m2m_reverse_name(), through.db_table, field.m2m_column_name()
        return {"labels": column, "labels_from": table, "labels_key": key}
    if field.one_to_many and rest:
        related = field.related_model
        column, table = _own_column(index, related, "labels", rest), related._meta.db_table
        return {"labels": column, "labels_from": table, "labels_key": field.field.column}
    if rest or not isinstance(field, Field):
        raise InputError(
            f"FohIndex {index.name!r}: labels={path!r} leads through {name!r}; labels are a field of "
            f"{model._meta.label}, a ManyToManyField, or a field of rows that refer to it "
            "(their related_name, two underscores, the field)"
        )
    return {"labels": _own_column(index, model, "labels", path)}


def _own_column(index: FohIndex, model: Any, role: str, name: str) -> str:
    """The column of a field, in the table of the model itself and not in that of a parent."""
    field = _field(index, model, role, name)
    if field not in model._meta.local_concrete_fields:
        raise InputError(
            f"FohIndex {index.name!r}: field {name!r} ({role}) is no column of the table of "
            f"{model._meta.label}"
        )
    return str(field.column)


def _field(index: FohIndex, model: Any, role: str, name: str) -> Any:
    try:
        return model._meta.get_field(name)
    except FieldDoesNotExist as error:
        known = ", ".join(field.name for field in model._meta.get_fields())
        raise MissingField(
            f"FohIndex {index.name!r}: {model._meta.label} has no field {name!r} ({role}); it has {known}"
        ) from error
