"""What a watcher counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics

from foh_pg.runs.run import Run

# What each metric says. Those whose names end in _total are counters, the others gauges.
METRICS = {
    "foh_runs_total": "Runs that ended without an error.",
    "foh_run_errors_total": "Runs that an error ended.",
    "foh_runs_skipped_total": "Runs skipped because another updater was at work on the index.",
    "foh_models_refused_total": "Runs whose new model was worse than the present one.",
    "foh_phase_seconds_total": "Seconds spent in each phase of runs.",
    "foh_rows_total": "Stream entries consumed.",
    "foh_lists_encoded_total": "Lists encoded again.",
    "foh_rows_encoded_total": "Rows encoded again.",
    "foh_last_run_failed": "Whether an error ended the last run, by any updater.",
    "foh_index_ready": "Whether the index is built and can be read.",
    "foh_index_version": "Version of the index.",
    "foh_index_rows": "Rows in the lists of the index.",
    "foh_stale_bits_ratio": "Share of stored bits estimated to be those of older hash functions.",
    "foh_stream_rows": "Entries that wait in the stream.",
    "foh_stream_lag_seconds": "Age of the oldest entry in the stream.",
    "foh_deferred_rows": "Entries in the stream that have no bits yet.",
    "foh_evaluated_p10": "Share of the first ten with a label of the query, by foh-pg evaluate.",
    "foh_evaluated_p100": "The same of the first hundred.",
    "foh_evaluated_map100": "Mean average precision of the first hundred, by foh-pg evaluate.",
    "foh_evaluated_recall10": "Share of the exact ten among the first ten, by foh-pg evaluate.",
    "foh_evaluated_both10": "Share found of the ten nearest rows with a label of the query.",
    "foh_evaluated_version": "Version of the index that foh-pg evaluate measured last.",
    "foh_evaluated_timestamp_seconds": "When foh-pg evaluate last measured the index.",
    "foh_held_out_map": "Mean average precision on held-out rows, by the last run that learned.",
    "foh_last_run_timestamp_seconds": "When the last run without an error ended.",
    "foh_last_poll_timestamp_seconds": "When the stream was last looked at.",
    "foh_connected": "Whether the watcher has a connection to the database.",
    "foh_connection_errors_total": "Connections that failed or were lost.",
    "foh_info": "Version of foh_pg.",
}

# What evaluate measures, and of whose answers.
MEASURES = ("p10", "p100", "map100", "recall10", "both10")
WAYS = ("index", "exact")

# Labels of most metrics, and of those that have others.
INDEX = ("index",)
LABELS: dict[str, tuple[str, ...]] = {
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
        self._metrics: dict[str, Counter | Gauge] = {}
        for name, about in METRICS.items():
            kind = Counter if name.endswith("_total") else Gauge
            self._metrics[name] = kind(name, about, LABELS.get(name, INDEX), registry=self.registry)

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        metric = self._metrics[name]
        (metric.labels(**labels) if labels else metric).inc(amount)

    def set(self, name: str, value: float, **labels: str) -> None:
        metric = self._metrics[name]
        assert isinstance(metric, Gauge)
        (metric.labels(**labels) if labels else metric).set(value)

    def get(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0

    def start(self, index: str) -> None:
        """Begin at zero what is counted per index: a rate needs a first value."""
        for name, metric in self._metrics.items():
            if isinstance(metric, Counter) and name not in LABELS:
                self.add(name, 0.0, index=index)

    def forget(self, index: str) -> None:
        """Drop what belongs to an index that is there no longer."""
        for name, metric in self._metrics.items():
            if "index" in LABELS.get(name, INDEX):
                metric.remove_by_labels({"index": index})

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
