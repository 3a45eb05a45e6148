"""In which column a text of stomp.py arrives, as docs/typed-messages.md has it; and jms_text, which reads both."""

import stomp
from pyspark.sql import functions as F

from pyspark_jms.functions import jms_text

JSON = '{"n": "ä"}'


def send(stage, queue, *, auto_content_length):
    spelled = queue if stage.name == "artemis" else f"/queue/{queue}"
    kind = {"destination-type": "ANYCAST"} if stage.name == "artemis" else {}
    broker = stage.broker
    connection = stomp.Connection12([(broker.host, broker.port)], auto_content_length=auto_content_length, vhost="/")
    connection.connect(broker.user, broker.password, wait=True)
    connection.send(spelled, JSON, persistent="true", receipt="sent", **kind)
    connection.disconnect()  # waits for its receipt


def test_a_text_of_stomp_py(spark, stage, queues):
    columns = {}
    for auto, queue in zip((True, False), queues, strict=True):
        send(stage, queue, auto_content_length=auto)
        rows = spark.read.format("jms").options(**stage.access, queue=queue).load()
        (row,) = rows.select("text", "bytes", F.from_json(jms_text(rows), "n string").n.alias("n")).collect()
        columns[auto] = "text" if row.text == JSON else "bytes" if row.bytes == JSON.encode() else None
        assert row.n == "ä"
    assert columns == {True: "text" if stage.name == "rabbitmq" else "bytes", False: "text"}
