import subprocess
import sys

import pytest
import session
from waiting import wait_until

from bench.processes import source_runners, spark_roles

SOURCE, SINK = "pyspark.sql.streaming.python_streaming_source_runner", "pyspark.sql.worker.write_into_data_source"


@pytest.fixture
def parent():
    """A process with children as Spark's JVM has them: two sources of queries, a sink, and a daemon of workers."""
    sleep = "import time; time.sleep(600)"
    start = "".join(f'"$0" -c "{sleep}" {name} more & ' for name in (SOURCE, SOURCE, SINK, "pyspark.daemon"))
    process = subprocess.Popen(["/bin/sh", "-c", f"{start} wait", sys.executable], start_new_session=True)
    try:
        wait_until(lambda: len(spark_roles(process.pid)) == 5)
        yield process.pid
    finally:
        session.kill_session(process.pid)
        process.wait()


def test_a_source_runner_is_a_child_that_runs_the_source_of_a_query(parent):
    roles = spark_roles(parent)
    assert sorted(roles.values()) == ["jvm", "runner", "runner", "runner", "workers"]
    runners = sorted(pid for pid, role in roles.items() if role == "runner")
    assert source_runners(parent) == set(runners[:2])
