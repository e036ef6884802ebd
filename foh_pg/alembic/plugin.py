"""Where Alembic and this package meet: by entry point, or by import where Alembic has no plugins.

Alembic loads plugins in the middle of its own import. What needs more of it than the registries is imported
when it is called.
"""

from __future__ import annotations

from typing import Any

NAME = "alembic.autogenerate.foh_pg"

_registered = False


def setup(plugin: Any) -> None:
    """What Alembic 1.18 and later call."""
    global _registered
    _registered = True
    from alembic.util import DispatchPriority

    from foh_pg.alembic import operations, render  # noqa: F401

    plugin.add_autogenerate_comparator(
        _leave_out_our_schema, "schema", qualifier="postgresql", priority=DispatchPriority.FIRST
    )
    plugin.add_autogenerate_comparator(
        _compare_indexes, "schema", qualifier="postgresql", priority=DispatchPriority.LAST
    )


def ensure_registered() -> None:
    """Do what the entry point does, unless it has done so already."""
    global _registered
    if _registered:
        return
    try:
        from alembic.runtime.plugins import Plugin
    except ImportError:
        _registered = True
        _register_with_an_older_alembic()
    else:
        setup(Plugin(NAME))


def _register_with_an_older_alembic() -> None:
    from alembic.autogenerate import comparators

    from foh_pg.alembic import operations, render  # noqa: F401

    # Registered for every dialect: comparators of a single dialect would run before Alembic's own.
    comparators.dispatch_for("schema")(_compare_indexes)


def _leave_out_our_schema(*arguments: Any) -> Any:
    from foh_pg.alembic.compare import leave_out_our_schema

    return leave_out_our_schema(*arguments)


def _compare_indexes(*arguments: Any) -> Any:
    from foh_pg.alembic.compare import compare_indexes

    return compare_indexes(*arguments)
