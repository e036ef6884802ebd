"""Bring schema `foh` to a revision: online, or as SQL to read and run elsewhere.

Alembic plans the steps and keeps the version table, and always writes SQL; we run that SQL. So a database
migrated online and one migrated with the printed script cannot differ, and it does not matter whether the
caller has a psycopg or a SQLAlchemy connection. Alembic's global proxies (`alembic.op`, `alembic.context`)
are never installed: the caller may be in the middle of an Alembic migration of its own.

A revision is about tables: its SQL is in `migrations/sql/` and stays as it was released. Functions, views and
what is rendered for each index belong to no revision: whenever the head is reached, or is there already with
the code of another version (foh.code keeps its digest), all of them are made from the present files of
`sql/`. The first thing on the way down is to drop them, with the indexes.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, NamedTuple, Protocol

import psycopg
import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import Script, ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.exc import DBAPIError

from foh_pg.errors import InputError, SchemaError
from foh_pg.schema import files, script

# Raised by sql/install/*.sql where the database does not fit; not one of PostgreSQL's own codes.
SCHEMA_ERROR = "FH001"

# Null, and so not readable, where the table is missing.
READABLE = (
    "SELECT pg_catalog.has_table_privilege(pg_catalog.to_regclass('foh.code')::pg_catalog.oid, 'SELECT')"
)

BASE = "base"
HEAD = "head"


class Migrated(NamedTuple):
    """Where a migration started and where it ended: revisions, or "base" for an absent schema."""

    start: str
    end: str


def migrate(connection: psycopg.Connection[Any] | sa.Connection, to: str = HEAD) -> Migrated:
    """Bring schema `foh` to revision `to` ("head", "base" or an identifier), up or down.

    One transaction: the caller's, inside a savepoint, if one is open, else one that is committed here.
    Concurrent migrations wait for each other.
    """
    end = resolve(to)
    session = _session(connection)
    with _readable_errors(), session.transaction():
        session.run(files.sql("install/lock.sql"))
        with _trusted(session) as installed:
            start = _present_revision(session) if installed else BASE
            statements = _statements(start, end)
            if start == end == head() and _code_is_outdated(session):
                statements = _code_statements()
            for statement in statements:
                session.run(statement)
    return Migrated(start, end)


def offline(to: str = HEAD, start: str = BASE) -> str:
    """The SQL that `migrate` runs on a database at revision `start`, as one script with its transaction."""
    return "\n\n".join(["BEGIN;", *offline_statements(to, start), "COMMIT;"]) + "\n"


def offline_statements(to: str = HEAD, start: str = BASE) -> list[str]:
    """The same without the transaction, for a script that has one already."""
    around = ("install/lock.sql", "install/trust.sql", "install/restore_path.sql")
    lock, trust, restore = map(files.sql, around)
    body = [lock, trust, *_statements(resolve(start), resolve(to)), restore]
    return [statement.strip() for statement in body]


def revision(connection: psycopg.Connection[Any] | sa.Connection) -> str:
    """The revision that schema `foh` of this database is at: "base" where it is not installed."""
    session = _session(connection)
    with _readable_errors(), session.transaction(), _trusted(session) as installed:
        return _present_revision(session) if installed else BASE


def refuse_foreign(connection: psycopg.Connection[Any] | sa.Connection) -> None:
    """Refuse a schema `foh` that is not ours or whose owner a superuser must not trust; read none of it."""
    if isinstance(connection, sa.Connection) and _is_autocommit(connection):
        # One statement is a transaction, at whose end the search_path is what it was.
        with _readable_errors():
            connection.exec_driver_sql(
                files.sql("install/trust.sql"), execution_options={"no_parameters": True}
            )
        return
    session = _session(connection)
    with _readable_errors(), session.transaction(), _trusted(session):
        pass


def code_is_outdated(connection: psycopg.Connection[Any] | sa.Connection) -> bool:
    """Whether this database is at our revision with functions of another version of the package."""
    session = _session(connection)
    with _readable_errors(), session.transaction(), _trusted(session) as installed:
        return installed and _present_revision(session) == head() and _code_is_outdated(session)


def head() -> str:
    """The revision that this package was written for."""
    return resolve(HEAD)


def resolve(name: str) -> str:
    """The full identifier of a revision, "base" for none."""
    try:
        script: Script | None = _scripts().get_revision(name)
    # An empty name fails an assertion of Alembic's.
    except (CommandError, AssertionError) as error:
        known = ", ".join(sorted(script.revision for script in _scripts().walk_revisions()))
        raise InputError(f"there is no revision {name!r}: give head, base or one of {known}") from error
    return BASE if script is None else script.revision


def is_downgrade(start: str, to: str) -> bool:
    """Whether going from revision `start` to `to` undoes migrations, and so drops what they made."""
    end = resolve(to)
    below = {script.revision for script in _scripts().iterate_revisions(end, BASE)}
    return start not in {BASE, *below}


class _Session(Protocol):
    """The three things a migration asks of a connection."""

    def transaction(self) -> AbstractContextManager[Any]: ...

    def run(self, statement: str) -> None: ...

    def column(self, query: str) -> list[Any]: ...


class _Psycopg:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def transaction(self) -> AbstractContextManager[Any]:
        return self.connection.transaction()

    def run(self, statement: str) -> None:
        self.connection.execute(statement.encode())

    def column(self, query: str) -> list[Any]:
        with self.connection.cursor(row_factory=psycopg.rows.scalar_row) as cursor:
            return cursor.execute(query.encode()).fetchall()


class _SQLAlchemy:
    def __init__(self, connection: sa.Connection) -> None:
        if connection.dialect.name != "postgresql":
            raise InputError(f"foh_pg works on PostgreSQL, this connection is to {connection.dialect.name}")
        if _is_autocommit(connection):
            raise InputError(
                "a migration is one transaction, and this connection has isolation level AUTOCOMMIT: "
                "pass one without it"
            )
        self.connection = connection

    def transaction(self) -> AbstractContextManager[Any]:
        if self.connection.in_transaction():
            return self.connection.begin_nested()
        return self.connection.begin()

    def run(self, statement: str) -> None:
        # Without this option a driver would look for its parameters (%s) in our text.
        self.connection.exec_driver_sql(statement, execution_options={"no_parameters": True})

    def column(self, query: str) -> list[Any]:
        return list(self.connection.exec_driver_sql(query).scalars())


def _is_autocommit(connection: sa.Connection) -> bool:
    # SQLAlchemy would ask the server for the isolation level, and AUTOCOMMIT is none of the server's.
    return bool(getattr(connection.connection.dbapi_connection, "autocommit", False))


def _session(connection: psycopg.Connection[Any] | sa.Connection) -> _Session:
    if isinstance(connection, psycopg.Connection):
        return _Psycopg(connection)
    if isinstance(connection, sa.Connection):
        return _SQLAlchemy(connection)
    raise InputError(
        f"expected a psycopg.Connection or a sqlalchemy.Connection, got a {type(connection).__name__}"
    )


@contextmanager
def _readable_errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate == SCHEMA_ERROR:
            hint = error.diag.message_hint
            raise SchemaError(
                f"{error.diag.message_primary}. {hint}" if hint else error.diag.message_primary
            ) from error
        raise
    except DBAPIError as error:
        # psycopg says sqlstate, psycopg2 pgcode; other drivers give only the text.
        code = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
        if code == SCHEMA_ERROR:
            raise SchemaError(str(error.orig).strip()) from error
        raise


@contextmanager
def _trusted(session: _Session) -> Iterator[bool]:
    """Whether schema `foh` is there and ours; what is not ours is refused. Inside, the path is pinned."""
    session.run(files.sql("install/trust.sql"))
    [installed] = session.column("SELECT pg_catalog.current_setting('foh.installed')")
    yield installed == "yes"
    session.run(files.sql("install/restore_path.sql"))


def _present_revision(session: _Session) -> str:
    found = session.column("SELECT version_num FROM foh.alembic_version")
    if len(found) != 1:
        raise SchemaError(
            f"foh.alembic_version has {len(found)} rows where one is expected: somebody changed it; "
            "restore the schema from a backup, or drop it and migrate again"
        )
    known = {script.revision for script in _scripts().walk_revisions()}
    if found[0] not in known:
        raise SchemaError(
            f"schema foh in this database is at revision {found[0]!r}, which this foh_pg does not know: "
            "a newer one migrated it; upgrade the package (pip install --upgrade foh_pg)"
        )
    return str(found[0])


def _code_is_outdated(session: _Session) -> bool:
    [readable] = session.column(READABLE)
    # A role that may not read the table could not renew the functions either.
    return bool(readable) and session.column("SELECT digest FROM foh.code") != [script.code_digest()]


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(files.folder("migrations")))


def _code_statements() -> list[str]:
    """The step that can be repeated, where no revision has to be gone through."""
    owner, leave = files.sql("install/become_owner.sql"), files.sql("install/leave.sql")
    return [files.sql("install/check_pgvector.sql"), owner, *script.code(), leave]


def _statements(start: str, end: str) -> list[str]:
    """Everything after the lock, in order; nothing where there is nothing to do."""
    if start == end:
        return []
    going_up = not is_downgrade(start, end)
    steps = _alembic_statements(start, end, going_up)
    owner, leave = files.sql("install/become_owner.sql"), files.sql("install/leave.sql")
    if going_up:
        code = script.code() if end == head() else []
        publications = files.sql("install/publications.sql")
        return [files.sql("install/check_pgvector.sql"), owner, *steps, *code, leave, publications]
    rest = [leave]
    if end == BASE:
        rest = [files.sql("install/drop_schema.sql"), leave, files.sql("install/drop_role.sql")]
    return [owner, files.sql("install/drop_functions.sql"), *steps, *rest]


class _Statements(io.StringIO):
    """Alembic's output, kept apart: it writes each statement with one call."""

    def __init__(self) -> None:
        super().__init__()
        self.statements: list[str] = []

    def write(self, text: str) -> int:
        self.statements.append(text.strip())
        return len(text)


def _alembic_statements(start: str, end: str, going_up: bool) -> list[str]:
    scripts = _scripts()

    def steps(heads: Any, _context: MigrationContext) -> Iterable[RevisionStep]:
        return scripts._upgrade_revs(end, heads) if going_up else scripts._downgrade_revs(end, heads)

    output = _Statements()
    context = MigrationContext.configure(
        dialect_name="postgresql+psycopg",
        # "named" leaves the percent signs in our SQL alone.
        dialect_opts={"paramstyle": "named"},
        opts={
            "as_sql": True,
            "output_buffer": output,
            "fn": steps,
            "script": scripts,
            "starting_rev": None if start == BASE else start,
            "version_table_schema": "foh",
        },
    )
    context.run_migrations(op=Operations(context))
    return output.statements
