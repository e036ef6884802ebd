"""What the figures say to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from foh_pg.quality.advise.measuring import (
    LABELS,
    LEARNED,
    NEAREST_OF_LABEL,
    QUARTER,
    SOME_LABELLED,
    Figure,
    judgeable,
)
from foh_pg.quality.advise.sampling import Sample

# A difference counts where it is large enough to matter, and too large to come from the draw of the queries.
FEW_LABELLED = 0.10
NEARLY_ALL_LABELLED = 0.95
WORTHWHILE = 0.02
AS_GOOD = 0.01
STANDARD_ERRORS = 2
ENOUGH_LABELLED_ROWS = 200


@dataclass(frozen=True)
class Advice:
    """The answer: `choice` is "pgvector", "label filter" or "foh"."""

    choice: str
    reason: str
    bits: int | None = None


@dataclass(frozen=True)
class Gain:
    """How much better one way is than another on the same queries."""

    # mean, error: the difference of their P@k, and its standard error: queries differ far more than ways do,
    # so it is taken from the differences at each query.
    mean: float
    error: float
    # How many.
    queries: int

    @classmethod
    def of(cls, figure: Figure, other: Figure, k: int) -> Gain:
        """Compare two figures at rank k."""
        differences = figure.shares[k] - other.shares[k]
        count = len(differences)
        return cls(float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(count), count)

    @property
    def clear(self) -> bool:
        """Whether other queries would hardly reverse it."""
        return abs(self.mean) > STANDARD_ERRORS * self.error

    @property
    def worthwhile(self) -> bool:
        """Whether it is clear, and large enough to do something for it."""
        return self.clear and self.mean >= WORTHWHILE

    @property
    def loss(self) -> bool:
        """Whether it is a clear loss, and too large to be overlooked."""
        return self.clear and self.mean <= -AS_GOOD


def nothing_to_learn(sample: Sample) -> Advice | None:
    """Say why nothing needs to be measured, where that is so."""
    if sample.table.labels is None:
        return Advice(
            "pgvector",
            "Use plain pgvector: without labels there is nothing to learn from, and this index would rank by "
            "geometry alone.",
        )
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
    cosine = _only(figures, "exact cosine")
    filtered = _only(figures, "classify and filter")
    ours = [f for f in figures if f.way == "foh" and f.ranked_by == LEARNED]
    best = {k: _best(ours, k) for k in (10, 100) if k in cosine.shares}
    gains = {k: Gain.of(best[k], cosine, k) for k in best}
    only_later = 100 in gains and gains[100].worthwhile and not gains[10].worthwhile
    k = 100 if only_later and not gains[10].loss else 10
    gain, reached, exact = gains[k], best[k].precision[k], cosine.precision[k]
    told = f"P@{k} is {reached:.3f} with this index{_near(best[k])}, {exact:.3f} with exact cosine"
    # With the dial at 1 a search asks for labels above all, as a filter does.
    turned = [f for f in figures if f.way == "foh" and f.ranked_by == LABELS]
    rival = _best([best[k], cosine, *turned], k)
    by_label = sample.share >= NEARLY_ALL_LABELLED and Gain.of(filtered, rival, k).worthwhile
    # Answers are asked for that are near in both senses: any rows of the right label will not do.
    if by_label and not (gain.worthwhile and _nearer(best[k], filtered)):
        return Advice(
            "label filter",
            f"Classify the query and filter by label: its P@{k} is {filtered.precision[k]:.3f}"
            f"{_near(filtered)}, and {sample.share:.1%} of rows have labels; {told}.",
        )
    if not gain.worthwhile:
        return Advice("pgvector", f"Use plain pgvector: {told}, {_too_little(gain)}.")
    chosen = min(f.bits or 0 for f in ours if _as_good(f, best[k], k))
    return Advice(
        "foh",
        f"Use this index with {chosen} bits: {told} ({gain.mean:+.3f}), and {chosen} bits are the fewest "
        "with no clear loss against the best."
        + _unlabelled(sample, figures, chosen, k)
        + (_any_of_label(filtered, k) if by_label else "")
        + _projection(figures, best[k], k)
        + _nearest_of_label(sample, figures, best[k], k)
        + _rising(sample, figures, reached, k),
        chosen,
    )


def _too_little(gain: Gain) -> str:
    if gain.clear:
        return f"a gain of {gain.mean:+.3f} where {WORTHWHILE} would be worth it"
    return (
        f"no clear difference: a gain of {gain.mean:+.3f} with a standard error of {gain.error:.3f} over "
        f"{gain.queries} queries (more --queries and a larger --sample tell finer differences apart)"
    )


def _as_good(figure: Figure, best: Figure, k: int) -> bool:
    """Whether the best is not noticeably better."""
    gain = Gain.of(best, figure, k)
    return gain.mean <= AS_GOOD or not (gain.clear or gain.mean >= WORTHWHILE)


def _near(figure: Figure) -> str:
    """Say how near the answers are, where that is known."""
    if figure.recall is None:
        return ""
    both = "" if figure.both is None else f", both@10 {figure.both:.3f}"
    return f" (recall of the exact ten {figure.recall:.3f}{both})"


def _nearer(figure: Figure, other: Figure) -> bool:
    """Whether the answers of one way are known to be nearer than those of another."""
    if figure.recall is None or other.recall is None:
        return False
    return figure.recall >= other.recall + WORTHWHILE


def _any_of_label(filtered: Figure, k: int) -> str:
    """Tell where a classifier finds more by label alone."""
    return (
        f" To classify the query and filter by label would reach {filtered.precision[k]:.3f}"
        f"{_near(filtered)}: the choice where the label is all that counts."
    )


def _projection(figures: Sequence[Figure], best: Figure, k: int) -> str:
    """Tell where vectors of label scores find more by label."""
    found = [f for f in figures if f.way == "supervised projection" and Gain.of(f, best, k).worthwhile]
    return "".join(
        f" A supervised projection with HNSW on it would reach {f.precision[k]:.3f}{_near(f)}: a classifier "
        "to train, and to apply to every row and query, yourself."
        for f in found
    )


def _nearest_of_label(sample: Sample, figures: Sequence[Figure], best: Figure, k: int) -> str:
    """Tell where a classifier and a filtered search find as much by label, and nearer rows."""
    found = _only(figures, NEAREST_OF_LABEL)
    if sample.share < NEARLY_ALL_LABELLED or Gain.of(found, best, k).loss:
        return ""
    if not _nearer(found, best):
        return ""
    return (
        " To classify the query, and to search the rows of that label with HNSW and an iterative scan, would "
        f"reach {found.precision[k]:.3f}{_near(found)}: a classifier to keep up to date yourself, and an "
        "index of full vectors."
    )


def _unlabelled(sample: Sample, figures: Sequence[Figure], bits: int, k: int) -> str:
    """Tell what rows without labels get, where there are many."""
    if sample.share >= NEARLY_ALL_LABELLED:
        return ""
    [found] = [f for f in figures if (f.way, f.bits, f.ranked_by) == ("foh", bits, SOME_LABELLED)]
    return (
        f" That is where all rows have labels; with {1 - sample.share:.1%} of rows without labels, as in the "
        f"table, P@{k} over all rows is {found.precision[k]:.3f}."
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


def _best(figures: Sequence[Figure], k: int) -> Figure:
    return max(figures, key=lambda figure: figure.precision[k])


def _only(figures: Sequence[Figure], way: str) -> Figure:
    [figure] = [figure for figure in figures if figure.way == way]
    return figure
