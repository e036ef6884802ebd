"""Learners by name: what `learner => 'foh'` of an index means."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from foh_pg.errors import InputError

if TYPE_CHECKING:
    from foh_pg.learners.base import Learner

_learners: dict[str, type[Learner]] = {}

T = TypeVar("T", bound="type[Learner]")


def register(cls: T) -> T:
    """Make a learner known under its `name` (a class decorator)."""
    taken = _learners.get(cls.name)
    if not cls.name or (taken is not None and taken is not cls):
        raise ValueError(f"{cls.__name__} needs a name of its own, {cls.name!r} is empty or taken")
    _learners[cls.name] = cls
    return cls


def get(name: str) -> type[Learner]:
    """Return the learner class of that name.

    Examples
    --------
    >>> get("random").__name__
    'RandomHyperplanes'
    """
    try:
        return _learners[name]
    except KeyError:
        raise InputError(f"there is no learner {name!r}, only {', '.join(names())}") from None


def names() -> list[str]:
    """Names of all learners, sorted."""
    return sorted(_learners)
