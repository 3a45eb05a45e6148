"""Facts about the machine of a measurement."""

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["facts", "load_average"]


def load_average() -> float:
    """Load average of the last minute. A high value before a run means that other programs disturb its measurements."""
    return round(os.getloadavg()[0], 2)


def facts(versions: dict[str, str], load_before: float) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "cpu": _cpu_model(),
        "system": platform.system() + " " + platform.release(),
        "load_before": load_before,
        "python": platform.python_version(),
        **versions,
    }


def _cpu_model() -> str:
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return model[1] if model else platform.machine()
