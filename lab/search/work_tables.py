"""Tables of what is not one search: builds, writes, several clients, and the stages of the paper."""

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


def inserts(report: Report) -> Table:
    """What an INSERT costs, one row at a time and many at once."""
    records = report.select("insert")
    by = {(r["contender"], r["rows"] > 1): r for r in records}
    rows = []
    for name in dict.fromkeys(r["contender"] for r in records):
        line = [name]
        for many in (False, True):
            r, graph = by[name, many], by.get((HNSW, many))
            ratio = f"{r['cpu_ms'] / graph['cpu_ms']:.2f}" if graph and graph["cpu_ms"] else ""
            line += [f"{r['cpu_ms']:.3f}", ratio, f"{r['wall_ms']:.3f}"]
        rows.append(line)
    size = next((r["rows"] for r in records if r["rows"] > 1), 0)
    columns = ["", "1 row: CPU ms", "of HNSW", "wall ms"]
    columns += [f"{size} rows: CPU ms a row", "of HNSW", "wall ms a row"]
    note = (
        "Medians, with the row and its commit, which exact cosine shows alone; each on a table with this one "
        "index, in turn. Ours are searchable then, and learned from by the next update. What encodes all "
        "again for a query stores nothing: an INSERT costs what it costs exact cosine."
    )
    return Table("What an INSERT costs", note, columns, rows)


def clients(report: Report) -> Table:
    """Queries a second by number of clients."""
    records = report.select("clients")
    counts = list(dict.fromkeys(r["clients"] for r in records))
    rows = []
    for name, form in dict.fromkeys((r["contender"], r["form"]) for r in records):
        found = {r["clients"]: r for r in records if (r["contender"], r["form"]) == (name, form)}
        cells = [f"{found[n]['per_second']:,.0f} ({found[n]['latency_ms']:.1f} ms)" for n in counts]
        rows.append([f"{name}, {form}", *cells, f"{found[counts[-1]]['server_cores']:.1f}"])
    seconds = report.settings.get("seconds", 0)
    note = (
        "Queries a second for the first 10, with the mean time of one in parentheses; clients of pgbench, "
        f"each asking as fast as it can for {seconds:g} s. The clients share the cores of the machine with "
        "the server; the last column is the cores that the server had at the most clients."
    )
    columns = ["", *(f"{n} client{'s' if n > 1 else ''}" for n in counts), "server cores"]
    return Table("Several clients", note, columns, rows)


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
