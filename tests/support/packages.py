"""Other versions of packages than those the suite runs with, in a directory of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def install_into(target: Path, *requirements: str) -> Path:
    """Install packages without what they need; skips the test where the registry does not have them."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)]
    done = subprocess.run([*command, *requirements], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the package registry does not give {', '.join(requirements)}: {done.stderr[-300:]}")
    return target
