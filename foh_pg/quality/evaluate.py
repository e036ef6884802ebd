"""How good an index is: rows that never trained are queries, and their labels say which answers are right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from psycopg.types.json import Jsonb

from foh_pg.arrays import metrics
from foh_pg.arrays.metrics import mean_of, precisions, share_found, standard_error
from foh_pg.errors import InputError
from foh_pg.postgres.binary_copy import Array, Column, Nullable, Ragged, Vector
from foh_pg.quality import suggesting
from foh_pg.runs.run import Progress, Run, recorded
from foh_pg.runs.session import Session, Target, open_session
from foh_pg.tables.index_row import IndexRow, find_index, read_index
from foh_pg.tables.source import BY_KEY, KEYS_AT_ONCE, Rows, read_held_out
from foh_pg.updater.chances import judging
from foh_pg.updater.scan import Scanned, exact_distances, scan

QUERIES = 500
RANKS = (10, 100)

PLACED = "SELECT coalesce(sum(c.length), 0)::bigint FROM {center} c"
WAITING = "SELECT count(*) FROM {stream}"
TRAINED = "SELECT m.trained FROM foh.model m WHERE m.index = {id} ORDER BY m.version DESC LIMIT 1"
SEARCH = "SELECT {answer}(%(query)s::real[]::{vector}.vector, %(k)s, %(step)s, %(match)s::jsonb)"
CONDITION = "SELECT {condition}(%(query)s::real[]::{vector}.vector, %(k)s, %(match)s)"
# As if the row that asks had been deleted: its labels would tell of what kind the query is, which has none.
LEAVE_OUT = "INSERT INTO {stream} (key, op, version) VALUES (%(own)s::{key_type}, 'd', %(version)s)"
# Steps of a search, as sql/index/maintain.sql names them.
STEPS = ("lists", "bits", "shortlist")
STORE = """
UPDATE foh.model SET metrics = metrics || %(metrics)s WHERE index = {id} AND version = %(version)s
"""

# What is measured: the index and the exact distance. Under "alike" are the nearest rows that share a label
# with the query.
WAYS = ("index", "exact")
SHORT = {"precision": "p", "recall": "recall", "both": "both"}

Labels = dict[Any, frozenset[str]]
# Keys of the rows found, by query; and these by way and rank.
Found = list[list[Any]]
Answers = dict[str, dict[int, Found]]


def evaluate(
    target: Target,
    index: str,
    *,
    queries: int = QUERIES,
    match: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Measure an index by label and by nearness, beside the exact distance.

    Queries are rows that never train (option `held_out`), without their labels; each is left out of the index
    meanwhile. The index answers through its SQL search with its default options; the exact distance ranks the
    whole table, which is read once, in one snapshot. The figures go into foh.run, and to the version of the
    model.

    Figures of the first ten and hundred: `foh_pg.arrays.metrics` says what they are. `kept` is the share of
    the exact ten that is left after each step of a search; `own_first` that of the queries which are first in
    their own answer; `labels` judges suggested labels. Without labels, figures about them are None.

    With a condition `match`, searches with it are measured instead: the share of the ten nearest rows that
    pass which the index finds, with labels and without. These figures are returned, and not kept.
    """
    if queries < 1:
        raise InputError(f"queries is {queries}, it must be at least 1")
    with open_session(target) as session:
        found = find_index(session, index)
        run = Run(found.name, "evaluate", found.version, found.version, progress=progress)
        if match is not None:
            # The record of runs holds the figures of the index, which these are not.
            with session.snapshot("READ WRITE"):
                run.to_version = _measure_matching(session, run, queries, dict(match))
            return run
        run.begin(session)
        with recorded(session, run):
            with session.snapshot("READ WRITE"):
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
        (trained,) = session.one(TRAINED)
    run.rows = len(rows)
    with run.phase("search", len(rows)):
        asked = {k: search(session, run, index, rows, k) or [] for k in RANKS}
        steps = {step: search(session, run, index, rows, RANKS[0], step) for step in STEPS}
    with run.phase("exact", placed):
        scanned = scan(session, run, index, rows, max(RANKS) + 1, placed)
    answers = _answers(index, rows, asked, scanned)
    with run.phase("labels"):
        every = [key for way in answers.values() for found in way.values() for keys in found for key in keys]
        labels = {} if index.labels is None else read_labels(session, index, every)
    run.metrics.update({"queries": len(rows), "table": scanned.total, "trained": trained})
    own = [frozenset(row.tolist()) for row in rows.labels.each()]
    for name in WAYS:
        judged = judge(own, answers[name], labels, answers["exact"], answers["alike"])
        # Without labels only nearness can be told.
        by_label = () if index.labels is not None else ("p", "both", "map")
        run.metrics[name] = {key: None if key.startswith(by_label) else judged[key] for key in judged}
    if index.labels is not None:
        _judge_suggestions(session, run, index, rows, answers["exact"][RANKS[-1]], labels)
    with run.phase("distances"):
        _judge_nearness(session, run, index, rows, answers, steps)
        with_own = search(session, run, index, rows, 1, without_own=False) or []
        run.metrics["own_first"] = own_first(session, index, rows, with_own)
    return index.version


def _judge_suggestions(
    session: Session, run: Run, index: IndexRow, queries: Rows, nearest: Found, labels: Labels
) -> None:
    """Labels suggested for the queries that chances were not learned from."""
    unknown = judging(queries.keys)
    if not unknown.any():
        return
    rows = queries.take(unknown)
    own = [frozenset(row.tolist()) for row in rows.labels.each()]
    with run.phase("suggest", len(rows)):
        ways = {
            "labels": suggesting.ask(session, run, index, rows),
            "labels_vote": suggesting.vote([nearest[i] for i in np.flatnonzero(unknown)], labels),
            "labels_classifier": suggesting.classify(session, index, rows, run.metrics["table"]),
        }
    run.metrics.update({name: suggesting.judge(own, way) for name, way in ways.items()})


def _measure_matching(session: Session, run: Run, queries: int, match: dict[str, Any]) -> int:
    """Searches with a condition, beside the exact nearest rows that pass it."""
    index = read_index(session)
    with run.phase("read"):
        (placed,), (waiting,) = session.one(PLACED), session.one(WAITING)
        rows = choose_queries(session, index, placed + waiting, queries)
    run.rows, k, own = len(rows), RANKS[0], index.keys.parameters(rows.keys)
    first = rows.vectors[0].astype(np.float64).tolist()
    (condition,) = session.one(CONDITION, {"query": first, "k": k, "match": Jsonb(match)})
    found: dict[str, Found] = {}
    for step in ("answer", "nearest", "exact"):
        with run.phase(step, len(rows)):
            answers = search(session, run, index, rows, k, step, match) or []
        found[step] = [[key for key in keys if key != own[i]][:k] for i, keys in enumerate(answers)]
    run.metrics.update(
        {"queries": len(rows), "table": placed + waiting, "match": match, "condition": condition}
    )
    for step, name in (("answer", "index"), ("nearest", "nearest")):
        shares = [share_found(set(a), b) for a, b in zip(found[step], found["exact"], strict=True)]
        run.metrics[name] = {
            "recall10": _known(mean_of(shares)),
            "recall10_error": _known(standard_error(shares)),
            "rows": round(float(np.mean([len(keys) for keys in found[step]])), 5),
        }
    return index.version


def _judge_nearness(
    session: Session, run: Run, index: IndexRow, rows: Rows, answers: Answers, steps: dict[str, Found | None]
) -> None:
    """Mean distance of the first ten, by every way, and how much of the exact ten was lost where."""
    k = RANKS[0]
    wanted = [key for name in WAYS for keys in answers[name][k] for key in keys]
    vectors = read_vectors(session, index, wanted)
    for name in WAYS:
        run.metrics[name][f"distance{k}"] = mean_distance(index, rows, answers[name][k], vectors)
    # Where an index is searched exactly, nothing is lost on the way.
    kept = {
        step: 1.0 if found is None else recall(found, answers["exact"][k]) for step, found in steps.items()
    }
    run.metrics["kept"] = {**kept, "answer": run.metrics["index"][f"recall{k}"]}


def own_first(session: Session, index: IndexRow, rows: Rows, asked: Found) -> float:
    """The share of the queries that are first in their own answer, or behind a row with an equal vector."""
    own = index.keys.parameters(rows.keys)
    others = read_vectors(session, index, [keys[0] for i, keys in enumerate(asked) if keys[:1] != [own[i]]])
    first = [
        bool(keys)
        and (keys[0] == own[i] or (keys[0] in others and bool((others[keys[0]] == rows.vectors[i]).all())))
        for i, keys in enumerate(asked)
    ]
    return round(float(np.mean(first)), 5)


def recall(found: Found, exact: Found) -> float:
    """The mean share of the exact nearest that were found; they may be behind the query itself."""
    shares = [share_found(set(keys), wanted) for keys, wanted in zip(found, exact, strict=True)]
    mean = mean_of(shares)
    return 1.0 if np.isnan(mean) else round(mean, 5)


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
    return dict(_read(session, index, "x", Vector(index.dimensions), keys))


def read_labels(session: Session, index: IndexRow, keys: Iterable[Any]) -> Labels:
    """Labels of rows by their key."""
    found = _read(session, index, "labels", index.labels_column, keys)
    return {key: frozenset(names.tolist()) for key, names in found}


def _read(
    session: Session, index: IndexRow, name: str, column: Column, keys: Iterable[Any]
) -> Iterator[tuple[Any, Any]]:
    wanted = list(dict.fromkeys(keys))
    for start in range(0, len(wanted), KEYS_AT_ONCE):
        part = {"keys": wanted[start : start + KEYS_AT_ONCE]}
        columns = [index.keys.column, column]
        for found, values in session.copy_out(BY_KEY, columns, part, read=("key", name)):
            each = values.each() if isinstance(values, Ragged) else values
            yield from zip(index.keys.parameters(index.keys.read(found)), each, strict=True)


def choose_queries(session: Session, index: IndexRow, rows: int, queries: int) -> Rows:
    """Held-out rows with labels, always the same ones as long as they are there; those that judge first."""
    share = float(index.options["held_out"])
    # Three times as many as wanted: half of them judge, some have no label, and the draw varies.
    part = min(1.0, 3.0 * (queries + 20) / max(1.0, rows * share))
    held = read_held_out(session, index, share, part)
    labelled = held if index.labels is None else held.take(held.labels.lengths > 0)
    if not len(labelled):
        raise InputError(
            f"index {index.name!r} cannot be evaluated, since no row can be the query: among the "
            f"{share:.1%} of rows that never train (option "
            f"held_out) {'none has a label' if len(held) else 'there is none'}; raise the option, "
            "or wait for more rows"
        )
    order = np.lexsort((index.keys.shares(labelled.keys), ~judging(labelled.keys)))[:queries]
    return labelled.take(np.sort(order))


def search(
    session: Session,
    run: Run,
    index: IndexRow,
    rows: Rows,
    k: int,
    step: str = "answer",
    match: dict[str, Any] | None = None,
    without_own: bool = True,
) -> Found | None:
    """Keys that the index answers, or has after a step, one more than k; None where it has no such step.

    The row that asks is left out of the index meanwhile. Where the table itself answers, it is still found.
    """
    found = []
    column = Nullable(Array(index.keys.column))
    given = None if match is None else Jsonb(match)
    own = index.keys.parameters(rows.keys)
    for i, vector in enumerate(rows.vectors):
        asked = {"query": vector.astype(np.float64).tolist(), "k": k + 1, "step": step, "match": given}
        with session.connection.transaction(force_rollback=True):
            if without_own:
                session.execute(LEAVE_OUT, {"own": own[i], "version": index.version})
            [((keys, present),)] = session.copy_out(SEARCH, [column], asked)
        if not present[0] and step in STEPS:
            return None
        found.append(index.keys.parameters(index.keys.read(keys.values)))
        run.step(i + 1, len(rows))
    return found


def _answers(index: IndexRow, rows: Rows, asked: dict[int, Found], scanned: Scanned) -> Answers:
    """The keys that each way to search gives, by rank, the query left out, as psycopg has them."""
    own = index.keys.parameters(rows.keys)
    answers: Answers = {name: {} for name in (*WAYS, "alike")}
    for k in RANKS:
        found = {
            "index": asked[k],
            "exact": [index.keys.parameters(keys) for keys in scanned.exact.first(k + 1)],
            "alike": [index.keys.parameters(keys) for keys in scanned.alike.first(k + 1)],
        }
        for name, way in found.items():
            answers[name][k] = [[key for key in keys if key != own[i]][:k] for i, keys in enumerate(way)]
    return answers


def judge(
    own: Sequence[frozenset[str]],
    way: dict[int, Found],
    labels: Labels,
    exact: dict[int, Found],
    alike: dict[int, Found],
) -> dict[str, float | None]:
    """Means at each rank with their standard errors, and mAP at the last rank.

    A query that finds nothing relevant counts as 0. What no query could find is None.
    """
    none: frozenset[str] = frozenset()
    scores: dict[str, float | None] = {}
    for k, found in way.items():
        judged, averages = [], []
        for i, keys in enumerate(found):
            hits = np.array([bool(own[i] & labels.get(key, none)) for key in keys], dtype=bool)
            places = max(1, len(exact[k][i]))
            judged.append(metrics.judge(keys, int(hits.sum()), places, exact[k][i], alike[k][i]))
            averages.append(float(precisions(hits).mean()) if hits.any() else 0.0)
        for name, short in SHORT.items():
            values = [getattr(one, name) for one in judged]
            scores[f"{short}{k}"] = _known(mean_of(values))
            scores[f"{short}{k}_error"] = _known(standard_error(values))
        if k == RANKS[-1]:
            scores[f"map{k}"] = round(float(np.mean(averages)), 5)
    return scores


def _known(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 5)
