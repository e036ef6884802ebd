"""pytest-alembic's default set, on the sample application."""

from __future__ import annotations

import pytest
from pytest_alembic.tests import (
    test_model_definitions_match_ddl,
    test_single_head_revision,
    test_up_down_consistency,
    test_upgrade,
)

__all__ = [
    "test_model_definitions_match_ddl",
    "test_single_head_revision",
    "test_up_down_consistency",
    "test_upgrade",
]

# One run for each version of PostgreSQL; the tests themselves ask for no server.
pytestmark = pytest.mark.usefixtures("server")
