"""Every error that foh_pg raises on purpose."""

from __future__ import annotations

from collections.abc import Iterable


class FohError(Exception):
    """Something foh_pg was asked to do cannot be done."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).__doc__)


class InputError(FohError, ValueError):
    """A value that was passed in cannot be used."""


class StateError(FohError):
    """A saved learner state cannot be restored."""


class SchemaError(FohError):
    """The schema foh in this database does not fit this package."""


class IndexNotFound(FohError, LookupError):
    """There is no such index."""

    @classmethod
    def named(cls, name: str, existing: Iterable[str] | None = None) -> IndexNotFound:
        known = "foh-pg status lists those there are"
        if existing is not None:
            known = f"existing are {', '.join(sorted(existing)) or 'none'}"
        return cls(f"there is no index {name!r}: {known}")


class BusyError(FohError):
    """Another updater is at work on the index."""


class FenceError(FohError):
    """The index was changed by another updater meanwhile; nothing was written."""


class SessionError(FohError):
    """This connection cannot be used to update an index."""


class BuildError(FohError):
    """The index is not in the state that this step needs."""


def one_line(error: BaseException) -> str:
    """What an error says, for a log or a table."""
    return " ".join(str(error).split()) or type(error).__name__
