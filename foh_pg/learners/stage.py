"""The steps of one stage of FOH, on codes of shape (k, rows) with entries -1 and +1.

The objective (Eq. 16) is minimised over one of its variables at a time, in the order of the authors'
program: codes of the new rows, codes of the existing rows, label projection, hash functions; one sweep each.
Existing rows with equal codes and equal label sets stay equal whatever the step, and there are few different
ones among many, so all steps work on the different ones and count how often each occurs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse  # type: ignore[import-untyped]

from foh_pg.arrays.codes import CodeArray, pack, unpack
from foh_pg.arrays.labels import Groups, IdArray, LabelSets
from foh_pg.learners.rows import FloatArray
from foh_pg.learners.similarity import Kind, label_matrix, similar_to

# Codes are swept in chunks of this many rows: a chunk stays in the processor's cache for all bits.
CHUNK_ROWS = 2048

# Existing codes are fitted to at least this many rows.
EVIDENCE_ROWS = 1000

# Up to this many dimensions the hash functions of one batch are solved for in the space of the dimensions.
FEW_DIMENSIONS = 4096


@dataclass(frozen=True)
class Constants:
    """Weights of the objective (Eq. 16), and the two balance factors of S."""

    lam: float
    sigma: float
    eta_s: float
    eta_d: float
    theta: float
    mu: float
    tau: float


@dataclass
class Side:
    """Rows of one side of S: their codes, how often each occurs, and the group of its label set."""

    # Shape (k, u). Codes, entries -1 and +1.
    codes: FloatArray
    # Shape (u,). How many rows have this code and this label set.
    counts: FloatArray
    # Shape (u,). Which label set.
    groups: IdArray
    # Number of label sets on both sides together.
    total_groups: int

    @property
    def coupling(self) -> FloatArray:
        """B B' (k, k), without the diagonal: what the other bits of a code pull at one bit."""
        gram: FloatArray = (self.codes * self.counts) @ self.codes.T
        np.fill_diagonal(gram, 0)
        return gram

    @property
    def sums(self) -> FloatArray:
        """Sum of the codes of each group (groups, k)."""
        columns = np.arange(len(self.groups))
        members = sparse.csr_matrix(
            (self.counts, (self.groups, columns)), shape=(self.total_groups, len(self.groups))
        )
        total: FloatArray = members @ np.ascontiguousarray(self.codes.T)
        return total

    @cached_property
    def sizes(self) -> npt.NDArray[np.float64]:
        """Number of rows of each group."""
        sizes = np.bincount(self.groups, weights=self.counts, minlength=self.total_groups)
        return sizes.astype(np.float64)


def _distinct(codes: CodeArray, groups: IdArray) -> tuple[IdArray, IdArray]:
    """First row of each distinct (code, group), and which of them each row is."""
    table = np.concatenate([codes, groups.astype(np.int64)[:, None].view(np.uint8)], axis=1)
    rows = np.ascontiguousarray(table).view(f"V{table.shape[1]}").reshape(-1)
    _, first, of_row = np.unique(rows, return_index=True, return_inverse=True)
    return first.astype(np.int64), of_row.reshape(-1).astype(np.int64)


def packed(codes: FloatArray) -> CodeArray:
    """Pack codes (k, rows) with entries -1 and +1."""
    return pack(codes.T > 0)


def signs(scores: FloatArray) -> FloatArray:
    """Give +1 where a score is zero or more, else -1 (Eq. 2)."""
    return np.where(scores >= 0, 1, -1).astype(scores.dtype)


@dataclass
class Meeting:
    """New rows and existing ones, their label sets numbered together."""

    # Label sets of the existing rows, then of the new ones.
    groups: Groups
    # Number of labels.
    labels: int
    # The different existing rows.
    past: Side
    # Shape (m,). Where in `past` each existing row is.
    past_of_row: IdArray

    @property
    def new_groups(self) -> IdArray:
        """The label set of each new row."""
        return self.groups.of_row[len(self.past_of_row) :]

    def new_side(self, codes: FloatArray) -> Side:
        """Give the new rows as a side, each counted once."""
        return Side(codes, np.ones(codes.shape[1], dtype=codes.dtype), self.new_groups, len(self.groups))

    def evidence(self, codes: FloatArray) -> Side:
        """Give the rows that existing codes are fitted to: the new ones, and the past where they are few.

        A code that is fitted to a handful of rows alone forgets all others. So the past joins them, weighted
        down to what is missing to `EVIDENCE_ROWS`.
        """
        new = self.new_side(codes)
        missing = EVIDENCE_ROWS - codes.shape[1]
        if missing <= 0 or len(self.past_of_row) == 0:
            return new
        weight = min(1.0, missing / len(self.past_of_row))
        return Side(
            np.concatenate([new.codes, self.past.codes], axis=1),
            np.concatenate([new.counts, (weight * self.past.counts).astype(codes.dtype)]),
            np.concatenate([new.groups, self.past.groups]),
            new.total_groups,
        )

    def weighted_by_past(self, kind: Kind, constants: Constants) -> FloatArray:
        """Give `B_e S'` for each label set of the new rows: (groups, k)."""
        return _weighted_sums(kind, self.groups, self.new_groups, self.past, self.labels, constants)

    def weighted_by_new(self, kind: Kind, constants: Constants, new: Side) -> FloatArray:
        """Give `B_s S` for each label set of the existing rows: (groups, k); `new` may be the evidence."""
        return _weighted_sums(kind, self.groups, self.past.groups, new, self.labels, constants)

    def new_codes(self, projected: FloatArray, weighted: FloatArray, anchors: FloatArray) -> FloatArray:
        """Find the codes of the new rows, bit by bit (Eq. 24-26).

        Parameters
        ----------
        projected : array (k, n)
            `sigma W' x` of the new rows.
        weighted : array (groups, k)
            `B_e S'`.
        anchors : array (groups, k)
            `theta P l` of each label set.
        """
        codes = signs(projected)
        # A row starts from the code of the oldest row with the same labels.
        origin = self.groups.first[self.new_groups]
        inherits = origin < len(self.past_of_row)
        codes[:, inherits] = self.past.codes[:, self.past_of_row[origin[inherits]]]
        # G of Eq. 24; all but its middle term is the same for rows with the same labels.
        shared = (len(codes) * weighted + anchors).astype(projected.dtype)
        _sweep(codes, shared[self.new_groups].T + projected, self.past.coupling)
        return codes

    def existing_codes(
        self, new: Side, weighted: FloatArray, anchors: FloatArray, *, bit_by_bit: bool
    ) -> FloatArray:
        """Find the codes of the existing rows: (k, different ones).

        `bit_by_bit` minimises over one bit after the other, as for new rows; otherwise all bits are set at
        once as in the paper (Eq. 21). `anchors` is `mu P l`, with a minus sign in the paper.
        """
        target = (len(new.codes) * weighted + anchors).astype(new.codes.dtype)[self.past.groups].T
        if not bit_by_bit:
            pull: FloatArray = new.codes @ (new.codes.T @ self.past.codes)
            return signs(2 * target - pull)
        codes: FloatArray = self.past.codes.copy()
        _sweep(codes, target, new.coupling)
        return codes


def meet(
    past_codes: CodeArray,
    past_sets: LabelSets,
    new_sets: LabelSets,
    labels: int,
    bits: int,
    dtype: npt.DTypeLike,
) -> Meeting:
    """Number the label sets of both sides together, and reduce existing rows to the different ones."""
    groups = past_sets.append(new_sets).group()
    of_row = groups.of_row[: len(past_sets)]
    first, past_of_row = _distinct(past_codes, of_row)
    counts = np.bincount(past_of_row, minlength=len(first)).astype(dtype)
    codes = np.where(unpack(past_codes[first], bits).T, 1, -1).astype(dtype, order="C")
    return Meeting(groups, labels, Side(codes, counts, of_row[first], len(groups)), past_of_row)


def _sweep(codes: FloatArray, target: FloatArray, coupling: FloatArray) -> None:
    """Set bit after bit in place: `b_r = sgn(target_r - coupling_r codes)` (Eq. 26)."""
    for start in range(0, codes.shape[1], CHUNK_ROWS):
        part = np.ascontiguousarray(codes[:, start : start + CHUNK_ROWS])
        aim = np.ascontiguousarray(target[:, start : start + CHUNK_ROWS])
        for r in range(len(part)):
            pull = coupling[r] @ part
            part[r] = np.where(aim[r] >= pull, 1, -1)
        codes[:, start : start + CHUNK_ROWS] = part


def _weighted_sums(
    kind: Kind, groups: Groups, here: IdArray, other: Side, labels: int, constants: Constants
) -> FloatArray:
    """Sum the other side's codes times S, for each label set that occurs here: (groups, k).

    S is `eta_s` times the similarity, and `-eta_d` where that is zero. Sets that do not occur are left at
    zero.
    """
    sums = other.sums
    total = sums.sum(axis=0)
    if kind == "equal":
        # Only the own group is similar (Eq. 13).
        equal: FloatArray = constants.eta_s * sums - constants.eta_d * (total - sums)
        return equal
    mine, theirs = np.unique(here), np.unique(other.groups)
    similar, sharing = similar_to(
        kind, groups.sets.take(mine), groups.sets.take(theirs), sums[theirs], labels
    )
    result = np.zeros_like(sums)
    result[mine] = constants.eta_s * similar - constants.eta_d * (total - sharing)
    return result


def label_projection(
    sets: LabelSets, labels: int, past: Side | None, new: Side, constants: Constants
) -> npt.NDArray[np.float64]:
    """Solve for P (Eq. 18): (k, labels)."""
    weights = constants.theta * new.sizes
    sums = constants.theta * new.sums.astype(np.float64)
    if past is not None:
        weights = weights + constants.mu * past.sizes
        sums = sums + constants.mu * past.sums
    hot = label_matrix(sets, labels, np.float64)
    gram = np.asarray((hot.T @ hot.multiply(weights[:, None])).toarray())
    solved = _ridge(gram, hot.T @ sums, constants.tau)
    return np.ascontiguousarray(solved.T)


def projection(
    gram: npt.NDArray[np.float64], cross: npt.NDArray[np.float64], constants: Constants
) -> npt.NDArray[np.float64]:
    """Solve for W (Eq. 17): (d, k), from `X X'` and `X B'`."""
    return _ridge(gram.copy(), cross, constants.lam / constants.sigma)


def projection_of_rows(rows: FloatArray, codes: FloatArray, constants: Constants) -> npt.NDArray[np.float64]:
    """Solve for W (Eq. 17): (d, k), from one batch of rows and their codes.

    Where the rows have very many dimensions and are fewer than these, the same W is found in the space of the
    rows: `X (X' X + w I)^-1 B'` instead of `(X X' + w I)^-1 X B'`.
    """
    if rows.shape[1] <= max(len(rows), FEW_DIMENSIONS):
        gram = (rows.T @ rows).astype(np.float64)
        return projection(gram, (rows.T @ codes.T).astype(np.float64), constants)
    inner = (rows @ rows.T).astype(np.float64)
    weights = _ridge(inner, codes.T.astype(np.float64), constants.lam / constants.sigma)
    found: npt.NDArray[np.float64] = rows.T @ weights
    return found


def _ridge(
    gram: npt.NDArray[np.float64], right: npt.NDArray[np.float64], weight: float
) -> npt.NDArray[np.float64]:
    """Solve `(gram + weight I) x = right` by Cholesky, writing over `gram`."""
    gram[np.diag_indices_from(gram)] += weight
    factor = linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
    solution: npt.NDArray[np.float64] = linalg.cho_solve(factor, right, check_finite=False)
    return solution
