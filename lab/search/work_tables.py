"""Tables of what is not one search: builds, and the stages of the paper."""

from __future__ import annotations

from statistics import mean

from lab.search import stages as protocol
from lab.summary import Record, Report, Table

HNSW = "pgvector HNSW"


def builds(report: Report) -> Table:
    """Size and time to build."""
    records = report.select("build")
    graph = next((r["bytes"] for r in records if r["contender"] == HNSW), None)
    rows = [
        [
            r["contender"],
            f"{r['bytes'] / 1e6:.1f}",
            f"1/{graph / r['bytes']:.0f}" if graph and 0 < r["bytes"] < graph else "",
            f"{r['build_seconds']:.1f}",
            f"{r['reached']:.1%}" if "reached" in r else "",
        ]
        for r in records
    ]
    note = (
        "All tables and indexes of an index of ours; the index alone for pgvector. On lists: the share of "
        "the rows that some list holds, and so some query can find."
    )
    return Table("Size and time to build", note, ["", "MB", "of HNSW", "seconds", "on lists"], rows)


def stage_means(report: Report) -> Table:
    """The paper's table of updating time and query time, means over the stages."""
    records = report.select("stage")
    rows = []
    for name in _methods(records):
        mine = [r for r in records if r["method"] == name]
        means = {key: mean(float(r[key]) for r in mine) for key in MEANS}
        learned = name != protocol.ALL
        rows.append(
            [
                name,
                f"{means['learn_cpu']:.2f}" if learned else "",
                f"{means['update_cpu']:.2f}",
                f"{means['update_wall']:.2f}",
                f"{mean(r['rows_encoded'] / r['rows'] for r in mine):.1%}",
                # As many milliseconds for one query as seconds for a thousand.
                f"{means['query_cpu_ms']:.2f}",
                f"{means['query_wall_ms']:.2f}",
                f"{means['precision']:.3f}",
                f"{means['average_precision']:.3f}",
                f"{means['recall']:.3f}",
                f"{means['distance']:.3f}",
            ]
        )
    return Table("Updating time and query time, as in the paper", STAGES, STAGE_COLUMNS, rows)


def stages(report: Report) -> Table:
    """CPU of each stage, method by method."""
    records = report.select("stage")
    names = _methods(records)
    by = {(r["method"], r["stage"]): r for r in records}
    rows = []
    for stage in dict.fromkeys(r["stage"] for r in records):
        found = [by[name, stage] for name in names]
        cells = [f"{r['update_cpu']:.2f}; {r['rows_encoded']}; {r['query_cpu_ms']:.2f}" for r in found]
        rows.append([f"{stage}: {found[0]['rows']} rows", *cells])
    note = "CPU seconds of updating; rows encoded; CPU milliseconds of one query."
    return Table("Stage by stage", note, ["stage", *names], rows)


MEANS = (
    "learn_cpu",
    "update_cpu",
    "update_wall",
    "query_cpu_ms",
    "query_wall_ms",
    "precision",
    "average_precision",
    "recall",
    "distance",
)
STAGES = (
    "Means over the stages, for the first 100, of bits alone: nothing is read from the table. foh ranks by "
    "geometry bits and by what it knows of labels; without lists, symmetric codes are ranked "
    "by Hamming distance. Recall counts the exact nearest, distance is the mean cosine distance. Updating is "
    "all of a run but learning, with CPU of the updater and of its process in the server. Without a pool, "
    "all rows are encoded in the client with the hash functions that foh has learned, and stored. The "
    "paper's own figures are of arrays in memory, in MATLAB."
)
STAGE_COLUMNS = (
    "",
    "learning CPU s",
    "updating CPU s",
    "wall s",
    "rows encoded",
    "1000 queries CPU s",
    "wall s",
    "P@100",
    "mAP",
    "recall@100",
    "distance",
)


def _methods(records: list[Record]) -> list[str]:
    return list(dict.fromkeys(r["method"] for r in records))
