"""What FOH does beyond the authors' computation."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foh_pg.arrays.codes import hamming_rows, unpack
from foh_pg.arrays.metrics import mean_average_precision
from foh_pg.errors import InputError, StateError
from foh_pg.learners import FOH, Learner, RandomHyperplanes
from tests.support import learner_checks as checks
from tests.support.golden_arrays import label_sets


def clusters(labels, rows, dimensions=24, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(1234 + labels).standard_normal((labels, dimensions))
    Y = rng.integers(labels, size=rows)
    return centers[Y] + noise * rng.standard_normal((rows, dimensions)) + 2, Y


def feed(learner, X, Y, batch):
    for start in range(0, len(X), batch):
        learner.partial_fit(X[start : start + batch], Y[start : start + batch])
    return learner


def precision(learner, X, Y, anchored=False):
    """mAP of up to 300 rows of the last quarter against the first three."""
    cut = 3 * len(X) // 4
    X, Y = X[: cut + 300], Y[: cut + 300]
    stored = learner.encode(X[:cut], Y[:cut] if anchored else None)
    return mean_average_precision(learner.encode(X[cut:]), stored, *label_sets(Y[cut:], Y[:cut]))


PAPER = {"preset": "paper"}


@pytest.mark.parametrize("check", checks.ALL, ids=lambda check: check.__name__)
@pytest.mark.parametrize("options", [PAPER, {"forget": 0.9, "memory": 30}, {"max_labels": 2}], ids=str)
def test_conformance_of_other_settings(check, options):
    check(lambda **given_options: FOH(**{"warmup": 20, **options, **given_options}))


# -- codes -------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.floats(0, 3), st.integers(0, 2**32 - 1), st.booleans())
def test_stored_rows_lean_on_their_labels_as_sql_computes_it(weight, seed, center):
    """Bit j is 1 where `w_j . x - bias_j + label_weight |x - mean| (P l)_j >= 0`."""
    X, Y = clusters(4, 300, seed=seed)
    sets = [{f"a{y}", f"b{y % 2}"} if i % 5 else set() for i, y in enumerate(Y)]
    h = FOH(bits=16, center=center, label_weight=weight, warmup=100).partial_fit(X[:200], sets[:200])
    names = list(h.label_names_)
    W, bias, P, mean = (
        a.astype(np.float32).astype(float) for a in (h.projection_, h.bias_, h.label_projection_, h.mean_)
    )
    lean = np.array([P[:, [names.index(name) for name in labels]].sum(axis=1) for labels in sets])
    scores = X @ W - bias + weight * np.linalg.norm(X - mean, axis=1)[:, None] * lean
    clear = np.abs(scores) > 1e-4
    assert clear.mean() > 0.95
    assert np.array_equal(unpack(h.encode(X, sets), 16)[clear], (scores >= 0)[clear])
    unlabelled = np.array([not labels for labels in sets])
    assert np.array_equal(h.encode(X, sets)[unlabelled], h.encode(X)[unlabelled])


def test_unknown_names_do_not_move_a_code():
    X, Y = clusters(3, 300)
    h = FOH(bits=16).partial_fit(X, Y)
    assert np.array_equal(h.encode(X[:5], [{"never met"}] * 5), h.encode(X[:5]))
    assert np.array_equal(h.encode(X[:5], [{"never met", "1"}] * 5), h.encode(X[:5], [{"1"}] * 5))


def test_anchored_codes_find_more():
    X, Y = clusters(10, 3000, noise=2.5)
    h = feed(FOH(bits=32), X[:2250], Y[:2250], 500)
    assert precision(h, X, Y, anchored=True) > precision(h, X, Y) + 0.1
    h.label_weight = 0.0
    assert np.array_equal(h.encode(X, Y), h.encode(X))


def test_names_met_with_rows_that_do_not_train_have_no_column_yet():
    X, Y = clusters(3, 300)
    h = FOH(bits=8).partial_fit(X, Y)
    h.vocabulary_ = h.vocabulary_.grow(["later"])
    assert np.array_equal(h.encode(X[:3], [{"later"}] * 3), h.encode(X[:3]))


# -- learning ----------------------------------------------------------------------------------------------


def test_the_first_batch_learns():
    X, Y = clusters(8, 800, noise=2)
    learned = precision(FOH(bits=16).partial_fit(X[:600], Y[:600]), X, Y)
    random = precision(RandomHyperplanes(bits=16).partial_fit(X[:600]), X, Y)
    assert learned > random + 0.1
    paper = FOH(bits=16, preset="paper").partial_fit(X[:600], Y[:600])
    assert paper.stages_ == 1
    assert precision(paper, X, Y) < learned


@pytest.mark.parametrize("batch", [7, 40, 150])
def test_warmup_does_not_depend_on_how_rows_are_cut(batch):
    X, numbers = clusters(4, 600)
    Y = np.eye(4)[numbers]
    whole = FOH(bits=8, warmup=600).partial_fit(X, Y)
    cut = feed(FOH(bits=8, warmup=600), X, Y, batch)
    assert cut.warm_rows_ is None
    for name in ("projection_", "bias_", "mean_", "label_projection_", "gram_"):
        assert np.array_equal(getattr(whole, name), getattr(cut, name))
    assert np.array_equal(whole.reservoir_.codes, cut.reservoir_.codes)


@pytest.mark.parametrize("batch", [3, 10, 1000])
def test_small_batches_do_not_destroy_what_was_learned(batch):
    """Fitting all existing codes to ten rows brought mAP down to that of random codes."""
    X, Y = clusters(10, 2000, noise=2)
    h = FOH(bits=16, warmup=200).partial_fit(X[:1000], Y[:1000])
    before = precision(h, X, Y)
    feed(h, X[1000:1500], Y[1000:1500], batch)
    assert precision(h, X, Y) > before - 0.02


@pytest.mark.parametrize("labels", [50, 200, 1000])
def test_many_labels_stay_above_random(labels):
    X, Y = clusters(labels, 4000 + 4 * labels, dimensions=48, noise=0.8)
    cut = 3 * len(X) // 4
    learned = feed(FOH(bits=32), X[:cut], Y[:cut], 2000)
    random = precision(RandomHyperplanes(bits=32).partial_fit(X[:cut]), X, Y)
    assert precision(learned, X, Y) > random
    assert precision(learned, X, Y, anchored=True) > random


def test_late_classes_are_learned():
    X, Y = clusters(10, 4000, noise=2)
    order = np.argsort(Y[:3000] >= 5, kind="stable")
    late = feed(FOH(bits=32), X[:3000][order], Y[:3000][order], 500)
    mixed = feed(FOH(bits=32), X[:3000], Y[:3000], 500)
    assert precision(late, X, Y) > 0.75 * precision(mixed, X, Y)


def test_forgetting_follows_drift():
    """The meaning of directions changes; with forget below 1 the new meaning wins."""
    X, Y = clusters(5, 4000, noise=1.5)
    turned = np.roll(X, 7, axis=1)
    kept, forgot = FOH(bits=16), FOH(bits=16, forget=0.5)
    for h in (kept, forgot):
        feed(h, X[:3000], Y[:3000], 250)
        feed(h, turned[:1000], Y[:1000], 250)
    assert precision(forgot, turned, Y) > precision(kept, turned, Y)


@pytest.mark.parametrize(("first", "then"), [(1.0, 0.5), (0.5, 1.0)])
def test_another_forget_counts_from_the_next_stage(first, then):
    """The kept rows go on as a sample of the stream: the next batch has its part in them, and no more."""
    X, Y = clusters(5, 4500)
    h = feed(FOH(bits=16, forget=first, memory=400, warmup=0), X[:4000], Y[:4000], 500)
    h.set_parameters(forget=then)
    h.partial_fit(X[4000:], Y[4000:])
    # By the weights of the batches: 1 of the last one, then of those before (1, 1, ... or 1, 1/2, 1/4, ...).
    weights = then * first ** np.arange(8.0)
    assert abs((h.reservoir_.keys >= 4000).mean() - 1 / (1 + weights.sum())) < 0.1


def test_parameters_that_make_no_sense_are_not_taken():
    h = FOH(bits=16, forget=0.9)
    with pytest.raises(InputError, match="forget must be above 0"):
        h.set_parameters(memory=5, forget=2)
    assert (h.memory, h.forget) == ("auto", 0.9)
    with pytest.raises(InputError, match="FOH has no parameter 'speed'"):
        h.set_parameters(speed=3)


def test_codes_settle():
    X, Y = clusters(10, 8000, noise=2)
    flips = []
    h = FOH(bits=32)
    for start in range(0, 7500, 500):
        before = h.encode(X[7500:]) if h.started else None
        h.partial_fit(X[start : start + 500], Y[start : start + 500])
        if before is not None:
            flips.append(hamming_rows(before, h.encode(X[7500:])).mean() / 32)
    assert flips[-1] < 0.03
    assert flips[-1] < flips[0] / 2


def test_more_bits_than_dimensions_and_more_labels_than_bits():
    X, Y = clusters(30, 900, dimensions=5)
    for bits in (3, 64):
        h = feed(FOH(bits=bits), X, Y, 300)
        assert np.isfinite(h.projection_).all()
        assert h.label_projection_.shape == (bits, 30)


def test_multi_label_is_decided_once_by_the_data():
    X, Y = clusters(4, 400)
    single = FOH(bits=8, warmup=0).partial_fit(X[:200], Y[:200])
    assert single.multi_label_ is False
    single.partial_fit(X[200:], [{"0", "1"}] * 200)
    assert single.multi_label_ is False
    assert FOH(bits=8).partial_fit(X, [{str(y), "x"} for y in Y]).multi_label_ is True
    assert FOH(bits=8, multi_label=True).partial_fit(X, Y).multi_label_ is True


def test_ablations_by_argument():
    X, Y = clusters(6, 900, noise=1.5)
    sets = [{f"a{y}", f"b{y // 2}"} for y in Y]
    runs = {
        "full": {},
        "without label projection": {"theta": 0.0, "mu": 0.0},
        "binary similarity": {"similarity": "shared"},
    }
    full, without, binary = (
        feed(FOH(bits=16, **PAPER, **options), X, sets, 300) for options in runs.values()
    )
    assert full.label_projection_.any()
    assert not without.label_projection_.any()
    assert not np.array_equal(full.projection_, binary.projection_)


def test_unlabelled_rows_are_skipped_and_counted():
    X, Y = clusters(4, 400)
    mixed = [None if i % 4 == 0 else int(y) for i, y in enumerate(Y)]
    h = FOH(bits=8).partial_fit(X, mixed)
    assert (h.rows_seen_, h.rows_skipped_) == (400, 100)
    assert len(h.reservoir_) == 300


# -- bounds ------------------------------------------------------------------------------------------------


def test_state_does_not_grow_with_rows():
    X, Y = clusters(5, 1000)
    h = FOH(bits=16, memory=300)
    sizes = []
    for _ in range(6):
        h.partial_fit(X, Y)
        sizes.append(sum(array.nbytes for array in h.state().values()))
    # The state of the generator is text, whose length differs by a few digits.
    assert max(sizes) - min(sizes) < 64
    assert len(h.reservoir_) == 300


def test_no_similarity_matrix_of_all_pairs(monkeypatch):
    """4 000 existing and 2 000 new rows, all with label sets of their own: S would take 32 MB."""
    monkeypatch.setattr("foh_pg.learners.similarity.BLOCK_PAIRS", 1 << 17)
    rng = np.random.default_rng(0)
    hot = np.argsort(rng.random((6000, 40)), axis=1) < 5
    X = rng.standard_normal((6000, 4)).astype(np.float32)
    h = feed(FOH(bits=8), X[:4000], hot[:4000], 2000)
    tracemalloc.start()
    h.partial_fit(X[4000:], hot[4000:])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(h.reservoir_.sets.group()) > 5900
    assert peak < 24e6


def test_only_the_most_frequent_labels_train():
    X, Y = clusters(6, 1200)
    common = [{int(y)} if y < 4 else {int(y), 100 + i} for i, y in enumerate(Y)]
    h = FOH(bits=8, max_labels=6, warmup=0)
    feed(h, X, common, 400)
    names = np.array(h.label_names_)
    rare = np.char.str_len(names) > 1
    assert not h.label_projection_[:, rare].any()
    assert h.label_projection_[:, ~rare].any(axis=0).all()
    only_rare = FOH(bits=8, max_labels=1, warmup=0).partial_fit(X[:100], ["a"] * 60 + ["b"] * 40)
    assert (only_rare.rows_untrained_, only_rare.rows_skipped_) == (40, 0)


# -- keys --------------------------------------------------------------------------------------------------


def test_forgotten_keys_leave_the_reservoir():
    X, Y = clusters(4, 600)
    keys = np.array([f"row {i}" for i in range(600)])
    h = FOH(bits=8, warmup=100)
    h.partial_fit(X[:300], Y[:300], keys[:300])
    h.partial_fit(X[300:], Y[300:], keys[300:])
    assert h.forget_keys(keys[:50]) == 50
    assert h.forget_keys(keys[:50]) == 0
    assert np.array_equal(h.reservoir_.keys, keys[50:])
    assert len(h.reservoir_.sets) == len(h.reservoir_.codes) == 550
    assert h.forget_keys(keys) == 550
    h.partial_fit(X, Y, keys)
    assert len(h.reservoir_) == 600


def test_forgotten_keys_leave_the_warm_rows():
    X, Y = clusters(4, 100)
    h = FOH(bits=8, warmup=500).partial_fit(X, Y, np.arange(100))
    assert h.forget_keys([3, 4, 1000]) == 2
    assert len(h.warm_rows_) == 98
    assert 3 not in h.reservoir_.keys


def test_keys_of_another_kind_are_refused_before_anything_changes():
    X, Y = clusters(3, 60)
    for warmup in (0, 1000):
        h = FOH(bits=8, warmup=warmup).partial_fit(X, Y, np.arange(60))
        before = FOH.from_state(h.state())
        with pytest.raises(InputError, match="one kind"):
            h.partial_fit(X, Y, [f"{i}" for i in range(60)])
        assert checks.same(h, before)


# -- parameters and states ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"preset": "fast"},
        {"similarity": "cosine"},
        {"bits": 0},
        {"lam": 0.0},
        {"tau": -1.0},
        {"theta": -0.1},
        {"label_weight": float("nan")},
        {"forget": 0.0},
        {"forget": 1.1},
        {"memory": 0},
        {"max_labels": 0},
        {"warmup": -1},
        {"initial_projection": np.zeros((3, 3))},
        {"initial_projection": np.full((24, 8), np.nan)},
        {"initial_label_projection": np.zeros(8)},
    ],
    ids=str,
)
def test_senseless_parameters_are_refused(wrong):
    X, Y = clusters(3, 30)
    h = FOH(**{"bits": 8, **wrong})
    name = next(iter(wrong))
    with pytest.raises(InputError, match=name):
        h.partial_fit(X, Y)
    assert not h.started


@settings(max_examples=15)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=5), st.booleans(), st.integers(0, 2**32 - 1))
def test_any_moment_can_be_saved(batches, paper, seed):
    X, Y = clusters(4, sum(batches) + 50, seed=seed)
    h = FOH(bits=8, preset="paper" if paper else "accumulated", warmup=80, memory=70, forget=0.95)
    start = 0
    for batch in batches:
        h.partial_fit(X[start : start + batch], Y[start : start + batch])
        h = FOH.from_state(h.state())
        start += batch
    straight = FOH(**h.parameters())
    start = 0
    for batch in batches:
        straight.partial_fit(X[start : start + batch], Y[start : start + batch])
        start += batch
    assert checks.same(h, straight)


def test_states_keep_array_parameters():
    X, Y = clusters(3, 60)
    W0 = np.random.default_rng(0).standard_normal((24, 8))
    h = FOH(bits=8, initial_projection=W0).partial_fit(X, Y)
    assert np.array_equal(FOH.from_state(h.state()).initial_projection, W0)


def test_arrays_that_are_no_state():
    with pytest.raises(StateError, match="has format None"):
        FOH.from_state({"a": np.zeros(3)})


def test_a_state_of_another_learner():
    state = RandomHyperplanes(bits=8).start(3).state()
    with pytest.raises(StateError, match="not of a FOH"):
        FOH.from_state(state)
    assert isinstance(Learner.from_state(state), RandomHyperplanes)


def test_random_hyperplanes_through_a_mean():
    X, _ = clusters(3, 100)
    mean = X.mean(axis=0)
    planes = RandomHyperplanes(8, seed=1).partial_fit(X)
    assert np.allclose(planes.bias_, mean @ planes.projection_, atol=1e-5)
    assert 0.2 < unpack(planes.encode(X), 8).mean() < 0.8


class TestStoredCodesAreStable:
    @staticmethod
    def flips(learner: FOH, weight: int) -> list[float]:
        rng = np.random.default_rng(0)
        means = rng.standard_normal((8, 24))
        label = rng.integers(8, size=9000)
        rows = means[label] + 1.5 * rng.standard_normal((9000, 24))
        for start in range(0, 4000, 500):
            learner.partial_fit(rows[start : start + 500], label[start : start + 500])
        if weight > 1:
            assert learner.stand_for(4000 * weight)
        found = []
        before = learner.encode(rows[8000:], label[8000:])
        for start in range(4000, 8000, 500):
            learner.partial_fit(rows[start : start + 500], label[start : start + 500])
            after = learner.encode(rows[8000:], label[8000:])
            found.append(float(hamming_rows(before, after).mean()))
            before = after
        return found

    def test_a_sample_that_stands_for_many_rows_is_moved_less(self) -> None:
        assert sum(self.flips(FOH(bits=32), 100)) < sum(self.flips(FOH(bits=32), 1)) / 4

    def test_nothing_is_weighed_where_the_past_is_forgotten(self) -> None:
        learner = FOH(bits=16, forget=0.9, warmup=0).partial_fit(np.eye(8), np.arange(8))
        assert not learner.stand_for(1000)


# -- many dimensions ---------------------------------------------------------------------------------------


@pytest.fixture
def folded(monkeypatch):
    """Fold rows of more than eight dimensions, as rows of more than 4 096 are."""
    monkeypatch.setattr("foh_pg.learners.foh.FOLDED", 8)


@pytest.mark.parametrize("check", checks.ALL, ids=lambda check: check.__name__)
def test_conformance_of_folded_rows(check, folded):
    check(lambda **options: FOH(**{"warmup": 20, **options}))


def test_folded_rows_teach_hash_functions_of_the_rows_themselves(monkeypatch):
    monkeypatch.setattr("foh_pg.learners.foh.FOLDED", 60)
    X, Y = clusters(10, 3000, dimensions=200)
    learner = feed(FOH(bits=32), X, Y, 1000)
    assert learner.gram_.shape == (60, 60)
    assert learner.projection_.shape == (200, 32)
    assert precision(learner, X, Y) > 1.4 * precision(RandomHyperplanes(bits=32).partial_fit(X), X, Y)
    again = FOH.from_state(learner.state())
    for each in (learner, again):
        each.partial_fit(X[:500], Y[:500])
    assert np.array_equal(learner.projection_, again.projection_)


def test_no_array_of_dimensions_squared():
    """With 16 000 dimensions such an array has 2 GB, and its Cholesky ended the process."""
    dimensions = 16_000
    X, Y = clusters(4, 150, dimensions=dimensions)
    tracemalloc.start()
    try:
        learner = feed(FOH(bits=16, warmup=50), X.astype(np.float32), Y, 75)
        feed(FOH(bits=16, preset="paper"), X.astype(np.float32), Y, 75)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert learner.stages_ == 2
    assert peak < 800e6 < 4 * dimensions**2


def test_the_paper_is_solved_among_rows_where_these_are_fewer(monkeypatch):
    X, Y = clusters(4, 60, dimensions=100)
    by_dimensions = feed(FOH(bits=16, preset="paper"), X, Y, 20)
    monkeypatch.setattr("foh_pg.learners.stage.FEW_DIMENSIONS", 10)
    by_rows = feed(FOH(bits=16, preset="paper"), X, Y, 20)
    np.testing.assert_allclose(by_rows.projection_, by_dimensions.projection_, rtol=1e-9, atol=1e-12)
