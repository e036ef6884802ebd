"""pgvector's HNSW on the geometry bits of an index of ours, its best ranked again by the exact distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql

from foh_pg.arrays.codes import unpack
from foh_pg.model.model import Model
from foh_pg.postgres.binary_copy import INT8, Bits, copy_in
from foh_pg.runs.session import open_session
from foh_pg.tables.index_row import find_index
from foh_pg.updater.served_model import read_served
from lab.search.contenders import Contender, Form, index_size
from lab.search.table import Rows

TABLE, INDEX = "items_bits", "items_bits_hnsw"
CREATE = sql.SQL("CREATE TABLE bits (id bigint, bits bit({}))")
JOIN = sql.SQL("CREATE TABLE {} AS SELECT i.*, b.bits FROM items i JOIN bits b USING (id)")
GRAPH = sql.SQL("CREATE INDEX {} ON {} USING hnsw (bits bit_hamming_ops)")
# "bit" in quotes has no length, where bit would be one bit.
SEARCH = sql.SQL(
    'SELECT c.id FROM (SELECT id, embedding FROM {} ORDER BY bits <~> %s::text::"bit" LIMIT {}) c'
    " ORDER BY c.embedding <=> %b LIMIT {}"
)


def bits_graph(source: str, shortlists: Sequence[int]) -> Contender:
    """HNSW over the bits that index `source` gives its rows. The client makes those of a query."""
    served = Served()

    def build(dsn: str, connection: psycopg.Connection[Any], rows: Rows) -> None:
        served.load(dsn, source)
        bits = served.encode(rows.data.X[rows.base])
        connection.execute(CREATE.format(sql.Literal(served.bits)))
        entries = np.arange(len(rows.base)), bits
        copy_in(connection, sql.Identifier("bits"), ("id", "bits"), (INT8, Bits(served.bits)), entries)
        connection.execute(JOIN.format(sql.Identifier(TABLE)))
        connection.execute(sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (id)").format(sql.Identifier(TABLE)))
        connection.execute(sql.SQL("VACUUM ANALYZE {}").format(sql.Identifier(TABLE)))
        connection.execute(GRAPH.format(sql.Identifier(INDEX), sql.Identifier(TABLE)))

    def form(k: int, shortlist: int) -> Form:
        statement = SEARCH.format(sql.Identifier(TABLE), sql.Literal(shortlist), sql.Literal(k))
        return Form(
            f"ef_search {shortlist}, best {shortlist}",
            k,
            statement,
            {"hnsw.ef_search": shortlist},
            parameters=lambda query: (served.text(query), query),
        )

    forms = [form(k, shortlist) for k in (10, 100) for shortlist in shortlists if shortlist >= k]
    return Contender("pgvector HNSW on our bits", "items", build, index_size(INDEX), forms)


@dataclass
class Served:
    """The model that an index serves, once the index is built."""

    model: Model | None = None

    def load(self, dsn: str, index: str) -> None:
        with open_session(dsn) as session:
            found = find_index(session, index)
            with session.snapshot():
                self.model = read_served(session, found).model

    @property
    def bits(self) -> int:
        assert self.model is not None
        assert self.model.geometry is not None
        return int(self.model.geometry.bits)

    def encode(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
        assert self.model is not None
        assert self.model.geometry is not None
        return self.model.geometry.encode(rows)

    def text(self, query: npt.NDArray[np.float32]) -> str:
        """The bits of a query, as PostgreSQL reads them."""
        return "".join(map(str, unpack(self.encode(query[None]), self.bits)[0].astype(int)))
