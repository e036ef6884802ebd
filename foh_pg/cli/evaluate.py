from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from foh_pg.arrays.metrics import BOTH_IS, PRECISION_IS, RECALL_IS
from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.cli.progress import progress_bar
from foh_pg.quality.evaluate import QUERIES
from foh_pg.quality.evaluate import evaluate as run_evaluate
from foh_pg.updater import Run

# Columns of the tables, each with the figure that stands in it.
FIGURES = {
    "P@10": "p10",
    "recall@10": "recall10",
    "both@10": "both10",
    "distance": "distance10",
    "P@100": "p100",
    "both@100": "both100",
    "mAP@100": "map100",
}
MATCHING = {"recall@10": "recall10", "rows": "rows"}
SUGGESTED = {
    "first": "top1",
    "one of three": "top3",
    "off": "calibration",
    "by luck": "calibration_by_luck",
}
WAYS_TO_SUGGEST = {
    "labels": "suggested by the index",
    "labels_vote": "vote of the exact nearest",
    "labels_classifier": "ridge classifier",
}
# What is left of the exact ten nearest after each step of a search.
STEPS = {
    "lists": "in the lists read",
    "bits": "after bits",
    "shortlist": "on the shortlist",
    "answer": "in the answer",
}


@click.command()
@options.index_name
@click.option(
    "--queries", type=click.IntRange(min=1), default=QUERIES, help="Rows that ask, of those that never train."
)
@options.match
@options.dsn
@options.json
def evaluate(name: str, queries: int, match: dict[str, Any] | None, dsn: str | None, json: bool) -> None:
    """Measure the index by label and by nearness, beside the exact distance.

    P@10 by label, recall of the exact ten, both@10 (of the ten nearest rows that share a label with the
    query, the share returned), mean distance; the same of the first hundred; how many rows are first for
    their own vector; and what a search loses of the exact ten at each of its steps. Of suggested labels, how
    often they are right, beside a vote of the exact nearest rows and a classifier. Reads the whole table
    once.
    The figures are kept; `foh-pg status INDEX` shows how they change.
    With --match: of searches with this condition, the recall of the ten nearest rows that pass.
    """
    with connected(dsn) as connection, progress_bar(name) as progress:
        run = run_evaluate(connection, name, queries=queries, match=match, progress=progress)
    if json:
        print_json(run.as_dict())
    elif match is not None:
        show_matching(run)
    else:
        show(run)
    seconds = sum(run.phases.values())
    say(
        f"index {name!r}: version {run.to_version}, {run.rows} queries on {run.metrics['table']} rows, "
        f"{seconds:.1f} s"
    )


def show(run: Run) -> None:
    metrics = run.metrics
    has_labels = metrics["index"]["p10"] is not None
    columns = FIGURES if has_labels else {name: FIGURES[name] for name in ("recall@10", "distance")}
    print_figures(metrics, {"index": f"index, version {run.to_version}", "exact": "exact distance"}, columns)
    explained = f"{PRECISION_IS}, {BOTH_IS}, {RECALL_IS}" if has_labels else RECALL_IS
    click.echo(f"\n{explained}; ± is the standard error.")
    click.echo(f"{metrics['own_first']:.1%} of the queries are first in their own answer")
    left = (f"{metrics['kept'][step]:.1%} {name}" for step, name in STEPS.items())
    click.echo(f"of the exact ten: {', '.join(left)}")
    if "labels" in metrics:
        click.echo()
        print_figures(metrics, WAYS_TO_SUGGEST, SUGGESTED, "labels")
        click.echo(
            "\nOf labels suggested for queries that no chance was learned from: how often the first is "
            "right, and one of the first three; off is how far the chances are from what came true, by "
            "luck how far true ones would be."
        )


def show_matching(run: Run) -> None:
    ways = {"index": f"index, version {run.to_version}", "nearest": "the same, with labels 0"}
    print_figures(run.metrics, ways, MATCHING)
    click.echo(f"\n{run.metrics['condition']}.")
    click.echo("Recall is of the ten nearest rows that pass; ± is the standard error.")


def print_figures(
    metrics: Mapping[str, Any], ways: Mapping[str, str], columns: Mapping[str, str], title: str = ""
) -> None:
    """A line for each way to answer: its name, and its figures."""
    print_table(
        [
            {title: name, **{column: with_error(metrics[way], key) for column, key in columns.items()}}
            for way, name in ways.items()
        ]
    )


def with_error(figures: Mapping[str, float | None], name: str) -> float | str | None:
    """A mean, and how far that of other queries would typically be from it where that is known.

    >>> with_error({"p10": 0.75, "p10_error": 0.012}, "p10")
    '0.750 ± 0.012'
    """
    mean, error = figures[name], figures.get(f"{name}_error")
    return mean if mean is None or error is None else f"{mean:.3f} ± {error:.3f}"
