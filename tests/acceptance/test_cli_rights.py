"""A role that lacks a right is told, by every command, what gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from foh_pg.cli import app
from foh_pg.schema.migrations import migrate
from tests.support.digits import create_index, create_table, insert
from tests.support.postgres import Database, install_pgvector

UPDATER = "run foh-pg grant --updater app_reader, as app_owner; or connect as app_owner"
STATUS = "connect as app_owner or as an updater; foh-pg doctor says whether app_reader can search"
READER = "run foh-pg grant digits --reader app_reader, as app_owner"
OWNER = (
    "schema foh belongs to app_owner: connect as app_owner; or GRANT app_owner TO app_reader; and connect with "
    "PGOPTIONS='-c role=app_owner'"
)
TABLE = (
    "permission denied for table digit: GRANT SELECT ON public.digit TO app_reader; by the owner of the table"
)


def said(database: Database, *arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, f"--dsn={database.dsn('app_reader')}"])
    assert result.exit_code == 1, result.output
    return str(result.stderr)


@pytest.fixture
def indexed(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    create_table(connection)
    create_index(connection)
    insert(connection, range(50))
    return connection


COMMANDS = {
    "status": STATUS,
    "update digits": UPDATER,
    "build digits": UPDATER,
    "build digits --version 1": UPDATER,
    "evaluate digits": UPDATER,
    "check digits": UPDATER,
    "search digits --like 1": READER,
    "labels digits --like 1": READER,
    "create-index other --source digit --embedding embedding": OWNER,
    "alter-index digits --option probes=3": OWNER,
    "alter-index digits --rename other": OWNER,
    "drop-index digits --yes": OWNER,
    "alter-index digits --refresh": OWNER,
    "grant --reader app_writer": OWNER,
    "migrate": OWNER,
}


@pytest.mark.usefixtures("indexed")
def test_without_any_right(database: Database) -> None:
    for command, cure in COMMANDS.items():
        assert said(database, *command.split()) == f"foh-pg: permission denied for schema foh: {cure}\n", (
            command
        )
    assert said(database, "advise", "digit", "--embedding=embedding") == f"foh-pg: {TABLE}\n"


def test_who_may_search_is_told_what_other_commands_need(
    indexed: psycopg.Connection[Any], database: Database
) -> None:
    indexed.execute("SELECT foh.grant('digits', reader => 'app_reader')")
    assert said(database, "status") == f"foh-pg: permission denied for table alembic_version: {STATUS}\n"
    assert said(database, "drop-index", "digits", "--yes").endswith(f": {OWNER}\n")
    assert said(database, "search", "digits", "--like=1") == f"foh-pg: {TABLE}\n"


def test_a_database_in_which_a_role_may_not_create_a_schema(new_database: Callable[[], Database]) -> None:
    empty = new_database()
    install_pgvector(empty.connect(None))
    assert f"GRANT CREATE ON DATABASE {empty.name} TO app_reader" in said(empty, "migrate")


def test_nobody_is_told_to_become_a_superuser(new_database: Callable[[], Database]) -> None:
    """The schema was installed by a superuser: a role that may act for it would be one, too."""
    installed = new_database()
    install_pgvector(installed.connect(None))
    migrate(installed.connect(None))
    cure = said(installed, "create-index", "other", "--source=digit", "--embedding=embedding")
    assert ", a superuser: connect as " in cure
    assert "foh-pg migrate --owner app_reader" in cure
    assert "GRANT" not in cure
