"""The receiver sends away what will not become rows: the dead letter is confirmed before anything is acknowledged."""

import contextlib
import time

import pytest
from amqp_messages import block_of, int_, list_, section, string
from element_limit import limit_elements
from proxy import Proxy
from rawstomp import RawStomp, read_all
from receivers import OpenReceiver
from streaming import access, left
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.errors import LinkError
from pyspark_jms.jms.model import Destination
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.diverting import DriverDiverter
from pyspark_jms.spark.protocols import reading_of

BAD = ([("spark_jms_body", "map")], b"no JSON")
LETTERS = {"onBadMessage": "deadLetter", "onTooLarge": "deadLetter", "maxMessageBytes": "100k"}


def unmappable_over_amqp(messages, upto, **more):
    raw = {"brokerUrl": "amqp://host:1", "queue": "q", "onBadMessage": "deadLetter", "deadLetterQueue": "d"} | more
    queue, found = Destination.parse("queue://q"), block_of(messages)
    return DriverDiverter(reading_of(SourceOptions.parse(raw)), time.sleep).unmappable(ARTEMIS, queue, found, upto)


@pytest.mark.parametrize(("most", "diverted"), [(2, [0]), (3, [])])
def test_a_message_with_too_many_elements_cannot_be_mapped(most, diverted, monkeypatch):
    limit_elements(monkeypatch, most)
    assert list(unmappable_over_amqp([section(0x77, list_(int_(1), int_(2), int_(3)))], 1)) == diverted


def test_messages_that_cannot_be_mapped():
    good, bad = section(0x77, string("text")), b"\x00\x53\x77\xff"
    assert list(unmappable_over_amqp([good, bad, good], 3)) == [1]
    assert unmappable_over_amqp([good, bad, good], 1) == {}


def options(broker, queue, **more):
    raw = access(broker) | {"queue": queue}
    return SourceOptions.parse(raw | LETTERS | {"deadLetterQueue": f"{queue}.dead"} | more)


@contextlib.contextmanager
def receiving(broker, queue, **more):
    with contextlib.closing(OpenReceiver(options(broker, queue, **more))) as receiver:
        yield receiver


def send(broker, queue, *messages):
    with RawStomp(broker) as client:
        client.send(queue, messages)


def test_only_the_good_ones_are_offered(broker, queue):
    send(broker, queue, BAD, ([], "one"), BAD, BAD, ([], "two"), ([], "x" * 200_000), ([], "three"), BAD)
    with receiving(broker, queue) as receiver:
        wait_until(lambda: receiver.progress()["inFlightMessages"] == 7, what="their arrival")
        end = 0
        while end < 3:
            end = receiver.next_batch_end()
        assert left(broker, queue, 3) == 3  # acknowledged are those that went away
        receiver.acknowledge_through(3)
        assert left(broker, queue) == 0
        assert receiver.progress()["deadLetters"] == 5
    assert sorted(len(letter.body) for letter in read_all(broker, f"{queue}.dead")) == [7, 7, 7, 7, 200_000]


def test_a_message_with_too_many_properties_goes_away_with_all_of_them(broker, queue, monkeypatch):
    limit_elements(monkeypatch, 40)
    many = [(f"p{number}", "v") for number in range(50)]
    send(broker, queue, ([], "one"), (many, "many"), ([], "two"))
    with receiving(broker, queue) as receiver:
        wait_until(lambda: receiver.progress()["inFlightMessages"] == 3, what="their arrival")
        end = 0
        while end < 2:
            end = receiver.next_batch_end()
    (letter,) = read_all(broker, f"{queue}.dead")
    assert letter.headers["spark_jms_error"] == "the message has more than 40 headers"
    assert {name: letter.headers[name] for name, _ in many} == dict(many)


def test_a_dead_letter_queue_that_may_not_be_written_stops_the_query_and_nothing_is_acknowledged(restricted, queue):
    send(restricted, queue, ([], "one"), BAD)
    with receiving(restricted, queue, user="reader", password="pw") as receiver:
        wait_until(lambda: receiver.progress()["inFlightMessages"] == 2, what="their arrival")
        with pytest.raises(LinkError):
            receiver.next_batch_end()
    await_count(restricted, queue, 2)


@pytest.mark.parametrize("message", [BAD, ([], "x" * 200_000)], ids=["bad", "too large"])
def test_a_connection_lost_before_the_acknowledgement_repeats_the_dead_letter_and_loses_nothing(broker, queue, message):
    send(broker, queue, ([], "one"), message)
    with Proxy(broker.host, broker.port) as proxy:
        proxy.to_broker.cut_at(b"ACK\n")
        with receiving(broker, queue, brokerUrl=proxy.url) as receiver:
            kept = 2 if message is BAD else 1  # one that is too large is not counted
            wait_until(lambda: receiver.progress()["inFlightMessages"] == kept, what="their arrival")
            await_value(lambda: broker.delivering_count(queue), 2)
            end = 0
            while not end:
                end = receiver.next_batch_end()
            receiver.acknowledge_through(1)
            wait_until(
                lambda: receiver.next_batch_end() == 1 and broker.message_count(queue) == 0, what="the acknowledgement"
            )
            assert end == 1
    letters = read_all(broker, f"{queue}.dead")
    assert len({letter.headers["spark_jms_message_id"] for letter in letters}) == 1
    assert len(letters) == 2


def test_without_the_option_nothing_is_decoded_here(broker, queue):
    send(broker, queue, BAD)
    with receiving(broker, queue, onBadMessage="keep") as receiver:
        wait_until(lambda: receiver.next_batch_end() == 1)
        assert receiver.progress()["deadLetters"] == 0
