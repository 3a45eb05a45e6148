"""What is refused on brokers that no test has run, and what is sent to them, as their documentation wants it."""

import contextlib
import re
from contextlib import closing

import pyarrow as pa
import pytest
from proton_broker import ProtonBroker
from waiting import wait_until

from pyspark_jms.amqp.dialects import (
    AZURE_SERVICE_BUS,
    IBM_MQ,
    SOLACE,
)
from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.sink import AmqpSinkLink
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.features import Feature
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.source.receiver import BatchReceiver
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.tools import cli

NOWHERE = "amqp://127.0.0.1:1"
DOCUMENTED = (AZURE_SERVICE_BUS, SOLACE, IBM_MQ)


def reading(broker, **options):
    return SourceOptions.parse({"brokerUrl": NOWHERE, "broker": broker} | options)


@pytest.mark.parametrize("dialect", DOCUMENTED, ids=lambda dialect: dialect.name)
def test_nothing_is_claimed_that_no_test_has_seen(dialect):
    assert (dialect.tested_versions, dialect.browses, dialect.selector_dialect) == ("none", False, None)
    assert not dialect.can(Feature.REGISTER)
    assert not dialect.can(Feature.EXACTLY_ONCE_WRITE)


@pytest.mark.parametrize(
    ("dialect", "remedy"),
    [
        (AZURE_SERVICE_BUS, "queue=TOPIC/Subscriptions/NAME"),
        (SOLACE, "as a subscription of a queue"),
        (IBM_MQ, "administrative subscription"),
    ],
)
def test_a_topic_is_not_read_and_the_remedy_is_the_broker_s(dialect, remedy):
    with pytest.raises(UnsupportedError, match=rf"no durable subscriptions\. .*{remedy}"):
        reading(dialect.name, topic="t")


@pytest.mark.parametrize("dialect", [SOLACE, IBM_MQ], ids=lambda dialect: dialect.name)
def test_a_write_takes_no_transaction_where_there_is_none(dialect):
    options = {"brokerUrl": NOWHERE, "broker": dialect.name, "queue": "q"}
    with pytest.raises(UnsupportedError, match="transaction=none"):
        SinkOptions.parse(options | {"transaction": "task"})
    with ProtonBroker() as peer:
        sink = SinkOptions.parse(options | {"brokerUrl": peer.amqp_url})
        assert send_at_least_once(AmqpSinkLink, sink, iter([pa.record_batch({"text": ["a"]})])) == (1, 0)
        assert peer.queues["q"] == ["a"]


def test_azure_gives_a_reader_no_more_than_it_acknowledges_before_the_locks_end():
    with ProtonBroker() as peer:
        peer.queues["q"] = [f"{n}" for n in range(500)]
        options = SourceOptions.parse({"brokerUrl": peer.amqp_url, "broker": "azure-service-bus", "queue": "q"})
        with contextlib.closing(BatchReceiver(reading_of(options), StopRequest(), store=None, sequence=0)) as receiver:
            wait_until(lambda: receiver.next_batch_end() == 200)
            assert peer.deliveries == 200
            receiver.acknowledge_through(200)
            wait_until(lambda: receiver.next_batch_end() == 400)


def test_a_transaction_of_azure_has_one_entity(capsys):
    rows = pa.record_batch({"text": ["a"], "destination": ["queue://a"]})
    with ProtonBroker(coordinator="nothing") as peer:
        access = {"brokerUrl": peer.amqp_url, "broker": "azure-service-bus"}
        with closing(AmqpSinkLink(SinkOptions.parse(access).connection)) as link:
            how = {"destination": None, "property_columns": (), "now_ms": 0}
            with pytest.raises(UnsupportedError, match="of one queue or topic only"):
                link.encode(rows, **how)
            assert len(link.encode(rows, **how, in_transaction=False)) == 1
        peer.queues["q"] = ["one"]
        where = ["--broker-url", peer.amqp_url, "--option", "broker=azure-service-bus"]
        assert cli.main(["move", *where, "--queue", "q", "--to", "r"]) == 1
        assert "of one queue or topic only. Nothing was moved" in capsys.readouterr().err
        assert peer.queues["q"] == ["one"]


def test_a_delivery_delay_is_refused_where_another_annotation_means_it():
    rows = pa.record_batch({"text": ["a"], "delivery_delay": [60_000]})
    with ProtonBroker() as peer:
        options = {"brokerUrl": peer.amqp_url, "broker": "azure-service-bus", "queue": "q", "transaction": "none"}
        sink = SinkOptions.parse(options)
        with pytest.raises(UnsupportedError, match="would deliver it at once"):
            send_at_least_once(AmqpSinkLink, sink, iter([rows]))


def test_a_container_id_has_only_characters_that_ibm_mq_takes():
    with ProtonBroker() as peer:
        settings = SourceOptions.parse({"brokerUrl": peer.amqp_url, "broker": "ibm-mq", "queue": "q"}).connection
        connect(settings).close()
        with Producer(settings):
            pass
        assert len(peer.container_ids) == 2
        assert all(re.fullmatch(r"[A-Za-z0-9%/._]{1,256}", each) for each in peer.container_ids)
