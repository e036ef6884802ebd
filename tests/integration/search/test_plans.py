"""What a search touches, counted by the server: the probed lists, a lookup for each row, never a whole table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.postgres import Database
from tests.support.shop import Shop, text, vectors

QUERY = vectors(1, seed=5)[0]
ROWS, CENTERS, PROBES = 2000, 40, 3

# Counts of this session that were not sent to the collector yet.
TOUCHED = """
SELECT relname, seq_scan, seq_tup_read, idx_scan, idx_tup_fetch FROM pg_stat_xact_user_tables
WHERE relname IN ('item', 'items_list', 'items_stream', 'items_center', 'items_item')
"""


def touched(shop: Shop, call: str, parameters: dict[str, Any] | None = None) -> dict[str, tuple[int, ...]]:
    with shop.connection.transaction():
        before = {row[0]: row[1:] for row in shop.run(TOUCHED).fetchall()}
        found = shop.run(call, {"query": text(QUERY), **(parameters or {})}).fetchall()
        assert found
        after = {row[0]: row[1:] for row in shop.run(TOUCHED).fetchall()}
    return {table: tuple(np.subtract(after[table], before[table])) for table in after}


@pytest.fixture
def grown(new_shop, database: Database) -> Shop:
    """A session that planned its search on an empty index; then the index grew."""
    shop = new_shop(options={"probes": PROBES})
    searcher = shop.seen_by(database.connect("app_owner"))
    searcher.connection.prepare_threshold = 0
    for _ in range(6):
        assert searcher.search(QUERY, 10) == []
        assert searcher.search(QUERY, 10, shortlist=0) == []
        assert searcher.search(QUERY, 10, filter="true") == []
    shop.fill(range(ROWS), vectors(ROWS))
    shop.install(centers=CENTERS)
    # Statistics of another time, when the stream was empty.
    shop.run("VACUUM ANALYZE {stream}")
    shop.fill(range(ROWS, 2 * ROWS), vectors(ROWS, seed=1))
    return searcher


@pytest.mark.parametrize(
    ("call", "most"),
    [
        ("SELECT * FROM {search}(%(query)s, 10)", 100),
        ("SELECT * FROM {search}(%(query)s, 10, shortlist => 0)", 11),
        ("SELECT * FROM {search}(%(query)s, 10, filter => 's.id >= 0')", 100),
    ],
)
def test_only_the_probed_lists(grown: Shop, call: str, most: int) -> None:
    for analyzed in (False, True):
        if analyzed:
            grown.run("ANALYZE {source}, {stream}, {list}, {center}")
        counts = touched(grown, call)
        for table in ("item", "items_list", "items_stream"):
            assert counts[table][0] == 0, f"{table} was read from end to end: {counts[table]}"
        # Before the table is analyzed PostgreSQL expects the filter to let a third pass: a few more lists are read.
        expected = {PROBES, PROBES + 1} if "filter" in call and not analyzed else {PROBES}
        assert counts["items_list"][3] in expected
        assert counts["item"][3] <= most
        in_stream = grown.run(
            "SELECT max(n) FROM (SELECT count(*) AS n FROM {stream} GROUP BY center) c"
        ).fetchone()[0]
        # The entries of three centers, a lookup for each row that is ranked, and a handful for the state.
        assert counts["items_stream"][3] <= PROBES * in_stream + 2 * (most + most // 8 + 16) + 10
        assert counts["items_item"] == (0, 0, 0, 0)


def test_entries_of_an_older_version_are_read_with_their_centers(grown: Shop) -> None:
    """Whoever writes while an update runs leaves many of them."""
    call = "SELECT * FROM {search}(%(query)s, 10, shortlist => 0)"
    read = touched(grown, call)["items_stream"][3]
    assert read < ROWS / 2
    grown.new_version()
    # Their centers are still there: nothing more is read.
    assert touched(grown, call)["items_stream"][3] <= read


def test_a_batch_too(grown: Shop) -> None:
    counts = touched(
        grown,
        """SELECT * FROM (VALUES (%(query)s::extensions.vector), (%(other)s)) AS q (v)
           CROSS JOIN LATERAL {search}(q.v, 10) r""",
        {"other": text(-QUERY)},
    )
    assert counts["item"][0] == counts["items_list"][0] == counts["items_stream"][0] == 0
    assert counts["items_list"][3] == 2 * PROBES
    assert counts["item"][3] <= 200


def test_widening_reads_more_lists_and_then_the_source_once(grown: Shop) -> None:
    counts = touched(
        grown,
        "SELECT * FROM {search}(%(query)s, 10, filter => 's.id % 50 = 7')".replace("%", "%%").replace(
            "%%(", "%("
        ),
    )
    assert counts["items_list"][0] == counts["items_stream"][0] == 0
    counts = touched(grown, "SELECT * FROM {search}(%(query)s, 10, filter => 's.id = 7')")
    assert counts["item"][0] <= 1


def test_in_parallel_workers(new_shop, database: Database, server) -> None:
    shop = new_shop()
    shop.fill(range(500), vectors(500))
    shop.install(centers=10)
    shop.fill(range(500, 520), vectors(20, seed=2))
    setting = "debug_parallel_query" if server.version >= 16 else "force_parallel_mode"
    calls = [
        "SELECT * FROM {search}(%(query)s, 20)",
        "SELECT * FROM {search}(%(query)s, 20, shortlist => 0)",
        "SELECT * FROM {search}(%(query)s, 20, filter => 's.id >= 7')",
        "SELECT * FROM {search}(%(query)s, 600)",
        "SELECT * FROM {candidates}(%(query)s)",
    ]
    expected = [shop.run(call, {"query": text(QUERY)}).fetchall() for call in calls]
    forced = shop.seen_by(database.connect("app_owner"))
    forced.execute_text(f"SET {setting} = on")
    plan = forced.run("EXPLAIN SELECT * FROM {search}(%s, 20)", [text(QUERY)]).fetchall()
    assert any("Gather" in line for (line,) in plan)
    assert [forced.run(call, {"query": text(QUERY)}).fetchall() for call in calls] == expected


def test_a_table_made_of_searches_in_parallel(shop: Shop, database: Database) -> None:
    """The process that writes also plans searches, in parallel mode, in which it can begin no command."""
    shop.run("CREATE TABLE asked (id int, query extensions.vector(8)) WITH (parallel_workers = 2)")
    shop.run("INSERT INTO asked SELECT {key}, embedding FROM {source}")
    shop.run("ANALYZE asked")
    writer = shop.seen_by(database.connect("app_owner"))
    for setting in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
        writer.execute_text(f"SET {setting} = 0")
    call = "SELECT q.id AS asked, r.id FROM asked q CROSS JOIN LATERAL {search}(q.query, 3) r"
    plan = writer.run(f"EXPLAIN CREATE TABLE answered AS {call}").fetchall()
    assert any("Gather" in line for (line,) in plan)
    writer.run(f"CREATE TABLE answered AS {call}")
    assert writer.run("SELECT count(*) FROM answered").fetchone() == (600,)
