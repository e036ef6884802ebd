"""The saved form of a learner: a flat dict of plain arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.labels import LabelSets
from foh_pg.errors import StateError

if TYPE_CHECKING:
    from typing_extensions import Self

State = dict[str, npt.NDArray[Any]]

FORMAT = 1


class Part(Protocol):
    """A piece of learned state that knows its own arrays."""

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give plain arrays."""

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> Any:
        """Restore from what `to_arrays` gave."""


class ArrayPart:
    """A dataclass of arrays, numbers and label sets as such a piece; the label sets are called `sets`."""

    def to_arrays(self) -> State:
        values = {part.name: getattr(self, part.name) for part in fields(self)}  # type: ignore[arg-type]
        sets = values.pop("sets", None)
        if sets is not None:
            values |= {"ids": sets.ids, "offsets": sets.offsets}
        return {name: np.asarray(value) for name, value in values.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        values: dict[str, Any] = {
            name: array if array.ndim else array.item() for name, array in arrays.items()
        }
        if "offsets" in values:
            values["sets"] = LabelSets(values.pop("ids"), values.pop("offsets"))
        return cls(**values)


def seal(arrays: Mapping[str, npt.NDArray[Any]]) -> State:
    """Copies of the arrays, since a learner goes on changing some of its own, and the format's version."""
    return {"format": np.array(FORMAT), **{key: np.array(arrays[key]) for key in sorted(arrays)}}


def unseal(state: Mapping[str, Any]) -> State:
    """The arrays of a state of this format; who stores a state sees that nothing of it is damaged."""
    arrays = {key: np.asarray(value) for key, value in state.items()}
    version = arrays.pop("format", None)
    if version is None or version.shape != () or version.dtype.kind not in "iu" or int(version) != FORMAT:
        raise StateError(f"the state has format {version}, this version of foh_pg reads format {FORMAT}")
    return arrays


def rng_to_array(rng: np.random.Generator) -> npt.NDArray[Any]:
    """The state of a PCG64 generator as JSON."""
    return np.array(json.dumps(rng.bit_generator.state))


def rng_from_array(state: npt.NDArray[Any]) -> np.random.Generator:
    generator = np.random.PCG64()
    generator.state = json.loads(str(state))
    return np.random.Generator(generator)
