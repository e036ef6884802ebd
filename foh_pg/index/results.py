"""What is made of the server's rows, the same for both kinds of connection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from foh_pg.errors import InputError
from foh_pg.postgres.vectors import parse_vector

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Description(NamedTuple):
    """What an index is made of, as its function `describe` tells."""

    source: str
    # The columns of the key, and their types.
    key: tuple[str, ...]
    key_types: tuple[str, ...]
    embedding: str
    labels: str | None
    dimensions: int
    bits: int
    distance: str
    version: int
    vector_schema: str
    vector_type: int
    # Columns that a search may match.
    include: tuple[str, ...]
    # Whether the table is distributed by Citus.
    distributed: bool = False


class Match(NamedTuple):
    """A row that a search found.

    `distance` is that of the row from the query, as pgvector's operator for the index's distance gives it;
    None where no row was read (a search with shortlist 0, and candidates). `score` is what the rows are
    ranked by, smaller is nearer: the distance, or its estimate from the bits where there is none, and what
    the labels add. It is None among candidates, which are not ranked. `key` is a tuple if the key has
    several columns.
    """

    key: Any
    distance: float | None
    score: float | None


def description(row: tuple[Any, ...]) -> Description:
    return Description._make(tuple(value) if isinstance(value, list) else value for value in row)


def as_match(row: Sequence[Any]) -> Match:
    """A row of (column of the key, ..., distance, score)."""
    if len(row) == 3:
        return Match(*row)
    *key, distance, score = row
    return Match(tuple(key), distance, score)


def key_values(about: Description, key: Any) -> list[Any]:
    """The value of each column of a key, as the caller gave it."""
    if len(about.key) == 1:
        return [key]
    if not isinstance(key, (tuple, list)) or len(key) != len(about.key):
        columns = ", ".join(about.key)
        raise InputError(
            f"{key!r} is no key of {about.source}: give a tuple of {len(about.key)}, ({columns})"
        )
    return list(key)


class Suggestion(NamedTuple):
    """A label that a row may have.

    `chance` is how likely the row has the label, as held-out rows have shown; `neighbors` how many of the
    nearest rows with labels have it.
    """

    label: str
    chance: float
    neighbors: int


class Suggested(NamedTuple):
    """A row without labels, and those that it may have, the likeliest first."""

    key: Any
    labels: list[Suggestion]


def suggestions(rows: Iterable[tuple[Any, ...]]) -> list[Suggested]:
    """Lines of (column of the key, ..., label, chance, neighbors), as one entry for each row.

    Those of a row stand one after another. A row for which nothing can be said has a line without a label.
    """
    found: list[Suggested] = []
    for *columns, label, chance, neighbors in rows:
        key = columns[0] if len(columns) == 1 else tuple(columns)
        if not found or found[-1].key != key:
            found.append(Suggested(key, []))
        if label is not None:
            found[-1].labels.append(Suggestion(label, chance, neighbors))
    return found


def batches(count: int, rows: Iterable[tuple[Any, ...]]) -> list[list[Match]]:
    """Rows of (number of the query, key, distance, score) as one list for each query."""
    answers: list[list[Match]] = [[] for _ in range(count)]
    for number, *found in rows:
        answers[number - 1].append(as_match(found))
    return answers


def one_vector(about: Description, key: Any, rows: Sequence[tuple[Any, ...]]) -> npt.NDArray[np.float32]:
    """The embedding in binary; an error where the row is missing or has none."""
    if not rows:
        raise InputError(f"{about.source} has no row with {_equation(about, key)} that this role can see")
    if rows[0][0] is None:
        raise InputError(f"the row with {_equation(about, key)} of {about.source} has no embedding")
    return parse_vector(rows[0][0])


def _equation(about: Description, key: Any) -> str:
    return " and ".join(
        f"{column} = {value!r}" for column, value in zip(about.key, key_values(about, key), strict=True)
    )
