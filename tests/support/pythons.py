"""Pythons with exactly the packages that a test names, and the wheel that goes into them.

Nothing is fetched for a Python: what it gets is linked to from the one that runs the tests.
"""

import importlib.metadata
import re
import subprocess
import sys
import venv
from pathlib import Path

import own_process

ROOT = Path(__file__).parents[2]
OF_SPARK = ("numpy", "pyarrow")
"""What PySpark itself needs where a Python data source is read; PySpark comes from SPARK_HOME."""

OF_OURS = ("lark", "scramp", "stomp.py")


def build_wheel(folder):
    """Of the code that is tested."""
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    own_process.run(command)
    return next(folder.glob("*.whl"))


def make(folder, *names, wheel=None):
    """A virtual environment with these distributions, and what they need; returns its Python."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    packages = next(folder.glob("lib/python3*/site-packages"))
    for entry in sorted({entry for name in with_needs(*names) for entry in entries(name)}):
        (packages / entry.name).symlink_to(entry)
    if wheel is not None:
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
        install = [*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
        subprocess.run(install, check=True, timeout=100)
    return python


def with_needs(*names):
    """These distributions and those they need, whatever is optional left out."""
    found, left = [], list(names)
    while left:
        name = left.pop()
        found.append(name)
        wanted = importlib.metadata.distribution(name).requires or []
        left += [re.match(r"[\w.-]+", each)[0] for each in wanted if "extra ==" not in each]
    return found


def entries(name):
    """The files and folders of a distribution, as they lie in site-packages."""
    files = importlib.metadata.distribution(name).files
    tops = {file.parts[0] for file in files} - {"..", "__pycache__"}
    return [Path(importlib.metadata.distribution(name).locate_file(top)) for top in tops]
