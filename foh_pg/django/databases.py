"""From a connection of Django's to what the rest of foh_pg takes: a psycopg connection, or a DSN."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from foh_pg.errors import InputError


def is_postgresql(connection: Any) -> bool:
    return bool(connection.vendor == "postgresql")


def driver_connection(connection: Any) -> psycopg.Connection[Any]:
    """The psycopg connection, inside the transaction that Django believes to have."""
    with connection.cursor() as cursor:
        # Django's transactions begin with their first statement. Before it psycopg would take the next block
        # for a transaction of its own, and commit at its end.
        cursor.execute("SELECT 1")
        raw = cursor.connection
    if not isinstance(raw, psycopg.Connection):
        raise InputError(
            f"database {connection.alias!r} is reached with {type(raw).__module__}, foh_pg needs psycopg 3"
        )
    return raw


def dsn(connection: Any) -> str:
    """What libpq needs to know to connect as Django does, with the role that Django assumes."""
    if not is_postgresql(connection):
        raise InputError(f"database {connection.alias!r} is {connection.display_name}, not PostgreSQL")
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    given = {name: value for name, value in connection.get_connection_params().items() if name in known}
    role = connection.settings_dict["OPTIONS"].get("assume_role")
    if role:
        # As libpq wants it: a backslash before what would end a word.
        escaped = role.replace("\\", "\\\\").replace(" ", "\\ ")
        given["options"] = f"{given.get('options', '')} -c role={escaped}".strip()
    return make_conninfo("", **given)
