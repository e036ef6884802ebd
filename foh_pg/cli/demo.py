from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click
from psycopg.conninfo import conninfo_to_dict
from rich.console import Console

from foh_pg.cli import options
from foh_pg.cli.database import open_connection
from foh_pg.cli.output import say
from foh_pg.demo import DATABASE, tell
from foh_pg.demo.packages import load
from foh_pg.demo.table import load_table
from foh_pg.postgres.embedded import DEFAULT_VERSION, EmbeddedServer

NEXT = """\
The server goes on running. What to type next:

  {psql}
    SELECT p.name, p.tags, r.distance, r.score
    FROM package q, foh.packages_search(q.embedding, 10, filter => 'cardinality(tags) > 2') r
    JOIN package p USING (id) WHERE q.name = '{name}' ORDER BY r.score;

  {cli} search packages --like {key} --columns name,tags --dsn {dsn}

  {python}
    import psycopg, foh_pg
    packages = foh_pg.Index.open(psycopg.connect({dsn_literal}), "packages")
    packages.search_like({key}, k=5, labels=0.8, filter="tags && ARRAY['role::program']")

  {cli} demo --stop --directory {directory}
"""


@click.command()
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    default=Path(".foh-demo"),
    help="Where the demo's PostgreSQL keeps its data.",
)
@click.option("--keep/--no-keep", default=True, help="Leave the server running at the end, or stop it.")
@click.option("--stop", is_flag=True, help="Only stop the server that an earlier demo left running.")
@click.option(
    "--pg", "version", type=int, default=DEFAULT_VERSION, help="Major version of PostgreSQL: 18 or 16."
)
@click.option(
    "--load", "table", is_flag=True, help="Only make and fill table package in the database of --dsn."
)
@options.dsn
def demo(directory: Path, keep: bool, stop: bool, version: int, table: bool, dsn: str | None) -> None:
    """Show an index at work on 4 000 Debian packages, in an embedded PostgreSQL in a directory of yours."""
    if table:
        with open_connection(dsn) as connection:
            click.echo(load_table(connection, load()))
        return
    server = EmbeddedServer(directory, version)
    if stop:
        running = server.running
        server.stop()
        say(
            f"stopped the server in {server.directory}"
            if running
            else f"no server runs in {server.directory}"
        )
        return
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    server.start()
    try:
        package = tell(server, console)
    except BaseException:
        server.stop()
        raise
    if keep:
        click.echo(advice(server, *package))
    else:
        server.stop()


def advice(server: EmbeddedServer, key: int, package: str) -> str:
    """Commands with the paths of this machine, to be pasted."""
    dsn = server.dsn(DATABASE)
    host = conninfo_to_dict(dsn)["host"]
    programs = Path(sys.executable).parent
    return NEXT.format(
        psql=shlex.join([str(server.bin / "psql"), "-h", str(host), "-U", "postgres", DATABASE]),
        cli=shlex.quote(str(programs / "foh-pg")),
        python=shlex.quote(sys.executable),
        dsn=shlex.quote(dsn),
        dsn_literal=repr(dsn),
        directory=shlex.quote(str(server.directory)),
        key=key,
        name=package.replace("'", "''"),
    )
