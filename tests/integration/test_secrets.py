"""A search of all files of a job finds neither its password nor the content of messages."""

import contextlib
import json
import os
import stat
import subprocess
import time
import uuid
from pathlib import Path

import pytest
from own_process import spark_submit, started
from rawstomp import RawStomp

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.deep]

JOB = Path(__file__).with_name("secrets_job.py")


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The job's traces by name: log, event log, checkpoints, names in the journal, what was shown, command lines."""
    from pyspark_jms.testing import EmbeddedArtemis

    folder = tmp_path_factory.mktemp("secrets")
    password, payload = f"pw{uuid.uuid4().hex}", f"payload{uuid.uuid4().hex}"
    with EmbeddedArtemis(password=password) as broker:
        with RawStomp(broker) as client:
            client.send("in", [([("p", payload), ("correlation-id", payload)], payload)] * 20)
            client.send("wrong", [([("spark_jms_body", "map")], payload)])
        traces = _run(broker, folder, password, payload)
    return password, payload, folder, traces


def _run(broker, folder, password, payload):
    (folder / "events").mkdir()
    (folder / "password").write_text(password)
    (folder / "password").chmod(0o600)
    secrets = {"SECRETS_PASSWORD": password, "SECRETS_PAYLOAD": payload}
    once = {"brokerUrl": broker.amqp_url, "deliveryGuarantee": "exactly-once"}
    order = json.dumps({"url": broker.url, "user": broker.user, "folder": str(folder), "once": once})
    events = {"spark_eventLog_enabled": "true", "spark_eventLog_dir": f"file://{folder}/events"}
    command = spark_submit(JOB, order, **events, spark_eventLog_compress="false")
    with started(command, folder / "log", output=folder / "shown", cwd=folder, **secrets) as job:
        lines = _command_lines_until_it_ends(job)
    assert job.returncode == 0, (folder / "log").read_text()[-4000:]
    read = lambda where: "\n".join(path.read_text(errors="replace") for path in where.rglob("*") if path.is_file())  # noqa: E731
    return {
        "log": (folder / "log").read_text(errors="replace"),
        "shown": (folder / "shown").read_text(errors="replace"),
        "events": read(folder / "events"),
        "checkpoints": read(folder / "checkpoints"),
        "journal names": "\n".join(map(str, (folder / "journal").rglob("*"))),
        "command lines": lines,
    }


def _command_lines_until_it_ends(job):
    seen, deadline = set(), time.monotonic() + 240
    while job.poll() is None:
        if time.monotonic() > deadline:
            job.kill()
        for process in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if os.getsid(int(process.name)) == job.pid:
                    seen.add((process / "cmdline").read_bytes())
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(0.5)
    return b"\n".join(seen).decode(errors="replace")


TRACES = ["log", "shown", "events", "checkpoints", "journal names", "command lines"]


@pytest.mark.parametrize("trace", TRACES)
def test_no_password(ended, trace):
    password, _, _, traces = ended
    assert traces[trace]
    assert password not in traces[trace]


@pytest.mark.parametrize("trace", TRACES)
def test_no_payload(ended, trace):
    _, payload, _, traces = ended
    assert payload not in traces[trace]


def test_the_job_did_what_could_have_told(ended):
    """Else the search would prove nothing: messages went through, plans and errors were shown, our log was loud."""
    traces = ended[-1]
    assert "files hold the payload: True" in traces["shown"]
    for code in ("JMS_SECURITY", "JMS_MESSAGE_FORMAT", "JMS_NUMBER_FORMAT", "JMS_BAD_MESSAGE"):
        assert f"[{code}]" in traces["shown"], code
    assert "== Physical Plan ==" in traces["shown"]
    assert "DEBUG pyspark_jms" in traces["shown"]  # Spark shows what its Python driver writes to stderr there
    assert "SparkListenerSQLExecutionStart" in traces["events"]
    assert "python_streaming_source_runner" in traces["command lines"]


def test_tracebacks_with_local_variables_show_no_password(spark, set_spark, broker, tmp_path):
    set_spark("spark.sql.execution.pyspark.udf.tracebackWithLocals.enabled", "true")
    password = f"pw{uuid.uuid4().hex}"
    # The last option is in a variable of Spark's own. Spark keeps the order of at most four.
    access = {"user": broker.user, "password": password, "brokerUrl": broker.url, "queue": "q"}
    rows = spark.range(1).selectExpr("'x' text")

    def start():
        stream = spark.readStream.format("jms").options(**access).load()
        query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
        query.awaitTermination(60)

    failures = {
        "an option": lambda: spark.read.format("jms").options(**access | {"brokerUrl": "x"}).load(),
        "a source": start,
        "a batch": lambda: spark.read.format("jms").options(**access).load().collect(),
        "a sink": lambda: rows.write.format("jms").mode("append").options(**access).save(),
    }
    # Of the connector's frames, only that of the wrapper is shown. Spark 4.3 does not give the setting to the process
    # of a source.
    shown = {"an option": "named = {}", "a source": "", "a batch": "rows = <generator", "a sink": "named = {}"}
    for name, fail in failures.items():
        with pytest.raises(Exception, match=r"\[JMS_(SECURITY|INVALID_OPTION)\]") as failed:
            fail()
        reason = str(failed.value)
        assert shown[name] in reason, f"{name} shows no local variable: the test proves nothing"
        assert password not in reason, name


def test_the_journal_is_its_owners_alone(ended):
    _, _, folder, _ = ended
    kept = [folder / "journal", *(folder / "journal").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in kept if path.is_dir()} == {0}
