"""All commands in one place, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
from typing import Any

import psycopg
import typer
from typer.core import TyperGroup

from foh_pg.cli import (
    advise,
    alter_index,
    bench,
    build,
    check,
    create_index,
    demo,
    drop_index,
    evaluate,
    grant,
    health,
    migrate,
    refresh,
    repair,
    report,
    search,
    sql,
    status,
    update,
    version,
    watch,
)
from foh_pg.cli.output import fail
from foh_pg.errors import FohError

EXIT_CODES = """
Connects to --dsn, else to what libpq's environment variables (PGHOST, PGDATABASE, PGSERVICE, ...) say.

Data goes to standard output, everything else to standard error.

Exit codes: 0 done; 1 it could not be done, and one line says why; 2 wrong usage; 3 `check` found violations;
4 `update` skipped an index that another updater is at work on; 5 `health` found an index that is not well.
"""


class Commands(TyperGroup):
    """Turns the errors a user can act on into one line and exit code 1; others keep their traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader (head, less) has seen enough; Python must not complain when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (FohError, psycopg.Error) as error:
            fail(error)
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=Commands,
    name="foh-pg",
    help="A learned, label-aware vector index for PostgreSQL.\n" + EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("advise")(advise.advise)
app.command("migrate")(migrate.migrate)
app.command("create-index")(create_index.create_index)
app.command("alter-index")(alter_index.alter_index)
app.command("drop-index")(drop_index.drop_index)
app.command("build")(build.build)
app.command("rebuild")(build.rebuild)
app.command("rollback")(build.rollback)
app.command("update")(update.update)
app.command("watch")(watch.watch)
app.command("search")(search.search)
app.command("evaluate")(evaluate.evaluate)
app.command("report")(report.report)
app.command("health")(health.health)
app.command("status")(status.status)
app.command("check")(check.check)
app.command("refresh")(refresh.refresh)
app.command("repair")(repair.repair)
app.command("grant")(grant.grant)
app.add_typer(sql.app, name="sql")
app.add_typer(bench.app, name="bench")
app.command("version")(version.version)
