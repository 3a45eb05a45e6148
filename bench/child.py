"""A measured client runs in a process of its own: a job goes in as JSON on stdin, what was measured comes out.

``python -m bench.child bench.raw drain`` is the other end of ``in_child(raw.drain, job)``.
"""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from bench.job import Job, Measured

__all__ = ["in_child"]

_ROOT = Path(__file__).resolve().parent.parent


def in_child(client: Callable[[Job], Measured], job: Job) -> Measured:
    """Run ``client``, a function of a module, in a fresh interpreter; what it prints is its error."""
    told = subprocess.run(
        [sys.executable, "-m", "bench.child", client.__module__, client.__name__],
        input=json.dumps(asdict(job)),
        capture_output=True,
        text=True,
        cwd=_ROOT,
        timeout=2 * job.time_limit,
        check=False,
    )
    if told.returncode:
        raise RuntimeError(f"{client.__module__}.{client.__name__} failed:\n{told.stderr}")
    return Measured(**json.loads(told.stdout))


def _main() -> None:
    module, function = sys.argv[1:]
    job = Job(**json.load(sys.stdin))
    print(json.dumps(asdict(getattr(importlib.import_module(module), function)(job))))


if __name__ == "__main__":
    _main()
