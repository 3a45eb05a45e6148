import json
import os
import signal
import threading
import time

import pyarrow as pa
import pytest
from amqp_messages import TRUE, binary, block_of, list_, properties, section, string, timestamp, ubyte, uint
from amqp_sending import put_encoded, settings_of
from broker_rows import access_over, read_batches, read_rows, write_batch, write_rows
from numbered import fill
from streaming import access
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.sink import AmqpSinkLink
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.delivery.message_range import Bounds
from pyspark_jms.errors import InvalidDestinationError, UnsupportedError
from pyspark_jms.management.queue_facts import QueueFacts
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.source.links import Reading
from pyspark_jms.source.peek import Look, peek
from pyspark_jms.source.subscriptions import create_subscription
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.testing import PERMISSIONS, AddressSettings, EmbeddedArtemis, EmbeddedClassic, User


@pytest.fixture(params=["stomp", "amqp"])
def look(request, broker):
    """``look(queue, **options)``: the texts that a batch read shows."""

    def look(queue, on=broker, **options):
        given = access(on, request.param) | {"queue": queue, "idleTimeout": "300ms"} | options
        parsed = SourceOptions.parse(given, "batch")
        return [text for batch in peek(reading_of(parsed)) for text in batch.column("text").to_pylist()]

    return look


@pytest.mark.parametrize(
    ("bounds", "shown"),
    [({}, 20), ({"maxMessagesPerTrigger": "7"}, 7), ({"maxBytesPerTrigger": "1"}, 1), ({"idleTimeout": "300ms"}, 20)],
)
def test_shows_what_is_there_within_the_bounds_and_takes_nothing(broker, queue, bounds, shown):
    fill(broker, queue, 20)
    options = SourceOptions.parse(access(broker) | {"queue": queue, "idleTimeout": "1s"} | bounds, "batch")
    batches = list(peek(reading_of(options)))
    assert [n for batch in batches for n in batch.column("sequence").to_pylist()] == list(range(shown))
    await_count(broker, queue, 20)
    await_value(lambda: set(broker.delivery_counts(queue)), {0})


@pytest.mark.parametrize("bounds", [{}, {"maxMessagesPerTrigger": "9"}], ids=["without bounds", "with bounds"])
def test_a_queue_that_is_counted_ends_without_a_silence(broker, look, queue, bounds):
    """Each of many queues would take idleTimeout, one after the other."""
    broker.create_queue(f"{queue}.empty")
    fill(broker, queue, 3)
    shown = look(json.dumps([f"{queue}.empty", queue]), idleTimeout="10m", **bounds)
    assert shown == ["text 0", "text 1", "text 2"]


@pytest.mark.parametrize("bounds", [{"maxMessagesPerTrigger": "7"}, {"maxBytesPerTrigger": "1"}])
def test_warns_of_the_messages_that_it_does_not_show(broker, look, queue, caplog, bounds):
    fill(broker, queue, 20)
    shown = len(look(queue, **bounds))
    assert 1 <= shown < 20
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        f"! the read shows {shown} of the 20 messages of queue {queue}. Raise maxMessagesPerTrigger and "
    )


def test_over_amqp_a_read_without_bounds_shows_all_that_was_there_at_the_start(broker, queue, caplog):
    """More than the bounds that hold elsewhere by default, and nothing twice. What is sent meanwhile does not count."""
    count = 10_500
    fill(broker, queue, count)
    options = SourceOptions.parse(access(broker, "amqp") | {"queue": queue}, "batch")
    batches = peek(reading_of(options))
    found = next(batches)
    time.sleep(1.1)  # what is sent in the same second may be shown: clocks may differ
    fill(broker, queue, 3)
    rows = [found, *batches]
    assert [n for rows in rows for n in rows.column("sequence").to_pylist()] == list(range(count))
    assert [text for each in rows for text in each.column("text").to_pylist()] == [f"text {n}" for n in range(count)]
    assert caplog.text == ""
    assert broker.message_count(queue) == count + 3


@pytest.mark.parametrize(
    "counted", [0, pytest.param(1, marks=pytest.mark.deep), pytest.param(10_499, marks=pytest.mark.deep)]
)
def test_over_amqp_it_shows_what_the_broker_had_confirmed_and_not_counted(broker, queue, caplog, counted):
    """The number at the start as Artemis gives it shortly after a commit; what is sent meanwhile does not count."""
    count = 10_500
    fill(broker, queue, count)
    options = SourceOptions.parse(access(broker, "amqp") | {"queue": queue}, "batch")
    found = QueueFacts(name=queue, exists=True, messages=counted)
    look = Look(reading_of(options), options.destinations[0], found)
    ranges = look.ranges(Bounds(1, 1))
    shown = len(next(ranges)[0])
    time.sleep(1.1)  # as above
    fill(broker, queue, 3)
    assert shown + sum(len(each) for each, _ in ranges) == count
    look.warn_of_rest("maxMessagesPerTrigger")
    assert caplog.text == ""


def test_is_silent_if_it_shows_all(broker, look, queue, caplog):
    fill(broker, queue, 7)
    assert len(look(queue, maxMessagesPerTrigger="7")) == 7
    assert len(look(queue, selector="n = '3'")) == 1
    assert caplog.text == ""


def test_bounds_are_of_all_queues_and_the_warnings_of_each(broker, look, queue, caplog):
    for name in ("a", "b", "c"):
        fill(broker, f"{queue}.{name}", 4)
    assert len(look(f'["{queue}.a", "{queue}.b", "{queue}.c"]', maxMessagesPerTrigger="6")) == 6
    lines = [record.getMessage().split(". Raise")[0] for record in caplog.records]
    assert lines == [
        f"! the read shows 2 of the 4 messages of queue {queue}.b",
        f"! the read shows 0 of the 4 messages of queue {queue}.c",
    ]


def test_warns_of_messages_that_another_consumer_has(broker, look, queue, caplog):
    fill(broker, queue, 5)
    options = SourceOptions.parse(access(broker) | {"queue": queue, "idleTimeout": "1m"}, "batch")
    other = peek(reading_of(options))
    held = next(other).num_rows
    while held < 5:
        held += next(other).num_rows
    caplog.clear()
    assert look(queue) == []
    assert f"the read shows 0 of the 5 messages of queue {queue}" in caplog.text
    assert ("Raise maxMessagesPerTrigger" in caplog.text) is ("in delivery to another consumer" not in caplog.text)
    other.close()


UNMANAGED = {"user": "worker", "password": "pw"}
"""A user of the broker ``restricted`` without the permission manage."""


def test_where_the_number_is_not_known_there_may_be_more(restricted, look, queue, caplog):
    fill(restricted, queue, 3)
    assert len(look(queue, restricted, **UNMANAGED, maxMessagesPerTrigger="2")) == 2
    assert f"the read shows 2 messages of queue {queue} and reached its limit: there may be more" in caplog.text
    caplog.clear()
    assert len(look(queue, restricted, **UNMANAGED)) == 3
    assert "the read shows" not in caplog.text


def test_a_browse_that_knows_no_number_shows_what_was_sent_before_its_start(restricted, queue, caplog):
    """All of it, and no more: a producer that goes on sending would keep the read open for ever."""
    broker = restricted
    count = 10_500
    fill(broker, queue, count)
    await_count(broker, queue, count)
    access = {"brokerUrl": broker.amqp_url, "queue": queue, "idleTimeout": "10m"} | UNMANAGED
    options = SourceOptions.parse(access, "batch")
    batches = peek(reading_of(options))
    rows = [next(batches)]
    later_ms = time.time() * 1000 + 1_100
    wait_until(lambda: time.time() * 1000 > later_ms)
    fill(broker, queue, 3)
    rows += batches
    assert [n for each in rows for n in each.column("sequence").to_pylist()] == list(range(count))
    assert [text for each in rows for text in each.column("text").to_pylist()] == [f"text {n}" for n in range(count)]
    assert f"the read shows {count:,} messages of queue {queue} and ended at one that was sent after" in caplog.text


def test_a_slow_browse_shows_all_where_messages_have_a_timestamp(restricted, queue, monkeypatch):
    count = 5_000
    fill(restricted, queue, count)
    monkeypatch.setattr("pyspark_jms.source.peek.LONGEST_MS", -1.0)
    given = {"brokerUrl": restricted.amqp_url, "queue": queue, "idleTimeout": "1s"} | UNMANAGED
    options = SourceOptions.parse(given, "batch")
    assert sum(map(len, peek(reading_of(options)))) == count


def test_a_slow_browse_that_cannot_know_its_end_is_an_error(restricted, queue, monkeypatch):
    put_encoded(restricted, queue, [section(0x77, string(str(number))) for number in range(10)])
    monkeypatch.setattr("pyspark_jms.source.peek.LONGEST_MS", -1.0)
    given = {"brokerUrl": restricted.amqp_url, "queue": queue, "idleTimeout": "1s"} | UNMANAGED
    options = SourceOptions.parse(given, "batch")
    with pytest.raises(UnsupportedError, match=r"has shown 0 messages .* have no timestamp"):
        list(peek(reading_of(options)))


@pytest.fixture(scope="module")
def classic_with_policies():
    with EmbeddedClassic() as broker:
        policy = broker.jvm.org.apache.activemq.broker.region.policy
        entries = broker.jvm.java.util.ArrayList()
        for queues, page, memory in (("paged.>", 0, 0), ("fifty.>", 50, 0), ("small.>", 2_147_483_647, 100_000)):
            entry = policy.PolicyEntry()
            entry.setQueue(queues)
            if page:
                entry.setMaxBrowsePageSize(page)
            if memory:
                entry.setMemoryLimit(memory)
                entry.setProducerFlowControl(False)  # else it takes no more than the browse shows
            entries.add(entry)
        policies = policy.PolicyMap()
        policies.setPolicyEntries(entries)
        broker.server.setDestinationPolicy(policies)
        yield broker


CUT = "the broker has more"
UNCERTAIN = "the broker does not tell how many it has"
REACHED = "reached its limit"


@pytest.mark.deep
@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
@pytest.mark.parametrize(
    ("queues", "count", "most", "shown", "said"),
    [
        ("whole", 1_000, None, 1_000, UNCERTAIN),
        ("paged", 1_000, None, 400, CUT),
        ("paged", 1_000, 600, 400, CUT),
        ("paged", 1_000, 100, 100, REACHED),
        ("paged", 400, None, 400, UNCERTAIN),
        ("paged", 3, None, 3, ""),
        ("fifty", 120, None, 50, CUT),
        ("fifty", 120, 100, 50, CUT),
        ("fifty", 49, 100, 49, ""),
        ("small", 1_000, None, 200, UNCERTAIN),
    ],
)
def test_no_short_browse_of_classic_looks_whole(
    classic_with_policies, protocol, queues, count, most, shown, said, caplog
):
    broker = classic_with_policies
    name = f"{queues}.{protocol}.{count}.{most}"
    fill(broker, name, count)
    await_count(broker, name, count)
    url = broker.amqp_url if protocol == "amqp" else broker.url
    given = access(broker) | {"brokerUrl": url, "queue": name, "idleTimeout": "1s"}
    limit = {} if most is None else {"maxMessagesPerTrigger": str(most)}
    options = SourceOptions.parse(given | limit, "batch")
    batches = peek(reading_of(options))
    if said == CUT:
        with pytest.raises(UnsupportedError, match=rf"shows {shown} messages .* {CUT}.* maxBrowsePageSize=2147483647"):
            list(batches)
        return
    assert sum(map(len, batches)) == shown
    assert f"shows {shown:,} messages of queue {name}" in caplog.text if said else not caplog.text
    assert said in caplog.text


class _Watched(AmqpSource):
    """Keeps the link that a read has made."""

    def connect(self, settings, condition, beside=None):
        self.link = super().connect(settings, condition, beside)
        return self.link


@pytest.mark.deep
def test_a_browse_of_a_long_queue_keeps_a_window_of_messages_and_shows_each_once(broker, queue, caplog):
    """Small messages: a window of bytes alone would hold all of them. The reader is as slow as can be."""
    count = 100_000
    given = access(broker, "amqp") | {"queue": queue}
    texts = pa.array([f"text {n}" for n in range(count)])
    send_at_least_once(AmqpSinkLink, SinkOptions.parse(given), iter([pa.RecordBatch.from_arrays([texts], ["text"])]))
    await_count(broker, queue, count)
    protocol, options = _Watched(), SourceOptions.parse(given, "batch")
    read, kept, found = 0, [], []
    for rows in peek(Reading(options, protocol)):
        assert rows.column("sequence").to_pylist() == list(range(read, read + len(rows)))
        found.append(rows.column("text"))
        receiver = protocol.link.prefetch.receiver
        wait_until(lambda receiver=receiver: not receiver.credit or receiver.transfers.total_messages == count)
        kept.append(receiver.transfers.total_messages - read)
        read += len(rows)
    assert pa.concat_arrays(found).equals(texts)
    assert max(kept) <= 32_768  # as docs/batch-and-sql.md says
    assert caplog.text == ""
    await_count(broker, queue, count)


@pytest.mark.deep
def test_a_browse_goes_on_after_a_pause_of_the_broker_that_is_longer_than_idle_timeout(caplog):
    """As when it collects its garbage."""
    count = 40_000
    with EmbeddedArtemis() as broker:
        given = access(broker, "amqp") | {"queue": "long", "idleTimeout": "200ms"}
        texts = pa.array([f"text {n}" for n in range(count)])
        write = SinkOptions.parse({name: value for name, value in given.items() if name != "idleTimeout"})
        send_at_least_once(AmqpSinkLink, write, iter([pa.RecordBatch.from_arrays([texts], ["text"])]))
        await_count(broker, "long", count)
        read = 0
        for rows in peek(reading_of(SourceOptions.parse(given, "batch"))):
            if not read:  # what is above the window is asked for when the generator goes on
                os.kill(broker.pid, signal.SIGSTOP)
                threading.Timer(2, os.kill, (broker.pid, signal.SIGCONT)).start()
            read += len(rows)
    assert read == count
    assert caplog.text == ""


@pytest.mark.deep
def test_a_silence_while_the_broker_looks_for_a_match_is_not_the_end_of_a_browse(caplog):
    """A queue that pages, with its only matches behind all others."""
    worker = User("worker", "pw", permissions=PERMISSIONS - {"manage"})
    paging = AddressSettings(match="long", max_size_bytes=100_000, address_full_policy="PAGE")
    with EmbeddedArtemis(users=[User("artemis", "artemis"), worker], address_settings=[paging]) as broker:
        texts = pa.array(["x" * 300] * 20_000 + ["match"] * 3)
        kinds = pa.array(["other"] * 20_000 + ["wanted"] * 3)
        rows = pa.RecordBatch.from_arrays([texts, kinds], ["text", "JMSType"])
        write_batch(access_over(broker, "amqp"), "long", rows)
        few = {"selector": "JMSType = 'wanted'", "idleTimeout": "10ms"}
        found = pa.Table.from_batches(read_batches(access_over(broker, "amqp"), "long", **few))
        assert (found.column("text").to_pylist(), caplog.text) == (["match"] * 3, "")
        shown = sum(map(len, read_batches(access_over(broker, "stomp"), "long", **few)))
        said = f"the read shows {shown} of the 3 messages of queue long that match the selector"
        assert shown == 3 or said in caplog.text, "a consumer sees what the broker has read from disk"
        read_batches(access_over(broker, "amqp") | UNMANAGED, "long", **few)
        assert "that match the selector, and it is not known how many there are" in caplog.text


def test_a_queue_that_does_not_exist_is_warned_of_and_not_made(broker, look, queue, caplog):
    fill(broker, queue, 2)
    assert len(look(f'["{queue}.Misspelled", "{queue}"]')) == 2
    assert f"queue {queue}.Misspelled does not exist on the broker, so the read shows no messages of it" in caplog.text
    assert not broker.has_queue(f"{queue}.Misspelled")


@pytest.mark.parametrize("name", ["{topic}-c.n", "other::{topic}-c.n"])
def test_the_queue_of_a_subscription_has_one_name(broker, look, queue, name):
    wanted = {"topic": queue, "subscriptionName": "n", "clientId": f"{queue}-c"}
    create_subscription(reading_of(SourceOptions.parse(access(broker) | wanted)))
    with pytest.raises(InvalidDestinationError, match=rf"Did you mean {queue}::{queue}-c\.n\?"):
        look(name.format(topic=queue))
    assert look(f"{queue}::{queue}-c.wrong") == []


def test_over_stomp_artemis_sends_the_first_of_several_data_sections(broker, queue):
    with Producer(settings_of(broker)) as producer:
        producer.open(Target(address=queue, capabilities=("queue",)))
        producer.send(block_of([section(0x75, binary(b"one")) + section(0x75, binary(b"two"))]))
        producer.commit()
    for url, expected in ((broker.url, b"one"), (broker.amqp_url, b"onetwo")):
        parsed = SourceOptions.parse(access(broker) | {"brokerUrl": url, "queue": queue}, "batch")
        [batch] = peek(reading_of(parsed))
        assert batch.column("bytes").to_pylist() == [expected]


@pytest.mark.broker
def test_an_expiry_that_was_over_at_the_delivery_is_neither_stated_nor_sent(broker, queue):
    """The producer has given the message the time of an event two days ago, and an hour to live from its arrival."""
    event_ms = int(time.time() * 1000) - 172_800_000
    head, made = section(0x70, list_(TRUE, ubyte(4), uint(3_600_000))), properties(creation_time=timestamp(event_ms))
    put_encoded(broker, queue, [head + made + section(0x77, string("late"))])
    over_amqp, over_stomp = access_over(broker, "amqp"), access_over(broker, "stomp")
    (batch,) = read_batches(over_amqp, queue)
    assert batch["JMSExpiration"].to_pylist() == [None]
    past = pa.array([event_ms], pa.timestamp("ms", "UTC"))
    for to in (over_amqp, over_stomp):
        write_batch(to, f"{queue}.copies", batch)
        write_batch(to, f"{queue}.copies", pa.record_batch({"text": ["late"], "JMSExpiration": past}))
    copies = read_rows(over_stomp, f"{queue}.copies")  # over STOMP, Artemis shows none that has expired
    assert [(row["text"], row.get("JMSExpiration")) for row in copies] == [("late", None)] * 4


@pytest.mark.broker
@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_selector_with_a_prefix(broker, queue, protocol):
    given = access_over(broker, protocol)
    write_rows(given, queue, [{"text": n, "properties": {"n": n}} for n in ("7", "8")])
    found = read_rows(given, queue, selector="convert_string_expressions:n = 7")
    assert [row["text"] for row in found] == ["7"]
