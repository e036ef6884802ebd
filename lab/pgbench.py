"""PostgreSQL's own load generator: clients that cost little beside what they ask for."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from foh_pg.errors import FohError


@dataclass(frozen=True)
class Rate:
    """Transactions a second, and the mean milliseconds of one as a client sees it."""

    per_second: float
    latency_ms: float


def run(program: Path, dsn: str, script: str, *, clients: int, seconds: float) -> Rate:
    """Let clients repeat a script with prepared statements, as fast as they can, for some seconds."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        command = [
            str(program),
            "--no-vacuum",
            "--protocol=prepared",
            f"--client={clients}",
            f"--jobs={min(clients, 2)}",
            f"--time={max(1, round(seconds))}",
            f"--file={file.name}",
            dsn,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise FohError(f"pgbench failed: {done.stderr.strip()}")
    return read(done.stdout)


def read(printed: str) -> Rate:
    """Read what pgbench says at its end.

    Examples
    --------
    >>> read("latency average = 2.500 ms\\ntps = 400.123 (without initial connection time)")
    Rate(per_second=400.123, latency_ms=2.5)
    """
    rate = re.search(r"^tps = ([\d.]+)", printed, re.MULTILINE)
    latency = re.search(r"^latency average = ([\d.]+) ms", printed, re.MULTILINE)
    if rate is None or latency is None:
        raise FohError(f"pgbench said something else than expected: {printed.strip()}")
    return Rate(float(rate[1]), float(latency[1]))
