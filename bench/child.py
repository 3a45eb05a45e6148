"""Runs a measured client in a separate process: the job is JSON on stdin, the measurement is JSON on stdout.

``in_child(raw.drain, job)`` starts ``python -m bench.child bench.raw drain``.
"""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict

from bench.job import Job, Measured
from bench.machine import ROOT

__all__ = ["in_child"]


def in_child(client: Callable[[Job], Measured], job: Job) -> Measured:
    """Run ``client``, a function of a module, in a new interpreter. An error contains its stderr."""
    ended = subprocess.run(
        [sys.executable, "-m", "bench.child", client.__module__, client.__name__],
        input=json.dumps(asdict(job)),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=2 * job.time_limit,
        check=False,
    )
    if ended.returncode:
        raise RuntimeError(f"{client.__module__}.{client.__name__} failed:\n{ended.stderr}")
    return Measured(**json.loads(ended.stdout))


def _main() -> None:
    module, function = sys.argv[1:]
    job = Job(**json.load(sys.stdin))
    print(json.dumps(asdict(getattr(importlib.import_module(module), function)(job))))


if __name__ == "__main__":
    _main()
