"""The tables of the search benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.search import work_tables
from lab.summary import Record, Report, Table

TIMES = (
    "CPU is that of the server's process for one query, wall is seen by the client; both are means over the "
    "queries asked, which all answer in turn. P is precision by label, mAP is over the rows returned, recall "
    "counts the exact nearest by cosine, distance is the mean cosine distance of the rows returned."
)


def tables(report: Report) -> list[Table]:
    """One table per experiment that was run."""
    made = [work_tables.builds(report), searches(report, 10), searches(report, 100)]
    made += [work_tables.clients(report), work_tables.inserts(report)]
    made += [work_tables.stage_means(report), work_tables.stages(report)]
    made += [extra(report, *arguments) for arguments in EXTRAS]
    return [table for table in made if table.rows]


def searches(report: Report, k: int) -> Table:
    """CPU, wall and quality of every form with this k."""
    records = [r for r in report.select("search") if r["k"] == k]
    plain = "ef_search 40" if k == 10 else "ef_search 100"
    base = _blocks(records, "pgvector HNSW", plain)
    rows = [_line(r, f"{r['contender']}, {r['form']}", base) for r in records]
    all_queries = max((r["asked"] for r in records), default=0)
    few = [r["asked"] for r in records if r["asked"] < all_queries]
    note = f"{TIMES} HNSW is at {plain}, in the same blocks of queries."
    if few:
        note += f" What takes long is asked {min(few)} of the {all_queries} queries: its quality is rough."
    columns = [
        "",
        "CPU ms",
        "of HNSW",
        "wall ms",
        f"P@{k}",
        "mAP",
        f"recall@{k}",
        "distance",
        "rows",
        "queries",
    ]
    return Table(f"The first {k}", note, columns, rows)


# experiment, title, what each row is told apart by
EXTRAS: tuple[tuple[str, str, str | None], ...] = (
    ("filter", "Among some of the rows, the first 10", "keeps"),
    ("policy", "Under row-level security with 100 tenants, the first 10", "keeps"),
    ("stream", "While rows wait in the stream, the first 10", "waiting"),
    ("wide", "4096 dimensions, 128 bits, the first 10", None),
)


def extra(report: Report, experiment: str, title: str, apart: str | None) -> Table:
    """One of the further experiments; compared with HNSW in the same group, where it is there."""
    rows = []
    records = report.select(experiment)
    for value in dict.fromkeys(r.get(apart or "") for r in records):
        group = [r for r in records if r.get(apart or "") == value]
        base = _blocks(group, "pgvector HNSW", None)
        for r in group:
            name = f"{r['contender']}, {r['form']}"
            rows.append(_line(r, name if apart is None else f"{value}: {name}", base))
    columns = ["", "CPU ms", "of HNSW", "wall ms", "P@10", "mAP", "recall@10", "distance", "rows", "queries"]
    return Table(title, "", columns, rows)


def _blocks(records: Sequence[Record], contender: str, form: str | None) -> Any:
    for r in records:
        if r["contender"] == contender and form in (None, r["form"]):
            return np.array(r["cpu_ms_blocks"])
    return None


def _line(r: Record, name: str, base: Any) -> list[str]:
    blocks = r["cpu_ms_blocks"]
    ratio = "" if base is None else f"{np.sum(blocks) / np.sum(base[: len(blocks)]):.2f}"
    measures = (r["precision"], r["average_precision"], r["recall"], r.get("distance"))
    return [
        name,
        f"{r['cpu_ms']:.2f}",
        ratio,
        f"{r['wall_ms']:.2f}",
        *("" if m is None else f"{m:.3f}" for m in measures),
        f"{r['returned']:.0%}",
        str(r["asked"]),
    ]
