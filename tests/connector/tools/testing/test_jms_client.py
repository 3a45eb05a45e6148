import math

import pytest
from py4j.protocol import Py4JJavaError
from waiting import wait_until

from pyspark_jms.jms.model import BodyType, DeliveryMode
from pyspark_jms.testing import JmsClient, Typed

_PROPERTIES = {
    "boolean": Typed("boolean", True),
    "byte": Typed("byte", -128),
    "short": Typed("short", 300),
    "int": Typed("int", -(2**31)),
    "long": Typed("long", 5),
    "float": Typed("float", 1.5),
    "double": Typed("double", 0.1),
    "string": Typed("string", "é\0:\\\n"),
    "empty": Typed("string", ""),
    "null": None,
}
_VALUES = {**_PROPERTIES, "char": Typed("char", "ü"), "bytes": Typed("bytes", b"\0\xff")}


@pytest.fixture(scope="module", params=["CORE", "Qpid JMS"])
def either(request, broker, java):
    if request.param == "CORE":
        yield java
    else:
        with JmsClient(broker.amqp_url, broker.user, broker.password) as client:
            yield client


@pytest.mark.parametrize(
    ("body", "body_type"),
    [
        ("héllo\0", BodyType.TEXT),
        ("", BodyType.TEXT),
        (b"\0\xff", BodyType.BYTES),
        (b"", BodyType.BYTES),
        (_VALUES, BodyType.MAP),
        ({}, BodyType.MAP),
        (list(_VALUES.values()), BodyType.STREAM),
        ([], BodyType.STREAM),
        (None, BodyType.MESSAGE),
    ],
)
def test_bodies_come_back(either, queue, body, body_type):
    either.send(queue, body)
    message = either.receive(queue)
    assert (message.body_type, message.body) == (body_type, body)


@pytest.mark.parametrize("body_type", BodyType)
def test_empty_message_of_a_type(either, queue, body_type):
    either.send(queue, body_type=body_type)
    if body_type is not BodyType.OBJECT:  # a null object has no toString()
        assert either.receive(queue).body_type is body_type


def test_object_message(java, broker, queue):
    uuid = "0b5b0c06-8a1d-4a53-9e6c-1d8d6a4a1c11"
    for value in (broker.jvm.java.util.UUID.fromString(uuid), broker.jvm.java.util.HashMap()):
        java.send(queue, value)
    messages = [java.receive(queue), java.receive(queue)]
    assert [(message.body_type, message.body) for message in messages] == [
        (BodyType.OBJECT, uuid),
        (BodyType.OBJECT, "{}"),
    ]


def test_properties_keep_their_class(java, queue):
    java.send(queue, properties=_PROPERTIES)
    received = java.receive(queue).properties
    assert received.pop("JMSXDeliveryCount") == Typed("int", 1)
    assert received == _PROPERTIES


@pytest.mark.parametrize(
    ("value", "typed"),
    [
        (True, Typed("boolean", True)),
        (1, Typed("int", 1)),
        (2**31 - 1, Typed("int", 2**31 - 1)),
        (2**31, Typed("long", 2**31)),
        (-(2**31) - 1, Typed("long", -(2**31) - 1)),
        (0.5, Typed("double", 0.5)),
        (math.inf, Typed("double", math.inf)),
        ("x", Typed("string", "x")),
        (Typed("byte", 1), Typed("byte", 1)),
    ],
)
def test_python_values_have_a_type(java, queue, value, typed):
    java.send(queue, properties={"p": value})
    assert java.receive(queue).properties["p"] == typed


def test_values_without_a_jms_type_are_refused(java, queue):
    with pytest.raises(TypeError, match="set"):
        java.send(queue, properties={"p": {1}})
    with pytest.raises(TypeError, match="set"):
        java.send(queue, {1})


def test_headers(java, queue):
    message_id = java.send(
        f"queue://{queue}",
        "x",
        correlation_id="c-1",
        type="order",
        reply_to="topic://answers",
        delivery_mode=DeliveryMode.NON_PERSISTENT,
        priority=7,
        time_to_live=60_000,
    )
    message = java.receive(queue)
    assert message_id.startswith("ID:")
    assert message.message_id == message_id
    assert (message.correlation_id, message.type, message.priority) == ("c-1", "order", 7)
    assert (message.reply_to, message.destination) == ("topic://answers", f"queue://{queue}")
    assert message.delivery_mode is DeliveryMode.NON_PERSISTENT
    assert message.expiration == message.timestamp + 60_000
    assert not message.redelivered


def test_delayed_message(java, queue):
    java.send(queue, "later", delivery_delay=50)
    message = java.receive(queue)
    assert message.delivery_time >= message.timestamp + 50


def test_receive_as_passes_the_java_message(java, queue):
    java.send(queue, "x", properties={"n": 7})
    assert java.receive_as(lambda message: message.getStringProperty("n"), queue) == "7"
    assert java.receive_as(lambda message: message, queue, timeout=0.05) is None


def test_receive_all_ends_at_the_count_or_at_the_end_of_the_queue(either, queue):
    for n in range(5):
        either.send(queue, str(n))
    assert [message.body for message in either.receive_all(queue, 3)] == ["0", "1", "2"]
    assert [message.body for message in either.receive_all(queue, 3, timeout=0.5)] == ["3", "4"]


def test_a_java_error_can_be_read_after_the_client_has_ended(broker):
    with (
        pytest.raises(Py4JJavaError) as caught,
        JmsClient(broker.amqp_url, broker.user, broker.password) as client,
    ):
        client.receive("queue", selector="no selector at all")
    assert "InvalidSelectorException" in caught.value.__notes__[0]


def test_a_selector_without_a_match_receives_nothing(java, queue):
    java.send(queue, "a", properties={"n": 1})
    java.send(queue, "b", properties={"n": 2})
    assert java.receive(queue, selector="n = 2").body == "b"
    assert java.receive(queue, selector="n = 2", timeout=0.05) is None
    assert java.receive(queue).body == "a"


def test_what_a_stomp_client_sent(java, broker, connect, queue):
    stomp, _ = connect(broker)
    stomp.ask(f"SEND\ndestination:{queue}\ndestination-type:ANYCAST\nreply-to:answers\nn:1\nreceipt:r\n\ntext")
    message = java.receive(queue)
    assert (message.body_type, message.body) == (BodyType.TEXT, "text")
    assert message.properties["n"] == Typed("string", "1")
    assert (message.message_id, message.reply_to) == (None, "answers")
    assert message.delivery_mode is DeliveryMode.NON_PERSISTENT


def test_a_temporary_queue_ends_with_its_client(java, broker, queue):
    own, other = java.temporary_queue(), java.temporary_queue()
    assert own != other
    java.send(queue, "question", reply_to=own)
    with JmsClient(broker) as answerer:
        theirs = answerer.temporary_queue().removeprefix("temp-queue://")
        reply_to = answerer.receive(queue).reply_to
        assert reply_to == own
        answerer.send(reply_to, "answer")
        assert broker.has_queue(theirs)
    wait_until(lambda: not broker.has_queue(theirs))
    assert java.receive(own).body == "answer"
    assert java.receive(other, timeout=0.05) is None


@pytest.mark.broker
@pytest.mark.deep
def test_classic_has_the_same_client(classic, queue):
    with JmsClient(classic) as java:
        java.send(queue, {"n": Typed("short", 3)}, properties={"f": Typed("float", 1.5)}, reply_to="topic://answers")
        message = java.receive(queue)
        assert (message.body, message.properties["f"]) == ({"n": Typed("short", 3)}, Typed("float", 1.5))
        assert (message.destination, message.reply_to) == (f"queue://{queue}", "topic://answers")
        assert java.receive(queue, timeout=0.05) is None


def test_wrong_password(broker):
    with pytest.raises(Py4JJavaError, match="JMSSecurityException"):
        JmsClient(broker, password="wrong")
