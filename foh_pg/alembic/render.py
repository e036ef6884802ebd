"""How autogenerate writes the operations into a migration."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from alembic.autogenerate.render import renderers

from foh_pg.alembic.operations import (
    BASE,
    HEAD,
    AlterFohIndexOp,
    CreateFohIndexOp,
    DropFohIndexOp,
    FohMigrateOp,
)

if TYPE_CHECKING:
    from alembic.autogenerate.api import AutogenContext

# Fields that are not written as keyword arguments of the same name.
POSITIONAL = {"table", "embedding", "options"}


@renderers.dispatch_for(FohMigrateOp)
def _migrate(context: AutogenContext, operation: FohMigrateOp) -> str:
    arguments = [] if operation.to == HEAD else [repr(operation.to)]
    implied = HEAD if operation.to == BASE else BASE
    if operation.start != implied:
        arguments.append(f"start={operation.start!r}")
    return _call(context, "foh_migrate", arguments)


@renderers.dispatch_for(CreateFohIndexOp)
def _create(context: AutogenContext, operation: CreateFohIndexOp) -> str:
    index = operation.index
    arguments = [repr(str(index.table)), repr(str(index.embedding))]
    for field in fields(index):
        value = getattr(index, field.name)
        # bits are written even where they are the default: they decide what the index is.
        if field.name not in POSITIONAL and (value != field.default or field.name == "bits") and value != []:
            arguments.append(f"{field.name}={_plain(value)!r}")
    return _call(context, "create_foh_index", [*arguments, *_options(index.options)])


@renderers.dispatch_for(DropFohIndexOp)
def _drop(context: AutogenContext, operation: DropFohIndexOp) -> str:
    arguments = [repr(operation.name)]
    if operation.if_exists:
        arguments.append("if_exists=True")
    return _call(context, "drop_foh_index", arguments)


@renderers.dispatch_for(AlterFohIndexOp)
def _alter(context: AutogenContext, operation: AlterFohIndexOp) -> str:
    return _call(context, "alter_foh_index", [repr(operation.name), *_options(operation.options)])


def _options(options: Any) -> list[str]:
    return [f"{name}={options[name]!r}" for name in sorted(options)]


def _plain(value: Any) -> Any:
    # The repr of SQLAlchemy's quoted_name is not that of a string.
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, str) else value


def _call(context: AutogenContext, name: str, arguments: list[str]) -> str:
    prefix = context.opts["alembic_module_prefix"] or ""
    return f"{prefix}{name}({', '.join(arguments)})"
