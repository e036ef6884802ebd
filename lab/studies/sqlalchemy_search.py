"""What the SQLAlchemy forms of a search cost over the bare SQL call, in microseconds a query.

Run as ``python -m lab study sqlalchemy_search``. All forms ask the same index the same queries, in turn, on
one connection each. The figure to compare is the time that the client computes, in the least disturbed tenth
of the queries; what a busy machine adds is in the median of the wall time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psycopg
import sqlalchemy as sa
from pgvector.sqlalchemy import Vector
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from foh_pg.postgres.embedded import EmbeddedServer
from foh_pg.psycopg import register_foh
from foh_pg.schema.migrations import migrate
from foh_pg.sqlalchemy import FOHIndex, foh_search, select_nearest
from lab.studies.learner_report import parser, report

BARE = "SELECT id, distance, score FROM foh.bench_search(%s, 10)"
FILTERED = """
SELECT id, distance, score
FROM foh.bench_search(%s, 10, filter => 's.number < (params ->> ''n'')::int',
                      params => jsonb_build_object('n', %s::int))
"""


class Base(DeclarativeBase):
    pass


class Row(Base):
    __tablename__ = "bench"

    id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int]
    # Read by no form: it is what is searched, not what is shown.
    embedding: Mapped[Any] = mapped_column(Vector(512), deferred=True)

    __table_args__ = (FOHIndex("bench", "embedding", bits=64, exact_rows=0, probes=2),)


Form = Callable[[Any], int]


def forms(dsn: str, engine: sa.Engine) -> dict[str, Form]:
    """Each way to ask, from the vector to the number of rows."""
    bare = psycopg.connect(dsn, autocommit=True)
    register_foh(bare)
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    session = Session(engine.execution_options(isolation_level="AUTOCOMMIT"))

    def core(query: Any, **arguments: Any) -> int:
        return len(connection.execute(sa.select(foh_search(Row, query, **arguments))).all())

    def entities(query: Any) -> int:
        return len(session.scalars(select_nearest(Row, query)).all())

    def entities_by_hand(query: Any) -> int:
        found = bare.execute(BARE, [query]).fetchall()
        return len(session.scalars(sa.select(Row).where(Row.id.in_([row[0] for row in found]))).all())

    return {
        "SQL, psycopg": lambda query: len(bare.execute(BARE, [query]).fetchall()),
        "foh_search": core,
        "SQL, psycopg, filter": lambda query: len(bare.execute(FILTERED, [query, 900]).fetchall()),
        "foh_search, filter": lambda query: core(query, filter=Row.number < 900),
        "SQL, then entities by key": entities_by_hand,
        "select_nearest": entities,
    }


def measure(asked: dict[str, Form], queries: Any) -> list[dict[str, Any]]:
    wall: dict[str, list[float]] = {name: [] for name in asked}
    client: dict[str, list[float]] = {name: [] for name in asked}
    for query in queries:
        for name, form in asked.items():
            started, busy = time.perf_counter(), time.thread_time()
            assert form(query) == 10
            client[name].append(time.thread_time() - busy)
            wall[name].append(time.perf_counter() - started)
    computed = {name: np.percentile(seconds, 10) for name, seconds in client.items()}
    pairs = dict(zip(list(asked)[1::2], list(asked)[::2], strict=True))
    return [
        {
            "form": name,
            "client_us": round(1e6 * float(computed[name]), 1),
            "wall_us": round(1e6 * median(wall[name]), 1),
            "over": pairs.get(name, ""),
            "overhead_us": round(1e6 * float(computed[name] - computed[pairs[name]]), 1)
            if name in pairs
            else "",
        }
        for name in asked
    ]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=1000)
    arguments.add_argument("--queries", type=int, default=300)
    given = arguments.parse_args()
    random = np.random.default_rng(0)
    with (
        tempfile.TemporaryDirectory(prefix="foh-bench-") as directory,
        EmbeddedServer(Path(directory) / "data") as server,
    ):
        with psycopg.connect(server.dsn()) as connection:
            connection.execute("CREATE EXTENSION vector")
            migrate(connection)
        engine = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(server.dsn()))
        Base.metadata.create_all(engine)
        with Session(engine) as session, session.begin():
            session.add_all(
                Row(id=i, number=i, embedding=random.standard_normal(512)) for i in range(given.rows)
            )
        asked = forms(server.dsn(), engine)
        queries = random.standard_normal((given.queries + 20, 512)).astype(np.float32)
        measure(asked, queries[:20])  # connections, caches and prepared statements
        rows = measure(asked, queries[20:])
        engine.dispose()
    size = f"{given.rows} rows of 512 dimensions, {given.queries} queries"
    title = f"SQLAlchemy {sa.__version__} over bare SQL: {size}"
    report(title, rows, given.json)


if __name__ == "__main__":
    main()
