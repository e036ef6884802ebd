"""Every learner passes the checks that all learners share."""

from __future__ import annotations

import pytest

from foh_pg import learners
from foh_pg.learners import checks


@pytest.mark.parametrize("name", learners.names())
@pytest.mark.parametrize("check", checks.ALL, ids=lambda check: check.__name__)
def test_conformance(name, check):
    check(lambda **options: learners.get(name)(**{"warmup": 20, **options}))
