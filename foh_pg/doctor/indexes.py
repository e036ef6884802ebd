"""Each index that the role sees: its table and triggers, who updates it, its stream, its model."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import partial
from typing import Any

import psycopg

from foh_pg.arrays.label_habits import strange_labels
from foh_pg.doctor.finding import ERROR, NOTE, WARNING, Finding
from foh_pg.doctor.guard import guarded
from foh_pg.runs.run_metrics import duration

# Entries that may wait in the stream whatever the size of the table, and rows without bits.
FEW_ENTRIES, FEW_DEFERRED = 10_000, 100
# Above these shares of the rows, searches read noticeably more.
MUCH_STREAM, MUCH_DEFERRED = 0.2, 0.01
# Above this share of rows with quite another embedding than before, the embedding model has changed.
MUCH_REPLACED = 0.3
# How many labelled rows training needs, and how many refused models in a row are no accident.
LABELLED, REFUSED = 100, 3

NAMES = "SELECT i.name FROM foh.index i ORDER BY i.name"
INDEX = """
SELECT i.name, i.status, s.status AS state, s.rows, s.stream, s.deferred, s.stale, s.trained,
       s.lag_seconds, i.labels,
       (i.options ->> 'max_stale')::float8 AS max_stale, i.options ->> 'budget' AS budget,
       extract(epoch FROM clock_timestamp() - r.started_at)::float8 AS run_ago, r.error,
       (SELECT count(*) FROM (SELECT x.metrics FROM foh.run x
                              WHERE x.index = i.id AND x.metrics ? 'map' ORDER BY x.id DESC LIMIT 3) x
        WHERE x.metrics ? 'refused') AS refused,
       ARRAY(SELECT l.name FROM foh.label l WHERE l.index = i.id ORDER BY l.name) AS names,
       cardinality(m.far) AS far, m.far[1:3] AS far_keys,
       coalesce((m.metrics ->> 'replaced')::bigint, 0) AS replaced
FROM foh.index i
JOIN foh.index_stat s ON s.name = i.name
LEFT JOIN foh.model m ON m.index = i.id AND m.version = i.version
LEFT JOIN LATERAL (
    SELECT x.started_at, x.error FROM foh.run x
    WHERE x.index = i.id AND x.kind <> 'evaluate' AND x.finished_at IS NOT NULL
    ORDER BY x.id DESC LIMIT 1) r ON true
WHERE i.name = %(name)s
"""
PROBLEMS = """
SELECT i.name, t.what, t.cure, string_agg(concat_ws(' ', t.was, t.is_now), ', ' ORDER BY t.was) AS details
FROM foh.index i CROSS JOIN LATERAL foh._problems(i) t
WHERE i.name = %(name)s GROUP BY i.name, t.what, t.cure ORDER BY t.what
"""

# A call such as SELECT foh.refresh('products'), or SELECT foh.refresh('products', labels => '...').
OUR_FUNCTION = re.compile(r"SELECT foh\.(\w+)\((?:'(?:[^']|'')*')(?:, (\w+) => '\.\.\.')?\)")

Row = dict[str, Any]


def index_findings(connection: psycopg.Connection[Any], max_lag: float) -> Iterator[Finding]:
    names = [row["name"] for row in connection.execute(NAMES).fetchall()]
    for name in names:
        yield from one_index(connection, name, max_lag)
    if not names:
        yield Finding(
            "index", NOTE, "this role sees no index", "foh-pg create-index --help says how to make one"
        )


def one_index(connection: psycopg.Connection[Any], name: str, max_lag: float) -> Iterator[Finding]:
    """Each check of one index in a guard of its own."""

    def tables() -> Iterator[Finding]:
        yield from map(table_finding, connection.execute(PROBLEMS, {"name": name}).fetchall())

    def figures() -> Iterator[Finding]:
        rows.extend(connection.execute(INDEX, {"name": name}).fetchall())
        yield from unreadable(rows[0], bool(broken)) if rows else ()

    rows: list[Row] = []
    broken = guarded(connection, "table", tables, name)
    yield from broken
    yield from guarded(connection, "stream", figures, name)
    for row in rows:
        yield from guarded(connection, "build", partial(building, row), name)
        yield from guarded(connection, "run", partial(last_error, row), name)
        yield from guarded(connection, "rows", partial(far_rows, row), name)
        # Without figures there is nothing to compare.
        if row["rows"] is not None:
            yield from guarded(connection, "stream", partial(waiting, row, max_lag), name)
            yield from guarded(connection, "model", partial(model, row), name)


def unreadable(row: Row, known: bool) -> Iterator[Finding]:
    """Its figures are missing, and nothing that was found before says why."""
    if row["rows"] is None and not known:
        word = shlex.quote(row["name"])
        yield Finding(
            "stream",
            ERROR,
            f"the tables of the index in schema foh: {row['state']}",
            f"foh-pg alter-index {word} --refresh; if that does not help, foh-pg drop-index {word}, "
            "and create it again",
            row["name"],
        )


def table_finding(row: Row) -> Finding:
    """foh._problems says the cure as SQL; here it is the command that does the same."""
    cure = OUR_FUNCTION.sub(lambda call: command_for(call[1], row["name"], call[2]), row["cure"])
    check = "triggers" if "trigger" in row["what"] else "table"
    return Finding(check, ERROR, f"{row['what']} ({row['details']})", cure, row["name"])


def command_for(function: str, index: str, column: str | None = None) -> str:
    """The command that calls a function of schema foh; `column` says which one has to be named."""
    word = shlex.quote(index)
    refresh = "--refresh" if column is None else f"--{column} COLUMN"
    flags = {"repair": f"check {word} --repair", "refresh": f"alter-index {word} {refresh}"}
    return "foh-pg " + flags.get(function, f"{function.replace('_', '-')} {word}")


def building(row: Row) -> Iterator[Finding]:
    if row["status"] == "building":
        yield Finding(
            "build",
            ERROR,
            "the index is not built: searches read the whole table",
            f"foh-pg build {shlex.quote(row['name'])}",
            row["name"],
        )


def last_error(row: Row) -> Iterator[Finding]:
    if row["error"]:
        word = shlex.quote(row["name"])
        yield Finding(
            "run",
            ERROR,
            f"the last run failed: {' '.join(row['error'].split())}",
            f"foh-pg update {word}, once the cause is gone; foh-pg check {word} looks for damage",
            row["name"],
        )


def waiting(row: Row, max_lag: float) -> Iterator[Finding]:
    name, lag, ago = row["name"], row["lag_seconds"], row["run_ago"]
    word = shlex.quote(name)
    if lag > max_lag and (ago is None or ago > lag):
        last = "there was none yet" if ago is None else f"the last began {duration(ago)} ago"
        yield Finding(
            "job",
            ERROR,
            f"the index is not updated: an entry has waited {duration(lag)} in the stream, and no run began "
            f"since ({last})",
            f"run foh-pg update {word} from cron or a timer, or foh-pg watch: docs/how-to/update.md",
            name,
        )
    elif lag > max_lag or row["stream"] > max(FEW_ENTRIES, MUCH_STREAM * row["rows"]):
        yield Finding(
            "stream",
            WARNING,
            f"the stream grows: {row['stream']} entries beside {row['rows']} rows in lists, the oldest "
            f"{duration(lag)} old",
            f"run foh-pg update {word} more often, without --max-seconds or with a larger --batch-size",
            name,
        )
    if row["deferred"] > max(FEW_DEFERRED, MUCH_DEFERRED * row["rows"]):
        yield Finding(
            "deferred",
            WARNING,
            f"{row['deferred']} rows were written without bits (foh.defer): searches read the table for them",
            f"foh-pg update {word}",
            name,
        )


def model(row: Row) -> Iterator[Finding]:
    name = row["name"]
    word = shlex.quote(name)
    if row["status"] != "ready":
        return
    # Twice, since the share is an estimate from samples.
    if row["stale"] > 2 * row["max_stale"]:
        budget = "" if row["budget"] is None else f", with a larger budget than {row['budget']}"
        yield Finding(
            "model",
            WARNING,
            f"{row['stale']:.1%} of the stored bits are those of older hash functions, and max_stale is "
            f"{row['max_stale']:.1%}",
            f"foh-pg update {word}{budget}; foh-pg update {word} --full encodes every row again",
            name,
        )
    if row["labels"] is not None and not row["trained"] and row["rows"] >= LABELLED:
        yield Finding(
            "model",
            WARNING,
            f"the index has labels, {row['rows']} rows, and never learned: labels do not count",
            f"foh-pg build {word} --again trains on the rows there are, once {LABELLED} of them have labels",
            name,
        )
    if row["replaced"] > MUCH_REPLACED * row["rows"]:
        yield Finding(
            "model",
            WARNING,
            f"{row['replaced']} of {row['rows']} rows have got quite another embedding since the index was "
            "built: the embedding model seems to have changed, and what was learned is of the former one",
            f"foh-pg build {word} --again",
            name,
        )
    for problem, cure in strange_labels(row["names"], row["rows"]):
        yield Finding(
            "labels", WARNING, problem, f"{cure}; then foh-pg alter-index {word} --labels COLUMN", name
        )
    if row["refused"] >= REFUSED:
        yield Finding(
            "model",
            WARNING,
            f"the last {REFUSED} models were worse than the present one and were not installed: new labels "
            "disagree with old ones",
            f"foh-pg build {word} --again, and the option forget below 1: docs/reference/options.md",
            name,
        )


def far_rows(row: Row) -> Iterator[Finding]:
    if row["far"]:
        some = ", ".join(row["far_keys"]) + (", ..." if row["far"] > len(row["far_keys"]) else "")
        yield Finding(
            "rows",
            WARNING,
            f"{row['far']} rows have an embedding longer than 1e18 (key {some}): they take no part in models "
            "and lists, and every search reads them",
            "correct the embeddings, or set them to NULL",
            row["name"],
        )
