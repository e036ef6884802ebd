"""What the figures say to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from psycopg import sql

from foh_pg.arrays.label_habits import DIFFERENT
from foh_pg.clustering import Metric
from foh_pg.quality.advise.measuring import EXACT, FILTERED, LABELS, LEARNED, NEAREST, Figure
from foh_pg.quality.advise.sampling import Sample
from foh_pg.updater.trial import LEAST_SHARE
from foh_pg.updater.weighing import ALLOWED

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

    def for_index(self, name: str, bits: int) -> str:
        """What to do where the table has an index already."""
        there = f"Index {name!r} with {bits} bits is there"
        if self.choice != "foh":
            return f"{there}. {self.use} foh-pg drop-index {name} removes the index."
        if self.bits is not None and self.bits > bits:
            return (
                f"{there}, and {self.bits} bits are clearly better: create another index, build it, and "
                "drop this one."
            )
        return f"{there}: keep it."


@dataclass(frozen=True)
class Gain:
    """How much better one way is than another on the same queries."""

    # mean, error: the difference of what they are compared by, and its standard error: queries differ far
    # more than ways do, so it is taken from the differences at each query.
    mean: float
    error: float

    @classmethod
    def of(cls, ours: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> Gain:
        differences = ours - other
        return cls(float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(len(differences)))

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.error:.3f}"

    @property
    def clear(self) -> bool:
        """Whether other queries would hardly reverse it."""
        return abs(self.mean) > STANDARD_ERRORS * self.error

    @property
    def worthwhile(self) -> bool:
        """Whether it is clear, and large enough to do something for it."""
        return self.clear and self.mean >= WORTHWHILE

    @property
    def loses(self) -> bool:
        """Whether it is less by more than a build lets a search lose against the exact distance."""
        return self.mean < -ALLOWED


def nothing_to_learn(sample: Sample) -> Advice | None:
    """Say why nothing needs to be measured, where that is so."""
    labelled = int(np.count_nonzero(sample.labels.lengths))
    if sample.table.labels is None:
        why = "Without labels there is nothing to learn from: this index would rank by geometry alone."
    elif sample.share < FEW_LABELLED:
        why = (
            f"Only {sample.share:.1%} of {sample.rows} rows have labels: under {FEW_LABELLED:.0%} there is "
            "too little to learn from."
        )
    elif labelled < ENOUGH_LABELLED_ROWS:
        why = (
            f"{labelled} labelled rows in the sample are too few to learn from or to measure with: "
            f"{ENOUGH_LABELLED_ROWS} are needed."
        )
    elif (names := len(np.unique(sample.labels.values.astype(np.str_)))) > DIFFERENT * labelled:
        why = (
            f"{names} different labels on {labelled} rows: labels that no other row has teach nothing. Take "
            "a column whose values rows share, such as a category."
        )
    else:
        return None
    return Advice("pgvector", "Use plain pgvector.", why)


def decide(sample: Sample, figures: Sequence[Figure], present: int | None = None) -> Advice:
    """Choose by what each way would return: more rows of the right kind, or more of those the nearest.

    P@10 alone could be had by any rows of the right label, so it is worth nothing where the nearest rows of
    the right kind are lost for it. `present`: the bits of the index that is there, whose figures are shown
    unless more bits are better.
    """
    [cosine] = (figure for figure in figures if figure.way == EXACT)
    [filtered] = (figure for figure in figures if figure.way == FILTERED)
    learned = [figure for figure in figures if figure.ranked_by == LEARNED]
    ours = _fewest_bits(learned)
    if present is not None and (ours.bits or 0) < present:
        ours = next((figure for figure in learned if figure.bits == present), ours)
    gain = Gain.of(ours.answers.precision, cosine.answers.precision)
    of_kind = Gain.of(ours.answers.both, cosine.answers.both)
    use = (gain.worthwhile or of_kind.worthwhile) and not (gain.loses or of_kind.loses)
    # With the dial at 1 a search asks for labels above all, as a filter does.
    turned = (figure for figure in figures if figure.ranked_by == LABELS)
    rival = max((ours, cosine, *turned), key=lambda figure: figure.precision)
    better = Gain.of(filtered.answers.precision, rival.answers.precision).worthwhile
    by_label = sample.share >= NEARLY_ALL_LABELLED and better
    told = (
        f"Of the first 10 rows {10 * ours.precision:.1f} share a label with the query, and "
        f"{10 * ours.both:.1f} are of the 10 nearest that do; by exact distance {10 * cosine.precision:.1f} "
        f"and {10 * cosine.both:.1f} (P@10 {gain}, both@10 {of_kind}, on {len(sample.X)} rows)."
    )
    if use and sample.rows * LEAST_SHARE > len(sample.X):
        told += f" Among {sample.rows} rows it is less: foh-pg evaluate measures it after a build."
    # Answers are asked for that are near in both senses: any rows of the right label will not do.
    if by_label and not Gain.of(filtered.answers.both, (ours if use else cosine).answers.both).loses:
        return Advice(
            "label filter",
            "Classify the query and filter by label.",
            f"P@10 is {_reached(filtered)} that way, and {sample.share:.1%} of rows have labels. {told}",
            "A classifier to train and to apply to every query, yourself.",
        )
    cost = _costs(figures, ours, cosine)
    notes = []
    if sample.share < NEARLY_ALL_LABELLED:
        notes.append(
            f"These figures are among rows with labels, and {1 - sample.share:.1%} of rows have none."
        )
    if by_label:
        notes.append(
            f"To classify the query and filter by label would reach P@10 {_reached(filtered)}: the choice if "
            "the label is all that counts."
        )
    if not use:
        why = " ".join([told, _too_little(gain, of_kind), *notes])
        return Advice("pgvector", "Use plain pgvector.", why, cost)
    return Advice("foh", f"Use this index with {ours.bits} bits.", told, cost, tuple(notes), ours.bits)


def _costs(figures: Sequence[Figure], ours: Figure, cosine: Figure) -> str:
    """What an index takes, beside an HNSW index, and what it gives away of the nearest rows."""
    nearest = [figure for figure in figures if (figure.bits, figure.ranked_by) == (ours.bits, NEAREST)]
    at_0 = "".join(f", {figure.recall:.0%} with labels => 0" for figure in nearest)
    return (
        f"About {ours.megabytes} MB (HNSW: {cosine.megabytes} MB), and a job that runs foh-pg update. Of the "
        f"ten nearest rows {ours.recall:.0%} are among the first ten{at_0}."
    )


def _too_little(gain: Gain, of_kind: Gain) -> str:
    for what, one in (("P@10", gain), ("both@10", of_kind)):
        if one.loses:
            return f"An index that loses {-one.mean:.3f} of {what} is no gain."
    best = max(gain, of_kind, key=lambda one: one.mean)
    if best.clear:
        return f"A gain of {best.mean:+.3f} is less than the {WORTHWHILE} that would be worth it."
    return f"That is no clear difference: {best} may come from the choice of the queries."


def _fewest_bits(figures: Sequence[Figure]) -> Figure:
    """The fewest bits with no clear loss against the best."""
    best = max(figures, key=lambda figure: float(figure.answers.worth.mean()))

    def as_good(figure: Figure) -> bool:
        gain = Gain.of(best.answers.worth, figure.answers.worth)
        return gain.mean <= AS_GOOD or not (gain.clear or gain.mean >= WORTHWHILE)

    return min(filter(as_good, figures), key=lambda figure: figure.bits or 0)


def _reached(figure: Figure) -> str:
    """P@10, and how near the answers are."""
    return f"{figure.precision:.3f} (recall of the exact ten {figure.recall:.3f})"


def statement(sample: Sample, bits: int, distance: Metric, include: Sequence[str] = ()) -> str:
    """Give the SQL that creates the index; `include` names columns to keep in its lists."""
    table = sample.table
    source = sql.Identifier(table.schema, table.name).as_string(None)
    arguments = [
        sql.SQL("SELECT foh.create_index({}, {}, {}").format(f"{table.name}_foh", source, table.embedding),
        sql.SQL("labels => {}").format(table.labels),
        sql.SQL("bits => {}").format(bits),
    ]
    if distance != "cosine":
        arguments.append(sql.SQL("distance => {}").format(distance))
    if include:
        arguments.append(sql.SQL("include => {}").format(sql.Literal(list(include))))
    return sql.SQL(", ").join(arguments).as_string(None) + ");"
