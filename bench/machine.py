"""Facts about the machine of a measurement."""

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "machine"]

ROOT = Path(__file__).resolve().parent.parent


def machine() -> dict[str, Any]:
    """Facts about the machine, before a run: a high load means that other programs disturb its measurements."""
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "cpu": model[1] if model else platform.machine(),
        "system": platform.system() + " " + platform.release(),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }
