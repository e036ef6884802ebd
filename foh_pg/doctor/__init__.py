"""What is wrong with an installation, for a person who has just made it: each finding with its cure."""

from __future__ import annotations

from foh_pg.doctor.examine import Examination, examine
from foh_pg.doctor.report import Finding

__all__ = ["Examination", "Finding", "examine"]
