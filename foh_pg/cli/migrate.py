from __future__ import annotations

import click

from foh_pg.cli import options
from foh_pg.cli.database import open_connection
from foh_pg.cli.output import print_json, say
from foh_pg.cli.rights import explained
from foh_pg.schema import migrations


@click.command()
@click.option("--to", default="head", help="Revision to go to, up or down: head, base or one of them.")
@click.option("--owner", metavar="ROLE", help="The role that owns the tables, if you connect as another.")
@click.option("--sql", is_flag=True, help="Print the script, without a database, instead of running it.")
@click.option("--from", "start", default="base", help="With --sql: the revision that the database is at.")
@options.yes
@options.dsn
@options.json
def migrate(
    to: str, owner: str | None, sql: bool, start: str, yes: bool, dsn: str | None, json: bool
) -> None:
    """Install schema foh, bring it up to date, or take it back.

    The schema belongs to one role, the one that connects or --owner, and serves the tables of that role.
    With --sql one script is printed, with one transaction, for the tool that runs your migrations.
    """
    if sql:
        click.echo(migrations.offline(to, start, owner), nl=False)
        return
    to = migrations.resolve(to)
    with open_connection(dsn) as connection, explained(connection):
        present = migrations.revision(connection, owner)
        if migrations.is_downgrade(present, to) and not yes:
            click.confirm(
                f"Going back from revision {present} to {to} drops indexes and what they learned; your own "
                "tables stay. Go on?",
                abort=True,
                err=True,
            )
        renewed = to == migrations.head() and migrations.code_is_outdated(connection, owner)
        start, end = migrations.migrate(connection, to, owner)
    if json:
        print_json({"start": start, "end": end})
    elif start == end and renewed:
        say(f"schema foh is at revision {end}, its functions were brought up to date")
    elif start == end:
        say(f"schema foh is at revision {end}, nothing to do")
    else:
        say(f"schema foh went from revision {start} to {end}")
