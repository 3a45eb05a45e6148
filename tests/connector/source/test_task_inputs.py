import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from pyspark_jms.blocks.block import MessageBlock, PartitionSlice
from pyspark_jms.columns.schema import read_columns
from pyspark_jms.errors import BadMessageError, SelectorIgnoredError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.task_inputs import TaskInputs, read_task, rows_of
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.stomp.wire.scan import FrameScanner


def block_of(*bodies):
    scanner = FrameScanner(max_body_bytes=1000)
    for n, body in enumerate(bodies):
        head = f"MESSAGE\nsubscription:1\nmessage-id:9,{n}\ndestination:q\ncontent-length:{len(body)}\n\n"
        scanner.feed(head.encode() + body + b"\0\n")
    return scanner.take()


def options(**more):
    return SourceOptions.parse({"brokerUrl": "stomp://h", "queue": "q"} | more)


def rows(part, **more):
    return rows_of(part, reading_of(options(**more)))


def part_of(*bodies, source="queue://q"):
    return PartitionSlice(source, "artemis", 0, block_of(*bodies))


def test_a_part_of_the_middle_decodes_by_itself_wherever_it_travels():
    block = block_of(b"zero", b"one", b"two", b"three").slice(1, 3)
    batch, dropped = rows(pickle.loads(pickle.dumps(PartitionSlice("queue://q", "artemis", 41, block))))
    assert [(row["sequence"], row["text"], row["delivery_id"]) for row in batch.to_pylist()] == [
        (41, "one", "q/1"),
        (42, "two", "q/2"),
    ]
    assert dropped == 0


def test_a_bad_message_is_a_row_or_an_error():
    part = part_of(b"\xff", b"good")
    assert rows(part)[0].column("body_error").is_null().to_pylist() == [False, True]
    assert rows(part, bodyType="bytes")[0].column("bytes").to_pylist() == [b"\xff", b"good"]
    with pytest.raises(BadMessageError, match=r"1 of 2 messages"):
        rows(part, onBadMessage="fail")


def test_counts_the_messages_that_the_selector_drops():
    part = part_of(b"one", b"two", source="topic://t")
    kept, dropped = rows(part, selector="JMSPriority = 4")
    assert (kept.num_rows, dropped) == (0, 2)


def asked(*fields):
    made = [pa.field(*field) for field in fields]
    return read_columns(made, [str(field.type) for field in made])


def asked_rows(part, columns, **more):
    return rows_of(part, reading_of(replace(options(**more), columns=columns)))[0]


def test_rows_have_the_columns_of_the_users_schema():
    columns = asked(("Text", pa.string()), ("n", pa.int32()), ("sequence", pa.int64()))
    batch = asked_rows(typed_part("7", "x"), columns)
    assert batch.to_pylist() == [{"Text": "a", "n": 7, "sequence": 0}, {"Text": "a", "n": None, "sequence": 1}]


@pytest.mark.parametrize("columns", [[("n", pa.int32())], [("n", pa.int32()), ("body_error", pa.string())]])
def test_a_property_of_another_type_is_a_fault_of_its_message(columns):
    """``onBadMessage`` decides about it, whether or not column body_error is asked for."""
    batch = asked_rows(typed_part("7", "x"), asked(*columns))
    assert batch.column("n").to_pylist() == [7, None]
    if "body_error" in batch.schema.names:
        assert batch.column("body_error").to_pylist() == [None, "property 'n' is not an int"]
    with pytest.raises(BadMessageError, match=r"1 of 2 messages .* property 'n' is not an int"):
        asked_rows(typed_part("7", "x"), asked(*columns), onBadMessage="fail")
    assert asked_rows(typed_part("7", "x"), asked(("n", pa.string())), onBadMessage="fail").num_rows == 2


def test_a_bad_message_is_an_error_also_if_body_error_is_not_asked_for():
    with pytest.raises(BadMessageError):
        asked_rows(part_of(b"\xff"), asked(("JMSType", pa.string())), onBadMessage="fail")


def test_a_selector_has_its_own_columns_and_a_bad_message_all():
    """What is decoded is what is asked for, and what decides about the rows."""
    part, columns = typed_part("7", "x"), asked(("text", pa.string()))
    for selector in ("JMSPriority IS NULL", "n = '7' OR n = 'x'"):
        assert asked_rows(part, columns, selector=selector).to_pylist() == [{"text": "a"}] * 2
    with pytest.raises(SelectorIgnoredError):
        asked_rows(part, columns, selector="n = '8'")


def typed_part(*values):
    scanner = FrameScanner(max_body_bytes=1000)
    for n, value in enumerate(values):
        scanner.feed(f"MESSAGE\nsubscription:1\nmessage-id:9,{n}\ndestination:q\nn:{value}\n\na\0\n".encode())
    return PartitionSlice("queue://q", "artemis", 0, scanner.take())


TEXT = b"\x00\x53\x77\xa1\x02hi"


@pytest.fixture
def inputs():
    made = TaskInputs(OPTIONS)
    yield made
    made.close()


OPTIONS = SourceOptions.parse(
    {"brokerUrl": "amqp://h:1", "queue": "q", "selector": "JMSXDeliveryCount = 5"} | {"selectorInSpark": "residual"}
)


def part(place=None):
    block = MessageBlock(TEXT)
    block.ends.append(len(TEXT))
    return PartitionSlice("queue://q", "artemis", 7, place or block)


def test_a_task_answers_where_it_runs_and_what_it_dropped(inputs):
    assert not inputs.are_here()
    [task] = pickle.loads(pickle.dumps(inputs.of([[part()]], ["artemis"])))
    assert len(task) == 1
    assert "not known" in str(inputs.dropped())
    [rows] = read_task(task, reading_of(OPTIONS))
    assert rows.num_rows == 0  # it is the first delivery
    assert inputs.are_here()
    assert inputs.dropped() == 1
    inputs.release(8)
    assert inputs.dropped() == 1


def test_tasks_of_this_machine_map_memory_until_the_batch_is_done(inputs):
    memory = inputs.memory_for(8)
    if memory is None:
        pytest.skip("no memory files here")
    place = memory.put(part().place)
    assert place.load().data == TEXT
    inputs.release(8)
    with pytest.raises(Exception, match="JMS_ILLEGAL_STATE"):
        place.load()
