"""The tables of the benchmark of updating."""

from __future__ import annotations

from foh_pg.arrays.metrics import BOTH_IS
from lab.summary import Record, Report, Table

SECONDS = (
    "CPU is that of the updater and of its process in the server. Phases in seconds by the clock, the "
    f"longest first. {BOTH_IS}."
)
PHASES_SHOWN = 5
NEARNESS = ("P@10", "recall@10", "both@10", "distance")


def tables(report: Report) -> list[Table]:
    """What came after each batch, and at the checkpoints."""
    return [batches(report), comparisons(report)]


def batches(report: Report) -> Table:
    """Quality and cost after each batch."""
    rows = [
        [
            f"{r['model']} {r['rows']}",
            f"{r['precision']:.4f}",
            f"{r['map']:.4f}",
            *_nearness(r),
            f"{r['share_encoded']:.1%}",
            "-" if r["stale"] is None else f"{r['stale']:.2%}",
            f"{r['wall']:.2f}",
            f"{r['cpu']:.2f}",
            longest(r["phases"]),
        ]
        for r in sorted(report.select("batch"), key=lambda r: (r["model"] != "online", r["rows"]))
    ]
    columns = ["rows", "P@100", "mAP@100", *NEARNESS, "encoded", "stale", "wall s", "CPU s", "phases"]
    return Table("After each batch", SECONDS, columns, rows, words=frozenset({"phases"}))


def comparisons(report: Report) -> Table:
    """What encoding everything again, and training afresh, would have given."""
    rows = []
    for r in report.select("compared"):
        online = next(b for b in report.select("batch") if (b["rows"], b["model"]) == (r["rows"], "online"))
        cpu = r.get("cpu")
        rows.append(
            [
                f"{r['rows']}: {r['model']}",
                f"{r['precision']:.4f}",
                f"{r['map']:.4f}",
                *_nearness(r),
                f"{r['map'] - online['map']:+.4f}",
                "" if cpu is None else f"{r['wall']:.2f}",
                "" if cpu is None else f"{cpu:.2f}",
                "" if cpu is None else f"{cpu / recent_cpu(report, r['rows']):.1f}",
            ]
        )
    note = "Against online: mAP less that of the online index; CPU over that of a run, mean of the last ten."
    columns = ["", "P@100", "mAP@100", *NEARNESS, "against online", "wall s", "CPU s", "times a run"]
    return Table("Against encoding everything again and training afresh", note, columns, rows)


def _nearness(r: Record) -> list[str]:
    return [f"{r[name]:.4f}" for name in ("precision10", "recall10", "both10", "distance10")]


def recent_cpu(report: Report, rows: int) -> float:
    """What a run of the online index costs about here."""
    runs = [r["cpu"] for r in report.select("batch") if r["model"] == "online" and r["rows"] <= rows][-10:]
    return float(sum(runs) / len(runs))


def longest(phases: dict[str, float]) -> str:
    ordered = sorted(phases.items(), key=lambda phase: -phase[1])[:PHASES_SHOWN]
    return ", ".join(f"{name} {seconds:.2f}" for name, seconds in ordered)


def one_line(record: Record) -> str:
    """What a record says, where nobody sees a progress bar."""
    shown = {k: v for k, v in record.items() if not isinstance(v, (dict, list)) and k != "experiment"}
    return f"{record['experiment']}: " + ", ".join(f"{key} {value}" for key, value in shown.items())
