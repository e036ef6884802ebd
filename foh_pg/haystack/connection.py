"""The connection that a store is given: as it is used, and as it is written to a file."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from haystack.utils import Secret
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from foh_pg.errors import InputError
from foh_pg.stores import store_table

Connectable = Secret | store_table.Connectable


def resolved(connection: Connectable) -> store_table.Connectable:
    """The connection itself; a Secret is asked for its value."""
    address = connection.resolve_value() if isinstance(connection, Secret) else connection
    if address is None:
        raise InputError("the store has no connection string: its Secret has no value")
    return address


def serialized(connection: Connectable) -> Any:
    """For a file that others may read: a Secret says where the value is, a string must hold no password."""
    if isinstance(connection, Secret):
        return connection.to_dict()
    if isinstance(connection, str):
        try:
            password = conninfo_to_dict(connection).get("password")
        except ProgrammingError:
            password = sa.make_url(connection).password
        if password is None:
            return connection
        reason = "its connection string has a password"
    else:
        reason = f"its connection is a {type(connection).__name__}"
    raise InputError(
        f"the store cannot be written to a file: {reason}. Pass Secret.from_env_var('PG_CONN_STR') as "
        "connection"
    )
