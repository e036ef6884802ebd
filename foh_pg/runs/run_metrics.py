"""The metrics of a run, as far as programs can read them: anybody who may update an index can write them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

# What runs write into their metrics that is read here: numbers, groups of numbers, and notes.
NUMBERS = ("map", "map_present", "flipped", "lag_seconds")
GROUPS = ("index", "exact", "kept", "labels", "labels_vote", "labels_classifier")


def readable(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of a run without what no run of ours writes; a note names what was left out.

    >>> readable({"map": 0.5, "index": {"p10": 0.4}, "other": [1]})
    {'map': 0.5, 'index': {'p10': 0.4}, 'other': [1]}
    >>> readable({"index": {"p10": 0.4, "both10": None}})
    {'index': {'p10': 0.4}}
    >>> readable({"map": "boo", "index": [1]})
    {'notes': ['not shown, for foh_pg has not written it: map, index']}
    """
    known = (*NUMBERS, *GROUPS, "notes")
    strange = [name for name in known if name in metrics and not is_readable(name, metrics[name])]
    kept = {name: value for name, value in metrics.items() if name not in strange}
    # A figure that nothing could be measured by is null: it is left out like one that is not there.
    for name in set(GROUPS) & set(kept):
        kept[name] = {key: value for key, value in kept[name].items() if value is not None}
    if strange:
        said = f"not shown, for foh_pg has not written it: {', '.join(strange)}"
        kept["notes"] = [*kept.get("notes", []), said]
    return kept


def is_readable(name: str, value: Any) -> bool:
    if name == "notes":
        return isinstance(value, list) and all(isinstance(note, str) for note in value)
    if name in NUMBERS:
        return value is None or is_number(value)
    return isinstance(value, dict) and all(each is None or is_number(each) for each in value.values())


def is_number(value: Any) -> bool:
    """Whether this is a number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value) if isinstance(value, float) else value.bit_length() < 1000


def duration(seconds: float) -> str:
    """A length of time as people say it.

    >>> [duration(x) for x in (-1, 4.6, 119, 7300, 400_000)]
    ['0 s', '5 s', '119 s', '122 min', '111 h']
    """
    seconds = max(0.0, seconds)
    for unit, size, most in (("s", 1, 120), ("min", 60, 180), ("h", 3600, 120)):
        if seconds / size < most:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"
