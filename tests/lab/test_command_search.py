"""`python -m lab search` from the command line, on little data: that it measures what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lab.commands.app import app

pytestmark = pytest.mark.first


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, bytes]:
    """What one run wrote and printed."""
    directory: Path = tmp_path_factory.mktemp("bench")
    files = [f"--{kind}={directory / f'out.{kind}'}" for kind in ("json", "png")]
    arguments = ["--data=digits", "--quick", "--rows=600", "--queries=20", "--bits=32"]
    result = CliRunner().invoke(app, ["search", *arguments, *files])
    assert result.exit_code == 0, result.output
    content = json.loads((directory / "out.json").read_text())
    return content, result.stdout, (directory / "out.png").read_bytes()


@pytest.fixture(scope="module")
def found(written: tuple[dict[str, Any], str, bytes]) -> tuple[dict[str, Any], str]:
    return written[:2]


def select(content: dict[str, Any], experiment: str) -> list[dict[str, Any]]:
    return [record for record in content["records"] if record["experiment"] == experiment]


def test_every_part_is_measured(found) -> None:
    content, printed = found
    for experiment in ("build", "search", "stage", "filter", "stream"):
        assert select(content, experiment), experiment
    for title in ("The first 10", "Updating time and query time"):
        assert title in printed


def test_conditions_from_all_rows_to_one_in_ten_thousand(found) -> None:
    content, printed = found
    forms: dict[str, set[str]] = {}
    for record in select(content, "filter"):
        forms.setdefault(record["keeps"], set()).add(record["form"])
    shares = (100, 50, 20, 10, 5, 2, 1, 0.5, 0.1, 0.01)
    curve = [f"price, {share:g} %" for share in shares] + [f"kin, {share} %" for share in (50, 10, 2)]
    assert list(forms)[:-1] == curve
    assert list(forms)[-1].startswith("label, ")
    scans = {"iterative scan", "iterative scan, strict order"}
    for keeps in forms:
        assert forms[keeps] == {"match", "filter", "what the planner takes", *scans}
        assert keeps in printed
    # A search among few of the rows is judged by the ten nearest of these.
    passing = [r for r in select(content, "filter") if r["keeps"] == "price, 10 %"]
    assert all(r["recall"] > 0.6 for r in passing)
    # Where few rows pass, all of them are compared.
    few = [r for r in select(content, "filter") if r["keeps"] == "price, 0.1 %" and r["contender"] == "foh"]
    assert [r["recall"] for r in few] == [1, 1]


def test_answers(found) -> None:
    searches = {(r["contender"], r["form"], r["k"]): r for r in select(found[0], "search")}
    exact = searches["exact cosine", "all rows", 10]
    assert exact["recall"] == 1
    assert exact["asked"] == 20
    # A filter gives no more than have the label.
    short = {(name.split(",")[0], k) for (name, _, k), r in searches.items() if r["returned"] < 1}
    assert short <= {("classify and filter", 100)}
    for r in select(found[0], "search"):
        assert 0 <= r["recall"] <= 1
        # Nothing is nearer than the exact nearest.
        assert (
            r["distance"] >= searches["exact cosine", "all rows", r["k"]]["distance"] - 1e-4
            or r["returned"] < 1
        )
    assert searches["foh", "labels 0, probes 96, shortlist 60", 10]["recall"] > 0.9
    assert exact["both"] == pytest.approx(exact["precision"])
    own = {(r["contender"], r["form"]): r for r in select(found[0], "own")}
    assert own["pgvector HNSW", "ef_search 40"]["first"] == 1
    assert own["foh", "labels 0"]["found"] > 0.95
    assert searches["foh", "default", 10]["precision"] > 0.7


def test_figures_carry_where_they_come_from(found) -> None:
    content, printed = found
    assert {"postgresql", "pgvector", "foh_pg"} <= set(content["environment"]["versions"])
    assert content["settings"]["rows"] == 600
    origin = " ".join(printed.split())
    for part in ("digits (1797 rows", "rows 600", "seed 0", "postgresql 18", "cores"):
        assert part in origin


def test_the_frontier_as_a_picture(written: tuple[dict[str, Any], str, bytes]) -> None:
    assert written[2].startswith(b"\x89PNG")


def test_recall_and_distance_are_in_every_table_of_answers(found) -> None:
    content, printed = found
    for experiment in ("search", "filter", "stream", "stage"):
        for record in select(content, experiment):
            assert {"precision", "recall", "distance"} <= set(record)
    assert printed.count("recall@10") >= 4
    assert "recall@100" in printed


def test_bad_settings() -> None:
    result = CliRunner().invoke(app, ["search", "--data=digits", "--contenders=hnsw,faiss"])
    assert result.exit_code == 1
    assert "--contenders" in result.stderr
