"""The tables of the benchmark of accuracy: means over seeds, with their spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.summary import REFERENCE_METHOD, Record, Report, Table, Value, row_name, rows_of, spread


def map_table(report: Report) -> Table:
    """The paper's table: mAP over the whole base by bits."""
    records, bits = report.select("table"), report.settings["bits"]
    names = rows_of(records)
    cells = {
        (name, k): [r["map"] for r in records if row_name(r) == name and r["bits"] == k]
        for name in names
        for k in bits
    }
    plain = [name for name in names if not name.endswith("anchored")]
    best = set()
    for column, k in enumerate(bits, start=1):
        means = [np.mean(cells[name, k]) if cells[name, k] else -1 for name in plain]
        best.add((int(np.argmax(means)), column))
    rows = [[name, *(spread(cells[name, k]) for k in bits)] for name in names]
    for name in rows_of(report.select("reference")):
        values = [r["map"] for r in report.select("reference") if row_name(r) == name]
        rows.append([f"({name})", *[spread(values)] * len(bits)])
    return Table(
        "mAP over the whole base",
        "Mean ± standard deviation over seeds. Rows in parentheses are no codes. Rows marked anchored, and "
        "classify and filter, read the labels of stored rows; compare them with each other only.",
        ["method", *(f"{k} bits" for k in bits)],
        rows,
        frozenset(best),
    )


def difference_table(report: Report) -> Table | None:
    """Paired differences to FOH: same seed, same rows, same queries."""
    records, bits = report.select("table"), report.settings["bits"]
    by_key = {(row_name(r), r["bits"], r["seed"]): r["map"] for r in records}
    base = REFERENCE_METHOD[0]
    rows = []
    for name in rows_of(records):
        if name == base or name.endswith("anchored"):
            continue
        cells = []
        for k in bits:
            pairs = [
                (by_key[base, k, s] - by_key[name, k, s])
                for s in report.settings["seeds"]
                if (base, k, s) in by_key and (name, k, s) in by_key
            ]
            cells.append(spread(pairs))
        rows.append([name, *cells])
    if not rows or all(cell == "-" for row in rows for cell in row[1:]):
        return None
    return Table(
        "How much higher the mAP of foh is",
        "Paired differences, foh minus the row, both with symmetric codes; negative where FOH loses.",
        ["method", *(f"{k} bits" for k in bits)],
        rows,
    )


def detail_table(report: Report, bits: int) -> Table:
    """Precision, time and size at one length of codes."""
    records = [r for r in report.select("table") if r["bits"] == bits] + report.select("reference")
    ranks = list(records[0]["precision_at"]) if records else []
    rows = []
    for name in rows_of(records):
        mine = [r for r in records if row_name(r) == name]
        rate = [r["rows_per_second"] for r in mine if "rows_per_second" in r]
        rows.append(
            [
                name,
                spread([r["map"] for r in mine]),
                *(spread([r["precision_at"][k] for r in mine]) for k in ranks),
                *(spread([r.get(name, float("nan")) for r in mine]) for name in ("recall10", "distance10")),
                f"{np.mean([r['train_seconds'] for r in mine]):.2f}",
                f"{np.mean(rate):,.0f}" if rate else "-",
                str(mine[0]["bytes_per_row"]),
            ]
        )
    return Table(
        f"Precision, training and size at {bits} bits",
        "P@k is the share of relevant rows among the first k, recall@10 the share of the exact ten nearest "
        "by cosine among the first ten, distance the mean cosine distance of these. Seconds of CPU are for "
        "the whole stream; bytes "
        "are what is stored per row beside key and labels.",
        [
            "method",
            "mAP",
            *(f"P@{k}" for k in ranks),
            "recall@10",
            "distance",
            "train s",
            "rows/s",
            "bytes/row",
        ],
        rows,
    )


def ablation_table(report: Report) -> Table | None:
    """FOH with something left out."""
    records = report.select("ablation")
    if not records:
        return None
    bits = sorted({r["bits"] for r in records})
    records = records + [
        r
        for r in report.select("table")
        if r["method"] in ("foh", "foh-paper") and r["codes"] == "symmetric" and r["bits"] in bits
    ]
    return Table(
        "Ablations",
        "foh-l has no label projection in its objective (theta = mu = 0), foh-s takes rows that share any "
        "label as equally similar. mAP over the whole base.",
        ["method", *(f"{k} bits" for k in bits)],
        _by_column(records, "bits", bits, lambda r: float(r["map"]), row_name),
    )


def pool_table(report: Report) -> Table | None:
    """FOH-Q: what is ranked with and without a pool."""
    records = report.select("pool")
    if not records:
        return None
    rows = []
    keys = dict.fromkeys((r["method"], r["bits"], r["pool"]) for r in records)
    for method, bits, pool in keys:
        mine = [r for r in records if (r["method"], r["bits"], r["pool"]) == (method, bits, pool)]
        rows.append(
            [
                f"{method}, {bits} bits",
                pool,
                spread([r["map_of_candidates"] for r in mine]),
                *(spread([r["precision_at"][k] for r in mine]) for k in ("10", "100")),
                f"{np.mean([r['candidates'] for r in mine]):,.0f}",
                f"{100 * np.mean([r['reachable'] for r in mine]):.1f} %",
            ]
        )
    return Table(
        "With and without a query pool",
        "mAP here is the authors': over the candidates of a query, divided by the relevant rows among them. "
        "It is not comparable with other tables. Reachable is the share of rows on any list.",
        ["codes", "pool", "mAP of candidates", "P@10", "P@100", "candidates", "reachable"],
        rows,
    )


def updating_table(report: Report) -> Table | None:
    """The paper's last table."""
    records = report.select("updating")
    if not records:
        return None
    every = sorted({r["every"] for r in records})
    return Table(
        f"Centers renewed every so many batches, {records[0]['bits']} bits",
        "The paper's pool, grown with the stream; mAP over the candidates, as above.",
        ["method", *(f"{n}-b" for n in every)],
        _by_column(records, "every", every, lambda r: float(r["map_of_candidates"]), row_name),
    )


def hidden_table(report: Report) -> Table | None:
    """Rows without labels: those a filter on labels never finds."""
    records = report.select("hidden")
    if not records:
        return None
    shares = sorted({r["hidden"] for r in records})
    return Table(
        f"Rows without labels, {records[0]['bits']} bits",
        "A share of all rows, in stream and base, has no label that anyone could learn from, lean on or "
        "filter by. mAP over the whole base by the true labels; P@100 in parentheses.",
        ["method", *(f"{share:.0%} without" for share in shares)],
        [
            [row, *(_with_precision(records, row, share) for share in shares)]
            for row in dict.fromkeys(row_name(r) for r in records)
        ],
    )


def _with_precision(records: Sequence[Record], row: str, share: float) -> str:
    mine = [r for r in records if row_name(r) == row and r["hidden"] == share]
    first = [r["precision_at"].get("100", float("nan")) for r in mine]
    return f"{spread([r['map'] for r in mine])} ({spread(first)})"


def arrival_table(report: Report) -> Table | None:
    """Labels one after another instead of mixed."""
    records = report.select("arrival")
    if not records:
        return None
    bits = records[0]["bits"]
    mixed = [r for r in report.select("table") if r["bits"] == bits]
    rows = []
    for name in rows_of(records):
        ordered = [r["map"] for r in records if row_name(r) == name]
        shuffled = [r["map"] for r in mixed if row_name(r) == name]
        rows.append([name, spread(shuffled), spread(ordered)])
    return Table(
        f"Labels arriving one after another, {bits} bits",
        "The same stream, mixed and sorted by label: mAP over the whole base after the last batch.",
        ["method", "mixed", "one after another"],
        rows,
    )


def training_table(report: Report) -> Table:
    """The paper's training time."""
    records = [r for r in report.select("table") if r["codes"] == "symmetric"]
    bits = report.settings["bits"]
    rows = _by_column(records, "bits", bits, lambda r: float(r["train_seconds"]), row_name)
    note = "Seconds of CPU for the whole stream, one thread."
    return Table("Training time", note, ["method", *(f"{k} bits" for k in bits)], rows)


def _by_column(
    records: Sequence[Record], key: str, values: Sequence[Any], value: Value, name: Callable[[Record], str]
) -> list[list[str]]:
    return [
        [row, *(spread([value(r) for r in records if name(r) == row and r[key] == v]) for v in values)]
        for row in dict.fromkeys(name(r) for r in records)
    ]


def tables(report: Report) -> list[Table]:
    """All tables of an accuracy report, in reading order."""
    made: list[Table | None] = [
        map_table(report),
        difference_table(report),
        *(detail_table(report, k) for k in report.settings["bits"]),
        ablation_table(report),
        pool_table(report),
        updating_table(report),
        hidden_table(report),
        arrival_table(report),
    ]
    return [table for table in made if table is not None and table.rows]
