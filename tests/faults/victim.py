"""A process that runs an updater and is killed, or waits to be, when a phase begins.

python -m tests.faults.victim FUNCTION DSN JSON-ARGUMENTS PHASE STEP
"""

from __future__ import annotations

import json
import os
import signal
import sys

from foh_pg import updater


def main(function: str, dsn: str, arguments: str, phase: str, step: str) -> None:
    def progress(name: str, done: int, total: int) -> None:
        if name == phase and done == int(step):
            os.kill(os.getpid(), signal.SIGKILL)

    getattr(updater, function)(dsn, "digits", **json.loads(arguments), progress=progress)


if __name__ == "__main__":
    main(*sys.argv[1:])
