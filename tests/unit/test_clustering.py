"""The pool on plain arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foh_pg import clustering
from foh_pg.arrays.codes import hamming, nearest, pack, smallest, unpack
from foh_pg.clustering import homes as homes_module
from foh_pg.clustering import kmeans, levels
from foh_pg.clustering.signs import majority
from foh_pg.errors import InputError
from foh_pg.geometry import Geometry, default_bits, padded_numbers

METRICS = ["cosine", "l2", "ip"]


def clustered(rows, dimensions=6, clusters=5, seed=0):
    rng = np.random.default_rng(seed)
    centers = 3 * rng.standard_normal((clusters, dimensions))
    X = centers[rng.integers(clusters, size=rows)] + rng.standard_normal((rows, dimensions))
    return pack(X > 0), X


def coded(rows, dimensions=6, clusters=5, seed=0):
    """Rows, compared by their angle, their bits, and how these are made: few, so that many are equally near."""
    X = clustered(rows, dimensions, clusters, seed)[1]
    geometry = Geometry.fit(X, 2 * padded_numbers(dimensions), "cosine", 0)
    compared = geometry.compared(X)
    return geometry.encode_compared(compared), compared, geometry


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
        rows = np.ones((50, 3), dtype=np.float32)
        made = clustering.make_levels(np.random.default_rng(0), rows, 20)
        assert len(made.centers) == 20
        geometry = Geometry.fit(rows, default_bits(3), "cosine", 0)
        found = clustering.by_bits(made, rows, geometry)
        assert len(set(clustering.find_homes(geometry.encode(rows), found, geometry.layout).tolist())) == 1

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
        assert [clustering.target_areas(centers) for centers in (1600, 10_000, 100_000)] == [40, 250, 2154]

    def test_centers_by_bits_are_means_of_their_rows(self):
        bits, X, geometry = coded(2000, clusters=30)
        made = clustering.make_levels(np.random.default_rng(0), X, 100)
        found = clustering.by_bits(made, X, geometry)
        assert len(found.centers) == 100
        assert np.array_equal(np.unique(found.area_of), np.arange(len(found.areas)))
        assert np.array_equal(found.area_of, hamming(found.centers, found.areas).argmin(axis=1))
        apart = hamming(bits, found.centers).min(axis=1).mean()
        assert apart < hamming(bits, geometry.encode_compared(made.centers)).min(axis=1).mean()

    def test_the_majority_and_what_was_before_where_there_is_none(self):
        rows = pack([[1, 1, 0, 0], [1, 0, 1, 0]])
        before = pack([[0, 1, 0, 1], [1, 1, 1, 1]])
        assert unpack(majority(rows, np.array([0, 0]), before), 4).tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]


def homes_of(bits, centers, layout, among=None):
    """The definition: of the eight nearest centers by bits the nearest by all looks, the first of equal ones."""
    far = hamming(bits, centers).astype(int)
    looks = far + sum(hamming(moved, centers).astype(int) for moved in layout.moved(bits))
    if among is not None:
        far, looks = (np.where(among, values, 10_000) for values in (far, looks))
    near = smallest(far, 8)
    taken = np.full(far.shape, 20_000)
    np.put_along_axis(taken, near, np.take_along_axis(looks, near, axis=1), axis=1)
    return taken.argmin(axis=1)


class TestHomes:
    @settings(max_examples=50)
    @given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 2**32 - 1))
    def test_with_all_areas_homes_are_the_nearest_centers(self, n, u, seed):
        """Of centers that are equally near, which are many with six dimensions, the first counts."""
        bits, X, geometry = coded(n + u, seed=seed)
        made = clustering.make_levels(np.random.default_rng(seed), X[n:], u)
        made = clustering.by_bits(made, X[n:], geometry)
        found = clustering.find_homes(bits[:n], made, geometry.layout, looked=len(made.areas))
        assert np.array_equal(found, homes_of(bits[:n], made.centers, geometry.layout))

    @pytest.mark.parametrize("looked", [8, 20])
    def test_the_nearest_areas_are_looked_at(self, looked, monkeypatch):
        monkeypatch.setattr(levels, "AREA_CENTERS", 5)
        bits, X, geometry = coded(2000, dimensions=12, clusters=40)
        layout = geometry.layout
        made = clustering.by_bits(clustering.make_levels(np.random.default_rng(0), X, 150), X, geometry)
        assert len(made.areas) > 20
        near = nearest(bits, made.areas, looked)[0]
        among = (made.area_of[None, None, :] == near[:, :, None]).any(axis=1)
        found = clustering.find_homes(bits, made, layout, looked=looked)
        assert np.array_equal(found, homes_of(bits, made.centers, layout, among))
        quick = clustering.find_homes(bits, made, layout, looked=looked, quick=True)
        assert (quick == found).mean() > 0.98

    def test_a_search_by_a_row_reads_its_home(self):
        """Of 50 lists six are read, and the home is among them for each of 1 500 rows."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 48))[rng.integers(40, size=1500)] + rng.normal(size=(1500, 48))
        geometry = Geometry.fit(X, default_bits(48), "cosine", 0)
        rows = geometry.compared(X)
        made = clustering.make_levels(rng, rows, 50)
        found = clustering.by_bits(made, rows, geometry)
        homes = clustering.find_homes(geometry.encode(X), found, geometry.layout)
        read = clustering.ListsRead(geometry.query_looks(X), found).by(6)
        assert read.sum(axis=1).tolist() == [6] * 1500
        assert read[np.arange(1500), homes].all()

    def test_more_areas_are_looked_into_where_there_are_many(self):
        assert [clustering.near_areas(16, areas) for areas in (5, 40, 160, 640)] == [10, 10, 20, 40]

    def test_blocks_do_not_matter(self, monkeypatch):
        bits, X, geometry = coded(300)
        made = clustering.by_bits(clustering.make_levels(np.random.default_rng(0), X, 30), X, geometry)
        whole = clustering.find_homes(bits, made, geometry.layout)
        monkeypatch.setattr(homes_module, "BLOCK_ROWS", 7)
        assert np.array_equal(whole, clustering.find_homes(bits, made, geometry.layout))


class TestSplits:
    def test_pieces_are_no_longer_than_asked(self):
        bits, _, geometry = coded(400, dimensions=12, clusters=4)
        piece = clustering.split_list(np.random.default_rng(0), bits, 120)
        lengths = np.bincount(piece)
        assert len(lengths) >= 4
        assert 0 < lengths.min() <= lengths.max() <= 120
        centers = geometry.means(bits, piece, bits[: len(lengths)])
        assert (clustering.nearest_bits(bits, centers) == piece).mean() > 0.9

    def test_at_most_so_many_pieces(self):
        bits = coded(400, clusters=4)[0]
        for pieces in (3, 1):
            assert clustering.split_list(np.random.default_rng(0), bits, 10, pieces).max() == pieces - 1

    def test_pieces_draw_few_rows_from_lists_around(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 48))[rng.integers(40, size=4000)] + rng.normal(size=(4000, 48))
        geometry = Geometry.fit(X, default_bits(48), "cosine", 0)
        bits, rows = geometry.encode(X), geometry.compared(X)
        made = clustering.make_levels(np.random.default_rng(1), rows, 120)
        levels = clustering.by_bits(made, rows, geometry)
        home = clustering.find_homes(bits, levels, geometry.layout)
        lengths, drawn = np.bincount(home, minlength=120), 0
        for long in np.argsort(-lengths)[:10]:
            piece = clustering.split_list(rng, bits[home == long], 0.6 * lengths[long])
            pieces = geometry.means(bits[home == long], piece, bits[: piece.max() + 1])
            others = np.delete(levels.centers, long, axis=0)
            after = clustering.group_centers(levels.areas, np.concatenate([others, pieces]))
            found = clustering.find_homes(bits, after, geometry.layout)
            drawn += int(((found >= len(others)) & (home != long)).sum())
        assert drawn < 20

    def test_identical_members_are_not_split(self):
        assert not clustering.split_list(np.random.default_rng(0), pack(np.ones((300, 30))), 50).any()


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


def test_centers_need_a_row():
    _, X, _ = coded(10)
    with pytest.raises(InputError, match="without a row"):
        clustering.make_levels(np.random.default_rng(0), X[:0], 4)
