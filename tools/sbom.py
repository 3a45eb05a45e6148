"""A software bill of materials of what users install: the wheel of a folder and its dependencies, in CycloneDX.

    python tools/sbom.py dist

The wheel is installed into a fresh environment, because the environment of contributors has many other packages.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "pyspark-jms.cdx.json"


def main(folder: Path) -> int:
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        print(f"{folder} has {len(wheels)} wheels: run `make clean dist` first", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as environment:
        venv.create(environment, with_pip=True)
        python = Path(environment) / "bin" / "python"
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(wheels[0])], check=True)
        subprocess.run([str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools"], check=True)
        cyclonedx = [sys.executable, "-m", "cyclonedx_py", "environment", str(python), "--output-reproducible"]
        out = ["--pyproject", str(ROOT / "pyproject.toml"), "--output-file", str(folder / NAME)]
        subprocess.run([*cyclonedx, *out], check=True)
    print(folder / NAME)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
