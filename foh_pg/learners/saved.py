"""What a learner was given and has learned, as plain arrays and back."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from foh_pg.arrays.flat import Arrays, flatten, unflatten
from foh_pg.arrays.labels import LabelSets
from foh_pg.errors import InputError, StateError

if TYPE_CHECKING:
    from typing_extensions import Self

# The version of the saved form.
FORMAT = 1


class Saved(ABC):
    """Base of what has hyper-parameters and learned attributes, whose names end with an underscore."""

    # What a saved state says that it is the state of.
    name: ClassVar[str] = ""
    _named: ClassVar[dict[str, type[Saved]]] = {}
    # Learned attributes that are dataclasses. A field of them that holds label sets is called `sets`.
    _parts: ClassVar[Mapping[str, type[Any]]] = {}

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

    def state(self) -> Arrays:
        """Give everything as a flat dict of plain arrays with a format version.

        >>> from foh_pg.learners import RandomHyperplanes
        >>> learner = RandomHyperplanes(bits=8).start(4)
        >>> restored = RandomHyperplanes.from_state(learner.state())
        >>> bool((restored.projection_ == learner.projection_).all())
        True
        """
        return flatten(self.saved())

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Restore a learner, bit for bit: its next stage is the one the saved learner would have made."""
        return cls.restored(unflatten(state))

    def saved(self) -> dict[str, Any]:
        """Give everything in the form that `flatten` takes."""
        learned = {name: self._saved(name, value) for name, value in vars(self).items() if name.endswith("_")}
        return {"format": FORMAT, "learner": self.name, "parameters": self.parameters(), "learned": learned}

    def _saved(self, name: str, value: Any) -> Any:
        return value.bit_generator.state if isinstance(value, np.random.Generator) else value

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> Self:
        """Restore what `saved` gave; who stores it sees that nothing of it is damaged."""
        if saved.get("format") != FORMAT:
            raise StateError(
                f"the state has format {saved.get('format')}, this version of foh_pg reads format {FORMAT}"
            )
        try:
            found = Saved._named[saved["learner"]]
            if not issubclass(found, cls):
                raise StateError(f"this is the state of a {found.__name__}, not of a {cls.__name__}")
            learner = found(**saved["parameters"])
            for name, value in saved["learned"].items():
                setattr(learner, name, learner._restored(name, value))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StateError(f"the state does not fit this version of foh_pg: {error}") from error
        return learner

    def _restored(self, name: str, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if name in self._parts:
            sets = {"sets": LabelSets(**value["sets"])} if "sets" in value else {}
            return self._parts[name](**{**value, **sets})
        generator = np.random.Generator(np.random.PCG64())
        generator.bit_generator.state = value
        return generator
