"""Rows to a queue and from it without Spark: with the sink's tasks, and with a batch read."""

import json

from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.source.peek import peek
from pyspark_jms.spark.protocols import connect_sink, reading_of
from pyspark_jms.tools.cli.json_rows import batches_of, json_of, read_lines


def access_over(broker, protocol):
    url = broker.amqp_url if protocol == "amqp" else broker.url
    return {"brokerUrl": url, "user": broker.user, "password": broker.password}


def write_rows(access, queue, rows, **options):
    """Send rows in the JSON of ``pyspark-jms send --json-lines``, as one task of a write. ``queue`` as below."""
    parsed = SinkOptions.parse(access | ({} if queue is None else {"queue": queue}) | options)
    lines = read_lines((json.dumps(row) for row in rows), has_default=True)
    send_at_least_once(connect_sink(parsed), parsed, batches_of(lines, has_default=True))


def write_batch(access, queue, batch, **options):
    """Return how many rows were sent, and how many dropped. ``queue``: None if the options or the rows name another."""
    parsed = SinkOptions.parse(access | ({} if queue is None else {"queue": queue}) | options)
    return send_at_least_once(connect_sink(parsed), parsed, iter([batch]))


def read_batches(access, queue, **options):
    parsed = SourceOptions.parse(access | {"queue": queue, "idleTimeout": "300ms"} | options, "batch")
    return list(peek(reading_of(parsed)))


def read_rows(access, queue, **options):
    """The rows of a batch read in the JSON of ``pyspark-jms peek --json``, in the order of arrival."""
    return [json_of(row) for batch in read_batches(access, queue, **options) for row in batch.to_pylist()]


def read_texts(access, queue, **options):
    return [text for batch in read_batches(access, queue, **options) for text in batch.column("text").to_pylist()]
