"""Brokers that speak every protocol that they have, and a producer of each: what a broker adds when it converts.

A producer sends one message, ``BODY``, and sets nothing else that its client lets it leave out, unless it is named so.
"""

import time
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from threading import Event
from uuid import uuid4

import paho.mqtt.client as mqtt
import pika
from broker_stage import Client, Stage
from installed_rabbit import InstalledRabbit
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from proton import Message, symbol
from proton.reactor import SenderOption
from proton.utils import BlockingConnection
from rabbit4 import Rabbit4
from waiting import wait_until

from pyspark_jms.testing import EmbeddedArtemis, EmbeddedClassic, JmsClient
from pyspark_jms.tools.testing import jars
from pyspark_jms.tools.testing.java import JavaMachine
from pyspark_jms.tools.testing.ports import free_port

BODY = "plain"
_EXCLUDED = ("org.apache.artemis:artemis-jms-client",)  # of javax, which artemis-jakarta-client replaces


class Artemis(EmbeddedArtemis):
    """All protocols on one port. A queue that is there before gets what MQTT clients publish to its name."""

    dialect = "artemis"
    _packages = (
        *jars.ARTEMIS_PACKAGES,
        f"org.apache.artemis:artemis-mqtt-protocol:{jars.ARTEMIS_VERSION}",
        f"org.apache.artemis:artemis-openwire-protocol:{jars.ARTEMIS_VERSION}",
        "javax.jms:javax.jms-api:2.0.1",
    )
    _excluded = _EXCLUDED

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, acceptor_options={"protocols": "STOMP,CORE,AMQP,MQTT,OPENWIRE"}, **options)
        self.openwire_port = self.mqtt_port = self.port


class Classic(EmbeddedClassic):
    dialect = "classic"
    _packages = (*jars.CLASSIC_PACKAGES, f"org.apache.activemq:activemq-mqtt:{jars.CLASSIC_VERSION}")
    _excluded = _EXCLUDED

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.openwire_port, self.mqtt_port = free_port(self.host), free_port(self.host)

    def _boot(self, jvm):
        super()._boot(jvm)
        for url in (f"tcp://{self.host}:{self.openwire_port}", f"mqtt://{self.host}:{self.mqtt_port}"):
            self._server.startTransportConnector(self._server.addConnector(url))


class _WithMqtt:
    dialect = "rabbitmq"

    def _configure(self):
        self.mqtt_port = free_port(self.host)
        super()._configure()
        with (self.directory / "rabbitmq.conf").open("a") as settings:
            settings.write(f"mqtt.listeners.tcp.1 = {self.host}:{self.mqtt_port}\n")
        (self.directory / "enabled_plugins").write_text("[rabbitmq_mqtt,rabbitmq_stomp].\n")


class Rabbit3(_WithMqtt, InstalledRabbit):
    """The installed RabbitMQ."""


class Rabbit(_WithMqtt, Rabbit4):
    """RabbitMQ 4, which also speaks AMQP 1.0."""


# --- producers -----------------------------------------------------------------------------------------


def qpid(broker):
    return JmsClient(broker.amqp_url, broker.user, broker.password)


def _java(connect, **parts):
    def send(broker, queue):
        with connect(broker) as client:
            client.send(queue, BODY, **parts)

    return send


@contextmanager
def openwire(broker, url="tcp://{}"):
    """A session of ActiveMQ's own client, in a machine of its own, over TCP."""
    machine = JavaMachine(jars.resolve(jars.CLASSIC_PACKAGES), log=broker.directory / "openwire.log")
    try:
        jvm = machine.connect().jvm
        factory = jvm.org.apache.activemq.ActiveMQConnectionFactory(url.format(f"{broker.host}:{broker.openwire_port}"))
        connection = factory.createConnection(broker.user, broker.password)
        connection.start()
        yield connection.createSession(False, 1)
        connection.close()
    finally:
        machine.kill()


def _openwire(broker, queue, time_to_live=0, **parts):
    """``parts`` are setters of the message and their values."""
    with openwire(broker) as session:
        message = session.createTextMessage(BODY)
        for name, value in parts.pop("properties", {}).items():
            message.setObjectProperty(name, value)
        for setter, value in parts.items():
            getattr(message, setter)(session.createQueue(value) if setter == "setJMSReplyTo" else value)
        session.createProducer(session.createQueue(queue)).send(message, 2, 4, time_to_live)


def _stomp(broker, queue, **headers):
    with Client(Stage(broker.dialect, broker)) as client:
        client.put(queue, [(list(headers.items()), BODY)])


class _ToQueue(SenderOption):
    def apply(self, sender):
        sender.target.capabilities.put_object(symbol("queue"))


def proton_send(broker, queue, message):
    url = broker.amqp_url.replace("amqp://", f"amqp://{broker.user}:{broker.password}@")
    with closing(BlockingConnection(url, allowed_mechs="PLAIN", timeout=20)) as connection:
        connection.create_sender(queue, options=_ToQueue()).send(message)


def _amqp(broker, queue, **parts):
    message = Message(id="1", body=BODY)
    if broker.dialect == "rabbitmq":
        # To its other protocols, RabbitMQ gives a section that is not data as encoded bytes.
        message = Message(id="1", body=BODY.encode(), inferred=True, content_type="text/plain")
    for name, value in parts.items():
        setattr(message, name, value)
    proton_send(broker, f"/queues/{queue}" if broker.dialect == "rabbitmq" else queue, message)


@contextmanager
def _mqtt_client(broker, version, on_message=None, on_subscribe=None, will=None):
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=uuid4().hex, protocol=version)
    client.on_message, client.on_subscribe = on_message, on_subscribe
    client.username_pw_set(broker.user, broker.password)
    if will is not None:
        client.will_set(**will)
    client.connect(broker.host, broker.mqtt_port)
    client.loop_start()
    try:
        yield client
    finally:
        client.disconnect()
        client.loop_stop()


@contextmanager
def mqtt_subscriber(broker, topic):
    """The messages of MQTT 5 that come to a topic, from the begin of the block on."""
    received, subscribed = [], Event()
    by_name = {
        "on_message": lambda _client, _data, message: received.append(message),
        "on_subscribe": lambda *_: subscribed.set(),
    }
    with _mqtt_client(broker, mqtt.MQTTv5, **by_name) as client:
        client.subscribe(topic.replace(".", "/"), 1)
        assert subscribed.wait(20)
        yield received


def mqtt_publish(broker, queue, version, payload=BODY, *, retain=False, **given):
    properties = _mqtt_properties(PacketTypes.PUBLISH, given) if version == mqtt.MQTTv5 else None
    with _mqtt_client(broker, version) as client:
        client.publish(_mqtt_topic(queue), payload, 1, retain, properties=properties).wait_for_publish(20)


def mqtt_will(broker, queue, version, **given):
    """Let a client go without a word: the broker publishes its will."""
    properties = _mqtt_properties(PacketTypes.WILLMESSAGE, given) if version == mqtt.MQTTv5 else None
    will = {"topic": _mqtt_topic(queue), "payload": BODY, "qos": 1, "retain": True, "properties": properties}
    with _mqtt_client(broker, version, will=will) as client:
        wait_until(client.is_connected, what="the connection")
        client.loop_stop()
        client.socket().close()


def _mqtt_topic(queue):
    return queue.removeprefix("Consumer.test.").replace(".", "/")


def _mqtt_properties(packet, given):
    properties = Properties(packet)
    for name, value in given.items():
        setattr(properties, name, value)
    return properties


MQTT_5_PARTS = {
    "ContentType": "application/json",
    "CorrelationData": b"c",
    "MessageExpiryInterval": 3600,
    "PayloadFormatIndicator": 1,
    "ResponseTopic": "answers/x",
    "UserProperty": [("i", "5"), ("trace", "t")],
}
"""All that a message can have, with names that JMS has too."""

_MQTT_3 = {
    "MQTT 3.1.1": lambda broker, queue: mqtt_publish(broker, queue, mqtt.MQTTv311),
    "MQTT 3.1.1 retained": lambda broker, queue: mqtt_publish(broker, queue, mqtt.MQTTv311, retain=True),
    "MQTT 3.1.1 will": lambda broker, queue: mqtt_will(broker, queue, mqtt.MQTTv311),
}
_MQTT_5 = {
    "MQTT 5": lambda broker, queue: mqtt_publish(broker, queue, mqtt.MQTTv5),
    "MQTT 5 retained": lambda broker, queue: mqtt_publish(broker, queue, mqtt.MQTTv5, retain=True, **MQTT_5_PARTS),
    "MQTT 5 will": lambda broker, queue: mqtt_will(broker, queue, mqtt.MQTTv5, **MQTT_5_PARTS),
}


def pika_send(broker, queue, **given):
    with broker.amqp() as channel:
        channel.basic_publish("", queue, BODY.encode(), pika.BasicProperties(**given))


def make_queue(broker, queue):
    """A queue that gets what is sent to it over each protocol: MQTT clients publish to topics."""
    if broker.dialect == "rabbitmq":
        with broker.amqp() as channel:
            channel.queue_declare(queue, durable=True)
            channel.queue_bind(queue, "amq.topic", queue)
    else:
        broker.create_queue(queue)


PRODUCERS = {
    "artemis": {
        "CORE": _java(JmsClient),
        "OpenWire": _openwire,
        "STOMP": _stomp,
        "AMQP 1.0": _amqp,
        "Qpid JMS": _java(qpid),
        **_MQTT_3,
        **_MQTT_5,
    },
    "classic": {
        "OpenWire": _openwire,
        "OpenWire scheduled": lambda broker, queue: _openwire(broker, queue, properties={"AMQ_SCHEDULED_DELAY": 1}),
        "STOMP": _stomp,
        "AMQP 1.0": _amqp,
        "Qpid JMS": _java(qpid),
        **_MQTT_3,
    },
    "rabbitmq": {
        "AMQP 0.9.1": pika_send,
        "STOMP": _stomp,
        "AMQP 1.0": _amqp,
        **_MQTT_3,
        **_MQTT_5,
    },
}


# --- producers that set all they can ---------------------------------------------------------------------

PROPERTIES = {"i": 5, "d": 1.5, "b": True}
"""Of each protocol with types; JMSXGroupID beside them."""


_LIFE = {"time_to_live": 3_600_000}
_GROUPED = PROPERTIES | {"JMSXGroupID": "g"}
_JAVA = {"properties": _GROUPED, "type": "T", "correlation_id": "c", "reply_to": "queue://answers", **_LIFE}
_OPENWIRE = {"properties": _GROUPED, "setJMSType": "T", "setJMSCorrelationID": "c", "setJMSReplyTo": "answers"}


def _openwire_full(broker, queue):
    _openwire(broker, queue, **_OPENWIRE, **_LIFE)


def _stomp_full(broker, queue):
    own = {"artemis": "queue://answers", "classic": "/queue/answers", "rabbitmq": "/queue/answers"}[broker.dialect]
    given = {"type": "T", "correlation-id": "c", "reply-to": own, "content-type": "application/json", "i": "5"}
    _stomp(broker, queue, **given)


def _amqp_full(broker, queue):
    parts = {"subject": "T", "correlation_id": "c", "reply_to": "answers", "group_id": "g", "body": BODY.encode()}
    parts |= {"ttl": 3600, "creation_time": time.time(), "content_type": "application/json", "inferred": True}
    # Over STOMP, RabbitMQ and Artemis end a connection for other types of AMQP.
    _amqp(broker, queue, **parts, properties=PROPERTIES)


def _mqtt_full(broker, queue):
    mqtt_publish(broker, queue, mqtt.MQTTv5, **MQTT_5_PARTS | {"UserProperty": [("i", "5"), ("x-trace", "t")]})


def _pika_full(broker, queue):
    headers = {"i": 5, "b": True, "ts": datetime(2024, 1, 2, tzinfo=UTC), "n": None, "t": {"a": 1}, "l": [1]}
    parts = {"content_type": "application/json", "content_encoding": "utf-8", "type": "T", "app_id": "shop"}
    ids = {"correlation_id": "c", "reply_to": "answers", "message_id": "m"}
    times = {"timestamp": int(time.time()), "expiration": "3600000", "delivery_mode": 2}
    pika_send(broker, queue, headers=headers | {"x-trace": "t"}, **parts, **ids, **times)


FULL = {
    "artemis": {
        "CORE": _java(JmsClient, **_JAVA),
        "OpenWire": _openwire_full,
        "STOMP": _stomp_full,
        "AMQP 1.0": _amqp_full,
        "Qpid JMS": _java(qpid, **_JAVA),
        "MQTT 5": _mqtt_full,
    },
    "classic": {
        "OpenWire": _openwire_full,
        "STOMP": _stomp_full,
        "AMQP 1.0": _amqp_full,
        "Qpid JMS": _java(qpid, **_JAVA),
    },
    "rabbitmq": {"AMQP 0.9.1": _pika_full, "STOMP": _stomp_full, "AMQP 1.0": _amqp_full, "MQTT 5": _mqtt_full},
}
"""What arrives of each is a line of a table of docs/brokers."""
