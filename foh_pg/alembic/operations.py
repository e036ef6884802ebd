"""The operations: op.foh_migrate, op.create_foh_index, op.alter_foh_index, op.drop_foh_index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from alembic.operations import MigrateOperation, Operations
from sqlalchemy import TextClause
from sqlalchemy.dialects import postgresql

from foh_pg.errors import InputError
from foh_pg.index.calls import columns_text
from foh_pg.schema.indexed import INDEXED, refuse_indexed
from foh_pg.sqlalchemy import definition
from foh_pg.sqlalchemy.definition import Definition

# As in foh_pg.schema.migrations, which needs more of Alembic than there is when this module is loaded.
HEAD = "head"
BASE = "base"


@Operations.register_operation("foh_migrate")
@dataclass(eq=False)
class FohMigrateOp(MigrateOperation):
    """Bring schema `foh` to a revision of its own history."""

    to: str = HEAD
    start: str = BASE

    @classmethod
    def foh_migrate(cls, operations: Operations, to: str = HEAD, *, start: str | None = None) -> None:
        """Install schema `foh`, bring it up to date, or take it back: ``op.foh_migrate("base")``.

        Part of the application's transaction. Going back is refused while a table has an index:
        `drop_foh_index`, earlier in the same downgrade, removes those of the application. `start` is the
        revision that the database is at, which only a script (``--sql``) needs to be told. Unless given it is
        "base", or "head" where `to` is "base".
        """
        if start is None:
            start = HEAD if to == BASE else BASE
        operations.invoke(cls(to, start))

    def reverse(self) -> FohMigrateOp:
        return FohMigrateOp(self.start, self.to)

    def to_diff_tuple(self) -> tuple[Any, ...]:
        return ("foh_migrate", self.to)


@Operations.register_operation("create_foh_index")
@dataclass(eq=False)
class CreateFohIndexOp(MigrateOperation):
    """Create an index on a table."""

    index: Definition

    @classmethod
    def create_foh_index(
        cls,
        operations: Operations,
        table_name: str,
        embedding: str,
        *,
        name: str | None = None,
        **arguments: Any,
    ) -> None:
        """Create an index, named like its table unless `name` is given.

        `arguments` are the fields of `Definition`: `schema`, `labels`, `labels_from`, `labels_from_schema`,
        `labels_key`, `key`, `bits`, `dimensions`, `distance` and `include`. All others are options of the
        index. Every write to the table is captured from then on. Rows that are there already are placed by
        ``foh-pg build``; until then a search reads the table itself.
        """
        known = {field.name for field in fields(Definition)} & arguments.keys()
        given = {each: arguments.pop(each) for each in known}
        for columns in {"labels_key", "key"} & known:
            given[columns] = columns_text(given[columns])
        index = Definition(
            name=name or table_name, table=table_name, embedding=embedding, options=arguments, **given
        )
        operations.invoke(cls(index))

    def reverse(self) -> DropFohIndexOp:
        return DropFohIndexOp(self.index.name, index=self.index)

    def to_diff_tuple(self) -> tuple[Any, ...]:
        return ("add_foh_index", self.index)


@Operations.register_operation("drop_foh_index")
@dataclass(eq=False)
class DropFohIndexOp(MigrateOperation):
    """Drop an index with all that belongs to it."""

    name: str
    if_exists: bool = False
    index: Definition | None = None

    @classmethod
    def drop_foh_index(cls, operations: Operations, name: str, *, if_exists: bool = False) -> None:
        """Drop an index: its triggers, tables and functions, and what it learned."""
        operations.invoke(cls(name, if_exists=if_exists))

    def reverse(self) -> CreateFohIndexOp:
        if self.index is None:
            raise InputError(
                f"drop_foh_index({self.name!r}) does not know what the index was made from: "
                "write create_foh_index() into downgrade() yourself"
            )
        return CreateFohIndexOp(self.index)

    def to_diff_tuple(self) -> tuple[Any, ...]:
        return ("remove_foh_index", self.index or self.name)


@Operations.register_operation("alter_foh_index")
@dataclass(eq=False)
class AlterFohIndexOp(MigrateOperation):
    """Change options of an index."""

    name: str
    options: Mapping[str, Any]
    previous: Mapping[str, Any] | None = None

    @classmethod
    def alter_foh_index(cls, operations: Operations, name: str, **options: Any) -> None:
        """Change options of an index; those not named stay as they are."""
        operations.invoke(cls(name, options))

    def reverse(self) -> AlterFohIndexOp:
        if self.previous is None:
            raise InputError(
                f"alter_foh_index({self.name!r}) does not know the values before: "
                "write alter_foh_index() into downgrade() yourself"
            )
        return AlterFohIndexOp(self.name, self.previous, self.options)

    def to_diff_tuple(self) -> tuple[Any, ...]:
        return ("modify_foh_index", self.name, dict(self.previous or {}), dict(self.options))


@Operations.implementation_for(FohMigrateOp)
def _migrate(operations: Operations, operation: FohMigrateOp) -> None:
    from foh_pg.schema import migrations

    context = operations.migration_context
    if context.as_sql:
        for statement in migrations.offline_statements(operation.to, operation.start):
            context.impl.static_output(statement)
    else:
        bind = operations.get_bind()
        assert bind is not None
        if operation.to == BASE:
            tables = [name for (name,) in bind.exec_driver_sql(INDEXED)]
            refuse_indexed(tables, 'take op.foh_migrate("base") out of downgrade()')
        migrations.migrate(bind, operation.to)


@Operations.implementation_for(CreateFohIndexOp)
def _create(operations: Operations, operation: CreateFohIndexOp) -> None:
    _run(operations, operation.index.create())


@Operations.implementation_for(DropFohIndexOp)
def _drop(operations: Operations, operation: DropFohIndexOp) -> None:
    _run(operations, definition.drop(operation.name, if_exists=operation.if_exists))


@Operations.implementation_for(AlterFohIndexOp)
def _alter(operations: Operations, operation: AlterFohIndexOp) -> None:
    _run(operations, definition.alter(operation.name, operation.options))


def _run(operations: Operations, statement: TextClause) -> None:
    context = operations.migration_context
    if not context.as_sql:
        operations.execute(statement)
        return
    # Not through Alembic: with a driver's own paramstyle it would double the percent signs of a script.
    dialect = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call,unused-ignore]
    rendered = statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True})
    context.impl.static_output(f"{rendered};")
