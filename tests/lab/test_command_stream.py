"""The benchmarks of updating, on little data: that they measure what they say, not how fast anything is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lab.commands.app import app


def measure(tmp_path: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    path = tmp_path / "found.json"
    result = CliRunner().invoke(app, [*arguments, "--data=digits", f"--json={path}"])
    assert result.exit_code == 0, result.output
    return json.loads(path.read_text()), result.stdout


def select(found: dict[str, Any], experiment: str) -> list[dict[str, Any]]:
    return [record for record in found["records"] if record["experiment"] == experiment]


def test_stream(tmp_path: Path) -> None:
    arguments = ("--rows=1500", "--batch=300", "--queries=80", "--checkpoints=1", "--freeze=600")
    found, printed = measure(tmp_path, "stream", *arguments)
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
    found, _ = measure(tmp_path, "stream", *arguments)
    assert [r["rows"] for r in select(found, "batch") if r["model"] == "online"] == [700, 900]
    assert all(r["precision"] > 0.3 for r in select(found, "batch"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stream", "--start=99999"), "start is 99999"),
        (("stream", "--ask=nobody"), "it must be random or next"),
    ],
)
def test_bad_settings(arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, [*arguments, "--data=digits"])
    assert result.exit_code == 1
    assert message in result.stderr
