"""Learners of hash functions (numpy and scipy only)."""

from __future__ import annotations

from foh_pg.learners.base import Learner
from foh_pg.learners.foh import FOH
from foh_pg.learners.hyperplanes import RandomHyperplanes

__all__ = ["FOH", "Learner", "RandomHyperplanes"]
