"""`python -m lab accuracy` from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from lab.commands.app import app


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    label = rng.integers(4, size=300)
    X = 2 * rng.standard_normal((4, 10))[label] + rng.standard_normal((300, 10))
    np.savez(tmp_path / "clusters.npz", X=X, Y=label)
    return str(tmp_path / "clusters.npz")


def run(*arguments):
    return CliRunner().invoke(app, ["accuracy", *arguments])


def test_tables_and_json(data, tmp_path):
    json_file = tmp_path / "out.json"
    result = run(
        *("--data", data, "--bits", "8,16", "--learners", "random,foh", "--seeds", "1"),
        *("--json", str(json_file)),
    )
    assert result.exit_code == 0, result.output
    assert "mAP over the whole base" in result.stdout
    assert "foh, anchored" in result.stdout
    content = json.loads(json_file.read_text())
    assert content["data"]["name"] == "clusters"
    assert content["settings"]["seeds"] == [0]
    assert {record["bits"] for record in content["records"] if record["experiment"] == "table"} == {8, 16}


def test_json_on_standard_output(data):
    result = run(
        "--data", data, "--bits", "8", "--learners", "foh", "--seeds", "1", "--no-extras", "--json", "-"
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["benchmark"] == "accuracy"


def test_quick_takes_one_seed(data):
    result = run("--data", data, "--quick", "--learners", "foh", "--no-extras", "--json", "-")
    content = json.loads(result.stdout)
    assert content["settings"]["seeds"] == [0]
    assert content["settings"]["bits"] == [32, 64]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--bits", "many"), "'many'"),
        (("--bits", "0"), "positive"),
        (("--learners", "fohh"), "'fohh'"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_1(data, arguments, message):
    result = run("--data", data, *arguments)
    assert result.exit_code == 1
    assert message in result.stderr


def test_missing_file():
    result = run("--data", "nowhere.npz")
    assert result.exit_code == 1
    assert "nowhere.npz" in result.stderr


def test_the_tables_of_the_paper(data, tmp_path):
    json_file = tmp_path / "paper.json"
    arguments = ("--data", data, "--bits", "8", "--no-times", "--json", str(json_file))
    result = CliRunner().invoke(app, ["paper", *arguments])
    assert result.exit_code == 0, result.output
    titles = ("mAP over the whole base", "Training time", "Ablations", "With and without a query pool")
    assert all(title in result.stdout for title in (*titles, "Centers renewed every so many batches"))
    records = json.loads(json_file.read_text())["records"]
    measured = {"reference", "table", "ablation", "pool", "updating"}
    assert {record["experiment"] for record in records} == measured


def test_a_study_gets_its_arguments(capsys):
    with pytest.raises(SystemExit) as ended:
        app(["study", "growth", "--help"], standalone_mode=False)
    assert ended.value.code == 0
    assert "--sizes" in capsys.readouterr().out
