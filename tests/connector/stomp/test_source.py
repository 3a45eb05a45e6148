import contextlib
from dataclasses import replace

import pytest
from numbered import fill
from streaming import access
from waiting import wait_until

from pyspark_jms.delivery.journal.segment import Segment, encode, read_head
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC
from pyspark_jms.stomp.source import StompSource, recognition_of, redelivered
from pyspark_jms.stomp.wire.scan import FrameScanner


@contextlib.contextmanager
def linked(broker, queue):
    stomp = StompSource()
    with contextlib.closing(
        stomp.connect(SourceOptions.parse(access(broker) | {"queue": queue}).connection, StateCondition())
    ) as link:
        yield link


def subscription(queue, **more):
    return Subscription(destination=Destination.parse(f"queue://{queue}"), window_bytes=1 << 20, **more)


def block(link):
    wait_until(lambda: link.waiting()[0])
    [found] = link.take()
    return found


def test_a_link_connects_then_subscribes_then_receives(broker, queue):
    fill(broker, queue, 3)
    with linked(broker, queue) as link:
        assert (link.dialect.name, link.is_down) == ("artemis", False)
        assert broker.consumer_count(queue) == 0
        link.subscribe(subscription(queue))
        found = block(link)
        assert link.redelivered(found) == 0
        assert abs(link.sent_ms(found, 0) - link.sent_ms(found, len(found) - 1)) < 60_000
        link.has_receipt(link.acknowledge([one for one in found.ids if one is not None]), wait=True)


def test_a_link_that_never_subscribed_closes_without_a_word(broker, queue):
    with linked(broker, queue) as link:
        pass
    assert link.is_down


def test_what_artemis_cannot_do_is_refused(broker, queue):
    shared, topic = DurableSubscription("daily", shared=True), Destination.parse("topic://t")
    with linked(broker, queue) as link:
        with pytest.raises(UnsupportedError, match="clientId"):
            link.subscribe(Subscription(destination=topic, window_bytes=1, durable=shared, selector="a = 1"))
        assert link.is_down


def test_what_a_dialect_knows():
    stomp = StompSource()
    assert stomp.recognition("rabbitmq") is None


# --- recognition ------------------------------------------------------------------------------------


WITHOUT_IDS = replace(ARTEMIS, stable_id_separator=None)


def run_of(*frames):
    scanner = FrameScanner(max_body_bytes=10_000)
    for lines, body in frames:
        scanner.feed("\n".join(["MESSAGE", *lines, "", body]).encode() + b"\0\n")
    return scanner.take()


def delivered(session, *, again, body="hello", properties=("a:1", "b:2")):
    head = [f"subscription:{session}", f"message-id:{session},77", "destination:q", f"redelivered:{again}"]
    return [*head, *properties, f"ack:{session},77"], body


def test_identity_is_what_every_delivery_of_a_message_shares():
    block, identity = run_of(delivered(31, again="false"), delivered(9, again="true")), recognition_of(ARTEMIS).identity
    assert identity(block, 0) == identity(block, 1) == b"77"


def test_a_fingerprint_is_blind_to_delivery_and_to_the_order_of_properties_only():
    run = run_of(
        delivered(1, again="false"),
        delivered(2, again="true", properties=("b:2", "a:1")),
        delivered(1, again="false", body="hello!"),
        delivered(1, again="false", properties=("a:1", "b:3")),
    )
    first, second, other_body, other_value = (recognition_of(ARTEMIS).fingerprint(run, index) for index in range(4))
    assert first == second
    assert len({first, other_body, other_value}) == 3
    assert len(first) == 16


@pytest.mark.parametrize("before", ["_AMQ_SCHED_DELIVERY:1700000000000", "_AMQ_SCHED_DELIVERY:1800000000000"])
def test_a_scheduled_message_is_known_without_the_time_that_the_broker_forgets(before):
    run = run_of(
        delivered(1, again="false", properties=("a:1", before)),
        delivered(2, again="false", properties=("a:1",)),
        delivered(2, again="false", properties=("_AMQ_SCHED:1", "a:1")),
    )
    first, second, other = (recognition_of(ARTEMIS).fingerprint(run, index) for index in range(3))
    assert first == second != other


def test_a_queue_is_the_same_with_and_without_its_address():
    names = ["queue://q", "queue://q::q", "queue://a::q", "topic://q::q", "topic://q for c.s"]
    artemis, classic = (recognition_of(dialect).origin for dialect in (ARTEMIS, CLASSIC))
    assert [artemis(name) for name in names] == ["queue://q"] * 3 + names[3:]
    assert [classic(name) for name in names] == names


def test_a_segment_tells_the_fingerprints_of_what_it_holds():
    run = run_of(
        delivered(1, again="false"),
        delivered(1, again="false", body="é"),
        delivered(1, again="true", properties=("b:2",)),
    )
    block = replace(run.slice(1, 3), ids=[b"77", b"77"])
    segment = Segment(source="queue://q", dialect="artemis", first=7, block=block)
    fingerprint = recognition_of(ARTEMIS).fingerprint
    stored = read_head(b"".join(encode(segment)), "it").segment().block
    assert [fingerprint(stored, index) for index in range(2)] == [fingerprint(run, 1), fingerprint(run, 2)]


def test_nothing_is_known_again_without_stable_ids():
    assert recognition_of(ARTEMIS) is not None
    assert recognition_of(WITHOUT_IDS) is None


@pytest.mark.parametrize("filling", ["", "x" * 5000])
def test_counts_redelivered_headers_and_not_bodies(filling):
    lie = "\nredelivered:true\n" + filling
    assert redelivered(run_of(delivered(1, again="false"), delivered(1, again="false"))) == 0
    assert redelivered(run_of(delivered(1, again="false", body=lie), delivered(1, again="true", body=lie))) == 1
