"""The figures of the page: each a title, a drawing and a line on how to read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from foh_pg.arrays.metrics import BOTH_IS, PRECISION_IS, RECALL_IS
from foh_pg.quality.history import PastRun, Quality, held_out_maps, quality, scores
from foh_pg.quality.report import svg
from foh_pg.quality.report.content import Content
from foh_pg.quality.report.svg import Series

# Phases drawn by name; the others are one.
PHASES = 8
BINS = 30
STEPS = {
    "lists": "in the lists read",
    "bits": "after ranking by bits",
    "shortlist": "on the shortlist",
    "answer": "in the answer",
}


@dataclass(frozen=True)
class Figure:
    """`svg` is empty where there is nothing to draw yet, and `note` says what to do."""

    title: str
    svg: str
    note: str
    # When the last point was measured; None where the figure shows how things are now.
    at: datetime | None = None


def figures(content: Content) -> Iterator[Figure]:
    """All figures, in the order of the page."""
    points = quality(content.runs)
    yield evaluations(content, points)
    yield nearness(content, points)
    yield kept(content, points)
    yield held_out(points)
    updates = [run for run in content.updates if run.kind == "update"]
    yield bits(updates)
    yield encoded(updates)
    note = "Lists whose center came, went or was split, or that had gone stale; rows that join open none."
    yield per_run("Lists encoded again per run", updates, "lists", lambda run: run.lists, note)
    yield lag(updates)
    yield time_spent(content.updates)
    yield lengths(content)
    yield labels(content)


def evaluations(content: Content, points: Sequence[Quality]) -> Figure:
    title = "Quality over versions, by foh-pg evaluate"
    ways = (
        ("index", "index", False),
        ("exact", "exact distance", True),
        ("random", "random hyperplanes", True),
    )
    series = drawn(Series(name, scores(points, way, "map100"), dashed) for way, name, dashed in ways)
    if not series:
        return unmeasured(content, title)
    note = (
        "mAP@100 by label. Rows that never trained ask, each left out of its own answer; the index through "
        "its SQL search, the other two over the whole table."
    )
    return Figure(title, svg.lines(series, y_label="mAP@100", x_label="version"), note, evaluated_at(points))


def evaluated_at(points: Sequence[Quality]) -> datetime:
    """When the last evaluation began; there is one."""
    return max(point.evaluated_at for point in points if point.evaluated_at is not None)


def last_begin(runs: Sequence[PastRun]) -> datetime:
    return max(run.started_at for run in runs)


def drawn(series: Iterable[Series]) -> list[Series]:
    """Those that have a point."""
    return [one for one in series if one.points]


def unmeasured(content: Content, title: str) -> Figure:
    return Figure(title, "", f"Not measured yet: run foh-pg evaluate {content.stat['name']}.")


def measures(points: Sequence[Quality]) -> list[Series]:
    """What foh-pg evaluate says of the answers of the index, version by version."""
    names = {"p10": "P@10", "recall10": "recall@10", "both10": "both@10"}
    return [Series(name, scores(points, "index", key)) for key, name in names.items()]


def nearness(content: Content, points: Sequence[Quality]) -> Figure:
    title = "By label and by nearness, by foh-pg evaluate"
    if not scores(points, "index", "recall10"):
        return unmeasured(content, title)
    series = [*measures(points), Series("P@10 of the exact distance", scores(points, "exact", "p10"), True)]
    note = f"{PRECISION_IS}, {RECALL_IS}, {BOTH_IS}."
    here, exact = scores(points, "index", "distance10"), scores(points, "exact", "distance10")
    if here and exact:
        note += (
            f" The mean distance of the first ten is {here[-1][1]:.4g}, of the exact ten {exact[-1][1]:.4g}."
        )
    chart = svg.lines(drawn(series), y_label="share", x_label="version", from_zero=True)
    return Figure(title, chart, note, evaluated_at(points))


def kept(content: Content, points: Sequence[Quality]) -> Figure:
    title = "What is left of the exact ten, step by step"
    measured = [p.evaluated["kept"] for p in points if p.evaluated and "kept" in p.evaluated]
    if not measured:
        return unmeasured(content, title)
    rows = [(name, measured[-1][step]) for step, name in STEPS.items() if step in measured[-1]]
    note = "Of the ten nearest rows: the share in the lists that a search reads, and after each further step."
    return Figure(title, svg.lying(rows, label=title), note, evaluated_at(points))


def held_out(points: Sequence[Quality]) -> Figure:
    title = "Quality over versions, as the updater saw it"
    seen = held_out_maps(points)
    if not seen:
        return Figure(title, "", "No run has learned from enough held-out rows yet.")
    note = "mAP of recent held-out rows among each other, before the model was served."
    line = svg.lines([Series("mAP", seen)], y_label="mAP", x_label="version")
    return Figure(title, line, note, max(p.at for p in points if p.held_out_map is not None))


def bits(runs: Sequence[PastRun]) -> Figure:
    title = "Bits flipped by a run, and left stale after it"
    flipped = [(float(r.version), 100 * float(r.metrics["flipped"])) for r in runs if "flipped" in r.metrics]
    stale = [(float(r.version), 100 * r.stale) for r in runs if r.stale is not None]
    series = [Series(n, p) for n, p in (("flipped", flipped), ("stale", stale)) if p]
    if not series:
        return Figure(title, "", "No run has changed the hash functions yet.")
    note = (
        "Share of the stored bits that the hash functions have changed since each list was encoded, "
        "before and after the stalest lists were encoded again; estimated from a few members of each list."
    )
    chart = svg.lines(series, y_label="% of bits", x_label="version", from_zero=True)
    return Figure(title, chart, note, last_begin(runs))


def encoded(runs: Sequence[PastRun]) -> Figure:
    note = "Rows in the lists that were encoded again; the new rows of the run come on top."
    return per_run("Rows encoded again per run", runs, "rows", lambda run: run.rows_encoded, note)


def per_run(
    title: str, runs: Sequence[PastRun], unit: str, value: Callable[[PastRun], float], note: str = ""
) -> Figure:
    if not runs:
        return Figure(title, "", "No run yet.")
    columns = [(str(run.version), {unit: float(value(run))}) for run in runs]
    chart = svg.bars(columns, y_label=unit, x_label="version", note=title)
    return Figure(title, chart, note, last_begin(runs))


def lag(runs: Sequence[PastRun]) -> Figure:
    seen = [run for run in runs if run.metrics.get("lag_seconds") is not None]
    note = (
        "How long the oldest entry of the stream had waited when the run began. It was searchable meanwhile."
    )
    return per_run("Stream lag", seen, "seconds", lambda run: float(run.metrics["lag_seconds"]), note)


def time_spent(runs: Sequence[PastRun]) -> Figure:
    title = "Where the time went"
    if not runs:
        return Figure(title, "", "No run yet.")
    total: dict[str, float] = {}
    for run in runs:
        for name, seconds in run.phases.items():
            total[name] = total.get(name, 0.0) + seconds
    named = sorted(total, key=lambda name: -total[name])[:PHASES]
    columns = []
    for run in runs:
        parts = {name: run.phases.get(name, 0.0) for name in named}
        rest = run.seconds - sum(parts.values())
        columns.append((str(run.version), {**parts, "other": rest} if len(total) > PHASES else parts))
    chart = svg.bars(columns, y_label="seconds", x_label="version", note=title)
    return Figure(title, chart, "Seconds by phase.", last_begin(runs))


def lengths(content: Content) -> Figure:
    title = "Lengths of the lists"
    if not content.lengths:
        return Figure(title, "", "There is no list yet.")
    most, mean = content.lengths[-1], sum(content.lengths) / len(content.lengths)
    step = max(1, -(-(most + 1) // BINS))
    counts = [0] * (most // step + 1)
    for length in content.lengths:
        counts[length // step] += 1
    columns = [(svg.number(i * step), {"lists": float(count)}) for i, count in enumerate(counts)]
    note = f"{len(content.lengths)} lists, {mean:.0f} rows on average, {most} at the most; {step} rows a bar."
    return Figure(title, svg.bars(columns, y_label="lists", x_label="rows, from", note=title), note)


def labels(content: Content) -> Figure:
    title = "The most frequent labels"
    if not content.labels:
        return Figure(title, "", "The index has no labels, or no row has one.")
    rows = [(name, count / content.sampled) for name, count in content.labels]
    note = "Rows that have the label"
    note += "." if content.sampled == 1 else f", estimated from {content.sampled:.1%} of the table."
    return Figure(title, svg.lying(rows, label=title), note)
