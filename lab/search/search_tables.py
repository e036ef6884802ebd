"""The tables of the search benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foh_pg.arrays.metrics import BOTH_IS, PRECISION_IS, RECALL_IS
from lab.search import work_tables
from lab.search.frontier import HNSW
from lab.search.ours import NEAREST
from lab.summary import Record, Report, Table

TIMES = (
    "CPU is that of the server's process for one query, wall is seen by the client, and both are means over "
    f"the queries asked, which all answer in turn. {PRECISION_IS}, {RECALL_IS}, {BOTH_IS}. Standard errors "
    "stand after ±. mAP is over the rows returned, distance their mean cosine distance."
)
FRONTIER = (
    "Nearest vectors and nothing else, the cheapest first; labels are left out, so recall@10 is what counts. "
    "For HNSW on our bits the client makes the bits of a query, so their cost is not in this table."
)
OWN = (
    "Rows of the table ask with their own vectors. First: the share that is first in its own answer (or "
    "behind a row with an equal vector); found: the share that is among the ten."
)


def tables(report: Report) -> list[Table]:
    """One table per experiment that was run."""
    made = [work_tables.builds(report), searches(report, 10), frontier(report), searches(report, 100)]
    made += [own_rows(report)]
    made += [work_tables.stage_means(report), work_tables.stages(report)]
    made += [extra(report, *arguments) for arguments in EXTRAS]
    return [table for table in made if table.rows]


def searches(report: Report, k: int) -> Table:
    """CPU, wall and quality of every form with this k."""
    records = [r for r in report.select("search") if r["k"] == k]
    plain = "ef_search 40" if k == 10 else "ef_search 100"
    base = _blocks(records, HNSW, plain)
    rows = [_line(r, f"{r['contender']}, {r['form']}", base) for r in records]
    all_queries = max((r["asked"] for r in records), default=0)
    few = [r["asked"] for r in records if r["asked"] < all_queries]
    note = f"{TIMES} HNSW is at {plain}, in the same blocks of queries."
    if few:
        note += f" What takes long is asked {min(few)} of the {all_queries} queries: its quality is rough."
    return Table(f"The first {k}", note, _columns(k), rows)


def frontier(report: Report) -> Table:
    """What recall costs where nothing but the nearest vectors is wanted."""
    records = [r for r in report.select("search") if r["k"] == 10]
    base = _blocks(records, HNSW, "ef_search 40")
    taking_part = [r for r in records if r["contender"].startswith(HNSW) or r["curve"] == NEAREST]
    rows = [
        _line(r, f"{r['contender']}, {r['form']}", base)
        for r in sorted(taking_part, key=lambda r: float(r["cpu_ms"]))
    ]
    return Table("Recall and its cost", FRONTIER, _columns(10), rows)


def own_rows(report: Report) -> Table:
    """Rows that ask with their own vectors."""
    rows = [
        [f"{r['contender']}, {r['form']}", f"{r['first']:.4f}", f"{r['found']:.4f}", str(r["asked"])]
        for r in report.select("own")
    ]
    return Table("Own row first", OWN, ["", "first", "found", "queries"], rows)


def _columns(k: int) -> list[str]:
    quality = [f"P@{k}", f"recall@{k}", f"both@{k}", "mAP", "distance"]
    return ["", "CPU ms", "of HNSW", "wall ms", *quality, "rows", "queries"]


# experiment, title, what each row is told apart by
EXTRAS = (
    ("filter", "Among some of the rows, the first 10", "keeps"),
    ("stream", "While rows wait in the stream, the first 10", "waiting"),
)


NOTES = {
    "filter": "Recall, both and mAP are those of the rows that pass: the ten nearest among these are wanted.",
}


def extra(report: Report, experiment: str, title: str, apart: str) -> Table:
    """One of the further experiments; compared with HNSW in the same group, where it is there."""
    rows = []
    records = report.select(experiment)
    for value in dict.fromkeys(r[apart] for r in records):
        group = [r for r in records if r[apart] == value]
        base = _blocks(group, HNSW, None)
        rows += [_line(r, f"{value}: {r['contender']}, {r['form']}", base) for r in group]
    return Table(title, NOTES.get(experiment, ""), _columns(10), rows)


def _blocks(records: Sequence[Record], contender: str, form: str | None) -> Any:
    for r in records:
        if r["contender"] == contender and form in (None, r["form"]):
            return np.array(r["cpu_ms_blocks"])
    return None


def _line(r: Record, name: str, base: Any) -> list[str]:
    blocks = r["cpu_ms_blocks"]
    ratio = "" if base is None else f"{np.sum(blocks) / np.sum(base[: len(blocks)]):.2f}"
    return [
        name,
        f"{r['cpu_ms']:.2f}",
        ratio,
        f"{r['wall_ms']:.2f}",
        *(f"{_number(r[m])} ± {_number(r[m + '_error'])}" for m in ("precision", "recall", "both")),
        *(_number(r[m]) for m in ("average_precision", "distance")),
        f"{r['returned']:.0%}",
        str(r["asked"]),
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}".lstrip("0")
