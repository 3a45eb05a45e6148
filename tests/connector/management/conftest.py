"""Management links over both protocols."""

import contextlib
from functools import partial

import pytest
from connection_settings import settings_over

from pyspark_jms.amqp.link.management import AmqpManagementLink
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.address import parse_broker_url
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.stomp.link.management import StompManagementLink
from pyspark_jms.stomp.source import StompSource

OPENERS = {"stomp": StompManagementLink, "amqp": AmqpManagementLink}
SOURCES = {"stomp": StompSource(), "amqp": AmqpSource()}


@pytest.fixture(params=OPENERS)
def protocol(request, broker):
    if not hasattr(broker, "amqp_url"):
        pytest.skip("needs an embedded broker")
    return request.param


@pytest.fixture
def open_link(protocol):
    return OPENERS[protocol]


@pytest.fixture
def url_of(protocol):
    return lambda broker: broker.amqp_url if protocol == "amqp" else broker.url


@pytest.fixture
def settings_for(protocol):
    return partial(settings_over, protocol=protocol, receipt_timeout=20)


@pytest.fixture
def proxied(protocol, url_of):
    """``proxied(proxy)``: the URL of a proxy before ``port_of(broker)``."""
    return lambda proxy: f"{protocol}://{proxy.host}:{proxy.port}"


@pytest.fixture
def port_of(url_of):
    return lambda broker: parse_broker_url(url_of(broker))[0].port


@pytest.fixture
def consume(protocol):
    """``consume(settings, queue, selector)``: a link that receives the queue's messages, closed at the end."""
    with contextlib.ExitStack() as stack:

        def consume(settings, name, selector=None):
            source = SOURCES[protocol]
            link = source.connect(settings, StateCondition())
            stack.callback(link.close)
            destination = Destination(DestinationKind.QUEUE, name)
            link.subscribe(Subscription(destination=destination, window_bytes=1 << 20, selector=selector))
            return link

        yield consume
