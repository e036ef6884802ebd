"""What a learner was given and has learned, as plain arrays and back."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from foh_pg.errors import InputError, StateError
from foh_pg.learners.state import (
    Part,
    State,
    rng_from_array,
    rng_to_array,
    seal,
    unseal,
)

if TYPE_CHECKING:
    from typing_extensions import Self


class Saved(ABC):
    """Base of what has hyper-parameters and learned attributes, whose names end with an underscore."""

    # What a saved state says that it is the state of.
    name: ClassVar[str] = ""
    _named: ClassVar[dict[str, type[Saved]]] = {}
    _parts: ClassVar[Mapping[str, type[Part]]] = {}

    def __init_subclass__(cls) -> None:
        """Remember the class by its name, so that `from_state` finds it."""
        super().__init_subclass__()
        if not cls.name:
            return
        if Saved._named.setdefault(cls.name, cls).__qualname__ != cls.__qualname__:
            raise ValueError(f"{cls.__name__} cannot have the name {cls.name!r}, which is taken")

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise InputError for hyper-parameters that make no sense."""

    def parameters(self) -> dict[str, Any]:
        """Hyper-parameters as given."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def set_parameters(self, **changed: Any) -> Self:
        """Change hyper-parameters of a learner that goes on; what it has learned stays.

        A value that makes no sense is an InputError and leaves the learner as it was.
        """
        before = self.parameters()
        unknown = sorted(changed.keys() - before.keys())
        if unknown:
            raise InputError(f"{type(self).__name__} has no parameter {unknown[0]!r}")
        vars(self).update(changed)
        try:
            self._check_parameters()
        except InputError:
            vars(self).update(before)
            raise
        return self

    def state(self) -> State:
        """Give everything as a flat dict of plain arrays with a format version.

        >>> from foh_pg.learners import RandomHyperplanes
        >>> learner = RandomHyperplanes(bits=8).start(4)
        >>> restored = RandomHyperplanes.from_state(learner.state())
        >>> bool((restored.projection_ == learner.projection_).all())
        True
        """
        arrays: State = {"learner": np.array(self.name)}
        plain = {}
        for name, value in self.parameters().items():
            if isinstance(value, (np.ndarray, list, tuple)):
                arrays[f"parameter/{name}"] = np.asarray(value)
            else:
                plain[name] = value.item() if isinstance(value, np.generic) else value
        arrays["parameters"] = np.array(json.dumps(plain))
        learned = {name: value for name, value in vars(self).items() if name.endswith("_")}
        arrays["absent"] = np.array(json.dumps([name for name, value in learned.items() if value is None]))
        for name, value in learned.items():
            if value is not None:
                arrays.update(self._pack_attribute(name, value))
        return seal(arrays)

    def _pack_attribute(self, name: str, value: Any) -> State:
        if name in self._parts:
            return {f"part/{name}/{key}": array for key, array in value.to_arrays().items()}
        if isinstance(value, np.random.Generator):
            return {f"rng/{name}": rng_to_array(value)}
        return {f"learned/{name}": np.asarray(value)}

    @classmethod
    def from_state(cls, saved: Mapping[str, Any]) -> Self:
        """Restore a learner, bit for bit: its next stage is the one the saved learner would have made."""
        arrays = unseal(saved)
        try:
            found = Saved._named[str(arrays.pop("learner"))]
            if not issubclass(found, cls):
                raise StateError(f"this is the state of a {found.__name__}, not of a {cls.__name__}")
            parameters = json.loads(str(arrays.pop("parameters")))
            for key in [key for key in arrays if key.startswith("parameter/")]:
                parameters[key.removeprefix("parameter/")] = arrays.pop(key)
            learner = found(**parameters)
            learner._unpack(arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the state does not fit this version of foh_pg: {error}") from error
        return learner

    def _unpack(self, arrays: State) -> None:
        for name in json.loads(str(arrays.pop("absent"))):
            setattr(self, name, None)
        parts: dict[str, State] = {}
        for key, array in arrays.items():
            kind, name, *rest = key.split("/")
            if kind == "part":
                parts.setdefault(name, {})[rest[0]] = array.copy()
            elif kind == "rng":
                setattr(self, name, rng_from_array(array))
            else:
                setattr(self, name, array.item() if array.shape == () else array.copy())
        for name, part in parts.items():
            setattr(self, name, self._parts[name].from_arrays(part))
