"""The saved form of what is made of arrays and plain values: flat arrays by name, as npz files hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]

# The entry that has all values that are no arrays, as JSON.
PLAIN = "plain"


def flatten(values: Mapping[str, Any]) -> Arrays:
    """Copies of the arrays, by name; those inside of a mapping or a dataclass below its name and a slash.

    >>> flat = flatten({"mean": np.arange(2), "rows": 3, "codes": {"bits": 8, "packed": np.eye(1)}})
    >>> sorted(flat)
    ['codes/packed', 'codes/plain', 'mean', 'plain']
    >>> unflatten(flat)
    {'mean': array([0, 1]), 'rows': 3, 'codes': {'packed': array([[1.]]), 'bits': 8}}
    """
    arrays: Arrays = {}
    plain: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value.copy()
        elif isinstance(value, Mapping) or is_dataclass(value):
            inside = value if isinstance(value, Mapping) else values_of(value)
            arrays |= {f"{name}/{below}": array for below, array in flatten(inside).items()}
        else:
            plain[name] = value
    text = json.dumps(plain, sort_keys=True, default=_as_json)
    return {**arrays, PLAIN: np.frombuffer(text.encode(), dtype=np.uint8)}


def values_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as they are."""
    return {part.name: getattr(value, part.name) for part in fields(value)}


def unflatten(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """What `flatten` was given: mappings in place of dataclasses, tuples in place of all sequences."""
    values: dict[str, Any] = {}
    inside: dict[str, Arrays] = {}
    for key, array in arrays.items():
        name, slash, below = key.partition("/")
        if slash:
            inside.setdefault(name, {})[below] = array
        elif name == PLAIN:
            plain = dict(json.loads(array.tobytes()))
            values |= {each: tuple(v) if isinstance(v, list) else v for each, v in plain.items()}
        else:
            values[name] = np.array(array)
    return values | {name: unflatten(part) for name, part in inside.items()}


def _as_json(value: Any) -> Any:
    """Numbers of numpy's, and else the text of a value, such as a uuid."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
