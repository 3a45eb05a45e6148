"""The versions that a run of tests used: ``pytest --tested FILE`` writes them, for the compatibility matrix.

``tools/reference.py`` writes the matrix of README.md and docs/deployment.md from the files in tests/tested.
"""

import json
import platform
from importlib.metadata import version
from pathlib import Path

KEY = "tested"
"""The name of a property of a test: ``(name, version)`` of something that the test used."""


def write(file, reports):
    """Write the environment of the run, and what its tests used."""
    used = {}
    for report in reports:
        for name, value in (value for key, value in report.user_properties if key == KEY):
            used.setdefault(name, set()).add(value)
    environment = {
        "pyspark-jms": version("pyspark-jms"),
        "PySpark": version("pyspark"),
        "Python": ".".join(platform.python_version_tuple()[:2]),
    }
    found = environment | {name: sorted(versions) for name, versions in sorted(used.items())}
    Path(file).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
