"""Schema foh: whether it is there, ours, and of this version of the package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import errors

from foh_pg.doctor.finding import ERROR, WARNING, Finding
from foh_pg.doctor.server import Facts, quoted
from foh_pg.errors import SchemaError
from foh_pg.schema import installed
from foh_pg.version import __version__

MAY_CREATE = "SELECT has_database_privilege(current_database(), 'CREATE') AS may"
INSTALLED = "SELECT version FROM foh.code"


class Unreadable(Exception):
    """The schema is there, and this role may not read its tables."""


def read_revision(connection: psycopg.Connection[Any]) -> str:
    """The revision of schema foh. SchemaError where it must not be trusted; nothing in it was read then."""
    try:
        return installed.revision(connection)
    except errors.InsufficientPrivilege as error:
        raise Unreadable from error


def foreign_finding(error: SchemaError) -> Finding:
    found, _, cure = str(error).partition(". ")
    return Finding("schema", ERROR, found, cure or "find out who made the schema; foh_pg needs its name")


def schema_findings(connection: psycopg.Connection[Any], facts: Facts, revision: str) -> Iterator[Finding]:
    if revision == installed.BASE:
        yield missing(connection, facts)
        return
    if revision != installed.head():
        yield Finding(
            "schema",
            ERROR,
            f"schema foh is at revision {revision}, this foh_pg ({__version__}) needs {installed.head()}",
            "foh-pg migrate",
        )
        return
    if installed.code_is_outdated(connection):
        row = connection.execute(INSTALLED).fetchone()
        version = row["version"] if row else "unknown"
        yield Finding(
            "schema",
            WARNING,
            f"the functions of schema foh came with foh_pg {version}, and this {__version__} has others",
            "foh-pg migrate; or install the foh_pg that the database was migrated with",
        )


def missing(connection: psycopg.Connection[Any], facts: Facts) -> Finding:
    row = connection.execute(MAY_CREATE).fetchone()
    database, role = quoted(facts.database), quoted(facts.role)
    grant = "" if row and row["may"] else f"GRANT CREATE ON DATABASE {database} TO {role}; then "
    return Finding(
        "schema", ERROR, f"schema foh is not installed in database {database}", f"{grant}foh-pg migrate"
    )
