from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from foh_pg.cli.database import session
from foh_pg.cli.options import Dsn, Json
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.index import calls

Role = Optional[str]  # noqa: UP045 - typer reads it at run time, on Python 3.10 too


def grant(
    names: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(help="Names of indexes; all there are now without.", metavar="[INDEX]..."),
    ] = None,
    reader: Annotated[Role, typer.Option("--reader", help="May search.", metavar="ROLE")] = None,
    writer: Annotated[
        Role, typer.Option("--writer", help="Needs nothing in foh; says what it lacks.", metavar="ROLE")
    ] = None,
    updater: Annotated[
        Role, typer.Option("--updater", help="May build, update, roll back and repair.", metavar="ROLE")
    ] = None,
    owner: Annotated[
        Role, typer.Option("--owner", help="May create and drop indexes on its own tables.", metavar="ROLE")
    ] = None,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take the rights back.")] = False,
    dsn: Dsn = None,
    json: Json = False,
) -> None:
    """Let roles search, update or create indexes, and say what each right exposes.

    Run as the owner of the table or a member of the owner of schema foh; for --owner as a superuser, or as a
    role that has ADMIN OPTION on the role named.
    """
    roles = calls.given({"reader": reader, "writer": writer, "updater": updater, "owner": owner})
    if not roles:
        raise typer.BadParameter("name a role: --reader, --writer, --updater or --owner", param_hint="ROLE")
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
