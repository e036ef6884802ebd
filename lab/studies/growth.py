"""The same run at two sizes of the table: what a run costs must not grow with what is there already.

Run as ``python -m lab study growth --data FILE``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median

import numpy as np
import psycopg
from psycopg.types.json import Jsonb

from foh_pg import updater
from foh_pg.errors import InputError
from lab.dataset import Dataset
from lab.search import arrivals, table
from lab.search.arrivals import Arrivals
from lab.stream.benchmark import Say, timed
from lab.stream.stream_tables import SECONDS, longest
from lab.studies.updating import finish, parser
from lab.summary import Record, Report, Table


def run(data: Dataset, settings: argparse.Namespace, say: Say) -> Iterator[Record]:
    """Make two tables, let them take turns with runs, then encode each of them in full."""
    needed = max(settings.sizes) + settings.runs * settings.batch
    if needed > len(data.X):
        raise InputError(
            f"{settings.runs} runs after {max(settings.sizes)} rows need {needed} rows, {data.name} has "
            f"{len(data.X)}"
        )
    rows = Arrivals.of(data, needed, 1, "next", 0).rows
    large = settings.sizes[1]
    with table.database() as dsn:
        copies = {size: arrivals.clone(dsn, f"size_{size}") for size in settings.sizes}
        for size, copy in copies.items():
            built = min(settings.built or size, size)
            yield from _build(copy, rows, built, settings, say)
            yield from _grow(copy, rows, built, size, settings, say)
            _learn_from(copy, settings.batch)
        runs: dict[int, list[Record]] = {size: [] for size in settings.sizes}
        for number in range(settings.runs):
            for size, copy in copies.items():
                say(f"run {number + 1} of {settings.runs} at {size} rows")
                runs[size].append(_run(copy, rows, size + number * settings.batch, settings.batch))
                yield {"experiment": "growth run", "size": size, "number": number + 1, **runs[size][-1]}
        yield from _summarise(runs, "run", settings.sizes)
        full = {}
        for size, copy in copies.items():
            say(f"--full at {size} rows")
            full[size] = [_full(copy, size)]
        yield from _summarise(full, "--full", settings.sizes)
        yield _ratio("--full against a run, large", full[large], runs[large])


def _build(dsn: str, rows: table.Rows, size: int, settings: argparse.Namespace, say: Say) -> Iterator[Record]:
    with table.open_connection(dsn) as connection:
        say(f"loading and building {size} rows")
        table.create_table(connection, rows.dimensions)
        table.insert(connection, rows, np.arange(size))
        connection.execute("VACUUM ANALYZE items")
        options = {
            "forget": settings.forget,
            "learn_rows": settings.settle if settings.built else settings.batch,
        }
        table.create_index(connection, "grown", settings.bits, options)
        record = timed(connection, lambda c: updater.build(c, "grown"), size)
        yield {"experiment": "growth", "what": "build", "size": size, **record}


def _grow(
    dsn: str, rows: table.Rows, start: int, stop: int, settings: argparse.Namespace, say: Say
) -> Iterator[Record]:
    for at in range(start, stop, settings.settle):
        say(f"growing: {at} of {stop} rows")
        count = min(settings.settle, stop - at)
        record = _run(dsn, rows, at, count)
        yield {"experiment": "growing", "rows": at + count, **record}


def _learn_from(dsn: str, rows: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT foh.alter_index('grown', %s)", [Jsonb({"learn_rows": rows})])


def _run(dsn: str, rows: table.Rows, start: int, batch: int) -> Record:
    with table.open_connection(dsn) as connection:
        table.insert(connection, rows, np.arange(start, start + batch))
        work = partial(updater.update, index="grown", batch_size=batch)
        return timed(connection, work, start + batch)


def _full(dsn: str, size: int) -> Record:
    with table.open_connection(dsn) as connection:
        return timed(connection, lambda c: updater.update(c, "grown", full=True), size)


def _summarise(records: dict[int, list[Record]], what: str, sizes: tuple[int, int]) -> Iterator[Record]:
    for size, found in records.items():
        yield {"experiment": "growth", "what": what, "size": size, **_medians(found)}
    yield _ratio(f"{what}, large against small", records[sizes[1]], records[sizes[0]])


def _medians(records: Sequence[Record]) -> Record:
    names = ("wall", "cpu", "own_cpu", "server_cpu", "rows_encoded", "lists")
    phases = {phase for record in records for phase in record["phases"]}
    return {
        **{name: median(record[name] for record in records) for name in names},
        "phases": {phase: median(r["phases"].get(phase, 0.0) for r in records) for phase in sorted(phases)},
    }


def _quotient(above: float, below: float) -> float:
    return round(above / below, 3) if below else float("nan")


def _ratio(what: str, above: Sequence[Record], below: Sequence[Record]) -> Record:
    top, bottom = _medians(above), _medians(below)
    shared = [phase for phase in top["phases"] if bottom["phases"].get(phase)]
    return {
        "experiment": "growth ratio",
        "what": what,
        "wall": _quotient(top["wall"], bottom["wall"]),
        "cpu": _quotient(top["cpu"], bottom["cpu"]),
        "phases": {phase: _quotient(top["phases"][phase], bottom["phases"][phase]) for phase in shared},
    }


def table_of(report: Report) -> Table:
    """The same run at two sizes of the table."""
    records = report.select("growth")
    rows = [
        [
            f"{r['what']} at {r['size']}",
            f"{r['wall']:.2f}",
            f"{r['cpu']:.2f}",
            f"{r['own_cpu']:.2f}",
            f"{r['server_cpu']:.2f}",
            f"{r['rows_encoded']:.0f}",
            longest(r["phases"]),
        ]
        for r in records
    ]
    for r in report.select("growth ratio"):
        rows.append([r["what"], f"{r['wall']:.2f}", f"{r['cpu']:.2f}", "", "", "", ratios(r["phases"])])
    note = f"Medians over the runs, which took turns. {SECONDS}"
    columns = ["", "wall s", "CPU s", "updater", "server", "rows encoded", "phases"]
    return Table("A run at two sizes of the table", note, columns, rows, words=frozenset({"phases"}))


def ratios(phases: dict[str, float]) -> str:
    return ", ".join(f"{name} {ratio:.2f}" for name, ratio in sorted(phases.items()))


def read_sizes(text: str) -> tuple[int, int]:
    try:
        small, large = sorted(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--sizes takes two numbers like 60000,600000, not {text!r}") from None
    return small, large


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    takes = parser(__doc__)
    takes.add_argument("--sizes", default="60000,600000", help="rows of the two tables")
    takes.add_argument("--batch", type=int, default=2000, help="rows per run")
    takes.add_argument("--runs", type=int, default=8, help="runs at each size")
    takes.add_argument("--built", type=int, help="rows that are built; all unless given")
    takes.add_argument("--settle", type=int, default=10_000, help="rows per run while growing")
    takes.add_argument("--forget", type=float, default=1.0, help="the option of the index")
    given = takes.parse_args(arguments)
    given.sizes = read_sizes(given.sizes)
    finish("growth", given, run, table_of)


if __name__ == "__main__":
    main()
