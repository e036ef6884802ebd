"""Settings of the unit tests."""

from __future__ import annotations

from hypothesis import settings

# Machines that run tests are shared and slow at times; a slow example is not a wrong one.
settings.register_profile("unit", deadline=None, max_examples=40)
settings.load_profile("unit")
