"""Learners of hash functions (numpy and scipy only)."""

from __future__ import annotations

from foh_pg.learners.adapthash import AdaptHash
from foh_pg.learners.base import Learner
from foh_pg.learners.bsodh import BSODH
from foh_pg.learners.foh import FOH
from foh_pg.learners.hmoh import HMOH
from foh_pg.learners.hyperplanes import RandomHyperplanes
from foh_pg.learners.mihash import MIHash
from foh_pg.learners.okh import OKH
from foh_pg.learners.osh import OSH
from foh_pg.learners.registry import get, names, register
from foh_pg.learners.sketchhash import SketchHash

__all__ = [
    "BSODH",
    "FOH",
    "HMOH",
    "OKH",
    "OSH",
    "AdaptHash",
    "Learner",
    "MIHash",
    "RandomHyperplanes",
    "SketchHash",
    "get",
    "names",
    "register",
]
