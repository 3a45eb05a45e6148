"""RabbitMQ 4 over AMQP 1.0: what it refuses, routes and gives back, on the newest version and on 4.0. Without Java."""

import contextlib
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from urllib.parse import quote, unquote

import pyarrow as pa
import pytest
from broker_rows import access_over, read_batches, read_rows, read_texts, write_batch, write_rows
from commands import run
from every_protocol import proton_send
from proton import Message
from rabbit4 import Rabbit4, require_rabbit4
from waiting import await_count, wait_until

from pyspark_jms.amqp.dialects import RABBITMQ
from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.errors import (
    BrokerError,
    BrokerUnreachableError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    UnsupportedError,
)
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.receiver import BatchReceiver
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.spark.protocols import reading_of

pytestmark = [pytest.mark.broker, pytest.mark.deep]

QUORUM = {"x-queue-type": "quorum"}
READ_TWICE = "counts deliveries, as a quorum queue does, and each batch read over STOMP is one"


@pytest.fixture(scope="module", params=["sid", "trixie"])
def rabbit(request):
    require_rabbit4(request.param)
    with Rabbit4(request.param) as broker:
        yield broker


@pytest.fixture(autouse=True)
def _tested_broker(rabbit, tested):
    tested("rabbitmq", rabbit.version)


@pytest.fixture(params=[None, QUORUM], ids=["classic", "quorum"])
def queue(rabbit, request):
    """A queue whose name must be encoded."""
    name = f"a b/{uuid.uuid4().hex[:8]}"
    rabbit.create_queue(name, request.param)
    return name


def access(rabbit, **more):
    return access_over(rabbit, "amqp") | more


def write(rabbit, texts, columns=None, queue=None, **options):
    rows = pa.RecordBatch.from_pydict({"text": texts} | (columns or {}))
    return write_batch(access(rabbit), queue, rows, **options)


def shown(rabbit, queue, **options):
    return read_texts(access(rabbit), queue, idleTimeout="500ms", **options)


@contextmanager
def receiving(rabbit, **options):
    given = SourceOptions.parse(access(rabbit, **options))
    with contextlib.closing(BatchReceiver(reading_of(given), StopRequest(), store=None, sequence=0)) as receiver:
        yield receiver


def drained(receiver, count):
    """Offer and acknowledge batches until so many messages were received."""
    while receiver.progress()["received"] < count or receiver.progress()["acknowledged"] < count:
        receiver.acknowledge_through(receiver.next_batch_end())


def commands(rabbit, capsys, command, *arguments):
    code = run(access(rabbit), command, *arguments)
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_rows_come_back_as_they_were_written_and_a_batch_read_takes_none(rabbit, queue):
    texts = [f"{n}" for n in range(700)]
    assert write(rabbit, texts, queue=queue) == (700, 0)
    await_count(rabbit, queue, 700)
    for _ in range(2):
        assert sorted(shown(rabbit, queue=queue), key=int) == texts
        await_count(rabbit, queue, 700)
    with receiving(rabbit, queue=queue, maxMessagesPerTrigger="100") as receiver:
        drained(receiver, 700)
        assert receiver.progress()["guarantee"] == "at-least-once (the broker confirms no acknowledgement)"
    await_count(rabbit, queue, 0)


def test_what_was_not_acknowledged_comes_back_when_the_broker_was_killed(rabbit, queue, request):
    if (
        "quorum" in request.node.callspec.id
    ):  # a new one whose broker is killed at once loses even what it has confirmed
        rabbit.stop()
        rabbit.start()
    write(rabbit, [f"{n}" for n in range(300)], queue=queue)
    with receiving(rabbit, queue=queue, maxMessagesPerTrigger="100") as receiver:
        wait_until(lambda: receiver.next_batch_end() == 300)
        rabbit.kill()
        rabbit.start()
        wait_until(lambda: receiver.next_batch_end() == 300 and receiver.progress()["recognised"] == 300)
    await_count(rabbit, queue, 300)
    assert len(shown(rabbit, queue=queue)) == 300


@pytest.mark.parametrize(("protocol", "ending"), [("amqp", "closed"), ("stomp", "closed"), ("stomp", "stopped")])
def test_a_connection_that_the_broker_ends_is_made_again(rabbit, protocol, ending):
    name = uuid.uuid4().hex
    rabbit.create_queue(name)
    with receiving(rabbit, queue=name, **access_over(rabbit, protocol)) as receiver:
        receiver.next_batch_end()
        if ending == "closed":
            rabbit.control("close_all_connections", "maintenance")
        else:
            rabbit.stop()
            rabbit.start()
        wait_until(lambda: receiver.next_batch_end() or receiver.progress()["reconnects"] == 1)


def test_a_queue_that_is_deleted_and_declared_again_is_read_on(rabbit):
    name = uuid.uuid4().hex
    rabbit.create_queue(name)
    with receiving(rabbit, queue=name) as receiver:
        receiver.next_batch_end()
        rabbit.control("delete_queue", name)
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(lambda: wait_until(receiver.next_batch_end))
            rabbit.create_queue(name)
            write(rabbit, ["text"], queue=name)
            waiting.result()
        assert receiver.progress()["reconnects"] == 1


def test_redeliveries_are_recognised(rabbit, queue):
    """Quorum queues count them in an annotation."""
    write(rabbit, ["one", "two"], queue=queue)
    with receiving(rabbit, queue=queue) as receiver:
        wait_until(lambda: receiver.next_batch_end() == 2)
        receiver.links[0].connection.drop()
        wait_until(lambda: receiver.next_batch_end() == 2 and receiver.progress()["recognised"] == 2)
        assert receiver.progress()["seq"] == 2


@pytest.mark.parametrize(
    ("destination", "kind"),
    [
        ("topic://nobody.{}", InvalidDestinationError),
        ("topic:///exchanges/amq.topic/nobody.{}", InvalidDestinationError),
        ("topic:///exchanges/none.{}/key", JMSError),
        ("queue://none.{}", InvalidDestinationError),
        ("queue:///queues/none.{}", InvalidDestinationError),
    ],
)
def test_a_row_that_no_queue_takes_fails_its_task(rabbit, destination, kind):
    destination = destination.format(uuid.uuid4().hex[:8])
    option, name = destination.split("://", 1)
    with pytest.raises(kind):
        write(rabbit, ["x"], **{option: name})
    with pytest.raises(kind):
        write(rabbit, ["x"], {"destination": [destination]})


def test_rows_name_queues_and_exchanges(rabbit):
    name = uuid.uuid4().hex[:8]
    with rabbit.amqp() as channel:
        for queue in (f"q.{name}", f"t.{name}"):
            channel.queue_declare(queue, durable=True)
        channel.queue_bind(f"t.{name}", "amq.topic", f"orders.{name}.#")
    rows = [f"queue://q.{name}", f"queue:///queues/q.{name}", f"topic://orders.{name}.de"]
    rows += [f"topic:///exchanges/amq.topic/orders.{name}.at", f"q.{name}"]
    assert write(rabbit, [*"abcde"], {"destination": rows}) == (5, 0)
    assert sorted(shown(rabbit, queue=f"q.{name}")) == ["a", "b", "e"]
    assert sorted(shown(rabbit, queue=f"/queues/t.{name}")) == ["c", "d"]


def test_a_full_queue_refuses_a_row(rabbit):
    name = uuid.uuid4().hex[:8]
    with rabbit.amqp() as channel:
        channel.queue_declare(name, durable=True, arguments={"x-max-length": 3, "x-overflow": "reject-publish"})
    with pytest.raises(BrokerError, match=r"maximum length|amqp:rejected"):
        write(rabbit, ["x"] * 10, queue=name)


@pytest.fixture
def virtual_host(rabbit):
    """The path of its URL."""
    host = f"dev/{uuid.uuid4().hex[:8]}"
    rabbit.control("add_vhost", host)
    rabbit.control("set_permissions", "-p", host, rabbit.user, ".*", ".*", ".*")
    return f"/{quote(host, safe='')}"


def test_a_virtual_host_has_its_own_queues(rabbit, virtual_host):
    name = uuid.uuid4().hex[:8]
    rabbit.create_queue(name)
    write(rabbit, ["x"], queue=name)
    assert shown(rabbit, queue=name, brokerUrl=f"{rabbit.amqp_url}/%2F") == ["x"]
    there = rabbit.amqp_url + virtual_host
    for broker in ("auto", "rabbitmq"):
        with pytest.raises(InvalidDestinationError, match=f"vhost '{unquote(virtual_host[1:])}'"):
            shown(rabbit, queue=name, brokerUrl=there, broker=broker)
        with pytest.raises(BrokerUnreachableError, match=r"virtual host none"):
            shown(rabbit, queue=name, brokerUrl=f"{rabbit.amqp_url}/none", broker=broker)


def test_a_virtual_host_is_the_same_over_stomp(rabbit, virtual_host):
    stomp = access_over(rabbit, "stomp") | {"brokerUrl": rabbit.url + virtual_host}
    write_rows(stomp, "orders", [{"text": "x"}])
    assert shown(rabbit, queue="orders", brokerUrl=rabbit.amqp_url + virtual_host, bodyType="text") == ["x"]
    with pytest.raises(JMSError, match="none"):
        write_rows(stomp | {"brokerUrl": f"{rabbit.url}/none"}, "orders", [{"text": "x"}])


def test_what_it_does_not_have_is_refused_before_anything_is_read_or_sent(rabbit, queue, capsys):
    write(rabbit, ["x"], queue=queue)
    source = AmqpSource()
    given = SourceOptions.parse(access(rabbit, topic="orders.#"))
    with closing(source.connect(given.connection, StateCondition())) as link, pytest.raises(UnsupportedError):
        link.subscribe(Subscription(destination=given.destinations[0], window_bytes=1))
    with pytest.raises(InvalidDestinationError, match="Bind a queue"):
        shown(rabbit, queue="/exchanges/amq.topic/orders.de")
    with pytest.raises(UnsupportedError, match="no transactions over AMQP"):
        write(rabbit, ["y"], queue=queue, transaction="task")
    with pytest.raises(UnsupportedError, match="rabbitmq would deliver it at once"):
        write(rabbit, ["y"], {"delivery_delay": [60_000]}, queue=queue)
    stream = f"stream.{uuid.uuid4().hex[:8]}"
    rabbit.create_queue(stream, {"x-queue-type": "stream"})
    assert write(rabbit, ["y"], queue=stream) == (1, 0)
    with pytest.raises(UnsupportedError, match="is a stream"):
        shown(rabbit, queue=stream)
    with pytest.raises(UnsupportedError, match="is a stream"), receiving(rabbit, queue=stream):
        pass
    code, said = commands(rabbit, capsys, "move", "--queue", queue, "--to", queue + "2")
    assert code == 1
    assert "JMS_UNSUPPORTED" in said
    assert "Nothing was moved" in said
    assert shown(rabbit, queue=queue) == ["x"]


def test_a_user_who_may_only_read_reads(rabbit, queue):
    """RabbitMQ ends the session of a user who asks for the type of a queue without the permission configure."""
    write(rabbit, ["x"], queue=queue)
    user = f"reader.{uuid.uuid4().hex[:8]}"
    rabbit.control("add_user", user, "pw")
    rabbit.control("set_permissions", user, "^$", "^$", ".*")
    assert shown(rabbit, queue=queue, user=user, password="pw") == ["x"]
    with receiving(rabbit, queue=queue, user=user, password="pw") as receiver:
        drained(receiver, 1)
    await_count(rabbit, queue, 0)
    with pytest.raises(JMSSecurityError, match="write access"):
        write(rabbit, ["x"], queue=queue, user=user, password="pw")


def test_a_dead_letter_is_confirmed_whoever_sent_the_message(rabbit, queue):
    """RabbitMQ refuses a message with the user-id of another user."""
    dead = f"dead.{uuid.uuid4().hex[:8]}"
    rabbit.create_queue(dead)
    message = Message(body=b"x" * 2_000, inferred=True)
    message.user_id = rabbit.user.encode()
    proton_send(rabbit, RABBITMQ.send.address("queue", queue), message)
    options = {"onTooLarge": "deadLetter", "deadLetterQueue": dead, "maxMessageBytes": "1k"}
    with receiving(rabbit, queue=queue, **options) as receiver:
        wait_until(lambda: receiver.next_batch_end() == 0 and receiver.progress()["deadLetters"] == 1)
        await_count(rabbit, dead, 1)
    await_count(rabbit, queue, 0)


def test_check_send_and_peek(rabbit, queue, capsys):
    assert commands(rabbit, capsys, "send", "--queue", queue, "--text", "hello") == (
        0,
        f"sent 1 message to queue://{queue}\n",
    )
    code, said = commands(rabbit, capsys, "send", "--topic", "nobody.listens", "--text", "hello")
    assert code == 1
    assert "amqp:released" in said
    code, said = commands(rabbit, capsys, "peek", "--queue", queue, "--json")
    assert code == 0
    assert "hello" in said
    code, said = commands(rabbit, capsys, "check", "--queue", queue, "--receive", "--json")
    assert code == 0, said
    findings = {each["name"]: each for each in json.loads(said)["findings"]}
    assert findings["dialect"]["value"] == "rabbitmq"
    assert findings["received"]["details"]["received"] == 1
    kind = findings["queue"]["details"].pop("type")
    assert findings["queue"]["details"] == {"messages": 1} | ({"redeliveries": 20} if kind == "quorum" else {})
    await_count(rabbit, queue, 1)


def test_the_product_is_detected(rabbit):
    with closing(connect(SourceOptions.parse(access(rabbit, queue="q")).connection)) as connection:
        assert (connection.dialect.name, connection.server) == ("rabbitmq", f"RabbitMQ/{rabbit.version}")


def test_a_row_without_a_body_comes_back_as_it_was(rabbit, queue):
    write(rabbit, [None, "x"], {"body_type": ["message", "text"]}, queue=queue)
    rows = read_rows(access(rabbit), queue, idleTimeout="500ms")
    assert [(row["body_type"], row.get("text")) for row in rows] == [("message", None), ("text", "x")]


def test_a_batch_read_over_stomp_says_that_a_quorum_queue_counts_it(rabbit, caplog):
    """The broker deletes a message after its delivery limit. Over AMQP a read does not count."""
    for kind, protocol, counts in (("quorum", "stomp", True), ("classic", "stomp", False), ("quorum", "amqp", False)):
        name = f"read.{uuid.uuid4().hex[:8]}"
        rabbit.create_queue(name, {"x-queue-type": kind})
        write_rows(access_over(rabbit, "amqp"), name, [{"text": "x"}])
        for read in range(3):
            caplog.clear()
            queue = f"/amq/queue/{name}" if protocol == "stomp" else name
            assert len(read_batches(access_over(rabbit, protocol), queue)) == 1
            assert (READ_TWICE in caplog.text) is (counts and read > 0)
