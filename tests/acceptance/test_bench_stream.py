"""The benchmarks of updating, on little data: that they measure what they say, not how fast anything is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from foh_pg.cli import app


def bench(tmp_path: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    path = tmp_path / "found.json"
    result = CliRunner().invoke(app, ["bench", *arguments, "--data=digits", f"--json={path}"])
    assert result.exit_code == 0, result.output
    return json.loads(path.read_text()), result.stdout


def select(found: dict[str, Any], experiment: str) -> list[dict[str, Any]]:
    return [record for record in found["records"] if record["experiment"] == experiment]


def test_stream(tmp_path: Path) -> None:
    arguments = ("--rows=1500", "--batch=300", "--queries=80", "--checkpoints=1", "--freeze=600")
    found, printed = bench(tmp_path, "stream", *arguments)
    batches = {(r["model"], r["rows"]): r for r in select(found, "batch")}
    assert sorted(rows for model, rows in batches if model == "online") == [300, 600, 900, 1200, 1500]
    for rows in (300, 600):
        assert batches["online", rows]["precision"] == batches["frozen", rows]["precision"]
    assert "learn" not in batches["frozen", 900]["phases"]
    assert "learn" in batches["online", 900]["phases"]
    compared = {r["model"]: r for r in select(found, "compared")}
    assert set(compared) == {"exact cosine", "online, --full", "trained afresh"}
    assert compared["online, --full"]["rows_encoded"] == 1500
    assert abs(compared["online, --full"]["map"] - batches["online", 1500]["map"]) < 0.05
    assert batches["online", 1500]["precision"] > compared["exact cosine"]["precision"]
    assert "Against encoding everything again" in printed


def test_rows_that_arrive_next_ask(tmp_path: Path) -> None:
    arguments = ("--rows=1100", "--start=500", "--batch=200", "--queries=40", "--ask=next", "--checkpoints=1")
    found, _ = bench(tmp_path, "stream", *arguments)
    assert [r["rows"] for r in select(found, "batch") if r["model"] == "online"] == [700, 900]
    assert all(r["precision"] > 0.3 for r in select(found, "batch"))


def test_growth(tmp_path: Path) -> None:
    found, printed = bench(
        tmp_path, "growth", "--sizes=300,900", "--batch=100", "--runs=2", "--built=200", "--settle=300"
    )
    assert [(r["size"], r["number"]) for r in select(found, "growth run")] == [
        (300, 1),
        (900, 1),
        (300, 2),
        (900, 2),
    ]
    full = {r["size"]: r["rows_encoded"] for r in select(found, "growth") if r["what"] == "--full"}
    assert full == {300: 500, 900: 1100}
    assert len(select(found, "growth ratio")) == 3
    assert "large against small" in printed


def test_build(tmp_path: Path) -> None:
    found, _ = bench(tmp_path, "build")
    ours, graph = select(found, "build")
    assert (ours["name"], graph["name"]) == ("foh", "pgvector HNSW")
    assert ours["peak_mb"] > 20
    assert ours["cpu"] > ours["own_cpu"] > 0
    assert min(ours["bytes"], graph["bytes"]) > 0


def test_concurrent(tmp_path: Path) -> None:
    found, printed = bench(tmp_path, "concurrent", "--rows=1000", "--backlog=200", "--seconds=1")
    records = select(found, "concurrent")
    assert {(r["work"], r["when"]) for r in records} == {
        (work, when) for work in ("INSERT", "search") for when in ("idle", "during an update", "idle again")
    }
    assert all(r["errors"] == 0 and r["per_second"] > 0 for r in records)
    assert "during an update" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stream", "--start=99999"), "start is 99999"),
        (("stream", "--ask=nobody"), "it must be random or next"),
        (("growth", "--sizes=many"), "not 'many'"),
        (("growth", "--sizes=10,99999"), "digits has 1797"),
        (("concurrent", "--rows=9999"), "more than digits has"),
    ],
)
def test_bad_settings(arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, ["bench", *arguments, "--data=digits"])
    assert result.exit_code == 1
    assert message in result.stderr
