"""Every learner passes the checks that all learners share."""

from __future__ import annotations

import pytest

from lab.rivals import LEARNERS
from tests.support import learner_checks as checks


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("check", checks.ALL, ids=lambda check: check.__name__)
def test_conformance(name, check):
    check(lambda **options: LEARNERS[name](**{"warmup": 20, **options}))
