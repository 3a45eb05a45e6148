"""A checkpoint, with its journal or staging queue, moves between the newest release of Spark and another one.

`make test-spark` runs this test in the environment of the other release, and names the Python of the newest one.
"""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import releases_job
from numbered import fill, in_committed_files
from streaming import uncommit
from waiting import await_count

NEWEST = os.environ.get("NEWEST_PYTHON")
COUNT = 100

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.releases]


def run(python, broker, queue, folder):
    arguments = [str(folder), broker.url, broker.amqp_url, broker.user, broker.password, queue]
    with (folder / "job.log").open("ab") as log:
        done = subprocess.run(
            [python, releases_job.__file__, *arguments],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYSPARK_PYTHON": python},
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, (folder / "job.log").read_text(errors="replace")[-4000:]


@pytest.mark.skipif(NEWEST is None, reason="needs the Python of another release: make test-spark")
@pytest.mark.timeout(2000)
def test_a_checkpoint_moves_between_releases_and_back(broker, queue, tmp_path):
    for mode in releases_job.MODES:
        (tmp_path / mode).mkdir()
    for run_number, python in enumerate([NEWEST, sys.executable, NEWEST]):
        for mode in releases_job.MODES:
            fill(broker, f"{queue}.{mode}", COUNT, first=run_number * COUNT)
        run(str(Path(python).absolute()), broker, queue, tmp_path)
        for mode in releases_job.MODES:
            await_count(broker, f"{queue}.{mode}", 0)
            found = in_committed_files(tmp_path / mode / "out")
            assert found == Counter(range((run_number + 1) * COUNT)), (mode, python)
            uncommit(tmp_path / mode / "checkpoint")  # so that the next release repeats the last batch
