"""The sample row of each broker in docs/schema.md is what Spark reads. ``WRITE_TABLE=1`` writes it into the page."""

import json
import os
import re
from datetime import datetime
from pathlib import Path

import pytest
from installed_rabbit import InstalledRabbit
from streaming import access

from pyspark_jms.columns.schema import COLUMNS
from pyspark_jms.testing import EmbeddedArtemis, EmbeddedClassic, JmsClient

PAGE = Path(__file__).resolve().parents[2] / "docs" / "schema.md"
BEGIN, END = "<!-- sample rows, written by tests/brokers/test_sample_rows.py -->", "<!-- end of sample rows -->"
SAMPLES = {
    "Artemis, STOMP": (EmbeddedArtemis, "url"),
    "Artemis, AMQP": (EmbeddedArtemis, "amqp_url"),
    "Classic, STOMP": (EmbeddedClassic, "url"),
    "RabbitMQ, STOMP": (InstalledRabbit, "url"),
}
VARIES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+|ID:[^`]*|(?<=orders/)\d+")
"""Times and ids, which are others in each run."""

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.deep]


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_page_shows_the_row_that_is_read(spark, sample):
    kind, url = SAMPLES[sample]
    if kind is InstalledRabbit and not InstalledRabbit.installed():
        pytest.skip("no rabbitmq-server is installed")
    with kind() as broker:
        options = access(broker) | {"brokerUrl": getattr(broker, url), "queue": "orders"}
        _send(spark, broker, options)
        row = spark.read.format("jms").options(**options).load().first()
    cells = {column: _cell(row[column]) for column in COLUMNS}
    if os.environ.get("WRITE_TABLE"):
        _write(sample, cells)
    shown = {column: cell[sample] for column, cell in _table().items()}
    assert {name: VARIES.sub("#", cell) for name, cell in shown.items()} == {
        name: VARIES.sub("#", cell) for name, cell in cells.items()
    }


def _send(spark, broker, options):
    """A text from a Java client; RabbitMQ has none for STOMP queues, so the sink sends it there."""
    if isinstance(broker, InstalledRabbit):
        schema = "text string, JMSType string, JMSCorrelationID string, JMSPriority int, region string, n int"
        row = spark.createDataFrame([('{"id": 1}', "order", "c-1", 7, "EU", 3)], schema)
        sink = options | {"propertyColumns": "region, n", "transaction": "none"}
        row.write.format("jms").options(**sink).mode("append").save()
        return
    with JmsClient(broker) as java:
        properties = {"region": "EU", "n": 3}
        java.send("orders", '{"id": 1}', type="order", correlation_id="c-1", priority=7, properties=properties)


def _cell(value):
    match value:
        case None:
            return "null"
        case bool() | dict():
            return f"`{json.dumps(value, sort_keys=True)}`"
        case datetime():
            return f"`{value.isoformat()}`"
    return f"`{value}`"


def _table():
    """Column -> sample -> cell."""
    lines = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0].strip("`"): dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def _write(sample, cells):
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    old = _table() if f"| {sample} " in rest.partition(END)[0] or "| column |" in rest else {}
    rows = {column: old.get(column, {}) | {sample: cell} for column, cell in cells.items()}
    head = f"| column | {' | '.join(SAMPLES)} |\n|---{'|---' * len(SAMPLES)}|"
    lines = [f"| `{name}` | {' | '.join(row.get(kind, '') for kind in SAMPLES)} |" for name, row in rows.items()]
    table = "\n".join([head, *lines])
    PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
