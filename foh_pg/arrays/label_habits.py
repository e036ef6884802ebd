"""Labels that look like a mistake: lists in one text, and labels that no two rows share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

# Fewer labels say nothing.
LEAST = 50
COMMAS, DIFFERENT = 0.5, 0.8


def strange_labels(names: Sequence[str], rows: int) -> Iterator[tuple[str, str]]:
    """What looks wrong with the labels of so many rows, and what helps.

    `names`: all different labels that were met, of `rows` rows that have one.

    >>> found = list(strange_labels([f"red,{i}" for i in range(60)], 1000))
    >>> found[0][0]
    "60 of 60 labels have a comma in them, such as 'red,0': each text is one label"
    >>> [problem for problem, _ in strange_labels([str(i) for i in range(90)], 100)]
    ['90 different labels on 100 rows: labels that no other row has teach nothing']
    >>> list(strange_labels(["red", "blue"], 100))
    []
    """
    if len(names) < LEAST:
        return
    listed = [name for name in names if "," in name]
    if len(listed) > COMMAS * len(names):
        yield (
            f"{len(listed)} of {len(names)} labels have a comma in them, such as {listed[0][:40]!r}: "
            "each text is one label",
            "keep them as an array: string_to_array(column, ',') in a generated column, for example",
        )
    if len(names) > DIFFERENT * rows:
        yield (
            f"{len(names)} different labels on {rows} rows: labels that no other row has teach nothing",
            "take a column whose values rows share, such as a category",
        )
