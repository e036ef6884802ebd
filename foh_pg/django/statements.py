"""The SQL that migrations run for indexes, with all values written out: sqlmigrate prints the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg import sql

from foh_pg.errors import SchemaError
from foh_pg.index import calls

INSTALLED = "SELECT pg_catalog.to_regnamespace('foh') IS NOT NULL"
LABELS = "SELECT * FROM {function}(%s, %s, %s)"


def labels(name: str) -> str:
    """Labels suggested for a vector; parameters: the vector, how many, and a row without a vote."""
    return sql.SQL(LABELS).format(function=calls.function(name, "labels")).as_string(None)


def create(schema_editor: Any, arguments: dict[str, Any]) -> str:
    """Make an index, with the arguments of foh.create_index."""
    if not schema_editor.collect_sql:
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(INSTALLED)
            if cursor.fetchone() != (True,):
                raise SchemaError(
                    "schema foh is not installed in this database: put InstallFoh() from "
                    "foh_pg.django.operations into a migration before this one"
                )
    others = {name: value for name, value in arguments.items() if value not in (None, {}, [])}
    if "labels_from" in others:
        others["labels_from"] = table_name(others["labels_from"])
    name, source, embedding = (others.pop(name) for name in ("name", "source", "embedding"))
    return _written(schema_editor, calls.create(name, table_name(source), embedding, others))


def drop(schema_editor: Any, name: str) -> str:
    return _written(schema_editor, calls.invoke("drop_index", {"name": name, "if_exists": True}))


def alter(schema_editor: Any, name: str, options: Mapping[str, Any]) -> str:
    """Change options; None gives an option its default back."""
    return _written(schema_editor, calls.alter(name, options))


def refresh(schema_editor: Any, name: str) -> str:
    return _written(schema_editor, calls.invoke("refresh", {"name": name}))


def _written(schema_editor: Any, call: calls.Call) -> str:
    return str(schema_editor.connection.ops.compose_sql(call.statement, call.parameters))


def table_name(table: str) -> str:
    """The name of a table as `regclass` reads it; one that its author has quoted stays as it is.

    >>> table_name("shop_product"), table_name('"shop"."product"')
    ('"shop_product"', '"shop"."product"')
    """
    if table.startswith('"') and table.endswith('"'):
        return table
    return sql.Identifier(table).as_string(None)
