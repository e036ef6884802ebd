"""Whether homes stay true: rows that a search by their own vector does not find, after growth and churn.

Run as ``python -m lab study homes --data FILE --rows 48000 --updates 300``. A tenth of the rows is built and
the rest comes in nine updates. Then every update replaces two in a hundred rows by others of the data. After
the build, the growth and every so many updates it counts the rows that are not first for their own vector
with ``labels => 0``, and those in a list that this search does not read.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import psycopg

from foh_pg.updater import build, update
from lab.dataset import Dataset
from lab.search import table
from lab.stream.benchmark import Say
from lab.studies.updating import finish, parser
from lab.summary import Record, Report, Table

# Rows that are replaced by one update.
CHURN = 0.02
GROWTH = 10

NOT_READ = """
SELECT count(*) FROM items s JOIN foh.ours_item i ON i.key = s.id
WHERE i.home <> ALL (ARRAY(SELECT n.center FROM foh.ours_readby(s.embedding, %s) n))
"""
NOT_FIRST = """
SELECT count(*) FROM items s
WHERE NOT EXISTS (SELECT FROM foh.ours_search(s.embedding::vector, 1, labels => 0) f JOIN items o USING (id)
                  WHERE o.embedding = s.embedding)
"""


def run(data: Dataset, settings: argparse.Namespace, say: Say) -> Iterator[Record]:
    """Build, grow and churn, counting in between."""
    rows = table.draw(data, 1, None, 0)
    total = settings.rows or round(len(rows.base) * 0.8)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(rows.base))
    present, absent = order[:total], order[total:]
    with table.database() as dsn, table.open_connection(dsn) as connection:
        table.create_table(connection, rows.dimensions)
        table.create_index(connection, "ours", settings.bits)
        pieces = np.array_split(present, GROWTH)
        table.insert(connection, rows, pieces[0])
        build(dsn, "ours")
        yield count(connection, "after a build", len(pieces[0]))
        for piece in pieces[1:]:
            table.insert(connection, rows, piece)
            update(dsn, "ours")
        yield count(connection, "after growing tenfold", total)
        for n in range(1, settings.updates + 1):
            going, coming = rng.permutation(total), rng.permutation(len(absent))
            changed = min(round(CHURN * total), len(absent))
            going, coming = going[:changed], coming[:changed]
            connection.execute("DELETE FROM items WHERE id = ANY (%s)", [present[going].tolist()])
            table.insert(connection, rows, absent[coming])
            present[going], absent[coming] = absent[coming], present[going]
            update(dsn, "ours")
            if n % settings.every == 0 or n == settings.updates:
                yield count(connection, f"after {n} updates", total)


def count(connection: psycopg.Connection[Any], when: str, rows: int) -> Record:
    """Rows that a search by their own vector misses."""
    probes = dict(connection.execute("SELECT * FROM foh.ours_explain((SELECT embedding FROM items LIMIT 1))"))
    not_read = connection.execute(NOT_READ, [int(probes["centers probed"])]).fetchone()
    not_first = connection.execute(NOT_FIRST).fetchone()
    assert not_read is not None
    assert not_first is not None
    return {
        "experiment": "homes",
        "when": when,
        "rows": rows,
        "centers": int(probes["centers"]),
        "probes": int(probes["centers probed"]),
        "list not read": not_read[0],
        "not first": not_first[0],
    }


def table_of(report: Report) -> Table:
    """Rows that searches by their own vector do not find."""
    columns = ("when", "rows", "centers", "probes", "list not read", "not first")
    cells = [[str(record[name]) for name in columns] for record in report.records]
    return Table("Rows and their own vectors", "With labels => 0 and the default probes.", columns, cells)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, help="how many, in place of all")
    asked.add_argument("--updates", type=int, default=300)
    asked.add_argument("--every", type=int, default=100, help="updates between two counts")
    given = asked.parse_args(arguments)
    finish("homes", given, run, table_of)


if __name__ == "__main__":
    main()
