"""What goes wrong while a filter is translated and asked for, as errors of ours that name the filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from reprlib import repr as shown
from typing import Any

import sqlalchemy as sa

from foh_pg.errors import InputError

# What the server says where values do not fit the columns they are compared with: data exceptions, a type
# that cannot be compared or converted, too many values or levels.
UNFIT = ("22", "42804", "42846", "42883", "42P18", "42P38", "54")


@contextmanager
def comparing(filter: Any, error: type[InputError] = InputError) -> Iterator[None]:
    """Around all that is done with a filter, whose values may be anything that the framework lets pass.

    The application learns that its filter is to blame, by an error of the class that its framework expects.
    """
    try:
        yield
    except sa.exc.StatementError as raised:
        if filter is None or not _is_unfit(raised):
            raise
        said = " ".join(str(raised.orig).split("\n", 1)[0].split())
        raise error(f"filter: its values do not fit what they are compared with: {said}") from raised
    except (ValueError, RecursionError) as raised:
        if filter is None:
            raise
        said = f"filter: it cannot be used: {raised}"
        if isinstance(raised, RecursionError):
            said = "filter: it is nested too deep"
        raise error(str(raised) if isinstance(raised, InputError) else said) from raised


def _is_unfit(raised: sa.exc.StatementError) -> bool:
    if raised.connection_invalidated:
        return False
    state = getattr(raised.orig, "sqlstate", None)
    if state is not None:
        return bool(state.startswith(UNFIT))
    # Without a state the server has not seen the statement: the driver found a value that it cannot send.
    refused = (sa.exc.DataError, sa.exc.ProgrammingError, sa.exc.NotSupportedError)
    return isinstance(raised, refused) or not isinstance(raised, sa.exc.DBAPIError)


def listed(value: Any, what: str) -> list[Any]:
    """The values of a list; `what` says whose it is."""
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise InputError(f"filter: {what} takes a list, not {shown(value)}")
    return list(value)


def unlike(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Whether a condition does not hold: a document without the entry is one that does not match."""
    return sa.not_(sa.func.coalesce(condition, False))


def every(parts: Iterable[sa.ColumnElement[bool]]) -> sa.ColumnElement[bool]:
    return sa.and_(sa.true(), *parts)


def none(parts: Iterable[sa.ColumnElement[bool]]) -> sa.ColumnElement[bool]:
    return unlike(every(parts))


def some(parts: Iterable[sa.ColumnElement[bool]]) -> sa.ColumnElement[bool]:
    return sa.or_(sa.false(), *parts)
