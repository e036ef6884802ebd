"""The SQL files and the migration scripts, wherever this package was installed from.

A file of `sql/` holds several pieces. Above each stands its head, a comment that begins with ``foh:`` and is
the only place that says what the piece is, for which indexes, and who may call it::

    -- foh: function search, if distributed, called by readers and updaters
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent.parent

MARK = "-- foh:"
HEAD = re.compile(
    r"-- foh: (?P<kind>table|type|function|node|fragment|script|step) (?P<name>[a-z_]+)"
    r"(?:, if (?P<condition>[a-z_]+))?"
    r"(?:, called by (?P<callers>readers|updaters|readers and updaters))?"
)


class Piece(NamedTuple):
    """A part of a file of `sql/`, and what its head says; table foh.template explains the words."""

    kind: str
    name: str
    condition: str
    callers: tuple[str, ...]
    body: str


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
    """The text of one file below `sql/`, for example ``sql("shared/options.sql")``."""
    return (folder("sql") / name).read_text(encoding="utf-8")


def migration(name: str) -> str:
    """The text of one file below `migrations/sql/`: once released, it does not change any more."""
    return (folder("migrations") / "sql" / name).read_text(encoding="utf-8")


def sql_files(name: str) -> list[str]:
    """The .sql files below this folder of `sql/`, relative to it, in the order of their names."""
    root = folder("sql")
    return [path.relative_to(root).as_posix() for path in sorted((root / name).rglob("*.sql"))]


def pieces(name: str) -> list[Piece]:
    """The pieces of a file of `sql/`, each from its head to the next one."""
    _, *texts = re.split(f"(?m)^(?={MARK})", sql(name))
    return [_piece(name, *text.split("\n", 1)) for text in texts]


def step(file: str, name: str) -> str:
    """One step of a migration, from a file of `sql/install/`."""
    [found] = [piece.body for piece in pieces(f"install/{file}.sql") if piece.name == name]
    return found


def _piece(file: str, head: str, body: str) -> Piece:
    said = HEAD.fullmatch(head)
    if said is None:
        raise ValueError(
            f"sql/{file}: {head!r} does not say what the piece below it is; see foh_pg/schema/files.py"
        )
    callers = tuple(role.removesuffix("s") for role in (said["callers"] or "").split(" and ") if role)
    return Piece(said["kind"], said["name"], said["condition"] or "", callers, body.strip())
