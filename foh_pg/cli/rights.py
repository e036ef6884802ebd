"""What a command lacks: a right, as the GRANT that gives it; or the table of its index, as the cure."""

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

from foh_pg.doctor.server import quoted
from foh_pg.errors import FohError

# Commands that readers and updaters call; all others are for the owner of schema foh.
READERS = ("search", "labels")
UPDATERS = ("build", "update", "watch", "evaluate", "check")
# Works on a table, and needs nothing of foh.
TABLES = ("advise",)

# PostgreSQL names what a right is missing on, without its schema.
DENIED = re.compile(r"permission denied for (?P<kind>table|function|schema|database) (?P<name>.+)")
FACTS = """
SELECT current_user,
       (SELECT n.nspowner::regrole::text FROM pg_catalog.pg_namespace n WHERE n.nspname = 'foh'),
       EXISTS (SELECT FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
               WHERE n.nspname = 'foh' AND r.rolsuper),
       EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = 'foh' AND c.relname = %(name)s),
       (SELECT CASE count(*) WHEN 1 THEN min(pg_catalog.format('%%I.%%I', n.nspname, c.relname)) END
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relname = %(name)s AND c.relkind IN ('r', 'p')
          AND NOT pg_catalog.has_table_privilege(c.oid, 'SELECT'))
"""


@contextmanager
def explained(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Say what gives a right that is missing, and what helps if the table of an index is gone."""
    try:
        yield
    except errors.InsufficientPrivilege as error:
        denied = DENIED.fullmatch(error.diag.message_primary or "")
        # Our own functions say themselves what helps.
        if denied is None or connection.closed:
            raise
        command, index = asked()
        raise FohError(f"{denied[0]}: {cure(connection, denied, command, index)}") from error
    except (errors.UndefinedTable, errors.UndefinedColumn) as error:
        command, index = asked()
        if command not in READERS or connection.closed:
            raise
        # A row was asked for by its key, and its table or column is gone. Otherwise the filter names another.
        describe = sql.SQL("SELECT d.source, d.embedding, d.key FROM foh.{}() d").format(
            sql.Identifier(f"{index}_describe")
        )
        with connection.cursor(row_factory=tuple_row) as cursor:
            row = cursor.execute(describe).fetchone()
            known = [] if row is None else [row[0], row[1], *row[2]]
            if not any(f'"{name}"' in (error.diag.message_primary or "") for name in known):
                raise
            cursor.execute("SELECT foh._refuse_changed(%s)", (index,))


def asked() -> tuple[str, str]:
    """The command that runs, and the index that it is about; empty if there is none."""
    context = click.get_current_context(silent=True)
    if context is None:
        return "", ""
    return context.info_name or "", str(context.params.get("name") or "")


def cure(connection: psycopg.Connection[Any], denied: re.Match[str], command: str, index: str) -> str:
    with connection.cursor(row_factory=tuple_row) as cursor:
        row = cursor.execute(FACTS, {"name": denied["name"]}).fetchone()
    assert row is not None
    role, owner, of_superuser, is_ours, table = row
    who = quoted(role)
    if denied["kind"] == "database":
        return f"GRANT CREATE ON DATABASE {quoted(denied['name'])} TO {who};"
    if denied["kind"] == "schema" and denied["name"] != "foh":
        return f"GRANT USAGE ON SCHEMA {quoted(denied['name'])} TO {who};"
    if command in TABLES or (denied["kind"] == "table" and not is_ours):
        return f"GRANT SELECT ON {table or quoted(denied['name'])} TO {who}; by the owner of the table"
    if command in READERS:
        return f"run foh-pg grant {shlex.quote(index)} --reader {shlex.quote(role)}, as {owner}"
    if command == "status":
        return f"connect as {owner} or as an updater; foh-pg doctor says whether {role} can search"
    if command in UPDATERS:
        return f"run foh-pg grant --updater {shlex.quote(role)}, as {owner}; or connect as {owner}"
    if of_superuser:
        # A role that may act for a superuser is one.
        return (
            f"schema foh belongs to {owner}, a superuser: connect as {owner}; or let {owner} install it anew "
            "for the role that owns the tables, with foh-pg migrate --to base, which drops all indexes, and "
            f"foh-pg migrate --owner {shlex.quote(role)}"
        )
    return (
        f"schema foh belongs to {owner}: connect as {owner}; or GRANT {owner} TO {who}; and connect with "
        f"PGOPTIONS='-c role={owner}'"
    )
