"""The wheel, installed where no checkout is near."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from foh_pg.schema import migrations

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that has the wheel, and our dependencies from this one's."""
    home = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    install = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install"]
    subprocess.run(
        [*install, "--no-deps", "--no-index", "--quiet", str(wheel)], check=True, capture_output=True
    )
    # sys.path and not site.addsitedir: the .pth file of the editable install would bring the checkout back.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return home / "bin"


def run(installed: Path, *command: str, cwd: Path, **environment: str) -> str:
    clean = {"PATH": os.environ["PATH"], "HOME": str(cwd), **environment}
    result = subprocess.run(
        [str(installed / command[0]), *command[1:]], cwd=cwd, env=clean, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_wheel_carries_sql_and_migrations(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = [
        path for folder in ("sql", "migrations") for path in (CHECKOUT / folder).rglob("*") if path.is_file()
    ]
    shipped = {
        f"foh_pg/{path.relative_to(CHECKOUT).as_posix()}"
        for path in ours
        if path.suffix in {".sql", ".py", ".mako"}
    }
    assert shipped <= names
    assert "foh_pg/py.typed" in names
    assert not [
        name for name in names if name.startswith(("tests/", "docs/", "lab/")) or name.endswith(".pyc")
    ]


def test_nothing_comes_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    found = run(installed, "python", "-c", "import foh_pg; print(foh_pg.__file__)", cwd=tmp_path)
    assert Path(found.strip()).is_relative_to(installed.parent)


def test_prints_the_same_sql(installed: Path, tmp_path: Path) -> None:
    assert run(installed, "foh-pg", "migrate", "--sql", cwd=tmp_path) == migrations.offline()


def test_migrates_an_embedded_server(installed: Path, tmp_path: Path) -> None:
    program = """if True:
        import subprocess, sys
        from foh_pg.postgres.embedded import EmbeddedServer
        import psycopg
        with EmbeddedServer(sys.argv[1], 16) as server:
            with psycopg.connect(server.dsn(), autocommit=True) as connection:
                connection.execute("CREATE EXTENSION vector")
            subprocess.run(["foh-pg", "migrate", "--dsn", server.dsn()], check=True)
            with psycopg.connect(server.dsn()) as connection:
                print(connection.execute("TABLE foh.alembic_version").fetchone()[0])
    """
    path = f"{installed}{os.pathsep}{os.environ['PATH']}"
    printed = run(installed, "python", "-c", program, str(tmp_path / "data"), cwd=tmp_path, PATH=path)
    assert printed.split() == [migrations.head()]
