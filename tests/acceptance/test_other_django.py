"""The suite runs on one version of Django; this runs what concerns Django on the others that this Python can have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import django
import pytest

from tests.support.packages import install_into
from tests.support.postgres import Server

pytestmark = pytest.mark.first

ROOT = Path(__file__).parent.parent.parent
# The release with long support, and the newest there is. The newest needs a newer Python than the oldest that
# we support: where pip cannot give it, the test says so.
OTHERS = {"5.2": "django==5.2.*", "newest": "django>=6"}
INSTALLED = ".".join(map(str, django.VERSION[:2]))
TESTS = [
    "tests/integration/django_shop/test_queryset.py",
    "tests/integration/django_shop/test_migrations.py::TestSampleProject",
    "tests/integration/django_shop/test_migrations.py::TestMakemigrations",
    "tests/integration/django_shop/test_migrations.py::TestModelsWithTheirIndexes",
    "tests/integration/django_shop/test_command.py::test_exit_codes",
]


@pytest.mark.parametrize("version", OTHERS)
def test_on_the_other_versions(server: Server, version: str, tmp_path: Path) -> None:
    if version == INSTALLED or (version == "newest" and django.VERSION >= (6,)):
        pytest.skip(f"Django {INSTALLED} is what the whole suite runs with")
    other = install_into(tmp_path, OTHERS[version])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(other), str(ROOT)]),
        "FOH_TEST_DSN": server.superuser_dsn,
    }
    command = [sys.executable, "-c", "import django; print(django.__version__)"]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert not found.startswith(INSTALLED)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
