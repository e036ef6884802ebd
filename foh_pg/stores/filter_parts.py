"""What a filter may be made of, looked at before anything is made of it; and what the server says of it."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from foh_pg.errors import InputError

# Filters that programs write stay far below these. SQLAlchemy and the server walk through a condition by
# recursion, which ends in an error of theirs beyond some hundred levels.
DEEPEST, MOST = 24, 10_000
# Digits that the server keeps of a number, and no program means.
LONGEST = 1000
VALUES = (bool, int, float, str, Decimal, date, time, timedelta, UUID)

# What the server says where values do not fit the columns they are compared with: data exceptions, a type
# that cannot be compared or converted, too many values.
UNFIT = ("22", "42804", "42846", "42883", "42P18", "42P38", "54")


def check_parts(filter: Mapping[Any, Any]) -> None:
    """Refuse what no database could compare: strange objects, NUL in a text, infinity, endless nesting."""
    waiting: list[tuple[Any, int]] = [(filter, 1)]
    seen = 0
    while waiting:
        part, depth = waiting.pop()
        seen += 1
        if depth > DEEPEST:
            raise InputError(f"filter: it is nested more than {DEEPEST} deep")
        if seen > MOST:
            raise InputError(f"filter: it has more than {MOST} parts")
        if isinstance(part, Mapping):
            for name in part:
                if not isinstance(name, str):
                    raise InputError(f"filter: a name is text, not {shown(name)}")
                check_value(name)
            waiting += [(each, depth + 1) for each in part.values()]
        elif isinstance(part, (list, tuple, set, frozenset)):
            waiting += [(each, depth + 1) for each in part]
        else:
            check_value(part)


def check_value(value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, VALUES):
        raise InputError(f"filter: a value of type {type(value).__name__} cannot be compared")
    if isinstance(value, str) and ("\0" in value or not is_unicode(value)):
        raise InputError(f"filter: {shown(value)} cannot be in a database: it has NUL or half a character")
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        raise InputError(f"filter: {value} cannot be compared")
    if isinstance(value, int) and value.bit_length() > LONGEST * 3:
        raise InputError(f"filter: a number of more than {LONGEST} digits cannot be compared")
    if isinstance(value, Decimal) and abs(value.adjusted()) > LONGEST:
        raise InputError(f"filter: a number of more than {LONGEST} digits cannot be compared")


def is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def listed(value: Any, what: str) -> Iterable[Any]:
    """The values of a list; `what` says whose it is."""
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise InputError(f"filter: {what} takes a list, not {shown(value)}")
    return value


def shown(value: Any) -> str:
    """A value for an error message, not longer than a line."""
    try:
        text = reprlib.repr(value).encode("ascii", "backslashreplace").decode()
    except ValueError:
        # Python writes no number of thousands of digits.
        return f"a long {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


@contextmanager
def comparing(filter: Any, error: type[Exception] = InputError) -> Iterator[None]:
    """Around a statement: where values of the filter do not fit their columns, say so in our words."""
    try:
        yield
    except sa.exc.StatementError as raised:
        state = getattr(raised.orig, "sqlstate", None)
        ours = filter is not None and not raised.connection_invalidated
        if not ours or (isinstance(raised, sa.exc.DBAPIError) and not is_unfit(raised, state)):
            raise
        said = " ".join(str(raised.orig).split("\n", 1)[0].split())
        raise error(f"filter: its values do not fit what they are compared with: {said}") from raised


def is_unfit(error: sa.exc.DBAPIError, state: str | None) -> bool:
    if state is None:
        # The driver found a value that it cannot send.
        return isinstance(error, (sa.exc.DataError, sa.exc.ProgrammingError, sa.exc.NotSupportedError))
    return state.startswith(UNFIT)
