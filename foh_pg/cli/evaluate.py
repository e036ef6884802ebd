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
        print_table(matching(run))
        click.echo(f"\n{run.metrics['condition']}.")
        click.echo("Recall is of the ten nearest rows that pass; ± is the standard error.")
    else:
        shown = lines(run)
        # Without labels some columns are empty.
        print_table(shown, [name for name in shown[0] if any(row[name] not in ("", None) for row in shown)])
        by_label = "" if run.metrics["index"]["p10"] is None else f"{PRECISION_IS}, {BOTH_IS}, "
        click.echo(f"\n{by_label}{RECALL_IS}; ± is the standard error.")
        click.echo(f"{run.metrics['own_first']:.1%} of the queries are first in their own answer")
        click.echo(kept(run.metrics["kept"]))
        if "labels" in run.metrics:
            click.echo()
            print_table(suggested(run.metrics))
            click.echo(
                "\nOf labels suggested for queries that no chance was learned from: how often the first is "
                "right, and one of the first three; off is how far the chances are from what came true, by "
                "luck how far true ones would be."
            )
    seconds = sum(run.phases.values())
    say(
        f"index {name!r}: version {run.to_version}, {run.rows} queries on {run.metrics['table']} rows, "
        f"{seconds:.1f} s"
    )


def lines(run: Run) -> list[dict[str, Any]]:
    names = {
        "index": f"index, version {run.to_version}",
        "exact": "exact distance",
    }
    return [
        {
            "": title,
            **{column: with_error(run.metrics[way], key) for key, column in FIRST.items()},
            **{column: run.metrics[way][key] for key, column in COLUMNS.items()},
        }
        for way, title in names.items()
    ]


def matching(run: Run) -> list[dict[str, Any]]:
    names = {"index": f"index, version {run.to_version}", "nearest": "the same, with labels 0"}
    return [
        {"": title, "recall@10": with_error(run.metrics[way], "recall10"), "rows": run.metrics[way]["rows"]}
        for way, title in names.items()
    ]


def with_error(figures: Mapping[str, float | None], name: str) -> str:
    """A mean and how far that of other queries would typically be from it.

    >>> with_error({"p10": 0.75, "p10_error": 0.012}, "p10")
    '0.750 ± 0.012'
    """
    mean, error = figures[name], figures[f"{name}_error"]
    return " ± ".join(f"{value:.3f}" for value in (mean, error) if value is not None)


def kept(shares: Mapping[str, float]) -> str:
    """What is left of the exact ten nearest after each step of a search.

    >>> kept({"lists": 0.9, "bits": 0.85, "shortlist": 0.7, "answer": 0.5})
    'of the exact ten: 90.0% in the lists read, 85.0% after bits, 70.0% on the shortlist, 50.0% in the answer'
    """
    return "of the exact ten: " + ", ".join(f"{shares[step]:.1%} {name}" for step, name in STEPS.items())


def suggested(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = {
        "labels": "suggested by the index",
        "labels_vote": "vote of the exact nearest",
        "labels_classifier": "ridge classifier",
    }
    return [
        {
            "labels": title,
            "first": with_error(metrics[way], "top1"),
            "one of three": with_error(metrics[way], "top3"),
            "off": metrics[way]["calibration"],
            "by luck": metrics[way]["calibration_by_luck"],
        }
        for way, title in names.items()
    ]


# Figures of the first ten with their standard errors, then the others.
FIRST = {"p10": "P@10", "recall10": "recall@10", "both10": "both@10"}
COLUMNS = {
    "distance10": "distance",
    "p100": "P@100",
    "both100": "both@100",
    "map100": "mAP@100",
}
STEPS = {
    "lists": "in the lists read",
    "bits": "after bits",
    "shortlist": "on the shortlist",
    "answer": "in the answer",
}
