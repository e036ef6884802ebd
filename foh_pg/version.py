"""The version of the package: here, and read from here by everything that says it."""

from __future__ import annotations

__version__ = "0.2.0"
