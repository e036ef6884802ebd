"""The tables of the paper, in its order."""

from __future__ import annotations

from dataclasses import replace

from lab.accuracy import accuracy_tables
from lab.search import work_tables
from lab.summary import Report, Table


def tables(report: Report) -> list[Table]:
    """Updating and query time where they were measured, mAP, training time, variants, updating of centers."""
    made = [
        *_times(report),
        accuracy_tables.map_table(report),
        accuracy_tables.training_table(report),
        accuracy_tables.ablation_table(report),
        accuracy_tables.pool_table(report),
        accuracy_tables.updating_table(report),
    ]
    return [table for table in made if table is not None and table.rows]


def _times(report: Report) -> list[Table]:
    made = []
    for bits in dict.fromkeys(r["bits"] for r in report.select("stage")):
        records = [r for r in report.select("stage") if r["bits"] == bits]
        table = work_tables.stage_means(replace(report, records=records))
        made.append(replace(table, title=f"Updating time and query time, {bits} bits"))
    return made
