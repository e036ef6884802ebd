from __future__ import annotations

from typing import Any

import click

from foh_pg.cli import options
from foh_pg.cli.database import session
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.index import calls


@click.command()
@options.index_names
@click.option("--reader", metavar="ROLE", help="May search.")
@click.option("--writer", metavar="ROLE", help="Needs nothing in foh; says what it lacks.")
@click.option("--updater", metavar="ROLE", help="May build, update, roll back and repair.")
@click.option("--owner", metavar="ROLE", help="May create and drop indexes on its own tables.")
@click.option("--revoke", is_flag=True, help="Take the rights back.")
@options.dsn
@options.json
def grant(
    names: tuple[str, ...],
    reader: str | None,
    writer: str | None,
    updater: str | None,
    owner: str | None,
    revoke: bool,
    dsn: str | None,
    json: bool,
) -> None:
    """Let roles search, update or create indexes, and say what each right exposes.

    Without an INDEX the rights are given for all that there are now.

    Run as the owner of the table or a member of the owner of schema foh; for --owner as a superuser, or as a
    role that has ADMIN OPTION on the role named.
    """
    roles = calls.given({"reader": reader, "writer": writer, "updater": updater, "owner": owner})
    if not roles:
        raise click.UsageError("name a role: --reader, --writer, --updater or --owner")
    rows: list[dict[str, Any]] = []
    with session(dsn) as connection, connection.transaction():
        chosen: list[str | None] = [*names] if names else [None]
        for name in chosen:
            call = calls.invoke("grant", {"name": name, **roles, "revoke": revoke})
            rows += connection.execute(call.statement, call.parameters).fetchall()
    # Membership belongs to no index: it is printed once, however many indexes are named.
    rows = [row for number, row in enumerate(rows) if row not in rows[:number]]
    if json:
        print_json(rows)
        return
    if not rows:
        say("no index yet: foh-pg create-index --help")
        return
    print_table(rows, ("role", "kind", "index", "may", "exposes", "missing"))
    if any(row["missing"] for row in rows):
        say("what is missing belongs to your tables and schemas: GRANT it yourself")
