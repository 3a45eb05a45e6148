import logging
import pickle
import random
from dataclasses import replace

import pyarrow as pa
import pytest
from amqp_messages import Messages, annotations, byte, properties, string
from amqp_messages import block_of as amqp_block

from pyspark_jms.blocks.block import MessageBlock, PartitionSlice
from pyspark_jms.columns.schema import read_columns
from pyspark_jms.errors import BadMessageError, SelectorIgnoredError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source import task_inputs as module
from pyspark_jms.source.task_inputs import TaskInputs, read_task, rows_of, together
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
    return rows_of([part], reading_of(options(**more)))


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
    return rows_of([part], reading_of(replace(options(**more), columns=columns)))[0]


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


# --- parts of several queues ------------------------------------------------------------------------


def alone_and_together(parts, reading):
    """The rows of the parts, decoded one by one and in as few batches as there may be."""
    every = list(together(parts))
    alone = [rows_of([part], reading)[0] for part in parts]
    both = [rows_of(each, reading)[0] for each in every]
    return pa.Table.from_batches(alone).combine_chunks(), pa.Table.from_batches(both).combine_chunks(), len(every)


def slices(blocks, sources, dialect):
    first = 0
    for block, source in zip(blocks, sources, strict=True):
        yield PartitionSlice(source, dialect, first, block)
        first += len(block)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sources", [["queue://a.1", "queue://b", "queue://a.*,b"], ["topic://t", "topic://news.#"]])
def test_messages_of_several_destinations_become_the_rows_that_they_become_alone(seed, sources):
    """AMQP: of brokers and clients, some of them unreadable, some of a temporary queue of the same name."""
    rng, made = random.Random(seed), Messages(seed, oddness=0.02)
    names = ["a.1", "b", "news.x", "t"]
    fixed = [
        annotations(jms_dest=byte(kind)) + properties(to=string(name), message_id=string(name))
        for name in names
        for kind in range(4)
    ]
    blocks = [
        amqp_block([rng.choice(fixed) if rng.random() < 0.5 else made.message() for _ in range(rng.randint(1, 9))])
        for _ in range(60)
    ]
    parts = list(slices(blocks, rng.choices(sources, k=60), "artemis"))
    reading = reading_of(SourceOptions.parse({"brokerUrl": "amqp://h", "queue": "q"}))
    alone, both, batches = alone_and_together(parts, reading)
    assert both.equals(alone)
    assert batches == 1


@pytest.mark.parametrize("dialect", ["artemis", "classic", "rabbitmq"])
@pytest.mark.parametrize("sources", [["queue://a.1", "queue://b"], ["topic://t", "topic://news.#"]])
def test_frames_of_several_destinations_become_the_rows_that_they_become_alone(dialect, sources):
    rng, blocks = random.Random(1), []
    for _ in range(60):
        scanner = FrameScanner(max_body_bytes=1000)
        for number in range(rng.randint(1, 5)):
            body = rng.choice([b"\xff", b"one", b"", b'{"a": 1}'])
            more = rng.choice(["", "n:1\n", "priority:x\n", "timestamp:1700000000000\n"])
            to = rng.choice(["/queue/a.1", "/topic/news.x", "/exchange/amq.topic/t", "t", "topic://t"])
            head = f"MESSAGE\nsubscription:1\nmessage-id:9,{number}\ndestination:{to}\n{more}"
            scanner.feed(f"{head}content-length:{len(body)}\n\n".encode() + body + b"\0\n")
        blocks.append(scanner.take())
    parts = list(slices(blocks, rng.choices(sources, k=60), dialect))
    alone, both, batches = alone_and_together(parts, reading_of(options()))
    assert both.equals(alone)
    assert batches == 1


def test_what_follows_directly_is_decoded_together_up_to_a_size(monkeypatch):
    block = block_of(b"one", b"two")
    given = [("queue://a", "artemis", 0, None), ("queue://b", "artemis", 2, None)]
    given += [("topic://t", "artemis", 4, None), ("topic://t", "classic", 6, None), ("topic://t", "classic", 9, None)]
    given += [("topic://t", "classic", 11, 5)]
    parts = [PartitionSlice(source, dialect, first, block, ms) for source, dialect, first, ms in given]
    assert [[part.first_sequence for part in each] for each in together(parts)] == [[0, 2], [4], [6], [9], [11]]
    monkeypatch.setattr(module, "_FEW_MESSAGES", 1)
    assert [[part.first_sequence for part in each] for each in together(parts[:2])] == [[0], [2]]
    alike = [PartitionSlice("queue://a", "artemis", 2 * number, block) for number in range(5)]
    assert [len(each) for each in together(alike)] == [5]
    monkeypatch.setattr(module, "_TOGETHER_MESSAGES", 4)
    assert [len(each) for each in together(alike)] == [2, 2, 1]
    monkeypatch.setattr(module, "_TOGETHER_BYTES", len(block.data))
    assert [len(each) for each in together(alike)] == [1] * 5


def test_what_a_selector_drops_and_a_missing_property_are_told_of_each_queue(caplog, queue):
    names = [f"queue://{queue}.{number}" for number in range(2)]
    regions = [["EU"] * 25, ["US"] * 25]
    parts = [replace(typed_part(*values), source=name) for name, values in zip(names, regions, strict=True)]
    parts[1] = replace(parts[1], first_sequence=25)
    columns = asked(("n", pa.string()), ("nn", pa.string()))
    selected = replace(options(selector="n = 'EU'", selectorInSpark="residual"), columns=columns)
    rabbit = [replace(part, dialect="rabbitmq") for part in parts]
    with caplog.at_level(logging.WARNING):
        found, dropped = rows_of(rabbit, reading_of(selected), run_ends=True)
    assert (found.column("n").to_pylist(), dropped) == (["EU"] * 25, 25)
    [null] = [line for line in caplog.messages if "so the column is NULL" in line]
    assert f"first 25 messages from {names[0]} has the property of column nn (did you mean n?)" in null
    with caplog.at_level(logging.WARNING):
        rows_of(parts, reading_of(replace(options(), columns=columns)))
    assert f"first 25 messages from {names[1]} has the property of column nn" in caplog.messages[-1]
