"""What is published: a wheel and an sdist that the tools accept, one version, workflows that name what is there."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from foh_pg.version import __version__

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def build(source: Path, target: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    [made] = [path for path in folder.iterdir() if path.is_file()]
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel_of_sdist(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as whoever has nothing but the sdist builds it."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder)
    return build(folder / sdist.name.removesuffix(".tar.gz"), "wheel", tmp_path_factory.mktemp("wheel"))


def test_the_sdist_builds_the_wheel(wheel_of_sdist: Path, tmp_path: Path) -> None:
    def contents(wheel: Path) -> dict[str, int]:
        return {entry.filename: entry.CRC for entry in zipfile.ZipFile(wheel).infolist()}

    assert contents(wheel_of_sdist) == contents(build(ROOT, "wheel", tmp_path))


def test_the_sdist_has_what_tests_it(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "Makefile",
        "CHANGELOG.md",
        "LICENSE",
        "tests/conftest.py",
        "docs/index.md",
        "mkdocs.yml",
    } <= names
    left_out = re.compile(r"\.ci/|\.venv|site/|dist/|.*__pycache__|.*\.pyc$")
    assert not [name for name in names if left_out.match(name)]


def test_twine_accepts_both(sdist: Path, wheel_of_sdist: Path) -> None:
    pytest.importorskip("twine")
    run(sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel_of_sdist))


def test_check_wheel_contents_accepts_the_wheel(wheel_of_sdist: Path) -> None:
    pytest.importorskip("check_wheel_contents")
    run(sys.executable, "-m", "check_wheel_contents", str(wheel_of_sdist))


def run(*command: str) -> None:
    # In the checkout, where pyproject.toml has the settings of the tools.
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_changelog_begins_with_this_version_and_dates_the_others() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    present, *released = headings
    assert re.fullmatch(rf"{re.escape(__version__)} \((unreleased|\d{{4}}-\d\d-\d\d)\)", present)
    for heading in released:
        assert re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", heading)


def test_the_version_is_in_one_place() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert 'dynamic = ["version"]' in project
    assert not re.search(r"^version =", project, flags=re.MULTILINE)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_name_what_is_there(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    steps = [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    extras = set(re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE))
    for command in [step["run"] for step in steps if "run" in step]:
        assert set(re.findall(r"\bmake (\w+)", command)) <= set(targets)
        for named in re.findall(r"\.\[([\w,]+)\]", command):
            assert set(named.split(",")) <= extras


def test_every_python_we_claim_is_tested() -> None:
    yaml = pytest.importorskip("yaml")
    jobs: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]
    matrix = jobs["servers"]["strategy"]["matrix"]
    project = (ROOT / "pyproject.toml").read_text()
    claimed = set(re.findall(r"Python :: (3\.\d+)", project))
    [oldest] = re.findall(r'requires-python = ">=(3\.\d+)"', project)
    assert claimed <= set(matrix["python"])
    assert matrix["python"][0] == oldest
    assert matrix["postgres"] == ["16", "17", "18"]
