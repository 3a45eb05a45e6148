"""The archive of PySpark with compiled modules has the same sources, and Python imports what is compiled."""

import subprocess
import sys
import zipfile

from compiled_zip import compile_into

SOURCES = {
    "pyspark/__init__.py": "",
    "pyspark/value.py": "value = 7\n",
    "pyspark/tests/__init__.py": "",
    "text": "as it is",
}
SHOW = "from pyspark import value, tests; print(value.value, value.__file__, tests.__file__)"


def test_compiled_modules_are_added_once(tmp_path):
    archive = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for name, text in SOURCES.items():
            made.writestr(name, text)
    compile_into(archive)
    first = archive.read_bytes()
    with zipfile.ZipFile(archive) as made:
        assert {name: made.read(name).decode() for name in SOURCES} == SOURCES
    command = [sys.executable, "-S", "-c", SHOW]
    done = subprocess.run(command, env={"PYTHONPATH": str(archive)}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["7", f"{archive}/pyspark/value.pyc", f"{archive}/pyspark/tests/__init__.py"]
    compile_into(archive)
    assert archive.read_bytes() == first
