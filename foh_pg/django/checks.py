"""System checks: what is wrong with the indexes that models declare, before a search finds out.

Checks of models always run. Checks of databases run in ``manage.py check --database default`` and before
``manage.py migrate``. They are warnings, since an error would keep migrate from running, and leave out
what a migration that is not applied yet would put right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import psycopg
from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.core.checks import CheckMessage, Error, Warning
from django.db import DatabaseError, connections, router
from django.db.migrations.executor import MigrationExecutor
from django.db.models import FloatField
from pgvector.django import HalfVectorField, VectorField

from foh_pg.django.databases import driver_connection, is_postgresql
from foh_pg.django.index import FohIndex
from foh_pg.django.operations import UpgradeFoh
from foh_pg.errors import FohError, InputError

LIST = "manage.py foh status lists those there are"

# Asked first, whether the role may read foh.index: many databases have no schema foh, or for other roles.
READABLE = """
SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE n.nspname OPERATOR(pg_catalog.=) 'foh' AND c.relname OPERATOR(pg_catalog.=) 'index'
"""
PRESENT = """
SELECT i.name, i.status,
       (SELECT pg_catalog.min(pg_catalog.concat(t.what, ': ', t.cure)) FROM foh._problems(i) t)
FROM foh.index i
"""
SEARCHES = """
SELECT pg_catalog.regexp_replace(p.proname, '_search$', '') FROM pg_catalog.pg_proc p
WHERE p.pronamespace OPERATOR(pg_catalog.=) pg_catalog.to_regnamespace('foh')
  AND p.proname OPERATOR(pg_catalog.~) '_search$'
"""


def check_models(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Whether each index can be made from the fields of its model. Names are compared by Django itself."""
    return [message for model, index in _declared(app_configs) for message in _check_index(model, index)]


def check_databases(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Whether schema `foh` and the indexes are there, and of this version."""
    messages: list[CheckMessage] = []
    for alias in databases or ():
        connection = connections[alias]
        declared = [
            (model, index)
            for model, index in _declared(None)
            if model._meta.managed and router.allow_migrate_model(alias, model)
        ]
        if declared and is_postgresql(connection):
            messages += _check_database(connection, declared)
    return messages


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
        index.define(model)
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


def _check_database(connection: Any, declared: list[tuple[Any, FohIndex]]) -> Iterator[CheckMessage]:
    from foh_pg.schema import migrations

    try:
        coming = list(_pending_operations(connection))
        revision, outdated = _schema(connection)
    except (DatabaseError, psycopg.Error, FohError) as error:
        message = f"Schema foh of database {connection.alias!r} cannot be checked: {error}"
        yield Warning(message, id="foh_pg.W010")
        return
    if revision is not None and not any(isinstance(operation, UpgradeFoh) for operation in coming):
        yield from _check_schema(connection.alias, revision, outdated)
    if revision != migrations.BASE:
        yield from _check_indexes(connection, declared, coming)


def _schema(connection: Any) -> tuple[str | None, bool]:
    """The revision, and whether functions are outdated. None for a role that may search and nothing else."""
    from foh_pg.schema import migrations

    raw = driver_connection(connection)
    try:
        return migrations.revision(raw), migrations.code_is_outdated(raw)
    except psycopg.errors.InsufficientPrivilege:
        return None, False


def _check_schema(alias: str, revision: str, outdated: bool) -> Iterator[CheckMessage]:
    from foh_pg.schema import migrations

    if revision == migrations.BASE:
        yield Warning(
            f"Schema foh is not installed in database {alias!r}, and no migration installs it.",
            hint="Put InstallFoh() from foh_pg.django.operations into a migration before the first FohIndex.",
            id="foh_pg.W011",
        )
    elif revision != migrations.head() or outdated:
        state = f"is at revision {revision}, this foh_pg needs {migrations.head()}"
        yield Warning(
            f"Schema foh of database {alias!r} "
            f"{'has functions of another version than this foh_pg' if outdated else state}.",
            hint="Put UpgradeFoh() from foh_pg.django.operations into a migration, or run foh-pg migrate.",
            id="foh_pg.W012",
        )


def _check_indexes(
    connection: Any, declared: list[tuple[Any, FohIndex]], coming: list[Any]
) -> Iterator[CheckMessage]:
    present = _present(connection)
    made = set(_indexes_of(coming))
    for model, index in declared:
        if index.name in made:
            continue
        if index.name not in present:
            yield Warning(
                f"Database {connection.alias!r} has no index {index.name!r}.",
                hint="Run makemigrations and migrate. If both have nothing to do, somebody dropped the index "
                f"({LIST}): migrate back before the migration that made it, and forward again.",
                obj=model,
                id="foh_pg.W013",
            )
            continue
        status, problem = present[index.name]
        if problem is not None:
            yield Warning(
                f"Index {index.name!r}: {problem}.",
                hint="To follow a table that was changed, put "
                f"RefreshFohIndex({model._meta.model_name!r}, {index.name!r}) into a migration.",
                obj=model,
                id="foh_pg.W014",
            )
        elif status == "building":
            yield Warning(
                f"Index {index.name!r} is not built: every search reads the whole table.",
                hint=f"Run manage.py foh build {index.name}.",
                obj=model,
                id="foh_pg.W015",
            )


def _present(connection: Any) -> dict[str, tuple[str | None, str | None]]:
    """The indexes, with status and problem where this role may know them."""
    with connection.cursor() as cursor:
        cursor.execute(READABLE)
        if cursor.fetchone() == (True,):
            cursor.execute(PRESENT)
            return {name: (status, problem) for name, status, problem in cursor.fetchall()}
        cursor.execute(SEARCHES)
        return {name: (None, None) for (name,) in cursor.fetchall()}


def _pending_operations(connection: Any) -> Iterator[Any]:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    for migration, _ in plan:
        yield from migration.operations


def _indexes_of(operations: Iterable[Any]) -> Iterator[str]:
    """Names of the indexes that operations make, alone or with their model."""
    for operation in operations:
        if isinstance(getattr(operation, "index", None), FohIndex):
            yield operation.index.name
        for index in getattr(operation, "options", {}).get("indexes", ()):
            if isinstance(index, FohIndex):
                yield index.name
