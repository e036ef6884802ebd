"""The address of `Code` in version 0.1.0, kept for applications that import it from here."""

from foh_pg.postgres.code import Code

__all__ = ["Code"]
