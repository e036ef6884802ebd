"""How good an index is: rows that never trained ask, and their labels say what should have come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from psycopg.types.json import Jsonb

from foh_pg.database.copy import TEXT, Array
from foh_pg.errors import InputError
from foh_pg.updater.description import Index, find_index, read_index
from foh_pg.updater.keys import KeyArray
from foh_pg.updater.model import Model
from foh_pg.updater.present import load_present
from foh_pg.updater.run import Progress, Run, recorded
from foh_pg.updater.scan import Best, scan
from foh_pg.updater.session import Session, Target, open_session
from foh_pg.updater.source import Rows, read_held_out

QUERIES = 500
RANKS = (10, 100)
KEYS_AT_ONCE = 10_000

# What a search takes where neither an option nor the model says otherwise, as in sql/index/near.sql.
SHORTLIST = 20

PLACED = "SELECT coalesce(sum(c.length), 0)::bigint FROM {center} c"
WAITING = "SELECT count(*) FROM {stream}"
SEARCH = "SELECT {answer}(%(query)s::real[]::{vector}.vector, %(k)s)"
LABELS = "SELECT key, labels FROM {rows}(keys => %(keys)s::{key_type}[])"
STORE = """
UPDATE foh.model SET metrics = metrics || %(metrics)s WHERE index = {id} AND version = %(version)s
"""

Labels = dict[Any, frozenset[str]]


def evaluate(target: Target, index: str, *, queries: int = QUERIES, progress: Progress | None = None) -> Run:
    """Measure P@10, P@100 and mAP@100 by label of an index, of the exact distance and of random hyperplanes.

    Queries are rows that never train (option `held_out`), without their labels; each is left out of its own
    answer. The index answers through its SQL search with its default options; the other two rank the whole
    table, the hyperplanes with as many bits and with the same exact ranking of the shortlist. Everything is
    read in one snapshot, and the table once from end to end. The figures go into foh.run, and to the version
    of the model that was measured.

    Parameters
    ----------
    queries : int
        How many rows ask at the most.
    """
    if queries < 1:
        raise InputError(f"queries is {queries}, it must be at least 1")
    with open_session(target) as session:
        found = find_index(session, index)
        if found.labels is None:
            raise InputError(f"index {index!r} has no labels: there is nothing to tell good answers by")
        run = Run(found.name, "evaluate", found.version, found.version, progress=progress)
        run.begin(session)
        with recorded(session, run):
            with session.snapshot():
                version = _measure(session, run, queries)
            run.from_version = run.to_version = version
            with session.write():
                session.execute(STORE, {"version": version, "metrics": Jsonb({"evaluated": run.metrics})})
        return run


def _measure(session: Session, run: Run, queries: int) -> int:
    index = read_index(session)
    with run.phase("read"):
        (placed,), (waiting,) = session.one(PLACED), session.one(WAITING)
        rows = choose_queries(session, index, placed + waiting, queries)
        model = load_present(session, index).model
    run.rows = len(rows)
    with run.phase("search", len(rows)):
        found = {k: search(session, run, index, rows, k) for k in RANKS}
    with run.phase("exact", placed):
        plain = Model.random(model.mean, index.bits, int(index.options["seed"]), model.scale)
        shortlist = _shortlist(index, model)
        keep = max(*RANKS, shortlist) + 1
        exact, coded, total = scan(session, run, index, rows.vectors, plain, keep, placed)
    with run.phase("labels"):
        answers = _answers(rows, found, exact, coded, shortlist, index.distance_weight(model.scale))
        labels = read_labels(
            session, index, [part for way in answers.values() for k in way for part in way[k]]
        )
    own = [frozenset(row.tolist()) for row in rows.labels.each()]
    run.metrics.update({"queries": len(rows), "table": total, "trained": model.trained})
    run.metrics.update({name: judge(own, way, labels, total) for name, way in answers.items()})
    return index.version


def _shortlist(index: Index, model: Model) -> int:
    """Rows that a search ranks with the exact distance: by the option, else as chosen, else as SQL has it."""
    given = index.options["shortlist"]
    if given is None:
        given = model.ranking.shortlist
    return SHORTLIST if given is None else int(given)


def choose_queries(session: Session, index: Index, rows: int, queries: int) -> Rows:
    """Held-out rows with labels, always the same ones as long as they are there."""
    share = float(index.options["held_out"])
    # Twice as many as wanted: some have no label, and the draw varies.
    part = min(1.0, 2.0 * (queries + 20) / max(1.0, rows * share))
    held = read_held_out(session, index, share, part)
    labelled = held.take(held.labels.lengths > 0)
    if not len(labelled):
        raise InputError(
            f"index {index.name!r} has no row to ask: among the {share:.1%} of rows that never train (option "
            "held_out) none has a label; raise the option, or wait for more rows"
        )
    order = np.argsort(index.keys.shares(labelled.keys), kind="stable")[:queries]
    return labelled.take(np.sort(order))


def search(session: Session, run: Run, index: Index, rows: Rows, k: int) -> list[KeyArray]:
    """What the index answers, the query itself left out."""
    found = []
    own = index.keys.parameters(rows.keys)
    for i, vector in enumerate(rows.vectors):
        (keys,) = session.one(SEARCH, {"query": vector.astype(np.float64).tolist(), "k": k + 1})
        found.append(_without(own[i], keys or [], k))
        run.step(i + 1, len(rows))
    return found


def _without(own: Any, keys: Iterable[Any], k: int) -> KeyArray:
    others = [key for key in keys if key != own][:k]
    made = np.empty(len(others), dtype=object)
    made[:] = others
    return made


def _answers(
    rows: Rows, found: dict[int, list[KeyArray]], exact: Best, coded: Best, shortlist: int, weight: float
) -> dict[str, dict[int, list[KeyArray]]]:
    """The keys that each way to search gives, by rank; `index` as psycopg has them, the others as numpy."""
    own = rows.keys.tolist()
    answers: dict[str, dict[int, list[KeyArray]]] = {"index": found, "exact": {}, "random": {}}
    for k in RANKS:
        nearest = exact.first(k + 1)
        ranked = coded.ranked(k + 1, shortlist, weight)
        answers["exact"][k] = [_without(own[i], keys.tolist(), k) for i, keys in enumerate(nearest)]
        answers["random"][k] = [_without(own[i], keys.tolist(), k) for i, keys in enumerate(ranked)]
    return answers


def read_labels(session: Session, index: Index, answers: Sequence[KeyArray]) -> Labels:
    """Labels of all rows that were found, under their key in both forms."""
    wanted: dict[Any, Any] = {}
    for keys in answers:
        wanted.update((parameter_of(index, key), key) for key in keys.tolist())
    listed = list(wanted)
    labels: Labels = {}
    for start in range(0, len(listed), KEYS_AT_ONCE):
        part = {"keys": listed[start : start + KEYS_AT_ONCE]}
        for keys, sets in session.copy_out(LABELS, [index.keys.column, Array(TEXT)], part):
            read = index.keys.read(keys)
            for key, parameter, names in zip(
                read.tolist(), index.keys.parameters(read), sets.each(), strict=True
            ):
                labels[key] = labels[parameter] = frozenset(names.tolist())
    return labels


def parameter_of(index: Index, key: Any) -> Any:
    """A key as psycopg takes it, given in either form."""
    if isinstance(key, bytes):
        return index.keys.parameters(np.array([key], dtype=index.keys.dtype))[0]
    return key


def judge(
    own: Sequence[frozenset[str]], way: dict[int, list[KeyArray]], labels: Labels, total: int
) -> dict[str, float]:
    """Mean precision at each rank, and mAP at the last; a query that finds nothing relevant counts as 0."""
    none: frozenset[str] = frozenset()
    scores: dict[str, float] = {}
    for k, found in way.items():
        places = max(1, min(k, total - 1))
        precisions, averages = [], []
        for wanted, keys in zip(own, found, strict=True):
            hits = np.array([bool(wanted & labels.get(key, none)) for key in keys.tolist()], dtype=bool)
            precisions.append(hits.sum() / places)
            ranks = np.flatnonzero(hits) + 1
            averages.append(float((np.arange(1, len(ranks) + 1) / ranks).mean()) if len(ranks) else 0.0)
        scores[f"p{k}"] = round(float(np.mean(precisions)), 5)
        if k == RANKS[-1]:
            scores[f"map{k}"] = round(float(np.mean(averages)), 5)
    return scores
