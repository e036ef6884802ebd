"""What a piece of work costs: wall time, processor time here and in the server, memory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg

# The unit of the times in /proc/PID/stat.
TICK = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass
class Cost:
    """Seconds; on a shared machine those of the processors say more than the clock."""

    # By the clock.
    wall: float = 0.0
    # Of this process, on all its threads.
    own_cpu: float = 0.0
    # Of the server's process behind one connection, or of the whole server.
    server_cpu: float = 0.0

    @property
    def cpu(self) -> float:
        return self.own_cpu + self.server_cpu

    def as_dict(self) -> dict[str, float]:
        return {**{name: round(value, 4) for name, value in asdict(self).items()}, "cpu": round(self.cpu, 4)}


@contextmanager
def measured(process: int) -> Iterator[Cost]:
    """Measure what is done inside, here and in the process of a server's connection."""
    cost = Cost()
    started = (time.perf_counter(), time.process_time(), process_cpu(process))
    yield cost
    cost.wall = time.perf_counter() - started[0]
    cost.own_cpu = time.process_time() - started[1]
    cost.server_cpu = process_cpu(process) - started[2]


def process_cpu(process: int) -> float:
    """Seconds on a processor of one process so far; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def postmaster(dsn: str) -> int:
    """The process that a local server began with."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute("SELECT pg_read_file('postmaster.pid', 0, 20)").fetchone()
        assert row is not None
        return int(str(row[0]).split()[0])


def tree_cpu(root: int) -> float:
    """Seconds on processors of a server: its first process, its children, and those that have ended."""
    total = 0.0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name of the command is in parentheses and may have blanks.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(entry.name) == root:
            total += sum(map(int, fields[11:15]))
        elif int(fields[1]) == root:
            total += sum(map(int, fields[11:13]))
    return total * TICK
