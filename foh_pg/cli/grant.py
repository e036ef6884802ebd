from __future__ import annotations

from typing import Any

import click

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.index import calls


@click.command()
@options.index_names
@click.option("--reader", metavar="ROLE", help="May search.")
@click.option("--updater", metavar="ROLE", help="May build, update, roll back, check and repair all indexes.")
@click.option("--revoke", is_flag=True, help="Take the rights back.")
@options.dsn
@options.json
def grant(
    names: tuple[str, ...],
    reader: str | None,
    updater: str | None,
    revoke: bool,
    dsn: str | None,
    json: bool,
) -> None:
    """Let a role search indexes or keep them up to date, and say what each right exposes.

    A reader may search the INDEX named, or all that there are now; an updater has all indexes. A role that
    writes to a table needs no right in foh. Run as the owner of schema foh.
    """
    roles = calls.given({"reader": reader, "updater": updater})
    if not roles:
        raise click.UsageError("name a role: --reader or --updater")
    rows: list[dict[str, Any]] = []
    with connected(dsn) as connection, connection.transaction():
        chosen: list[str | None] = [*names] if names else [None]
        for name in chosen:
            call = calls.invoke("grant", {"name": name, **roles, "revoke": revoke})
            rows += connection.execute(call.statement, call.parameters).fetchall()
    if json:
        print_json(rows)
        return
    if not rows:
        say("no index yet: foh-pg create-index --help")
        return
    print_table(rows, ("role", "kind", "index", "may", "exposes", "missing"))
    if any(row["missing"] for row in rows):
        say("what is missing is up to the owners of your tables and schemas: run the statements above")
