"""System checks: what is wrong with the indexes that models declare, before a migration finds out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.core.checks import CheckMessage, Error, Warning
from django.db import router
from django.db.models import FloatField
from pgvector.django import HalfVectorField, VectorField

from foh_pg.django.definition import arguments
from foh_pg.django.index import FohIndex
from foh_pg.errors import InputError


def check_models(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Whether each index can be made from the fields of its model. Names are compared by Django itself."""
    return [message for model, index in _declared(app_configs) for message in _check_index(model, index)]


def _declared(app_configs: Sequence[Any] | None) -> Iterator[tuple[Any, FohIndex]]:
    for config in apps.get_app_configs() if app_configs is None else app_configs:
        for model in config.get_models():
            for index in model._meta.indexes:
                if isinstance(index, FohIndex) and not model._meta.proxy:
                    yield model, index


def declared_names(alias: str) -> list[str]:
    """The indexes that the models of a database declare."""
    return [index.name for model, index in _declared(None) if router.allow_migrate_model(alias, model)]


def _check_index(model: Any, index: FohIndex) -> Iterator[CheckMessage]:
    try:
        arguments(index, model)
    except InputError as error:
        yield Error(f"{error}.", obj=model, id="foh_pg.E001")
        return
    field = model._meta.get_field(index.embedding)
    if not _can_be_embedding(field):
        yield Error(
            f"FohIndex {index.name!r}: field {index.embedding!r} is a {type(field).__name__}.",
            hint="Embeddings are in pgvector's VectorField or HalfVectorField, or an ArrayField of floats.",
            obj=model,
            id="foh_pg.E002",
        )
    elif index.dimensions is None and getattr(field, "dimensions", None) is None:
        yield Warning(
            f"FohIndex {index.name!r}: neither it nor field {index.embedding!r} says how many dimensions.",
            hint="Pass dimensions=... to the field or to the index; an empty table does not tell.",
            obj=model,
            id="foh_pg.W003",
        )


def _can_be_embedding(field: Any) -> bool:
    if isinstance(field, ArrayField):
        return isinstance(field.base_field, FloatField)
    return isinstance(field, (VectorField, HalfVectorField))
