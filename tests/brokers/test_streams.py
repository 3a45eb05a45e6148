"""Streams of RabbitMQ 4: where a read begins, what it reads again, what a killed broker and a killed query cost."""

import json
import uuid
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from broker_rows import access_over
from rabbit4 import Rabbit4, require_rabbit4
from streaming import run_available, stopping, uncommit
from waiting import settled, wait_until

from pyspark_jms.amqp.sink import AmqpSinkLink
from pyspark_jms.errors import DataLossError, InvalidSelectorError, UnsupportedError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.source.task_inputs import read_task
from pyspark_jms.spark.protocols import query_of, reading_of

pytestmark = [pytest.mark.broker, pytest.mark.deep]


@pytest.fixture(scope="module", params=["sid", pytest.param("trixie", marks=pytest.mark.slow)])
def rabbit(request):
    require_rabbit4(request.param)
    with Rabbit4(request.param) as broker:
        yield broker


@pytest.fixture(autouse=True)
def _tested_broker(rabbit, tested):
    tested("rabbitmq", rabbit.version)


def new_stream(rabbit):
    name = f"stream.{uuid.uuid4().hex[:8]}"
    rabbit.create_queue(name, {"x-queue-type": "stream"})
    return name


def declare_again(rabbit, stream):
    rabbit.control("delete_queue", stream)
    rabbit.create_queue(stream, {"x-queue-type": "stream"})


@pytest.fixture
def stream(rabbit):
    return new_stream(rabbit)


def access(rabbit, **more):
    return access_over(rabbit, "amqp") | more


def send(rabbit, stream, numbers, **patience):
    texts, kinds = [str(n) for n in numbers], [[("kind", "ab"[n % 2])] for n in numbers]
    types = pa.schema([("text", pa.string()), ("properties", pa.map_(pa.string(), pa.string()))])
    rows = pa.RecordBatch.from_pydict({"text": texts, "properties": kinds}, schema=types)
    send_at_least_once(AmqpSinkLink, SinkOptions.parse(access(rabbit, queue=stream)), iter([rows]), **patience)


class Reading:
    """What Spark calls, in its order; each batch is read and done before the next one."""

    def __init__(self, rabbit, stream, offset=None, **options):
        self.reading = reading_of(SourceOptions.parse(access(rabbit, queue=stream, **options)))
        self.source = query_of(self.reading)
        self.offset = offset or self.source.initial_offset()

    def texts(self, start, end):
        tasks = self.source.partitions(start, end)
        rows = [rows for task in tasks for rows in read_task(task, self.reading)]
        return [int(text) for batch in rows for text in batch.column("text").to_pylist()]

    def batch(self):
        """The numbers of the next batch; none if nothing came for a while."""
        start, self.offset = self.offset, self.source.latest_offset(self.offset)
        return self.texts(start, self.offset)

    def read(self, count):
        found = []
        wait_until(lambda: found.extend(self.batch()) or len(found) >= count)
        return found


@contextmanager
def reading(*given, **options):
    one = Reading(*given, **{"streamOffset": "first", "maxMessagesPerTrigger": "40"} | options)
    with stopping(one.source):
        yield one


def test_batches_go_on_where_the_checkpoint_is_and_a_repeated_one_is_the_same(rabbit, stream):
    send(rabbit, stream, range(100))
    with reading(rabbit, stream) as first:
        start, numbers = first.offset, first.batch()
        middle = first.offset
        assert numbers == list(range(40))
        name = f"queue://{stream}"
        digests = middle.pop("read")
        assert middle == {"seq": 40, "positions": {name: 40}, "from": {name: 0}}
        middle["read"] = digests
        assert first.source.progress()["guarantee"] == "exactly-once into Spark"
    with reading(rabbit, stream, middle) as second:
        assert second.texts(start, middle) == list(range(40)), "Spark repeats the batch"
        assert second.read(60) == list(range(40, 100))
        send(rabbit, stream, range(100, 110))
        assert second.read(10) == list(range(100, 110))


def test_a_repeated_batch_keeps_its_order_and_needs_its_streams(rabbit):
    streams = [new_stream(rabbit) for _ in range(2)]
    names = [f"queue://{each}" for each in streams]
    for first, each in zip((0, 5), streams, strict=True):
        send(rabbit, each, range(first, first + 5))
    end = {"seq": 10, "positions": dict.fromkeys(names, 5), "from": dict.fromkeys(names, 0)}
    with reading(rabbit, json.dumps(streams[::-1])) as other:
        assert other.texts(other.offset, end) == list(range(10))
    with reading(rabbit, streams[0]) as one, pytest.raises(DataLossError, match="option queue or streamFilter is"):
        one.texts(one.offset, end)


def test_a_batch_without_room_for_all_streams_begins_with_another_one_each_time(rabbit):
    """Or a long first stream would keep the others waiting."""
    streams = [new_stream(rabbit) for _ in range(2)]
    for first, each in zip((0, 40), streams, strict=True):
        send(rabbit, each, range(first, first + 40))
    with reading(rabbit, json.dumps(streams), maxMessagesPerTrigger="2") as one:
        assert max(one.read(40)) >= 40


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_repeated_batch_that_the_stream_lacks_is_data_loss(rabbit, stream, fail):
    send(rabbit, stream, range(10))
    name = f"queue://{stream}"
    end = {"seq": 20, "positions": {name: 20}, "from": {name: 0}}
    with reading(rabbit, stream, failOnDataLoss=fail) as one:
        if fail == "true":
            with pytest.raises(DataLossError, match="20 messages, of which the streams have 10"):
                one.texts(one.offset, end)
        else:
            assert one.texts(one.offset, end) == list(range(10))


@pytest.fixture
def short_stream(rabbit):
    """A stream that keeps two small segments or so."""
    name = f"stream.{uuid.uuid4().hex[:8]}"
    limits = {"x-max-length-bytes": 40_000, "x-stream-max-segment-size-bytes": 20_000}
    rabbit.create_queue(name, {"x-queue-type": "stream"} | limits)
    return name


def let_it_delete(rabbit, stream, sent):
    """Send until the stream has deleted its first messages. Returns the first number that is left, and the last one."""

    def first_left():
        with reading(rabbit, stream, failOnDataLoss="false") as one:
            return one.read(1)[0]

    while not first_left() > 40:
        assert sent < 20_000, "the stream deletes nothing"
        send(rabbit, stream, range(sent, sent := sent + 500))
    return settled(first_left), sent


@pytest.mark.parametrize("options", [{}, {"streamFilter": "kind = 'a' OR kind = 'b'"}], ids=["all", "filtered"])
def test_messages_that_the_stream_deleted_before_they_were_read_are_data_loss(rabbit, short_stream, caplog, options):
    if options and rabbit.version.startswith("4.0"):
        pytest.skip("4.0 does not filter")
    send(rabbit, short_stream, range(100))
    with reading(rabbit, short_stream, **options) as one:
        one.read(40)
        read = one.offset
    first, sent = let_it_delete(rabbit, short_stream, 100)
    with (
        reading(rabbit, short_stream, read, **options) as one,
        pytest.raises(DataLossError, match=r"has deleted what was at its offsets 40 to [\d,]+, and"),
    ):
        one.batch()
    with reading(rabbit, short_stream, read, failOnDataLoss="false", **options) as one:
        assert one.read(sent - first) == list(range(first, sent))
    assert "has deleted what was at its offsets 40 to" in caplog.text


def test_messages_that_the_stream_deleted_while_the_query_read_slowly_are_data_loss(rabbit, short_stream):
    """What it had received before is in one reception with what comes after the gap."""
    send(rabbit, short_stream, range(100))
    with reading(rabbit, short_stream, maxMessagesPerTrigger="10", windowBytes="4k") as one:
        assert one.batch() == list(range(10))
        let_it_delete(rabbit, short_stream, 100)
        with pytest.raises(DataLossError, match="has deleted what was at its offsets"):
            one.read(200)


@pytest.mark.parametrize(("offset", "wanted"), [("first", range(25)), ("7", range(7, 25)), ("next", range(20, 25))])
def test_a_new_read_begins_where_the_option_says(rabbit, stream, offset, wanted):
    send(rabbit, stream, range(20))
    with reading(rabbit, stream, streamOffset=offset) as one:
        found = one.batch()
        send(rabbit, stream, range(20, 25))
        assert found + one.read(len(wanted) - len(found)) == list(wanted)


@contextmanager
def started(rabbit, streams, offset=None, **options):
    """A read that has had its first, empty, batch."""
    with reading(rabbit, json.dumps(streams), offset, **options) as one:
        assert one.batch() == []
        yield one


@pytest.mark.parametrize("option", ["next", "first", "2036-11-26T08:00:00Z"])
def test_the_first_offset_has_a_number_for_each_stream_so_a_restart_misses_nothing(rabbit, option):
    old, late = new_stream(rabbit), new_stream(rabbit)
    if option != "first":
        send(rabbit, old, range(3))
    with started(rabbit, [old], streamOffset=option) as one:
        checkpoint = one.offset
    assert checkpoint["positions"] == {f"queue://{old}": 0 if option == "first" else 3}
    send(rabbit, old, range(10, 15))
    with reading(rabbit, json.dumps([old, late]), checkpoint, streamOffset=option) as one:
        assert one.read(5) == list(range(10, 15))
        checkpoint = one.offset
    assert checkpoint["positions"][f"queue://{late}"] == 0, "a stream that is added later"
    send(rabbit, late, range(100, 108))
    with reading(rabbit, json.dumps([old, late]), checkpoint, streamOffset=option) as one:
        assert one.read(8) == list(range(100, 108))


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize(
    ("again", "fact"),
    [(0, "ends before offset 40"), (20, "ends before offset 40"), (60, "another message at offset 39")],
)
def test_a_stream_that_was_declared_again_is_data_loss(rabbit, stream, caplog, again, fact, fail):
    send(rabbit, stream, range(40))
    with reading(rabbit, stream) as one:
        assert one.read(40) == list(range(40))
        checkpoint = one.offset
    declare_again(rabbit, stream)
    send(rabbit, stream, range(1000, 1000 + again))
    with reading(rabbit, stream, checkpoint, failOnDataLoss=fail, idleTimeout="300ms") as one:
        if fail == "true":
            with pytest.raises(DataLossError, match=fact):
                one.batch()
            return
        assert one.read(again) == list(range(1000, 1000 + again))
        checkpoint = one.offset
    assert fact in caplog.text
    send(rabbit, stream, range(2000, 2005))
    with reading(rabbit, stream, checkpoint) as one:
        assert one.read(5) == list(range(2000, 2005)), "it is lost once only"


def test_a_repeated_batch_of_another_stream_is_data_loss(rabbit, stream):
    send(rabbit, stream, range(10))
    with reading(rabbit, stream) as one:
        start, numbers = one.offset, one.batch()
        assert len(numbers) == 10
        end = one.offset
    declare_again(rabbit, stream)
    send(rabbit, stream, range(1000, 1010))
    with reading(rabbit, stream) as one, pytest.raises(DataLossError, match="of which the streams have others"):
        one.texts(start, end)


def test_an_offset_beyond_the_end_of_the_stream_is_refused(rabbit, stream):
    send(rabbit, stream, range(3))
    with reading(rabbit, stream, streamOffset="4") as one, pytest.raises(DataLossError, match="streamOffset begins"):
        one.batch()
    with reading(rabbit, stream, streamOffset="4", failOnDataLoss="false") as one:
        assert one.batch() == [0, 1, 2]
    with started(rabbit, [stream], streamOffset="3") as one:
        send(rabbit, stream, [3])
        assert one.read(1) == [3]


def test_a_read_by_time_has_everything_that_was_sent_after_it(rabbit, stream):
    send(rabbit, stream, range(10))
    between = datetime.now(UTC)
    send(rabbit, stream, range(10, 20))
    with reading(rabbit, stream, streamOffset=between.isoformat()) as one:
        found = one.read(10)
        assert found[-10:] == list(range(10, 20)), "it begins with the chunk of that time"


def test_available_now_reads_what_was_there_and_ends(rabbit, stream):
    with reading(rabbit, stream) as one:
        one.source.drain()
        assert one.batch() == [], "an empty stream"
    send(rabbit, stream, range(100))
    with reading(rabbit, stream) as one:
        one.source.drain()
        found = one.batch()
        send(rabbit, stream, range(100, 150))
        while batch := one.batch():
            found += batch
        assert found == list(range(100))


def test_a_killed_broker_loses_nothing_and_repeats_nothing(rabbit, stream):
    rabbit.stop()  # 4.0 that is killed at once does not know a new stream afterwards
    rabbit.start()
    send(rabbit, stream, range(200), patience=60)
    with reading(rabbit, stream) as one:
        found = one.read(80)
        rabbit.kill()
        rabbit.start()
        send(rabbit, stream, range(200, 240), patience=60)
        found += one.read(240 - len(found))
        assert found == list(range(240))
        assert one.source.progress()["reconnects"] == 1


def test_the_broker_filters_by_sql_where_it_can(rabbit, stream):
    send(rabbit, stream, range(20))
    options = {"streamFilter": "kind = 'a'"}
    if rabbit.version.startswith("4.0"):
        with (
            reading(rabbit, stream, **options) as one,
            pytest.raises(UnsupportedError, match=r"4\.0.* does not filter"),
        ):
            one.batch()
        return
    with reading(rabbit, stream, **options) as one:
        one.source.drain()
        assert one.batch() == list(range(0, 20, 2))
        assert one.batch() == []
        assert one.source.progress()["received"] == 10
    with reading(rabbit, stream, streamFilter="kind = ") as one, pytest.raises(InvalidSelectorError):
        one.batch()


def test_spark_evaluates_a_selector(rabbit, stream):
    send(rabbit, stream, range(20))
    with reading(rabbit, stream, selector="kind = 'a'", selectorInSpark="residual") as one:
        assert one.batch() == list(range(0, 20, 2))


def test_another_queue_is_no_stream(rabbit):
    name = f"classic.{uuid.uuid4().hex[:8]}"
    rabbit.create_queue(name)
    with reading(rabbit, name) as one, pytest.raises(UnsupportedError, match="is a classic queue"):
        one.batch()


@pytest.mark.spark
def test_through_spark_a_repeated_batch_has_the_same_rows(spark, rabbit, stream, tmp_path):
    send(rabbit, stream, range(100))
    frame = spark.readStream.format("jms").options(
        **access(rabbit, queue=stream), streamOffset="first", maxMessagesPerTrigger="40"
    )
    seen = Counter()
    batches = {}

    def each(rows, number):
        batches.setdefault(number, []).append([row.text for row in rows.select("text").collect()])

    run_available(frame.load(), tmp_path / "checkpoint", each=each)
    uncommit(tmp_path / "checkpoint")
    send(rabbit, stream, range(100, 130))
    run_available(frame.load(), tmp_path / "checkpoint", each=each)
    for attempts in batches.values():
        assert all(attempt == attempts[0] for attempt in attempts), "the same rows in the same order"
        seen.update(attempts[0])
    assert seen == Counter(str(number) for number in range(130))
    assert max(map(len, batches.values())) == 2, "one batch was repeated"


@pytest.mark.spark
def test_through_spark_a_read_of_what_comes_next_misses_nothing_between_its_runs(spark, rabbit, stream, tmp_path):
    send(rabbit, stream, range(3))
    frame = spark.readStream.format("jms").options(**access(rabbit, queue=stream), streamOffset="next")
    seen = []
    for run in range(3):
        run_available(
            frame.load(),
            tmp_path / "checkpoint",
            each=lambda rows, _: seen.extend(int(row.text) for row in rows.select("text").collect()),
        )
        send(rabbit, stream, range(10 * run + 10, 10 * run + 14))
    assert seen == [10, 11, 12, 13, 20, 21, 22, 23]
