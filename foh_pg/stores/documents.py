"""Where documents are: a table of the store's own, or one that the application has."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import sqlalchemy as sa
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, Insert, insert

from foh_pg.errors import InputError, SchemaError
from foh_pg.index.calls import names_text
from foh_pg.sqlalchemy import FOHIndex, foh_explain, foh_search
from foh_pg.sqlalchemy.definition import qualified, quoted
from foh_pg.sqlalchemy.search import equal
from foh_pg.stores.included import check_included, defined, included_columns, included_name

logger = logging.getLogger(__name__)

# The search_path of the application says where the table is, and may have operators of others in it.
RELATION = sa.text(
    "SELECT CAST(pg_catalog.to_regclass(:relation) AS pg_catalog.oid) AS oid,"
    " pg_catalog.current_schema() AS schema"
)
PRESENT = sa.text("""
SELECT (SELECT n.nspname FROM pg_catalog.pg_extension e
        JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector') AS vector,
       coalesce((SELECT n.nspname FROM pg_catalog.pg_class c
                 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = CAST(:oid AS oid)),
                CAST(:schema AS name)) AS schema,
       CAST(:oid AS oid) IS NOT NULL AS has_table,
       EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'foh') AS installed,
       EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
               WHERE n.nspname = 'foh' AND p.proname = :search) AS has_index
""")
PIN = "SET LOCAL search_path = pg_catalog, pg_temp"
# Two processes may make the table at the same time, which is no error; making its index twice would be.
LOCK = sa.text(
    "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('foh_pg.stores ' || :name, 0))"
)

# How a search of a store names what it adds to the columns of the table.
VECTOR, DISTANCE, SCORE = "foh_vector", "foh_distance", "foh_score"


class VectorIn(Vector):
    """pgvector's type by its full name: its schema need not be in the search_path."""

    cache_ok = True

    def __init__(self, dim: int | None = None, schema: str | None = None) -> None:
        super().__init__(dim)
        self.schema = schema

    def get_col_spec(self, **kw: Any) -> str:
        name = "vector" if self.dim is None else f"vector({self.dim:d})"
        return f"{quoted(self.schema)}.{name}" if self.schema else name


@dataclass(frozen=True)
class Documents:
    """A table as the store uses it."""

    index: FOHIndex
    key: sa.Column[Any]
    content: sa.Column[Any]
    embedding: sa.Column[Any]
    # One JSONB column, or columns of their own.
    metadata: sa.Column[Any] | Mapping[str, sa.Column[Any]]
    labels: sa.Column[Any] | None
    vector_schema: str
    # That of the index: cosine, l2 or ip.
    distance: str
    # The columns of what a document has in place of text: data, meta and type. None of them, or all.
    blob: Sequence[sa.Column[Any]] = ()
    # What rows are numbered by as they are written.
    number: sa.Column[Any] | None = None
    # Entries of the metadata that the index includes, each as the column made of it.
    included: Mapping[str, sa.Column[Any]] = field(default_factory=dict)
    # Whether the table or the index was made just now, in a transaction that may be rolled back.
    made: bool = False

    @property
    def table(self) -> sa.Table:
        return self.index.table

    def key_of(self, identifier: str) -> Any:
        """The key for an identifier of a framework's, which is text."""
        try:
            python_type = self.key.type.python_type
        except NotImplementedError:
            python_type = str
        if python_type not in (int, uuid.UUID):
            return identifier
        try:
            return python_type(identifier)
        except ValueError as error:
            raise InputError(
                f"{identifier!r} is no key of {self.table.name!r}, which are {self.key.type}"
            ) from error

    def row(
        self,
        identifier: str | None,
        content: Any,
        vector: Any,
        metadata: Mapping[str, Any],
        labels: Iterable[str],
    ) -> dict[str, Any]:
        """A row for the table; `labels` names the entries of the metadata whose values are its labels."""
        row = {self.content.name: content, self.embedding.name: vector}
        if identifier is not None:
            row[self.key.name] = self.key_of(identifier)
        if self.labels is not None:
            row[self.labels.name] = _values(metadata, labels)
        if isinstance(self.metadata, sa.Column):
            return {**row, self.metadata.name: dict(metadata)}
        unknown = sorted(set(metadata) - set(self.metadata))
        if unknown:
            raise InputError(
                f"metadata {', '.join(map(repr, unknown))}: "
                f"{self.table.name!r} keeps {', '.join(self.metadata) or 'none'}"
            )
        return {**row, **metadata}

    def metadata_of(self, row: Mapping[Any, Any]) -> dict[str, Any]:
        if isinstance(self.metadata, sa.Column):
            return dict(row[self.metadata] or {})
        return {name: row[column] for name, column in self.metadata.items()}

    def columns(self, *, vector: bool = False) -> list[Any]:
        """What a document is made from; its embedding is named VECTOR."""
        metadata = [self.metadata] if isinstance(self.metadata, sa.Column) else self.metadata.values()
        found: list[Any] = [self.key, self.content, *metadata, *self.blob]
        if vector:
            found.append(sa.cast(self.embedding, VectorIn(None, self.vector_schema)).label(VECTOR))
        return found

    def nearest(
        self,
        connection: sa.Connection,
        query: Sequence[float],
        wanted: Any,
        *,
        vector: bool = False,
        **arguments: Any,
    ) -> Sequence[Mapping[Any, Any]]:
        """The columns of the documents that a search finds, with DISTANCE and SCORE; the best score first."""
        found = foh_search(self.table, query, filter=wanted, index=self.index, **arguments)
        key, distance, score = found.c
        # A search that reads no row (shortlist 0) knows an estimate of the distance, which is its score.
        ranked = [sa.func.coalesce(distance, score).label(DISTANCE), score.label(SCORE)]
        joined = sa.select(*self.columns(vector=vector), *ranked)
        joined = joined.join_from(self.table, found, equal(self.key, key)).order_by(score)
        return connection.execute(joined).mappings().all()

    def explain(
        self, connection: sa.Connection, query: Sequence[float], wanted: Any, **arguments: Any
    ) -> dict[str, str]:
        return foh_explain(connection, self.table, query, filter=wanted, index=self.index, **arguments)

    def upsert(self, names: Iterable[str]) -> Insert:
        """The statement that inserts rows with values in these columns, or replaces those with their key."""
        statement = insert(self.table)
        replaced = {name: statement.excluded[name] for name in names if name != self.key.name}
        return statement.on_conflict_do_update(index_elements=[self.key], set_=replaced)

    def delete(self, connection: sa.Connection, ids: Sequence[str]) -> bool:
        """Delete documents; those that are not there are no error."""
        keys = [self.key_of(each) for each in ids]
        connection.execute(sa.delete(self.table).where(self.key.in_(keys)))
        return True


@dataclass(frozen=True)
class OwnTable:
    """A table that the store makes when it first needs it."""

    METADATA: ClassVar[str] = "metadata"
    # Whether a document may lack its text or its embedding.
    PARTIAL: ClassVar[bool] = False

    name: str
    index: str
    schema: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    # Entries of the metadata that the index includes, each with the kind of its values.
    include: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_included(self.include)

    def find(self, connection: sa.Connection, dimensions: int | None) -> Documents | None:
        """The table; None where it is not there yet and `dimensions` does not say how to make it."""
        present = _present(connection, self.name, self.schema, self.index)
        if present.has_table and present.has_index:
            told = described(connection, self.index)
            kept = self._kept(told.include, present.schema)
            return replace(self._documents(present, None, kept), distance=told.distance)
        if dimensions is None:
            return None
        documents = replace(self._documents(present, dimensions, self.include), made=True)
        connection.execute(LOCK, {"name": self.index})
        present = _present(connection, self.name, present.schema, self.index)
        if not present.has_table:
            documents.table.metadata.create_all(connection)
        elif not present.has_index:
            connection.execute(documents.index.definition.create())
        return documents

    def _kept(self, there: Sequence[str], schema: str) -> dict[str, str]:
        """Those of the included entries that the index has; a filter on the others reads the metadata."""
        absent = [name for name in self.include if included_name(self.METADATA, name) not in there]
        if absent:
            wanted = names_text([*there, *(included_name(self.METADATA, name) for name in absent)])
            logger.warning(
                "index %r was made without %s: filters on them read the metadata of rows. To change that, "
                "ALTER TABLE %s %s; and SELECT foh.alter_index('%s', include => '%s')",
                self.index,
                ", ".join(map(repr, absent)),
                qualified(self.name, schema),
                ", ".join(
                    f"ADD COLUMN {defined(self.METADATA, each, self.include[each])}" for each in absent
                ),
                self.index.replace("'", "''"),
                wanted.replace("'", "''"),
            )
        return {name: kind for name, kind in self.include.items() if name not in absent}

    def _documents(self, present: Any, dimensions: int | None, include: Mapping[str, str]) -> Documents:
        metadata: sa.Column[Any] = sa.Column(self.METADATA, JSONB, nullable=False, server_default="{}")
        included = included_columns(metadata, include)
        index = FOHIndex(
            self.index, "embedding", labels="labels", include=list(included.values()), **self.options
        )
        table = sa.Table(
            self.name,
            sa.MetaData(),
            sa.Column("id", sa.Text, primary_key=True),
            sa.Column("content", sa.Text, nullable=self.PARTIAL),
            metadata,
            sa.Column("labels", ARRAY(sa.Text), nullable=False, server_default="{}"),
            sa.Column("embedding", VectorIn(dimensions, present.vector), nullable=self.PARTIAL),
            *self._more_columns(),
            *included.values(),
            index,
            schema=present.schema,
        )
        c = table.c
        return Documents(
            index,
            c.id,
            c.content,
            c.embedding,
            metadata,
            c.labels,
            present.vector,
            index.distance,
            included=included,
        )

    def _more_columns(self) -> list[sa.Column[Any]]:
        """What the documents of one framework have beside the columns of all."""
        return []


@dataclass(frozen=True)
class ExistingTable:
    """A table of the application's, with an index on it."""

    name: str
    index: str
    content: str
    embedding: str
    metadata: str | Sequence[str] = ()
    schema: str | None = None

    def find(self, connection: sa.Connection, dimensions: int | None) -> Documents:
        present = _present(connection, self.name, self.schema, self.index)
        if not present.has_table:
            raise InputError(f"there is no table {qualified(self.name, self.schema)} in this database")
        if not present.has_index:
            raise InputError(
                f"there is no index {self.index!r} in this database: SELECT foh.create_index('{self.index}', "
                f"'{qualified(self.name, self.schema)}', '{self.embedding}') makes it"
            )
        table = sa.Table(self.name, sa.MetaData(), schema=present.schema, autoload_with=connection)
        for name in (self.content, self.embedding, *self._metadata_names()):
            if name not in table.c:
                raise InputError(f"{table.name!r} has no column {name!r}; it has {', '.join(table.c.keys())}")
        told = described(connection, self.index)
        key = table.c[self._key(told.key)]
        metadata: Any = {name: table.c[name] for name in self._metadata_names()}
        if isinstance(self.metadata, str):
            metadata = table.c[self.metadata]
        embedding = table.c[self.embedding]
        included = [name for name in told.include if name in table.c]
        index = FOHIndex(self.index, embedding, key=key, include=[table.c[name] for name in included])
        content = table.c[self.content]
        return Documents(index, key, content, embedding, metadata, None, present.vector, told.distance)

    def _key(self, columns: Sequence[str]) -> str:
        """The column of the index's key: a document has one id."""
        if len(columns) != 1:
            raise InputError(
                f"index {self.index!r} has a key of the columns {', '.join(columns)}, and a document has one "
                "id: create an index with the argument key, a column with a unique index"
            )
        return str(columns[0])

    def _metadata_names(self) -> list[str]:
        return [self.metadata] if isinstance(self.metadata, str) else list(self.metadata)


Source = OwnTable | ExistingTable


def _values(metadata: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """The values of these entries of the metadata, as text."""
    given = [value for name in names if (value := metadata.get(name)) is not None]
    lists = [value if isinstance(value, (list, tuple, set)) else [value] for value in given]
    return [str(value) for values in lists for value in values]


def check_distance(options: Mapping[str, Any]) -> None:
    distance = options.get("distance", "cosine")
    if distance not in ("cosine", "l2", "ip"):
        raise InputError(f"distance is {distance!r}, it must be cosine, l2 or ip")


def described(connection: sa.Connection, index: str) -> Any:
    """The key, the included columns and the distance of an index, as its function `describe` tells them."""
    # The compiler formats the names of functions once more with %.
    name = sa.sql.quoted_name(f"{index}_describe".replace("%", "%%"), quote=True)
    told = getattr(sa.func.foh, name)().table_valued("key", "include", "distance")
    return connection.execute(sa.select(told)).one()


def _present(connection: sa.Connection, name: str, schema: str | None, index: str) -> Any:
    """Where the table and the index are. From here on the transaction has our search_path."""
    relation = connection.execute(RELATION, {"relation": qualified(name, schema)}).one()
    connection.exec_driver_sql(PIN)
    given = {"oid": relation.oid, "search": f"{index}_search", "schema": schema or relation.schema}
    present = connection.execute(PRESENT, given).one()
    if not present.installed:
        raise SchemaError("schema foh is not installed in this database: run foh-pg migrate once")
    return present
