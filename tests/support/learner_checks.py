"""What every learner must do: the same checks for all of them.

Use with pytest as

    @pytest.mark.parametrize("check", checks.ALL, ids=lambda check: check.__name__)
    def test_conformance(check):
        check(lambda **options: MyLearner(**{"warmup": 20, **options}))

A check takes a factory that passes keyword options (`bits`, `seed`) on to the learner, and raises
AssertionError.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import unpack
from foh_pg.errors import InputError, StateError
from foh_pg.learners.base import Learner

Factory = Callable[..., Learner]
Rows = npt.NDArray[np.float64]
Names = list[set[str]]


def sample(rows: int = 60, dimensions: int = 12, labels: int = 4, seed: int = 0) -> tuple[Rows, Names]:
    """Rows in loose clusters, one label each, and off center."""
    rng = np.random.default_rng(seed)
    centers = 2 * np.random.default_rng(99).standard_normal((labels, dimensions))
    label = rng.integers(labels, size=rows)
    return 3 + centers[label] + rng.standard_normal((rows, dimensions)), [{f"label {i}"} for i in label]


def same(a: Learner, b: Learner) -> bool:
    """Whether two learners have equal states, bit for bit."""
    left, right = a.state(), b.state()
    return left.keys() == right.keys() and all(
        left[key].dtype == right[key].dtype and np.array_equal(left[key], right[key]) for key in left
    )


def raises(error: type[Exception], function: Callable[[], Any]) -> str:
    """Return the message of the error that `function` must raise."""
    try:
        function()
    except error as raised:
        return str(raised)
    raise AssertionError(f"{error.__name__} was not raised")


def check_parameters_are_verbatim(make: Factory) -> None:
    """Hyper-parameters are stored as given, and a learner made from them is the same."""
    learner = make(bits=8, seed=3)
    assert learner.parameters()["bits"] == 8
    assert learner.parameters()["seed"] == 3
    assert type(learner)(**learner.parameters()).parameters().keys() == learner.parameters().keys()


def check_codes(make: Factory) -> None:
    """Codes are packed, their unused bits are zero, and chunks do not matter."""
    X, Y = sample()
    learner = make(bits=11).partial_fit(X, Y)
    packed = learner.encode(X)
    assert packed.shape == (len(X), 2)
    assert packed.dtype == np.uint8
    assert not (packed[:, 1] & 0b00011111).any()
    assert np.array_equal(packed[7:9], learner.encode(X[7:9]))
    assert unpack(packed, 11).shape == (len(X), 11)


def check_projection_gives_the_codes(make: Factory) -> None:
    """A linear learner's codes are those of `projection_` and `bias_`, as SQL computes them."""
    X, Y = sample()
    learner = make(bits=8).partial_fit(X, Y)
    if not getattr(learner, "linear", True):
        return
    assert learner.projection_.shape == (X.shape[1], 8)
    assert learner.bias_.shape == (8,)
    assert learner.mean_.shape == (X.shape[1],)
    scores = X @ learner.projection_ - learner.bias_
    clear = np.abs(scores) > 1e-4 * np.abs(scores).max()
    assert np.array_equal((scores >= 0)[clear], unpack(learner.encode(X), 8)[clear])


def check_deterministic_by_seed(make: Factory) -> None:
    """Equal seeds and rows give equal learners; another seed another one."""
    X, Y = sample()
    assert same(make(bits=8, seed=1).partial_fit(X, Y), make(bits=8, seed=1).partial_fit(X, Y))
    other = make(bits=8, seed=2).partial_fit(X, Y)
    assert not np.array_equal(other.encode(X), make(bits=8, seed=1).partial_fit(X, Y).encode(X))


def check_restores_bit_for_bit(make: Factory) -> None:
    """A restored learner is equal, and so is its next stage; also in the middle of the warm-up."""
    X, Y = sample(90)
    for first in (5, 50):
        learner = make(bits=8).partial_fit(X[:first], Y[:first])
        restored = type(learner).from_state(learner.state())
        assert same(learner, restored)
        assert same(learner.partial_fit(X[first:], Y[first:]), restored.partial_fit(X[first:], Y[first:]))
    assert all(array.dtype != object for array in learner.state().values())


def check_state_is_a_copy(make: Factory) -> None:
    """A state that was taken does not change when the learner goes on."""
    X, Y = sample(90)
    learner = make(bits=8).partial_fit(X[:50], Y[:50])
    taken = learner.state()
    before = {key: array.copy() for key, array in taken.items()}
    learner.partial_fit(X[50:], Y[50:])
    assert all(np.array_equal(taken[key], before[key]) for key in before)


def check_saves_and_loads(make: Factory) -> None:
    """A file of arrays restores the learner, by its class and by the base class; no pickle is needed."""
    X, Y = sample()
    learner = make(bits=8).partial_fit(X, Y)
    file = io.BytesIO()
    np.savez(file, **learner.state())
    file.seek(0)
    with np.load(file, allow_pickle=False) as saved:
        assert same(type(learner).from_state(saved), learner)
        assert same(Learner.from_state(saved), learner)


def check_refuses_bad_states(make: Factory) -> None:
    """Another format, and what is no state at all, are clear errors."""
    X, Y = sample()
    learner = make(bits=8).partial_fit(X, Y)
    good = learner.state()
    message = raises(StateError, lambda: type(learner).from_state({**good, "format": np.array(999)}))
    assert "999" in message
    raises(StateError, lambda: type(learner).from_state({}))


def check_bad_rows_leave_it_untouched(make: Factory) -> None:
    """NaN, infinity, wrong dimensions and wrong lengths are errors before anything changes."""
    X, Y = sample()
    learner = make(bits=8).partial_fit(X, Y)
    before = type(learner).from_state(learner.state())
    for value in (np.nan, np.inf, -np.inf):
        bad = X.copy()
        bad[17, 3] = value
        assert "row 17" in raises(InputError, lambda bad=bad: learner.partial_fit(bad, Y))  # type: ignore[misc]
        assert "row 17" in raises(InputError, lambda bad=bad: learner.encode(bad))  # type: ignore[misc]
    raises(InputError, lambda: learner.partial_fit(X[:, :5], Y))
    raises(InputError, lambda: learner.partial_fit(X, Y[:-1]))
    raises(InputError, lambda: learner.partial_fit(X[0], Y))
    assert same(learner, before)
    fresh = make(bits=8)
    raises(InputError, lambda: fresh.partial_fit(np.full((3, 2), np.nan), [1, 2, 3]))
    assert not fresh.started
    raises(InputError, lambda: fresh.encode(X))


def check_label_order_does_not_matter(make: Factory) -> None:
    """Sets, lists in any order and with duplicates, and NULLs inside are one and the same."""
    X, _ = sample()
    as_lists = [["b", "a"] if i % 3 else ["c", None, "c"] for i in range(len(X))]
    as_sets = [{"a", "b"} if i % 3 else {"c"} for i in range(len(X))]
    assert same(make(bits=8).partial_fit(X, as_lists), make(bits=8).partial_fit(X, as_sets))


def check_forms_of_labels_agree(make: Factory) -> None:
    """Integers, sets of integers and a multi-hot array say the same."""
    X, _ = sample()
    numbers = np.arange(len(X)) % 5
    learners = [
        make(bits=8).partial_fit(X, Y)
        for Y in (numbers, numbers.tolist(), [{int(i)} for i in numbers], np.eye(5, dtype=np.uint8)[numbers])
    ]
    assert all(same(learners[0], other) for other in learners[1:])


def check_empty_batch(make: Factory) -> None:
    """A batch of no rows changes nothing."""
    X, Y = sample()
    learner = make(bits=8).partial_fit(X, Y)
    before = type(learner).from_state(learner.state())
    learner.partial_fit(X[:0], [])
    assert same(learner, before)
    assert learner.encode(X[:0]).shape == (0, 1)


def check_single_rows(make: Factory) -> None:
    """Batches of one row, from the first one on."""
    X, Y = sample(40)
    learner = make(bits=8)
    for i in range(len(X)):
        learner.partial_fit(X[i : i + 1], Y[i : i + 1])
    assert learner.rows_seen_ == 40
    assert np.isfinite(learner.projection_).all()


def check_one_label(make: Factory) -> None:
    """A stream in which all rows carry the same label."""
    X, _ = sample()
    learner = make(bits=8)
    for start in range(0, 60, 20):
        learner.partial_fit(X[start : start + 20], ["only"] * 20)
    assert np.isfinite(learner.projection_).all()


def check_new_labels(make: Factory) -> None:
    """Names that appear late get their number then; earlier ones keep theirs."""
    X, Y = sample()
    learner = make(bits=8).partial_fit(X, Y)
    before = learner.label_names_
    learner.partial_fit(X, [{"a new one"} if i % 2 else labels for i, labels in enumerate(Y)])
    assert learner.label_names_ == (*before, "a new one")
    learner.partial_fit(X, Y)


def check_unlabelled_rows(make: Factory) -> None:
    """Rows without labels are counted, and change nothing in a supervised learner."""
    X, Y = sample()
    Z, _ = sample(seed=1)
    learner = make(bits=8)
    learner.partial_fit(np.concatenate([X, Z]), [*Y, *[None] * 30, *[set()] * 30])
    if not learner.supervised:
        return
    assert learner.rows_skipped_ == 60
    assert learner.rows_seen_ == 120
    assert np.array_equal(learner.encode(X), make(bits=8).partial_fit(X, Y).encode(X))
    none = make(bits=8).partial_fit(X, None)
    assert none.rows_skipped_ == 60
    assert none.encode(X).shape == (60, 1)


def check_duplicate_and_constant_rows(make: Factory) -> None:
    """Equal rows, constant features and rows that are the mean itself."""
    X, Y = sample()
    X[:, 2] = 7
    X[:20] = X[0]
    learner = make(bits=8).partial_fit(X, Y)
    assert np.isfinite(learner.projection_).all()
    constant = make(bits=8).partial_fit(np.ones((30, 3)), ["a", "b"] * 15)
    assert np.isfinite(constant.projection_).all()


def check_types_of_numbers(make: Factory) -> None:
    """float16, float32, float64 and integers that hold the same values give the same codes."""
    X, Y = sample()
    X = np.round(X)
    codes = [
        make(bits=8).partial_fit(X.astype(kind), Y).encode(X.astype(kind))
        for kind in (np.float16, np.float32, np.float64, np.int8)
    ]
    assert all(np.array_equal(codes[0], other) for other in codes[1:])


def check_input_is_not_written_to(make: Factory) -> None:
    """The caller's arrays stay as they are."""
    X, Y = sample()
    X.setflags(write=False)
    copy = X.copy()
    make(bits=8).partial_fit(X, Y).encode(X, Y)
    assert np.array_equal(X, copy)


def check_keys(make: Factory) -> None:
    """Keys may be integers or strings, never objects; forgetting unknown ones is harmless."""
    X, Y = sample()
    learner = make(bits=8).partial_fit(X, Y, keys=[f"key {i}" for i in range(60)])
    assert learner.forget_keys(["nobody"]) == 0
    assert type(learner).from_state(learner.state()).rows_seen_ == 60
    raises(InputError, lambda: make(bits=8).partial_fit(X, Y, keys=np.array([None] * 60)))
    raises(InputError, lambda: make(bits=8).partial_fit(X, Y, keys=[1, 2]))


def check_starts_without_data(make: Factory) -> None:
    """Before any row there is a projection to encode with."""
    X, _ = sample()
    learner = make(bits=8).start(X.shape[1])
    assert learner.encode(X).shape == (60, 1)
    raises(InputError, lambda: make(bits=0).start(3))


ALL: list[Callable[[Factory], None]] = [
    check for name, check in list(globals().items()) if name.startswith("check_")
]
