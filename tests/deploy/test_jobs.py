"""The jobs in the manifests run: with their variables, on a broker and a Spark of this machine."""

import contextlib
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from amqp_sending import settings_of
from numbered import fill, in_queue
from own_process import started
from waiting import wait_until

from pyspark_jms.testing import EmbeddedArtemis
from pyspark_jms.tools.registers import list_registers

pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.spark]

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"


@pytest.fixture
def artemis():
    with EmbeddedArtemis(user="spark", password="secret", start_timeout=180) as broker:
        yield broker


@pytest.fixture
def job(artemis, tmp_path):
    """``job(file, url, **variables)``: the job of a manifest, running."""

    def job(file, url, **variables):
        (texts,) = [
            each["data"] for each in yaml.safe_load_all((FOLDER / file).read_text()) if each["kind"] == "ConfigMap"
        ]
        ((name, text),) = texts.items()
        (tmp_path / name).write_text(text)
        (tmp_path / "password").write_text(artemis.password + "\n")
        own = {"JMS_BROKER_URL": url, "JMS_BROKER_USER": "spark", "JMS_PASSWORD_FILE": str(tmp_path / "password")}
        command = [sys.executable, str(tmp_path / name)]
        return running.enter_context(started(command, tmp_path / "log", cwd=tmp_path, **own, **variables))

    with contextlib.ExitStack() as running:
        yield job


def test_the_job_with_a_journal(artemis, job, tmp_path):
    fill(artemis, "orders", 50)
    job("journal.yaml", artemis.url, DATA=str(tmp_path / "data"), OUTPUT=str(tmp_path / "out"))

    def texts():
        found = Counter()
        for file in (tmp_path / "out").glob("*.parquet"):
            with contextlib.suppress(pa.ArrowInvalid):  # a task is still writing it
                found.update(pq.read_table(file, columns=["text"])["text"].to_pylist())
        return found

    wait_until(lambda: sum(texts().values()) >= 50, 400, "the files")
    assert texts() == Counter(f"text {n}" for n in range(50))
    wait_until(lambda: artemis.message_count("orders") == 0, what="the acknowledgement")
    assert (tmp_path / "data/journal/orders/journal").exists()


def test_the_job_without_a_volume(artemis, job, tmp_path):
    fill(artemis, "orders", 50)
    job("no-volume.yaml", artemis.amqp_url, CHECKPOINT=str(tmp_path / "checkpoint"))
    wait_until(lambda: artemis.has_queue("answers") and artemis.message_count("answers") >= 50, 400, "the answers")
    assert in_queue(artemis, "answers") == Counter(range(50))
    (staging,) = list_registers(settings_of(artemis), "pyspark-jms.staging.")
    assert (staging.tokens, staging.owned) == (1, True)
