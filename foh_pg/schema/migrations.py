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
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import psycopg
import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import Script, ScriptDirectory
from alembic.util import CommandError

from foh_pg.errors import InputError
from foh_pg.schema import files, script
from foh_pg.schema.drivers import SCHEMA_ERROR, driver_of, readable_errors
from foh_pg.schema.installed import (
    BASE,
    code_is_outdated,
    functions_are_outdated,
    head,
    present_revision,
    refuse_foreign,
    revision,
    trusted,
)

__all__ = [
    "BASE",
    "HEAD",
    "SCHEMA_ERROR",
    "Migrated",
    "code_is_outdated",
    "head",
    "is_downgrade",
    "migrate",
    "offline",
    "offline_statements",
    "refuse_foreign",
    "resolve",
    "revision",
]

HEAD = "head"


class Migrated(NamedTuple):
    """Where a migration started and where it ended: revisions, or "base" for an absent schema."""

    start: str
    end: str


def migrate(
    connection: psycopg.Connection[Any] | sa.Connection, to: str = HEAD, owner: str | None = None
) -> Migrated:
    """Bring schema `foh` to revision `to` ("head", "base" or an identifier), up or down.

    `owner` is the role that the schema belongs to, or will; by default the role of the connection. Another
    role is acted for in such a way that what it put into the schema gains no rights of the connection's.

    One transaction: the caller's, inside a savepoint, if one is open, else one that is committed here.
    Concurrent migrations wait for each other.
    """
    end = resolve(to)
    driver = driver_of(connection)
    with readable_errors(), driver.transaction():
        driver.run(files.step("session", "lock"))
        with trusted(driver, owner) as installed:
            start = present_revision(driver) if installed else BASE
            statements = _statements(start, end, owner)
            if start == end == head() and functions_are_outdated(driver):
                statements = _code_statements(owner)
            if not statements and installed and owner is not None:
                # Nothing is to be done, unless the schema belongs to another role: that is refused.
                statements = [_find_owner(owner)]
            for statement in statements:
                driver.run(statement)
    return Migrated(start, end)


def offline(to: str = HEAD, start: str = BASE, owner: str | None = None) -> str:
    """The SQL that `migrate` runs on a database at revision `start`, as one script with its transaction."""
    return "\n\n".join(["BEGIN;", *offline_statements(to, start, owner), "COMMIT;"]) + "\n"


def offline_statements(to: str = HEAD, start: str = BASE, owner: str | None = None) -> list[str]:
    """The same without the transaction, for a script that has one already."""
    lock, restore = files.step("session", "lock"), files.step("session", "restore_settings")
    body = [lock, script.trust(owner), *_statements(resolve(start), resolve(to), owner), restore]
    return [statement.strip() for statement in body]


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


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(files.folder("migrations")))


def _code_statements(owner: str | None) -> list[str]:
    """The step that can be repeated, where no revision has to be gone through."""
    return [*_begin(owner), *_as_owner(script.code(), owner)]


def _statements(start: str, end: str, owner: str | None) -> list[str]:
    """Everything after the lock, in order; nothing where there is nothing to do."""
    if start == end:
        return []
    going_up = not is_downgrade(start, end)
    steps = _alembic_statements(start, end, going_up)
    if going_up:
        code = script.code() if end == head() else []
        return [*_begin(owner), *_as_owner([*steps, *code], owner), files.step("schema", "publications")]
    dropped = _as_owner([files.step("code", "drop_functions"), *steps], owner)
    rest = [script.for_owner(files.step("schema", "drop_schema"), owner)] if end == BASE else []
    return [_find_owner(owner), *dropped, *rest]


def _begin(owner: str | None) -> list[str]:
    return [script.with_requirements(files.step("schema", "check_pgvector")), _find_owner(owner)]


def _find_owner(owner: str | None) -> str:
    return script.for_owner(files.step("schema", "find_owner"), owner)


def _as_owner(statements: list[str], owner: str | None) -> list[str]:
    """Statements to be run by the owner of the schema itself, or for it by another role."""
    if owner is None:
        return statements
    wrapped = [script.as_owner(statement, owner) for statement in statements]
    return [*wrapped, files.step("as_owner", "leave")]


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
