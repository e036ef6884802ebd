"""What a watcher counts, in the text format of Prometheus (version 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    generate_latest,
)

from foh_pg.runs.run import Run

# name, type, help
METRICS = (
    ("foh_runs_total", "counter", "Runs that ended without an error."),
    ("foh_run_errors_total", "counter", "Runs that an error ended."),
    ("foh_runs_skipped_total", "counter", "Runs skipped because another updater was at work on the index."),
    ("foh_models_refused_total", "counter", "Runs whose new model was worse than the present one."),
    ("foh_phase_seconds_total", "counter", "Seconds spent in each phase of runs."),
    ("foh_rows_total", "counter", "Stream entries consumed."),
    ("foh_lists_encoded_total", "counter", "Lists encoded again."),
    ("foh_rows_encoded_total", "counter", "Rows encoded again."),
    ("foh_last_run_failed", "gauge", "Whether an error ended the last run, by any updater."),
    ("foh_index_ready", "gauge", "Whether the index is built and can be read."),
    ("foh_index_version", "gauge", "Version of the index."),
    ("foh_index_rows", "gauge", "Rows in the lists of the index."),
    ("foh_stale_bits_ratio", "gauge", "Share of stored bits estimated to be those of older hash functions."),
    ("foh_stream_rows", "gauge", "Entries that wait in the stream."),
    ("foh_stream_lag_seconds", "gauge", "Age of the oldest entry in the stream."),
    ("foh_deferred_rows", "gauge", "Entries in the stream that have no bits yet."),
    ("foh_evaluated_p10", "gauge", "Share of the first ten with a label of the query, by foh-pg evaluate."),
    ("foh_evaluated_p100", "gauge", "The same of the first hundred."),
    ("foh_evaluated_map100", "gauge", "Mean average precision of the first hundred, by foh-pg evaluate."),
    ("foh_evaluated_recall10", "gauge", "Share of the exact ten among the first ten, by foh-pg evaluate."),
    ("foh_evaluated_both10", "gauge", "Share found of the ten nearest rows with a label of the query."),
    ("foh_evaluated_version", "gauge", "Version of the index that foh-pg evaluate measured last."),
    ("foh_evaluated_timestamp_seconds", "gauge", "When foh-pg evaluate last measured the index."),
    ("foh_held_out_map", "gauge", "Mean average precision on held-out rows, by the last run that learned."),
    ("foh_last_run_timestamp_seconds", "gauge", "When the last run without an error ended."),
    ("foh_last_poll_timestamp_seconds", "gauge", "When the stream was last looked at."),
    ("foh_connected", "gauge", "Whether the watcher has a connection to the database."),
    ("foh_connection_errors_total", "counter", "Connections that failed or were lost."),
    ("foh_info", "gauge", "Version of foh_pg."),
)

# What evaluate measures, and of whose answers.
MEASURES = ("p10", "p100", "map100", "recall10", "both10")
WAYS = ("index", "exact")

# Labels of a metric where they are not the index alone.
LABELS = {
    "foh_phase_seconds_total": ("index", "phase"),
    **{f"foh_evaluated_{measure}": ("index", "way") for measure in MEASURES},
    "foh_last_poll_timestamp_seconds": (),
    "foh_connected": (),
    "foh_connection_errors_total": (),
    "foh_info": ("version",),
}

# A watcher is a process of its own: when a counter was made says no more than when it started.
disable_created_metrics()


class Counters:
    """Counters and gauges by name and labels; written by the watcher, read by Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        kinds = {"counter": Counter, "gauge": Gauge}
        self._metrics: dict[str, Counter | Gauge] = {
            name: kinds[kind](name, about, LABELS.get(name, ("index",)), registry=self.registry)
            for name, kind, about in METRICS
        }

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        metric = self._metrics[name]
        (metric.labels(**labels) if labels else metric).inc(amount)

    def set(self, name: str, value: float, **labels: str) -> None:
        metric = self._metrics[name]
        assert isinstance(metric, Gauge)
        (metric.labels(**labels) if labels else metric).set(value)

    def get(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0

    def keep(self, indexes: Iterable[str]) -> None:
        """Drop what belongs to indexes that are there no longer."""
        kept = set(indexes)
        for name, metric in self._metrics.items():
            names = LABELS.get(name, ("index",))
            for sample in [sample for family in metric.collect() for sample in family.samples]:
                if "index" in names and sample.labels["index"] not in kept:
                    metric.remove(*(sample.labels[label] for label in names))

    def start(self, index: str) -> None:
        """Begin at zero what is counted per index: a rate needs a first value."""
        for name, kind, _ in METRICS:
            if kind == "counter" and name not in ("foh_phase_seconds_total", "foh_connection_errors_total"):
                self.add(name, 0.0, index=index)

    def count(self, run: Run) -> None:
        """Take in what a run did, whether or not it came to its end."""
        for phase, seconds in run.phases.items():
            self.add("foh_phase_seconds_total", seconds, index=run.index, phase=phase)
        self.add("foh_rows_total", run.rows, index=run.index)
        self.add("foh_lists_encoded_total", run.lists, index=run.index)
        self.add("foh_rows_encoded_total", run.rows_encoded, index=run.index)
        refused = bool(run.metrics.get("refused"))
        self.add("foh_models_refused_total", float(refused), index=run.index)
        # Where a model was refused, the figure is that of the model that goes on serving.
        seen = run.metrics.get("map_present" if refused else "map")
        if seen is not None:
            self.set("foh_held_out_map", float(seen), index=run.index)

    def show(self, index: str, version: int, measured_at: float, metrics: Mapping[str, Any]) -> None:
        """Show what an evaluation found. Those of earlier versions of this package lack some figures."""
        self.set("foh_evaluated_version", version, index=index)
        self.set("foh_evaluated_timestamp_seconds", measured_at, index=index)
        for way in WAYS:
            for measure in MEASURES:
                value = metrics.get(way, {}).get(measure)
                if value is not None:
                    self.set(f"foh_evaluated_{measure}", float(value), index=index, way=way)

    def text(self) -> str:
        """Everything that has a value.

        >>> counters = Counters()
        >>> counters.add("foh_rows_total", 3, index='a "b"')
        >>> [line for line in counters.text().splitlines() if "foh_rows_total{" in line]
        ['foh_rows_total{index="a \\\\"b\\\\""} 3.0']
        """
        return generate_latest(self.registry).decode()
