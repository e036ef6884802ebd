"""Every example in the documentation of these modules runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import foh_pg.arrays
import foh_pg.clustering
import foh_pg.learners
import lab.rivals

MODULES = [
    "foh_pg.django.statements",
    "foh_pg.hashing",
    *(f"foh_pg.arrays.{module.name}" for module in pkgutil.iter_modules(foh_pg.arrays.__path__)),
    *(f"foh_pg.learners.{module.name}" for module in pkgutil.iter_modules(foh_pg.learners.__path__)),
    "lab.rivals",
    *(f"lab.rivals.{module.name}" for module in pkgutil.iter_modules(lab.rivals.__path__)),
    *(f"foh_pg.clustering.{module.name}" for module in pkgutil.iter_modules(foh_pg.clustering.__path__)),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    documented = [
        name for name in MODULES if any(t.examples for t in finder.find(importlib.import_module(name)))
    ]
    assert {
        "foh_pg.arrays.codes",
        "foh_pg.arrays.labels",
        "foh_pg.arrays.metrics",
        "foh_pg.learners.foh",
    } <= set(documented)
