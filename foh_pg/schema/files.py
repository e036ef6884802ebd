"""The SQL files and the migration scripts, wherever this package was installed from."""

from __future__ import annotations

from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


@cache
def folder(name: str) -> Path:
    """The folder `sql` or `migrations`: inside an installed wheel, else at the top of the checkout."""
    for candidate in (PACKAGE / name, PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(
        f"the folder {name!r} of foh_pg is missing beside {PACKAGE}: the installation is incomplete, "
        "install the package again"
    )


def sql(name: str) -> str:
    """The text of one file below `sql/`, for example ``sql("install/grants.sql")``."""
    return (folder("sql") / name).read_text(encoding="utf-8")


def migration(name: str) -> str:
    """The text of one file below `migrations/sql/`: once released, it does not change any more."""
    return (folder("migrations") / "sql" / name).read_text(encoding="utf-8")


def sql_files(*names: str) -> list[str]:
    """The .sql files below these folders of `sql/`, relative to it, in the order of their names in each."""
    root = folder("sql")
    return [
        path.relative_to(root).as_posix()
        for name in names
        for path in sorted((root / name).rglob("*.sql"), key=lambda path: path.name)
    ]
