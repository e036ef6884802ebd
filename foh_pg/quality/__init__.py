"""How good an index is: measured, shown over its versions, and foretold before there is one."""

from foh_pg.quality.evaluate import evaluate

__all__ = ["evaluate"]
