"""Each index that the role sees: its table and triggers, who updates it, its stream, its model."""

from __future__ import annotations

import re
import shlex
from typing import Any

from foh_pg.arrays.label_habits import strange_labels
from foh_pg.doctor.report import Report
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


def check_indexes(report: Report, max_lag: float) -> None:
    names = [row["name"] for row in report.connection.execute(NAMES).fetchall()]
    for name in names:
        check_index(report.about(name), name, max_lag)
    if not names:
        report.note("index", "this role sees no index", "foh-pg create-index --help says how to make one")


def check_index(report: Report, name: str, max_lag: float) -> None:
    """Each check of one index in a guard of its own."""
    word = shlex.quote(name)
    before = len(report.findings)
    with report.guarded("table"):
        for problem in report.connection.execute(PROBLEMS, {"name": name}).fetchall():
            # The cure is SQL; here it is the command that does the same.
            cure = OUR_FUNCTION.sub(lambda call: command_for(call[1], word, call[2]), problem["cure"])
            check = "triggers" if "trigger" in problem["what"] else "table"
            report.error(check, f"{problem['what']} ({problem['details']})", cure)
    broken, row = len(report.findings) > before, None
    with report.guarded("stream"):
        row = report.connection.execute(INDEX, {"name": name}).fetchone()
    if row is None:
        return
    for check, look in {"build": check_building, "run": check_last_run, "rows": check_far_rows}.items():
        with report.guarded(check):
            look(report, row, word)
    # Without figures there is nothing to compare.
    if row["rows"] is not None:
        with report.guarded("stream"):
            check_waiting(report, row, word, max_lag)
        with report.guarded("model"):
            check_model(report, row, word)
    elif row["state"].startswith("a node does not answer"):
        report.error("stream", row["state"], "start that node, or see what it says in its log")
    elif not broken:
        report.error(
            "stream",
            f"the tables of the index in schema foh: {row['state']}",
            f"foh-pg alter-index {word} --refresh; if that does not help, foh-pg drop-index {word}, "
            "and create it again",
        )


def command_for(function: str, word: str, column: str | None = None) -> str:
    """The command that calls a function of schema foh; `column` says which one has to be named."""
    refresh = "--refresh" if column is None else f"--{column} COLUMN"
    flags = {"repair": f"check {word} --repair", "refresh": f"alter-index {word} {refresh}"}
    return "foh-pg " + flags.get(function, f"{function.replace('_', '-')} {word}")


def check_building(report: Report, row: Row, word: str) -> None:
    if row["status"] == "building":
        found = "the index is not built: searches read the whole table"
        report.error("build", found, f"foh-pg build {word}")


def check_last_run(report: Report, row: Row, word: str) -> None:
    if row["error"]:
        report.error(
            "run",
            f"the last run failed: {' '.join(row['error'].split())}",
            f"foh-pg update {word}, once the cause is gone; foh-pg check {word} looks for damage",
        )


def check_far_rows(report: Report, row: Row, word: str) -> None:
    if row["far"]:
        some = ", ".join(row["far_keys"]) + (", ..." if row["far"] > len(row["far_keys"]) else "")
        report.warn(
            "rows",
            f"{row['far']} rows have an embedding longer than 1e18 (key {some}): they take no part in models "
            "and lists, and every search reads them",
            "correct the embeddings, or set them to NULL",
        )


def check_waiting(report: Report, row: Row, word: str, max_lag: float) -> None:
    lag, ago = row["lag_seconds"], row["run_ago"]
    if lag > max_lag and (ago is None or ago > lag):
        last = "there was none yet" if ago is None else f"the last began {duration(ago)} ago"
        report.error(
            "job",
            f"the index is not updated: an entry has waited {duration(lag)} in the stream, and no run began "
            f"since ({last})",
            f"run foh-pg update {word} from cron or a timer, or foh-pg watch: docs/how-to/update.md",
        )
    elif lag > max_lag or row["stream"] > max(FEW_ENTRIES, MUCH_STREAM * row["rows"]):
        report.warn(
            "stream",
            f"the stream grows: {row['stream']} entries beside {row['rows']} rows in lists, the oldest "
            f"{duration(lag)} old",
            f"run foh-pg update {word} more often, without --max-seconds or with a larger --batch-size",
        )
    if row["deferred"] > max(FEW_DEFERRED, MUCH_DEFERRED * row["rows"]):
        report.warn(
            "deferred",
            f"{row['deferred']} rows were written without bits (foh.defer): searches read the table for them",
            f"foh-pg update {word}",
        )


def check_model(report: Report, row: Row, word: str) -> None:
    if row["status"] != "ready":
        return
    again = f"foh-pg build {word} --again"
    # Twice, since the share is an estimate from samples.
    if row["stale"] > 2 * row["max_stale"]:
        budget = "" if row["budget"] is None else f", with a larger budget than {row['budget']}"
        report.warn(
            "model",
            f"{row['stale']:.1%} of the stored bits are those of older hash functions, and max_stale is "
            f"{row['max_stale']:.1%}",
            f"foh-pg update {word}{budget}; foh-pg update {word} --full encodes every row again",
        )
    if row["labels"] is not None and not row["trained"] and row["rows"] >= LABELLED:
        report.warn(
            "model",
            f"the index has labels, {row['rows']} rows, and never learned: labels do not count",
            f"{again} trains on the rows there are, once {LABELLED} of them have labels",
        )
    if row["replaced"] > MUCH_REPLACED * row["rows"]:
        report.warn(
            "model",
            f"{row['replaced']} of {row['rows']} rows have got quite another embedding since the index was "
            "built: the embedding model seems to have changed, and what was learned is of the former one",
            again,
        )
    for problem, cure in strange_labels(row["names"], row["rows"]):
        report.warn("labels", problem, f"{cure}; then foh-pg alter-index {word} --labels COLUMN")
    if row["refused"] >= REFUSED:
        report.warn(
            "model",
            f"the last {REFUSED} models were worse than the present one and were not installed: new labels "
            "disagree with old ones",
            f"{again}, and the option forget below 1: docs/reference/options.md",
        )
