"""One line about property columns that no message has."""

import logging
from dataclasses import replace

import pyarrow as pa
import pytest

from pyspark_jms.blocks.block import PartitionSlice
from pyspark_jms.columns.schema import read_columns
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.missing_properties import FIRST_ROWS, look_for_missing
from pyspark_jms.source.task_inputs import rows_of
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.stomp.wire.scan import FrameScanner


def rows(count, **columns):
    return pa.record_batch({name: pa.array([value] * count, pa.string()) for name, value in columns.items()})


def lines(caplog):
    return [record.getMessage() for record in caplog.records if "NULL" in record.getMessage()]


def test_a_similar_name_is_named_soon_and_once(caplog, queue):
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            look_for_missing(
                queue, ("regoin", "n"), rows(10, regoin=None, n="1"), lambda: ["region", "n", "JMSXDeliveryCount"]
            )
    (line,) = lines(caplog)
    assert "first 20 messages" in line
    assert "column regoin (did you mean region?)" in line
    assert line.endswith("Properties of these messages: n, region")


@pytest.mark.parametrize(("given_at", "told"), [(None, 1), (0, 0), (FIRST_ROWS - 1, 0)])
def test_another_name_is_told_after_many_rows(caplog, queue, given_at, told):
    with caplog.at_level(logging.WARNING):
        for row in range(FIRST_ROWS + 5):
            assert len(lines(caplog)) == (told if row >= FIRST_ROWS else 0)
            look_for_missing(queue, ("txt",), rows(1, txt="x" if row == given_at else None), lambda: ["\x1b" * 99])
    assert all("\x1b" not in line for line in lines(caplog))


@pytest.mark.parametrize("selector", [{}, {"selector": "region = 'EU'"}])
def test_a_part_of_a_query_tells_of_a_column_that_nothing_has(caplog, queue, selector):
    scanner = FrameScanner(max_body_bytes=1000)
    scanner.feed(b"MESSAGE\nsubscription:1\nmessage-id:9\ndestination:q\nregion:EU\nn:1\n\nx\0\n" * 20)
    columns = read_columns([pa.field("text", pa.string()), pa.field("regoin", pa.string())], ["string", "string"])
    options = replace(SourceOptions.parse({"brokerUrl": "stomp://h", "queue": queue} | selector), columns=columns)
    with caplog.at_level(logging.WARNING):
        part = PartitionSlice(f"queue://{queue}", "artemis", 0, scanner.take())
        found, _ = rows_of([part], reading_of(options))
    assert found.to_pylist() == [{"text": "x", "regoin": None}] * 20
    assert "column regoin (did you mean region?), so the column is NULL" in lines(caplog)[0]


@pytest.mark.parametrize(
    ("selector", "parts", "run_ends", "told"),
    [
        ("regoin = 'EU'", (7, 7, 7, 7), False, [21]),
        ("regoin = 'EU'", (3, 3), False, []),
        ("regoin = 'EU'", (3, 3), True, [3]),
        ("regoin = 'EU'", (30,), None, []),
        ("region = 'US'", (500, 500, 500), False, [FIRST_ROWS]),
        ("region = 'US'", (3,), True, []),
        ("region = 'EU'", (3,), True, []),
    ],
)
def test_a_part_in_spark_that_drops_all_is_told_once(caplog, queue, selector, parts, run_ends, told):
    """RabbitMQ has no selectors over STOMP: Spark evaluates all of it."""
    raw = {"brokerUrl": "stomp://h", "queue": queue, "selector": selector, "selectorInSpark": "residual"}
    options, scanner = SourceOptions.parse(raw), FrameScanner(max_body_bytes=1000)
    frame = b"MESSAGE\nsubscription:1\nmessage-id:9\nack:1\ndestination:q\nregion:EU\n\nx\0\n"
    with caplog.at_level(logging.WARNING):
        for count in parts:
            scanner.feed(frame * count)
            part = PartitionSlice(f"queue://{queue}", "rabbitmq", 0, scanner.take())
            rows_of([part], reading_of(options), run_ends=run_ends)
    lines = [record.getMessage() for record in caplog.records if "dropped all" in record.getMessage()]
    assert [
        f"all of the first {count} messages from queue://{queue}. " in line
        for count, line in zip(told, lines, strict=True)
    ] == [True] * len(told)
    if "regoin" in selector and told:
        assert lines[0].endswith("None of them has regoin (did you mean region?). Properties of these messages: region")
