from __future__ import annotations

from dataclasses import asdict

import click
from psycopg.rows import dict_row

from foh_pg.cli import options
from foh_pg.cli.database import open_connection
from foh_pg.cli.output import print_json, say
from foh_pg.doctor import Examination, Finding, examine
from foh_pg.version import __version__


@click.command()
@click.option("--role", help="Whose rights to search to look at; your own unless given.")
@options.max_lag
@options.dsn
@options.json
def doctor(role: str | None, max_lag: float, dsn: str | None, json: bool) -> None:
    """Say what is wrong with an installation and how to put it right. Changes nothing.

    Looks at the server, pgvector, schema foh, rights, triggers, the job that updates, streams and models.
    Exit code 0 if nothing but notes was found, 5 if an error or a warning was, 1 if it could not look.
    """
    with open_connection(dsn) as connection:
        connection.row_factory = dict_row  # type: ignore[assignment]
        found = examine(connection, role, max_lag)  # type: ignore[arg-type]
    if json:
        print_json(as_json(found))
    else:
        show(found)
    if not found.well:
        raise click.exceptions.Exit(options.UNHEALTHY)


def as_json(found: Examination) -> dict[str, object]:
    return {
        "well": found.well,
        "package": __version__,
        "revision": found.revision,
        "server": asdict(found.facts),
        "findings": [asdict(finding) for finding in found.findings],
    }


def show(found: Examination) -> None:
    facts = found.facts
    say(
        f"foh_pg {__version__}, PostgreSQL {facts.server}, pgvector {facts.pgvector or 'missing'}, "
        f"schema foh at revision {found.revision or 'unknown'}, database {facts.database}, role {facts.role}"
    )
    for finding in found.findings:
        click.echo(as_text(finding))
    if not found.findings:
        say("nothing is wrong")


def as_text(finding: Finding) -> str:
    """Two lines: what was found, and what to do.

    >>> print(as_text(Finding("schema", "error", "schema foh is not installed", "foh-pg migrate")))
    error: schema foh is not installed
      -> foh-pg migrate
    """
    where = f"{finding.index}: " if finding.index else ""
    return f"{finding.severity}: {where}{finding.found}\n  -> {finding.cure}"
