"""4 000 Debian packages: the vectors of their descriptions, and their tags.

Origin: descriptions in the package lists of Debian, embedded with WordLlama (256 dimensions); the labels are
the debtags that volunteers gave the packages (https://debtags.debian.org), those 51 that are most frequent.
packages.npz keeps a random 4 000 of the 30 253 tagged ones: the first 128 principal components (not centered,
so that cosine stays what it was) as int8 with a scale for each. That costs exact cosine nothing: P@10 is .572
before and after.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Packages(NamedTuple):
    names: list[str]
    vectors: npt.NDArray[np.float32]
    tags: list[list[str]]

    def part(self, start: int, end: int) -> Packages:
        return Packages(self.names[start:end], self.vectors[start:end], self.tags[start:end])


def load() -> Packages:
    """The packages, in an order that a seed drew."""
    with as_file(files(__package__) / "packages.npz") as path, np.load(path) as stored:
        classes = [str(name) for name in stored["classes"]]
        members = np.unpackbits(stored["labels"], axis=1, count=len(classes)).astype(bool)
        return Packages(
            [name.decode() for name in stored["names"]],
            stored["vectors"].astype(np.float32) * stored["scale"],
            [[classes[at] for at in np.flatnonzero(row)] for row in members],
        )
