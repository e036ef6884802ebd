"""The README, and every page with code in `docs/`, do what they say: blocks are run, in order, as a reader would.

`sql`, `python` and `sh` blocks run in a new database that has pgvector and nothing of ours, as its owner.
A `text` block right after one holds what it prints. `file=NAME` after the language writes the block to a file;
`norun` leaves it alone, as are all other languages; what `foh-pg advise` says of the demo the README shows.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import sql

from foh_pg.postgres.embedded import EmbeddedServer
from tests.support.postgres import Database, Server, install_pgvector

DOCS = Path(__file__).parent.parent.parent / "docs"
README = DOCS.parent / "README.md"
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Pages whose blocks need what a database alone does not have: schedulers (test_jobs.py),
# containers (test_containers.py), a cluster (tests/citus), a standby (tests/faults/test_replica.py).
ELSEWHERE = {
    "how-to/jobs.md",
    "how-to/containers.md",
    "how-to/citus.md",
    "how-to/replicas.md",
}
RUN = {"sql", "python"}
NEEDS = {
    "how-to/asyncpg.md": "asyncpg",
    "how-to/django.md": "django",
    "how-to/haystack.md": "haystack",
    "how-to/langchain.md": "langchain_core",
}


# Pages that run programs of node, and the packages that these import.
NODE = {"how-to/typescript.md": ("pg", "drizzle-orm")}


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Gives a folder with packages of node: FOH_NODE_MODULES, that of all users, or one that npm fills."""

    def find(*packages: str) -> Path:
        npm = shutil.which("npm")
        if shutil.which("node") is None or npm is None:
            pytest.skip("node is not installed")
        everybody = subprocess.run([npm, "root", "--global"], capture_output=True, text=True).stdout.strip()
        for folder in filter(None, (os.environ.get("FOH_NODE_MODULES"), everybody)):
            if all((Path(folder) / package).is_dir() for package in packages):
                return Path(folder)
        made = tmp_path_factory.mktemp("node")
        install = [
            npm,
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--fetch-retries=0",
            *packages,
        ]
        done = subprocess.run(install, cwd=made, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(
                f"npm cannot install {' '.join(packages)}, and FOH_NODE_MODULES names no folder with them: {done.stderr}"
            )
        return made / "node_modules"

    return find


class Block(NamedTuple):
    language: str
    info: str
    code: str
    expected: str | None


def blocks(page: Path) -> list[Block]:
    found = list(FENCE.finditer(page.read_text()))
    made = []
    for position, match in enumerate(found):
        following = found[position + 1] if position + 1 < len(found) else None
        expected = following.group(3) if following is not None and following.group(1) == "text" else None
        made.append(Block(match.group(1), match.group(2).strip(), match.group(3), expected))
    return made


def pages() -> list[str]:
    """All pages with SQL or Python on them; commands that they show besides are run too."""
    return [
        path
        for page in sorted(DOCS.rglob("*.md"))
        if (path := page.relative_to(DOCS).as_posix()) not in ELSEWHERE
        and any(block.language in RUN for block in blocks(page))
    ]


class Reader:
    """Somebody who types what a page says."""

    def __init__(self, database: Database, folder: Path, environment: dict[str, str]) -> None:
        self.database = database
        self.folder = folder
        self.environment = environment
        self.names: dict[str, Any] = {"__name__": "docs"}
        self.roles: list[str] = []

    def follow(self, block: Block) -> None:
        if file := re.search(r"file=(\S+)", block.info):
            path = self.folder / file.group(1)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.code)
            return
        run = {"sql": self.sql, "python": self.python, "sh": self.sh}.get(block.language)
        if run is None or "norun" in block.info:
            return
        self.roles += re.findall(r"CREATE ROLE (\w+)", block.code)
        printed = run(block.code)
        if block.expected is not None:
            assert normal(printed) == normal(block.expected), block.code

    def sql(self, code: str) -> str:
        with psycopg.connect(autocommit=True) as connection:
            cursor = connection.execute(code.encode())
            while cursor.nextset():
                pass
            if cursor.description is None:
                return ""
            names = " | ".join(column.name for column in cursor.description)
            return "\n".join([names, *(" | ".join(map(shown, row)) for row in cursor)])

    def python(self, code: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs", "exec", dont_inherit=True), self.names)
        return printed.getvalue()

    def sh(self, code: str) -> str:
        if "psql" in code and shutil.which("psql", path=self.environment["PATH"]) is None:
            pytest.skip("this server brings no psql")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    return "" if value is None else str(value)


def normal(printed: str) -> list[list[str]]:
    """Lines as cells: psql's padding, its ruler and its count of rows are looks."""
    lines = [
        line for line in printed.strip().splitlines() if not re.fullmatch(r"[-+\s]+|\(\d+ rows?\)", line)
    ]
    return [[cell.strip() for cell in line.split("|")] for line in lines]


@pytest.fixture
def reader(
    server: Server,
    new_database: Callable[..., Database],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Reader]:
    database = new_database()
    superuser = database.connect(None)
    install_pgvector(superuser)
    path = [str(Path(sys.executable).parent), str(server.bin) if server.bin else "", os.environ["PATH"]]
    environment = {
        **database.environment("installer"),
        "PGOPTIONS": "-c search_path=public,extensions",
        "PATH": os.pathsep.join(filter(None, path)),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(DOCS.parent)]),
    }
    for name, value in environment.items():
        if name.startswith("PG"):
            monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    reader = Reader(database, tmp_path, environment)
    yield reader
    for role in reader.roles:
        superuser.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
        superuser.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


@pytest.mark.parametrize("page", pages())
def test_page(reader: Reader, page: str, node_modules: Callable[..., Path]) -> None:
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    if page in NODE:
        (reader.folder / "node_modules").symlink_to(node_modules(*NODE[page]))
    done = [reader.follow(block) for block in blocks(DOCS / page)]
    assert done, f"{page} has no code"


@pytest.mark.parametrize("page", pages())
def test_no_sql_and_no_python_is_left_out(page: str) -> None:
    left_out = [b.code for b in blocks(DOCS / page) if b.language in RUN and "norun" in b.info]
    assert left_out == []


def test_the_readme_runs(reader: Reader) -> None:
    """Its five commands print what it shows, but for figures; of the rows found it names some."""
    reader.sh("foh-pg demo --load")
    [session] = re.findall(r"^```console\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, shown_there = part.partition("\n")
        if " search " in command:
            printed = reader.sh(command.replace("-k 3", "-k 10"))
            assert found(shown_there) <= found(printed)
        else:
            printed = reader.sh(f"{command} 2>&1")
            assert set(without_figures(shown_there)) <= set(without_figures(printed)), printed


def test_the_install_page_starts_a_server(tmp_path: Path) -> None:
    """Somebody without a server has one with pgvector, and a psql, after the lines of the page."""
    [code] = [b.code for b in blocks(DOCS / "start/install.md") if b.info == "file=server.py"]
    (tmp_path / "server.py").write_text(code)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "PYTHONPATH": str(DOCS.parent)}

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-euc", command], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    try:
        assert run(
            'eval "$(python server.py)"; foh-pg demo --load; psql -Atc "SELECT count(*) FROM package"'
        ) == ("public.package\n4000\n")
    finally:
        EmbeddedServer(tmp_path / "pgdata").stop()


def without_figures(printed: str) -> list[str]:
    return [re.sub(r"[\d.]+", "#", line) for line in printed.splitlines()]


def found(printed: str) -> set[str]:
    """The names in the second column of what `foh-pg search` prints."""
    return {line.split()[1] for line in printed.splitlines()}
