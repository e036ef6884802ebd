"""Backend CPU and wall time of statements, interleaved, and how good their answers are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql

from foh_pg.arrays.metrics import judge, mean_of, precisions, standard_error
from lab.search import table
from lab.search.contenders import Contender, Form
from lab.search.table import Rows, Truth

# Queries that one form answers before the next has its turn: few, so that all see the same machine.
BLOCK = 10

# All queries are asked once before any is measured: then the server has made its plans, and has in memory
# what they lead to. Where a query takes seconds, neither shows.
WARM_UP_CAPPED = 1
# Queries at the beginning of a turn that do not count: the other forms have filled the caches of the CPU with
# data of theirs, which does not happen on a server that answers one kind of search.
SETTLE = 3

Record = dict[str, Any]


class Backend:
    """A connection whose server process can be asked for the CPU it has used."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.cursor = connection.cursor(binary=True)
        self._usage = Path(f"/proc/{connection.info.backend_pid}/schedstat")
        self.measures_cpu = self._usage.exists()

    def cpu(self) -> float:
        """Seconds on a CPU so far; wall time where the system does not tell."""
        if not self.measures_cpu:
            return time.perf_counter()
        return int(self._usage.read_text().split()[0]) / 1e9

    def ask(self, form: Form, query: npt.NDArray[np.float32] | str) -> list[int]:
        found = self.cursor.execute(form.statement, form.parameters(query), prepare=True).fetchall()
        return [row[0] for row in found]

    def prepare(self, form: Form) -> None:
        for name, value in form.settings.items():
            self.connection.execute("SELECT set_config(%s, %s, false)", (name, str(value)))


def interleave(
    backend: Backend,
    forms: Sequence[tuple[str, Form]],
    queries: npt.NDArray[np.float32] | Sequence[str],
    judge: Callable[[int, list[int], int], dict[str, float]],
) -> Iterator[Record]:
    """Ask every query of every form, block by block, and give one record per form.

    Each form is at another block than the one before it, so that none finds in a cache what another has just
    read; and each turn has another order, so that none always comes after the same one.
    """
    starts = range(0, len(queries), BLOCK)
    times: list[dict[int, tuple[float, float]]] = [{} for _ in forms]
    quality: list[dict[int, list[dict[str, float]]]] = [{} for _ in forms]
    for _, form in forms:
        backend.prepare(form)
        for query in queries if form.most is None else queries[:WARM_UP_CAPPED]:
            backend.ask(form, query)
    rng = np.random.default_rng(0)
    for turn in range(len(starts)):
        for n in rng.permutation(len(forms)).tolist():
            form = forms[n][1]
            start = starts[(turn + n * len(starts) // len(forms)) % len(starts)]
            block = queries[start : min(start + BLOCK, form.most or len(queries))]
            if not len(block):
                continue
            backend.prepare(form)
            for before in range(SETTLE if form.most is None else 0):
                backend.ask(form, queries[start - 1 - before])
            cpu, wall = backend.cpu(), time.perf_counter()
            answers = [backend.ask(form, query) for query in block]
            times[n][start] = (backend.cpu() - cpu) / len(block), (time.perf_counter() - wall) / len(block)
            quality[n][start] = [judge(start + i, answer, form.k) for i, answer in enumerate(answers)]
    for n, (title, form) in enumerate(forms):
        cpu_ms, wall_ms = 1000 * np.array([times[n][start] for start in sorted(times[n])]).T
        judged = [one for start in sorted(quality[n]) for one in quality[n][start]]
        columns = {name: [one[name] for one in judged] for name in judged[0]}
        errors = {f"{name}_error": _known(standard_error(columns[name])) for name in columns}
        yield {
            "contender": title,
            "form": form.name,
            "k": form.k,
            "curve": form.curve,
            "asked": len(judged),
            "cpu_ms": float(np.mean(cpu_ms)),
            "cpu_ms_blocks": cpu_ms.round(4).tolist(),
            "wall_ms": float(np.mean(wall_ms)),
            **{name: _known(mean_of(values)) for name, values in columns.items()},
            **errors,
        }


def _known(value: float) -> float | None:
    """JSON has no word for what is not a number."""
    return None if np.isnan(value) else value


def judge_by(rows: Rows, truth: Truth) -> Callable[[int, list[int], int], dict[str, float]]:
    """Give a judge of answers: `foh_pg.arrays.metrics.judge`, mAP, mean cosine distance, share of the k."""

    def judge_answer(query: int, answer: list[int], k: int) -> dict[str, float]:
        keys = np.array(answer, dtype=np.int64)
        hits = rows.relevant(query, keys) if len(keys) else np.zeros(0, dtype=bool)
        nearest, alike = truth.nearest[query][:k].tolist(), truth.alike[query][:k].tolist()
        return {
            **judge(answer, int(hits.sum()), k, nearest, alike)._asdict(),
            "average_precision": float(precisions(hits).mean()) if hits.any() else 0.0,
            "distance": rows.distance(query, keys),
            "returned": len(keys) / k,
        }

    return judge_answer


def built(dsn: str, connection: psycopg.Connection[Any], contender: Contender, rows: Rows) -> Record:
    """Build one contender: seconds and bytes. Its table is there before."""
    if connection.execute("SELECT to_regclass(%s)", (contender.table,)).fetchone() == (None,):
        table.copy(connection, contender.table)
    start = time.perf_counter()
    contender.build(dsn, connection, rows)
    seconds = time.perf_counter() - start
    record = {
        "contender": contender.name,
        "build_seconds": seconds,
        "bytes": _number(connection, contender.size),
    }
    if contender.reached is not None:
        record["reached"] = _number(connection, contender.reached) / len(rows.base)
    return record


def _number(connection: psycopg.Connection[Any], query: sql.Composed) -> int:
    found = connection.execute(query).fetchone()
    assert found is not None
    return int(found[0])
