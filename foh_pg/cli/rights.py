"""What a role lacks, said as the command or the GRANT that gives it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import psycopg
from psycopg import errors, sql
from psycopg.rows import tuple_row

from foh_pg.errors import FohError

# Commands that readers and updaters call; all others are for the owner of schema foh.
READERS = ("search", "labels")
UPDATERS = ("build", "rollback", "update", "watch", "evaluate", "status", "check")
# Works on a table, and needs nothing of foh.
TABLES = ("advise",)

# PostgreSQL names what a right is missing on, without its schema.
DENIED = re.compile(r"permission denied for (?P<kind>table|function|schema|database) (?P<name>.+)")
FACTS = """
SELECT current_user,
       (SELECT n.nspowner::regrole::text FROM pg_catalog.pg_namespace n WHERE n.nspname = 'foh'),
       EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = 'foh' AND c.relname = %(name)s)
"""


@contextmanager
def explained(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Where PostgreSQL refuses something, say what gives the right to it."""
    try:
        yield
    except errors.InsufficientPrivilege as error:
        denied = DENIED.fullmatch(error.diag.message_primary or "")
        # Our own functions say themselves what helps.
        if denied is None or connection.closed:
            raise
        context = click.get_current_context(silent=True)
        command = (context and context.info_name) or ""
        index = str(context.params.get("name") or "") if context else ""
        raise FohError(f"{denied[0]}: {cure(connection, denied, command, index)}") from error


def cure(connection: psycopg.Connection[Any], denied: re.Match[str], command: str, index: str) -> str:
    with connection.cursor(row_factory=tuple_row) as cursor:
        row = cursor.execute(FACTS, {"name": denied["name"]}).fetchone()
    assert row is not None
    role, owner, is_ours = row
    who = quoted(role)
    if denied["kind"] == "database":
        return f"GRANT CREATE ON DATABASE {quoted(denied['name'])} TO {who};"
    if denied["kind"] == "schema" and denied["name"] != "foh":
        return f"GRANT USAGE ON SCHEMA {quoted(denied['name'])} TO {who};"
    if command in TABLES or (denied["kind"] == "table" and not is_ours):
        return f"GRANT SELECT ON {quoted(denied['name'])} TO {who}; by the owner of the table"
    if command in READERS:
        return f"run foh-pg grant {shlex.quote(index)} --reader {shlex.quote(role)}, as {owner}"
    if command in UPDATERS:
        return f"run foh-pg grant --updater {shlex.quote(role)}, as {owner}; or connect as {owner}"
    return (
        f"schema foh belongs to {owner}: connect as {owner}; or GRANT {owner} TO {who}; and connect with "
        f"PGOPTIONS='-c role={owner}'"
    )


def quoted(name: str) -> str:
    simple = re.fullmatch(r"[a-z_][a-z0-9_]*", name)
    return name if simple else sql.Identifier(name).as_string(None)
