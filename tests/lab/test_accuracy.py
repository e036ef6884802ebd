"""The benchmark as a whole, its tables and its report."""

from __future__ import annotations

import json

import pytest

from foh_pg.errors import InputError
from lab import data as datasets
from lab import environment, formats, summary
from lab.accuracy import accuracy_tables, methods
from lab.accuracy import experiments as accuracy
from lab.protocol import Protocol
from lab.summary import Report

NAMES = ["random", "hmoh", "foh"]


def run(data, seeds=(0, 1), extras=accuracy.EXTRAS):
    settings = accuracy.Settings(
        bits=(16, 24),
        seeds=seeds,
        methods=methods.choose(NAMES),
        protocol=Protocol(queries=40),
        extras=extras,
    )
    records = [record for step in accuracy.plan(data, settings) for record in step.run()]
    return Report("accuracy", datasets.describe(data), settings.describe(), environment.describe(), records)


@pytest.fixture(scope="module")
def result():
    from tests.lab.conftest import clusters

    return run(clusters(rows=400, noise=4.0))


def test_steps_are_counted(single, multi):
    for data in (single, multi):
        for extras in (accuracy.EXTRAS, accuracy.EXTRAS_OF_THE_PAPER, ()):
            settings = accuracy.Settings(
                bits=(8, 32, 48), seeds=(0, 1), methods=methods.choose(["all"]), extras=extras
            )
            assert accuracy.count_steps(data, settings) == len(list(accuracy.plan(data, settings)))


def test_every_record_says_where_it_is_from(result):
    assert {r["experiment"] for r in result.records} == {
        *("table", "reference", "ablation", "pool", "updating", "hidden", "arrival")
    }
    for record in result.records:
        assert record["data"] == "clusters"
        assert record["seed"] in (0, 1)
        assert record["method"]


def test_the_same_seed_gives_the_same_figures(result):
    from tests.lab.conftest import clusters

    again = run(clusters(rows=400, noise=4.0), seeds=(1,), extras=())
    assert {(r["method"], r["bits"], r["codes"]): r["map"] for r in again.select("table")} == {
        (r["method"], r["bits"], r["codes"]): r["map"] for r in result.select("table") if r["seed"] == 1
    }


def test_learners_beat_random_hyperplanes(result):
    def mean(name):
        values = [r["map"] for r in result.select("table") if summary.row_name(r) == name]
        return sum(values) / len(values)

    assert mean("foh") > mean("random") + 0.1
    assert mean("foh, anchored") > mean("foh")


def test_symmetric_and_anchored_codes_are_two_rows(result):
    rows = [row[0] for row in accuracy_tables.map_table(result).rows]
    assert rows.index("foh") < rows.index("foh, anchored")
    assert not any("anchored" in row[0] for row in accuracy_tables.difference_table(result).rows)
    anchored = [r for r in result.select("table") if r["codes"] == "anchored"]
    assert {r["method"] for r in anchored} == {"foh"}
    assert all(r["stored_labels"] for r in anchored)


def test_rows_without_labels_are_lost_to_a_filter_and_not_to_codes(result):
    def mean(method, share):
        values = [
            r["map"] for r in result.select("hidden") if (summary.row_name(r), r["hidden"]) == (method, share)
        ]
        return sum(values) / len(values)

    assert mean("classify and filter", 0.0) > mean("classify and filter", 0.5) + 0.1
    assert mean("foh, anchored", 0.9) > mean("classify and filter", 0.9)
    assert abs(mean("foh", 0.0) - mean("foh", 0.5)) < 0.1


def test_foh_s_is_for_several_labels_only(multi):
    assert [m.name for m in methods.ablations(False)] == ["foh-l", "foh-paper-l"]
    assert "foh-s" in [m.name for m in methods.ablations(True)]


def test_unknown_methods_are_named():
    with pytest.raises(InputError, match="'fohh'"):
        methods.choose(["fohh"])
    assert "mihash-1000" not in [m.name for m in methods.choose(["all"])]


class TestSummary:
    def test_best_is_among_symmetric_codes(self, result):
        table = accuracy_tables.map_table(result)
        for row, column in table.best:
            values = [float(r[column].split()[0]) for r in table.rows if r[0] in NAMES]
            assert float(table.rows[row][column].split()[0]) == max(values)

    def test_differences_are_paired(self, result):
        table = accuracy_tables.difference_table(result)
        symmetric = {
            (r["method"], r["seed"]): r["map"]
            for r in result.select("table")
            if r["bits"] == 16 and r["codes"] == "symmetric"
        }
        differences = [symmetric["foh", s] - symmetric["hmoh", s] for s in (0, 1)]
        row = next(row for row in table.rows if row[0] == "hmoh")
        assert row[1] == summary.spread(differences)

    def test_negative_values_and_missing_ones(self):
        assert summary.spread([-0.25]) == "-.250"
        assert summary.spread([-0.0001]) == ".000"
        assert summary.spread([]) == "-"
        assert summary.spread([1.0, 1.0]) == "1.000 ± .000"

    def test_all_tables_have_as_many_cells_as_columns(self, result):
        tables = accuracy_tables.tables(result)
        assert len(tables) == 9
        for table in tables:
            assert all(len(row) == len(table.columns) for row in table.rows)


class TestReport:
    def test_json_round_trip(self, result, tmp_path):
        formats.write_json(result, tmp_path / "a.json")
        assert json.loads((tmp_path / "a.json").read_text())["records"] == json.loads(
            json.dumps(result.records)
        )

    def test_origin_names_data_seeds_versions_and_machine(self, result):
        origin = result.origin()
        for part in ("clusters", "seeds 0, 1", "numpy", "cores"):
            assert part in origin
