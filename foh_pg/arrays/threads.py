"""Threads of linear algebra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra to one thread, where threadpoolctl is there to do so.

    Matrices here are small: more threads gain little on idle cores, and on busy ones they wait for each other
    a hundred times longer than they compute.
    """
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        yield
        return
    with threadpool_limits(limits=1):
        yield
