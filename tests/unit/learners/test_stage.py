"""The steps of a stage against the plain formulas with the full n x m matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foh_pg.arrays.labels import LabelSets
from foh_pg.learners import similarity, stage
from foh_pg.learners.foh_parameters import SINGLE_LABEL
from tests.support import authors

K, C = 12, 5
kinds = st.sampled_from(["equal", "graded", "shared"])


def problem(seed, n, m, repeat=True):
    """Random codes and label sets; existing ones repeat, as they do in a stream."""
    rng = np.random.default_rng(seed)
    old_sets = [rng.choice(C, rng.integers(1, 4), replace=False).tolist() for _ in range(m)]
    new_sets = [rng.choice(C, rng.integers(1, 4), replace=False).tolist() for _ in range(n)]
    old = np.where(rng.random((K, m)) < 0.5, 1.0, -1.0)
    if repeat and m > 3:
        old[:, m // 2 :] = old[:, : m - m // 2]
        old_sets[m // 2 :] = old_sets[: m - m // 2]
    return LabelSets.of(old_sets), LabelSets.of(new_sets), old, rng


def plain_s(kind, new, old, eta_s, eta_d):
    s = np.zeros((len(new), len(old)))
    for i in range(len(new)):
        for j in range(len(old)):
            a, b = set(new.row(i).tolist()), set(old.row(j).tolist())
            common = len(a & b)
            graded = (common / len(a) + common / len(b)) / 2
            s[i, j] = {"equal": float(a == b), "shared": float(common > 0), "graded": graded}[kind]
    return np.where(s > 0, eta_s * s, -eta_d)


def plain_sweep(codes, target, coupling):
    for r in range(K):
        others = np.delete(np.arange(K), r)
        codes[r] = np.where(target[r] - coupling[r, others] @ codes[others] >= 0, 1, -1)
    return codes


@settings(max_examples=60)
@given(kinds, st.integers(1, 12), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_all_steps(kind, n, m, seed):
    old_sets, new_sets, old, rng = problem(seed, n, m)
    con = SINGLE_LABEL
    meeting = stage.meet(stage.packed(old), old_sets, new_sets, C, K, np.float64)
    S = plain_s(kind, new_sets, old_sets, con.eta_s, con.eta_d)
    P, projected = rng.standard_normal((K, C)), rng.standard_normal((K, n))
    Ls, Le = new_sets.multi_hot(C, float).T, old_sets.multi_hot(C, float).T
    anchors = (P @ meeting.groups.sets.multi_hot(C, float).T).T

    weighted = meeting.weighted_by_past(kind, con)
    np.testing.assert_allclose(weighted[meeting.new_groups].T, old @ S.T, atol=1e-9)
    start = np.where(projected >= 0, 1.0, -1.0)
    for i in range(n):
        equal = [j for j in range(m) if new_sets.row(i).tolist() == old_sets.row(j).tolist()]
        if equal:
            start[:, i] = old[:, equal[0]]
    expected = plain_sweep(start, K * old @ S.T + projected + con.theta * P @ Ls, old @ old.T)
    codes = meeting.new_codes(projected, weighted, con.theta * anchors)
    assert np.array_equal(codes, expected)

    new = meeting.new_side(codes)
    weighted = meeting.weighted_by_new(kind, con, new)
    np.testing.assert_allclose(weighted[meeting.groups.of_row[:m]].T, codes @ S, atol=1e-9)
    Z = K * codes @ S + con.mu * P @ Le
    swept = meeting.existing_codes(new, weighted, con.mu * anchors, bit_by_bit=True)[:, meeting.past_of_row]
    assert np.array_equal(swept, plain_sweep(old.copy(), Z, codes @ codes.T))
    Z = K * codes @ S - con.mu * P @ Le
    at_once = meeting.existing_codes(new, weighted, -con.mu * anchors, bit_by_bit=False)[
        :, meeting.past_of_row
    ]
    assert np.array_equal(at_once, np.where(2 * Z - codes @ codes.T @ old >= 0, 1, -1))

    solved = stage.label_projection(meeting.groups.sets, C, meeting.past, new, con)
    right = con.mu * old @ Le.T + con.theta * codes @ Ls.T
    gram = con.theta * Ls @ Ls.T + con.mu * Le @ Le.T + con.tau * np.eye(C)
    np.testing.assert_allclose(solved, right @ np.linalg.inv(gram), atol=1e-9)


@settings(max_examples=20)
@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_a_sweep_never_raises_the_objective(n, m, seed):
    """Bit by bit is a minimiser, the authors' step for existing codes is not."""
    old_sets, new_sets, old, rng = problem(seed, n, m)
    meeting = stage.meet(stage.packed(old), old_sets, new_sets, C, K, np.float64)
    S = plain_s("graded", new_sets, old_sets, 1.0, 0.2)
    con = stage.Constants(0.5, 0.8, 1.0, 0.2, 1.5, 0.5, 5.0)
    Bs = np.where(rng.random((K, n)) < 0.5, 1.0, -1.0)
    P = rng.standard_normal((K, C))
    anchors = con.mu * (P @ meeting.groups.sets.multi_hot(C, float).T).T
    new = meeting.new_side(Bs)
    changed = meeting.existing_codes(
        new, meeting.weighted_by_new("graded", con, new), anchors, bit_by_bit=True
    )

    def objective(Be):
        PL = P @ old_sets.multi_hot(C, float).T
        return np.sum((Bs.T @ Be - K * S) ** 2) + con.mu * np.sum((Be - PL) ** 2)

    assert objective(changed[:, meeting.past_of_row]) <= objective(old) + 1e-6


def test_blocks_do_not_matter(monkeypatch):
    old_sets, new_sets, old, _ = problem(0, 9, 25, repeat=False)
    meeting = stage.meet(stage.packed(old), old_sets, new_sets, C, K, np.float64)
    whole = meeting.weighted_by_past("graded", SINGLE_LABEL)
    monkeypatch.setattr(similarity, "BLOCK_PAIRS", 1)
    np.testing.assert_allclose(meeting.weighted_by_past("graded", SINGLE_LABEL), whole, atol=1e-12)


def test_existing_rows_are_reduced_to_the_different_ones():
    old_sets, new_sets, old, _ = problem(0, 3, 40)
    meeting = stage.meet(stage.packed(old), old_sets, new_sets, C, K, np.float64)
    assert meeting.past.codes.shape[1] <= 20
    assert np.array_equal(meeting.past.codes[:, meeting.past_of_row], old)
    assert meeting.past.counts.sum() == 40


@pytest.mark.parametrize("rows", [10, 5000])
def test_evidence_of_small_batches(rows):
    old_sets, new_sets, old, rng = problem(0, rows, 40)
    meeting = stage.meet(stage.packed(old), old_sets, new_sets, C, K, np.float64)
    evidence = meeting.evidence(np.where(rng.random((K, rows)) < 0.5, 1.0, -1.0))
    assert evidence.counts.sum() == (50 if rows == 10 else rows)


def test_no_past_at_all():
    new_sets = LabelSets.of([[0], [1]])
    empty = stage.packed(np.zeros((K, 0)))
    meeting = stage.meet(empty, LabelSets.empty(), new_sets, 2, K, np.float64)
    weighted = meeting.weighted_by_past("graded", SINGLE_LABEL)
    assert not weighted.any()
    codes = meeting.new_codes(np.ones((K, 2)), weighted, np.zeros((2, K)))
    assert (codes == 1).all()
    assert meeting.evidence(codes).codes.shape == (K, 2)


def test_balance_makes_both_kinds_of_pairs_weigh_the_same():
    for labels in (2, 10, 200):
        groups = LabelSets.single(np.arange(2000) % labels).group()
        eta_s, eta_d = similarity.balance("equal", groups, labels, 1.6, 0.2)
        sizes = groups.sizes
        same = (sizes * (sizes - 1)).sum()
        assert eta_s * same == pytest.approx(eta_d * (2000 * 1999 - same))
        assert eta_s >= 1.6
        assert eta_d >= 0.2
    only = LabelSets.single(np.zeros(50)).group()
    assert similarity.balance("equal", only, 1, 1.6, 0.2) == (1.6, 0.2)
    all_different = LabelSets.single(np.arange(50)).group()
    assert similarity.balance("graded", all_different, 50, 1.0, 0.11) == (1.0, 0.11)


def test_transcription_is_the_authors_loop():
    """What the benchmark compares with gives the same W as the learner."""
    from foh_pg.learners import FOH

    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 7)), rng.integers(3, size=60)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    learner = FOH(bits=8, preset="paper", center=False).partial_fit(X[:40], Y[:40])
    W, P = learner.stage_projection_, learner.label_projection_
    hot = np.eye(3)[Y].T
    Be = authors.sgn(W.T @ X[:40].T)
    expected = authors.stage(W, P, Be, hot[:, :40], X[40:].T, hot[:, 40:])
    learner.partial_fit(X[40:], Y[40:])
    np.testing.assert_allclose(learner.stage_projection_, expected[0], atol=1e-9)
    np.testing.assert_allclose(learner.label_projection_, expected[1], atol=1e-9)
