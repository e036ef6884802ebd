"""What the figures say to do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from psycopg import sql

from foh_pg.quality.advise.measuring import (
    LABELS,
    LEARNED,
    LEARNED_QUARTER,
    NEAREST,
    NEAREST_OF_LABEL,
    QUARTER,
    SOME_LABELLED,
    Figure,
    judgeable,
)
from foh_pg.quality.advise.sampling import LARGEST_SAMPLE, Sample

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
    # What to do, what is gained and what it costs: a sentence each. What was not measured costs nothing.
    use: str
    gain: str
    cost: str = ""
    # What else the figures say.
    notes: tuple[str, ...] = ()
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
    plain = "Use plain pgvector."
    if sample.table.labels is None:
        return Advice(
            "pgvector",
            plain,
            "Without labels there is nothing to learn from: this index would rank by geometry alone.",
        )
    if sample.share < FEW_LABELLED:
        return Advice(
            "pgvector",
            plain,
            f"Only {sample.share:.1%} of {sample.rows} rows have labels: under {FEW_LABELLED:.0%} there is "
            "too little to learn from.",
        )
    found = len(judgeable(sample))
    if found < ENOUGH_LABELLED_ROWS:
        return Advice(
            "pgvector",
            plain,
            f"{found} labelled rows in the sample are too few to learn from or to measure with: "
            f"{ENOUGH_LABELLED_ROWS} are needed.",
        )
    return None


def decide(sample: Sample, figures: Sequence[Figure]) -> Advice:
    """Choose by P@10 of what each way would return; by P@100 where only that tells them apart."""
    cosine = _only(figures, "exact cosine")
    filtered = _only(figures, "classify and filter")
    ours = [f for f in figures if f.way == "foh" and f.ranked_by == LEARNED]
    chosen = {k: _fewest_bits(ours, k) for k in (10, 100) if k in cosine.shares}
    gains = {k: Gain.of(chosen[k], cosine, k) for k in chosen}
    only_later = 100 in gains and gains[100].worthwhile and not gains[10].worthwhile
    k = 100 if only_later and not gains[10].loss else 10
    ours_at_k, gain = chosen[k], gains[k]
    # With the dial at 1 a search asks for labels above all, as a filter does.
    turned = [f for f in figures if f.way == "foh" and f.ranked_by == LABELS]
    rival = _best([ours_at_k, cosine, *turned], k)
    by_label = sample.share >= NEARLY_ALL_LABELLED and Gain.of(filtered, rival, k).worthwhile
    told = _gained(sample, ours_at_k, cosine, gain, k)
    # Answers are asked for that are near in both senses: any rows of the right label will not do.
    if by_label and not (gain.worthwhile and _nearer(ours_at_k, filtered)):
        return Advice(
            "label filter",
            "Classify the query and filter by label.",
            f"P@{k} is {filtered.precision[k]:.3f}{_near(filtered)} that way, and {sample.share:.1%} of rows "
            f"have labels. {told}",
            "A classifier to train and to apply to every query, yourself.",
        )
    cost = _costs(figures, ours_at_k, cosine)
    if not gain.worthwhile:
        return Advice("pgvector", "Use plain pgvector.", f"{told} {_too_little(gain)}", cost)
    notes = (
        _unlabelled(sample, figures, ours_at_k, k),
        _any_of_label(filtered, k) if by_label else "",
        _projection(figures, ours_at_k, k),
        _nearest_of_label(sample, figures, ours_at_k, k),
        _fading(sample, figures, ours_at_k, gain, k),
    )
    use = f"Use this index with {ours_at_k.bits} bits."
    return Advice("foh", use, told, cost, tuple(note for note in notes if note), ours_at_k.bits)


def _gained(sample: Sample, ours: Figure, cosine: Figure, gain: Gain, k: int) -> str:
    return (
        f"Of the first {k} rows {k * ours.precision[k]:.1f} share a label with the query, by exact distance "
        f"{k * cosine.precision[k]:.1f} (P@{k} {ours.precision[k]:.3f} and {cosine.precision[k]:.3f}, "
        f"{gain.mean:+.3f} ± {gain.error:.3f}, on a sample of {len(sample.X)} rows)."
    )


def _costs(figures: Sequence[Figure], ours: Figure, cosine: Figure) -> str:
    """What an index takes, beside an HNSW index, and what it gives away of the nearest rows."""
    space = f"About {ours.megabytes} MB" if ours.megabytes is not None else "Some space"
    if cosine.megabytes is not None:
        space += f" (HNSW: {cosine.megabytes} MB)"
    told = f"{space}, and a job that runs foh-pg update."
    if ours.recall is None:
        return told
    nearest = [f for f in figures if (f.way, f.bits, f.ranked_by) == ("foh", ours.bits, NEAREST)]
    at_0 = "".join(f", {f.recall:.0%} with labels => 0" for f in nearest if f.recall is not None)
    return f"{told} Of the ten nearest rows {ours.recall:.0%} are among the first ten{at_0}."


def _too_little(gain: Gain) -> str:
    if gain.clear:
        return f"That is a gain of {gain.mean:+.3f} where {WORTHWHILE} would be worth it."
    return (
        f"That is no clear difference: a gain of {gain.mean:+.3f} with a standard error of {gain.error:.3f} "
        f"over {gain.queries} queries (more --queries tell finer differences apart)."
    )


def _fewest_bits(figures: Sequence[Figure], k: int) -> Figure:
    """The fewest bits with no clear loss against the best."""
    best = _best(figures, k)
    return min((f for f in figures if _as_good(f, best, k)), key=lambda figure: figure.bits or 0)


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
        f"To classify the query and filter by label would reach {filtered.precision[k]:.3f}"
        f"{_near(filtered)}: the choice where the label is all that counts."
    )


def _projection(figures: Sequence[Figure], ours: Figure, k: int) -> str:
    """Tell where vectors of label scores find more by label."""
    found = [f for f in figures if f.way == "supervised projection" and Gain.of(f, ours, k).worthwhile]
    return " ".join(
        f"A supervised projection with HNSW on it would reach {f.precision[k]:.3f}{_near(f)}: a classifier "
        "to train, and to apply to every row and query, yourself."
        for f in found
    )


def _nearest_of_label(sample: Sample, figures: Sequence[Figure], ours: Figure, k: int) -> str:
    """Tell where a classifier and a filtered search find as much by label, and nearer rows."""
    found = _only(figures, NEAREST_OF_LABEL)
    if sample.share < NEARLY_ALL_LABELLED or Gain.of(found, ours, k).loss:
        return ""
    if not _nearer(found, ours):
        return ""
    return (
        "To classify the query, and to search the rows of that label with HNSW and an iterative scan, would "
        f"reach {found.precision[k]:.3f}{_near(found)}: a classifier to keep up to date yourself, and an "
        "index of full vectors."
    )


def _unlabelled(sample: Sample, figures: Sequence[Figure], ours: Figure, k: int) -> str:
    """Tell what rows without labels get, where there are many."""
    if sample.share >= NEARLY_ALL_LABELLED:
        return ""
    found = next(_of(figures, ours.bits, SOME_LABELLED))
    return (
        f"These figures are among rows with labels. With {1 - sample.share:.1%} of rows without labels, as "
        f"in the table, P@{k} over all rows is {found.precision[k]:.3f}."
    )


def _fading(sample: Sample, figures: Sequence[Figure], ours: Figure, gain: Gain, k: int) -> str:
    """Warn where the gain falls with the number of rows, so that little may be left on the whole table.

    Both ways gain from more rows; what counts is how the difference between them changes.
    """
    fewer = next(_of(figures, ours.bits, LEARNED_QUARTER)), _only(figures, QUARTER)
    if not all(k in figure.shares for figure in fewer):
        return ""
    before = Gain.of(*fewer, k).mean
    expected = gain.mean + (gain.mean - before) * math.log(max(1.0, sample.rows / len(sample.X)), 4)
    if expected >= WORTHWHILE:
        return ""
    larger = len(sample.X) < min(sample.rows, LARGEST_SAMPLE)
    return (
        f"But the gain falls with more rows: {before:+.3f} on a quarter of the sample, {gain.mean:+.3f} on "
        f"all of it, which makes about {expected:+.3f} on all {sample.rows} rows: "
        + ("try a larger --sample before you decide." if larger else "it may not last.")
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


def _of(figures: Sequence[Figure], bits: int | None, ranked_by: str) -> Iterator[Figure]:
    return (f for f in figures if (f.way, f.bits, f.ranked_by) == ("foh", bits, ranked_by))
