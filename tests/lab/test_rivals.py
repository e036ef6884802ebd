"""What is particular to each rival, beyond the checks of all learners and the authors' results."""

from __future__ import annotations

import numpy as np
import pytest

from foh_pg.arrays.labels import LabelSets
from foh_pg.errors import InputError, StateError
from foh_pg.learners import Learner
from lab.rivals import BSODH, HMOH, OKH, OSH, AdaptHash, MIHash, SketchHash, find, information, rankone
from lab.rivals.hadamard import hadamard_rows
from lab.rivals.pairs import share_a_label
from lab.rivals.recall import Recall
from tests.support import learner_checks as checks
from tests.support.golden_arrays import digits


def test_an_unknown_learner_is_an_error():
    assert find("hmoh") is HMOH
    with pytest.raises(InputError, match=r"only adapthash, .*foh, .*random"):
        find("nobody")


def test_a_state_is_restored_by_its_name():
    learner = OSH(8, seed=3).start(4)
    restored = Learner.from_state(learner.state())
    assert type(restored) is OSH
    with pytest.raises(StateError, match="state of a OSH, not of a HMOH"):
        HMOH.from_state(learner.state())


# Not AdaptHash: with the constants of its authors it gains nothing here, and neither did their program.
@pytest.mark.parametrize("name", ["bsodh", "foh", "hmoh", "mihash", "okh", "osh"])
def test_supervised_learners_beat_their_beginning(name):
    data = digits()
    learner = find(name)(32, warmup=100).start(64)
    before = data.mean_average_precision(learner)
    for start in range(0, 1500, 300):
        learner.partial_fit(data.train[start : start + 300], data.labels[start : start + 300])
    assert data.mean_average_precision(learner) > before + 0.1


@pytest.mark.parametrize(
    "make",
    [
        lambda: AdaptHash(8, alpha=1.5),
        lambda: AdaptHash(8, learning_rate=0),
        lambda: BSODH(8, lam=0),
        lambda: BSODH(8, memory=0),
        lambda: HMOH(8, order=12),
        lambda: HMOH(8, folding=np.ones((12, 8))),
        lambda: HMOH(8, order=16, folding=np.ones((8, 8))),
        lambda: HMOH(8, folding=np.ones((16, 7))),
        lambda: MIHash(8, reservoir=0),
        lambda: MIHash(8, decay=-1),
        lambda: OKH(8, anchors=0),
        lambda: OKH(8, alpha=-0.1),
        lambda: OSH(8, loss="log"),
        lambda: OSH(8, learning_rate=-1),
        lambda: OSH(8, codebook=np.ones((3, 7))),
        lambda: SketchHash(8, sketch=7),
        lambda: SketchHash(8, batch=0),
    ],
)
def test_refuses_parameters_that_make_no_sense(make):
    learner = make()
    with pytest.raises(InputError):
        learner.start(4)
    assert not learner.started


def test_refuses_an_initial_projection_of_another_shape():
    with pytest.raises(InputError, match=r"shape \(4, 8\), its shape is \(8, 4\)"):
        OSH(8, initial_projection=np.ones((8, 4))).start(4)


def test_blocks_give_what_a_plain_loop_gives():
    rng = np.random.default_rng(0)
    rows, wanted = rng.standard_normal((200, 9)), rng.choice([-1.0, 1.0], (200, 5))
    plain = rng.standard_normal((9, 5))
    blocked = plain.copy()

    def step(i, scores):
        return None if i % 7 == 0 else 0.1 * wanted[i] * (wanted[i] * scores < 1)

    for i, row in enumerate(rows):
        moved = step(i, row @ plain)
        if moved is not None:
            plain += np.outer(row, moved)
    rankone.run(blocked, rows, step)
    assert np.abs(plain - blocked).max() < 1e-12


class TestHMOH:
    def test_hadamard_rows_are_orthogonal(self):
        rows = hadamard_rows(np.arange(32), 32).astype(int)
        assert np.array_equal(rows @ rows.T, 32 * np.eye(32))
        with pytest.raises(InputError):
            hadamard_rows([0], 12)

    def test_rows_in_order_waste_bits_and_drawn_ones_do_not(self):
        X, _ = checks.sample()
        labels = np.arange(60) % 10
        ordered = HMOH(64, permute=False, warmup=0).partial_fit(X, labels).targets_
        drawn = HMOH(64, warmup=0).partial_fit(X, labels).targets_
        assert len(np.unique(ordered, axis=1).T) == 16
        assert len(np.unique(drawn, axis=1).T) > 40

    def test_labels_beyond_the_order_get_targets_too(self):
        X, _ = checks.sample()
        learner = HMOH(8, order=8, warmup=0).partial_fit(X, np.arange(60) % 8)
        known = learner.targets_.copy()
        learner.partial_fit(X, np.arange(60) % 30)
        assert learner.targets_.shape == (30, 8)
        assert np.array_equal(learner.targets_[:8], known)
        assert set(np.unique(learner.targets_)) == {-1, 1}

    def test_targets_of_label_sets_follow_the_majority_and_balance_ties(self):
        X, _ = checks.sample()
        learner = HMOH(16, warmup=0).partial_fit(X, np.arange(60) % 10)
        sets = LabelSets.of([[3], [1, 2], [1, 2, 4], [5, 6], [1, 2]])
        targets = learner._set_targets(sets).astype(int)
        sums = sets.multi_hot(10, int) @ learner.targets_.astype(int)
        assert np.array_equal(targets[sums != 0], np.sign(sums)[sums != 0])
        assert (targets != 0).all()
        # Two rows of the matrix agree in half of the bits, and ties can always be filled to balance.
        agreed = np.sign(sums[1]).sum()
        assert abs(targets[1].sum()) <= max(0, abs(agreed) - np.count_nonzero(sums[1] == 0))
        assert np.array_equal(targets[1], targets[4])
        assert not np.array_equal(targets[1], targets[3])

    def test_folding_turns_rows_of_the_matrix_into_signs(self):
        X, _ = checks.sample()
        folding = np.random.default_rng(0).standard_normal((16, 6))
        learner = HMOH(6, folding=folding, permute=False, warmup=0).partial_fit(X, np.arange(60) % 5)
        assert np.array_equal(learner.targets_ > 0, hadamard_rows(np.arange(5), 16) @ folding > 0)

    def test_average_is_that_of_all_iterates(self):
        X, Y = checks.sample(50)
        learner = HMOH(8, warmup=0, center=False)
        learner.normalize = False
        learner.partial_fit(X, Y)
        wanted = learner.targets_[[learner.label_names_.index(*y) for y in Y]]
        W, total = np.zeros((12, 8)), np.zeros((12, 8))
        for x, target in zip(X, wanted, strict=True):
            W += np.outer(x, target * ((x @ W > 0) != (target > 0)))
            total += W
        assert np.abs(learner.projection_ - total / 50).max() < 1e-10


class TestOSH:
    def test_every_label_has_a_codeword_of_its_own(self):
        X, Y = checks.sample()
        learner = OSH(32, warmup=0).partial_fit(X, Y)
        assert len(np.unique(learner.codewords_, axis=0)) == 4
        assert sorted(learner.word_of_) == [0, 1, 2, 3]

    def test_codewords_go_by_first_appearance(self):
        book = np.eye(4, 6, dtype=int)
        learner = OSH(6, codebook=book, warmup=0).partial_fit(np.eye(3), ["z", "a", "z"])
        learner.partial_fit(np.eye(3), ["a", "k", "z"])
        assert [int(learner.word_of_[learner.label_names_.index(name)]) for name in "zak"] == [0, 1, 2]
        assert np.array_equal(learner.codewords_ > 0, book[:3] > 0)

    def test_a_row_makes_one_step_for_each_label(self):
        row = np.array([[0.6, 0.8]])
        both = OSH(8, warmup=0, center=False).partial_fit(row, [{"a", "b"}])
        one_by_one = OSH(8, warmup=0, center=False).partial_fit(np.repeat(row, 2, axis=0), ["a", "b"])
        assert np.allclose(both.weights_, one_by_one.weights_)

    def test_boosting_survives_long_rows(self):
        X, Y = checks.sample()
        learner = OSH(64, loss="boosted", warmup=0)
        learner.normalize = False
        assert np.isfinite(learner.partial_fit(1e3 * X, Y).projection_).all()


class TestPairs:
    def test_it_does_not_matter_how_a_stream_is_cut(self):
        X, Y = checks.sample(61)
        options = {"warmup": 0, "center": False}
        whole = AdaptHash(8, **options).partial_fit(X, Y)
        pieces = AdaptHash(8, **options)
        for start in range(0, 61, 7):
            pieces.partial_fit(X[start : start + 7], Y[start : start + 7])
        assert np.abs(whole.projection_ - pieces.projection_).max() < 1e-12
        assert len(pieces.waiting_row_) == 1

    def test_forgets_the_row_that_waits(self):
        X, Y = checks.sample(61)
        learner = AdaptHash(8, warmup=0).partial_fit(X, Y)
        assert learner.forget_keys([3, 60]) == 1
        assert len(learner.waiting_row_) == 0
        assert learner.forget_keys([60]) == 0

    def test_share_a_label(self):
        a = LabelSets.of([[0, 3], [], [2], [1, 2]])
        b = LabelSets.of([[3], [1], [1], [0, 1, 2]])
        assert share_a_label(a, b).tolist() == [True, False, False, True]
        assert share_a_label(LabelSets.empty(2), LabelSets.empty(2)).tolist() == [False, False]


class TestOKH:
    def test_a_step_repairs_as_many_bits_as_are_wrong(self):
        learner = OKH(8, aggressiveness=1e9, anchors=5).start(3)
        pair = np.array([[1.0, 0, 0, 0, 0, 1], [0, 1.0, 0, 0, 0, 1]])
        W = np.random.default_rng(1).standard_normal((6, 8))
        scores = pair @ W
        violation = learner._violation(scores, True)
        assert violation > 1
        learner._step(W, pair, (pair**2).sum(axis=1), scores, True, violation)
        assert learner._violation(pair @ W, True) < violation

    def test_features_are_kernel_values_and_a_constant(self):
        X, Y = checks.sample()
        learner = OKH(8, anchors=6, warmup=0).partial_fit(X, Y)
        rows = learner._prepare(X)
        distances = ((rows[:, None] - learner.anchors_[None]) ** 2).sum(axis=2)
        expected = np.exp(-learner.gamma * distances / learner.spread_)
        assert np.allclose(learner._features(rows), np.hstack([expected, np.ones((60, 1))]))
        assert learner.spread_ == pytest.approx(distances.mean())


class TestMIHash:
    @staticmethod
    def information(distances, alike, bins, bits):
        centers = np.linspace(0, bits, bins + 1)
        weights = np.maximum(0, 1 - np.abs(distances[:, None] - centers) * bins / bits)

        def entropy(p):
            return -(p[p > 0] * np.log2(p[p > 0])).sum()

        share = alike.mean()
        return (
            entropy(weights.mean(axis=0))
            - share * entropy(weights[alike].mean(axis=0))
            - (1 - share) * entropy(weights[~alike].mean(axis=0))
        )

    def test_pull_is_the_slope_of_mutual_information(self):
        rng = np.random.default_rng(0)
        distances, alike = rng.uniform(0, 16, 40), rng.random(40) < 0.3
        pull = information.pull_on_distances(distances, alike, 5, 16.0)
        for i in range(40):
            nudge = np.zeros(40)
            nudge[i] = 1e-6
            up = self.information(distances + nudge, alike, 5, 16)
            down = self.information(distances - nudge, alike, 5, 16)
            assert pull[i] == pytest.approx(-(up - down) / 2e-6, abs=1e-6)

    def test_exact_steps_raise_information(self):
        X, Y = checks.sample(400, dimensions=20)
        learner = MIHash(16, exact=True, warmup=0).partial_fit(X, Y)
        assert len(learner.recall_) == 200
        labels = np.array([sorted(y)[0] for y in Y])

        def separation(codes):
            apart = (np.unpackbits(codes[:, None] ^ codes[None], axis=2)).sum(axis=2)
            return apart[labels[:, None] != labels].mean() - apart[labels[:, None] == labels].mean()

        assert separation(learner.encode(X)) > separation(MIHash(16).start(20).encode(X)) + 1

    def test_reservoir_is_a_uniform_sample(self):
        rng, counts = np.random.default_rng(0), np.zeros(40)
        for _ in range(500):
            recall = Recall.none(1)
            recall.add_labels(1)
            for i, draw in enumerate(rng.random(40)):
                recall.offer(10, np.ones(1), np.ones(1, dtype=np.float32), np.array([i]), draw)
            counts[recall.keys] += 1
        assert counts.sum() == 5000
        assert np.abs(counts - 125).max() < 5 * np.sqrt(125 * 0.75)

    def test_forgets_rows(self):
        X, Y = checks.sample(100)
        learner = MIHash(8, reservoir=1000, warmup=0).partial_fit(X, Y)
        kept = len(learner.recall_)
        assert learner.forget_keys([5, 6, 1000]) >= 2
        assert not np.isin([5, 6], learner.recall_.keys).any()
        assert len(learner.recall_) < kept
        learner.partial_fit(X, Y)


class TestBSODH:
    def test_memory_bounds_what_is_kept_and_rows_are_forgotten(self):
        X, Y = checks.sample(60)
        learner = BSODH(8, memory=50, warmup=0)
        for start in range(0, 60, 20):
            learner.partial_fit(X[start : start + 20], Y[start : start + 20])
        assert len(learner.reservoir_) == 50
        key = learner.reservoir_.keys[0]
        assert learner.forget_keys([key]) == 1
        assert key not in learner.reservoir_.keys

    def test_labels_shared_in_part_are_similar(self):
        X, _ = checks.sample(60)
        labels = [{"a", "b"} if i % 2 else {"b", "c"} for i in range(60)]
        learner = BSODH(8, warmup=0).partial_fit(X[:30], labels[:30]).partial_fit(X[30:], labels[30:])
        # All rows are similar to all others, so all of them end up with one code.
        assert len(np.unique(learner.reservoir_.codes[:30], axis=0)) == 1


class TestSketchHash:
    def test_finds_the_principal_directions_of_the_stream(self):
        rng = np.random.default_rng(0)
        basis = np.linalg.qr(rng.standard_normal((30, 30)))[0]
        X = 5 + (rng.standard_normal((3000, 30)) * np.r_[10, 8, 6, np.full(27, 0.1)]) @ basis.T
        learner = SketchHash(3, sketch=12)
        for start in range(0, 3000, 170):
            learner.partial_fit(X[start : start + 170])
        projector = learner.projection_ @ learner.projection_.T
        assert np.abs(projector - basis[:, :3] @ basis[:, :3].T).max() < 0.01
        assert np.allclose(learner.mean_, X.mean(axis=0))

    def test_codes_stay_when_more_of_the_same_comes(self):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((4000, 20)) * np.linspace(5, 0.5, 20)
        learner = SketchHash(8, sketch=20).partial_fit(X[:2000])
        before = learner.encode(X)
        changed = np.unpackbits(before ^ learner.partial_fit(X[2000:]).encode(X)).mean()
        assert changed < 0.1

    def test_more_bits_than_directions(self):
        X, _ = checks.sample()
        learner = SketchHash(64, sketch=12).partial_fit(X)
        assert learner.projection_.shape == (12, 64)
        assert np.linalg.matrix_rank(learner.projection_) == 12
