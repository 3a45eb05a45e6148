"""Requests of Java clients with temporary reply queues and topics: whoever reads the row can answer, after any hop."""

import uuid
from contextlib import closing

import pyarrow as pa
import pytest
from amqp_brokers import AMQP_BROKERS
from amqp_sending import subscription_to
from broker_rows import access_over, read_batches, read_rows, write_batch
from receivers import OpenReceiver
from waiting import await_value

from pyspark_jms.blocks.dead_letter import DeadLetter
from pyspark_jms.jms.model import Destination
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.testing import JmsClient
from pyspark_jms.tools.cli.move import connect_mover
from pyspark_jms.tools.moving.engine import move

pytestmark = [pytest.mark.broker]


@pytest.fixture(
    scope="module",
    params=["classic", *(pytest.param(name, marks=pytest.mark.deep) for name in AMQP_BROKERS if name != "classic")],
)
def broker(request):
    if request.param in ("artemis", "classic"):
        yield request.getfixturevalue(request.param)
        return
    with AMQP_BROKERS[request.param]() as broker:
        yield broker


def protocols_of(broker):
    return ["amqp", "stomp"] if broker.url.startswith("stomp") else ["amqp"]


class Requester:
    """A Java client that waits at a temporary destination of its own."""

    def __init__(self, client, kind):
        self._client, session = client, client._session
        self._own = getattr(session, f"createTemporary{kind}")()
        self._consumer = session.createConsumer(self._own)

    def ask(self, queue, text="request"):
        session = self._client._session
        message = session.createTextMessage(text)
        message.setJMSReplyTo(self._own)
        self._client._producer.send(session.createQueue(queue), message)

    def answer(self):
        received = self._consumer.receive(5000)
        return received and received.getText()

    def hears_itself(self):
        """False for the temporary topics of Broker-J, to which no client can send."""
        self._client._producer.send(self._own, self._client._session.createTextMessage("self"))
        return self.answer() == "self"


def answer(access, row, text):
    write_batch(access, "unused", pa.record_batch({"destination": [row["JMSReplyTo"]], "text": [text]}))


def clients_of(broker):
    """How to connect Qpid JMS and, last, the broker's own Java client."""
    own = [lambda: JmsClient(broker)] if broker.url.startswith("stomp") else []
    return [lambda: JmsClient(broker.amqp_url, broker.user, broker.password), *own]


@pytest.mark.parametrize("kind", ["Queue", pytest.param("Topic", marks=pytest.mark.deep)])
def test_an_answer_reaches_the_requester_after_a_hop_over_each_protocol(broker, kind):
    for connect in clients_of(broker):
        with connect() as client:
            requester = Requester(client, kind)
            can_answer = requester.hears_itself()
            for protocol in protocols_of(broker):
                for hop in protocols_of(broker):
                    queue = f"requests.{uuid.uuid4().hex[:6]}"
                    requester.ask(queue)
                    (batch,) = read_batches(access_over(broker, protocol), queue)
                    assert batch["JMSReplyTo"][0].as_py().startswith(f"temp-{kind.lower()}://")
                    write_batch(access_over(broker, hop), f"{queue}.next", batch)
                    (row,) = read_rows(access_over(broker, hop), f"{queue}.next")
                    assert row["JMSReplyTo"] == batch["JMSReplyTo"][0].as_py()
                    text = f"{protocol}, {hop}"
                    for over in (protocol, hop):
                        answer(access_over(broker, over), row, text)
                        assert not can_answer or requester.answer() == text


def move_on(access, queue):
    options = SourceOptions.parse(access | {"queue": queue, "idleTimeout": "300ms"})
    to = Destination.parse(f"queue://{queue}.next")
    moved = move(reading_of(options), connect_mover(options), to=to, limit=None, on_moved=lambda _: None)
    assert (moved.messages, moved.left) == (1, {})


def send_as_dead_letter(access, queue):
    """As a message that cannot be mapped."""
    options = SourceOptions.parse(access | {"queue": queue})
    reading = reading_of(options)
    with closing(reading.connect(StateCondition())) as link:
        link.subscribe(subscription_to(queue))
        await_value(lambda: link.waiting()[0], 1)
        (block,) = link.take()
        letter = DeadLetter.of(block, 0, "a reason", f"queue://{queue}")
        reading.protocol.send_dead_letters(options.connection, f"{queue}.next", [letter])


def divert_as_too_large(access, queue):
    """It is kept in a file, and sent from there."""
    limits = {"maxMessageBytes": "2k", "onTooLarge": "deadLetter", "deadLetterQueue": f"{queue}.next"}
    with closing(OpenReceiver(SourceOptions.parse(access | {"queue": queue} | limits))) as receiver:
        await_value(lambda: (receiver.next_batch_end(), receiver.progress()["deadLetters"])[1], 1)


@pytest.mark.parametrize("go_on", [move_on, send_as_dead_letter, divert_as_too_large])
@pytest.mark.parametrize("kind", ["Queue", "Topic"])
def test_a_request_that_was_moved_or_became_a_dead_letter_can_be_answered(broker, kind, go_on):
    # Classic ends a STOMP connection that acknowledges a message of Qpid JMS, whose id it cannot parse.
    with clients_of(broker)[-1]() as client:
        requester = Requester(client, kind)
        can_answer = requester.hears_itself()
        for protocol in protocols_of(broker):
            access, queue = access_over(broker, protocol), f"requests.{uuid.uuid4().hex[:6]}"
            requester.ask(queue, "request" * 500)
            go_on(access, queue)
            (row,) = read_rows(access, f"{queue}.next")
            assert row["JMSReplyTo"].startswith(f"temp-{kind.lower()}://")
            assert row.get("properties", {}).get("spark_jms_source") == (
                None if go_on is move_on else f"queue://{queue}"
            )
            answer(access, row, protocol)
            assert not can_answer or requester.answer() == protocol
