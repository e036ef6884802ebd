"""The suite runs on one version of SQLAlchemy; this runs what concerns SQLAlchemy on the other one, 2.0 or 2.1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.support.packages import install_into
from tests.support.postgres import Server

pytestmark = pytest.mark.first

ROOT = Path(__file__).parent.parent.parent
OTHER = "2.1" if sa.__version__.startswith("2.0.") else "2.0"
TESTS = [
    "tests/integration/clients/test_sqlalchemy.py",
    "tests/integration/alembic/test_pytest_alembic.py",
    "tests/integration/alembic/test_alembic.py::TestSampleApplication",
]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_into(tmp_path_factory.mktemp("sqlalchemy"), f"sqlalchemy=={OTHER}.*")


def test_on_the_other_version(server: Server, other: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(other), str(ROOT)]),
        "FOH_TEST_DSN": server.superuser_dsn,
    }
    version = [sys.executable, "-c", "import sqlalchemy; print(sqlalchemy.__version__)"]
    found = subprocess.run(version, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(OTHER)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
