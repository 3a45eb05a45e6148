"""Jobs in processes of their own, driver and all, of which nothing is left at the end."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from session import kill_session


def spark_submit(script, *arguments, **conf):
    """The command of a ``spark-submit``; ``conf``: settings of Spark, with ``_`` for the dots."""
    settings = {"spark.ui.enabled": "false"} | {name.replace("_", "."): value for name, value in conf.items()}
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]"]
    return [*submit, *words, str(script), *map(str, arguments)]


def environment(**variables):
    return os.environ | {"PYSPARK_PYTHON": sys.executable} | variables


def run(command, *, seconds=200, ends=0, **how):
    """Run a command to its end, and require this exit code. The value has what it printed: ``stdout``, ``stderr``."""
    words = [str(word) for word in command]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False, **how)
    assert ended.returncode == ends, f"{words}: {ended.returncode}\n{ended.stdout[-3000:]}\n{ended.stderr[-6000:]}"
    return ended


@contextlib.contextmanager
def started(command, log, *, output=None, cwd=None, env=None, **variables):
    """A process in a session of its own. What it prints goes to ``log``, or to ``output`` what is no error.

    ``variables`` are those of the tests, changed; ``env`` stands for all of them.
    """
    with contextlib.ExitStack() as files:
        errors = files.enter_context(log.open("ab"))
        printed = files.enter_context(output.open("ab")) if output else errors
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=errors,
            cwd=cwd,
            env=env or environment(**variables),
            start_new_session=True,
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process):
    """SIGKILL for the process and all that it has started, at once."""
    kill_session(process.pid)
    process.wait(30)
