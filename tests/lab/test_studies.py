"""The studies of updating, on little data: that they measure what they say, not how fast."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from foh_pg.errors import InputError
from lab.studies import building, concurrent, growth


def measure(program: ModuleType, folder: Path, *arguments: str) -> dict[str, Any]:
    path = folder / "found.json"
    program.main([*arguments, "--data=digits", f"--json={path}"])
    return json.loads(path.read_text())


def select(found: dict[str, Any], experiment: str) -> list[dict[str, Any]]:
    return [record for record in found["records"] if record["experiment"] == experiment]


def test_growth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--sizes=300,900", "--batch=100", "--runs=2", "--built=200", "--settle=300")
    found = measure(growth, tmp_path, *arguments)
    runs = [(r["size"], r["number"]) for r in select(found, "growth run")]
    assert runs == [(300, 1), (900, 1), (300, 2), (900, 2)]
    full = {r["size"]: r["rows_encoded"] for r in select(found, "growth") if r["what"] == "--full"}
    assert full == {300: 500, 900: 1100}
    assert len(select(found, "growth ratio")) == 3
    assert "large against small" in capsys.readouterr().out


def test_building(tmp_path: Path) -> None:
    ours, graph = select(measure(building, tmp_path), "build")
    assert (ours["name"], graph["name"]) == ("foh", "pgvector HNSW")
    assert ours["peak_mb"] > 20
    assert ours["cpu"] > ours["own_cpu"] > 0
    assert min(ours["bytes"], graph["bytes"]) > 0


def test_concurrent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = measure(concurrent, tmp_path, "--rows=1000", "--backlog=200", "--seconds=1")
    records = select(found, "concurrent")
    assert {(r["work"], r["when"]) for r in records} == {
        (work, when) for work in ("INSERT", "search") for when in ("idle", "during an update", "idle again")
    }
    assert all(r["errors"] == 0 and r["per_second"] > 0 for r in records)
    assert "during an update" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "argument", "message"),
    [
        (growth, "--sizes=many", "not 'many'"),
        (growth, "--sizes=10,99999", "digits has 1797"),
        (concurrent, "--rows=9999", "more than digits has"),
    ],
)
def test_bad_settings(program: ModuleType, argument: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        program.main([argument, "--data=digits"])
