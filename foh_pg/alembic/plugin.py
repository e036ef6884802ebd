"""Where Alembic and this package meet: the entry point that Alembic loads in the middle of its own import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def setup(plugin: Any) -> None:
    """Register the operations, how they are written, and what autogenerate compares."""
    from alembic.util import DispatchPriority

    from foh_pg.alembic import operations, render  # noqa: F401

    for name, priority in (
        ("leave_out_our_schema", DispatchPriority.FIRST),
        ("compare_indexes", DispatchPriority.LAST),
    ):
        plugin.add_autogenerate_comparator(
            _comparing(name), "schema", qualifier="postgresql", priority=priority
        )


def _comparing(name: str) -> Callable[..., Any]:
    """A comparison by its name: its module needs more of Alembic than there is by now."""

    def compare(*arguments: Any) -> Any:
        from foh_pg.alembic import compare

        return getattr(compare, name)(*arguments)

    return compare
