"""The pool on plain arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foh_pg import clustering
from foh_pg.arrays.codes import pack, unpack
from foh_pg.clustering import homes as homes_module
from foh_pg.clustering import kmeans, levels, neighbors
from foh_pg.errors import InputError

METRICS = ["cosine", "l2", "ip"]


def clustered(rows, dimensions=6, clusters=5, seed=0):
    rng = np.random.default_rng(seed)
    centers = 3 * rng.standard_normal((clusters, dimensions))
    X = centers[rng.integers(clusters, size=rows)] + rng.standard_normal((rows, dimensions))
    return pack(X > 0), X


def distances(rows, centers, metric):
    """The definition, pair by pair, in double precision."""
    if metric != "cosine":
        return np.linalg.norm(rows[:, None] - centers[None], axis=2)
    lengths = np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(centers, axis=1)
    return 1 - (rows @ centers.T) / lengths


class TestLevels:
    @settings(max_examples=40)
    @given(st.integers(1, 300), st.integers(1, 80), st.sampled_from(METRICS), st.integers(0, 2**32 - 1))
    def test_there_are_as_many_centers_as_asked_for_and_none_without_area(self, n, u, metric, seed):
        X = clustered(n, seed=seed)[1]
        areas, centers, area_of = clustering.make_levels(np.random.default_rng(seed), X, u, metric)
        assert len(centers) == min(u, n)
        assert (np.diff(area_of) >= 0).all()
        assert np.array_equal(np.unique(area_of), np.arange(len(areas)))
        assert len(areas) <= clustering.target_areas(min(u, n))
        assert np.isfinite(centers).all()
        if metric == "cosine":
            np.testing.assert_allclose(np.linalg.norm(centers, axis=1), 1, atol=1e-5)
            np.testing.assert_allclose(np.linalg.norm(areas, axis=1), 1, atol=1e-5)

    @pytest.mark.parametrize("metric", METRICS)
    def test_the_same_seed_gives_the_same_centers(self, metric):
        X = clustered(500)[1]
        first, second = (clustering.make_levels(np.random.default_rng(3), X, 40, metric) for _ in range(2))
        assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
        other = clustering.make_levels(np.random.default_rng(4), X, 40, metric)
        assert not np.array_equal(first.centers, other.centers)

    @pytest.mark.parametrize("metric", ["cosine", "l2"])
    def test_means_are_nearer_than_rows(self, metric):
        """Centers that are means lie nearer to the rows than as many rows drawn at random."""
        X = clustered(2000, dimensions=16, clusters=30)[1]
        rng = np.random.default_rng(0)
        made = clustering.make_levels(rng, X, 100, metric)
        found = distances(X, made.centers, metric).min(axis=1).mean()
        drawn = distances(X, X[rng.choice(2000, 100, replace=False)], metric).min(axis=1).mean()
        assert found < 0.9 * drawn

    def test_rows_that_are_all_alike(self):
        areas, centers, area_of = clustering.make_levels(np.random.default_rng(0), np.ones((50, 3)), 20)
        assert len(centers) == 20
        assert clustering.find_homes(np.ones((5, 3)), areas, centers, area_of).shape == (5, 1)

    def test_opposite_rows_have_no_mean_direction(self):
        X = np.array([[1.0, 0.0], [-1.0, 0.0]] * 20)
        centers = kmeans.cluster(np.random.default_rng(0), X.astype(np.float32), 1, 5, "cosine")
        assert np.linalg.norm(centers[0]) == pytest.approx(1)

    def test_a_center_that_loses_all_rows_starts_again(self):
        X = np.concatenate([np.zeros((50, 2)), np.eye(2) * 9]).astype(np.float32)
        found = kmeans.cluster(np.random.default_rng(0), X, 3, 8, "l2")
        assert {tuple(row) for row in found.tolist()} == {(0, 0), (9, 0), (0, 9)}

    def test_targets(self):
        assert clustering.target_centers(60_000) == 1533
        assert clustering.target_centers(60_000, fixed=500) == 500
        assert clustering.target_centers(1) == clustering.target_centers(0) == 1
        assert clustering.target_areas(1533) == 39
        # From a million rows on, lists and areas do not become longer.
        assert [clustering.target_centers(rows) for rows in (500_000, 10**6, 10**7)] == [
            6300,
            10_000,
            100_000,
        ]
        assert [clustering.target_areas(centers) for centers in (6300, 10_000, 100_000)] == [79, 100, 1000]
        with pytest.raises(InputError):
            clustering.target_centers(10, fixed=0)

    def test_centers_that_are_there_are_grouped(self):
        centers = clustered(300)[1]
        areas, area_of = clustering.group_centers(np.random.default_rng(0), centers)
        assert len(areas) == clustering.target_areas(300)
        assert np.array_equal(np.unique(area_of), np.arange(len(areas)))


class TestHomes:
    @settings(max_examples=50)
    @given(
        st.sampled_from(METRICS),
        st.integers(1, 30),
        st.integers(1, 40),
        st.integers(1, 5),
        st.integers(0, 2**32 - 1),
    )
    def test_with_all_areas_homes_are_the_nearest_centers(self, metric, n, u, homes, seed):
        X = clustered(n + u, seed=seed)[1]
        made = clustering.make_levels(np.random.default_rng(seed), X[n:], u, metric)
        found = clustering.find_homes(X[:n], *made, homes=homes, metric=metric, near_areas=len(made.areas))
        expected = distances(X[:n], made.centers, metric)
        assert found.shape == (n, min(homes, len(made.centers)))
        assert (np.diff(np.sort(found, axis=1), axis=1) > 0).all()
        np.testing.assert_allclose(
            np.take_along_axis(expected, found, axis=1),
            np.sort(expected, axis=1)[:, :homes],
            atol=2e-3,
        )

    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("looked", [clustering.NEAR_AREAS, 20])
    def test_the_nearest_areas_are_looked_at(self, metric, looked, monkeypatch):
        monkeypatch.setattr(levels, "AREA_CENTERS", 5)
        X = clustered(2000, dimensions=12, clusters=40)[1]
        made = clustering.make_levels(np.random.default_rng(0), X, 150, metric)
        assert len(made.areas) == 30
        near = np.argsort(distances(X, made.areas, metric), axis=1)[:, :looked]
        among = (made.area_of[None, None, :] == near[:, :, None]).any(axis=1)
        far = np.where(among, distances(X, made.centers, metric), np.inf)
        found = clustering.find_homes(X, *made, metric=metric, near_areas=looked)[:, 0]
        np.testing.assert_allclose(far[np.arange(2000), found], far.min(axis=1), atol=1e-4)

    def test_more_areas_where_four_have_too_few_centers(self):
        areas = centers = np.eye(8)
        found = clustering.find_homes(np.ones((1, 8)), areas, centers, np.arange(8), homes=7)
        assert len(np.unique(found)) == 7

    def test_blocks_do_not_matter(self, monkeypatch):
        X = clustered(300)[1]
        made = clustering.make_levels(np.random.default_rng(0), X, 30)
        whole = clustering.find_homes(X, *made, homes=2)
        monkeypatch.setattr(homes_module, "BLOCK_ROWS", 7)
        monkeypatch.setattr(kmeans, "BLOCK_PAIRS", 1)
        assert np.array_equal(whole, clustering.find_homes(X, *made, homes=2))

    def test_a_row_of_zeros_has_a_home(self):
        X = clustered(10)[1]
        made = clustering.make_levels(np.random.default_rng(0), X, 4)
        assert clustering.find_homes(np.zeros((1, 6)), *made).shape == (1, 1)


class TestNeighbors:
    def plain(self, codes, rows, center_codes, center_rows, metric):
        different = (unpack(codes, 6)[:, None] != unpack(center_codes, 6)[None]).sum(axis=2)
        far = distances(rows, center_rows, metric)
        return different + (far / 4.001 if metric == "cosine" else 0.499 * far / (1 + far))

    @settings(max_examples=50)
    @given(st.sampled_from(METRICS), st.integers(1, 30), st.integers(1, 9), st.integers(0, 2**32 - 1))
    def test_distances_are_the_definition(self, metric, n, u, seed):
        codes, X = clustered(n + u, seed=seed)
        expected = self.plain(codes[:n], X[:n], codes[n:], X[n:], metric).T
        near = clustering.find_neighbors(
            codes[n:], X[n:], codes[:n], X[:n], bits=6, neighbors=4, metric=metric
        )
        chosen = np.take_along_axis(expected, near, axis=1)
        np.testing.assert_allclose(chosen, np.sort(expected, axis=1)[:, :4], atol=2e-3)
        first = near[:, 0]
        rowwise = clustering.pool_distance(codes[first], X[first], codes[n:], X[n:], bits=6, metric=metric)
        np.testing.assert_allclose(rowwise, chosen[:, 0], atol=2e-3)

    @pytest.mark.parametrize("metric", METRICS)
    def test_a_bit_outweighs_any_distance(self, metric):
        code = pack([[1, 0]])
        far, near = np.array([[-1e6, 0.0]]), np.array([[1.0, 0.0]])
        center = np.array([[1.0, 0.0]])
        same = clustering.pool_distance(code, far, code, center, bits=2, metric=metric)
        other = clustering.pool_distance(pack([[1, 1]]), near, code, center, bits=2, metric=metric)
        assert same[0] < other[0]

    def test_ties_by_code_go_by_embedding_then_by_order(self, monkeypatch):
        code = pack(np.zeros((1, 4)))
        rows = np.array([[1.0, 0.0], [0.1, 1.0], [0.1, 1.0]])
        codes = np.repeat(code, 3, axis=0)
        for pairs in (neighbors.BLOCK_PAIRS, 1):
            monkeypatch.setattr(neighbors, "BLOCK_PAIRS", pairs)
            found = clustering.find_neighbors(code, np.array([[0.0, 1.0]]), codes, rows, bits=4, neighbors=3)
            assert found[0].tolist() == [1, 2, 0]

    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=30), st.integers(1, 5))
    def test_keep_nearest(self, candidates, keep):
        centers = np.array([center for center, _ in candidates], dtype=np.int64)
        values = np.array([value for _, value in candidates], dtype=np.float32)
        expected = []
        for center in sorted(set(centers.tolist())):
            mine = [i for i, c in enumerate(centers) if c == center]
            expected += sorted(mine, key=lambda i: values[i])[:keep]
        assert clustering.keep_nearest(centers, values, keep).tolist() == expected

    def test_the_papers_pool_loses_rows_and_homes_do_not(self):
        """Where codes tie, the v nearest by Hamming distance leave rows in no list."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((3000, 8))
        codes = pack(np.repeat(X[:, :2] > 0, 4, axis=1))
        centers = rng.choice(3000, 50, replace=False)
        near = clustering.find_neighbors(codes[centers], X[centers], codes, X, bits=8, neighbors=300)
        assert len(np.unique(near)) < 3000


class TestSplits:
    @pytest.mark.parametrize("metric", METRICS)
    def test_pieces_are_no_longer_than_asked(self, metric):
        X = clustered(400, clusters=4)[1]
        centers, piece = clustering.split_list(np.random.default_rng(0), X, 120, metric)
        lengths = np.bincount(piece)
        assert len(centers) == len(lengths) >= 4
        assert 0 < lengths.min() <= lengths.max() <= 120
        assert (clustering.nearest_center(X, centers, metric) == piece).mean() > 0.9

    def test_at_most_so_many_pieces(self):
        X = clustered(400, clusters=4)[1]
        assert len(clustering.split_list(np.random.default_rng(0), X, 10, pieces=3)[0]) == 3
        assert len(clustering.split_list(np.random.default_rng(0), X, 10, pieces=1)[0]) == 1

    def test_identical_members_are_not_split(self):
        centers, piece = clustering.split_list(np.random.default_rng(0), np.ones((300, 3)), 50)
        assert len(centers) == 1
        assert not piece.any()


def test_affected_lists():
    rng = np.random.default_rng(0)
    lists = np.repeat([0, 1, 3], [8, 3, 8])
    old = pack(rng.random((len(lists), 64)) < 0.5)
    new = old.copy()
    new[lists == 3, 0] ^= 0b11000000
    new[lists == 1, 0] ^= 0b11110000
    new[0, 7] ^= 1
    found = clustering.find_affected(lists, old, new, bits=64, total=4, max_stale=0.01)
    assert found.lists.tolist() == [1, 3]
    np.testing.assert_allclose(found.stale, [1 / 512, 4 / 64, 0, 2 / 64])
    assert clustering.find_affected(lists, old, old, bits=64, total=4).lists.tolist() == []
    assert clustering.find_affected(lists, old, new, bits=64, total=4, max_stale=0).lists.tolist() == [
        1,
        3,
        0,
    ]


def test_bad_input():
    codes, X = clustered(10)
    made = clustering.make_levels(np.random.default_rng(0), X, 4)
    with pytest.raises(InputError, match="metric"):
        clustering.find_homes(X, *made, metric="hamming")
    with pytest.raises(InputError, match="dimensions"):
        clustering.find_homes(X[:, :3], *made)
    with pytest.raises(InputError, match="2-d"):
        clustering.find_homes(X[0], *made)
    with pytest.raises(InputError, match="homes"):
        clustering.find_homes(X, *made, homes=0)
    with pytest.raises(InputError, match="no center"):
        clustering.find_homes(X, X[:0], X[:0], np.zeros(0, dtype=np.int64))
    with pytest.raises(InputError, match="neighbors"):
        clustering.find_neighbors(codes, X, codes, X, bits=6, neighbors=0)
    with pytest.raises(InputError, match="embeddings"):
        clustering.find_neighbors(codes, X[:5], codes, X, bits=6, neighbors=1)
    with pytest.raises(InputError, match="without a row"):
        clustering.make_levels(np.random.default_rng(0), X[:0], 4)
    with pytest.raises(InputError, match="at least 1"):
        clustering.make_levels(np.random.default_rng(0), X, 0)
