"""``python -m lab``."""

from __future__ import annotations

from lab.commands.app import app

app(prog_name="python -m lab")
