"""Servers and clients in FIPS mode have no md5."""

from __future__ import annotations

from pathlib import Path

import foh_pg

PACKAGE = Path(foh_pg.__file__).parent
ROOT = Path(__file__).parents[2]


def test_nothing_calls_md5() -> None:
    files = [
        path
        for folder in (PACKAGE, ROOT / "sql", ROOT / "migrations")
        for path in folder.rglob("*")
        if path.suffix in (".py", ".sql", ".mako")
    ]
    assert len(files) > 100
    assert [str(path) for path in files if "md5" in path.read_text().lower()] == []
