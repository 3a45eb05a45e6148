"""`make bench-quick`, small: the table, the JSON and that they say the same. How fast it was is not tested."""

import json
import os
import sys
from pathlib import Path
from statistics import median

import own_process
import pytest

ROOT = Path(__file__).parents[2]
CASES = {
    "read.raw", "read.jms", "read.journal", "read.naive", "write.raw", "write.jms",
    "read.amqp.raw", "read.amqp.jms", "read.amqp.once", "read.amqp.core.raw", "read.amqp.core.jms",
    "write.amqp.raw", "write.amqp.jms",
}  # fmt: skip
FOLLOWED = {
    "read.ratio_to_raw",
    "read.ratio_to_stomp_py",
    "read.cpu_us_per_message",
    "write.ratio_to_raw",
    "write.cpu_us_per_message",
    "read.amqp.ratio_to_raw",
    "read.amqp.ratio_to_stomp",
    "write.amqp.ratio_to_raw",
    "write.amqp.ratio_to_stomp",
    "journal.ratio",
    "decode.rows_per_s",
    "encode.rows_per_s",
    "latency.p50_ms",
    "latency.p99_ms",
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """What a run of 400 messages a case printed, and what it wrote."""
    folder = tmp_path_factory.mktemp("bench")
    sizes = ["--messages", "400", "--rounds", "2", "--seconds", "2", "--turns", "1"]
    command = [sys.executable, "-m", "bench.compare", "quick", *sizes, "--out", folder / "out.json"]
    ran = own_process.run(command, seconds=280, cwd=ROOT, env=os.environ | {"TMPDIR": str(folder)})
    document = json.loads((folder / "out.json").read_text())
    (folder / "out.json").unlink()
    return ran.stdout, document, folder


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
def test_every_case_is_measured_in_every_round(outcome):
    printed, document, folder = outcome
    assert document["cases"].keys() == CASES
    assert (document["messages"], document["messages_per_transaction"], document["rounds"]) == (400, 50, 2)
    assert all(document[key] > 0 for key in FOLLOWED)
    for case in document["cases"].values():
        rate = case["messages_per_s"]
        assert 0 < rate["lowest"] <= rate["median"] <= rate["highest"]
        # two rounds: the median is their mean
        assert rate["median"] == pytest.approx(median([rate["lowest"], rate["highest"]]), abs=0.01)
    assert document["cases"]["read.raw"]["ratio_to_raw"]["median"] == 1
    assert document["read.ratio_to_raw"] == document["cases"]["read.jms"]["ratio_to_raw"]["median"]
    assert document["cases"]["read.jms"]["notes"]["batches"]["lowest"] >= 1

    titles = (
        "raw socket",
        "stomp.py in a",
        "the same with a journal",
        'format("jms") through',
        'Spark to format("jms")',
    )
    for title in titles:
        assert any(line.startswith(title) for line in printed.splitlines()), title
    assert f"{document['cases']['read.jms']['messages_per_s']['median']:,.0f} (" in printed
    assert "read through Spark, of the raw drain" in printed
    assert document["latency.p50_ms"] <= document["latency.p99_ms"]
    assert document["latency"]["messages"] == 200

    left = [path.name for path in folder.iterdir() if path.name.startswith(("bench-", "artemis-"))]
    assert not left, "the run left files behind"


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
def test_cpu_is_told_apart_by_process(outcome):
    _, document, _ = outcome
    roles = {name: set(case["cpu_us_per_message"]) for name, case in document["cases"].items()}
    assert roles["read.raw"] == roles["write.raw"] == {"broker", "client"}
    assert roles["read.jms"] >= {"broker", "jvm", "runner", "workers"}
    assert roles["read.naive"] >= {"broker", "jvm", "runner"}
    assert roles["write.jms"] >= {"broker", "jvm", "workers"}
    assert all(document["cases"][case]["cpu_us_per_message"]["jvm"]["lowest"] > 0 for case in ("read.jms", "write.jms"))


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
def test_the_machine_is_told(outcome):
    _, document, _ = outcome
    assert {"date", "cores", "memory_gib", "cpu", "load_before", "python", "java", "spark", "artemis"} <= set(
        document["machine"]
    )
    assert all(document["machine"][name] for name in ("cores", "memory_gib", "cpu", "java", "spark", "artemis"))


BURN = """
import os, resource, subprocess, sys
from bench.processes import Meter, cpu_seconds

burn = "n = 0\\nfor i in range(3_000_000): n += i"
with Meter(lambda: {os.getpid(): "workers"}) as with_children, Meter(lambda: {os.getpid(): "client"}) as alone:
    exec(burn)
    subprocess.run([sys.executable, "-c", burn], check=True)
own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
print(cpu_seconds(os.getpid()), own.ru_utime + own.ru_stime)
print(with_children.cpu["workers"] - alone.cpu["client"], children.ru_utime + children.ru_stime)
"""


def test_cpu_seconds_are_those_the_kernel_tells_a_process_of_itself():
    reported = own_process.run([sys.executable, "-c", BURN], seconds=60, cwd=ROOT).stdout
    for counted, kernel in (map(float, line.split()) for line in reported.splitlines()):
        assert counted == pytest.approx(kernel, abs=0.05)
        assert kernel > 0.05
