"""Stand-ins for the two official images that jobs/Dockerfile starts from, of the Spark and the Python of this machine.

For machines that reach no image registry; what jobs/Dockerfile installs with pip still comes from a package registry.

    python tests/support/spark_images.py
"""

import os
import re
import shutil
import ssl
import sys
from pathlib import Path

import own_process
import pip
import pyarrow as pa  # noqa: F401 - loads the C++ library that its wheel expects to find
import pyspark
import root_fs

DOCKERFILE = Path(__file__).parents[2] / "jobs/Dockerfile"
PROGRAMS = ["basename", "bash", "cat", "chmod", "chown", "cp", "dirname", "env", "grep", "id", "ln", "ls"]
PROGRAMS += ["mkdir", "mktemp", "mv", "ps", "readlink", "rm", "sed", "sleep", "stat", "touch", "tr", "uname", "whoami"]

NOT_PYTHON = ("jars", "bin", "sbin", "data", "examples", "licenses", "python", "__pycache__")
"""Folders of the pyspark package that a Spark distribution has elsewhere, or not at all."""


def named(argument):
    """The official image that jobs/Dockerfile takes for this argument."""
    return re.search(rf"^ARG {argument}=(\S+)$", DOCKERFILE.read_text(), re.MULTILINE)[1]


def build_spark(name):
    root_fs.imported(name, _lay_out_spark, [])


def build_python(name):
    """With the machine's own certificates and pip settings: its package registry may be another one."""
    settings = {key: value for key, value in os.environ.items() if re.fullmatch(r"PIP_(EXTRA_)?INDEX_URL", key)}
    variables = {"PATH": "/usr/local/bin:/bin", "PIP_CERT": "/etc/ssl/certs/ca-certificates.crt", **settings}
    root_fs.imported(name, _lay_out_python, [f"ENV {key}={value}" for key, value in variables.items()])


def _lay_out_spark(root):
    package = Path(pyspark.__file__).parent
    root.java("opt/java/openjdk", "jdk.incubator.vector", "jdk.httpserver", "jdk.attach", "jdk.jfr")
    for part in ("bin", "jars", "python/lib"):
        shutil.copytree(package / part, root / f"opt/spark/{part}")
    shutil.copytree(package, root / "opt/spark/python/pyspark", ignore=_all_but(package))


def _all_but(package):
    return lambda folder, names: [name for name in names if Path(folder) == package and name in NOT_PYTHON]


def _lay_out_python(root):
    """The interpreter stays where it is on the machine: it knows its place."""
    places = "import sysconfig; print(*map(sysconfig.get_path, ('stdlib', 'purelib')))"
    standard, packages = own_process.run([sys._base_executable, "-c", places]).stdout.split()
    left = shutil.ignore_patterns("test", "tests", "__pycache__", "site-packages", "config-*", "EXTERNALLY-MANAGED")
    shutil.copytree(standard, root / standard, ignore=left, symlinks=False)
    shutil.copytree(Path(pip.__file__).parent, root / f"{packages}/pip")
    binary = Path(sys._base_executable).resolve()
    root.folder(str(binary.parent))
    root.folder("/usr/local/bin")
    shutil.copy(binary, root / str(binary))
    if not (root / "usr/local/bin/python3").exists():
        (root / "usr/local/bin/python3").symlink_to(binary)
    root.programs(*PROGRAMS)
    root.libraries([binary, *(root / f"{standard}/lib-dynload").glob("*.so")])
    for library in set(re.findall(r"(/\S+/lib(?:stdc\+\+|gcc_s)\S*)", Path("/proc/self/maps").read_text())):
        root.folder(str(Path(library).parent))
        soname = re.sub(r"(\.so\.\d+).*", r"\1", Path(library).name)
        shutil.copy(library, (root / library).with_name(soname))
    certificates = os.environ.get("PIP_CERT") or ssl.get_default_verify_paths().cafile
    shutil.copy(certificates, root.folder("/etc/ssl/certs") / "ca-certificates.crt")


if __name__ == "__main__":
    build_spark(named("SPARK_IMAGE"))
    build_python(named("PYTHON_IMAGE"))
