"""How good an index is: rows that never trained are queries, and their labels say which answers are right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np
from psycopg.types.json import Jsonb

from foh_pg.arrays.metrics import precisions
from foh_pg.errors import InputError
from foh_pg.postgres.binary_copy import Vector
from foh_pg.tables.index_row import IndexRow, find_index, read_index
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.model import Model
from foh_pg.tables.ranking import SHORTLIST
from foh_pg.tables.run import Progress, Run, recorded
from foh_pg.tables.session import Session, Target, open_session
from foh_pg.tables.source import Rows, read_held_out
from foh_pg.updater.scan import Best, exact_distances, scan
from foh_pg.updater.served_model import load_present

QUERIES = 500
RANKS = (10, 100)
KEYS_AT_ONCE = 10_000

PLACED = "SELECT coalesce(sum(c.length), 0)::bigint FROM {center} c"
WAITING = "SELECT count(*) FROM {stream}"
SEARCH = "SELECT {answer}(%(query)s::real[]::{vector}.vector, %(k)s, %(step)s)"
# Steps of a search, as sql/index/maintain/answer.sql names them.
STEPS = ("lists", "bits", "shortlist")
LABELS = "SELECT key, labels FROM {rows}(keys => %(keys)s::{key_type}[])"
VECTORS = "SELECT key, x FROM {rows}(keys => %(keys)s::{key_type}[])"
STORE = """
UPDATE foh.model SET metrics = metrics || %(metrics)s WHERE index = {id} AND version = %(version)s
"""

Labels = dict[Any, frozenset[str]]


def evaluate(target: Target, index: str, *, queries: int = QUERIES, progress: Progress | None = None) -> Run:
    """Measure an index by label and by nearness, beside the exact distance and random hyperplanes.

    P@10, P@100 and mAP@100 by label; the recall of the exact ten nearest; the mean distance of the first ten.
    Of the index also the share of the exact ten that is left after each step of a search (`kept`).

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
        steps = {step: search(session, run, index, rows, RANKS[0], step) for step in STEPS}
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
    with run.phase("distances"):
        _judge_nearness(session, run, index, rows, answers, steps)
    return index.version


def _judge_nearness(
    session: Session,
    run: Run,
    index: IndexRow,
    rows: Rows,
    answers: dict[str, dict[int, list[KeyArray]]],
    steps: dict[str, list[KeyArray] | None],
) -> None:
    """Recall of the exact ten and mean distance of the first ten, by every way, and what was lost where."""
    k = RANKS[0]
    first = {name: [_plain(index, keys) for keys in way[k]] for name, way in answers.items()}
    vectors = read_vectors(session, index, [key for way in first.values() for keys in way for key in keys])
    for name, way in first.items():
        run.metrics[name][f"recall{k}"] = recall(way, first["exact"])
        run.metrics[name][f"distance{k}"] = mean_distance(index, rows, way, vectors)
    # Where an index is searched exactly, nothing is lost on the way.
    kept = {
        step: 1.0 if found is None else recall([_plain(index, keys) for keys in found], first["exact"])
        for step, found in steps.items()
    }
    run.metrics["kept"] = {**kept, "answer": run.metrics["index"][f"recall{k}"]}


def recall(found: Sequence[Sequence[Any]], exact: Sequence[Sequence[Any]]) -> float:
    """The mean share of the exact nearest that were found."""
    shares = [
        len(set(keys) & set(wanted)) / len(wanted)
        for keys, wanted in zip(found, exact, strict=True)
        if len(wanted)
    ]
    return round(float(np.mean(shares)), 5) if shares else 1.0


def mean_distance(
    index: IndexRow, rows: Rows, found: Sequence[Sequence[Any]], vectors: dict[Any, Any]
) -> float:
    """The mean distance of what was found, in the measure of the index."""
    distances = []
    for query, keys in zip(rows.vectors, found, strict=True):
        near = [vectors[key] for key in keys if key in vectors]
        if near:
            distances.append(float(exact_distances(index, query[None], np.stack(near)).mean()))
    return round(float(np.mean(distances)), 5) if distances else 0.0


def read_vectors(session: Session, index: IndexRow, keys: Iterable[Any]) -> dict[Any, Any]:
    """Embeddings of rows by their key, as psycopg has it."""
    wanted = np.array(list(dict.fromkeys(keys)), dtype=object)
    read: dict[Any, Any] = {}
    for start in range(0, len(wanted), KEYS_AT_ONCE):
        part = {"keys": wanted[start : start + KEYS_AT_ONCE].tolist()}
        for found, vectors in session.copy_out(VECTORS, [index.keys.column, Vector(index.dimensions)], part):
            read.update(zip(index.keys.parameters(index.keys.read(found)), vectors, strict=True))
    return read


def _plain(index: IndexRow, keys: KeyArray) -> list[Any]:
    return [parameter_of(index, key) for key in keys.tolist()]


def _shortlist(index: IndexRow, model: Model) -> int:
    """Rows that a search ranks with the exact distance: by the option, else as chosen, else as SQL has it."""
    given = index.options["shortlist"]
    return (model.ranking.shortlist or SHORTLIST) if given is None else int(given)


def choose_queries(session: Session, index: IndexRow, rows: int, queries: int) -> Rows:
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


@overload
def search(session: Session, run: Run, index: IndexRow, rows: Rows, k: int) -> list[KeyArray]: ...


@overload
def search(
    session: Session, run: Run, index: IndexRow, rows: Rows, k: int, step: str
) -> list[KeyArray] | None: ...


def search(
    session: Session, run: Run, index: IndexRow, rows: Rows, k: int, step: str = "answer"
) -> list[KeyArray] | None:
    """What the index answers, or has after a step, the query left out; None where it has no such step."""
    found = []
    own = index.keys.parameters(rows.keys)
    for i, vector in enumerate(rows.vectors):
        asked = {"query": vector.astype(np.float64).tolist(), "k": k + 1, "step": step}
        (keys,) = session.one(SEARCH, asked)
        if keys is None and step != "answer":
            return None
        found.append(_without(own[i], keys or [], k if step == "answer" else None))
        run.step(i + 1, len(rows))
    return found


def _without(own: Any, keys: Iterable[Any], k: int | None) -> KeyArray:
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


def read_labels(session: Session, index: IndexRow, answers: Sequence[KeyArray]) -> Labels:
    """Labels of all rows that were found, under their key in both forms."""
    wanted: dict[Any, Any] = {}
    for keys in answers:
        wanted.update((parameter_of(index, key), key) for key in keys.tolist())
    listed = list(wanted)
    labels: Labels = {}
    for start in range(0, len(listed), KEYS_AT_ONCE):
        part = {"keys": listed[start : start + KEYS_AT_ONCE]}
        for keys, sets in session.copy_out(LABELS, [index.keys.column, index.labels_column], part):
            read = index.keys.read(keys)
            for key, parameter, names in zip(
                read.tolist(), index.keys.parameters(read), sets.each(), strict=True
            ):
                labels[key] = labels[parameter] = frozenset(names.tolist())
    return labels


def parameter_of(index: IndexRow, key: Any) -> Any:
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
        shares, averages = [], []
        for wanted, keys in zip(own, found, strict=True):
            hits = np.array([bool(wanted & labels.get(key, none)) for key in keys.tolist()], dtype=bool)
            shares.append(hits.sum() / places)
            averages.append(float(precisions(hits).mean()) if hits.any() else 0.0)
        scores[f"p{k}"] = round(float(np.mean(shares)), 5)
        if k == RANKS[-1]:
            scores[f"map{k}"] = round(float(np.mean(averages)), 5)
    return scores
