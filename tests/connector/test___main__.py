import subprocess
import sys

from pyspark_jms import __version__


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "pyspark_jms", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"pyspark-jms {__version__}\n"
    refused = subprocess.run([*command[:-1], "nope"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
