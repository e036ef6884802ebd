"""What foh.index says of one index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from foh_pg.clustering import Metric
from foh_pg.errors import BuildError, IndexNotFound
from foh_pg.geometry import Layout
from foh_pg.model.signature import SIGNATURE_BITS
from foh_pg.postgres.binary_copy import Array, Bits, Column, Raw, Text
from foh_pg.runs.session import Session
from foh_pg.tables.keys import Keys, keys_of

FIND = """
SELECT i.id, foh._names(i) FROM foh.index i WHERE i.name = %(name)s
"""

READ = """
SELECT i.id, i.name, i.key_types::text[], pg_catalog.pg_typeof(NULL::{key_type})::oid::bigint, i.labels,
       i.labels_from_name, i.dimensions, i.bits, i.geometry, i.distance, i.options, i.version, i.status,
       i.next_center, i.source_name, i.included, {unchanged}() IS NOT NULL
FROM foh.index i WHERE i.id = {id}
"""

# What is wrong with the tables of the index, the worst first.
PROBLEMS = """
SELECT p.what, pg_catalog.concat_ws(' ', p.was, p.is_now), p.cure
FROM foh.index i CROSS JOIN LATERAL foh._problems(i) p WHERE i.id = {id}
"""


class IndexForm(Protocol):
    """What decides how an index ranks: enough to try one out on rows in memory."""

    @property
    def bits(self) -> int: ...

    @property
    def geometry(self) -> int: ...

    @property
    def distance(self) -> Metric: ...

    @property
    def options(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class IndexRow:
    """One row of foh.index, as of one snapshot."""

    id: int
    name: str
    # The types of the key columns, and the oid of what lists hold: that type, or one made of all of them.
    key_types: list[str]
    key_oid: int
    labels: str | None
    labels_from: str | None
    dimensions: int
    bits: int
    geometry: int
    distance: Metric
    options: dict[str, Any]
    version: int
    status: str
    next_center: int
    source: str
    # Columns of the table that lists keep beside each row: see foh._inspect_included.
    included: list[dict[str, Any]]
    intact: bool
    encoding: str = "utf-8"

    @property
    def keys(self) -> Keys:
        return keys_of(self.key_types, self.key_oid, self.encoding)

    @property
    def labels_column(self) -> Column:
        """The labels of a row."""
        return Array(Text(self.encoding))

    @property
    def code_column(self) -> Bits:
        return Bits(self.bits)

    @property
    def layout(self) -> Layout:
        """How the geometry bits are shared out to numbers."""
        return Layout.of(self.geometry, self.dimensions, self.distance)

    @property
    def geometry_column(self) -> Bits:
        return Bits(self.geometry)

    @property
    def marks_column(self) -> Bits:
        """The signature of a row's labels, where the index has any, and its learned code."""
        return Bits(self.bits + (SIGNATURE_BITS if self.labels is not None else 0))

    @property
    def included_columns(self) -> dict[str, Raw]:
        """The columns of foh.<index>_list that hold included columns."""
        return {f"included_{column['slot']}": Raw(column["kept"]) for column in self.included}

    @property
    def filled(self) -> bool:
        """Whether all lists have all included columns."""
        return all(column["filled"] for column in self.included)

    @property
    def held(self) -> dict[str, Bits | Raw]:
        """What a list holds of every row beside its key: the columns of foh.<index>_list."""
        return {"geometry": self.geometry_column, "marks": self.marks_column, **self.included_columns}


def find_index(session: Session, name: str) -> IndexRow:
    """Look an index up and give the session its names."""
    rows = session.rows(FIND, {"name": session.told(name)})
    if not rows:
        raise IndexNotFound.named(name, (row[0] for row in session.rows("SELECT name FROM foh.index")))
    # JSON is read as UTF-8, whatever the encoding of the connection.
    session.names = {key: session.told(str(value)) for key, value in rows[0][1].items()}
    return read_index(session)


def read_index(session: Session) -> IndexRow:
    """The present row of the session's index; an error where its source no longer looks as recorded."""
    rows = session.rows(READ)
    if not rows:
        raise IndexNotFound("the index was dropped meanwhile")
    index = IndexRow(*(*rows[0], session.encoding))
    if not index.intact:
        for what, detail, cure in session.rows(PROBLEMS):
            raise BuildError(f"index {index.name!r} cannot be used: {what} ({detail}); {cure}")
        raise BuildError(
            f"{index.source}, the table of index {index.name!r}, has changed since the index was created or "
            f"refreshed: run SELECT foh.refresh({session.names['name']}) first"
        )
    return index
