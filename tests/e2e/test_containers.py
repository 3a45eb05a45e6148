"""A broker in a container, and the connector in a ``spark-submit`` of its own: as a deployment has them."""

import contextlib
import json
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import artemis_image
import pytest
from containers import ArtemisContainer
from numbered import in_committed_files
from own_process import spark_submit, started
from rawstomp import RawStomp
from waiting import wait_until

pytestmark = [pytest.mark.container, pytest.mark.broker, pytest.mark.spark]

MOST = 150
"""Messages of a batch."""

JOBS = Path(__file__).parents[2] / "jobs"


@contextlib.contextmanager
def submitted(job, broker, queue, folder, *arguments):
    """The running job; it is killed at the end if it still runs."""
    where = ["--broker-url", broker.url, "--user", broker.user, "--password-env", "E2E_PASSWORD", "--queue", queue]
    command = spark_submit(JOBS / job, *where, "--checkpoint", folder / "checkpoint", *arguments)
    with started(command, folder / "log", cwd=folder, E2E_PASSWORD=broker.password) as process:
        yield process


def ended(process, folder, seconds=120):
    assert process.wait(seconds) in {0, 143}, (folder / "log").read_text()[-4000:]


def send(broker, queue, first, count):
    with RawStomp(broker) as client:
        client.send(queue, [([], str(number)) for number in range(first, first + count)])


def at_most_the_last_batch_is_left(broker, queue, last):
    """It may be written and not acknowledged yet when the job gets SIGTERM: it would then be redelivered."""
    with RawStomp(broker) as client:
        left = {int(message.body) for message in client.read(queue)}
    assert left <= set(range(last))
    assert len(left) <= MOST


@pytest.mark.slow  # in CI the job is in tests/integration/test_jobs.py, and a broker in a container in the next test
def test_from_queue_to_queue(artemis, queue, tmp_path):
    orders = [{"order": n, "country": "DE", "quantity": n, "price": 10.0} for n in range(1000)]
    with RawStomp(artemis) as client:
        client.send(queue, [([("n", str(order["order"]))], json.dumps(order)) for order in orders])
    with submitted("jms_to_jms.py", artemis, queue, tmp_path, "--available-now") as job:
        ended(job, tmp_path)
    with RawStomp(artemis) as client:
        europe = client.read(f"{queue}.europe", wanted=100)
        review = client.read(f"{queue}.review", wanted=900)
        assert client.read(queue) == []
    assert sorted(int(message.headers["n"]) for message in [*europe, *review]) == list(range(1000))
    assert all(json.loads(message.body)["order"] >= 100 for message in review)


@pytest.mark.parametrize(
    "fault", ["killed", *(pytest.param(name, marks=pytest.mark.slow) for name in ("paused", "disconnected"))]
)
def test_a_stream_outlives_what_happens_to_the_broker(artemis, queue, fault, tmp_path, report):
    output = partial(in_committed_files, tmp_path / "output", "text")
    send(artemis, queue, 0, 300)
    with submitted(
        "jms_to_parquet.py", artemis, queue, tmp_path, "--output", str(tmp_path / "output"), "--max-messages", str(MOST)
    ) as job:
        wait_until(lambda: job.poll() is not None or output().total() >= 50, 120, "the first batch")
        send(artemis, queue, 300, 700)
        with getattr(artemis, fault)():
            read = output().total()
        artemis.wait_until_serving()
        send(artemis, queue, 1000, 500)
        wait_until(lambda: job.poll() is not None or set(output()) == set(range(1500)), 150, "the last message")
        assert job.poll() is None, (tmp_path / "log").read_text()[-4000:]
        job.send_signal(signal.SIGTERM)
        ended(job, tmp_path)
    assert output() == Counter(range(1500))  # none lost, none duplicated: no other consumer
    at_most_the_last_batch_is_left(artemis, queue, 1500)
    report(f"broker container {fault} after {read} of 1500 messages: 0 lost, 0 twice")


@pytest.fixture
def pair(network, tmp_path):
    """A live broker and its backup, over one store."""
    store = tmp_path / "store"
    store.mkdir()
    store.chmod(0o777)  # the broker in the container is another user
    brokers = []
    with contextlib.ExitStack() as stack:
        for role in ("primary", "backup"):
            file = tmp_path / f"{role}.xml"
            policy = f"<{role}><failover-on-shutdown>true</failover-on-shutdown></{role}>"
            text = artemis_image.configuration(Path("/store"))
            text = text.replace(
                "<acceptors>", f"<ha-policy><shared-store>{policy}</shared-store></ha-policy><acceptors>"
            )
            file.write_text(text)
            override = f"{artemis_image.INSTANCE}/etc-override/broker.xml"
            container = ArtemisContainer(network=network, files=[(file, override)], volumes=[(str(store), "/store")])
            brokers.append(stack.enter_context(container))
            if role == "primary":
                container.wait_until_serving(150)
        yield brokers


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_stream_fails_over_from_a_live_broker_to_its_backup(pair, queue, tmp_path, report):
    live, backup = pair
    output = partial(in_committed_files, tmp_path / "output", "text")
    send(live, queue, 0, 500)
    both = SimpleNamespace(url=f"{live.url},{backup.url}", user=live.user, password=live.password)
    files = ("--output", str(tmp_path / "output"), "--max-messages", str(MOST))
    with submitted("jms_to_parquet.py", both, queue, tmp_path, *files) as job:
        wait_until(lambda: job.poll() is not None or output().total() >= MOST, 200, "the first batch")
        send(live, queue, 500, 500)
        live.wrapped.kill("SIGKILL")
        backup.wait_until_serving(150)
        send(backup, queue, 1000, 500)
        wait_until(lambda: job.poll() is not None or len(output()) == 1500, 200, "the last message")
        assert job.poll() is None, (tmp_path / "log").read_text()[-4000:]
        job.send_signal(signal.SIGTERM)
        ended(job, tmp_path)
    assert output() == Counter(range(1500))
    at_most_the_last_batch_is_left(backup, queue, 1500)
    report("live broker killed, backup over the same store took over: 0 of 1500 lost, 0 twice")
