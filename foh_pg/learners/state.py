"""The saved form of a learner: a flat dict of plain arrays, sealed by a checksum."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from foh_pg.errors import StateError

State = dict[str, npt.NDArray[Any]]

FORMAT = 1


class Part(Protocol):
    """A piece of learned state that knows its own arrays."""

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give plain arrays."""

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> Any:
        """Restore from what `to_arrays` gave."""


def seal(arrays: Mapping[str, npt.NDArray[Any]]) -> State:
    """Add the format version and a checksum over everything."""
    # Copies: a learner goes on changing some of its arrays in place.
    state: State = {"format": np.array(FORMAT), **{key: np.array(arrays[key]) for key in sorted(arrays)}}
    state["checksum"] = _checksum(state)
    return state


def unseal(state: Mapping[str, Any]) -> State:
    """Check format and checksum, and return the arrays without them."""
    arrays = {key: np.asarray(value) for key, value in state.items()}
    if "format" not in arrays or "checksum" not in arrays:
        raise StateError("this is not the state of a learner: it has no format or no checksum")
    version = arrays["format"]
    if version.shape != () or version.dtype.kind not in "iu" or int(version) != FORMAT:
        raise StateError(f"the state has format {version}, this version of foh_pg reads format {FORMAT}")
    checksum = arrays.pop("checksum")
    if not np.array_equal(checksum, _checksum(arrays)):
        raise StateError("the state is damaged: its checksum does not fit its contents")
    del arrays["format"]
    return arrays


def _checksum(arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.uint8]:
    digest = hashlib.sha256()
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        digest.update(f"{key}|{array.dtype.str}|{np.shape(arrays[key])}|".encode())
        digest.update(array.tobytes())
    return np.array(list(digest.digest()), dtype=np.uint8)


def rng_to_array(rng: np.random.Generator) -> npt.NDArray[np.uint64]:
    """Give the state of a PCG64 generator as six words."""
    state: Any = rng.bit_generator.state
    low = (1 << 64) - 1
    inner = state["state"]
    words = [inner["state"] >> 64, inner["state"] & low, inner["inc"] >> 64, inner["inc"] & low]
    return np.array([*words, state["has_uint32"], state["uinteger"]], dtype=np.uint64)


def rng_from_array(words: npt.NDArray[np.uint64]) -> np.random.Generator:
    """Restore a generator from its six words."""
    w = [int(word) for word in words]
    generator = np.random.PCG64()
    generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": (w[0] << 64) | w[1], "inc": (w[2] << 64) | w[3]},
        "has_uint32": w[4],
        "uinteger": w[5],
    }
    return np.random.Generator(generator)
