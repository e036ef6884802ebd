from __future__ import annotations

import json as jsonlib
import sys
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import click
import psycopg
from psycopg import errors, sql

from foh_pg.cli import options
from foh_pg.cli.database import connected, not_installed
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.errors import IndexNotFound, InputError
from foh_pg.index import Index
from foh_pg.index.calls import COMMA, is_key, parameters, quoted
from foh_pg.index.results import Description, key_values
from foh_pg.postgres.connect import own_path

if TYPE_CHECKING:
    import numpy.typing as npt

Row = dict[str, Any]

# Readers may not read foh.index.
EXISTING = """
SELECT pg_catalog.left(p.proname::text, -9) AS name
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'foh' AND p.proname LIKE '%\\_describe'
"""


@click.command()
@options.index_name
@click.option("--vector", help="The query, as [1, 2, ...]; - reads it from standard input.")
@click.option(
    "--like", metavar="KEY", help='Key of a row: rows like it, without it; ["acme", 7] where it has columns.'
)
@click.option("-k", type=int, default=10, help="Rows to return.")
@click.option("--probes", type=int, help="Lists to read.")
@click.option("--shortlist", type=int, help="Rows to rank with the exact distance; 0: by bits alone.")
@click.option(
    "--labels",
    type=float,
    metavar="0..1",
    help="What labels count: 0 nothing, only nearest vectors; 0.5 as learned; 1 the most.",
)
@click.option(
    "--recall", type=float, metavar="0..1", help="Share of the nearest rows to find; 1: the exact answer."
)
@click.option("--max-distance", type=float, help="No row farther than that.")
@click.option("--filter", metavar="SQL", help='Condition over the table\'s columns: "price < 100".')
@click.option(
    "--param", multiple=True, metavar="NAME=VALUE", help="Value that the filter reads as params ->> 'NAME'."
)
@options.match
@click.option("--columns", metavar="A,B", help="Columns of the table to show: name,price.")
@click.option("--explain", is_flag=True, help="Show how the search would be answered instead.")
@options.dsn
@options.json
def search(
    name: str,
    vector: str | None,
    like: str | None,
    columns: str | None,
    explain: bool,
    dsn: str | None,
    json: bool,
    **asked: Any,
) -> None:
    """Find the rows nearest to a vector, or to a row of the table: key, distance, score."""
    if (vector is None) == (like is None):
        raise click.UsageError("pass either --vector or --like")
    asked["params"] = options.parse_pairs(asked.pop("param"), "--param") or None
    with connected(dsn, installed=False) as connection:
        index = open_index(connection, name)
        like = None if like is None else parse_key(connection, index, like)
        query = None if vector is None else parse_vector(vector)
        if explain:
            steps = index.explain(index.embedding(like) if query is None else query, **asked)
            rows = [{"step": step, "value": value} for step, value in steps.items()]
        else:
            rows = found(connection, index, query, like, asked, options.parse_names(columns or ""))
    if json:
        print_json(rows)
    elif rows:
        print_table(rows)
    else:
        say("no row matches")


def open_index(connection: psycopg.Connection[Any], name: str) -> Index:
    """The index, for a command of readers, who may not look at our version table."""
    try:
        return Index.open(connection, name)
    except IndexNotFound as error:
        if connection.execute("SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'foh'").rowcount:
            existing = connection.execute(EXISTING)
            raise IndexNotFound.named(name, (row["name"] for row in existing)) from error
        raise not_installed(connection) from error


def parse_vector(given: str) -> list[float]:
    text = sys.stdin.read() if given == "-" else given
    try:
        values = jsonlib.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, list) or not values or {*map(type, values)} - {int, float}:
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise click.BadParameter(
            f"{shown!r} is not a list of numbers like [0.5, 1, -2]", param_hint="--vector"
        )
    return values


def parse_key(connection: psycopg.Connection[Any], index: Index, given: str, option: str = "--like") -> Any:
    """The key of a row; a list of JSON where it has several columns."""
    about = index.about
    values: Any = given
    if len(about.key) == 1:
        values = [given]
    else:
        with suppress(ValueError):
            values = jsonlib.loads(given)
        if not isinstance(values, list) or len(values) != len(about.key):
            shown = ", ".join(about.key)
            raise click.BadParameter(f'{given!r} is no key ({shown}): write ["acme", 7]', param_hint=option)
    for value, column, kind in zip(values, about.key, about.key_types, strict=True):
        if not connection.execute(
            "SELECT WHERE pg_catalog.pg_input_is_valid(%s, %s)", [str(value), kind]
        ).rowcount:
            raise click.BadParameter(
                f"{given!r} is no key of {about.source}, whose {column} is of type {kind}", param_hint=option
            )
    return values[0] if len(values) == 1 else tuple(values)


def found(
    connection: psycopg.Connection[Row],
    index: Index,
    query: npt.ArrayLike | None,
    like: Any,
    asked: dict[str, Any],
    columns: list[str],
) -> list[Row]:
    # A filter may call functions of the application; all else is named with its schema.
    with own_path(connection) if asked["filter"] is not None else nullcontext():
        try:
            matches = index.search_like(like, **asked) if query is None else index.search(query, **asked)
        except errors.SyntaxError as error:
            # What follows the filter in the statement is ours.
            said = (error.diag.message_primary or "").partition("]::boolean[]")[0].strip()
            raise InputError(f"{asked['filter']!r} is no condition of SQL: {said} (--filter)") from error
    taken = {*index.about.key, *columns}
    # Our columns get other names where the table has theirs, as in SQL where the key has.
    distance = "foh_distance" if "distance" in taken else "distance"
    score = "foh_score" if "score" in taken else "score"
    return [
        {
            **named_key(index.about, match.key),
            **(row_of(connection, index.about, match.key, columns) if columns else {}),
            distance: match.distance,
            score: match.score,
        }
        for match in matches
    ]


def named_key(about: Description, key: Any) -> Row:
    """A key under the names of its columns."""
    return dict(zip(about.key, key_values(about, key), strict=True))


def row_of(connection: psycopg.Connection[Row], about: Description, key: Any, columns: list[str]) -> Row:
    """The chosen columns of a row that was found; none where it is gone by now."""
    statement = sql.SQL("SELECT {} FROM {} WHERE {}").format(
        COMMA.join(map(quoted, columns)),
        sql.SQL(about.source.replace("%", "%%")),
        is_key(about, map(quoted, about.key)),
    )
    return connection.execute(statement, parameters(about, key)).fetchone() or dict.fromkeys(columns)
