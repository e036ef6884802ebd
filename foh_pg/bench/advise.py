"""Whether an index would help on a table: read a sample of it, measure the ways to rank, and decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql

from foh_pg.bench import methods, ranking
from foh_pg.bench.accuracy import train
from foh_pg.bench.data import Dataset
from foh_pg.bench.ranking import Relevance
from foh_pg.bench.references import Classifier, filter_by_label
from foh_pg.bench.split import Protocol, Split
from foh_pg.codes import CodeArray
from foh_pg.database.copy import FLOAT4, TEXT, Array, copy_out
from foh_pg.errors import InputError
from foh_pg.labels import LabelSets, Vocabulary

# What decides. Not tested against chance: with 300 queries a P@10 may be off by .02 or .03, so raise
# --queries and --sample where a verdict is close.
FEW_LABELLED = 0.10
NEARLY_ALL_LABELLED = 0.95
WORTHWHILE = 0.02
AS_GOOD = 0.01
ENOUGH_LABELLED_ROWS = 200

# Rows that the search ranks with the exact distance (option `shortlist`).
SHORTLIST = 50

EMBEDDINGS = ("vector", "halfvec", "_float4", "_float8")
LABELS = ("text", "varchar", "int2", "int4", "int8")

# Shows how much exact cosine gains from more rows: a table is more than its sample.
QUARTER = "exact cosine, 1/4 of the rows"

Progress = Callable[[str, int, int], None]
Precisions = dict[int, float]


@dataclass(frozen=True)
class Table:
    """The table as the catalog describes it.

    Attributes
    ----------
    schema, name, key : str
        Its name, and the column that is its primary key.
    embedding, embedding_type, labels, labels_type : str
        The columns; the labels may be None.
    """

    schema: str
    name: str
    key: str
    embedding: str
    embedding_type: str
    labels: str | None
    labels_type: str | None

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class Sample:
    """Some rows of a table, the same ones each time.

    Attributes
    ----------
    rows, labelled : int
        Rows of the whole table that have an embedding; those among them that have a label, too.
    X : array (n, d) of float32
        Embeddings of the sample, in an order that is random.
    sets, label_names
        Their labels.
    """

    table: Table
    rows: int
    labelled: int
    X: npt.NDArray[np.float32]
    sets: LabelSets
    label_names: tuple[str, ...]

    @property
    def share(self) -> float:
        """Share of rows with a label."""
        return self.labelled / self.rows if self.rows else 0.0

    def describe(self) -> dict[str, Any]:
        """Give what the figures stand on."""
        used = np.bincount(self.sets.ids, minlength=1)
        used = used[used > 0]
        return {
            "table": str(self.table),
            "rows": self.rows,
            "dimensions": self.X.shape[1],
            "sampled": len(self.X),
            "labelled_share": round(self.share, 4),
            "labels_in_sample": len(used),
            "sampled_rows_per_label_median": float(np.median(used)) if len(used) else 0.0,
            "sampled_rows_per_label_most": int(used.max(initial=0)),
        }


@dataclass(frozen=True)
class Figure:
    """One way to rank, and how good it is."""

    way: str
    bits: int | None
    ranked_by: str
    precision: Precisions
    megabytes: float | None

    def describe(self) -> dict[str, Any]:
        """Give plain numbers."""
        return {
            "way": self.way,
            "bits": self.bits,
            "ranked_by": self.ranked_by,
            "P@10": _rounded(self.precision.get(10)),
            "P@100": _rounded(self.precision.get(100)),
            "MB": self.megabytes,
        }


@dataclass(frozen=True)
class Advice:
    """The answer: `choice` is "pgvector", "label filter" or "foh"."""

    choice: str
    reason: str
    bits: int | None = None


# -- reading ---------------------------------------------------------------------------------------------

DESCRIBE = """
SELECT n.nspname, c.relname, c.relkind::text,
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_index i
             JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
             WHERE i.indrelid = c.oid AND i.indisprimary) AS keys
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass(%s)
"""
COLUMNS = """
SELECT a.attname::text, t.typname::text
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = pg_catalog.to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
COUNT = "SELECT count(*), count(*) FILTER (WHERE {labelled}) FROM {table} s WHERE s.{embedding} IS NOT NULL"
# By digest of the key: at random, the same rows each time, and only as many rows as asked for are ever held.
SAMPLE = """
SELECT v.x::real[], {as_labels} FROM (
    SELECT s.{embedding} AS x, {labels} AS labels FROM {table} s WHERE s.{embedding} IS NOT NULL
    ORDER BY pg_catalog.md5(s.{key}::text) LIMIT {limit}) v
"""


def read(
    connection: psycopg.Connection[Any], name: str, embedding: str, labels: str | None, limit: int
) -> Sample:
    """Sample a table in a read-only transaction; rows hidden from this role are an error.

    Reads the table twice from end to end: once to count, once to sample. Embeddings are only fetched for the
    sample where they are stored out of line.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute("SET LOCAL row_security = off")
        table = _describe(connection, name, embedding, labels)
        with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            counted = cursor.execute(_compose(COUNT, table, limit)).fetchone()
        assert counted is not None
        parts = list(copy_out(connection, _compose(SAMPLE, table, limit), [Array(FLOAT4), Array(TEXT)]))
    names = [[str(label) for label in row] for _, found in parts for row in found.each()]
    sets, vocabulary = Vocabulary().read(names)
    return Sample(table, counted[0], counted[1], _matrix(table, parts), sets, vocabulary.names)


def _describe(connection: psycopg.Connection[Any], name: str, embedding: str, labels: str | None) -> Table:
    with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        found = cursor.execute(DESCRIBE, [name]).fetchone()
        types: dict[str, str] = dict(cursor.execute(COLUMNS, [name]).fetchall())
    if found is None:
        raise InputError(f"there is no table {name!r} here: give it as in SQL, with its schema if need be")
    schema, relation, kind, keys = found
    if kind not in "rp":
        raise InputError(f"{name!r} is no ordinary or partitioned table: advise on the table behind it")
    if len(keys) != 1:
        raise InputError(
            f"{name!r} has {f'a primary key of {len(keys)} columns' if keys else 'no primary key'}: "
            "an index needs a primary key of one column"
        )
    for column in (embedding, labels):
        if column is not None and column not in types:
            raise InputError(f"{name!r} has no column {column!r}, only {', '.join(types)}")
    if types[embedding] not in EMBEDDINGS:
        raise InputError(
            f"column {embedding!r} is of type {types[embedding]}: an embedding is a vector, halfvec, real[] "
            "or double precision[]"
        )
    labels_type = None if labels is None else types[labels]
    if labels_type is not None and labels_type.removeprefix("_") not in LABELS:
        raise InputError(
            f"column {labels!r} is of type {labels_type}: labels are text, varchar or integers, "
            "or arrays of them"
        )
    return Table(schema, relation, keys[0], embedding, types[embedding], labels, labels_type)


def _compose(text: Any, table: Table, limit: int) -> sql.Composed:
    """Fill in names; no labels are an empty array, one label is an array of one."""
    if table.labels is None:
        labels: sql.Composable = sql.SQL("NULL::text[]")
        as_labels, labelled = "v.labels", "false"
    else:
        labels = sql.SQL("s.{}").format(sql.Identifier(table.labels))
        many = str(table.labels_type).startswith("_")
        as_labels = "v.labels::text[]" if many else "ARRAY[v.labels::text]"
        labelled = "pg_catalog.array_remove({}, NULL) <> '{{}}'" if many else "{} IS NOT NULL"
    return sql.SQL(text).format(
        table=sql.Identifier(table.schema, table.name),
        key=sql.Identifier(table.key),
        embedding=sql.Identifier(table.embedding),
        labels=labels,
        as_labels=sql.SQL(as_labels),
        labelled=sql.SQL(labelled).format(labels),
        limit=sql.Literal(limit),
    )


def _matrix(table: Table, parts: Sequence[tuple[Any, ...]]) -> npt.NDArray[np.float32]:
    lengths = {int(length) for found, _ in parts for length in np.unique(found.lengths)}
    if not lengths:
        raise InputError(f"{table} has no row with an embedding in {table.embedding!r}: nothing to measure")
    if len(lengths) > 1:
        raise InputError(
            f"{table} has embeddings of {', '.join(map(str, sorted(lengths)))} dimensions in "
            f"{table.embedding!r}: an index needs one length for all"
        )
    X = np.concatenate([found.values for found, _ in parts]).reshape(-1, lengths.pop())
    if not np.isfinite(X).all():
        raise InputError(f"{table} has embeddings in {table.embedding!r} that are not finite numbers")
    return np.ascontiguousarray(X, dtype=np.float32)


# -- measuring -------------------------------------------------------------------------------------------


def judgeable(sample: Sample) -> npt.NDArray[np.int64]:
    """Rows of the sample with labels: nobody knows what the others are relevant to."""
    rows: npt.NDArray[np.int64] = np.flatnonzero(sample.sets.counts > 0)
    return rows


def measure(sample: Sample, bits: Sequence[int], queries: int, progress: Progress | None) -> Iterator[Figure]:
    """Hold out queries, learn from the other labelled rows, and rank these in every way."""
    rows = judgeable(sample)
    data = Dataset(str(sample.table), sample.X[rows], sample.sets.take(rows), sample.label_names)
    split = Split.draw(data, Protocol(queries=queries, stream=len(rows)), 0)
    tell = progress or (lambda phase, done, total: None)
    tell("references", 0, 1 + len(bits))
    yield from _references(split, sample)
    for done, length in enumerate(bits, 1):
        tell(f"{length} bits", done, 1 + len(bits))
        yield from _codes(split, sample, length)


def _references(split: Split, sample: Sample) -> Iterator[Figure]:
    X, base, queries = split.data.X, split.base, split.queries
    relevance = Relevance.of(split.data, queries, base)
    perfect = [(0, -relevance.block(0, len(queries)).astype(np.float32))]
    yield Figure("best possible", None, "the labels", ranking.measure(perfect, split).precision_at, None)
    fewer = replace(split, base=base[: len(base) // 4])
    cosine = ranking.measure(ranking.by_vectors(X[queries], X[fewer.base]), fewer)
    yield Figure(QUARTER, None, "distance", cosine.precision_at, None)
    cosine = ranking.measure(ranking.by_vectors(X[queries], X[base]), split)
    yield Figure("exact cosine", None, "distance", cosine.precision_at, hnsw_megabytes(sample))
    classifier = Classifier.fit(split)
    chances = classifier.project(X[queries]) + classifier.shares
    filtered = ranking.measure(filter_by_label(chances, split), split)
    yield Figure("classify and filter", None, "likeliest label", filtered.precision_at, None)


def _codes(split: Split, sample: Sample, bits: int) -> Iterator[Figure]:
    X, base, size = split.data.X, split.base, foh_megabytes(sample, bits)
    random, _ = train(methods.choose(["random"])[0], split, bits)
    foh, _ = train(methods.choose(["foh"])[0], split, bits)
    labels = split.data.labels(base)
    for way, learner, stored in (
        ("random hyperplanes", random, random.encode(X[base])),
        ("foh, symmetric", foh, foh.encode(X[base])),
        ("foh, anchored", foh, foh.encode(X[base], labels)),
    ):
        asked = learner.encode(X[split.queries])
        for ranked_by, blocks in (
            ("code", ranking.by_codes(asked, stored)),
            ("code and distance", blended(asked, stored, split, bits)),
        ):
            yield Figure(way, bits, ranked_by, ranking.measure(blocks, split).precision_at, size)


def blended(asked: CodeArray, stored: CodeArray, split: Split, bits: int) -> ranking.Blocks:
    """Rank as the search does: the nearest by code, these by code and cosine distance, then the rest."""
    X = split.data.X
    exact = ranking.by_vectors(X[split.queries], X[split.base])
    for (start, hamming), (_, negated) in zip(ranking.by_codes(asked, stored), exact, strict=True):
        scores = hamming / bits
        first = np.argsort(hamming, axis=1, kind="stable")[:, :SHORTLIST]
        near = np.take_along_axis(scores + 1 + negated, first, axis=1)
        # A score is at most 3: the shortlist stays before all others.
        np.put_along_axis(scores, first, near - 4, axis=1)
        yield start, scores


# Bytes of a row besides its code: its entry in a list and its item, with headers and keys. Measured.
FOH_ROW = 100
# Of a row besides its vector: headers, ten heap pointers, and 2 m = 32 neighbors of 6 bytes each.
HNSW_ROW = 300
PAGE = 8192
SIZES = (
    f"MB is an estimate for the whole table: rows x (bits / 8 + {FOH_ROW}) bytes for this index with one "
    f"home per row; for pgvector's HNSW with m = 16, whole rows of 4 x dimensions + {HNSW_ROW} bytes "
    f"(halfvec: 2 x) on pages of {PAGE}."
)


def foh_megabytes(sample: Sample, bits: int) -> float:
    """Estimate the size of our index on the whole table."""
    return round(sample.rows * (bits / 8 + FOH_ROW) / 1e6, 2)


def hnsw_megabytes(sample: Sample) -> float:
    """Estimate the size of an HNSW index of pgvector on the whole table."""
    width = 2 if sample.table.embedding_type == "halfvec" else 4
    per_page = max(1, PAGE // (width * int(sample.X.shape[1]) + HNSW_ROW))
    return round(sample.rows * PAGE / per_page / 1e6, 2)


# -- deciding --------------------------------------------------------------------------------------------


def nothing_to_learn(sample: Sample) -> Advice | None:
    """Say why nothing needs to be measured, where that is so."""
    if sample.table.labels is None:
        return Advice("pgvector", "Use plain pgvector: without labels there is nothing to learn from.")
    if sample.share < FEW_LABELLED:
        return Advice(
            "pgvector",
            f"Use plain pgvector: only {sample.share:.1%} of {sample.rows} rows have labels, under "
            f"{FEW_LABELLED:.0%} there is too little to learn from.",
        )
    found = len(judgeable(sample))
    if found < ENOUGH_LABELLED_ROWS:
        return Advice(
            "pgvector",
            f"Use plain pgvector: {found} labelled rows in the sample are too few to learn from or to "
            f"measure with, {ENOUGH_LABELLED_ROWS} are needed.",
        )
    return None


def decide(sample: Sample, figures: Sequence[Figure]) -> Advice:
    """Choose by P@10 of what each way would return; by P@100 where only that tells them apart."""
    cosine = _only(figures, "exact cosine").precision
    filtered = _only(figures, "classify and filter").precision
    anchored = [f for f in figures if f.way == "foh, anchored" and f.ranked_by == "code and distance"]
    best = {k: max(f.precision[k] for f in anchored) for k in cosine if k in (10, 100)}
    gain = {k: best[k] - cosine[k] for k in best}
    k = 100 if gain[10] < WORTHWHILE <= gain.get(100, 0.0) and gain[10] > -AS_GOOD else 10
    told = f"P@{k} is {best[k]:.3f} with label-anchored codes, {cosine[k]:.3f} with exact cosine"
    if sample.share >= NEARLY_ALL_LABELLED and filtered[k] - max(best[k], cosine[k]) > WORTHWHILE:
        return Advice(
            "label filter",
            f"Classify the query and filter by label: its P@{k} is {filtered[k]:.3f}, and {sample.share:.1%} "
            f"of rows have labels; {told}.",
        )
    if gain[k] < WORTHWHILE:
        return Advice(
            "pgvector",
            f"Use plain pgvector: {told}, a gain of {gain[k]:+.3f} where {WORTHWHILE} would be worth it.",
        )
    chosen = min(f.bits or 0 for f in anchored if f.precision[k] >= best[k] - AS_GOOD)
    return Advice(
        "foh",
        f"Use this index with {chosen} bits: {told} ({gain[k]:+.3f}), and {chosen} bits are the fewest "
        f"within {AS_GOOD} of the best."
        + _unlabelled(sample, figures, chosen, k)
        + _rising(sample, figures, best[k], k),
        chosen,
    )


def _unlabelled(sample: Sample, figures: Sequence[Figure], bits: int, k: int) -> str:
    """Tell what rows without labels get, where there are many."""
    if sample.share >= NEARLY_ALL_LABELLED:
        return ""
    [found] = [
        f for f in figures if (f.way, f.bits, f.ranked_by) == ("foh, symmetric", bits, "code and distance")
    ]
    return (
        f" The {1 - sample.share:.1%} of rows without labels have symmetric codes, whose P@{k} is "
        f"{found.precision[k]:.3f}."
    )


def _rising(sample: Sample, figures: Sequence[Figure], best: float, k: int) -> str:
    """Warn where exact cosine, which gains from every further row, may catch up on the whole table."""
    cosine, fewer = _only(figures, "exact cosine").precision[k], _only(figures, QUARTER).precision.get(k)
    if fewer is None:
        return ""
    expected = cosine + (cosine - fewer) * math.log(max(1.0, sample.rows / len(sample.X)), 4)
    if expected < best - WORTHWHILE:
        return ""
    return (
        f" But exact cosine gains {cosine - fewer:.3f} from four times the rows, which makes about "
        f"{min(expected, 1.0):.3f} on all {sample.rows}: try a larger --sample before you decide."
    )


def statement(sample: Sample, bits: int) -> str:
    """Give the SQL that creates the index."""
    table = sample.table
    source = sql.Identifier(table.schema, table.name).as_string(None)
    arguments = [
        sql.SQL("SELECT foh.create_index({}, {}, {}").format(f"{table.name}_foh", source, table.embedding),
        sql.SQL("labels => {}").format(table.labels),
        sql.SQL("bits => {}").format(bits),
    ]
    return sql.SQL(", ").join(arguments).as_string(None) + ");"


def _only(figures: Sequence[Figure], way: str) -> Figure:
    [figure] = [figure for figure in figures if figure.way == way]
    return figure


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
