"""Learners of hash functions (numpy and scipy only)."""

from __future__ import annotations

from foh_pg.learners.base import Learner
from foh_pg.learners.foh import FOH
from foh_pg.learners.guard import Verdict, compare_with_random
from foh_pg.learners.hyperplanes import RandomHyperplanes
from foh_pg.learners.registry import get, names, register

__all__ = [
    "FOH",
    "Learner",
    "RandomHyperplanes",
    "Verdict",
    "compare_with_random",
    "get",
    "names",
    "register",
]
