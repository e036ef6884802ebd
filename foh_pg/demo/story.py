"""What `foh-pg demo` does and shows, step by step."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from psycopg import sql
from rich.console import Console
from rich.table import Table

from foh_pg.demo.answers import MAKE_HNSW, Truth, by_hnsw, searched
from foh_pg.demo.packages import Packages, load
from foh_pg.demo.table import make_table, write
from foh_pg.index import Index
from foh_pg.postgres.connect import connect
from foh_pg.postgres.embedded import EmbeddedServer
from foh_pg.schema.migrations import migrate
from foh_pg.updater import update

DATABASE = "foh_demo"
INDEX = "packages"
QUERIES = 300
BATCHES = 4
# The dial of a search, as a person would name its positions.
DIALS = {"labels => 0": 0.0, "as learned": None, "labels => 1": 1.0}
# Packages whose names, and those of their neighbors, say what they are: clocks and relays of connections.
SHOWN = ("gnome-clocks", "6tunnel")
NEXT = "trigger-rally"

# A small table learns in small steps; by default 2 000 labelled rows make one.
CREATE_INDEX = """\
SELECT foh.create_index('packages', source => 'package', embedding => 'embedding', labels => 'tags',
                        options => '{"learn_rows": 900}')"""
STAT = "SELECT rows, stream, version, centers, stale, bytes FROM foh.index_stat WHERE name = 'packages'"


def tell(server: EmbeddedServer, console: Console) -> tuple[int, str]:
    """Run the demo on a server; the database foh_demo is replaced. Returns a package to ask for next."""
    started = time.monotonic()
    everything = load()
    queries, stream = everything.part(0, QUERIES), everything.part(QUERIES, len(everything.names))
    make_database(server)
    with connect(server.dsn(DATABASE), autocommit=True) as connection:
        # The demo plays the application, which has its table in the schema public.
        connection.execute("SET search_path = public")
        console.print(
            f"PostgreSQL {connection.info.parameter_status('server_version')} in {server.directory}\n"
        )
        index = make_index(connection, everything.vectors.shape[1], console)
        truth = Truth(queries, stream)
        show_batches(connection, index, queries, stream, truth, console)
        show_dial(index, queries, truth, len(stream.names), console)
        show_state(connection, index, console)
        connection.execute(MAKE_HNSW)
        for name in SHOWN:
            at = queries.names.index(name)
            show_search(connection, index, queries.part(at, at + 1), stream, console)
        [key] = connection.execute("SELECT id FROM package WHERE name = %s", [NEXT]).fetchone() or ()
    console.print(f"All of it took {time.monotonic() - started:.0f} seconds.\n")
    return key, NEXT


def make_database(server: EmbeddedServer) -> None:
    name = sql.Identifier(DATABASE)
    with connect(server.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))


def make_index(connection: psycopg.Connection[Any], dimensions: int, console: Console) -> Index:
    connection.execute("CREATE EXTENSION vector")
    migrate(connection)
    make_table(connection, dimensions)
    console.print("An application's table, [bold]package[/]: Debian packages, their tags, a vector for each.")
    console.print(f"An index on it, made in SQL:\n\n{CREATE_INDEX};\n", markup=False)
    connection.execute(CREATE_INDEX)
    return Index.open(connection, INDEX)


def show_batches(
    connection: psycopg.Connection[Any],
    index: Index,
    queries: Packages,
    stream: Packages,
    truth: Truth,
    console: Console,
) -> None:
    """Rows come in; after each batch the updater runs, and searches are compared with exact cosine."""
    console.print(
        f"{len(stream.names)} rows come in, and after each batch `foh-pg update` learns from them.\n"
        f"{len(queries.names)} other packages ask for their 10 nearest: how many share a tag with them?\n"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("rows", "version", "exact cosine", "foh", "older rows encoded again", "seconds"):
        table.add_column(title, justify="right")
    size = -(-len(stream.names) // BATCHES)
    for start in range(0, len(stream.names), size):
        batch = stream.part(start, start + size)
        rows = start + len(batch.names)
        with console.status(f"writing {len(batch.names)} rows, and learning from {rows}"):
            write(connection, batch)
            run = update(connection, INDEX)
        answers = (truth.nearest(rows, 10), searched(index, queries, 10))
        cosine, foh = (truth.judge(found, rows) for found in answers)
        table.add_row(
            str(rows),
            str(run.to_version),
            f"{cosine.tags:.1%}",
            f"[bold]{foh.tags:.1%}[/]",
            f"{run.rows_encoded if start else 0} of {start}",
            f"{sum(run.phases.values()):.1f}",
        )
    console.print(table)
    console.print()


def show_dial(index: Index, queries: Packages, truth: Truth, rows: int, console: Console) -> None:
    """The same queries with labels left out, as learned, and above all else; beside exact cosine."""
    console.print(
        "A search takes a dial, labels => 0 to 1: from the nearest vectors and nothing else to the rows\n"
        "likeliest to share a tag. The ten rows found, by tags and by nearness:\n"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("search")
    for title in ("share a tag", "of the exact ten", "both@10", "mean distance"):
        table.add_column(title, justify="right")
    answers = {name: searched(index, queries, 10, dial) for name, dial in DIALS.items()}
    for name, found in {"exact cosine": truth.nearest(rows, 10), **answers}.items():
        shares = truth.judge(found, rows)
        percents = (f"{share:.1%}" for share in (shares.tags, shares.recall, shares.both))
        table.add_row(name, *percents, f"{shares.distance:.3f}")
    console.print(table)
    console.print(
        "\nboth@10 is the share, of the ten nearest packages that share a tag with the one that asks,\n"
        "that was found."
    )
    console.print()


def show_state(connection: psycopg.Connection[Any], index: Index, console: Console) -> None:
    with connection.cursor() as cursor:
        [values] = cursor.execute(STAT).fetchall()
        names = [column.name for column in cursor.description or ()]
    console.print("What the index recorded ([bold]foh.index_stat[/]):")
    console.print(
        "  " + ", ".join(f"{name} {shown(value)}" for name, value in zip(names, values, strict=True))
    )
    violations = index.check()
    verdict = "[green]every promise kept[/]" if not violations else f"[red]{len(violations)} violations[/]"
    console.print(f"What it promises, verified ([bold]foh.check[/]): {verdict}\n")


def shown(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def show_search(
    connection: psycopg.Connection[Any], index: Index, query: Packages, packages: Packages, console: Console
) -> None:
    """One query: what pgvector's HNSW finds, and what the index finds at each position of the dial."""
    console.print(f"Nearest to [bold]{query.names[0]}[/] ({', '.join(query.tags[0])}); ✓ shares a tag:\n")
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = []
    answers = {name: searched(index, query, 6, dial)[0] for name, dial in DIALS.items()}
    for title, found in {"HNSW": by_hnsw(connection, query, 6), **answers}.items():
        table.add_column(title, no_wrap=True)
        columns.append([mark(packages.names[at], packages.tags[at], query.tags[0]) for at in found])
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    console.print(table)
    console.print()


def mark(name: str, tags: list[str], wanted: list[str]) -> str:
    return f"[green]✓ {name}[/]" if set(tags) & set(wanted) else f"  {name}"
