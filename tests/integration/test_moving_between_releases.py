"""A checkpoint, with its journal, staging queue or registers, moves to the newest release of Spark and back.

`make test-spark` runs this test in the environment of the other release, and names the Python of the newest one.
"""

import os
from collections import Counter
from pathlib import Path

import own_process
import pytest
import releases_job
from numbered import fill, in_committed_files
from streaming import uncommit
from waiting import await_count

NEWEST = os.environ.get("NEWEST_PYTHON")
COUNT = 100

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.releases, pytest.mark.slow]


def run_with_newest(*arguments):
    python = str(Path(NEWEST).absolute())
    own_process.run(
        [python, releases_job.__file__, *arguments], seconds=600, env=os.environ | {"PYSPARK_PYTHON": python}
    )


@pytest.mark.skipif(NEWEST is None, reason="needs the Python of another release: make test-spark")
@pytest.mark.timeout(2000)
def test_a_checkpoint_moves_to_the_newest_release_and_back(spark, broker, queue, tmp_path):
    arguments = [str(tmp_path), broker.url, broker.amqp_url, broker.user, broker.password, queue]
    for run_number in range(3):
        for mode in releases_job.MODES:
            (tmp_path / mode).mkdir(exist_ok=True)
            fill(broker, f"{queue}.{mode}", COUNT, first=run_number * COUNT)
        if run_number == 1:
            run_with_newest(*arguments)
        else:
            releases_job.read_all(spark, *arguments)
        for mode in releases_job.MODES:
            await_count(broker, f"{queue}.{mode}", 0)
            found = in_committed_files(tmp_path / mode / "out")
            assert found == Counter(range((run_number + 1) * COUNT)), (mode, run_number)
            uncommit(tmp_path / mode / "checkpoint")  # so that the next release repeats the last batch
