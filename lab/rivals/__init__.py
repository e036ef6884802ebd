"""Learners that FOH is compared with, each after its paper and the program of its authors."""

from __future__ import annotations

from foh_pg.errors import InputError
from foh_pg.learners import FOH, Learner, RandomHyperplanes
from lab.rivals.adapthash import AdaptHash
from lab.rivals.bsodh import BSODH
from lab.rivals.hmoh import HMOH
from lab.rivals.mihash import MIHash
from lab.rivals.okh import OKH
from lab.rivals.osh import OSH
from lab.rivals.sketchhash import SketchHash

__all__ = ["BSODH", "HMOH", "LEARNERS", "OKH", "OSH", "AdaptHash", "MIHash", "SketchHash", "find"]

# All that are compared, by name.
LEARNERS: dict[str, type[Learner]] = {
    learner.name: learner
    for learner in (AdaptHash, BSODH, FOH, HMOH, MIHash, OKH, OSH, RandomHyperplanes, SketchHash)
}


def find(name: str) -> type[Learner]:
    """Return the learner of that name.

    Examples
    --------
    >>> find("random").__name__
    'RandomHyperplanes'
    """
    if name not in LEARNERS:
        raise InputError(f"there is no learner {name!r}, only {', '.join(LEARNERS)}")
    return LEARNERS[name]
