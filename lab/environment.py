"""Where figures come from: versions and machine."""

from __future__ import annotations

import datetime
import os
import platform
from importlib import metadata
from typing import Any


def describe() -> dict[str, Any]:
    """Give what a figure must carry to be compared with another one."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": {
            "system": f"{platform.system()} {platform.release()}",
            "processor": _processor(),
            "threads": _threads(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        },
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in ("foh_pg", "numpy", "scipy")},
        },
    }


def _threads() -> int | None:
    """Count the threads of linear algebra at this moment; None if nobody knows."""
    try:
        from threadpoolctl import threadpool_info  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return None
    return max((int(p["num_threads"]) for p in threadpool_info() if p["user_api"] == "blas"), default=1)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
