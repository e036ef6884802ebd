"""The pieces of `bench search` that need no server."""

from __future__ import annotations

import numpy as np
import pytest
from psycopg import sql

from foh_pg.clustering import unit
from foh_pg.errors import FohError
from lab import pgbench
from lab.search import (
    frontier,
    search_tables,
    stages,
    table,
)
from lab.search.contenders import Form
from lab.search.line_up import line_up
from lab.search.measure import BLOCK, SETTLE, interleave, judge_by
from lab.summary import Report

NOTHING = sql.Composed([sql.SQL("SELECT")])


class Asked:
    """Stands for a connection: notes who was asked what, in order."""

    def __init__(self):
        self.order = []

    def cpu(self):
        return float(len(self.order))

    def prepare(self, form):
        pass

    def ask(self, form, query):
        self.order.append((form.name, int(query[0])))
        return [int(query[0])]


def ask(*forms, queries):
    backend = Asked()
    vectors = np.arange(queries, dtype=np.float32)[:, None]
    records = interleave(
        backend,
        [("c", form) for form in forms],
        vectors,
        lambda query, answer, k: {"right": answer == [query]},
    )
    return list(records), backend.order


def test_a_form_that_takes_long_is_asked_the_first_queries_only():
    often, seldom = Form("often", 10, NOTHING), Form("seldom", 10, NOTHING, most=BLOCK + 3)
    records, order = ask(often, seldom, queries=3 * BLOCK)
    assert [r["asked"] for r in records] == [3 * BLOCK, BLOCK + 3]
    assert [len(r["cpu_ms_blocks"]) for r in records] == [3, 2]
    # Every answer was judged as the answer to its own query.
    assert all(r["right"] == 1 for r in records)
    # One query to warm up, then each of the capped ones once.
    warm_up, *asked = [q for name, q in order if name == "seldom"]
    assert warm_up == 0
    assert sorted(asked) == list(range(BLOCK + 3))


def test_all_forms_take_turns():
    forms = [Form(name, 10, NOTHING) for name in "ab"]
    _, order = ask(*forms, queries=2 * BLOCK)
    measured = order[2 * 2 * BLOCK :]
    turn = SETTLE + BLOCK
    assert "".join(name for name, _ in measured) == ("a" * turn + "b" * turn) * 2
    # Of each turn, the queries that count: no form is at the block that the one before it has just read.
    counted = [[q for _, q in measured[at + SETTLE : at + turn]] for at in range(0, 4 * turn, turn)]
    first, second = list(range(BLOCK)), list(range(BLOCK, 2 * BLOCK))
    assert counted == [first, second, second, first]


def test_the_truth_is_that_of_a_plain_loop(multi):
    rows = table.draw(multi, 20, None, 0)
    base, asked = (unit(multi.X[places]) for places in (rows.base, rows.queries))
    labels = [set(multi.sets.row(int(place)).tolist()) for place in rows.base]
    even = np.arange(0, len(base), 2)
    for among in (None, even):
        truth = rows.truth(7, among)
        for query in range(20):
            order = [
                i for i in np.argsort(-(base @ asked[query]), kind="stable") if among is None or i % 2 == 0
            ]
            wanted = set(multi.sets.row(int(rows.queries[query])).tolist())
            assert truth.nearest[query].tolist() == order[:7]
            assert truth.alike[query].tolist() == [i for i in order if labels[i] & wanted][:7]


def test_what_the_truth_answers_is_right(single):
    rows = table.draw(single, 20, None, 0)
    truth = rows.truth(5)
    judge = judge_by(rows, truth)
    nearest, alike = judge(0, truth.nearest[0].tolist(), 5), judge(0, truth.alike[0].tolist(), 5)
    assert nearest["recall"] == alike["both"] == alike["precision"] == 1
    assert nearest["both"] == nearest["precision"]
    assert judge(0, [], 5)["both"] == 0


def record(contender, form, blocks, **more):
    return {
        **{"experiment": "search", "contender": contender, "form": form, "k": 10, "curve": ""},
        **{
            "asked": 10 * len(blocks),
            "cpu_ms": float(np.mean(blocks)),
            "wall_ms": 1.0,
            "cpu_ms_blocks": blocks,
        },
        **dict.fromkeys(("precision", "recall", "both", "average_precision", "distance", "returned"), 0.5),
        **dict.fromkeys(("precision_error", "recall_error", "both_error"), 0.01),
        **more,
    }


def report(*records, **settings):
    return Report("search", {}, settings, {}, list(records))


def test_who_was_asked_less_is_compared_in_the_same_blocks():
    found = search_tables.searches(
        report(
            # The machine was busy in the second block, and the slow one was not asked there.
            record("pgvector HNSW", "ef_search 40", [1.0, 9.0]),
            record("slow", "all rows", [100.0], asked=5),
        ),
        10,
    )
    ratio = found.columns.index("of HNSW")
    assert [row[ratio] for row in found.rows] == ["1.00", "100.00"]
    assert found.rows[1][found.columns.index("queries")] == "5"
    assert "asked 5 of the 20 queries" in found.note


def test_those_named_are_in_the_line_up_beside_foh_and_hnsw(single):
    rows = table.draw(single, 20, None, 0)
    assert [c.name for c in line_up(rows, 64, False, ["exact"])] == ["foh", "pgvector HNSW", "exact cosine"]


def test_everyone_is_in_the_line_up(single):
    rows = table.draw(single, 20, None, 0)
    quick, full = ([c.name for c in line_up(rows, 64, quick)] for quick in (True, False))
    assert len(set(full)) == len(full) > len(quick)
    assert set(quick) < set(full)
    for word in (
        "foh",
        "exact",
        "HNSW",
        "IVFFlat",
        "signs",
        "our bits",
    ):
        assert any(word in name for name in full), word


def test_no_two_curves_look_alike():
    """Not even those that nobody has given a look: who cannot see the color goes by the marker."""
    looks = frontier._looks([*frontier._LOOKS, *(f"another {number}" for number in range(12))])
    assert len({*looks.values()}) == len(looks)
    ours = [look for name, look in looks.items() if name.startswith("foh, ")]
    assert len({color for color, _ in ours}) == len({marker for _, marker in ours}) == len(ours) == 4


def test_curves_join_forms_that_differ_in_one_setting():
    shown = frontier.curves(
        [
            record("foh", "probes 10", [3.0], curve="with shortlist", recall=0.6),
            record("foh", "default", [2.0], curve="with shortlist"),
            record("foh", "no shortlist", [1.0], curve="Hamming only"),
            record("foh", "shortlist 200", [4.0], curve="shortlist 200"),
            record("pgvector HNSW", "ef_search 100", [6.0], recall=0.6),
            record("pgvector HNSW", "ef_search 40", [5.0]),
        ]
    )
    assert {name: [r["form"] for r in points] for name, points in shown.items()} == {
        "foh, Hamming only": ["no shortlist"],
        "foh, with shortlist": ["default", "probes 10"],
        "foh, shortlist 200": ["shortlist 200"],
        "pgvector HNSW": ["ef_search 40", "ef_search 100"],
    }


@pytest.mark.parametrize(("rows", "batch"), [(59_000, 2000), (1000, 50), (10, 1)])
def test_stages_leave_rows_to_begin_with(rows, batch):
    plan = stages.Plan.of(rows, 10, 5, 64)
    assert plan.batch == batch
    assert plan.stages * plan.batch <= rows


def test_learning_is_not_updating(monkeypatch):
    clock = {"now": 0.0}
    monkeypatch.setattr(stages.Spent, "_now", lambda self: (clock["now"], 10 * clock["now"]))
    spent = stages.Spent(0)
    for phase, seconds in (("read", 1), ("learn", 3), ("compare", 1), ("place", 2), ("read", 4)):
        spent(phase, 0, 0)
        spent(phase, 1, 1)
        clock["now"] += seconds
    spent.close()
    assert spent.wall == {"": 0, "read": 5, "learn": 3, "compare": 1, "place": 2}
    assert spent.figures() == {"learn_wall": 4, "learn_cpu": 40, "update_wall": 7, "update_cpu": 70}


def test_pgbench_that_says_nothing_is_an_error():
    with pytest.raises(FohError, match="something else"):
        pgbench.read("latency average = 3 ms\n")
