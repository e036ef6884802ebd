"""Autogenerate: the indexes that models declare against those that the database has."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from alembic.autogenerate.api import AutogenContext
from alembic.operations.ops import DropTableOp, MigrateOperation, UpgradeOps
from alembic.util import PriorityDispatchResult

from foh_pg.alembic.operations import AlterFohIndexOp, CreateFohIndexOp, DropFohIndexOp, FohMigrateOp
from foh_pg.errors import SchemaError
from foh_pg.index.calls import columns_text
from foh_pg.schema import migrations
from foh_pg.schema.indexed import READABLE
from foh_pg.sqlalchemy.definition import Definition
from foh_pg.sqlalchemy.index import declared

CONTINUE = PriorityDispatchResult.CONTINUE

SCHEMA = "foh"

SET_PATH = sa.text("SELECT pg_catalog.set_config('search_path', :path, false)")

# Columns by the names that they have now, where the table has them still: an index follows a renamed column.
PRESENT = """
SELECT i.name, n.nspname AS schema, c.relname AS table,
       fn.nspname AS labels_from_schema, f.relname AS labels_from,
       -- The primary key is the default, which a model does not name.
       CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_index x
                         WHERE x.indrelid = c.oid AND x.indisprimary AND x.indkey::int2[] @> i.key_attnum
                           AND x.indnkeyatts = cardinality(i.key_attnum))
            THEN r.columns - 'key' ELSE r.columns END AS columns,
       i.bits, i.dimensions, i.distance, i.options
FROM foh.index i
-- An index whose table is gone gives way to another one.
JOIN pg_catalog.pg_class c ON c.oid = i.source
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_class f ON f.oid = i.labels_from
LEFT JOIN pg_catalog.pg_namespace fn ON fn.oid = f.relnamespace
CROSS JOIN LATERAL (
    SELECT jsonb_object_agg(d.role, d.names) AS columns
    FROM (SELECT w.role, jsonb_agg(coalesce(p.name, w.name) ORDER BY w.at) AS names
          FROM foh._recorded(i) w JOIN foh._present(i) p ON p.at = w.at
          WHERE w.number > 0 GROUP BY w.role) d) r
ORDER BY i.name
"""

# What cannot be altered in an index. Dimensions follow from the column, unless declared.
FIXED = ("table", "schema", "key", "embedding", "labels", "labels_from", "labels_from_schema", "labels_key",
         "bits", "distance")  # fmt: skip


def leave_out_our_schema(context: AutogenContext, upgrade: UpgradeOps, schemas: set[str | None]) -> Any:
    """Keep schema `foh` away from all other comparisons, with ``include_schemas`` too."""
    schemas.discard(SCHEMA)
    return CONTINUE


def compare_indexes(context: AutogenContext, upgrade: UpgradeOps, schemas: set[str | None]) -> Any:
    """Add what is to be done about indexes around what is to be done about tables."""
    connection = context.connection
    assert connection is not None
    operations = list(upgrade.ops)
    default = connection.dialect.default_schema_name
    wanted = _wanted(context, default)
    migrations.refuse_foreign(connection)
    with _pinned(connection):
        present = _present(connection) if _is_readable(connection, bool(wanted)) else {}
    before = list(_install(connection)) if wanted else []
    drops: list[MigrateOperation] = []
    changes: list[MigrateOperation] = []
    for name, index in wanted.items():
        if name not in present:
            changes.append(CreateFohIndexOp(_relative(index, default)))
        elif _differs(index, present[name][0]):
            drops.append(DropFohIndexOp(name, index=_relative(present[name][0], default)))
            changes.append(CreateFohIndexOp(_relative(index, default)))
        else:
            changes.extend(_alter(index, *present[name]))
    dropped = {
        (each.schema or default, each.table_name) for each in operations if isinstance(each, DropTableOp)
    }
    for name, (index, _) in present.items():
        if name not in wanted and _is_ours_to_drop(context, index, schemas, default, dropped):
            drops.append(DropFohIndexOp(name, index=_relative(index, default)))
    upgrade.ops[:] = [*before, *drops, *operations, *changes]
    return CONTINUE


@contextmanager
def _pinned(connection: sa.Connection) -> Iterator[None]:
    """Inside, names and operators are PostgreSQL's own; every other name needs its schema.

    Where a statement fails, the end of its transaction brings the application's search_path back.
    """
    path = connection.exec_driver_sql("SHOW search_path").scalar_one()
    connection.execute(SET_PATH, {"path": "pg_catalog, pg_temp"})
    yield
    connection.execute(SET_PATH, {"path": path})


def _wanted(context: AutogenContext, default: str | None) -> dict[str, Definition]:
    metadata = context.metadata
    catalogs: Iterable[sa.MetaData] = metadata if isinstance(metadata, (list, tuple)) else [metadata]  # type: ignore[list-item]
    indexes = {}
    for index in declared(*catalogs):
        if context.run_object_filters(index, index.name, "foh_index", False, None):  # type: ignore[arg-type]
            indexes[index.name] = _absolute(index.definition, default)
    return indexes


def _is_readable(connection: sa.Connection, needed: bool) -> bool:
    """Whether there are indexes to look at: most databases that Alembic compares have nothing of ours."""
    readable = connection.exec_driver_sql(READABLE).scalar()
    if readable is False and needed:
        raise SchemaError(
            f"role {connection.scalar(sa.text('SELECT current_user'))!r} may not read schema foh, where the "
            "indexes are: connect as the owner of schema foh"
        )
    return bool(readable)


def _install(connection: sa.Connection) -> Iterable[MigrateOperation]:
    revision = migrations.revision(connection)
    if revision != migrations.head():
        yield FohMigrateOp(migrations.HEAD, revision)


def _present(connection: sa.Connection) -> dict[str, tuple[Definition, Mapping[str, Any]]]:
    """Each index as it would be declared now, and all its options."""
    found: dict[str, tuple[Definition, Mapping[str, Any]]] = {}
    rows = connection.exec_driver_sql(PRESENT).mappings().all()
    if not rows:
        return found
    defaults = connection.exec_driver_sql("SELECT foh._default_options()").scalar_one()
    for row in rows:
        values = dict(row)
        options, columns = values.pop("options"), values.pop("columns")
        set_ = {name: value for name, value in options.items() if value != defaults.get(name)}
        for role in ("embedding", "labels", "labels_key", "key"):
            values[role] = columns_text(columns.get(role))
        index = Definition(**values, include=columns.get("included", []), options=set_)
        found[index.name] = (index, options)
    return found


def _differs(index: Definition, present: Definition) -> bool:
    if index.dimensions is not None and index.dimensions != present.dimensions:
        return True
    # The columns of its tables are made from this option.
    geometry = present.options.get("geometry")
    if index.options.get("geometry", geometry) != geometry:
        return True
    return any(getattr(index, each) != getattr(present, each) for each in FIXED)


def _alter(index: Definition, present: Definition, options: Mapping[str, Any]) -> Iterable[AlterFohIndexOp]:
    """Options that a model does not name stay as they were set on the index."""
    changed = {name: value for name, value in index.options.items() if options.get(name) != value}
    if set(index.include) != set(present.include):
        changed["include"] = list(index.include)
        options = {**options, "include": list(present.include)}
    if changed:
        yield AlterFohIndexOp(index.name, changed, {name: options.get(name) for name in changed})


def _is_ours_to_drop(
    context: AutogenContext,
    index: Definition,
    schemas: set[str | None],
    default: str | None,
    dropped: set[tuple[str | None, str]],
) -> bool:
    """Whether the application compared has, or had, the table of an index that it does not declare."""
    schema = None if index.schema == default else index.schema
    names: Any = {"schema_name": schema, "table_name": index.table}
    if schema not in schemas or not context.run_name_filters(index.name, "foh_index", names):  # type: ignore[arg-type]
        return False
    if not context.run_object_filters(index, index.name, "foh_index", True, None):  # type: ignore[arg-type]
        return False
    known = {(table.schema or default, table.name) for table in context.sorted_tables}
    place = (index.schema, index.table)
    return place in known or place in dropped


def _absolute(index: Definition, default: str | None) -> Definition:
    return dataclasses.replace(
        index,
        schema=index.schema or default,
        labels_from_schema=(index.labels_from_schema or default) if index.labels_from else None,
    )


def _relative(index: Definition, default: str | None) -> Definition:
    """As a migration is written: the default schema is not named."""
    return dataclasses.replace(
        index,
        schema=None if index.schema == default else index.schema,
        labels_from_schema=None if index.labels_from_schema == default else index.labels_from_schema,
    )
