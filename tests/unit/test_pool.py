"""The query pool on plain arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from foh_pg import pool
from foh_pg.codes import pack, unpack
from foh_pg.errors import InputError
from foh_pg.pool import distance


def clustered(rows, dimensions=6, clusters=5, seed=0):
    rng = np.random.default_rng(seed)
    centers = 3 * rng.standard_normal((clusters, dimensions))
    X = centers[rng.integers(clusters, size=rows)] + rng.standard_normal((rows, dimensions))
    return pack(X > 0), X


def plain(codes, rows, center_codes, center_rows, bits, metric, blend):
    """The definition, pair by pair, in double precision."""
    different = (unpack(codes, bits)[:, None] != unpack(center_codes, bits)[None]).sum(axis=2)
    if metric == "l2":
        far = np.linalg.norm(rows[:, None] - center_rows[None], axis=2)
    elif metric == "ip":
        far = -(rows @ center_rows.T)
    else:
        far = 1 - (rows @ center_rows.T) / (
            np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(center_rows, axis=1)
        )
    return different / bits + blend * far


@settings(max_examples=50)
@given(
    st.sampled_from(["cosine", "l2", "ip"]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.integers(1, 30),
    st.integers(1, 9),
    st.integers(0, 2**32 - 1),
)
def test_distances_are_the_definition(metric, blend, n, u, seed):
    codes, X = clustered(n + u, seed=seed)
    options = {"bits": 6, "metric": metric, "blend": blend}
    expected = plain(codes[:n], X[:n], codes[n:], X[n:], **options)
    blocks = list(pool.blend_blocks(codes[:n], X[:n], codes[n:], X[n:], **options))
    assert [start for start, _ in blocks] == sorted(start for start, _ in blocks)
    np.testing.assert_allclose(np.concatenate([block for _, block in blocks]), expected, atol=2e-3)
    home = pool.find_homes(codes[:n], X[:n], codes[n:], X[n:], homes=3, **options)
    assert home.shape == (n, min(3, u))
    chosen = np.take_along_axis(expected, home, axis=1)
    np.testing.assert_allclose(chosen, np.sort(expected, axis=1)[:, :3], atol=2e-3)
    near = pool.find_neighbors(codes[n:], X[n:], codes[:n], X[:n], neighbors=4, **options)
    np.testing.assert_allclose(
        np.take_along_axis(expected.T, near, axis=1), np.sort(expected.T, axis=1)[:, :4], atol=2e-3
    )
    rowwise = pool.blend_rows(codes[:n], X[:n], codes[n:][home[:, 0]], X[n:][home[:, 0]], **options)
    np.testing.assert_allclose(rowwise, chosen[:, 0], atol=2e-3)


def test_blocks_do_not_matter(monkeypatch):
    codes, X = clustered(300)
    whole = pool.find_homes(codes, X, codes[:20], X[:20], bits=6, homes=2)
    monkeypatch.setattr(distance, "BLOCK_PAIRS", 1)
    assert np.array_equal(whole, pool.find_homes(codes, X, codes[:20], X[:20], bits=6, homes=2))


def test_ties_by_code_go_by_embedding_then_by_order():
    code = pack(np.zeros((1, 4)))
    rows = np.array([[0.0, 1.0]])
    centers = np.array([[1.0, 0.0], [0.1, 1.0], [0.1, 1.0]])
    codes = np.repeat(code, 3, axis=0)
    assert pool.find_homes(code, rows, codes, centers, bits=4)[0, 0] == 1
    assert pool.find_homes(code, rows, codes, centers, bits=4, blend=0)[0, 0] == 0
    assert pool.find_homes(code, rows, codes, centers, bits=4, homes=3)[0].tolist() == [1, 2, 0]


def test_a_row_of_zeros_has_a_home():
    codes, X = clustered(10)
    X[0] = 0
    assert np.isfinite(pool.blend_rows(codes, X, codes, X, bits=6)).all()
    assert pool.find_homes(codes[:1], X[:1], codes[1:], X[1:], bits=6).shape == (1, 1)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=30), st.integers(1, 5))
def test_keep_nearest(candidates, keep):
    centers = np.array([center for center, _ in candidates], dtype=np.int64)
    values = np.array([value for _, value in candidates], dtype=np.float32)
    expected = []
    for center in sorted(set(centers.tolist())):
        mine = [i for i, c in enumerate(centers) if c == center]
        expected += sorted(mine, key=lambda i: values[i])[:keep]
    assert pool.keep_nearest(centers, values, keep).tolist() == expected


def test_the_papers_pool_loses_rows_and_homes_do_not():
    """Where codes tie, the v nearest by Hamming distance leave rows in no list."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 8))
    codes = pack(np.repeat(X[:, :2] > 0, 4, axis=1))
    centers = rng.choice(3000, 50, replace=False)
    near = pool.find_neighbors(codes[centers], X[centers], codes, X, bits=8, neighbors=300, blend=0)
    assert len(np.unique(near)) < 3000
    built = pool.build(rng, codes, X, bits=8, probes=1)
    assert len(built.home) == 3000


@pytest.mark.parametrize("fixed", [None, 40])
def test_centers_are_a_uniform_sample_of_the_whole_stream(fixed):
    """Chi-square over ten equal parts of the stream, which comes in uneven batches."""
    hits = np.zeros(10)
    sizes = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        where, priorities, seen = np.zeros(0, dtype=np.int64), np.zeros(0), 0
        for batch in (150, 50, 400, 100, 300):
            target = pool.target_centers(seen + batch, 2, fixed)
            change = pool.sample_centers(rng, priorities, batch, seen + batch, target)
            where = np.concatenate([np.delete(where, change.dropped), seen + change.chosen])
            priorities = np.concatenate([np.delete(priorities, change.dropped), change.priorities])
            seen += batch
        hits += np.bincount(where // 100, minlength=10)
        sizes.append(len(where))
    assert stats.chisquare(hits).pvalue > 0.001
    assert np.mean(sizes) == pytest.approx(pool.target_centers(1000, 2, fixed), rel=0.05)


def test_a_restarted_counter_would_be_noticed():
    """The authors' reservoir restarts its counter every batch; the same test then fails."""
    hits = np.zeros(10)
    for seed in range(150):
        rng = np.random.default_rng(seed)
        where, priorities = np.zeros(0, dtype=np.int64), np.zeros(0)
        for start in range(0, 1000, 100):
            change = pool.sample_centers(rng, priorities, 100, 140, 40)
            where = np.concatenate([np.delete(where, change.dropped), start + change.chosen])[-40:]
            priorities = np.zeros(len(where))
        hits += np.bincount(where // 100, minlength=10)
    assert stats.chisquare(hits).pvalue < 1e-6


def test_there_is_always_a_center():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        change = pool.sample_centers(rng, np.zeros(0), 3, 3, 1)
        assert len(change.chosen) >= 1
        later = pool.sample_centers(rng, change.priorities, 2, 1000, 1)
        assert len(change.priorities) - len(later.dropped) + len(later.chosen) >= 1


def test_target():
    assert pool.target_centers(60_000, 10) == 775
    assert pool.target_centers(60_000, 10, fixed=500) == 500
    assert pool.target_centers(3, 100) == 3
    assert pool.target_centers(0, 10) == 1
    with pytest.raises(InputError):
        pool.target_centers(10, 10, fixed=0)


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
def test_splitting_a_list(metric):
    codes, X = clustered(400, clusters=4)
    rng = np.random.default_rng(0)
    chosen, piece = pool.split_list(rng, codes, X, codes[:1], X[:1], pieces=5, bits=6, metric=metric)
    assert len(chosen) == 4
    assert len(np.unique(chosen)) == 4
    assert set(np.unique(piece)) <= set(range(5))
    assert (piece[chosen] == np.arange(1, 5)).all()
    assert np.bincount(piece, minlength=5).max() < 400


def test_identical_members_are_not_split():
    codes, X = np.repeat(pack(np.eye(1, 8)), 30, axis=0), np.ones((30, 3))
    chosen, piece = pool.split_list(np.random.default_rng(0), codes, X, codes[:1], X[:1], pieces=4, bits=8)
    assert len(chosen) == 0
    assert not piece.any()


@settings(max_examples=40)
@given(
    st.integers(1, 400),
    st.integers(1, 20),
    st.sampled_from(["cosine", "l2", "ip"]),
    st.integers(0, 2**32 - 1),
)
def test_every_row_has_a_home_and_every_center_a_row(n, probes, metric, seed):
    codes, X = clustered(n, seed=seed)
    built = pool.build(np.random.default_rng(seed), codes, X, bits=6, probes=probes, metric=metric)
    assert built.home.shape == (n,)
    assert (np.bincount(built.home, minlength=len(built.centers)) > 0).all()
    assert len(built.centers) == len(built.priorities) <= n
    assert len(np.unique(built.centers)) == len(built.centers)


def test_long_lists_are_split():
    codes, X = clustered(5000, clusters=3)
    lengths = {}
    for limit in (1.5, np.inf):
        built = pool.build(np.random.default_rng(1), codes, X, bits=6, centers=20, longest=limit)
        lengths[limit] = np.bincount(built.home)
        assert (built.priorities < 0).any() == (limit == 1.5)
    assert lengths[1.5].max() < lengths[np.inf].max()
    assert len(lengths[1.5]) > len(lengths[np.inf])


def test_affected_lists():
    rng = np.random.default_rng(0)
    lengths = np.array([100, 3, 0, 50])
    lists, members = pool.sample_members(rng, lengths, 8)
    assert np.bincount(lists, minlength=4).tolist() == [8, 3, 0, 8]
    assert (members < lengths[lists]).all()
    assert len(np.unique(lists * 1000 + members)) == len(lists)
    old = pack(rng.random((len(lists), 64)) < 0.5)
    new = old.copy()
    new[lists == 3, 0] ^= 0b11000000
    new[lists == 1, 0] ^= 0b11110000
    new[0, 7] ^= 1
    found = pool.find_affected(lists, old, new, bits=64, total=4, max_stale=0.01)
    assert found.lists.tolist() == [1, 3]
    np.testing.assert_allclose(found.stale, [1 / 512, 4 / 64, 0, 2 / 64])
    assert pool.find_affected(lists, old, old, bits=64, total=4).lists.tolist() == []
    assert pool.find_affected(lists, old, new, bits=64, total=4, max_stale=0).lists.tolist() == [1, 3, 0]


def test_bad_input():
    codes, X = clustered(10)
    with pytest.raises(InputError, match="metric"):
        pool.find_homes(codes, X, codes, X, bits=6, metric="hamming")
    with pytest.raises(InputError, match="dimensions"):
        pool.find_homes(codes, X, codes, X[:, :3], bits=6)
    with pytest.raises(InputError, match="embeddings"):
        pool.find_homes(codes, X[:5], codes, X, bits=6)
    with pytest.raises(InputError, match="homes"):
        pool.find_homes(codes, X, codes, X, bits=6, homes=0)
    with pytest.raises(InputError, match="no center"):
        pool.find_homes(codes, X, codes[:0], X[:0], bits=6)
    with pytest.raises(InputError, match="neighbors"):
        pool.find_neighbors(codes, X, codes, X, bits=6, neighbors=0)
    with pytest.raises(InputError, match="at least one row"):
        pool.build(np.random.default_rng(0), codes[:0], X[:0], bits=6)
    with pytest.raises(InputError, match="cannot contain"):
        pool.sample_centers(np.random.default_rng(0), np.zeros(0), 5, 4, 2)
    with pytest.raises(InputError, match="at least 1"):
        pool.sample_members(np.random.default_rng(0), np.array([3]), 0)
