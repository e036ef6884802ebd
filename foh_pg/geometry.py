"""Geometry bits: what lists keep of an embedding, so that Hamming distances rank as the distances do.

The numbers of an embedding are turned: signs drawn by a seed, then a few steps in which the two halves of the
vector are added and subtracted, the second half rolled by half as much before each. The steps spread every
number over all, so that turned numbers say about equally much, however the dimensions differ. Then each has
several thresholds, and a bit is 1 where a number lies above its threshold: in how many bits two rows differ
is the sum of the differences of their numbers, rounded to as many levels.

All of it is single additions and subtractions of single-precision numbers, in the order of
sql/shared/geometry.sql: bits made here and bits made in the database are the same. The
signs and thresholds stay while the centers stay, so these bits never change unless the row does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import CodeArray, pack, width
from foh_pg.errors import InputError

Vectors = npt.NDArray[np.float32]

# Numbers that are turned at a time, so that copies of a large table never exist at once.
CHUNK_NUMBERS = 1 << 22

# Rows of a sample that the thresholds are found in, and steps by which their density is known.
FIT_ROWS = 4096
DENSITY_STEPS = 64

# A step counts as no wider than so many times the middle one: else a few rows of enormous length would draw
# the thresholds away from all others. Of numbers that are spread normally the outermost are 40 times as wide.
WIDEST_STEP = 100

# What a vector of pgvector can hold.
MOST_NUMBERS = 16_000

# Rows with a longer embedding are far: squares and sums of such numbers do not fit single precision, so these
# rows take no part in models and lists. Of a query as long as that, the direction counts.
# As in sql/shared/names.sql.
LONGEST = 1e18

# A row this many times as long as nearly all others does not say how long rows may be.
OUTLYING = 4

# Rows that come later may be longer by so much, and among them are those with the greatest inner products.
HEADROOM = 1.05


class Layout(NamedTuple):
    """Of how many numbers geometry bits are thresholds, and how many thresholds each number has."""

    numbers: int
    copies: int

    @classmethod
    def of(cls, bits: int, dimensions: int, metric: str) -> Layout:
        copies = copies_of(bits, turned_numbers(dimensions, metric))
        return cls(bits // copies, copies)

    def moved(self, bits: CodeArray) -> tuple[CodeArray, CodeArray]:
        """The bits of rows whose numbers lie half of the thresholds higher, and lower.

        Examples
        --------
        >>> above, below = Layout(numbers=2, copies=4).moved(np.array([[0b11100000]], dtype=np.uint8))
        >>> f"{above[0, 0]:08b}", f"{below[0, 0]:08b}"
        ('11111110', '10000000')
        """
        total, by = self.numbers * self.copies, self.copies // 2 * self.numbers
        ones = np.unpackbits(bits, axis=1, count=total)
        more = np.ones((len(bits), by), dtype=np.uint8)
        above = np.concatenate([more, ones[:, : total - by]], axis=1)
        below = np.concatenate([ones[:, by:], 0 * more], axis=1)
        return pack(above), pack(below)


@dataclass(frozen=True)
class Geometry:
    """How geometry bits are made."""

    # Shape (bits,). All first thresholds of the turned numbers, then all second ones, and so on.
    threshold: Vectors
    # Shape (numbers that are turned,). -1 or 1.
    signs: Vectors
    metric: str
    # For inner products: the length that all rows are brought to.
    reach: float = 1.0

    @property
    def bits(self) -> int:
        return len(self.threshold)

    @property
    def copies(self) -> int:
        """Thresholds of a turned number."""
        return copies_of(self.bits, len(self.signs))

    @property
    def layout(self) -> Layout:
        return Layout(self.bits // self.copies, self.copies)

    @classmethod
    def plain(cls, dimensions: int, bits: int, metric: str) -> Geometry:
        """Thresholds of zero: what an index has before any row."""
        turned = turned_numbers(dimensions, metric)
        copies_of(bits, turned)
        return cls(np.zeros(bits, dtype=np.float32), np.ones(turned, dtype=np.float32), metric)

    @classmethod
    def fit(cls, rows: npt.NDArray[Any], bits: int, metric: str, seed: int) -> Geometry:
        """Thresholds for the rows of a sample.

        Examples
        --------
        >>> rows = np.array([[1, 2], [3, 2], [3, 2], [1, 8]], dtype=np.float32)
        >>> Geometry.fit(rows, 8, "l2", seed=0).encode(rows)[:, 0]
        array([178,  96,  96, 221], dtype=uint8)
        """
        given = np.asarray(rows, dtype=np.float32)
        if given.ndim != 2 or len(given) == 0:
            raise InputError(f"thresholds cannot be found in an array of shape {given.shape}")
        plain = cls.plain(given.shape[1], bits, metric)
        signs = np.random.default_rng([seed, bits]).choice(
            np.array([-1, 1], dtype=np.float32), len(plain.signs)
        )
        made = replace(plain, signs=signs, reach=_reach(given) if metric == "ip" else 1.0)
        chosen = np.linspace(0, len(given) - 1, min(FIT_ROWS, len(given))).astype(np.int64)
        turned = [made._turned(part) for part in made._chunks(made.compared(given[chosen]))]
        # Queries of inner products lie where no row is.
        power = 1.0 if metric == "ip" else 0.5
        threshold = _thresholds(np.concatenate(turned), made.copies, power).reshape(-1)
        return replace(made, threshold=threshold)

    def encode(self, rows: npt.NDArray[Any]) -> CodeArray:
        """Packed geometry bits of rows."""
        return self._packed(map(self._compared, self._chunks(rows)))

    def query_looks(self, queries: npt.NDArray[Any]) -> tuple[CodeArray, CodeArray, CodeArray]:
        """Packed geometry bits of queries, and those of the same numbers moved up and moved down."""
        levels = self.threshold.reshape(self.copies, -1)
        # By as much as the middle threshold of a number lies above the first.
        move = levels[self.copies // 2] - levels[0]
        compared = [self._compared_query(part) for part in self._chunks(queries)]
        plain, above, below = (self._packed(compared, by) for by in (None, move, -move))
        return plain, above, below

    def encode_compared(self, rows: npt.NDArray[Any]) -> CodeArray:
        """Packed geometry bits of rows that are as `compared` gives them, or of means of such rows."""
        return self._packed(self._chunks(rows))

    def means(self, bits: CodeArray, group: npt.NDArray[np.int64], before: CodeArray) -> CodeArray:
        """The bits of the mean of each group of rows, of which only the bits are known.

        Each number of a row is taken to lie in the middle between the thresholds around it. Rows that are
        compared by their angle are all equally long, so their mean is made as long as they are.

        Parameters
        ----------
        group : array (n,)
            The group of each row.
        before : array (groups, bytes)
            What a group without rows has.

        Examples
        --------
        >>> rows = np.random.default_rng(0).standard_normal((200, 64)).astype(np.float32)
        >>> made = Geometry.fit(rows, 1280, "l2", seed=0)
        >>> bits = made.encode(np.concatenate([rows, rows.mean(axis=0)[None]]))
        >>> found = made.means(bits[:-1], np.zeros(200, dtype=np.int64), bits[:1])
        >>> float((np.unpackbits(found) == np.unpackbits(bits[-1])).mean()) > 0.95
        True
        """
        levels = self.threshold.reshape(self.copies, -1)
        # What a number is taken for that lies above so many of its thresholds.
        steps = np.diff(levels, axis=0)
        # Thresholds that are all equal, as before there is any row, tell on which side a number lies.
        ends = np.where(steps > 0, steps, steps[steps > 0].mean() if steps.any() else 1)[[0, -1]] / 2
        middles = np.concatenate([levels[:1] - ends[:1], levels[1:] - steps / 2, levels[-1:] + ends[1:]])
        members, order = np.bincount(group, minlength=len(before)), np.argsort(group, kind="stable")
        last = np.cumsum(members)
        found: CodeArray = before.copy()
        step = max(1, CHUNK_NUMBERS // (self.bits * max(1, int(members.max(initial=1)))))
        for low in range(0, len(before), step):
            high = min(low + step, len(before))
            some = order[last[low] - members[low] : last[high - 1]]
            used = low + np.flatnonzero(members[low:high])
            if not len(used):
                continue
            ones = np.unpackbits(bits[some], axis=1, count=self.bits).reshape(len(some), *levels.shape)
            rows = np.take_along_axis(middles, ones.sum(axis=1, dtype=np.int64), axis=0)
            starts = last[used] - members[used] - (last[low] - members[low])
            sums = np.add.reduceat(rows, starts, axis=0, dtype=np.float64)
            if self.metric == "l2":
                means = sums / members[used, None]
            else:
                means = _unit(sums) * (np.add.reduceat(_lengths(rows), starts) / members[used])[:, None]
            found[used] = pack((means.astype(np.float32)[:, None] > levels).reshape(len(used), self.bits))
        return found

    def compared(self, rows: npt.NDArray[Any]) -> Vectors:
        """Rows as they are compared: by their distance for l2, else by their angle.

        For inner products one more number makes all rows equally long, so that those with the greatest
        product with a query, whose number is 0, are the nearest to it. A row longer than any before it is
        shortened.
        """
        return np.concatenate([self._compared(part) for part in self._chunks(rows)])

    def _compared(self, rows: Vectors) -> Vectors:
        if self.metric == "cosine":
            return _unit(rows)
        if self.metric == "l2":
            return _bounded(rows)
        missing = np.sqrt(np.maximum(self.reach * self.reach - _lengths(rows) ** 2, 0))
        return self._with_number(rows, missing)

    def _compared_query(self, queries: Vectors) -> Vectors:
        return (
            self._with_number(queries, np.zeros(len(queries)))
            if self.metric == "ip"
            else self._compared(queries)
        )

    def _with_number(self, rows: Vectors, number: npt.NDArray[np.float64]) -> Vectors:
        last = number.astype(np.float32)[:, None]
        return _unit(np.concatenate([rows[:, : len(self.signs) - 1], last], axis=1))

    def _packed(self, compared: Iterable[Vectors], move: Vectors | None = None) -> CodeArray:
        levels = self.threshold.reshape(self.copies, -1)
        found = [np.empty((0, width(self.bits)), dtype=np.uint8)]
        for part in compared:
            numbers = self._turned(part)[:, None, :]
            above = numbers > levels if move is None else (numbers - levels) + move > 0
            found.append(pack(above.reshape(len(part), self.bits)))
        return np.concatenate(found)

    def _chunks(self, rows: npt.NDArray[Any]) -> list[Vectors]:
        given = np.asarray(rows, dtype=np.float32)
        step = max(1, CHUNK_NUMBERS // max(padded_numbers(len(self.signs)), self.bits))
        return [given[start : start + step] for start in range(0, max(len(given), 1), step)]

    def _turned(self, compared: Vectors) -> Vectors:
        """As many turned numbers of each row as have thresholds."""
        half = padded_numbers(len(self.signs)) // 2
        padded = np.zeros((len(compared), 2 * half), dtype=np.float32)
        np.multiply(compared, self.signs, out=padded[:, : len(self.signs)])
        a, b = padded[:, :half], padded[:, half:]
        a, b, turn = a + b, a - b, half // 2
        while turn > 0:
            b = np.roll(b, -turn, axis=1)
            a, b, turn = a + b, a - b, turn // 2
        return np.concatenate([a, b], axis=1)[:, : self.bits // self.copies]


def turned_numbers(dimensions: int, metric: str) -> int:
    """How many numbers of a row are turned: its own, and one more for inner products.

    pgvector's vectors have 16 000 numbers at the most: there the one more takes the place of the last.
    """
    return min(dimensions + 1, MOST_NUMBERS) if metric == "ip" else dimensions


def padded_numbers(turned: int) -> int:
    """To how many numbers, by zeros, a row is filled up before it is turned; an even number.

    Few numbers become four times as many: differences along many directions, rounded coarsely, add up to the
    distance more closely than those along few, rounded finely.

    Examples
    --------
    >>> [padded_numbers(turned) for turned in (3, 32, 100, 385)]
    [16, 128, 256, 386]
    """
    even = turned + turned % 2
    return max(even, min(4 * even, 256))


def default_bits(turned: int) -> int:
    """The default of foh._geometry_bits in sql/shared/geometry.sql.

    Examples
    --------
    >>> [default_bits(turned) for turned in (2, 100, 384, 512, 1536)]
    [1280, 1280, 1152, 1536, 1536]
    """
    padded = padded_numbers(turned)
    return 1536 if padded > 768 else max(2, (1280 + padded // 2) // padded) * padded


def copies_of(bits: int, turned: int) -> int:
    """Thresholds of each turned number: two at least, and more where there are bits for more.

    Examples
    --------
    >>> [copies_of(bits, turned) for bits, turned in ((1536, 512), (1536, 3072), (512, 3))]
    [3, 2, 32]
    """
    padded = padded_numbers(turned)
    copies = max(2, bits // padded)
    if bits < 2 or bits % copies or bits > copies * padded:
        raise InputError(f"{bits} geometry bits cannot be shared out to {turned} numbers")
    return copies


def _thresholds(numbers: Vectors, count: int, power: float) -> Vectors:
    """Thresholds of each column, shape (count, columns): quantiles of a power of its density.

    Quantiles of the density itself would tell apart what lies close together and little else, equal distances
    (power 1) waste thresholds where no row is; half way between them serves rows best.
    """
    # Sorted where each column lies end to end, which takes a fifth of the time of numpy's quantile.
    ordered = np.sort(np.ascontiguousarray(numbers.T), axis=1)
    place = np.linspace(0, ordered.shape[1] - 1, DENSITY_STEPS + 1)
    low, part = np.floor(place).astype(np.int64), place - np.floor(place)
    high = np.minimum(low + 1, ordered.shape[1] - 1)
    edges = ((1 - part) * ordered[:, low] + part * ordered[:, high]).T
    # Each step holds the same share of the rows, so its density is one through its width.
    widths = np.diff(edges, axis=0)
    middle = np.median(widths, axis=0)
    widths = np.where(middle > 0, np.minimum(widths, WIDEST_STEP * middle), widths)
    share = np.cumsum(widths**power, axis=0)
    at = np.arange(1, count + 1) / (count + 1)
    found = [
        np.interp(at * part[-1], np.concatenate([[0], part]), edge)
        for part, edge in zip(share.T, edges.T, strict=True)
    ]
    return np.stack(found, axis=1).astype(np.float32)


def _reach(rows: Vectors) -> float:
    """The greatest length, but no more than a few times what nearly all rows have: the others would be lost.

    A row that is longer counts as one of this length.
    """
    lengths = _lengths(rows)
    return float(min(HEADROOM * lengths.max(), OUTLYING * np.quantile(lengths, 0.99), LONGEST))


def _unit(rows: Vectors) -> Vectors:
    """What pgvector's l2_normalize gives: the length in double precision, the quotients in single."""
    lengths = _lengths(rows)[:, None]
    scaled = np.divide(rows, lengths, out=np.zeros(rows.shape), where=lengths > 0)
    return np.asarray(scaled, dtype=np.float32)


def _bounded(rows: Vectors) -> Vectors:
    """Rows whose sums single precision can hold."""
    long = _lengths(rows) > LONGEST
    if not long.any():
        return rows
    found: Vectors = rows.copy()
    found[long] = _unit(rows[long])
    return found


def _lengths(rows: Vectors) -> npt.NDArray[np.float64]:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64)))
