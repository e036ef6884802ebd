"""The flat form in which learners, models and plans are saved."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from foh_pg.arrays.flat import PLAIN, flatten, unflatten


@dataclass
class Pair:
    left: npt.NDArray[np.int64]
    limit: float = np.inf


def test_all_of_it_comes_back_from_a_file() -> None:
    given = {
        "numbers": np.arange(3),
        "pair": Pair(np.arange(2)),
        "deep": {"deeper": {"name": "ü", "none": None, "codes": np.zeros((2, 1), dtype=np.uint8)}},
        "steps": [[0.1, 3], [0.2, 5]],
        "count": np.int64(7),
    }
    file = io.BytesIO()
    np.savez(file, **flatten(given))  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as saved:
        found = unflatten(saved)
    assert found["numbers"].tolist() == [0, 1, 2]
    assert found["pair"]["left"].tolist() == [0, 1]
    assert found["pair"]["limit"] == np.inf
    assert found["steps"] == ([0.1, 3], [0.2, 5])
    assert found["count"] == 7
    deeper = found["deep"]["deeper"]
    assert (deeper["name"], deeper["none"], deeper["codes"].dtype) == ("ü", None, np.uint8)


def test_what_was_saved_does_not_change_with_what_it_was_made_of() -> None:
    sums = np.zeros(2)
    flat = flatten({"sums": sums})
    sums += 1
    restored = unflatten(flat)["sums"]
    restored += 5
    assert flat["sums"].tolist() == [0, 0]


@pytest.mark.parametrize("text", [b"[1, 2]", b"7", b"{", b"\xff"])
def test_what_is_no_mapping_is_an_error(text: bytes) -> None:
    with pytest.raises((TypeError, ValueError)):
        unflatten({PLAIN: np.frombuffer(text, dtype=np.uint8)})
