"""The SQL that migrations run for indexes, with all values written out: sqlmigrate prints the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from psycopg import sql

CREATE = """
BEGIN
    IF pg_catalog.to_regnamespace('foh') IS NULL THEN
        RAISE EXCEPTION 'schema foh is not installed in this database'
            USING HINT = 'Put InstallFoh() from foh_pg.django.operations into a migration before this.';
    END IF;
    PERFORM foh.create_index({arguments});
END
"""
DROP = "SELECT foh.drop_index({name}, true)"
ALTER = "SELECT foh.alter_index({name}, {options}::pg_catalog.jsonb)"
REFRESH = "SELECT foh.refresh({name})"
LABELS = "SELECT * FROM {function}(%s, %s, %s)"

CASTS = {
    "source": "pg_catalog.regclass",
    "labels_from": "pg_catalog.regclass",
    "options": "pg_catalog.jsonb",
    "include": "pg_catalog.name[]",
}


def labels(name: str) -> str:
    """Labels suggested for a vector; parameters: the vector, how many, and a row without a vote."""
    function = sql.Identifier("foh", f"{name}_labels").as_string(None).replace("%", "%%")
    return sql.SQL(LABELS).format(function=sql.SQL(function)).as_string(None)


def create(arguments: Mapping[str, Any]) -> str:
    """Make an index, with the arguments of foh.create_index."""
    written: dict[str, Callable[[Any], str]] = {
        "source": table_name,
        "labels_from": table_name,
        "options": _json,
    }
    named = sql.SQL(", ").join(
        sql.SQL("{} => {}{}").format(
            sql.SQL(name),
            sql.Literal(written[name](value) if name in written else value),
            sql.SQL(f"::{CASTS[name]}" if name in CASTS else ""),
        )
        for name, value in arguments.items()
        if value not in (None, {}, [])
    )
    body = sql.SQL(CREATE).format(arguments=named).as_string(None)
    return f"DO {dollar_quoted(body)}"


def drop(name: str) -> str:
    return sql.SQL(DROP).format(name=sql.Literal(name)).as_string(None)


def alter(name: str, options: Mapping[str, Any]) -> str:
    """Change options; None gives an option its default back."""
    return sql.SQL(ALTER).format(name=sql.Literal(name), options=sql.Literal(_json(options))).as_string(None)


def refresh(name: str) -> str:
    return sql.SQL(REFRESH).format(name=sql.Literal(name)).as_string(None)


def table_name(table: str) -> str:
    """The name of a table as `regclass` reads it; one that its author has quoted stays as it is.

    >>> table_name("shop_product"), table_name('"shop"."product"')
    ('"shop_product"', '"shop"."product"')
    """
    if table.startswith('"') and table.endswith('"'):
        return table
    return sql.Identifier(table).as_string(None)


def dollar_quoted(text: str) -> str:
    """
    >>> dollar_quoted("x")
    '$foh$x$foh$'
    >>> dollar_quoted("$foh$")
    '$foh_$$foh$$foh_$'
    """
    tag = "foh"
    while f"${tag}$" in text:
        tag += "_"
    return f"${tag}${text}${tag}$"


def _json(options: Mapping[str, Any]) -> str:
    return json.dumps(dict(options), sort_keys=True)
