"""Adds compiled modules to the archive of PySpark from which Spark's Python processes import.

    python tests/support/compiled_zip.py

Spark puts its ``pyspark.zip``, which has sources only, in front of the installed package. Python never writes into an
archive, so each process of a source compiles what it imports: 1.1 s of CPU time instead of 0.5 s, and Spark waits at
most 10 s for it. The tests start thousands of these processes. Another Python ignores the compiled modules.
"""

import compileall
import py_compile
import re
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

_UNUSED = re.compile(r"/pyspark/(pandas|ml|mllib|testing)/|/tests/")


def compile_into(archive):
    """Replace the archive. It is the same file under the same name if it has compiled modules already."""
    with zipfile.ZipFile(archive) as sources, tempfile.TemporaryDirectory() as folder:
        if any(name.endswith(".pyc") for name in sources.namelist()):
            return
        sources.extractall(folder)
        compileall.compile_dir(
            folder,
            maxlevels=20,
            quiet=1,
            rx=_UNUSED,
            legacy=True,  # beside the source, where an archive is searched
            stripdir=folder,
            prependdir=str(archive),
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        made = archive.with_suffix(".new")
        with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as compiled:
            for file in sorted(Path(folder).rglob("*")):
                compiled.write(file, file.relative_to(folder))
        made.replace(archive)


def main():
    for archive in (Path(find_spec("pyspark").origin).parent / "python/lib").glob("*.zip"):
        compile_into(archive)


if __name__ == "__main__":
    sys.exit(main())
