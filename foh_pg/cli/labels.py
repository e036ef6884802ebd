from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.cli.search import named_key, open_index, parse_key, parse_vector
from foh_pg.index import Index, Suggested

# Rows whose labels are asked for in one statement.
PAGE_ROWS = 500


@click.command()
@options.index_name
@click.option("--vector", help="Labels of a vector, given as [1, 2, ...]; - reads it from standard input.")
@click.option("--like", metavar="KEY", help="Labels of a row, given by its key, whatever labels it has.")
@click.option(
    "--missing", is_flag=True, help="Labels of the rows that have none, in the order of their keys."
)
@click.option("-k", type=int, default=3, help="Labels to suggest for each.")
@click.option(
    "--rows", type=click.IntRange(min=1), default=1000, help="With --missing: so many rows at the most."
)
@click.option("--after", metavar="KEY", help="With --missing: only rows with a greater key.")
@options.dsn
@options.json
def labels(name: str, k: int, rows: int, after: str | None, dsn: str | None, json: bool, **of: Any) -> None:
    """Suggest labels for a vector, for a row, or for all rows that have none: label, chance, neighbors.

    The nearest rows with labels vote, and what the index has learned of labels counts beside their votes. The
    chance is how often such a label was right for rows that never train; `foh-pg evaluate` measures it.
    Labels come from the rows that you can see.
    """
    vector, like, missing = of["vector"], of["like"], of["missing"]
    if (vector is not None) + (like is not None) + missing != 1:
        raise click.UsageError("pass one of --vector, --like and --missing")
    with connected(dsn, installed=False) as connection:
        index = open_index(connection, name)
        if missing:
            after_key = None if after is None else parse_key(connection, index, after, "--after")
            suggested = list(page_by_page(index, k, rows, after_key))
        elif vector is not None:
            suggested = [Suggested(None, index.labels(parse_vector(vector), k))]
        else:
            suggested = [Suggested(None, index.labels_like(parse_key(connection, index, like), k))]
    show(index if missing else None, suggested, json)


def page_by_page(index: Index, k: int, rows: int, after: Any) -> Iterator[Suggested]:
    while rows > 0:
        page = index.suggest(k, rows=min(rows, PAGE_ROWS), after_key=after)
        yield from page
        if len(page) < min(rows, PAGE_ROWS):
            return
        rows, after = rows - len(page), page[-1].key


def show(index: Index | None, suggested: list[Suggested], json: bool) -> None:
    """A line for each label; `index`: whose keys to show, if there are any."""
    lines = [
        {**({} if index is None else named_key(index.about, row.key)), **label._asdict()}
        for row in suggested
        for label in row.labels
    ]
    if json:
        print_json(lines)
    elif lines:
        print_table(lines)
    else:
        say("no label to suggest" if suggested else "all rows have labels")
