"""What a benchmark recorded, and the tables that are made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Record = dict[str, Any]
Value = Callable[[Record], float]

REFERENCE_METHOD = ("foh", "symmetric")


@dataclass(frozen=True)
class Table:
    """Text in rows and columns."""

    # title, note: what it shows, and how to read it.
    title: str
    note: str
    # The first one names the rows.
    columns: Sequence[str]
    # Cells.
    rows: Sequence[Sequence[str]]
    # Cells to point out.
    best: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    # Columns with words instead of numbers, besides the first.
    words: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Report:
    """Everything that was measured, and where."""

    benchmark: str
    data: dict[str, Any]
    settings: dict[str, Any]
    environment: dict[str, Any]
    records: list[Record]

    def to_json(self) -> dict[str, Any]:
        """Give a dict that `json.dump` takes."""
        return dict(vars(self))

    def origin(self) -> str:
        """One line on data, seeds, versions and machine, to stand under every figure."""
        machine, versions = self.environment["machine"], self.environment["versions"]
        return (
            f"{self.data['name']} ({self.data['rows']} rows, {self.data['dimensions']} dimensions, "
            f"{self.data['labels']} labels); {self._drawn()}; "
            f"{', '.join(f'{name} {version}' for name, version in versions.items())}; "
            f"{machine['processor']}, {machine['cores']} cores, {machine['threads'] or 'all'} in use, "
            f"{machine['system']}; "
            f"{self.environment['date']}"
        )

    def _drawn(self) -> str:
        if "seeds" not in self.settings:
            told = ("rows", "queries", "bits", "seed", "shared_buffers")
            chosen = told if self.benchmark == "search" else tuple(self.settings)
            given = {name: self.settings.get(name) for name in chosen}
            return ", ".join(f"{name} {value}" for name, value in given.items() if value is not None)
        seeds = ", ".join(str(seed) for seed in self.settings["seeds"])
        drawn = next((r for r in self.records if "queries" in r), self.settings["protocol"])
        return (
            f"{drawn['queries']} queries, stream of {drawn['stream']} rows in batches of {drawn['batch']}; "
            f"seeds {seeds}"
        )

    def select(self, experiment: str) -> list[Record]:
        """Records of one experiment."""
        return [record for record in self.records if record["experiment"] == experiment]


def row_name(record: Record) -> str:
    """Name the row of a record: method, and codes where they are not the plain ones."""
    return f"{record['method']}, anchored" if record.get("codes") == "anchored" else str(record["method"])


def rows_of(records: Iterable[Record]) -> list[str]:
    """Names of the rows in order of appearance, those that read stored labels last."""
    names = {row_name(record): bool(record.get("stored_labels")) for record in records}
    return sorted(names, key=lambda name: names[name])


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation over seeds.

    Examples
    --------
    >>> spread([0.5, 0.6])
    '.550 ± .071'
    >>> spread([0.5])
    '.500'
    """
    if not values or np.isnan(values).any():
        return "-"
    mean = _short(float(np.mean(values)))
    return mean if len(values) == 1 else f"{mean} ± {_short(float(np.std(values, ddof=1)))}"


def _short(value: float) -> str:
    text = f"{abs(value):.3f}"
    text = text[1:] if text.startswith("0.") else text
    return f"-{text}" if value < 0 and text != ".000" else text
